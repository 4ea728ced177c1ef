/* SPDX-License-Identifier: MIT */
/* A sandbox on record: opening, reattaching, syncing (declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <provider/profile-json.h>

struct sb_sandbox *
sb_sandbox_new(struct sb_keeper *k, struct sb_error *err)
{
	struct sb_sandbox *sb = calloc(1, sizeof *sb);

	if (!sb) {
		(void)sb_fail(err, SB_E_NOMEM, "sandbox: out of memory");
		return NULL;
	}
	sb->k = k;
	sb->dirfd = sb->lockfd = -1;
	sb->state.exit_code = -1;
	return sb;
}

void
sb_sandbox_free(struct sb_sandbox *sb)
{
	if (!sb)
		return;
	sb_record_unlock(sb);
	if (sb->dirfd >= 0)
		(void)close(sb->dirfd);
	sb_prepared_free(&sb->prepared);
	sb_state_free(&sb->state);
	sb_profile_free(&sb->profile);
	sb_secrets_free(&sb->env);
	sb_strlist_free(&sb->had);
	free(sb);
}

const struct sb_state *
sb_sandbox_state(const struct sb_sandbox *sb)
{
	return &sb->state;
}

const struct sb_profile *
sb_sandbox_profile(const struct sb_sandbox *sb)
{
	return &sb->profile;
}

/* The profile as the record has it. Excludes and directories are in the state. */
static int
settle(struct sb_profile *p, const struct sb_state *s, struct sb_error *err)
{
	int r = sb_profile_default(s->backend, s->profile, p, err);

	if (r < 0)
		return r;
	p->sync_mode = s->sync_mode;
	p->persist = s->persist;
	p->destroy_on_stop = s->destroy_on_stop;
	p->permissions = s->permissions;
	sb_strlist_join(&p->options, &s->options);
	r = sb_strlist_check(&p->options, err);
	return r < 0 ? r : sb_profile_json_decode(s->settings, p, err);
}

int
sb_sandbox_resolve(struct sb_sandbox *sb, struct sb_error *err)
{
	const struct sb_state *s = &sb->state;
	struct sb_profile *p = &sb->profile;
	int r;

	sb->provider = sb_registry_get(sb->k->registry, s->backend, err);
	if (!sb->provider)
		return SB_E_PROVIDER_MISSING;
	if (p->name)
		return 0;
	r = settle(p, s, err);
	return r < 0 ? sb_wrap(err, r, "record of sandbox %s", s->sandbox_id) : 0;
}

int
sb_sandbox_open(struct sb_keeper *k, const char *id, struct sb_sandbox **out, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = sb_sandbox_new(k, err);
	int r;

	if (!sb)
		return SB_E_NOMEM;
	r = sb_keeper_load(k, id, &sb->state, err);
	if (r < 0)
		return r;
	sb->dirfd = sb_record_open(k, sb->state.sandbox_id, false, err);
	if (sb->dirfd < 0)
		return sb->dirfd;
	r = sb_sandbox_resolve(sb, err);
	if (r == 0)
		*out = sb_steal(&sb);
	return r;
}

void
sb_sandbox_request(const struct sb_sandbox *sb, struct sb_prepare_request *req)
{
	const struct sb_state *s = &sb->state;

	*req = (struct sb_prepare_request)SB_PREPARE_REQUEST_INIT;
	req->sandbox_id = s->sandbox_id;
	req->session_id = s->session_id;
	req->workspace_id = s->workspace_id;
	req->instance_id = s->instance_id;
	req->local_root = s->local_root;
	req->local_dirs = sb_strlist_borrow(&s->local_dirs);
	req->profile = &sb->profile;
	req->excludes = sb_strlist_borrow(&s->excludes);
	req->agent_command = s->agent_command;
	req->agent_env = sb_strlist_borrow(&s->agent_env);
	req->permissions = s->permissions;
	req->provider_state = s->provider_state;
	req->resume_acp_state = s->resume_acp_state;
}

/* What the provider renewed when it was reattached to goes on record, if nobody holds that. */
static void
note_renewed(struct sb_sandbox *sb)
{
	const struct sb_state *p = &sb->prepared.state;
	struct sb_state *s = &sb->state;
	bool other = p->provider_state &&
		(!s->provider_state || strcmp(s->provider_state, p->provider_state) != 0);
	char *copy;

	if ((!other && p->access_expires_at == s->access_expires_at) || sb->lockfd >= 0 ||
		sb_record_lock(sb, 0, NULL) < 0)
		return;
	copy = other ? strdup(p->provider_state) : NULL;
	if (copy) {
		free(s->provider_state);
		s->provider_state = copy;
	}
	s->access_expires_at = p->access_expires_at;
	(void)sb_record_save(sb, s->life, NULL);
	sb_record_unlock(sb);
}

