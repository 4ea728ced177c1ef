/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MIRROR_INT_H
#define SBSYNC_MIRROR_INT_H

#include <sbsync/sync.h>
#include <sync/link.h>
#include <sync/plan.h>
#include <sync/replica.h>
#include <sync/result.h>

/* One mirror run. mirror.c sets it up, mirror-push.c and mirror-pull.c do the two directions. */
struct mirror {
	const struct sb_sync_opts *o;
	struct sb_sync_result *res;
	struct sb_link *link;
	struct sb_replica *local;
	struct sb_rules *rules; /* final ones, after the local scan */
	struct sb_digest rules_digest;
	bool no_delta;
	struct sb_peer remote;
	struct sb_plan plan;
	const char *src_name; /* for messages */
	const char *dst_name;
	int64_t phase_start;
	enum sb_phase phase;
	struct sb_progress progress;
};

void mirror_phase(struct mirror *m, enum sb_phase p);
int mirror_push(struct mirror *m, struct sb_error *err);
int mirror_pull(struct mirror *m, struct sb_error *err);

/* Drops deletions of paths that the source could not read: not seen is not gone. */
void mirror_keep_unseen(struct sb_diff *d, const struct sb_skipped *v, size_t n);
/* A send failed: the far side's own word, if it sent one, explains it better. */
int mirror_send_failed(struct mirror *m, int code, struct sb_error *err);

#endif
