/* SPDX-License-Identifier: MIT */
/* Checks of what outlives a session: persistence, labels, snapshots; and of capabilities. */
#include "config.h"

#include <conform/conform-priv.h>

#include <stdlib.h>
#include <string.h>

/* Works in it, syncs back and ends it by its own persistence. */
static int
live_and_end(struct sb_conform_sandbox *b, struct sb_error *err)
{
	int r = sb_conform_prepare(b, err);

	if (r == 0 && b->prepared.state.persist != b->profile.persist)
		r = broken(err, "the state does not have the persistence of the request");
	if (r == 0)
		r = sb_conform_push(b, err);
	if (r == 0)
		r = sb_conform_sh_is(b, "echo work >kept; cat kept", "work\n", err);
	if (r == 0)
		r = sb_conform_pull(b, err);
	sb_conform_detach(b);
	return r < 0 ? r : sb_conform_end(b, err);
}

/* It is there still, with what was in it; and goes when it is told to. */
static int
still_there(struct sb_conform_sandbox *b, struct sb_error *err)
{
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	sb_autofree char *instance =
		strdup(b->prepared.state.instance_id ? b->prepared.state.instance_id : "");
	struct sb_error why = { 0 };
	int r = 0;

	if (b->c->caps.find)
		r = sb_conform_find(b, NULL, &found, err);
	b->req.may_create = false;
	b->req.instance_id = instance && *instance ? instance : NULL;
	if (r == 0)
		r = sb_conform_prepare(b, err);
	if (r == 0)
		r = sb_conform_sh_is(b, "cat kept; echo more >>kept", "work\n", err);
	if (r == 0)
		r = sb_conform_pull(b, err);
	if (r == 0 && b->c->caps.syncs)
		r = sb_conform_local_is(b, "kept", "work\nmore\n", err);
	sb_conform_detach(b);
	if (r == 0)
		r = sb_conform_destroy(b, false, err);
	/* Where the runtime is the local root, there is nothing that could be gone. */
	if (r == 0 && b->c->caps.syncs)
		r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_SANDBOX_NOT_FOUND,
			"reattach to what was removed", &why, err);
	b->req.instance_id = NULL;
	return r;
}

static int
check_reuse(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, false, err);
	int r;

	if (!b)
		return SB_E_STATE;
	b->profile.persist = SB_PERSIST_REUSE;
	b->profile.destroy_on_stop = false;
	r = live_and_end(b, err);
	return r < 0 ? r : still_there(b, err);
}

static int
check_archive(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, false, err);
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	struct sb_error why = { 0 };
	int r;

	if (!b)
		return SB_E_STATE;
	b->profile.persist = SB_PERSIST_ARCHIVE;
	if (!c->caps.archive) {
		r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_UNSUPPORTED,
			"prepare of a sandbox that cannot be put away", &why, err);
		if (r == 0 && c->caps.find)
			r = sb_conform_must_fail(sb_conform_find(b, NULL, &found, &why),
				SB_E_SANDBOX_NOT_FOUND, "find what was refused", &why, err);
		return r;
	}
	r = live_and_end(b, err);
	/* Putting away what is put away is success. */
	if (r == 0)
		r = sb_conform_end(b, err);
	return r < 0 ? r : still_there(b, err);
}

static int
check_labels(struct sb_conform *c, struct sb_error *err)
{
	static const char *const right[] = { SB_LABEL_SESSION "=conform", NULL };
	static const char *const wrong[] = { SB_LABEL_SESSION "=another", NULL };
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	struct sb_conform_sandbox *b;
	struct sb_error why = { 0 };
	int r;

	if (!c->caps.find)
		return sb_conform_skip(err, "the provider does not search");
	b = sb_conform_ready(c, false, err);
	if (!b)
		return SB_E_STATE;
	r = sb_conform_find(b, right, &found, err);
	if (r < 0)
		return sb_wrap(err, r, "find by the label of its session");
	return sb_conform_must_fail(sb_conform_find(b, wrong, &found, &why), SB_E_SANDBOX_NOT_FOUND,
		"find by the label of another session", &why, err);
}

static int
check_snapshot(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_call call = sb_conform_call(c);
	struct sb_error why = { 0 };
	int r;

	if (!b || sb_conform_push(b, err) < 0)
		return SB_E_STATE;
	r = sb_provider_snapshot(c->o->provider, &b->prepared.state, "one", &call, &why);
	if (!c->caps.snapshots)
		return r == SB_E_UNSUPPORTED || r == SB_E_NO_SNAPSHOTS ?
			0 :
			broken(err, "a snapshot, of which the capabilities know nothing, gives %s",
				r < 0 ? sb_code_name(r) : "success");
	if (r < 0)
		return sb_fail(err, r, "snapshot: %s", why.msg);
	r = sb_conform_sh_is(b, "echo on >after; cat after", "on\n", err);
	if (r == 0)
		r = sb_conform_must_fail(sb_provider_snapshot(c->o->provider, &b->prepared.state,
						 "one", &call, &why),
			SB_E_SNAPSHOT_EXISTS, "a second snapshot of that name", &why, err);
	return r;
}

