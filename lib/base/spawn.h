/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_SPAWN_H
#define SB_BASE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sb/error.h>

/* What a standard descriptor of the child is. */
enum sb_spawn_io {
	SB_SPAWN_NULL,    /* /dev/null */
	SB_SPAWN_PIPE,    /* a pipe; our end is in struct sb_child, close-on-exec */
	SB_SPAWN_INHERIT, /* ours */
	SB_SPAWN_FD,      /* the descriptor in `fds`, which stays the caller's */
};

struct sb_spawn_opts {
	size_t size; /* sizeof this struct */
	enum sb_spawn_io io[3];
	int fds[3];
	const char *const *env; /* NULL: our environment; else exactly this list, NULL-terminated */
	const char *cwd;        /* NULL: ours */
	bool own_group;         /* a process group of its own (kill reaches the whole group) */
	bool new_session;       /* setsid */
	bool controlling_tty;   /* descriptor 0, a terminal, becomes the new session's own */
	bool search_path;       /* look argv[0] up in our PATH (absolute entries only) */
	uint64_t max_memory;    /* RLIMIT_AS in bytes, 0: unchanged */
	unsigned max_cpu_s;     /* RLIMIT_CPU, 0: unchanged */
	bool die_with_parent;   /* SIGKILL when the thread that started it ends */
	bool leads; /* the program leads to another: it started when the report below is closed */
};
#define SB_SPAWN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_spawn_opts), .fds = { -1, -1, -1 }, .own_group = true \
	}

/*
 * What a program started with `leads` gets as descriptor SB_SPAWN_REPORT_FD: it closes it (by exec,
 * say) once what it leads to runs, or writes an errno first. Until then sb_spawn waits.
 */
#define SB_SPAWN_REPORT_FD 3
struct sb_spawn_report {
	int step; /* SB_SPAWN_REPORT_EXEC */
	int sys;
};
#define SB_SPAWN_REPORT_EXEC 100

/*
 * A running or ended child. `in` is what it reads (we write), `out` and `errfd` what it writes; -1
 * when not a pipe. Whatever happened to it, sb_child_stop releases what is left.
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

/*
 * Starts argv (no shell). No descriptor but 0-2 reaches the child; signal dispositions and mask are
 * the defaults. An exec failure is reported here (SB_E_NOTFOUND, SB_E_DENIED, ...), not as exit
 * 127. Writing to `in` after the child closed it raises SIGPIPE unless done by sb_file_write_nosig.
 */
int sb_spawn(const char *const *argv, const struct sb_spawn_opts *opts, struct sb_child *out,
	struct sb_error *err);

/* True once it has ended; it is not reaped by this. */
bool sb_child_ended(const struct sb_child *c);

/* Waits; SB_E_TIMEOUT or SB_E_CANCELED leave it running. After success `status` is set. */
int sb_child_wait(struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
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
int sb_run(const char *const *argv, const struct sb_spawn_opts *opts, const void *in, size_t in_len,
	struct sb_buf *out, struct sb_buf *err_out, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err);

#endif
