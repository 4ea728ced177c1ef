/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_REMOTE_CONN_H
#define SBSYNC_REMOTE_CONN_H

#include <sbsync/conn.h>
#include <sync/wire/endpoint.h>
#include <sync/remote/link.h>
#include <sync/replica/recall.h>

/*
 * What the engine does with a connection beyond the calls of sbsync/conn.h. A run takes a link from
 * it and gives it back; see sync/run/run-link.c.
 */

/* A connection that is not connected yet. `keep`: agents wait for further syncs. */
struct sb_conn *sb_conn_new(const struct sb_endpoint *to, const struct sb_sync_opts *o, bool keep,
	struct sb_error *err);
bool sb_conn_keeps(const struct sb_conn *c);
/* Does it lead to the machine of this endpoint? */
bool sb_conn_serves(const struct sb_conn *c, const struct sb_endpoint *e);
/* A link to the agent that waits, or to a new one; connects if need be. */
struct sb_link *sb_conn_take(struct sb_conn *c, const struct sb_sync_opts *o, struct sb_error *err);
/* Gives a link back: its agent waits for the next sync (`reuse`), or ends. */
void sb_conn_give(struct sb_link *l, bool reuse);
/* Manifests that syncs over this connection need not load again; NULL where agents do not wait. */
struct sb_recall *sb_conn_recall(struct sb_conn *c);
/* Was the connection the cause of a failure with this code? */
bool sb_conn_lost(const struct sb_link *l, int code);
/* Bytes on the wire of this link's connection so far. */
void sb_conn_link_bytes(const struct sb_link *l, uint64_t *up, uint64_t *down);

#endif
