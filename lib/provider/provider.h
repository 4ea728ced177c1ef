/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_PROVIDER_H
#define SB_PROVIDER_PROVIDER_H

#include <pthread.h>

#include <base/strlist.h>
#include <sb/provider.h>
#include <sb/registry.h>

SB_CLEANUP_VALUE(sb_state, sb_state_free)
SB_CLEANUP_VALUE(sb_profile, sb_profile_free)
SB_CLEANUP_VALUE(sb_prepared, sb_prepared_free)
SB_CLEANUP_VALUE(sb_sync_result, sb_sync_result_free)

/*
 * The providers of this library: constructors take the options of sb_registry_builtin, copied. NULL
 * with `err` set.
 */
struct sb_provider *sb_provider_local_new(const struct sb_builtin_opts *o, struct sb_error *err);
struct sb_provider *sb_provider_ssh_new(const struct sb_builtin_opts *o, struct sb_error *err);
struct sb_provider *sb_provider_host_new(const struct sb_builtin_opts *o, struct sb_error *err);
struct sb_provider *sb_provider_docker_new(const struct sb_builtin_opts *o, struct sb_error *err);
struct sb_provider *sb_provider_e2b_new(const struct sb_builtin_opts *o, struct sb_error *err);

/*
 * The start of a provider that works with sessions of libsbsync: each kind has it as its first
 * member, with further fields behind.
 */
struct sb_provider_common {
	struct sb_provider base;
	char *state_dir;    /* NULL: libsbsync's own */
	pthread_mutex_t mu; /* guards the further fields */
};
/* A zeroed one of `size` bytes with this start; NULL with `err` set. */
void *sb_provider_common_new(size_t size, const struct sb_provider_ops *ops,
	const struct sb_builtin_opts *o, struct sb_error *err);
/* Frees it, once the further fields are freed. */
void sb_provider_common_free(struct sb_provider_common *p);

/*
 * What every provider checks of a request: its own backend, directories that are there, and a
 * required network policy that it can enforce.
 */
int sb_provider_check_request(const struct sb_prepare_request *req, enum sb_backend backend,
	bool enforces_network, struct sb_error *err);
/* SB_E_INVAL for an option that the table does not have, or a value that it does not allow. */
int sb_provider_options_check(const char *backend, const struct sb_provider_option *all,
	const char *const *options, struct sb_error *err);
/* Refuses `archive` (SB_E_UNSUPPORTED) if the backend cannot put a sandbox away. */
int sb_provider_check_archive(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_error *err);
/* Fills `launch` and what it borrows from, once the state is there. */
int sb_prepared_launch(const struct sb_prepare_request *req, struct sb_prepared *out,
	struct sb_error *err);

#endif
