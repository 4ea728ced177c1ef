/* SPDX-License-Identifier: MIT */
#ifndef SB_REGISTRY_H
#define SB_REGISTRY_H

#include <sb/provider.h>

/*
 * At most one provider a backend. Thread-safe. It owns the providers: they live as long as it does,
 * replaced ones too.
 */
struct sb_registry;

/*
 * Registers each in order. When one fails there is no registry, and the providers stay the
 * caller's. `v` may be NULL with `n` 0. sb_registry_free takes NULL and frees the providers.
 */
SB_API struct sb_registry *sb_registry_new(struct sb_provider *const *v, size_t n,
	struct sb_error *err);
SB_API void sb_registry_free(struct sb_registry *r);

/*
 * SB_E_PROVIDER_NULL: NULL, without a table, or a table that lacks a required member; SB_E_VERSION:
 * a table of another version; SB_E_BACKEND_INVALID; SB_E_PROVIDER_EXISTS unless `replace`. On
 * failure the provider stays the caller's.
 */
SB_API int sb_registry_add(struct sb_registry *r, struct sb_provider *p, bool replace,
	struct sb_error *err);

/* SB_E_PROVIDER_MISSING names the backend and those there are. `r` may be NULL: an empty one. */
SB_API struct sb_provider *sb_registry_get(struct sb_registry *r, enum sb_backend backend,
	struct sb_error *err);

/* A snapshot in order of backend: an array of `out_n`, freed by the caller with free(). */
SB_API int sb_registry_list(struct sb_registry *r, struct sb_provider ***out, size_t *out_n,
	struct sb_error *err);

/*
 * Where the providers of this library keep and look for things. NULL members: the defaults.
 * Borrowed for the call.
 */
struct sb_builtin_opts {
	size_t size;
	const char *state_dir;         /* of libsbsync and of sandboxes: $XDG_STATE_HOME/sbsync */
	const char *const *agent_argv; /* of the sync agent for local pairs; NULL: "sbsync agent"
					  beside this program or on PATH */
};
#define SB_BUILTIN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_builtin_opts) \
	}

/* A registry with every provider of this library. `o` may be NULL. */
SB_API struct sb_registry *sb_registry_builtin(const struct sb_builtin_opts *o,
	struct sb_error *err);
/*
 * The same with the defaults, one for the whole process: made by the first call, and there until
 * the process ends. NULL: no memory; the next call tries again.
 */
SB_API struct sb_registry *sb_registry_default(struct sb_error *err);

#endif
