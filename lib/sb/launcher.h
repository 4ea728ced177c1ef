/* SPDX-License-Identifier: MIT */
#ifndef SB_LAUNCHER_H
#define SB_LAUNCHER_H

#include <sb/sandbox.h>

#define SB_LAUNCHER_VERSION 1
#define SB_STDERR_TAIL_MAX (128 * 1024) /* bytes of stderr that are kept */
#define SB_STOP_GRACE_MS 5000           /* after stdin was closed, before TERM */
#define SB_STOP_TERM_MS 250             /* after TERM, before KILL */
#define SB_STOP_KILL_MS 1000            /* after KILL, before giving up */

/* What to run. All of it is borrowed for the call. */
struct sb_launch_spec {
	size_t size;
	const char *const *argv; /* NULL-terminated; or */
	const char *command; /* one text, split by the shell's quoting rules, run without a shell */
	const char *cwd;     /* in the runtime; NULL: the runtime root */
	const char *const *dirs; /* further directories of the session: the program finds them as
				    SB_DIRS, one a line, unless `env` has that */
	const char *const *env;  /* "KEY=value" added to the runtime's own; NULL: none */
	const char *const
		*secret_env; /* likewise; never on a command line, in a log or in a file */
	bool tty; /* a terminal over there: stdin and stdout are its two ways, stderr is part of it
		   */
	unsigned short rows, cols; /* of the terminal; 0: 24 x 80 */
	int stderr_fd; /* where stderr goes besides the tail, byte for byte; -1: nowhere. Stays the
			  caller's */
	int stop_grace_ms; /* 0: SB_STOP_GRACE_MS */
};
#define SB_LAUNCH_SPEC_INIT \
	{ \
		.size = sizeof(struct sb_launch_spec), .stderr_fd = -1 \
	}

/*
 * Splits by the shell's quoting (', ", \), no expansion. SB_E_INVAL: an open quote, or nothing
 * there.
 */
SB_API int sb_command_split(const char *command, struct sb_strlist *out, struct sb_error *err);

struct sb_handle;

/*
 * Something that runs, here or in a runtime. Any thread may call any member except `free`; `stop`
 * and `wait` may be called any number of times. Members may not be NULL unless told.
 */
struct sb_handle_ops {
	unsigned version; /* SB_LAUNCHER_VERSION */
	/* Of this machine; 0 when it runs elsewhere. */
	int64_t (*pid)(const struct sb_handle *h);
	const char *(*cwd)(const struct sb_handle *h);
	/*
	 * What it reads and writes: descriptors of this process, blocking, borrowed, byte for byte;
	 * stdin -1 once closed. A write after it ended gives EPIPE (use MSG_NOSIGNAL or ignore
	 * SIGPIPE). Reading stdout to its end gets all it wrote.
	 */
	int (*stdin_fd)(const struct sb_handle *h);
	int (*stdout_fd)(const struct sb_handle *h);
	/*
	 * It reads end-of-file after what was written (a terminal: EOF character). Twice is
	 * success.
	 */
	int (*close_stdin)(struct sb_handle *h, struct sb_error *err);
	/*
	 * The last bytes of stderr so far, at most SB_STDERR_TAIL_MAX, valid UTF-8 (bad bytes as
	 * U+FFFD). New text; NULL: no memory.
	 */
	char *(*stderr_tail)(const struct sb_handle *h);
	/* Polls readable once it has ended. Borrowed; do not read it. */
	int (*done_fd)(const struct sb_handle *h);
	/*
	 * Waits for its end. SB_E_TIMEOUT and SB_E_CANCELED leave it running. A bad exit is no
	 * error.
	 */
	int (*wait)(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out,
		struct sb_error *err);
	/*
	 * Close stdin, stop_grace_ms, TERM to the group, 250 ms, KILL to the group. When `call`
	 * ends part-way the escalation still goes on to its end and the call's error is returned.
	 * Success when it has ended already.
	 */
	int (*stop)(struct sb_handle *h, const struct sb_call *call, struct sb_error *err);
	/* A signal to its group. Success when it has ended. */
	int (*signal)(struct sb_handle *h, int sig, struct sb_error *err);
	/* The terminal's size; without one, SB_E_STATE. */
	int (*resize)(struct sb_handle *h, unsigned short rows, unsigned short cols,
		struct sb_error *err);
	/* Releases everything; one that still runs is killed at once. */
	void (*free)(struct sb_handle *h);
};

/* Implementations embed it as their first member. */
struct sb_handle {
	const struct sb_handle_ops *ops;
};

struct sb_launcher;

struct sb_launcher_ops {
	unsigned version; /* SB_LAUNCHER_VERSION */
	/*
	 * Starts it. A `call` that is over already fails; one that ends later does not touch what
	 * runs. SB_E_INVAL (no command, bad quoting, bad environment), SB_E_NOTFOUND (no such
	 * program or cwd), SB_E_DENIED.
	 */
	int (*launch)(struct sb_launcher *l, const struct sb_launch_spec *spec,
		const struct sb_call *call, struct sb_handle **out, struct sb_error *err);
	/* Handles that it gave live on and are freed by their owners. */
	void (*free)(struct sb_launcher *l);
};

struct sb_launcher {
	const struct sb_launcher_ops *ops;
};

/*
 * The members by name, for callers. A NULL handle: pid 0, cwd "", fds -1, wait and stop succeed,
 * free does nothing.
 */
SB_API int sb_launcher_launch(struct sb_launcher *l, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err);
SB_API void sb_launcher_free(struct sb_launcher *l);
SB_API int64_t sb_handle_pid(const struct sb_handle *h);
SB_API const char *sb_handle_cwd(const struct sb_handle *h);
SB_API int sb_handle_stdin(const struct sb_handle *h);
SB_API int sb_handle_stdout(const struct sb_handle *h);
SB_API int sb_handle_close_stdin(struct sb_handle *h, struct sb_error *err);
SB_API char *sb_handle_stderr_tail(const struct sb_handle *h);
SB_API int sb_handle_done_fd(const struct sb_handle *h);
SB_API int sb_handle_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err);
SB_API int sb_handle_stop(struct sb_handle *h, const struct sb_call *call, struct sb_error *err);
SB_API int sb_handle_signal(struct sb_handle *h, int sig, struct sb_error *err);
SB_API int sb_handle_resize(struct sb_handle *h, unsigned short rows, unsigned short cols,
	struct sb_error *err);
SB_API void sb_handle_free(struct sb_handle *h);

#endif
