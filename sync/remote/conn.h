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
/* Does it lead where this endpoint is? */
bool sb_conn_serves(const struct sb_conn *c, const struct sb_endpoint *e);
/* The agent that waits, or a new one; connects if need be. */
struct sb_link *sb_conn_take(struct sb_conn *c, const struct sb_sync_opts *o, struct sb_error *err);
/* Back from sb_conn_take: kept for the next one (`reuse`) or ended. */
void sb_conn_give(struct sb_link *l, bool reuse);
/* What syncs over this connection need not load again; NULL where agents are not kept. */
struct sb_recall *sb_conn_recall(struct sb_conn *c);
/* Did a failure with this code come of the connection? */
bool sb_conn_lost(const struct sb_link *l, int code);
/* Bytes on the wire of this link's connection so far. */
void sb_conn_link_bytes(const struct sb_link *l, uint64_t *up, uint64_t *down);

#endif
