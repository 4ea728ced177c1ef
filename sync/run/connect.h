/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONNECT_H
#define SBSYNC_CONNECT_H

#include <sbsync/sync.h>
#include <sync/wire/endpoint.h>
#include <sync/remote/link.h>
#include <sync/run/retry.h>

/*
 * A link to an agent for this endpoint (a child process for a local one), for one sync: over
 * o->conn with the agent that waits there, or over a connection of its own. NULL with `err` on
 * failure. Goes back by sb_connect_end.
 */
struct sb_link *sb_connect_begin(const struct sb_endpoint *e, const struct sb_sync_opts *o,
	struct sb_retry *t, struct sb_error *err);

/*
 * The sync over `l` (NULL: sb_connect_begin failed) ended with `code`: the agent is dismissed, or
 * kept for the next one when all went well and the connection stays. Adds the bytes on the wire to
 * `res`. Returns `code`, its message told better, or why the end failed.
 */
int sb_connect_end(struct sb_link *l, int code, struct sb_sync_result *res, struct sb_retry *t,
	struct sb_error *err);

#endif
