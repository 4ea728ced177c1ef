/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_LINK_H
#define SBSYNC_LINK_H

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/log.h>
#include <sync/wire/proto.h>
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
	/* Puts a shadow in place of an agent that cannot run there. Set with opts->start. */
	int (*fall_back)(struct sb_link *l, struct sb_error *err);
	const struct sb_sync_opts *o; /* while the agent is not started */
	struct sb_shadow *shadow;     /* no agent runs there: see shadow.h; NULL: one does */
	bool lost;                    /* the connection broke; sb_link_explain sets it */
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

/* Reads the agent's WELCOME, once a connection; SB_E_VERSION when the two have no version in
 * common. */
int sb_link_welcome(struct sb_link *l, struct sb_error *err);

/* Explains a failure of the link: adds what the far side wrote to stderr and how it ended. */
int sb_link_explain(struct sb_link *l, int code, struct sb_error *err);

/*
 * Call these around COMMIT: the agent of a shadow commits into the shadow, and the second call
 * takes that to the far tree.
 */
int sb_link_before_commit(struct sb_link *l, struct sb_error *err);
int sb_link_after_commit(struct sb_link *l, struct sb_error *err);

#endif
