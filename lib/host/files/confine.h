/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_CONFINE_H
#define SB_HOST_CONFINE_H

#include <sb/error.h>

/*
 * How sb-files gives up what it does not need, before it looks at anything that a tenant wrote:
 *
 * - limits: address space, descriptors, size of a file it writes, no core;
 * - Landlock: files and directories beneath one directory can be read, written, made and removed;
 *   no other file of the machine can be opened, no program executed, no port bound or connected;
 * - capabilities: only those that let root read and write files whatever their mode, and those
 *   only where Landlock holds it in that directory;
 * - seccomp: the calls that reading and writing files take, and no others: no exec, no sockets, no
 *   signals, no memory that can be executed.
 */
enum {
	SB_CONFINE_LANDLOCK = 1,
	SB_CONFINE_SECCOMP = 2,
};
#define SB_CONFINE_MEMORY (512ull << 20)

/*
 * For the calling thread and those it starts, for ever. Returns which of the two hold; without a
 * kernel that has them the rest is done all the same. SB_E_SYS where giving up failed.
 */
int sb_confine(int dir, struct sb_error *err);

#endif
