/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PACK_PRIV_H
#define SBSYNC_PACK_PRIV_H

/* The extended attributes of a stream's entries; drawn in pack-write.c. */
#define SB_PACK_ATTR_PREFIX "user.sbsync."
#define SB_PACK_ATTR_KIND "user.sbsync.kind"
#define SB_PACK_ATTR_SIZE "user.sbsync.size"
#define SB_PACK_ATTR_BASE "user.sbsync.base"
#define SB_PACK_ATTR_OFFSET "user.sbsync.offset"

/* By enum sb_pack_kind. A whole file carries no attributes. */
#define SB_PACK_ATTR_KINDS 5
static const char *const sb_pack_attr_kinds[SB_PACK_ATTR_KINDS] = { "whole", "patch", "delta",
	"range", "sparse" };

#endif
