/* SPDX-License-Identifier: MIT */
/* Pauses and resumes sessions, and pauses all of them when the host shuts down. */
#include "config.h"

#include <string.h>

#include <host/host-destroy.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host.h>

#define EXPIRED_SLOT_MS 1000

/*
 * Back to `to` after a pause or resume that did not come through; a destroy meanwhile stands. `mu`
 * held.
 */
static void
fall_back(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to)
{
	struct sb_error why = { 0 };

	if (s->state != SB_HOST_DESTROYING && sb_host_op_set_state(h, s, to, false, &why) < 0)
		sb_log(&h->o.log, SB_LOG_ERROR, "host", "session %s: %s", s->id, why.msg);
}

/* 0 while the state is still `want`; a destroy may have come. `mu` held. */
static int
still(const struct sb_hsess *s, enum sb_host_state want, struct sb_error *err)
{
	if (s->state == want)
		return 0;
	return sb_fail(err, SB_E_SESSION_DESTROYING, "%s: %s",
		sb_code_text(SB_E_SESSION_DESTROYING), s->id);
}

/*
 * The second half of a pause (PAUSING to PAUSED) or of a resume (RESUMING to ACTIVE): freezes or
 * thaws the processes, then records the new state, or falls back to the old one.
 */
static int
freeze(struct sb_host *h, struct sb_hsess *s, bool pause, bool by_shutdown, struct sb_error *err)
{
	int r = sb_host_proc_freeze(h, s, pause, err);

	(void)pthread_mutex_lock(&s->mu);
	if (r == 0)
		r = still(s, pause ? SB_HOST_PAUSING : SB_HOST_RESUMING, err);
	if (r == 0) {
		s->resume = by_shutdown;
		if (!pause)
			s->active_ns = sb_host_now_ns();
		r = sb_host_op_set_state(h, s, pause ? SB_HOST_PAUSED : SB_HOST_ACTIVE, true, err);
	}
	if (r < 0)
		fall_back(h, s, pause ? SB_HOST_ACTIVE : SB_HOST_PAUSED);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/*
 * With the slot held. SHUTDOWN marks it to be resumed by the next start; HALT leaves nothing that
 * could go on.
 */
enum pause { PAUSE, SHUTDOWN, HALT };

static int
pause_now(struct sb_host *h, struct sb_hsess *s, enum pause how, sb_deadline drain,
	const struct sb_host_call *call, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = sb_host_op_set_state(h, s, SB_HOST_PAUSING, false, err);
	if (r == 0) {
		if (how == HALT)
			sb_hsess_kill_tools(s);
		else
			sb_hsess_kill_looks(s);
		r = sb_hsess_drain(s, call, drain, err);
		if (r == 0)
			r = still(s, SB_HOST_PAUSING, err);
		if (r < 0)
			fall_back(h, s, SB_HOST_ACTIVE);
	}
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0)
		return r;
	sb_filepool_end(&s->files);
	if (how == HALT)
		(void)sb_host_proc_clear(h, s);
	r = freeze(h, s, true, how == SHUTDOWN, err);
	if (r < 0)
		(void)sb_host_proc_freeze(h, s, false, NULL);
	return r;
}

static int
resume_now(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = sb_host_op_set_state(h, s, SB_HOST_RESUMING, false, err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0)
		return r;
	return freeze(h, s, false, false, err);
}

static int
with_slot(struct sb_host *h, const char *id, enum sb_host_op op, enum pause how,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r = sb_host_call_begin(h, true, &why);

	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? sb_hsess_enter(s, op, call, &why) : why.code;
		if (r == 0) {
			if (op == SB_HOST_OP_PAUSE)
				r = pause_now(h, s, how, sb_deadline_in(h->o.drain_timeout_ms),
					call, &why);
			else
				r = resume_now(h, s, &why);
			sb_hsess_leave(s);
			if (r == 0)
				atomic_fetch_add(op == SB_HOST_OP_PAUSE ? &h->paused : &h->resumed,
					1);
		}
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_host_session_pause(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	return with_slot(h, id, SB_HOST_OP_PAUSE, PAUSE, call, err);
}

int
sb_host_session_halt(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	return with_slot(h, id, SB_HOST_OP_PAUSE, HALT, call, err);
}

int
sb_host_session_resume(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	return with_slot(h, id, SB_HOST_OP_RESUME, PAUSE, call, err);
}

/*
 * One session of a shutdown. After the deadline its tools are killed rather than left to write on.
 */
static int
park(struct sb_host *h, struct sb_hsess *s, sb_deadline d, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct sb_host_call wait = { .cancel = call ? call->cancel : NULL,
		.deadline = call ? sb_deadline_min(d, call->deadline) : d };
	int r = sb_hsess_enter(s, SB_HOST_OP_PAUSE, &wait, err);

	if (r < 0)
		return r == SB_E_TIMEOUT || r == SB_E_CANCELED ? r : 0;
	r = pause_now(h, s, SHUTDOWN, d, call, err);
	if (r == SB_E_TOOLS_IN_FLIGHT) {
		(void)pthread_mutex_lock(&s->mu);
		sb_hsess_kill_tools(s);
		(void)pthread_mutex_unlock(&s->mu);
		r = pause_now(h, s, SHUTDOWN, sb_deadline_in(h->o.drain_timeout_ms), call, err);
	}
	sb_hsess_leave(s);
	return r == SB_E_SESSION_DESTROYING ? 0 : r;
}

int
sb_host_pause_expired(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	const struct sb_host_call wait = { .deadline = sb_deadline_in(EXPIRED_SLOT_MS) };
	int r = sb_hsess_enter(s, SB_HOST_OP_PAUSE, &wait, err);

	if (r < 0)
		return r;
	/* Its time is over: tools are not waited for. */
	(void)pthread_mutex_lock(&s->mu);
	sb_hsess_kill_tools(s);
	(void)pthread_mutex_unlock(&s->mu);
	r = pause_now(h, s, PAUSE, sb_deadline_in(h->o.drain_timeout_ms), NULL, err);
	sb_hsess_leave(s);
	if (r == 0)
		atomic_fetch_add(&h->paused, 1);
	return r;
}

void
sb_host_shutdown_begin(struct sb_host *h)
{
	sb_autofree struct sb_hsess **all = NULL;
	size_t n = 0;

	(void)pthread_mutex_lock(&h->mu);
	h->closing = true;
	(void)pthread_mutex_unlock(&h->mu);
	/* Whoever is not in the list of its session yet sees `closing` at the gate. */
	(void)sb_host_map_all(h, &all, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		(void)pthread_mutex_lock(&all[i]->mu);
		sb_hsess_kill_looks(all[i]);
		(void)pthread_mutex_unlock(&all[i]->mu);
		sb_hsess_unref(all[i]);
	}
}

int
sb_host_shutdown(struct sb_host *h, const struct sb_host_call *call, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(h->o.shutdown_timeout_ms);
	sb_autofree struct sb_hsess **all = NULL;
	struct sb_error why = { 0 };
	size_t n = 0;
	int first = 0;
	int r;

	sb_host_shutdown_begin(h);
	(void)sb_host_call_begin(h, false, NULL);
	r = sb_host_map_all(h, &all, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		int one = park(h, all[i], d, call, &why);

		if (one < 0) {
			sb_log(&h->o.log, SB_LOG_WARN, "host", "shutdown: session %s: %s",
				all[i]->id, why.msg);
			if (first == 0) {
				first = one;
				if (err)
					*err = why;
			}
		}
		sb_hsess_unref(all[i]);
	}
	sb_host_call_end(h);
	return r < 0 ? r : first;
}