int
sb_sandbox_reattach(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, sb->profile.prepare_timeout_ms);
	struct sb_prepare_request req;
	const struct sb_state *s = &sb->state;
	struct sb_event_span e;
	int r;

	if (sb->prepared.launcher)
		return 0;
	sb_sandbox_request(sb, &req);
	req.may_create = false;
	e = sb_event_begin(sb, "prepare", NULL, NULL);
	r = sb_provider_prepare(sb->provider, &req, &within, &sb->prepared, err);
	(void)sb_event_end(&e, r, err, NULL);
	if (r < 0)
		return sb_wrap(err, r, "sandbox %s", s->sandbox_id);
	note_renewed(sb);
	return 0;
}

struct sb_tool_host *
sb_sandbox_tools(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err)
{
	return sb_sandbox_reattach(sb, call, err) < 0 ? NULL : sb->prepared.tools;
}

static void
note_sync(struct sb_sandbox *sb, int code, const struct sb_error *err)
{
	free(sb->state.last_sync_error);
	sb->state.last_sync_error =
		code < 0 ? strdup(err && err->msg[0] ? err->msg : sb_code_text(code)) : NULL;
	sb->state.last_sync_at = time(NULL);
}

int
sb_sandbox_sync_held(struct sb_sandbox *sb, enum sb_way way, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_hook_info info = { .event = "sync.before",
		.state = &sb->state,
		.reason = sb_when_name(o->reason),
		.direction = sb_way_name(way) };
	sb_auto(sb_hook_answer) struct sb_hook_answer said = { 0 };
	sb_auto(sb_hook_answer) struct sb_hook_answer after = { 0 };
	sb_auto(sb_strlist) struct sb_strlist excludes = { 0 };
	struct sb_error own = { 0 };
	struct sb_provider_sync with = *o;
	struct sb_event_span e;
	int r;

	memset(out, 0, sizeof *out);
	if (!err)
		err = &own;
	r = sb_hook_run(sb, &info, call, &said, err);
	if (r == 0) {
		sb_strlist_add_all(&excludes, o->excludes);
		sb_strlist_join(&excludes, &said.exclude);
		r = sb_strlist_check(&excludes, err);
	}
	if (r == 0) {
		with.excludes = sb_strlist_borrow(&excludes);
		e = sb_event_begin(sb, "sync", info.reason, info.direction);
		r = sb_provider_sync(sb->provider, &sb->state, way, &with, call, out, err);
		(void)sb_event_end(&e, r, err, out);
	}
	if (o->dry_run)
		return r;
	note_sync(sb, r, err);
	if (r == 0) {
		info.event = "sync.after";
		info.sync = out;
		r = sb_hook_run(sb, &info, call, &after, err);
		/* What has been synced is synced: only a start can still be refused. */
		if (r < 0 && o->reason != SB_WHEN_START) {
			sb_log(&sb->k->log, SB_LOG_WARN, "session", "sandbox %s: %s",
				sb->state.sandbox_id, err->msg);
			r = 0;
		}
	}
	return r;
}

int
sb_sandbox_sync(struct sb_sandbox *sb, const struct sb_provider_sync *o, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_provider_sync with = *o;
	enum sb_life life;
	int r, saved;

	memset(out, 0, sizeof *out);
	r = sb_record_lock(sb, RECORD_LOCK_MS, err);
	if (r < 0)
		return r;
	life = sb->state.life;
	if (life != SB_LIFE_ACTIVE && life != SB_LIFE_UNSYNCED && life != SB_LIFE_STOPPING &&
		life != SB_LIFE_STOPPED) {
		r = sb_fail(err, SB_E_STATE, "sandbox %s is %s: there is nothing to sync",
			sb->state.sandbox_id, sb_life_name(life));
	} else {
		with.reason = SB_WHEN_TURN;
		r = sb_sandbox_sync_held(sb, SB_WAY_TO_RUNTIME, &with, call, out, err);
		if (!with.dry_run) {
			/*
			 * A sync both ways that failed while something runs will be tried again;
			 * afterwards it must not be forgotten.
			 */
			saved = sb_record_save(sb,
				r < 0 && life == SB_LIFE_STOPPING ? SB_LIFE_UNSYNCED : life,
				r < 0 ? NULL : err);
			r = r < 0 ? r : saved;
		}
	}
	sb_record_unlock(sb);
	return r;
}

int
sb_sandbox_turn(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;

	memset(out, 0, sizeof *out);
	return sb->state.sync_mode == SB_SYNC_MODE_TURN ? sb_sandbox_sync(sb, &o, call, out, err) :
							  0;
}
