/* SPDX-License-Identifier: MIT */
/* Checks of the life of a sandbox: prepare, reattach, find, destroy, and a new process. */
#include "config.h"

#include <conform/conform-priv.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>

static int
check_provider(struct sb_conform *c, struct sb_error *err)
{
	struct sb_provider *p = c->o->provider;
	struct sb_capabilities caps = SB_CAPABILITIES_INIT;
	struct sb_registry *reg;
	int r;

	if (!p || !p->ops)
		return broken(err, "the provider is null");
	if (p->ops->version != SB_PROVIDER_VERSION)
		return broken(err, "its table has version %u, this suite knows %u", p->ops->version,
			SB_PROVIDER_VERSION);
	if ((unsigned)p->ops->backend >= SB_BACKEND_COUNT)
		return broken(err, "backend %d is none", (int)p->ops->backend);
	if (c->o->backend >= 0 && (int)p->ops->backend != c->o->backend)
		return broken(err, "its backend is %s, must be %s",
			sb_backend_name(p->ops->backend),
			sb_backend_name((enum sb_backend)c->o->backend));
	if (!p->ops->name || !p->ops->capabilities || !p->ops->prepare ||
		!p->ops->sync_to_runtime || !p->ops->sync_from_runtime || !p->ops->destroy)
		return broken(err, "its table lacks a required member");
	reg = sb_registry_new(NULL, 0, err);
	if (!reg)
		return SB_E_NOMEM;
	sb_registry_free(reg);
	r = sb_provider_capabilities(p, c->o->profile, &caps, err);
	if (r < 0)
		return sb_wrap(err, r, "capabilities");
	if (!caps.isolation || (caps.find && !p->ops->find) ||
		(caps.snapshots && !p->ops->snapshot))
		return broken(err, "its capabilities promise what its table lacks");
	return 0;
}

static int
check_prepare(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	const struct sb_state *s;

	if (!b)
		return SB_E_STATE;
	s = &b->prepared.state;
	if (strcmp(s->sandbox_id, b->id) != 0 || s->backend != b->profile.backend ||
		s->life != SB_LIFE_READY)
		return broken(err, "the state is of sandbox %s, backend %s, %s", s->sandbox_id,
			sb_backend_name(s->backend), sb_life_name(s->life));
	if (!s->local_root || strcmp(s->local_root, b->local) != 0)
		return broken(err, "the state does not name the local root");
	if (c->caps.syncs && strcmp(s->runtime_root, s->local_root) == 0 && !c->caps.remote)
		return broken(err,
			"the runtime root is the local one, although the provider says it syncs");
	if (!b->prepared.launch.command || strcmp(b->prepared.launch.command, "cat") != 0)
		return broken(err, "the agent's command is not what is launched by default");
	/* With nothing changed in between, as a daemon does. */
	if (sb_conform_push(b, err) < 0 || sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	return sb_conform_destroy(b, false, err);
}

static int
check_copies(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, true, err);
	struct sb_conform_sandbox saved;
	int r;

	if (!b)
		return SB_E_STATE;
	r = sb_conform_prepare(b, err);
	if (r < 0)
		return r;
	memcpy(&saved, b, sizeof saved);
	memset(b->id, 'x', strlen(b->id));
	memset(b->local, 'x', strlen(b->local));
	memset(b->extra, 'x', strlen(b->extra));
	if (strcmp(b->prepared.state.sandbox_id, saved.id) != 0 ||
		strcmp(b->prepared.state.local_root, saved.local) != 0 ||
		!b->prepared.state.local_dirs.n ||
		strcmp(b->prepared.state.local_dirs.v[0], saved.extra) != 0)
		r = broken(err, "the state changes with the request that made it");
	memcpy(b->id, saved.id, sizeof b->id);
	memcpy(b->local, saved.local, sizeof b->local);
	memcpy(b->extra, saved.extra, sizeof b->extra);
	return r;
}

