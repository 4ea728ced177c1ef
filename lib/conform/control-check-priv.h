/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_CHECK_PRIV_H
#define SB_CONTROL_CHECK_PRIV_H

#include <base/cleanup.h>
#include <base/strlist.h>
#include <sb/control-check.h>

SB_CLEANUP_VALUE(sb_control_sandbox, sb_control_sandbox_free)

#define SB_CONTROL_CHECK_SKIP 1 /* a check returns it with the reason in `err` */

/* The run of one check. */
struct sb_control_check {
	const struct sb_control_check_opts *o;
	struct sb_control *c;
	struct sb_control_caps caps;
	int64_t ms;
	struct sb_strlist made; /* ids to destroy at the end */
	char label[40];         /* that every sandbox of this run has */
	unsigned keys;
};

/* A call with the usual limit. */
struct sb_control_call sb_control_check_call(const struct sb_control_check *k);

/* A sandbox with the label of the run; it is removed at the end of the check. */
int sb_control_check_make(struct sb_control_check *k, struct sb_control_create_opts *o,
	struct sb_control_sandbox *out, struct sb_error *err);
/* One with nothing asked for. */
int sb_control_check_plain(struct sb_control_check *k, struct sb_control_sandbox *out,
	struct sb_error *err);
/* A key that no other check has. */
void sb_control_check_key(struct sb_control_check *k, char out[64]);
/* How many sandboxes of this run there are. */
int sb_control_check_count(struct sb_control_check *k, size_t *out, struct sb_error *err);

/* Launches `sh -c SCRIPT` and waits for its end: the exit code. */
int sb_control_check_sh(struct sb_control_check *k, const char *id, const char *script,
	struct sb_error *err);
/* The same, with all of `o`. */
int sb_control_check_launch(struct sb_control_check *k, const struct sb_control_launch_opts *o,
	struct sb_error *err);
/* Waits until it has exited; `p->id` says which. */
int sb_control_check_wait(struct sb_control_check *k, const char *id, struct sb_control_process *p,
	struct sb_error *err);
/* `script` must exit with `want`. */
int sb_control_check_sh_is(struct sb_control_check *k, const char *id, const char *script, int want,
	struct sb_error *err);
/* The call must fail with `want`. */
int sb_control_check_fails(int got, int want, const char *what, const struct sb_error *why,
	struct sb_error *err);
int sb_control_check_skip(struct sb_error *err, const char *why);

#define broken(err, ...) sb_fail(err, SB_E_STATE, __VA_ARGS__)

struct sb_control_check_row {
	const char *name;
	const char *about;
	int (*run)(struct sb_control_check *k, struct sb_error *err);
};
extern const struct sb_control_check_row sb_control_check_life_rows[],
	sb_control_check_process_rows[], sb_control_check_state_rows[];

#endif
