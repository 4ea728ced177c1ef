/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_LINK_H
#define SBSYNC_LINK_H

#include <base/cleanup.h>
#include <base/str.h>
#include <sb/cancel.h>
#include <sb/log.h>
#include <sync/scan/ignore.h>
#include <sync/plan/plan.h>
#include <sync/wire/proto.h>
#include <sync/scan/scan.h>
#include <sync/wire/wire.h>

/*
 * The controller's end of a connection to an agent. One link serves any number of roots, one after
 * the other. Owns its transport.
 */
struct sb_link {
	struct sb_transport *t;
	struct sb_wire *w;
	bool greeted; /* WELCOME has been read */
	struct sb_hello peer;
	/* Set and used by conn.c. */
	struct sb_conn *conn;
	struct sb_conn_live *live;
	/* The agent cannot run there: puts a shadow in its place. Set with opts->start. */
	int (*fall_back)(struct sb_link *l, struct sb_error *err);
	const struct sb_sync_opts *o; /* while the agent is not started */
	struct sb_shadow *shadow; /* no agent runs there: see agentless-shadow.h; NULL: one does */
	bool lost;                /* the connection broke, found out by sb_link_explain */
	uint64_t up, down, turns; /* bytes on the wire and answers waited for before this sync */
};

/*
 * Takes over `t` (also on failure); queues the greeting. Without a transport (NULL) opts->start
 * makes it when the first sync begins, with opts->start_arg replaced by the link; it sets l->t.
 */
struct sb_link *sb_link_new(struct sb_transport *t, const struct sb_wire_opts *opts,
	struct sb_error *err);
/* A new wire over l->t (or none yet), with the greeting queued. */
int sb_link_greet(struct sb_link *l, const struct sb_wire_opts *opts, struct sb_error *err);
/* Says goodbye, checks the last proof, waits a moment for the far side to end. */
int sb_link_close(struct sb_link *l, struct sb_error *err);
void sb_link_free(struct sb_link *l);
SB_CLEANUP_PTR(sb_link, sb_link_free)

/* A failure of the link told better: adds what the far side wrote to stderr and how it ended. */
int sb_link_explain(struct sb_link *l, int code, struct sb_error *err);

/* What the agent said about a root. */
struct sb_peer {
	struct sb_scan_reply reply;
	struct sb_manifest *manifest; /* its tree as we know it now */
	struct sb_have *have;         /* sorted by digest */
	size_t n_have;
	struct sb_skipped *skipped;
	size_t n_skipped;
};
void sb_peer_free(struct sb_peer *r);
SB_CLEANUP_VALUE(sb_peer, sb_peer_free)

/* Around COMMIT, when the agent's tree is not the far one yet. */
int sb_link_before_commit(struct sb_link *l, struct sb_error *err);
int sb_link_after_commit(struct sb_link *l, struct sb_error *err);

/* Sends BEGIN and RULES, flushed; waits for nothing. */
int sb_peer_begin(struct sb_link *l, const struct sb_begin *b, const struct sb_rules *rules,
	struct sb_error *err);

/*
 * Reads the answer. `known` is the manifest named by begin.base (may be NULL; taken over when it is
 * used), `like` a local tree that is probably similar (may be NULL or unfinished): what is equal in
 * it need not be fetched.
 */
int sb_peer_wait(struct sb_link *l, struct sb_manifest **known, const struct sb_manifest *like,
	struct sb_peer *out, struct sb_error *err);

#endif
