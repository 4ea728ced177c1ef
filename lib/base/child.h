/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_CHILD_H
#define SB_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sb/error.h>

struct sb_spawn_opts;

/*
 * A running or ended child. `in` is what it reads (we write), `out` and `errfd` what it writes; -1
 * when not a pipe. Call sb_child_stop in every case: it releases what is left.
 */
struct sb_child {
	pid_t pid;
	int pidfd; /* polls readable when it ended; -1 once reaped and where the kernel has none */
	int in;
	int out;
	int errfd;
	bool own_group;
	bool reaped;
	int status; /* as waitpid gives it, once reaped */
};
#define SB_CHILD_INIT \
	{ \
		.pidfd = -1, .in = -1, .out = -1, .errfd = -1 \
	}

/* True once it has ended; it is not reaped by this. */
bool sb_child_ended(const struct sb_child *c);

/* Waits; SB_E_TIMEOUT or SB_E_CANCELED leave it running. After success `status` is set. */
int sb_child_wait(struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err);

/*
 * The same; when a signal ended it, what it left in its group of its own gets TERM: who was asked
 * to stop by the terminal may leave a helper behind that the signal did not reach.
 */
int sb_child_wait_group(struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err);

/* Exit code, or 128 + signal number. Needs a reaped child. */
int sb_child_exit_code(const struct sb_child *c);

/*
 * Closes our pipe ends, TERM to the group, at most `grace_ms` for the child to end (0: no TERM),
 * KILL to the group, reaps. With a reaped child (or SB_CHILD_INIT) it only closes; the group is
 * left alone then.
 */
void sb_child_stop(struct sb_child *c, int grace_ms);

/*
 * Runs argv to its end, feeds `in` (may be NULL), collects stdout and stderr up to the ceilings of
 * the buffers (initialised by the caller). A full buffer does not stop the child: the rest is
 * dropped and sb_buf_check says SB_E_FULL. NULL: as `opts->io` says, by default discarded. Output
 * that something left running by the child writes after the child's end is not waited for. Returns
 * the exit code (>= 0) or an error; on timeout and cancel the child's group is killed.
 */
int sb_child_run(const char *const *argv, const struct sb_spawn_opts *opts, const void *in,
	size_t in_len, struct sb_buf *out, struct sb_buf *err_out, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);

#endif
