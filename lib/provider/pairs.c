/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/pairs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/strlist.h>
#include <provider/toolset.h>

SB_CLEANUP_VALUE(sb_session, sb_session_free)
SB_CLEANUP_VALUE(sb_sync_result, sb_sync_result_free)

/* The options of one sync, which borrow `excludes`. */
static int
make_opts(const struct sb_pairs *p, const struct sb_provider_sync *o, const struct sb_call *call,
	struct sb_sync_opts *out, struct sb_strlist *excludes, struct sb_error *err)
{
	int r;

	/* Those of the state are the session's, from its first push on. */
	sb_strlist_add_all(excludes, o->excludes);
	r = sb_strlist_check(excludes, err);
	if (r < 0)
		return r;
	*out = *p->reach;
	out->exclude = sb_strlist_borrow(excludes);
	out->dry_run = o->dry_run;
	out->trust_git_config = o->trust_git_config;
	out->max_delete = o->max_delete;
	if (call) {
		out->cancel = call->cancel;
		out->log = call->log;
		out->progress = call->progress;
		out->progress_arg = call->progress_arg;
		/* 0 would be no limit. */
		out->timeout_ms = call->deadline == SB_NEVER ? 0 : call->deadline - sb_now_ms();
		if (call->deadline != SB_NEVER && out->timeout_ms < 1)
			out->timeout_ms = 1;
	}
	return 0;
}

static enum sb_session_conflict
policy_of(const struct sb_provider_sync *o)
{
	return o->take_local    ? SB_SESSION_TAKE_LOCAL :
		o->take_runtime ? SB_SESSION_TAKE_RUNTIME :
				  SB_SESSION_KEEP_BOTH;
}

static int
load(const struct sb_state *s, const char *state_dir, struct sb_session *out, struct sb_error *err)
{
	return sb_session_load(state_dir, s->sandbox_id, NULL, out, err);
}

static int
first_push(const struct sb_pairs *p, const struct sb_provider_sync *o,
	const struct sb_sync_opts *opts, struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_sync_opts with = *opts;
	const struct sb_state *s = p->state;
	sb_auto(sb_strlist) struct sb_strlist also = { 0 };
	sb_auto(sb_strlist) struct sb_strlist excludes = { 0 };
	int r;

	sb_strlist_join(&excludes, &s->excludes);
	for (size_t i = 0; o->excludes && o->excludes[i]; i++)
		if (!sb_strlist_has(sb_strlist_borrow(&s->excludes), o->excludes[i]))
			sb_strlist_add(&excludes, o->excludes[i]);
	r = sb_strlist_check(&excludes, err);
	if (r < 0)
		return r;
	with.exclude = sb_strlist_borrow(&excludes);

	for (size_t i = 0; i < s->local_dirs.n && i < s->runtime_dirs.n; i++)
		sb_strlist_addf(&also, "%s:%s", s->local_dirs.v[i], s->runtime_dirs.v[i]);
	r = sb_strlist_check(&also, err);
	if (r < 0)
		return r;
	how.name = s->sandbox_id;
	how.also = sb_strlist_borrow(&also);
	how.owner_pid = getpid();
	return sb_session_start(s->local_root, p->remote, &how, &with, policy_of(o), NULL, out,
		err);
}

/* Was all that is over there brought back, as far as the record says? */
static bool
is_back(const struct sb_session *ses)
{
	return ses->state == SB_SESSION_STOPPED || ses->state == SB_SESSION_ORPHANED;
}

/* A start on a session that is open: its patterns count from now on, as those of a first push. */
static int
add_rules(const struct sb_session *ses, const struct sb_provider_sync *o,
	const struct sb_sync_opts *opts, struct sb_error *err)
{
	struct sb_session_ignored_list have = { 0 };
	int r = o->reason == SB_WHEN_START && !o->dry_run && o->excludes && o->excludes[0] ?
		sb_session_ignored(ses, opts->state_dir, 0, &have, err) :
		1;

	if (r != 0)
		return r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && o->excludes[i]; i++)
		if (!sb_strlist_has(sb_strlist_borrow(&have.patterns), o->excludes[i]))
			r = sb_session_ignore(ses, opts->state_dir, o->excludes[i], true, err);
	sb_session_ignored_free(&have);
	return r;
}

