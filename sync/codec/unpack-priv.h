/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_UNPACK_PRIV_H
#define SBSYNC_UNPACK_PRIV_H

#include <sync/codec/patch.h>
#include <sync/codec/unpack.h>

/*
 * Between unpack.c (parent) and unpack-child.c. The parent says one struct sb_unpack_msg, the child
 * does it and answers with one; in between it waits. The bytes lie in memory that both share:
 *
 *     in      a block, as it came                                     SB_UNPACK_IN
 *     out     records, each a struct sb_unpack_rec and what belongs to it, in steps of 8 bytes
 *     patch   base, patch and result of sb_unpack_patch, one behind the other
 *
 * Nothing of it is touched before it is used.
 */
#define SB_UNPACK_IN ((size_t)SB_PACK_BLOCK_MAX + (1u << 20))
#define SB_UNPACK_OUT ((size_t)SB_PACK_BLOCK_MAX + (1u << 20))
#define SB_UNPACK_PATCH_MAX ((size_t)SB_PATCH_MAX_SIZE + (1u << 20))
#define SB_UNPACK_PATCH (3 * SB_UNPACK_PATCH_MAX)
#define SB_UNPACK_AREA (SB_UNPACK_IN + SB_UNPACK_OUT + SB_UNPACK_PATCH)
#define SB_UNPACK_PATH_MAX 65535u

enum sb_unpack_what {
	/* from the parent */
	SB_UNPACK_BEGIN = 1, /* a new archive */
	SB_UNPACK_BLOCK,     /* code: codec; a: raw length; b: length in `in` */
	SB_UNPACK_NO_BLOCK,  /* there are no more */
	SB_UNPACK_GO_ON,     /* `out` was read */
	SB_UNPACK_APPLY,     /* a patch; a, b, c: lengths of base, patch and result */
	/* from the child; `a` bytes of records are in `out` */
	SB_UNPACK_HELLO,   /* code: is it confined? Said once, unasked */
	SB_UNPACK_WANT,    /* a block */
	SB_UNPACK_FULL,    /* there is more */
	SB_UNPACK_DONE,    /* the archive is at its end */
	SB_UNPACK_FAILED,  /* code, text */
	SB_UNPACK_APPLIED, /* code, text */
};

struct sb_unpack_msg {
	uint32_t what;
	int32_t code;
	uint64_t a, b, c;
	char text[200];
};

enum sb_unpack_kind {
	SB_UNPACK_ENTRY = 1, /* struct sb_unpack_entry, then its path */
	SB_UNPACK_DATA,      /* bytes of the last entry */
};

struct sb_unpack_rec {
	uint32_t kind;
	uint32_t len; /* of what follows, without the padding */
};

struct sb_unpack_entry {
	uint64_t size, file_size, offset;
	uint8_t base[16];
	uint32_t kind;
	uint32_t path_len;
};

/* What the child does, for ever; descriptor 0 leads to the parent. */
void sb_unpack_child(bool confined, void *area);

/* unpack.c, behind a struct sb_pack_reader. */
int sb_unpack_begin(struct sb_unpack *u, sb_pack_in_fn in, void *arg, struct sb_error *err);
int sb_unpack_next(struct sb_unpack *u, struct sb_pack_entry *out, struct sb_error *err);
ssize_t sb_unpack_read(struct sb_unpack *u, const void **out, struct sb_error *err);
void sb_unpack_leave(struct sb_unpack *u);

#endif
