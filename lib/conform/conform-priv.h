/* SPDX-License-Identifier: MIT */
#ifndef SB_CONFORM_PRIV_H
#define SB_CONFORM_PRIV_H

#include <base/str.h>
#include <provider/provider.h>
#include <sb/conform.h>

#define CONFORM_MS 60000
#define SB_CONFORM_SKIP_CHECK 1 /* a check returns it with the reason in `err` */

/* The run of one check. */
struct sb_conform {
	const struct sb_conform_opts *o;
	struct sb_capabilities caps;
	int64_t call_ms;
	char dir[512];                   /* of this check */
	unsigned made;                   /* made so far by this check */
	struct sb_conform_sandbox *open; /* those to destroy at the end, whatever happens */
};

/* A sandbox of a check. Texts in it live as long as the check. */
struct sb_conform_sandbox {
	struct sb_conform_sandbox *next;
	struct sb_conform *c;
	char id[SB_SANDBOX_ID_MAX + 1];
	char local[600], extra[600]; /* local roots; `extra` is made when asked for */
	struct sb_profile profile;
	struct sb_prepare_request req;
	const char *dirs[2];
	struct sb_prepared prepared; /* zeroed when not prepared */
	bool gone;                   /* destroyed by the check */
};

/* A call with the usual limit. */
struct sb_call sb_conform_call(const struct sb_conform *c);

/* A new sandbox's request: local root made, empty. `extra`: a further directory. */
struct sb_conform_sandbox *sb_conform_new(struct sb_conform *c, bool extra, struct sb_error *err);
int sb_conform_prepare(struct sb_conform_sandbox *b, struct sb_error *err);
/* sb_conform_new, sb_conform_prepare; NULL on failure. */
struct sb_conform_sandbox *sb_conform_ready(struct sb_conform *c, bool extra, struct sb_error *err);
/* One sync; `res` may be NULL. */
int sb_conform_sync(struct sb_conform_sandbox *b, enum sb_way way, enum sb_when why,
	struct sb_sync_result *res, struct sb_error *err);
int sb_conform_push(struct sb_conform_sandbox *b, struct sb_error *err); /* reason start */
int sb_conform_pull(struct sb_conform_sandbox *b, struct sb_error *err); /* reason stop */
/* Removes it, whatever its persistence. */
int sb_conform_destroy(struct sb_conform_sandbox *b, bool discard, struct sb_error *err);
/* Ends it as its persistence says. */
int sb_conform_end(struct sb_conform_sandbox *b, struct sb_error *err);
/* Looks for it; `labels` NULL: by its id. */
int sb_conform_find(struct sb_conform_sandbox *b, const char *const *labels, struct sb_state *out,
	struct sb_error *err);
/* Forgets what prepare gave, but not the state. */
void sb_conform_detach(struct sb_conform_sandbox *b);

/*
 * Runs `script` by sh in the runtime root with the launcher and returns its exit code; `out` (may
 * be NULL) gets stdout, NUL-terminated, to be freed.
 */
int sb_conform_sh(struct sb_conform_sandbox *b, const char *script, char **out,
	struct sb_error *err);
/* The script must print `want`. */
int sb_conform_sh_is(struct sb_conform_sandbox *b, const char *script, const char *want,
	struct sb_error *err);

/* Local files of a sandbox, relative to its local root. */
int sb_conform_local_write(const struct sb_conform_sandbox *b, const char *path, const char *text,
	struct sb_error *err);
int sb_conform_local_is(const struct sb_conform_sandbox *b, const char *path, const char *want,
	struct sb_error *err); /* NULL: not there */
/* Runs `script` by sh in the local root of this machine; `out` as for sb_conform_sh. */
int sb_conform_local_sh(const struct sb_conform_sandbox *b, const char *script, char **out,
	struct sb_error *err);

/* A failure of the check. */
#define broken(err, ...) sb_fail(err, SB_E_STATE, __VA_ARGS__)
/* The call must fail with `want`. */
int sb_conform_must_fail(int got, int want, const char *what, const struct sb_error *why,
	struct sb_error *err);
int sb_conform_skip(struct sb_error *err, const char *why);

/* The checks, in files by subject; each table ends with a NULL name. */
struct sb_conform_check {
	const char *name;
	const char *about;
	int (*run)(struct sb_conform *c, struct sb_error *err);
};
extern const struct sb_conform_check sb_conform_life_checks[], sb_conform_keep_checks[],
	sb_conform_sync_checks[], sb_conform_launch_checks[], sb_conform_tools_checks[],
	sb_conform_limits_checks[];

/* Steps in a new process. */
int sb_conform_life_step(struct sb_conform *c, const char *step, const char *file,
	struct sb_error *err);

#endif
