/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_NOTICE_H
#define SBSYNC_NOTICE_H

#include <stdbool.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sync/scan/rules.h>

/*
 * Notices changes beneath some directories, by inotify. A hint and no more: it may report too
 * often; and where the system has too few watches, or the file system is not a local one, not at
 * all. One thread at a time.
 */
struct sb_notice;

struct sb_notice *sb_notice_new(struct sb_error *err);
void sb_notice_free(struct sb_notice *w);
SB_CLEANUP_PTR(sb_notice, sb_notice_free)

/*
 * Watches `path` and all beneath it but what `rules` (taken over) exclude. A directory that cannot
 * be watched makes it partial, no error.
 */
int sb_notice_add(struct sb_notice *w, const char *path, struct sb_rules *rules,
	struct sb_error *err);

/* It cannot watch everything: scan now and then. */
bool sb_notice_partial(const struct sb_notice *w);

/* Readable when sb_notice_take has something to say. */
int sb_notice_fd(const struct sb_notice *w);

/* Reads what came since the last call: did anything change that is not excluded? */
bool sb_notice_take(struct sb_notice *w);

/* Waits until nothing changed for `quiet_ms`, at most `max_ms`: a burst of changes is one. */
void sb_notice_settle(struct sb_notice *w, int quiet_ms, int max_ms,
	const struct sb_cancel *cancel);

#endif
