/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOXFILTER_H
#define SB_HOST_BOXFILTER_H

#include <stddef.h>

struct sock_filter;

/*
 * A seccomp filter for boxes of plain namespaces. It refuses the system calls that reach far into
 * the kernel and that no program in there needs: mounts, new namespaces, modules, bpf, io_uring,
 * keys, foreign memory, raw handles. They answer EPERM (clone3, io_uring: ENOSYS, which makes
 * libraries fall back); calls of another architecture answer ENOSYS.
 */
const struct sock_filter *sb_boxfilter_program(size_t *n);

/*
 * Installs it for the calling thread and what that starts; the thread has set no_new_privs. Returns
 * 0, or -1 and errno.
 */
int sb_boxfilter_install(void);

#endif
