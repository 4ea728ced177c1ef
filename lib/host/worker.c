/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/worker.h>

#include <string.h>

#include <base/cond.h>
#include <host/host-cold.h>
#include <host/host-destroy.h>
#include <host/host-fork.h>
#include <host/host-map.h>
#include <host/host-priv.h>
#include <host/retention.h>

/* What could not be finished is tried again after this. */
#define RETRY_MS 2000
#define SLOT_WAIT_MS 100
#define KILLED_TOOLS_MS 10000
/* A worker of a session's tools ends when it had nothing to do for this long. */
#define IDLE_MS 15000

int
sb_host_worker_reap(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	const struct sb_host_call wait = { .deadline = sb_deadline_in(SLOT_WAIT_MS) };
	int r = sb_hsess_enter(s, SB_HOST_OP_DESTROY, &wait, err);

	if (r < 0)
		return r == SB_E_SESSION_NOT_FOUND ? 0 : r;
	(void)pthread_mutex_lock(&s->mu);
	sb_hsess_kill_tools(s);
	r = sb_hsess_drain(s, NULL, sb_deadline_in(KILLED_TOOLS_MS), err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0) {
		sb_host_proc_kill_all(h, s, 0);
		r = sb_host_destroy_finish(h, s, err);
	}
	sb_hsess_leave(s);
	if (r == 0) {
		sb_host_fork_forget(h, s);
		atomic_fetch_add(&h->destroyed, 1);
		sb_host_event_note(h->events, "session.destroyed", s->id, NULL, SB_HOST_DESTROYING);
	}
	return r;
}

static int
purge(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	const struct sb_host_call wait = { .deadline = sb_deadline_in(SLOT_WAIT_MS) };
	int r = sb_hsess_enter(s, SB_HOST_OP_SNAPSHOT, &wait, err);

	if (r < 0)
		return r;
	r = sb_host_retention_purge(h, s, err);
	sb_hsess_leave(s);
	return r;
}

/* When the session's time is over, by sb_now_ms; 0: never. The caller holds `mu`. */
static int64_t
over_at(const struct sb_host *h, const struct sb_hsess *s)
{
	int64_t left_ms;

	if (h->o.max_session_ms <= 0 || s->gone || s->state != SB_HOST_ACTIVE)
		return 0;
	left_ms = h->o.max_session_ms - (sb_host_now_ns() - s->active_ns) / 1000000;
	return sb_now_ms() + (left_ms > 0 ? left_ms : 0);
}

static int
expire(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r;

	/* A shutdown pauses all of them by itself. */
	if (sb_host_closing(h))
		return 0;
	r = h->o.expire_destroys ? sb_host_session_destroy(h, s->id, false, NULL, err) :
				   sb_host_pause_expired(h, s, err);
	if (r < 0)
		return r;
	sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: %s after %lld s, its longest", s->id,
		h->o.expire_destroys ? "destroyed" : "paused",
		(long long)(h->o.max_session_ms / 1000));
	sb_host_event_note(h->events, "session.expired", s->id, NULL,
		h->o.expire_destroys ? SB_HOST_DESTROYING : SB_HOST_PAUSED);
	return 0;
}

/*
 * One round over all sessions. True when something is left to do; `*workers` says whether tools
 * have workers, `*next` when the next session's time is over (0: never).
 */
static bool
tidy(struct sb_host *h, bool *workers, int64_t *next)
{
	sb_autofree struct sb_hsess **v = NULL;
	bool left = false;
	size_t n = 0;

	*workers = false;
	*next = 0;
	left = h->st->ops->sweep(h->st, NULL) > 0;
	if (sb_host_map_all(h, &v, &n, NULL) < 0)
		return true;
	for (size_t i = 0; i < n; i++) {
		struct sb_hsess *s = v[i];
		struct sb_error why = { 0 };
		bool doomed, dirty;
		int64_t over, cold;
		int r = 0;

		*workers |= sb_filepool_trim(&s->files, IDLE_MS) > 0;
		(void)pthread_mutex_lock(&s->mu);
		doomed = !s->gone && s->state == SB_HOST_DESTROYING;
		dirty = !s->gone && s->purge;
		over = over_at(h, s);
		cold = sb_host_cold_due(h, s);
		(void)pthread_mutex_unlock(&s->mu);
		if (doomed)
			r = sb_host_worker_reap(h, s, &why);
		else if (over && over <= sb_now_ms())
			r = expire(h, s, &why);
		else if (dirty)
			r = purge(h, s, &why);
		if (r == 0 && !doomed)
			r = sb_host_cold_tidy(h, s, &why);
		if (cold > sb_now_ms() && (!*next || cold < *next))
			*next = cold;
		if (over > sb_now_ms() && (!*next || over < *next))
			*next = over;
		if (r < 0) {
			left = true;
			sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: later: %s", s->id,
				why.msg);
		}
		sb_hsess_unref(s);
	}
	return left;
}

