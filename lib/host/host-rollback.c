/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-rollback.h>

#include <string.h>

#include <base/str.h>
#include <host/host-live.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/owner.h>
#include <host/storage/idcheck.h>

#define KILLED_TOOLS_MS 10000
/* In front of the name that is on record, when newer snapshots go; no name has a colon. */
#define DROP "drop:"

/* The name of the target, and whether what is newer goes with it. */
static const char *
target_of(const char *record, bool *drop)
{
	*drop = sb_str_starts(record, DROP);
	return record + (*drop ? strlen(DROP) : 0);
}

static size_t
index_of(const struct sb_hsess *s, const char *name)
{
	for (size_t i = 0; i < s->n_snaps; i++)
		if (strcmp(s->snaps[i]->name, name) == 0)
			return i;
	return s->n_snaps;
}

/* Everything that could stop the rollback is asked before anything is touched. Slot held. */
static int
check(struct sb_host *h, struct sb_hsess *s, const char *name, bool drop, struct sb_error *err)
{
	size_t at;
	int r = 0;

	if (!sb_host_snapshot_visible(s, name, err))
		return SB_E_SNAPSHOT_NOT_FOUND;
	/* Only slot holders change the list itself. */
	at = index_of(s, name);
	if (!drop && h->st->ops->rollback_live)
		return 0;
	if (!drop && at + 1 < s->n_snaps)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"storage %s cannot keep the %zu snapshots that are newer than %s (%s ...): "
			"roll back with --drop-later to remove them",
			h->st->ops->name, s->n_snaps - at - 1, name, s->snaps[at + 1]->name);
	for (size_t i = at + 1; i < s->n_snaps && r == 0; i++) {
		struct sb_snap *later = s->snaps[i];
		unsigned holds, pins;

		(void)pthread_mutex_lock(&s->mu);
		holds = sb_snap_holds(later);
		pins = later->pins;
		(void)pthread_mutex_unlock(&s->mu);
		if (holds > 0)
			r = sb_fail(err, SB_E_SNAPSHOT_HELD,
				"%s: %s is newer than %s and would be lost",
				sb_code_text(SB_E_SNAPSHOT_HELD), later->name, name);
		else if (pins > 0 || sb_host_map_forks(h, s->uid, later->name) > 0)
			r = sb_fail(err, SB_E_SNAPSHOT_IN_USE,
				"%s: %s is newer than %s and would be lost",
				sb_code_text(SB_E_SNAPSHOT_IN_USE), later->name, name);
	}
	return r;
}

/* From here on no tool is admitted and a crash is followed by the same rollback. */
static int
announce(struct sb_host *h, struct sb_hsess *s, const char *name, unsigned how,
	enum sb_host_state *before, struct sb_error *err)
{
	char *target = sb_str_printf("%s%s", how & SB_HOST_DROP_LATER ? DROP : "", name);
	int r = 0;

	if (!target)
		return sb_fail(err, SB_E_NOMEM, "rollback");
	(void)pthread_mutex_lock(&s->mu);
	*before = s->state;
	if (s->active_tools > 0 && !(how & SB_HOST_KILL_TOOLS))
		r = sb_fail(err, SB_E_TOOLS_IN_FLIGHT, "%s: %u", sb_code_text(SB_E_TOOLS_IN_FLIGHT),
			s->active_tools);
	if (r == 0)
		r = sb_host_state_admit(SB_HOST_OP_ROLLBACK, s->state, s->id, err);
	if (r == 0) {
		free(s->rollback_to);
		s->rollback_to = sb_steal(&target);
		/* After a power loss it is as if nobody had asked, or all done. */
		r = sb_host_op_set_state(h, s, SB_HOST_ROLLING_BACK, false, err);
	}
	(void)pthread_mutex_unlock(&s->mu);
	free(target);
	return r;
}

/* Tools and processes of the session end before its files change under them. */
static int
quiet(struct sb_host *h, struct sb_hsess *s, bool *restarted, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	sb_hsess_kill_tools(s);
	r = sb_hsess_drain(s, NULL, sb_deadline_in(KILLED_TOOLS_MS), err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0)
		*restarted = !sb_host_proc_clear(h, s);
	return r;
}

/* Errors after which the workspace is as it was. */
static bool
untouched(int r)
{
	return r == SB_E_SNAPSHOT_NOT_FOUND || r == SB_E_SNAPSHOT_IN_USE ||
		r == SB_E_SNAPSHOT_HELD || r == SB_E_STORAGE_BUSY || r == SB_E_DENIED ||
		r == SB_E_UNSUPPORTED || r == SB_E_TOOLS_IN_FLIGHT || r == SB_E_INVAL ||
		r == SB_E_NOMEM;
}

/* The names of everything newer than the target, when that goes. `mu` held. */
static int
newer(const struct sb_hsess *s, struct sb_strlist *out, struct sb_error *err)
{
	bool drop;
	size_t at = index_of(s, target_of(s->rollback_to, &drop));

	for (size_t i = at + 1; drop && i < s->n_snaps; i++)
		sb_strlist_add(out, s->snaps[i]->name);
	return sb_strlist_check(out, err);
}

