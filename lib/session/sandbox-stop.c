/* SPDX-License-Identifier: MIT */
/* Stops a sandbox: sync back, then the end that its policy says. */
#include "config.h"

#include <session/session-priv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool
sb_sandbox_holds_work(enum sb_life l)
{
	return l == SB_LIFE_ACTIVE || l == SB_LIFE_STOPPING || l == SB_LIFE_UNSYNCED;
}

static int
fail_unsynced(struct sb_sandbox *sb, int code, struct sb_error *err)
{
	sb_event_tell(sb, "sandbox.unsynced", code, err ? err->msg : NULL, -1);
	sb_state_own(&sb->state, false);
	(void)sb_record_save(sb, SB_LIFE_UNSYNCED, NULL);
	return sb_wrap(err, code,
		"sandbox %s is kept, its work is not synced back yet (sbctl recover %s tries "
		"again)",
		sb->state.sandbox_id, sb->state.sandbox_id);
}

static int
sync_back(struct sb_sandbox *sb, enum sb_when reason, const struct sb_stop_opts *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, sb->profile.sync_timeout_ms);
	struct sb_provider_sync so = SB_PROVIDER_SYNC_INIT;
	int r = sb->state.life == SB_LIFE_STOPPING ? 0 : sb_record_save(sb, SB_LIFE_STOPPING, err);

	if (r < 0)
		return r;
	so.reason = reason;
	so.trust_git_config = o->trust_git_config;
	so.max_delete = o->max_delete;
	r = sb_sandbox_sync_held(sb, SB_WAY_FROM_RUNTIME, &so, &within, out, err);
	if (r < 0)
		return fail_unsynced(sb, r, err);
	/* Safe from here on, whatever happens below. */
	return sb_record_save(sb, SB_LIFE_STOPPED, err);
}

int
sb_sandbox_end_held(struct sb_sandbox *sb, bool discard, const struct sb_call *call,
	struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, sb->profile.destroy_timeout_ms);
	struct sb_event_span e = sb_event_begin(sb, "destroy", NULL, NULL);
	enum sb_life life;
	int r;

	/* Terminals and the kept connection go first. */
	sb_prepared_free(&sb->prepared);
	r = sb_event_end(&e, sb_provider_destroy(sb->provider, &sb->state, discard, &within, err),
		err, NULL);
	free(sb->state.last_error);
	sb->state.last_error = r < 0 && err ? strdup(err->msg) : NULL;
	life = r < 0                                      ? sb->state.life :
		sb->state.persist == SB_PERSIST_TRANSIENT ? SB_LIFE_DESTROYED :
							    SB_LIFE_STOPPED;
	sb->state.ended_at = time(NULL);
	sb_state_own(&sb->state, false);
	if (r < 0) {
		(void)sb_record_save(sb, life, NULL);
		return sb_wrap(err, r, "sandbox %s could not be taken away", sb->state.sandbox_id);
	}
	return sb_record_save(sb, life, err);
}

/*
 * Destroys the sandbox. If the provider finds that something changed since the sync back, syncs
 * back once more first.
 */
static int
end_safely(struct sb_sandbox *sb, const struct sb_stop_opts *o, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	int r = sb_sandbox_end_held(sb, false, call, err);

	if (r != SB_E_UNSYNCED || sb->state.life != SB_LIFE_STOPPED)
		return r;
	sb_sync_result_free(out);
	r = sync_back(sb, SB_WHEN_STOP, o, call, out, err);
	return r < 0 ? r : sb_sandbox_end_held(sb, false, call, err);
}

/* Asks the stop hooks; one of them may keep a sandbox that the policy would destroy. */
static bool
may_end(struct sb_sandbox *sb, const struct sb_call *call)
{
	struct sb_hook_info info = { .event = "stop",
		.state = &sb->state,
		.will_destroy = sb->state.destroy_on_stop };
	sb_auto(sb_hook_answer) struct sb_hook_answer said = { 0 };
	struct sb_error err = { 0 };

	if (sb_hook_run(sb, &info, call, &said, &err) == 0)
		return sb->state.destroy_on_stop;
	sb_log(&sb->k->log, SB_LOG_WARN, "session", "sandbox %s is kept: %s", sb->state.sandbox_id,
		err.msg);
	sb->state.destroy_on_stop = false;
	return false;
}