static int
check_again(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	sb_autofree char *first = NULL;

	if (!b)
		return SB_E_STATE;
	if (c->caps.syncs && !b->prepared.state.instance_id)
		return broken(err, "there is no instance id");
	first = strdup(b->prepared.state.instance_id ? b->prepared.state.instance_id : "");
	if (!first || sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "echo mine >kept; cat kept", "mine\n", err) < 0 ||
		sb_conform_prepare(b, err) < 0)
		return SB_E_STATE;
	if (strcmp(first, b->prepared.state.instance_id ? b->prepared.state.instance_id : "") != 0)
		return broken(err, "preparing the same sandbox again makes another instance");
	return sb_conform_sh_is(b, "cat kept", "mine\n", err);
}

/* A sandbox that may reach out is no answer to a profile that comes to forbid it. */
static int
forbidden_later(struct sb_conform_sandbox *b, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r;

	b->profile.network = (struct sb_network){ .allow_outbound = true };
	r = sb_conform_prepare(b, &why);
	if (r == SB_E_DENIED || r == SB_E_UNSUPPORTED || r == SB_E_NETWORK_POLICY)
		return 0; /* no sandbox there ever reaches out */
	if (r < 0)
		return sb_fail(err, r, "prepare of a sandbox that may reach out: %s", why.msg);
	b->profile.network = (struct sb_network){ .required = true };
	r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_NETWORK_POLICY,
		"prepare with a policy that the sandbox was made without", &why, err);
	b->profile.network = (struct sb_network){ .allow_outbound = true };
	if (r == 0 && (sb_conform_prepare(b, err) < 0 || sb_conform_destroy(b, false, err) < 0))
		r = SB_E_STATE;
	return r;
}

static int
check_refusals(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, false, err);
	struct sb_error why = { 0 };
	enum sb_backend own;
	int r;

	if (!b)
		return SB_E_STATE;
	own = b->profile.backend;
	b->profile.backend = own == SB_BACKEND_FLY ? SB_BACKEND_LOCAL : SB_BACKEND_FLY;
	r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_BACKEND_INVALID,
		"prepare for another backend", &why, err);
	b->profile.backend = own;
	if (r < 0)
		return r;
	b->profile.network.required = true;
	if (!c->caps.enforces_network)
		r = sb_conform_must_fail(sb_conform_prepare(b, &why), SB_E_NETWORK_POLICY,
			"prepare with a required network policy", &why, err);
	else if (sb_conform_prepare(b, err) < 0 ||
		sb_conform_sh_is(b, "grep : /proc/net/dev | grep -v ' *lo:' || echo alone",
			"alone\n", err) < 0 ||
		sb_conform_destroy(b, false, err) < 0 || forbidden_later(b, err) < 0)
		r = SB_E_STATE;
	b->profile.network = (struct sb_network){ 0 };
	if (r < 0)
		return r;
	b->req.local_root = "/no/such/directory";
	r = sb_conform_prepare(b, &why) == 0 ?
		broken(err, "prepare accepts a local root that is not there") :
		0;
	b->req.local_root = b->local;
	return r;
}

