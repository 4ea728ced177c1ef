/* SPDX-License-Identifier: MIT */
/* Recovery after a restart: syncs back and ends what no living process owns. */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Looks for what a crash in the middle of prepare may have left. 0: there is something, or nobody
 * can tell.
 */
static int
look_for(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err)
{
	struct sb_find_request req = SB_FIND_REQUEST_INIT;
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	struct sb_state *s = &sb->state;
	int r;

	req.sandbox_id = s->sandbox_id;
	req.session_id = s->session_id;
	req.workspace_id = s->workspace_id;
	req.instance_id = s->instance_id;
	req.local_root = s->local_root;
	req.local_dirs = sb_strlist_borrow(&s->local_dirs);
	req.profile = &sb->profile;
	req.provider_state = s->provider_state;
	r = sb_provider_find(sb->provider, &req, call, &found, err);
	if (r == SB_E_UNSUPPORTED)
		return 0;
	if (r < 0)
		return r;
	if (found.instance_id) {
		free(s->instance_id);
		s->instance_id = strdup(found.instance_id);
	}
	if (found.runtime_root) {
		free(s->runtime_root);
		s->runtime_root = strdup(found.runtime_root);
	}
	if (found.provider_state) {
		free(s->provider_state);
		s->provider_state = strdup(found.provider_state);
	}
	return 0;
}

/*
 * A kept sandbox whose session has ended: what a program that outlived its session did there since
 * comes here, too. One that cannot be reached now is no failure: it may be switched off.
 */
static int
recover_kept(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *res,
	const char **what, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, sb->profile.sync_timeout_ms);
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	int r, saved;

	if (!sb->state.instance_id || sb->state.persist == SB_PERSIST_ARCHIVE) {
		*what = "nothing";
		return 0;
	}
	o.reason = SB_WHEN_CRASH;
	r = sb_sandbox_sync_held(sb, SB_WAY_FROM_RUNTIME, &o, &within, res, err);
	saved = sb_record_save(sb, SB_LIFE_STOPPED, r < 0 ? NULL : err);
	if (r == 0 && !res->files_synced && !res->files_deleted && !res->files_moved &&
		!res->conflicts.n)
		*what = "nothing";
	if (r < 0 && sb_record_unreachable(r)) {
		*what = "away";
		return 0;
	}
	return r < 0 ? r : saved;
}

/* Its session has ended: what is left is its end by policy, or what is new in one that is kept. */
static int
recover_stopped(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *res,
	const char **what, struct sb_error *err)
{
	static const struct sb_stop_opts defaults = SB_STOP_OPTS_INIT;

	if (sb->state.destroy_on_stop && sb->state.persist == SB_PERSIST_TRANSIENT)
		return sb_sandbox_stop_held(sb, SB_WHEN_CRASH, &defaults, call, res, err);
	return recover_kept(sb, call, res, what, err);
}

/*
 * Nothing of this session ever ran in it: it holds nothing but copies. One of an earlier session is
 * what it was before this start.
 */
static int
recover_unused(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *res,
	const char **what, struct sb_error *err)
{
	int r = sb->state.life == SB_LIFE_CREATING ? look_for(sb, call, err) : 0;

	if (r == SB_E_SANDBOX_NOT_FOUND) {
		sb->state.ended_at = time(NULL);
		sb_state_own(&sb->state, false);
		return sb_record_save(sb, SB_LIFE_DESTROYED, err);
	}
	if (r < 0)
		return r;
	if (sb->state.last_sync_at) {
		sb_state_own(&sb->state, false);
		r = sb_record_save(sb, SB_LIFE_STOPPED, err);
		return r < 0 ? r : recover_stopped(sb, call, res, what, err);
	}
	/* Whatever its policy: nobody is going to use it again. */
	sb->state.persist = SB_PERSIST_TRANSIENT;
	return sb_sandbox_end_held(sb, true, call, err);
}

static int
recover_held(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *res,
	const char **what, struct sb_error *err)
{
	static const struct sb_stop_opts defaults = SB_STOP_OPTS_INIT;

	*what = "done";
	switch (sb->state.life) {
	case SB_LIFE_CREATING:
	case SB_LIFE_READY:
	case SB_LIFE_FOUND:
	case SB_LIFE_PREPARED: return recover_unused(sb, call, res, what, err);
	case SB_LIFE_ACTIVE:
	case SB_LIFE_STOPPING:
	case SB_LIFE_UNSYNCED:
		return sb_sandbox_stop_held(sb, SB_WHEN_CRASH, &defaults, call, res, err);
	case SB_LIFE_STOPPED: return recover_stopped(sb, call, res, what, err);
	default: break;
	}
	*what = "nothing";
	return 0;
}

static int
recover_one(struct sb_keeper *k, const struct sb_state *s, const struct sb_call *call,
	sb_recovered_fn fn, void *arg)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	const char *what = "failed";
	int r;

	if (sb_state_owned(s)) {
		fn(s, "owned", &res, &err, arg);
		return 0;
	}
	r = sb_sandbox_open(k, s->sandbox_id, &sb, &err);
	if (r == 0)
		r = sb_record_lock(sb, 0, &err);
	if (r == SB_E_LOCKED) {
		fn(s, "busy", &res, &err, arg);
		return 0;
	}
	if (r == 0 && sb_state_owned(&sb->state)) {
		/* Someone took it between our look and our lock. */
		fn(&sb->state, "owned", &res, &err, arg);
		return 0;
	}
	if (r == 0)
		r = recover_held(sb, call, &res, &what, &err);
	if (r < 0 && sb && sb->lockfd >= 0) {
		free(sb->state.last_error);
		sb->state.last_error = strdup(err.msg);
		(void)sb_record_save(sb, sb->state.life, NULL);
	}
	fn(sb ? &sb->state : s, r < 0 ? "failed" : what, &res, &err, arg);
	return r < 0;
}

int
sb_keeper_recover(struct sb_keeper *k, const char *id, const struct sb_call *call,
	sb_recovered_fn fn, void *arg, struct sb_error *err)
{
	struct sb_state *v = NULL;
	size_t n = 0;
	int r, failed = 0;

	if (id) {
		v = calloc(1, sizeof *v);
		if (!v)
			return sb_fail(err, SB_E_NOMEM, "sandboxes: out of memory");
		r = sb_keeper_load(k, id, v, err);
		n = r == 0;
	} else {
		r = sb_keeper_list(k, &v, &n, err);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = sb_call_check(call, "recover", err);
		if (r == 0)
			failed += recover_one(k, &v[i], call, fn, arg);
	}
	sb_states_free(v, n);
	return r < 0 ? r : failed;
}
