/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SHADOW_H
#define SBSYNC_SHADOW_H

#include <sbsync/sync.h>
#include <sync/scan/rules.h>
#include <sync/wire/proto.h>
#include <sync/remote/remote.h>

/*
 * Stands in for the agent of a machine that runs none. It brings the far tree into a shadow in our
 * state folder, serves the shadow with an agent in a thread of this process, and takes what a sync
 * changed in it to the far tree before anybody records that the two are equal. It throws a shadow
 * away that is ahead of the far tree (a crash in between).
 */
struct sb_shadow;

/* Keeps `remote` and what `o` has of cancel and log until it is freed, or until sb_shadow_renew. */
struct sb_shadow *sb_shadow_new(struct sb_remote *remote, const struct sb_sync_opts *o,
	struct sb_error *err);
void sb_shadow_free(struct sb_shadow *s);
void sb_shadow_renew(struct sb_shadow *s, const struct sb_sync_opts *o);

/*
 * A sync of `b`'s root begins under these rules: brings the shadow up to date; returns its path,
 * valid until the next call. Checks the sandbox's identity, as an agent would on the far side.
 */
const char *sb_shadow_begin(struct sb_shadow *s, const struct sb_begin *b,
	const struct sb_rules *rules, struct sb_error *err);
/* Before and after a commit into the shadow: the second one takes it to the far tree. */
int sb_shadow_before(struct sb_shadow *s, struct sb_error *err);
int sb_shadow_after(struct sb_shadow *s, struct sb_error *err);

#endif
