/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_UNPACK_H
#define SBSYNC_UNPACK_H

#include <sync/codec/pack.h>

/*
 * Unpacks what a sandbox sent in a confined child (confined.h): zstd, libarchive and patches see
 * the peer's bytes there, where they can open, start and reach nothing. The child gets blocks
 * through memory that both share and answers with entries and their bytes; this side believes it no
 * more than the peer: it checks every length, name and number once more, and copies before it
 * looks.
 *
 * One thread at a time. The child is started by the first call that needs one.
 */
struct sb_unpack;

struct sb_unpack *sb_unpack_new(struct sb_error *err);
void sb_unpack_free(struct sb_unpack *u);
SB_CLEANUP_PTR(sb_unpack, sb_unpack_free)

/*
 * A pack reader (pack.h) whose work the child does. One at a time; it is freed before `u`. Freed
 * before the end of its archive it takes the child with it.
 */
struct sb_pack_reader *sb_pack_reader_confined(struct sb_unpack *u, sb_pack_in_fn in, void *arg,
	struct sb_error *err);

/* sb_patch_apply by the child; also while a reader is under way. */
int sb_unpack_patch(struct sb_unpack *u, const void *base, size_t base_len, const void *patch,
	size_t patch_len, void *out, size_t new_len, struct sb_error *err);

/*
 * Does the kernel hold the child? Known once it has answered. A process of its own it is in any
 * case.
 */
bool sb_unpack_is_confined(const struct sb_unpack *u);
/* Its number, 0 while there is none: for tests. */
int sb_unpack_pid(const struct sb_unpack *u);

#endif
