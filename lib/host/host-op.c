/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-op.h>

#include <host/host-map.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>

int
sb_host_call_begin(struct sb_host *h, bool work, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&h->mu);
	if (work && h->closing)
		r = sb_fail(err, SB_E_SHUTTING_DOWN, "%s", sb_code_text(SB_E_SHUTTING_DOWN));
	else
		h->calls++;
	(void)pthread_mutex_unlock(&h->mu);
	return r;
}

void
sb_host_call_end(struct sb_host *h)
{
	sb_host_event_flush(h->events);
	(void)pthread_mutex_lock(&h->mu);
	/* Only a close waits for this; the worker, on the same condition, is better left asleep. */
	if (--h->calls == 0 && h->closing)
		(void)pthread_cond_broadcast(&h->cv);
	(void)pthread_mutex_unlock(&h->mu);
}

int
sb_host_op_start(struct sb_host *h, const char *id, enum sb_host_op op, bool work,
	const struct sb_host_call *call, struct sb_hsess **out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct sb_hsess *s = NULL;
	int r = sb_host_call_begin(h, work, &why);

	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? 0 : why.code;
		/* Turns go on without snapshots. */
		if (r == 0 && op != SB_HOST_OP_TURN && op != SB_HOST_OP_LAUNCH)
			r = sb_host_snapshot_need(h, &why);
		if (r == 0)
			r = sb_hsess_enter(s, op, call, &why);
		if (r < 0) {
			sb_hsess_unref(s);
			sb_host_call_end(h);
		}
	}
	if (r < 0 && err)
		*err = why;
	if (r == 0)
		*out = s;
	return r;
}

int
sb_host_op_done(struct sb_host *h, struct sb_hsess *s, int r)
{
	sb_hsess_leave(s);
	sb_hsess_unref(s);
	sb_host_call_end(h);
	return r;
}

int
sb_host_op_set_state(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to, bool durable,
	struct sb_error *err)
{
	int r;

	if (!sb_host_state_may(s->state, to))
		return sb_fail(err, SB_E_INVALID_STATE, "%s: session %s cannot go from %s to %s",
			sb_code_text(SB_E_INVALID_STATE), s->id, sb_host_state_name(s->state),
			sb_host_state_name(to));
	if (to == SB_HOST_PAUSED && s->state == SB_HOST_PAUSING)
		s->paused_ns = sb_host_now_ns();
	r = sb_hostdb_session_update(h->db, s, to, durable, err);
	if (r < 0)
		return r;
	if (to == SB_HOST_FAILED && s->state != to)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: failed: %s", s->id,
			s->why ? s->why : "for no known reason");
	s->state = to;
	(void)pthread_cond_broadcast(&s->cv);
	sb_host_event_note(h->events, "session.state", s->id, NULL, to);
	return 0;
}