static int
check_state(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_state again = SB_STATE_INIT;
	sb_autofree char *text = NULL, *second = NULL;
	int r;

	if (!b)
		return SB_E_STATE;
	r = sb_state_encode(&b->prepared.state, &text, err);
	if (r == 0)
		r = sb_state_decode(text, strlen(text), &again, err);
	if (r == 0)
		r = sb_state_encode(&again, &second, err);
	if (r == 0 && strcmp(text, second) != 0)
		r = broken(err, "the state does not survive being written and read");
	if (r < 0) {
		sb_state_free(&again);
		return r;
	}
	/* From here on, only what was read is used. */
	sb_state_free(&b->prepared.state);
	b->prepared.state = again;
	if (sb_conform_local_write(b, "a", "1", err) < 0 || sb_conform_push(b, err) < 0 ||
		sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	return sb_conform_destroy(b, false, err);
}

static int
check_destroy_twice(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	int r;

	if (!b || sb_conform_push(b, err) < 0 || sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	sb_conform_detach(b);
	r = sb_conform_destroy(b, false, err);
	if (r < 0)
		return sb_wrap(err, r, "destroy");
	r = sb_conform_destroy(b, false, err);
	return r < 0 ? sb_wrap(err, r, "destroy a second time") : 0;
}

static int
check_find(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error why = { 0 };
	int r;

	if (!c->caps.find)
		return sb_conform_skip(err, "the provider does not search");
	b = sb_conform_new(c, false, err);
	if (!b)
		return SB_E_STATE;
	r = sb_conform_must_fail(sb_conform_find(b, NULL, &s, &why), SB_E_SANDBOX_NOT_FOUND,
		"find what was never made", &why, err);
	if (r < 0 || (r = sb_conform_prepare(b, err)) < 0 ||
		(r = sb_conform_find(b, NULL, &s, err)) < 0)
		return r;
	if (s.life != SB_LIFE_FOUND || !s.instance_id ||
		strcmp(s.instance_id, b->prepared.state.instance_id) != 0 ||
		strcmp(s.runtime_root, b->prepared.state.runtime_root) != 0)
		return broken(err, "find gives another sandbox than prepare did");
	r = sb_conform_destroy(b, false, err);
	if (r < 0)
		return r;
	sb_state_free(&s);
	return sb_conform_must_fail(sb_conform_find(b, NULL, &s, &why), SB_E_SANDBOX_NOT_FOUND,
		"find what was destroyed", &why, err);
}

static int
check_destroy_unsynced(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	struct sb_error why = { 0 };
	int r;

	if (!c->caps.syncs)
		return sb_conform_skip(err, "the runtime has no files of its own");
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_write(b, "a", "1", err) < 0 || sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "echo work >b; cat b", "work\n", err) < 0)
		return SB_E_STATE;
	r = sb_conform_must_fail(sb_conform_destroy(b, false, &why), SB_E_UNSYNCED,
		"destroy before a sync back", &why, err);
	if (r == 0)
		r = sb_conform_sh_is(b, "cat b", "work\n", err);
	if (r == 0)
		r = sb_conform_pull(b, err);
	if (r == 0)
		r = sb_conform_local_is(b, "b", "work\n", err);
	if (r == 0)
		r = sb_conform_sh_is(b, "echo more >late; cat late", "more\n", err);
	if (r == 0)
		r = sb_conform_must_fail(sb_conform_destroy(b, false, &why), SB_E_UNSYNCED,
			"destroy after work behind the sync back", &why, err);
	if (r == 0)
		r = sb_conform_pull(b, err);
	if (r == 0)
		r = sb_conform_local_is(b, "late", "more\n", err);
	return r < 0 ? r : sb_conform_destroy(b, false, err);
}

static int
check_discard(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	struct sb_error why = { 0 };
	int r;

	if (!c->caps.syncs)
		return sb_conform_skip(err, "the runtime has no files of its own");
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_push(b, err) < 0 || sb_conform_sh_is(b, "echo x >b", "", err) < 0)
		return SB_E_STATE;
	sb_conform_detach(b);
	r = sb_conform_destroy(b, true, err);
	if (r < 0)
		return sb_wrap(err, r, "destroy with discard");
	/* What is gone does not come back with the next of that name. */
	b->req.instance_id = b->prepared.state.instance_id;
	b->req.may_create = false;
	{
		struct sb_prepared none = { 0 };
		struct sb_call call = sb_conform_call(c);

		r = sb_conform_must_fail(
			sb_provider_prepare(c->o->provider, &b->req, &call, &none, &why),
			SB_E_SANDBOX_NOT_FOUND, "reattach to what was destroyed", &why, err);
		sb_prepared_free(&none);
	}
	b->req.may_create = true;
	if (r == 0) {
		sb_autofree char *old = strdup(b->req.instance_id);

		b->req.instance_id = old;
		r = sb_conform_prepare(b, err);
		b->req.instance_id = NULL;
	}
	if (r == 0)
		r = sb_conform_push(b, err);
	return r < 0 ? r : sb_conform_sh_is(b, "ls -A", "", err);
}

