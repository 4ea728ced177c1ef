/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_EVENTS_H
#define SB_RPC_EVENTS_H

#include <stdint.h>

#include <sb/cancel.h>
#include <sb/host.h>

/*
 * The latest events of a host, for any number of readers that come and go. Publishing never waits
 * for a reader.
 */
struct sb_rpc_events;

#define SB_RPC_EVENT_SUBJECT_MAX 256

struct sb_rpc_event {
	uint64_t seq;
	int64_t time_ns;
	char kind[32];
	char session[SB_HOST_ID_MAX + 1];
	char subject[SB_RPC_EVENT_SUBJECT_MAX];
	enum sb_host_state state;
};

struct sb_rpc_events *sb_rpc_events_new(struct sb_error *err);
void sb_rpc_events_free(struct sb_rpc_events *e);
void sb_rpc_events_publish(struct sb_rpc_events *e, const struct sb_host_event *ev);

struct sb_rpc_reader;
/*
 * A reader from now on, or, with `after` not 0, of everything published after the event of that
 * number: SB_E_CORRUPT when that is not remembered any more. `out_seq` is the number of the last
 * event before its first.
 */
struct sb_rpc_reader *sb_rpc_events_open(struct sb_rpc_events *e, uint64_t after, uint64_t *out_seq,
	struct sb_error *err);
void sb_rpc_events_close(struct sb_rpc_reader *r);
/* Waits for the next one. SB_E_CORRUPT when the reader was too slow and lost some. */
int sb_rpc_events_next(struct sb_rpc_reader *r, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_rpc_event *out, struct sb_error *err);

#endif
