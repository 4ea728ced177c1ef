/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_EXCHANGE_H
#define SBSYNC_EXCHANGE_H

#include <base/cleanup.h>
#include <sync/plan/plan.h>
#include <sync/remote/link.h>
#include <sync/scan/rules.h>
#include <sync/scan/scan.h>
#include <sync/wire/proto.h>

/* What the agent said about a root. */
struct sb_exchange {
	uint64_t max_entries; /* set by the caller: how many it may list; 0: decided by the tree
				 that is here and by the memory there is */
	uint64_t most, here;  /* what was decided, and the entries known here */
	struct sb_scan_reply reply;
	struct sb_manifest *manifest; /* its tree as we know it now */
	struct sb_have *have;         /* sorted by digest */
	size_t n_have;
	struct sb_skipped *skipped;
	size_t n_skipped;
};
void sb_exchange_free(struct sb_exchange *r);
SB_CLEANUP_VALUE(sb_exchange, sb_exchange_free)

/*
 * Sends BEGIN and RULES and flushes them; does not wait for the answer. Starts the agent if the
 * link has none yet.
 */
int sb_exchange_begin(struct sb_link *l, const struct sb_begin *b, const struct sb_rules *rules,
	struct sb_error *err);

/*
 * Reads the answer. `known` is the manifest named by begin.base (may be NULL; taken over when it is
 * used), `like` a local tree that is probably similar (may be NULL or unfinished): what is equal in
 * it need not be fetched.
 */
int sb_exchange_wait(struct sb_link *l, struct sb_manifest **known, const struct sb_manifest *like,
	struct sb_exchange *out, struct sb_error *err);

#endif
