/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_PROC_H
#define SB_TOOL_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include <base/buf.h>
#include <sb/cancel.h>

/*
 * A program run for somebody: its own process group, its output kept or handed over raw. A thread
 * of its own watches it, so its output is drained and its end noticed while nobody asks. Safe from
 * several threads; free it when no call is under way.
 */
struct sb_proc;

#define SB_PROC_STDERR_MAX (128u << 10)
#define SB_PROC_STOP_MS 5000 /* from closing stdin to TERM */
#define SB_PROC_TERM_MS 250  /* from TERM to KILL */
#define SB_PROC_KILL_MS 1000 /* from KILL to giving up on the group */

struct sb_proc_opts {
	size_t size;
	const char *const *argv; /* looked up with the PATH of `env` */
	const char *const *env;  /* NULL: ours */
	const char *cwd;         /* NULL: ours */
	bool captured; /* stdin is empty, stdout and stderr go to the window in the order they come
			*/
	bool inherit;  /* instead of pipes, our own descriptors 0 to 2; nothing is kept */
	bool tty; /* a terminal of its own: stdin and stdout are its two ways, there is no stderr */
	unsigned short rows, cols; /* 0: 24 x 80 */
	size_t window;             /* bytes kept: of stderr, or of both */
	int stderr_fd; /* gets stderr too, as it comes; -1: none. Stays the caller's, as long as `p`
			  lives */
	int stop_ms;   /* 0: SB_PROC_STOP_MS */
};
#define SB_PROC_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_proc_opts), .window = SB_PROC_STDERR_MAX, .stderr_fd = -1 \
	}

struct sb_proc *sb_proc_start(const struct sb_proc_opts *opts, struct sb_error *err);
/* Kills what still runs. NULL is allowed. */
void sb_proc_free(struct sb_proc *p);
SB_CLEANUP_PTR(sb_proc, sb_proc_free)

pid_t sb_proc_pid(const struct sb_proc *p);

/*
 * The child's stdin (to write) and stdout (to read): raw pipes, -1 when captured. They belong to
 * `p`. After sb_proc_close_stdin writing gives EPIPE; the number stays taken until the end, so that
 * a writer in another thread hits no stranger's file. A terminal reads EIO at its end; closing its
 * stdin writes the end-of-file character.
 */
int sb_proc_stdin(const struct sb_proc *p);
int sb_proc_stdout(const struct sb_proc *p);
void sb_proc_close_stdin(struct sb_proc *p);

/*
 * Polls readable once the program has ended, its group with it, and what it wrote is in the window.
 */
int sb_proc_done_fd(const struct sb_proc *p);

/*
 * The window as text (tool/window.h), appended to `out`. Returns whether something is missing in
 * front.
 */
bool sb_proc_text(struct sb_proc *p, struct sb_buf *out);

struct sb_proc_exit {
	int code;     /* exit code, or 128 + signal */
	int signal;   /* 0: it exited */
	bool stopped; /* a stop had been asked for */
};

/*
 * Waits for the end. SB_E_TIMEOUT and SB_E_CANCELED leave it running. SB_E_CHILD: the group would
 * not die.
 */
int sb_proc_wait(struct sb_proc *p, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_proc_exit *out, struct sb_error *err);

/*
 * Asks it to end and waits: stdin is closed, then TERM to the group, then KILL. A cancelled or late
 * caller gets that error, the escalation goes on without him. One that has ended is success.
 */
int sb_proc_stop(struct sb_proc *p, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err);

/* To the group; with a terminal, to its whole session. Nothing once it has ended. */
void sb_proc_signal(struct sb_proc *p, int sig);
/* SB_E_STATE without a terminal. */
int sb_proc_resize(struct sb_proc *p, unsigned short rows, unsigned short cols,
	struct sb_error *err);

/* KILL to the group, without waiting. */
void sb_proc_kill(struct sb_proc *p);

#endif