static int
push(const struct sb_pairs *p, const struct sb_provider_sync *o, const struct sb_sync_opts *opts,
	struct sb_sync_result *out, struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session ses = { 0 };
	bool back;
	int r = load(p->state, opts->state_dir, &ses, err);

	if (r == SB_E_NOTFOUND ||
		(r == 0 && (ses.state == SB_SESSION_STARTING || ses.state == SB_SESSION_STOPPED)))
		return first_push(p, o, opts, out, err);
	if (r < 0)
		return r;
	back = is_back(&ses);
	r = add_rules(&ses, o, opts, err);
	if (r < 0)
		return r;
	/* Both ways: work over there is never overlaid. */
	r = sb_session_sync(&ses, SB_REASON_TURN, opts, policy_of(o), out, err);
	if (r != SB_E_IDENTITY || !back || opts->dry_run)
		return r;
	/* The sandbox is a new one and nothing of the old one was left over there: begin anew. */
	sb_sync_result_free(out);
	r = sb_session_remove(&ses, opts->state_dir, true, err);
	return r < 0 ? r : first_push(p, o, opts, out, err);
}

static int
pull(const struct sb_pairs *p, const struct sb_provider_sync *o, const struct sb_sync_opts *opts,
	struct sb_sync_result *out, struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session ses = { 0 };
	int r = load(p->state, opts->state_dir, &ses, err);

	if (r == SB_E_NOTFOUND || (r == 0 && ses.state == SB_SESSION_STARTING))
		return 0; /* nothing was pushed, so nothing was worked on */
	if (r < 0)
		return r;
	/*
	 * The session stays open with its base until the sandbox goes: one that is kept can be
	 * synced again, and a second sync back finds nothing to do.
	 */
	return sb_session_sync(&ses, o->reason == SB_WHEN_TURN ? SB_REASON_TURN : SB_REASON_CRASH,
		opts, policy_of(o), out, err);
}

int
sb_pairs_sync(const struct sb_pairs *p, enum sb_way way, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_sync_opts opts;
	sb_auto(sb_strlist) struct sb_strlist excludes = { 0 };
	int r = sb_call_check(call, "sync", err);

	memset(out, 0, sizeof *out);
	if (r == 0 && p->state->sync_mode != SB_SYNC_MODE_NONE) {
		r = make_opts(p, o, call, &opts, &excludes, err);
		if (r == 0)
			r = way == SB_WAY_TO_RUNTIME ? push(p, o, &opts, out, err) :
						       pull(p, o, &opts, out, err);
	}
	out->direction = sb_way_name(way);
	out->reason = sb_when_name(o->reason);
	return r;
}

static int
unsynced(const struct sb_session *ses, const char *why, struct sb_error *err)
{
	return sb_fail(err, SB_E_UNSYNCED,
		"sandbox %s: %s; its files stay: sync it back first, or discard them", ses->name,
		why);
}

int
sb_pairs_check_record(const struct sb_state *s, const char *state_dir, struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session ses = { 0 };
	int r = load(s, state_dir, &ses, err);

	if (r == SB_E_NOTFOUND)
		return 0;
	if (r < 0)
		return r;
	if (ses.state == SB_SESSION_STARTING || is_back(&ses))
		return 0;
	return unsynced(&ses,
		ses.state == SB_SESSION_UNSYNCED ? "the last sync back failed" :
						   "it was not synced back",
		err);
}

int
sb_pairs_check_back(const struct sb_pairs *p, const struct sb_call *call, struct sb_error *err)
{
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	sb_auto(sb_session) struct sb_session ses = { 0 };
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	int r = sb_pairs_check_record(p->state, p->reach->state_dir, err);

	if (r < 0)
		return r;
	r = load(p->state, p->reach->state_dir, &ses, err);
	if (r == SB_E_NOTFOUND || (r == 0 && ses.state != SB_SESSION_ORPHANED))
		return 0;
	if (r < 0)
		return r;
	o.reason = SB_WHEN_STOP;
	o.dry_run = true;
	r = sb_pairs_sync(p, SB_WAY_FROM_RUNTIME, &o, call, &res, err);
	/*
	 * The runtime holds another sandbox by now, or none: there is nothing of this one to lose.
	 */
	if (r == SB_E_IDENTITY)
		return 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < res.n_changes; i++)
		if (res.changes[i].side && strcmp(res.changes[i].side, "local") == 0)
			return unsynced(&ses,
				"something has changed in it since the last sync back", err);
	return 0;
}

int
sb_pairs_forget(const struct sb_state *s, const char *state_dir, struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session ses = { 0 };
	int r = load(s, state_dir, &ses, err);

	if (r == SB_E_NOTFOUND)
		return 0;
	return r < 0 ? r : sb_session_remove(&ses, state_dir, true, err);
}
