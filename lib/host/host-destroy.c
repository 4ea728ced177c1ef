/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-destroy.h>

#include <string.h>

#include <host/host-cold.h>
#include <host/host-fork.h>
#include <host/host-map.h>
#include <host/host-network.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/worker.h>

/* How long killed tools may take to be gone, and processes to end on TERM. */
#define KILLED_TOOLS_MS 10000
#define PROCESS_GRACE_MS 2000

/* Holds would keep the storage from removing the snapshots. Only slot holders change the list. */
static int
release_holds(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	for (size_t i = 0; i < s->n_snaps; i++) {
		struct sb_snap *snap = s->snaps[i];

		while (snap->n_holds > 0) {
			struct sb_hold *hold = &snap->holds[snap->n_holds - 1];
			int r = h->st->ops->release(h->st, s->id, snap->name, hold->tag, err);

			if (r < 0 && r != SB_E_HOLD_NOT_FOUND && r != SB_E_SNAPSHOT_NOT_FOUND &&
				r != SB_E_NOTFOUND)
				return r;
			(void)pthread_mutex_lock(&s->mu);
			sb_snap_hold_drop(snap, hold);
			(void)pthread_mutex_unlock(&s->mu);
		}
	}
	return 0;
}

int
sb_host_destroy_finish(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r = 0;

	if (h->st->ops->snapshots)
		r = release_holds(h, s, err);
	if (r == 0)
		r = h->st->ops->destroy(h->st, s->id, err);
	if (r == 0)
		r = sb_host_cold_forget(h, s, err);
	if (r == 0)
		r = sb_hostdb_session_delete(h->db, s->uid, err);
	if (r < 0)
		return sb_wrap(err, r, "destroy session %s", s->id);
	sb_host_proc_forget(h, s);
	sb_host_network_forget(s);
	(void)pthread_mutex_lock(&h->mu);
	(void)pthread_mutex_lock(&s->mu);
	s->gone = true;
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
	sb_host_map_remove(h, s);
	(void)pthread_mutex_unlock(&h->mu);
	sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: destroyed", s->id);
	return 0;
}

/* Records the will to destroy; from here on nothing leads back. With `mu` held. */
static int
condemn(struct sb_host *h, struct sb_hsess *s, bool force, struct sb_error *err)
{
	if (s->gone)
		return sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SESSION_NOT_FOUND), s->id);
	if (s->state == SB_HOST_DESTROYING)
		return 0;
	for (size_t i = 0; i < s->n_snaps && !force; i++)
		if (sb_snap_holds(s->snaps[i]) > 0)
			return sb_fail(err, SB_E_SNAPSHOT_HELD,
				"%s: %s of session %s (release it, or use force)",
				sb_code_text(SB_E_SNAPSHOT_HELD), s->snaps[i]->name, s->id);
	return sb_host_op_set_state(h, s, SB_HOST_DESTROYING, false, err);
}

/* Running tools get their time, then they are killed. */
static int
quiet_tools(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	sb_hsess_kill_looks(s);
	r = sb_hsess_drain(s, call, sb_deadline_in(h->o.drain_timeout_ms), err);
	if (r == SB_E_TOOLS_IN_FLIGHT) {
		sb_hsess_kill_tools(s);
		r = sb_hsess_drain(s, NULL, sb_deadline_in(KILLED_TOOLS_MS), err);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static int
destroy(struct sb_host *h, struct sb_hsess *s, bool force, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = condemn(h, s, force, err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0)
		return r;
	r = sb_hsess_enter(s, SB_HOST_OP_DESTROY, call, err);
	/* Somebody else finished it, which is what we wanted. */
	if (r == SB_E_SESSION_NOT_FOUND)
		return 0;
	if (r < 0) {
		sb_host_worker_poke(h);
		return r;
	}
	r = quiet_tools(h, s, call, err);
	if (r == 0) {
		sb_host_proc_kill_all(h, s, PROCESS_GRACE_MS);
		r = sb_host_destroy_finish(h, s, err);
	}
	sb_hsess_leave(s);
	if (r < 0) {
		sb_host_worker_poke(h);
		return r;
	}
	sb_host_fork_forget(h, s);
	atomic_fetch_add(&h->destroyed, 1);
	sb_host_event_note(h->events, "session.destroyed", s->id, NULL, SB_HOST_DESTROYING);
	return 0;
}

int
sb_host_session_destroy(struct sb_host *h, const char *id, bool force,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r = sb_host_call_begin(h, true, &why);

	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? destroy(h, s, force, call, &why) : why.code;
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}