static bool
is_isolation(const char *word)
{
	static const char *const words[] = { "none", "user", "namespace", "gvisor", "vm",
		"machine" };

	for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static int
check_capabilities(struct sb_conform *c, struct sb_error *err)
{
	struct sb_provider *p = c->o->provider;
	struct sb_capabilities any = SB_CAPABILITIES_INIT, again = SB_CAPABILITIES_INIT;
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_error why = { 0 };
	int r;

	if (!b)
		return SB_E_STATE;
	r = sb_provider_capabilities(p, NULL, &any, err);
	if (r == 0)
		r = sb_provider_capabilities(p, c->o->profile, &again, err);
	if (r < 0)
		return sb_wrap(err, r, "capabilities");
	if (!is_isolation(any.isolation) || !is_isolation(again.isolation))
		return broken(err, "isolation \"%s\" is no word of the contract",
			is_isolation(again.isolation) ? any.isolation : again.isolation);
	/* A profile may share the local root where others have files of their own; see below. */
	if ((again.syncs && (!any.syncs || any.remote != again.remote)) || any.find != again.find ||
		any.embedded != again.embedded)
		return broken(err, "what it is changes with the profile");
	if (again.rollback && !again.snapshots)
		return broken(err, "it rolls back without snapshots");
	if (!again.syncs && strcmp(b->prepared.state.runtime_root, b->local) != 0)
		return broken(err, "it does not sync, yet the runtime has a root of its own");
	if (!again.find)
		r = sb_conform_must_fail(sb_conform_find(b, NULL, &found, &why), SB_E_UNSUPPORTED,
			"find, of which the capabilities know nothing", &why, err);
	return r;
}

/* Programs learn of the further directories of their session, and of what to resume. */
static int
check_told(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, true, err);
	sb_autofree char *want = NULL;

	if (!b)
		return SB_E_STATE;
	b->req.resume_acp_state = "talk 7";
	if (sb_conform_prepare(b, err) < 0)
		return SB_E_STATE;
	if (b->prepared.state.runtime_dirs.n != 1)
		return broken(err, "there is no further directory in the state");
	want = sb_str_printf("%s|talk 7", b->prepared.state.runtime_dirs.v[0]);
	return want ? sb_conform_sh_is(b, "printf '%s|%s' \"$SB_DIRS\" \"$SB_RESUME_ACP_STATE\"",
			      want, err) :
		      SB_E_NOMEM;
}

/* A state that another version of the provider wrote is refused, by every call. */
static int
check_version(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_call call = sb_conform_call(c);
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error why = { 0 };
	struct sb_state other;
	char text[] = "{\"version\":9999}";
	int r;

	if (!b)
		return SB_E_STATE;
	if (!b->prepared.state.provider_state)
		return sb_conform_skip(err, "the provider keeps no state of its own");
	other = b->prepared.state;
	other.provider_state = text;
	other.sync_mode = SB_SYNC_MODE_SESSION;
	r = sb_conform_must_fail(sb_provider_sync(c->o->provider, &other, SB_WAY_FROM_RUNTIME, &o,
					 &call, &res, &why),
		SB_E_VERSION, "sync with a state of version 9999", &why, err);
	sb_sync_result_free(&res);
	if (r == 0)
		r = sb_conform_must_fail(
			sb_provider_destroy(c->o->provider, &other, true, &call, &why),
			SB_E_VERSION, "destroy with a state of version 9999", &why, err);
	b->req.provider_state = text;
	if (r == 0)
		r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_VERSION,
			"prepare with a state of version 9999", &why, err);
	b->req.provider_state = NULL;
	return r;
}

const struct sb_conform_check sb_conform_keep_checks[] = {
	{ "capabilities", "words of the contract, and true", check_capabilities },
	{ "persist-reuse", "ended, it is still there, until it is removed", check_reuse },
	{ "persist-archive", "put away and taken out again, or refused at once", check_archive },
	{ "labels", "found by its labels, not by others", check_labels },
	{ "snapshot", "taken while it works, or refused", check_snapshot },
	{ "told", "programs learn of directories and of what to resume", check_told },
	{ "version", "a state of another version is refused", check_version },
	{ NULL, NULL, NULL },
};
