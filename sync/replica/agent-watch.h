/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_AGENT_WATCH_H
#define SBSYNC_AGENT_WATCH_H

#include <base/buf.h>
#include <sync/wire/wire.h>

/*
 * The agent's watch: between WATCH and UNWATCH a thread tells the controller, once, that something
 * changed.
 */
struct sb_agent_watch;

/*
 * Begins. `list` is WATCH's payload. Between UNWATCH and a WATCH with the same list the roots stay
 * watched, so that no change is missed.
 */
int sb_agent_watch_start(struct sb_agent_watch **w, struct sb_wire *wire, const struct sb_buf *list,
	struct sb_error *err);
/* Ends it and answers WATCHED. */
int sb_agent_watch_stop(struct sb_agent_watch *w, struct sb_wire *wire, struct sb_error *err);
void sb_agent_watch_free(struct sb_agent_watch *w);

/*
 * WATCH's payload: varint count; per root a path as in BEGIN and its encoded rules. At most
 * SB_WATCH_ROOTS.
 */
#define SB_WATCH_ROOTS 64
#define SB_WATCH_LIST_MAX (64u << 20)

#endif
