/* SPDX-License-Identifier: MIT */
#ifndef SB_CONFORM_H
#define SB_CONFORM_H

#include <sb/provider.h>
#include <sb/registry.h>

/*
 * The conformance suite of providers: what sb/provider.h promises, tried out. It makes sandboxes of
 * its own with random ids and removes them, whatever happens. sbprovider-check(1) is the program;
 * this is for providers that are linked into another one.
 */
enum sb_conform_result {
	SB_CONFORM_OK,
	SB_CONFORM_FAILED,
	SB_CONFORM_SKIPPED, /* the provider says that it cannot, or the caller has not said how to
			       try */
};

/* `text` says why, NULL for SB_CONFORM_OK. */
typedef void (*sb_conform_fn)(const char *check, enum sb_conform_result result, const char *text,
	void *arg);

struct sb_conform_opts {
	size_t size;
	struct sb_provider *provider;
	const struct sb_profile
		*profile;        /* backend and its options; the rest is set by the checks */
	int backend;             /* that the provider must have; -1: any */
	const char *work_dir;    /* an empty directory for local roots */
	int64_t timeout_ms;      /* for any single call; 0: 60 s */
	const char *const *only; /* names or beginnings of names of checks; NULL: all */
	sb_conform_fn report;    /* may be NULL */
	void *arg;               /* of all callbacks */

	/* How to try what cannot be tried from inside. NULL: those checks are skipped. */
	/* Another instance of the provider, as a new process would have it. */
	struct sb_provider *(*again)(void *arg, struct sb_error *err);
	/*
	 * Runs sb_conform_step(step, file) in a new process; kill_ms > 0: kills it (KILL) after so
	 * long. Returns its exit code, negative on failure.
	 */
	int (*respawn)(const char *step, const char *file, int kill_ms, void *arg,
		struct sb_error *err);
	/*
	 * Makes the other side hang (it takes and gives nothing, connections stay open), and lets
	 * it go on.
	 */
	int (*hang)(bool on, void *arg, struct sb_error *err);
};
#define SB_CONFORM_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_conform_opts), .backend = -1 \
	}

/* Runs the checks. Returns how many failed, or a negative code when they could not be begun. */
SB_API int sb_conform_run(const struct sb_conform_opts *o, struct sb_error *err);

/*
 * The other half of `respawn`, in the new process: `o` with a provider of its own. 0, or why it
 * failed.
 */
SB_API int sb_conform_step(const struct sb_conform_opts *o, const char *step, const char *file,
	struct sb_error *err);

/* All names, NULL-terminated, and what the check of a name is about ("" for an unknown one). */
SB_API const char *const *sb_conform_names(void);
SB_API const char *sb_conform_about(const char *name);

/* Not of this library: what a shared object defines that is given to sbprovider-check --plugin. */
SB_API struct sb_provider *sb_provider_plugin(const struct sb_builtin_opts *o,
	struct sb_error *err);

#endif