int
sb_sandbox_stop_held(struct sb_sandbox *sb, enum sb_when reason, const struct sb_stop_opts *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	int r = 0;

	if (sb->state.life == SB_LIFE_DESTROYED)
		return 0;
	if (sb_sandbox_holds_work(sb->state.life))
		r = sync_back(sb, reason, o, call, out, err);
	if (r == 0 && o->snapshot) {
		struct sb_event_span e = sb_event_begin(sb, "snapshot", NULL, NULL);

		r = sb_event_end(&e,
			sb_provider_snapshot(sb->provider, &sb->state, o->snapshot, call, err), err,
			NULL);
	}
	if (r < 0)
		return r;
	sb_event_tell(sb, "sandbox.stopped", 0, NULL, -1);
	if (may_end(sb, call))
		return end_safely(sb, o, call, out, err);
	sb_prepared_free(&sb->prepared);
	sb->state.ended_at = time(NULL);
	sb_state_own(&sb->state, false);
	return sb_record_save(sb, SB_LIFE_STOPPED, err);
}

int
sb_sandbox_stop(struct sb_sandbox *sb, const struct sb_stop_opts *o, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	static const struct sb_stop_opts defaults = SB_STOP_OPTS_INIT;
	struct sb_error own = { 0 };
	int code = sb->state.exit_code, r;

	memset(out, 0, sizeof *out);
	if (!err)
		err = &own;
	o = o ? o : &defaults;
	r = sb_record_lock(sb, RECORD_LOCK_MS, err);
	if (r < 0)
		return r;
	if (code >= 0)
		sb->state.exit_code = code;
	r = sb_sandbox_stop_held(sb,
		o->crashed || atomic_load(&sb->failed) ? SB_WHEN_CRASH : SB_WHEN_STOP, o, call, out,
		err);
	sb_record_unlock(sb);
	return r;
}

/*
 * Nobody answers. A sandbox that never was there as far as anybody knows is ended on record; of
 * another, the error says the way out.
 */
static int
end_unreached(struct sb_sandbox *sb, int code, struct sb_error *err)
{
	char said[SB_ERROR_MSG_MAX];

	if (!sb->state.instance_id && !sb->state.last_sync_at &&
		!sb_sandbox_holds_work(sb->state.life))
		return sb_record_save(sb, SB_LIFE_DESTROYED, err);
	(void)snprintf(said, sizeof said, "%s", err->msg);
	return sb_fail(err, code, "%.380s (sbctl forget %s takes it off the record without asking)",
		said, sb->state.sandbox_id);
}

int
sb_sandbox_destroy(struct sb_sandbox *sb, bool discard, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	static const struct sb_stop_opts defaults = SB_STOP_OPTS_INIT;
	struct sb_error own = { 0 };
	int r;

	memset(out, 0, sizeof *out);
	if (!err)
		err = &own;
	r = sb_record_lock(sb, RECORD_LOCK_MS, err);
	if (r < 0)
		return r;
	if (sb->state.life == SB_LIFE_DESTROYED) {
		sb_record_unlock(sb);
		return 0;
	}
	/* Whatever its policy was: the caller wants it gone. */
	sb->state.persist = SB_PERSIST_TRANSIENT;
	sb->state.destroy_on_stop = true;
	if (sb_sandbox_holds_work(sb->state.life) && !discard)
		r = sync_back(sb, SB_WHEN_STOP, &defaults, call, out, err);
	if (r == 0 && discard && sb->state.life == SB_LIFE_ACTIVE)
		r = sb_record_save(sb, SB_LIFE_STOPPING, err);
	if (r == 0)
		r = discard ? sb_sandbox_end_held(sb, true, call, err) :
			      end_safely(sb, &defaults, call, out, err);
	if (r < 0 && sb_record_unreachable(r))
		r = end_unreached(sb, r, err);
	sb_record_unlock(sb);
	return r;
}
