/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MANIFEST_CODEC_PRIV_H
#define SBSYNC_MANIFEST_CODEC_PRIV_H

#include <stdint.h>

/*
 * The compact form of a manifest. Integers are LEB128 varints (signed ones in zigzag form) unless a
 * width is given; widths are little-endian. Values of a kind stand together, so that the whole
 * compresses well.
 *
 *   magic "SBMT" | version u8 | flags u8 (FORM_*)
 *   entries | directories (with the root) | hard-link groups
 *   root: mode, mtime (signed) [stat: inode, ctime - mtime (signed)]
 *   columns, each: length u64 | bytes
 *     COUNTS   per directory: its number of entries
 *     NAMES    per entry: bytes shared with the name before it in the directory |
 *              length of the rest | the rest
 *     KINDS    per entry: u8, type and KIND_* bits
 *     MODES    per entry without KIND_SAME_MODE, unless a symlink: mode
 *     MTIMES   per entry: difference to the entry before (signed)
 *     SIZES    per file: bytes
 *     DIGESTS  per file without KIND_UNHASHED: 16 bytes
 *     TARGETS  per symlink: length | bytes
 *     LINKS    per entry with KIND_LINKED: number of its group, from 0
 *     LEADERS  FORM_SUBTREE only, per group: length | path of its leader in the whole tree
 *     INODES   FORM_STAT only, per entry: difference to the entry before (signed)
 *     CTIMES   FORM_STAT only, per entry: ctime - mtime (signed)
 *     DEVS     FORM_STAT only, per directory: exclusive-or with the directory before
 *   XXH3-64 of all that is before, u64
 *
 * Directories come level by level, the root first; "the entry before" is in this order.
 */
#define SB_MANIFEST_MAGIC "SBMT"
#define SB_MANIFEST_VERSION 1

enum {
	FORM_STAT = 1 << 0,
	FORM_SUBTREE = 1 << 1,
	FORM_ALL = FORM_STAT | FORM_SUBTREE,
};

enum {
	KIND_TYPE = 3,
	KIND_LINKED = 1 << 2,
	KIND_UNHASHED = 1 << 3,
	KIND_RACY = 1 << 4,      /* FORM_STAT only */
	KIND_SAME_MODE = 1 << 5, /* as the entry of the same type before it; never on a symlink */
	KIND_ALL = (1 << 6) - 1,
};

enum sb_manifest_column {
	COL_COUNTS,
	COL_NAMES,
	COL_KINDS,
	COL_MODES,
	COL_MTIMES,
	COL_SIZES,
	COL_DIGESTS,
	COL_TARGETS,
	COL_LINKS,
	COL_LEADERS,
	COL_INODES,
	COL_CTIMES,
	COL_DEVS,
	COLUMNS,
};

#endif