static int
on_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct sb_host *h = arg;
	struct sb_hsess *s;

	(void)err;
	if (e->snap || !(s = sb_host_map_find(h, e->id, NULL)))
		return 0;
	(void)pthread_mutex_lock(&s->mu);
	s->space_used = e->used;
	(void)pthread_mutex_unlock(&s->mu);
	sb_hsess_unref(s);
	return 0;
}

static enum sb_host_health_status
check_up(struct sb_host *h, enum sb_host_health_status before)
{
	struct sb_host_health now;

	if (h->st->ops->snapshots)
		(void)h->st->ops->list(h->st, NULL, on_entry, h, NULL);
	sb_host_health(h, NULL, &now);
	atomic_store(&h->status, now.status);
	if (now.status == before)
		return before;
	sb_log(&h->o.log, now.status == SB_HOST_HEALTHY ? SB_LOG_INFO : SB_LOG_WARN, "host",
		"%s%s%s", sb_host_health_name(now.status), now.n_reasons ? ": " : "",
		now.n_reasons ? now.reasons[0] : "");
	sb_host_event_note(h->events, "health", NULL, sb_host_health_name(now.status),
		SB_HOST_STATES);
	return now.status;
}

/* Sleeps until a poke, the stop, or `until`. True: go on. */
static bool
rest(struct sb_host *h, int64_t until)
{
	bool stop;

	(void)pthread_mutex_lock(&h->mu);
	while (!h->worker_poke && !h->worker_stop && sb_now_ms() < until)
		sb_cond_wait_until(&h->cv, &h->mu, until);
	h->worker_poke = false;
	stop = h->worker_stop;
	(void)pthread_mutex_unlock(&h->mu);
	return !stop;
}

static void *
work(void *arg)
{
	struct sb_host *h = arg;
	enum sb_host_health_status status = SB_HOST_HEALTHY;
	int64_t health_at = 0, until, over;
	bool left = true, workers = false;

	do {
		int64_t next;

		left = tidy(h, &workers, &over);
		if (sb_now_ms() >= health_at) {
			status = check_up(h, status);
			health_at = sb_now_ms() + h->o.health_interval_ms;
		}
		sb_host_event_flush(h->events);
		next = sb_now_ms() + (left ? RETRY_MS : IDLE_MS);
		until = left || (workers && next < health_at) ? next : health_at;
		if (over && over < until)
			until = over;
		/* One that begins while we sleep does not end sooner than this. */
		if (h->o.max_session_ms > 0 && sb_now_ms() + h->o.max_session_ms < until)
			until = sb_now_ms() + h->o.max_session_ms;
	} while (rest(h, until));
	return NULL;
}

void
sb_host_worker_poke(struct sb_host *h)
{
	(void)pthread_mutex_lock(&h->mu);
	h->worker_poke = true;
	(void)pthread_cond_broadcast(&h->cv);
	(void)pthread_mutex_unlock(&h->mu);
}

int
sb_host_worker_start(struct sb_host *h, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&h->mu);
	if (h->worker_on)
		r = sb_fail(err, SB_E_STATE, "the host is started already");
	else if (pthread_create(&h->worker, NULL, work, h) != 0)
		r = sb_fail(err, SB_E_SYS, "start the worker thread");
	else
		h->worker_on = true;
	(void)pthread_mutex_unlock(&h->mu);
	return r;
}

void
sb_host_worker_stop(struct sb_host *h)
{
	bool on;

	(void)pthread_mutex_lock(&h->mu);
	on = h->worker_on;
	h->worker_stop = true;
	(void)pthread_cond_broadcast(&h->cv);
	(void)pthread_mutex_unlock(&h->mu);
	if (on)
		(void)pthread_join(h->worker, NULL);
	(void)pthread_mutex_lock(&h->mu);
	h->worker_on = false;
	(void)pthread_mutex_unlock(&h->mu);
}
