/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONNECT_H
#define SBSYNC_CONNECT_H

#include <sbsync/sync.h>
#include <sync/wire/endpoint.h>
#include <sync/remote/link.h>

/*
 * A sync that goes on after its connection was lost: each attempt begins with sb_connect and ends
 * with sb_connect_end, both given the same one of these, zero at first.
 */
struct sb_retry {
	bool connected; /* a link was there once, so the name, the keys and the log-in are right */
	bool lost;      /* the last failure was one of the connection */
	bool was_lost;  /* ... or an earlier one: an old agent may still hold its lock */
	bool moved;     /* the attempt found more there than any before it */
	uint64_t best;  /* the most that was there when an attempt began */
	int failures;   /* in a row, without having got further */
};

/*
 * A link to an agent for this endpoint (a child process for a local one), for one sync: over
 * o->conn with the agent that waits there, or over a connection of its own. NULL with `err` on
 * failure. Goes back by sb_connect_end.
 */
struct sb_link *sb_connect(const struct sb_endpoint *e, const struct sb_sync_opts *o,
	struct sb_retry *t, struct sb_error *err);

/*
 * The sync over `l` (NULL: sb_connect failed) ended with `code`: the agent is dismissed, or kept
 * for the next one when all went well and the connection stays. Adds the bytes on the wire to
 * `res`. Returns `code`, its message told better, or why the end failed.
 */
int sb_connect_end(struct sb_link *l, int code, struct sb_sync_result *res, struct sb_retry *t,
	struct sb_error *err);

/* So much has arrived by earlier attempts; only its growing matters. */
void sb_retry_progress(struct sb_retry *t, uint64_t there);
/*
 * The attempt failed with `code`: true, after a pause, when another one makes sense. `res` is made
 * ready for it. After so many in vain that it does not, `err` says what to do.
 */
bool sb_retry_again(struct sb_retry *t, int code, const struct sb_sync_opts *o,
	struct sb_error *err, struct sb_sync_result *res);

#endif