/* A failed sync back: the local root is away. */
static int
check_failed_back(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	struct sb_error why = { 0 };
	char aside[700];
	int r;

	if (!c->caps.syncs)
		return sb_conform_skip(err, "the runtime has no files of its own");
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_write(b, "a", "1", err) < 0 || sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "echo work >b", "", err) < 0)
		return SB_E_STATE;
	(void)snprintf(aside, sizeof aside, "%s.aside", b->local);
	if (rename(b->local, aside) < 0)
		return sb_fail_errno(err, "rename");
	r = sb_conform_pull(b, &why) == 0 ?
		broken(err, "a sync back into a root that is not there succeeds") :
		0;
	if (r == 0)
		r = sb_conform_must_fail(sb_conform_destroy(b, false, &why), SB_E_UNSYNCED,
			"destroy after a failed sync back", &why, err);
	/* Whatever was made in its place meanwhile. */
	(void)rmdir(b->local);
	if (rename(aside, b->local) < 0 && r == 0)
		r = sb_fail_errno(err, "rename");
	if (r == 0)
		r = sb_conform_sh_is(b, "cat b", "work\n", err);
	if (r == 0)
		r = sb_conform_pull(b, err);
	if (r == 0)
		r = sb_conform_local_is(b, "b", "work\n", err);
	return r < 0 ? r : sb_conform_destroy(b, false, err);
}

static int
write_state(const struct sb_conform_sandbox *b, const char *file, struct sb_error *err)
{
	sb_autofree char *text = NULL;
	int r = sb_state_encode(&b->prepared.state, &text, err);

	return r < 0 ? r : sb_file_replace(AT_FDCWD, file, text, strlen(text), 0600, err);
}

static int
check_reattach(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	char file[700];
	int r;

	if (!c->o->respawn)
		return sb_conform_skip(err, "nobody says how to start another process");
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_write(b, "a", "1", err) < 0 || sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "echo work >b", "", err) < 0)
		return SB_E_STATE;
	(void)snprintf(file, sizeof file, "%s/state", c->dir);
	r = write_state(b, file, err);
	sb_conform_detach(b);
	if (r == 0)
		r = c->o->respawn("reattach", file, 0, c->o->arg, err);
	if (r > 0)
		return broken(err, "in a new process: see above (exit %d)", r);
	if (r == 0)
		r = sb_conform_local_is(b, "b", "work\n", err);
	if (r == 0)
		r = sb_conform_local_is(b, "c", "again\n", err);
	return r < 0 ? r : sb_conform_destroy(b, false, err);
}

/* In the new process: go on with the sandbox from its state alone. */
static int
step_reattach(struct sb_conform *c, const char *file, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct sb_conform_sandbox b = { .c = c };
	int r = sb_file_read(AT_FDCWD, file, SB_STATE_MAX, &text, err);

	if (r == 0)
		r = sb_state_decode((char *)text.data, text.len, &b.prepared.state, err);
	if (r < 0)
		return r;
	r = sb_profile_copy(c->o->profile, &b.profile, err);
	(void)snprintf(b.id, sizeof b.id, "%s", b.prepared.state.sandbox_id);
	(void)snprintf(b.local, sizeof b.local, "%s", b.prepared.state.local_root);
	b.profile.sync_mode = b.prepared.state.sync_mode;
	b.req = (struct sb_prepare_request)SB_PREPARE_REQUEST_INIT;
	b.req.sandbox_id = b.id;
	b.req.local_root = b.local;
	b.req.profile = &b.profile;
	b.req.permissions = SB_PERM_MODE_APPROVE_ALL;
	b.req.may_create = false;
	/* A sync first, with nothing but the state. */
	if (r == 0)
		r = sb_conform_pull(&b, err);
	if (r == 0) {
		sb_autofree char *instance =
			strdup(b.prepared.state.instance_id ? b.prepared.state.instance_id : "");

		b.req.instance_id = instance && *instance ? instance : NULL;
		r = instance ? sb_conform_prepare(&b, err) : SB_E_NOMEM;
	}
	if (r == 0)
		r = sb_conform_sh_is(&b, "cat b; echo again >c", "work\n", err);
	if (r == 0)
		r = sb_conform_pull(&b, err);
	sb_prepared_free(&b.prepared);
	sb_profile_free(&b.profile);
	return r;
}

