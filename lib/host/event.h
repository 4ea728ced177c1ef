/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_EVENT_H
#define SB_HOST_EVENT_H

#include <sb/host.h>

/* Events on their way to the host's `on_event`, in order. */
struct sb_host_event_queue;

struct sb_host_event_queue *sb_host_event_new(sb_host_event_fn fn, void *arg, struct sb_error *err);
void sb_host_event_free(struct sb_host_event_queue *q);
/* Adds an event; the caller may hold any lock. Beyond a limit the oldest waiting event is lost. */
void sb_host_event_note(struct sb_host_event_queue *q, const char *kind, const char *session,
	const char *subject, enum sb_host_state state);
/* Calls the receiver for all that wait; the caller holds no lock. */
void sb_host_event_flush(struct sb_host_event_queue *q);

#endif
