/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_FORKER_H
#define SB_BASE_FORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sb/error.h>

/*
 * A process that starts programs for us where it is: in its control groups. They are our children,
 * because it is and makes them so. It reads orders from a stream socket: a struct sb_forker_order
 * with four descriptors (0 to 2 of the program, and the report of base/spawn.h), then `bytes` of
 * texts, each ended by NUL: `argc` arguments, of which the first is the file to execute, then
 * `envc` entries of the environment. It answers each with the pid, or a negative errno, in four
 * bytes. It ends when the socket does.
 */
#define SB_FORKER_FDS 4
#define SB_FORKER_BYTES_MAX (8u << 20)
#define SB_FORKER_ARGS_MAX 65536u

struct sb_forker_order {
	uint32_t bytes, argc, envc;
	uint32_t host;        /* our pid */
	uint32_t leads, tied; /* as `leads` and `die_with_parent` of struct sb_spawn_opts */
};

/*
 * Has the program started, in a process session of its own; its directory is that of the forker, /.
 * The pid, or an error; SB_E_CLOSED: the forker was gone before and nothing was started;
 * SB_E_CHILD: it went away in between, and nobody knows.
 */
pid_t sb_forker_start(int control, const char *const *argv, const char *const *env,
	const int fds[SB_FORKER_FDS], bool leads, bool tied, struct sb_error *err);

#endif
