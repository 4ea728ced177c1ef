/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOXFILTER_H
#define SB_HOST_BOXFILTER_H

#include <stddef.h>

struct sock_filter;

/*
 * The system calls that no program in a sandbox of plain namespaces needs and that reach far into
 * the kernel: mounts, new namespaces, modules, bpf, io_uring, keys, foreign memory, raw handles.
 * They answer EPERM (clone3, io_uring: ENOSYS, which makes libraries fall back); calls of another
 * architecture answer ENOSYS.
 */
const struct sock_filter *sb_boxfilter_program(size_t *n);

/* For the calling thread and what it starts; needs no_new_privs. 0 or -1 and errno. */
int sb_boxfilter_install(void);

#endif