/*
 * Writes down the end. `mu` held. A database that fails here leaves the intent: rolling back again
 * is harmless as long as nothing runs in the session, so it is FAILED for now.
 */
static int
succeed(struct sb_host *h, struct sb_hsess *s, struct sb_host_rolled *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist dropped = { 0 };
	char *target = s->rollback_to;
	char *why = s->why;
	uint64_t turn = s->turn;
	bool drop;
	struct sb_snap *snap = sb_hsess_snap_find(s, target_of(target, &drop));
	int r = newer(s, &dropped, err);

	if (s->state == SB_HOST_DESTROYING)
		return sb_fail(err, SB_E_SESSION_DESTROYING, "%s: %s",
			sb_code_text(SB_E_SESSION_DESTROYING), s->id);
	if (r == 0) {
		if (snap)
			s->turn = snap->turn;
		s->rollback_to = s->why = NULL;
		r = sb_hostdb_rolled_back(h->db, s, SB_HOST_ACTIVE, &dropped,
			h->o.durability != SB_HOST_DURABLE_NONE, err);
	}
	if (r < 0) {
		s->rollback_to = target;
		s->turn = turn;
		s->why = strdup("the end of a rollback could not be recorded");
		free(why);
		s->state = SB_HOST_FAILED;
	} else {
		for (size_t i = 0; i < dropped.n; i++)
			sb_hsess_snap_drop(s, sb_hsess_snap_find(s, dropped.v[i]));
		out->dropped = dropped.n;
		out->kept = snap ? s->n_snaps - index_of(s, snap->name) - 1 : 0;
		free(target);
		free(why);
		s->state = SB_HOST_ACTIVE;
		sb_host_event_note(h->events, "session.rolled_back", s->id,
			snap ? snap->name : NULL, s->state);
	}
	(void)pthread_cond_broadcast(&s->cv);
	return r;
}

/* The storage said no: back to where it was when nothing changed, else FAILED. `mu` held. */
static void
give_up(struct sb_host *h, struct sb_hsess *s, enum sb_host_state before, int r, const char *msg)
{
	enum sb_host_state to = untouched(r) ? before : SB_HOST_FAILED;
	struct sb_error why = { 0 };

	if (s->state == SB_HOST_DESTROYING)
		return;
	free(s->rollback_to);
	s->rollback_to = NULL;
	if (!untouched(r)) {
		free(s->why);
		s->why = sb_str_printf("rollback: %s", msg);
	}
	if (sb_host_op_set_state(h, s, to, true, &why) < 0) {
		sb_log(&h->o.log, SB_LOG_ERROR, "host", "session %s: %s", s->id, why.msg);
		s->state = SB_HOST_FAILED;
		(void)pthread_cond_broadcast(&s->cv);
	}
}

/* The storage's part of it; the box takes the new workspace. */
static int
put_back(struct sb_host *h, struct sb_hsess *s, bool *restarted, struct sb_error *err)
{
	struct sb_host_live live;
	const char *name;
	bool drop;
	int r;

	name = target_of(s->rollback_to, &drop);
	sb_host_live_begin(h, s, &live);
	r = h->st->ops->rollback_live ?
		h->st->ops->rollback_live(h->st, s->id, name, drop, &live.ops, err) :
		h->st->ops->rollback(h->st, s->id, name, err);
	sb_host_live_end(&live);
	*restarted |= live.restarted;
	return r;
}

int
sb_host_rollback_finish(struct sb_host *h, struct sb_hsess *s, enum sb_host_state before,
	struct sb_host_rolled *out, struct sb_error *err)
{
	struct sb_host_rolled rolled = { 0 };
	struct sb_error why = { 0 };
	int r = quiet(h, s, &rolled.restarted, &why);

	if (r == 0)
		r = put_back(h, s, &rolled.restarted, &why);
	if (r == 0 && s->mountpoint)
		r = sb_host_owner_claim(h, s, s->mountpoint, NULL, &why);
	(void)pthread_mutex_lock(&s->mu);
	if (r == 0)
		r = succeed(h, s, &rolled, &why);
	else
		give_up(h, s, before, r, why.msg);
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0 && err)
		*err = why;
	if (r == 0 && out)
		*out = rolled;
	return r;
}

int
sb_host_session_rollback(struct sb_host *h, const char *id, const char *name, unsigned how,
	const struct sb_host_call *call, struct sb_host_rolled *out, struct sb_error *err)
{
	enum sb_host_state before = SB_HOST_ACTIVE;
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_ROLLBACK, true, call, &s, err);
	if (r < 0)
		return r;
	r = check(h, s, name, how & SB_HOST_DROP_LATER, err);
	if (r == 0)
		r = announce(h, s, name, how, &before, err);
	if (r == 0)
		r = sb_host_rollback_finish(h, s, before, out, err);
	if (r == 0)
		atomic_fetch_add(&h->rollbacks, 1);
	return sb_host_op_done(h, s, r);
}
