/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TREECOPY_H
#define SB_HOST_TREECOPY_H

#include <stdint.h>
#include <sys/types.h>

#include <sb/host.h>

/*
 * Copies everything in the directory `from` into the empty directory `to`: files (by reflink where
 * the file system can, else by copy with holes kept), directories, symlinks, fifos, hard links
 * among them, modes, owners where allowed, times. It follows no link, enters no other file system,
 * and leaves sockets and devices out.
 */
int sb_treecopy(int from, int to, const struct sb_host_call *call, struct sb_error *err);

/* The bytes of one file into another that is empty, holes kept where it is large. */
int sb_treecopy_data(int in, int out, off_t size, struct sb_error *err);

/* Disk space of everything in `dir`, in bytes (a file with several links counts once a link). */
int sb_treecopy_used(int dir, uint64_t *out, struct sb_error *err);

#endif
