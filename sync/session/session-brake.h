/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_BRAKE_H
#define SBSYNC_SESSION_BRAKE_H

#include <stdint.h>

#include <sb/error.h>
#include <sync/tree/diff.h>
#include <sync/tree/manifest.h>

/*
 * The brake of a session against a runtime that spoils the workspace, at once or little by little.
 * It counts the user's files and links that syncs from the runtime delete or overwrite; content
 * that the same sync puts elsewhere is not lost. The user's files are those that were there when
 * counting began (at start, or when the user last let a sync pass the brake) and those that the
 * user brought since. Of them, half may be deleted (ten in any case, but never all at once), and
 * half deleted or overwritten (fifty in any case), by all syncs together. What the runtime made
 * itself it may change and remove as often as it likes.
 *
 * The file rootN.mark remembers the user's files: "SBMARK1\n", u64 deleted, u64 overwritten, then
 * 16 bytes for each, sorted: the beginnings of the digests of path and content. rootN.mark-more has
 * those that came since. Losing them means that counting begins anew.
 */
struct sb_session_brake {
	uint64_t files;                        /* here now, of anybody */
	uint64_t deleted, overwritten;         /* of the user's files, by this sync */
	uint64_t marked;                       /* the user's files */
	uint64_t all_deleted, all_overwritten; /* of them, by all syncs with this one */
	uint64_t gone;                         /* files that this sync deletes, of anybody */
	bool lifted;                           /* only the user's --max-delete lets it pass */
};

/*
 * Counts what `d` does to `local`; SB_E_BRAKE with an explanation when it is too much.
 * `max_delete` is the user's word, negative: none.
 */
int sb_session_brake_check(int dirfd, size_t pair, const struct sb_manifest *local,
	const struct sb_diff *d, int64_t max_delete, const char *where,
	struct sb_session_brake *out, struct sb_error *err);

/* The user brought these to the runtime. */
void sb_session_brake_brought(int dirfd, size_t pair, const struct sb_diff *d);

/* The sync was made: remembers the counts. Begins anew when it was lifted, or `b` is NULL. */
void sb_session_brake_made(int dirfd, size_t pair, const struct sb_manifest *local,
	const struct sb_session_brake *b);

#endif
