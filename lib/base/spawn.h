/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_SPAWN_H
#define SB_BASE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/child.h>
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
	bool take_terminal;     /* with own_group: into the foreground of our terminal, if any */
	bool search_path;       /* look argv[0] up in our PATH (absolute entries only) */
	uint64_t max_memory;    /* RLIMIT_AS in bytes, 0: unchanged */
	unsigned max_cpu_s;     /* RLIMIT_CPU, 0: unchanged */
	bool die_with_parent;   /* SIGKILL when the thread that started it ends */
	bool leads; /* the program leads to another: it started when the report below is closed */
	/*
	 * Where the kernel can, the program begins in the control group (version 2) that this is a
	 * descriptor of; NULL: in ours. Else it has to go there itself.
	 */
	const int *cgroup;
	/*
	 * The socket of a forker (base/forker.h) that starts it, or NULL. One that is gone is as
	 * good as none. Needs new_session and the directory /, and takes no limits.
	 */
	const int *forker;
};
#define SB_SPAWN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_spawn_opts), .fds = { -1, -1, -1 }, .own_group = true \
	}

/*
 * A program started with `leads` gets a pipe as descriptor SB_SPAWN_REPORT_FD. It closes it (by
 * exec, say) once the program it leads to runs, or writes this struct with an errno first. sb_spawn
 * waits until then.
 */
#define SB_SPAWN_REPORT_FD 3
struct sb_spawn_report {
	int step; /* SB_SPAWN_REPORT_EXEC */
	int sys;
};
#define SB_SPAWN_REPORT_EXEC 100

/*
 * Starts argv (no shell). No descriptor but 0-2 reaches the child; signal dispositions and mask are
 * the defaults. An exec failure is reported here (SB_E_NOTFOUND, SB_E_DENIED, ...), not as exit
 * 127. Writing to `in` after the child closed it raises SIGPIPE unless done by sb_file_write_nosig.
 */
int sb_spawn(const char *const *argv, const struct sb_spawn_opts *opts, struct sb_child *out,
	struct sb_error *err);

#endif
