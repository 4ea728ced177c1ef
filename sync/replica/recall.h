/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECALL_H
#define SBSYNC_RECALL_H

#include <sync/tree/manifest.h>

/*
 * Keeps loaded manifests for the next sync over the same connection: decoding the three files of a
 * side takes a tenth of a turn with nothing to do. The file counts: when another one has taken its
 * place, recall loads that. Small: a few manifests, none of more than SB_RECALL_ENTRIES_MAX
 * entries. Any thread. NULL instead of one recalls nothing.
 */
struct sb_recall;
#define SB_RECALL_ENTRIES_MAX 250000u

struct sb_recall *sb_recall_new(void);
void sb_recall_free(struct sb_recall *c);
SB_CLEANUP_PTR(sb_recall, sb_recall_free)

/* Which file a manifest was loaded from: state files are replaced, never written to in place. */
struct sb_recall_tag {
	uint64_t dev, ino;
	int64_t size, mtime, ctime; /* ns */
	bool set;
};

/* As sb_manifest_load; the result is the caller's. `tag` tells how to give it back. */
struct sb_manifest *sb_recall_load(struct sb_recall *c, int dirfd, const char *name,
	struct sb_recall_tag *tag, struct sb_error *err);
/*
 * Takes `m` over, which the caller has not changed since it was loaded. Frees it when the tag is
 * not set; `m` may be NULL. Clears the tag.
 */
void sb_recall_give(struct sb_recall *c, struct sb_recall_tag *tag, struct sb_manifest *m);

#endif