/*
 * In the new process: prepare the sandbox whose id and local root are in the file, to be killed on
 * the way.
 */
static int
step_prepare(struct sb_conform *c, const char *file, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct sb_conform_sandbox b = { .c = c };
	char *nl;
	int r = sb_file_read(AT_FDCWD, file, 4096, &text, err);

	if (r < 0)
		return r;
	nl = strchr((char *)text.data, '\n');
	if (!nl)
		return broken(err, "no local root in %s", file);
	*nl = '\0';
	(void)snprintf(b.id, sizeof b.id, "%s", (char *)text.data);
	(void)snprintf(b.local, sizeof b.local, "%s", nl + 1);
	r = sb_profile_copy(c->o->profile, &b.profile, err);
	b.req = (struct sb_prepare_request)SB_PREPARE_REQUEST_INIT;
	b.req.sandbox_id = b.id;
	b.req.session_id = "conform";
	b.req.local_root = b.local;
	b.req.profile = &b.profile;
	if (r == 0)
		r = sb_conform_prepare(&b, err);
	sb_prepared_free(&b.prepared);
	sb_profile_free(&b.profile);
	return r;
}

int
sb_conform_life_step(struct sb_conform *c, const char *step, const char *file, struct sb_error *err)
{
	if (strcmp(step, "reattach") == 0)
		return step_reattach(c, file, err);
	if (strcmp(step, "prepare") == 0)
		return step_prepare(c, file, err);
	return sb_fail(err, SB_E_USAGE, "there is no step '%s'", step);
}

/* One create that is killed: what it left is found, goes on, and goes. */
static int
crash_once(struct sb_conform *c, int ms, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, false, err);
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	sb_autofree char *text = NULL;
	struct sb_error why = { 0 };
	char file[700];
	int r;

	if (!b)
		return SB_E_STATE;
	(void)snprintf(file, sizeof file, "%s/id", c->dir);
	text = sb_str_printf("%s\n%s", b->id, b->local);
	r = text ? sb_file_replace(AT_FDCWD, file, text, strlen(text), 0600, err) : SB_E_NOMEM;
	if (r < 0)
		return r;
	r = c->o->respawn("prepare", file, ms, c->o->arg, err);
	if (r < 0)
		return r;
	r = sb_conform_find(b, NULL, &s, &why);
	if (r < 0 && r != SB_E_SANDBOX_NOT_FOUND)
		return sb_fail(err, r, "find after a crash at %d ms: %s", ms, why.msg);
	r = sb_conform_prepare(b, err);
	if (r < 0)
		return sb_wrap(err, r, "after a crash at %d ms", ms);
	if (s.instance_id && strcmp(s.instance_id, b->prepared.state.instance_id) != 0)
		return broken(err, "what a crash at %d ms left was found, yet another was made",
			ms);
	r = sb_conform_sh_is(b, "echo ok", "ok\n", err);
	if (r == 0)
		r = sb_conform_destroy(b, false, err);
	sb_state_free(&s);
	return r < 0 ? r :
		       sb_conform_must_fail(sb_conform_find(b, NULL, &s, &why),
			       SB_E_SANDBOX_NOT_FOUND, "find after destroy", &why, err);
}

static int
check_crash(struct sb_conform *c, struct sb_error *err)
{
	static const int when[] = { 30, 120, 300 };
	int r = 0;

	if (!c->caps.find)
		return sb_conform_skip(err, "the provider does not search");
	if (!c->o->respawn)
		return sb_conform_skip(err, "nobody says how to start another process");
	for (size_t i = 0; r == 0 && i < sizeof when / sizeof *when; i++)
		r = crash_once(c, when[i], err);
	return r;
}

/* None looks before all have written. */
struct gate {
	pthread_mutex_t mu;
	pthread_cond_t cv;
	size_t arrived, want;
};

