/* SPDX-License-Identifier: MIT */
#ifndef SB_CONFORM_CONFORM_INT_H
#define SB_CONFORM_CONFORM_INT_H

#include <base/str.h>
#include <provider/provider.h>
#include <sb/conform.h>

#define CONFORM_MS 60000
#define CONFORM_SKIP 1 /* a check returns it with the reason in `err` */

/* The run of one check. */
struct conform {
	const struct sb_conform_opts *o;
	struct sb_capabilities caps;
	int64_t call_ms;
	char dir[512];    /* of this check */
	unsigned boxes;   /* made so far by this check */
	struct box *open; /* those to destroy at the end, whatever happens */
};

/* A sandbox of a check. Texts in it live as long as the check. */
struct box {
	struct box *next;
	struct conform *c;
	char id[SB_SANDBOX_ID_MAX + 1];
	char local[600], extra[600]; /* local roots; `extra` is made when asked for */
	struct sb_profile profile;
	struct sb_prepare_request req;
	const char *dirs[2];
	struct sb_prepared prepared; /* zeroed when not prepared */
	bool gone;                   /* destroyed by the check */
};

/* A call with the usual limit. */
struct sb_call conform_call(const struct conform *c);

/* A new sandbox's request: local root made, empty. `extra`: a further directory. */
struct box *box_new(struct conform *c, bool extra, struct sb_error *err);
int box_prepare(struct box *b, struct sb_error *err);
/* box_new, box_prepare; NULL on failure. */
struct box *box_ready(struct conform *c, bool extra, struct sb_error *err);
/* One sync; `res` may be NULL. */
int box_sync(struct box *b, enum sb_way way, enum sb_when why, struct sb_sync_result *res,
	struct sb_error *err);
int box_push(struct box *b, struct sb_error *err); /* reason start */
int box_pull(struct box *b, struct sb_error *err); /* reason stop */
int box_destroy(struct box *b, bool discard, struct sb_error *err);
/* Forgets what prepare gave, but not the state. */
void box_detach(struct box *b);

/*
 * Runs `script` by sh in the runtime root with the launcher and returns its exit code; `out` (may
 * be NULL) gets stdout, NUL-terminated, to be freed.
 */
int box_sh(struct box *b, const char *script, char **out, struct sb_error *err);
/* The script must print `want`. */
int box_sh_is(struct box *b, const char *script, const char *want, struct sb_error *err);

/* Local files of a sandbox, relative to its local root. */
int local_write(const struct box *b, const char *path, const char *text, struct sb_error *err);
int local_is(const struct box *b, const char *path, const char *want,
	struct sb_error *err); /* NULL: not there */
/* Runs `script` by sh in the local root of this machine; `out` as for box_sh. */
int local_sh(const struct box *b, const char *script, char **out, struct sb_error *err);

/* A failure of the check. */
#define broken(err, ...) sb_fail(err, SB_E_STATE, __VA_ARGS__)
/* The call must fail with `want`. */
int must_fail(int got, int want, const char *what, const struct sb_error *why,
	struct sb_error *err);
int skip_check(struct sb_error *err, const char *why);

/* The checks, in files by subject; each table ends with a NULL name. */
struct conform_check {
	const char *name;
	const char *about;
	int (*run)(struct conform *c, struct sb_error *err);
};
extern const struct conform_check conform_life[], conform_sync[], conform_launch[], conform_tools[],
	conform_limits[];

/* Steps in a new process. */
int conform_step_life(struct conform *c, const char *step, const char *file, struct sb_error *err);

#endif