static void
gate_pass(struct gate *g)
{
	(void)pthread_mutex_lock(&g->mu);
	g->arrived++;
	(void)pthread_cond_broadcast(&g->cv);
	while (g->arrived < g->want)
		(void)pthread_cond_wait(&g->cv, &g->mu);
	(void)pthread_mutex_unlock(&g->mu);
}

static void
gate_want(struct gate *g, size_t want)
{
	(void)pthread_mutex_lock(&g->mu);
	g->want = want;
	(void)pthread_cond_broadcast(&g->cv);
	(void)pthread_mutex_unlock(&g->mu);
}

/* Sandboxes do not know of each other. */
struct side {
	pthread_t thread;
	struct sb_conform_sandbox *b;
	struct sb_error err;
	int r;
	char word[40];
	struct gate *wrote;
};

static void *
live_one_life(void *arg)
{
	struct side *s = arg;
	char script[120], want[60];

	(void)snprintf(script, sizeof script, "echo %s >who", s->word);
	(void)snprintf(want, sizeof want, "%s\n", s->word);
	s->r = sb_conform_prepare(s->b, &s->err);
	if (s->r == 0)
		s->r = sb_conform_push(s->b, &s->err);
	if (s->r == 0)
		s->r = sb_conform_sh_is(s->b, script, "", &s->err);
	gate_pass(s->wrote);
	if (s->r == 0)
		s->r = sb_conform_sh_is(s->b, "cat who", want, &s->err);
	if (s->r == 0)
		s->r = sb_conform_pull(s->b, &s->err);
	if (s->r == 0)
		s->r = sb_conform_local_is(s->b, "who", want, &s->err);
	if (s->r == 0)
		s->r = sb_conform_destroy(s->b, false, &s->err);
	return NULL;
}

static int
check_concurrent(struct sb_conform *c, struct sb_error *err)
{
	struct side sides[3];
	struct gate wrote = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 3 };
	size_t n = 0;
	int r = 0;

	memset(sides, 0, sizeof sides);
	for (; r == 0 && n < 3; n++) {
		sides[n].wrote = &wrote;
		(void)snprintf(sides[n].word, sizeof sides[n].word, "side-%zu", n);
		sides[n].b = sb_conform_new(c, false, err);
		if (!sides[n].b)
			r = SB_E_STATE;
	}
	n = 0;
	while (r == 0 && n < 3 &&
		pthread_create(&sides[n].thread, NULL, live_one_life, &sides[n]) == 0)
		n++;
	if (r == 0 && n < 3) {
		r = sb_fail(err, SB_E_NOMEM, "start a thread");
		gate_want(&wrote, n);
	}
	for (size_t i = 0; i < n; i++) {
		(void)pthread_join(sides[i].thread, NULL);
		if (sides[i].r < 0 && r == 0)
			r = sb_fail(err, sides[i].r, "%s of three at once: %s", sides[i].word,
				sides[i].err.msg);
	}
	return r;
}

const struct sb_conform_check sb_conform_life_checks[] = {
	{ "provider", "the table is complete, the backend the expected one", check_provider },
	{ "prepare", "prepare, push, pull, destroy with nothing in between", check_prepare },
	{ "prepare-copies", "the state keeps nothing of the request's memory", check_copies },
	{ "prepare-again", "the same id gives the same sandbox", check_again },
	{ "prepare-refuses", "another backend, a network policy it cannot enforce, a missing root",
		check_refusals },
	{ "state", "all later calls work from the state as it was written", check_state },
	{ "destroy-twice", "destroying what is gone succeeds", check_destroy_twice },
	{ "destroy-unsynced", "work that is not here yet keeps the sandbox",
		check_destroy_unsynced },
	{ "destroy-discard", "discard removes it; reattaching says so, a new one is empty",
		check_discard },
	{ "failed-back", "a failed sync back keeps the sandbox", check_failed_back },
	{ "find", "found while it is there, not before and not after", check_find },
	{ "reattach", "another process goes on from the state alone", check_reattach },
	{ "crash", "what a killed prepare left is found, used and removed", check_crash },
	{ "concurrent", "three at once, independent", check_concurrent },
	{ NULL, NULL, NULL },
};
