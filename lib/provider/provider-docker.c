/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes of Docker: sbx, docker sandbox, or a container of docker or podman. What is kept from
 * us by a kernel or a namespace is reached like a machine: the ssh provider does most of the work,
 * with "exec" of that program as its remote shell. This file makes, finds and ends them.
 */
#include "config.h"

#include <provider/provider.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <provider/dockerlink.h>
#include <provider/mounted.h>
#include <provider/pairs.h>
#include <provider/sshlink.h>

struct docker_provider {
	struct sb_provider_common c;
	struct sb_provider *ssh;
};

static int
docker_capabilities(struct sb_provider *base, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	const char *const *options = profile ? sb_strlist_borrow(&profile->options) : NULL;
	enum sb_dockerlink_kind kind = sb_dockerlink_guess(options);
	const char *runtime = sb_strlist_get(options, "runtime");
	bool mounted = sb_dockerlink_is_mounted(options);

	(void)base;
	(void)err;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->remote = !mounted;
	out->syncs = !mounted;
	out->find = true;
	out->archive = kind != SB_DOCKERLINK_SANDBOX;
	out->streaming = true;
	out->tty = true;
	out->isolation = kind != SB_DOCKERLINK_CONTAINER     ? "vm" :
		runtime && strncmp(runtime, "runsc", 5) == 0 ? "gvisor" :
							       "namespace";
	out->enforces_network = true;
	if (kind == SB_DOCKERLINK_CONTAINER)
		out->enforces_lists = sb_dockerlink_net_check(NULL) == 0;
	else
		out->enforces_lists = kind == SB_DOCKERLINK_SANDBOX;
	if (profile && sb_dockerlink_net_lists(&profile->network))
		out->enforces_network = out->enforces_lists;
	/* The engine's own network forwards everything. */
	else if (profile && profile->network.allow_outbound)
		out->enforces_network = true;
	return 0;
}

/* The options that the ssh provider gets: the sandbox as its host. */
static int
ssh_options(const struct sb_dockerlink *l, struct sb_strlist *out, struct sb_error *err)
{
	const char *via = sb_strlist_get(sb_strlist_borrow(&l->options), "via");
	sb_autofree char *rsh = NULL;

	if (l->kind == SB_DOCKERLINK_SBX && via && strcmp(via, "ssh") == 0) {
		sb_strlist_putf(out, "host=%s.sbx", l->name);
		if (sb_strlist_get(sb_strlist_borrow(&l->options), "ssh_config"))
			sb_strlist_putf(out, "config=%s",
				sb_strlist_get(sb_strlist_borrow(&l->options), "ssh_config"));
		return sb_strlist_check(out, err);
	}
	rsh = sb_dockerlink_rsh(l, err);
	if (!rsh)
		return SB_E_NOMEM;
	sb_strlist_putf(out, "host=%s", l->name);
	sb_strlist_putf(out, "rsh=%s", rsh);
	return sb_strlist_check(out, err);
}

/* The sandbox's own program and name into its state. */
static int
adopt(struct sb_state *s, const struct sb_dockerlink *l, struct sb_error *err)
{
	int r;

	sb_strlist_free(&s->options);
	sb_strlist_join(&s->options, &l->options);
	r = sb_strlist_check(&s->options, err);
	if (r < 0)
		return r;
	s->backend = SB_BACKEND_DOCKER;
	free(s->provider_state);
	s->provider_state = sb_dockerlink_state(l, err);
	return s->provider_state ? 0 : SB_E_NOMEM;
}

static struct sb_dockerlink *
link_of_state(struct docker_provider *p, const struct sb_state *s, struct sb_error *err)
{
	if (s->backend != SB_BACKEND_DOCKER) {
		(void)sb_fail(err, SB_E_BACKEND_INVALID,
			"sandbox %s is of backend %s, not of docker", s->sandbox_id,
			sb_backend_name(s->backend));
		return NULL;
	}
	return sb_dockerlink_open(s->sandbox_id, s->provider_state, sb_strlist_borrow(&s->options),
		p->c.state_dir, err);
}

/* Synced: the ssh provider makes a place in it. */
static int
prepare_synced(struct docker_provider *p, const struct sb_dockerlink *l,
	const struct sb_prepare_request *req, const struct sb_call *call, struct sb_prepared *out,
	struct sb_error *err)
{
	struct sb_prepare_request inner = *req;
	struct sb_profile profile = *req->profile;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	int r = ssh_options(l, &options, err);

	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	profile.network = (struct sb_network){ 0 };
	profile.persist = SB_PERSIST_TRANSIENT; /* how it ends is decided here */
	inner.profile = &profile;
	inner.provider_state = NULL;
	if (r == 0)
		r = sb_provider_prepare(p->ssh, &inner, call, out, err);
	if (r == 0) {
		out->state.persist = req->profile->persist;
		r = adopt(&out->state, l, err);
		if (r < 0)
			sb_prepared_free(out);
	}
	return r;
}

/* Mounted: the directories are the same, here and there. */
static int
prepare_mounted(struct docker_provider *p, struct sb_dockerlink *l,
	const struct sb_prepare_request *req, struct sb_prepared *out, struct sb_error *err)
{
	sb_auto(sb_prepared) struct sb_prepared made = { 0 };
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_sshlink *link = NULL;
	int r = sb_state_from_request(req, &made.state, err);

	if (r == 0)
		r = adopt(&made.state, l, err);
	if (r == 0)
		r = ssh_options(l, &options, err);
	if (r < 0)
		return r;
	free(made.state.instance_id);
	made.state.instance_id = strdup(l->name);
	made.state.runtime_root = strdup(req->local_root);
	sb_strlist_add_all(&made.state.runtime_dirs, req->local_dirs);
	r = sb_strlist_check(&made.state.runtime_dirs, err);
	if (r < 0 || !made.state.runtime_root || !made.state.instance_id)
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "out of memory");
	made.state.prepared_at = time(NULL);
	link = sb_sshlink_new(sb_strlist_borrow(&options), p->c.state_dir, err);
	r = link ? sb_sshlink_roots(link, req->local_root, req->local_dirs, err) : err->code;
	if (r == 0)
		r = sb_prepared_launch(req, &made, err);
	if (r == 0)
		made.launcher = sb_sshlink_launcher(link, req->local_root, err);
	if (made.launcher)
		made.tools = sb_sshlink_tools(link, req->permissions, err);
	sb_sshlink_unref(link);
	if (r < 0 || !made.tools)
		return r < 0 ? r : SB_E_NOMEM;
	*out = made;
	made = (struct sb_prepared){ 0 };
	return 0;
}

/* Says which program it took, and why, when nobody had named one. */
static void
tell(const struct sb_dockerlink *l, const struct sb_call *call)
{
	bool asked = l->why && strcmp(l->why, "as asked") == 0;

	if (call)
		sb_log(&call->log, asked ? SB_LOG_INFO : SB_LOG_WARN, "docker", "using %s (%s)",
			sb_dockerlink_label(l), l->why ? l->why : "as before");
}

static int
check_profile(const struct sb_profile *p, struct sb_error *err)
{
	if (sb_dockerlink_is_mounted(sb_strlist_borrow(&p->options)) && p->runtime_root)
		return sb_fail(err, SB_E_INVAL,
			"runtime_root does not go with sync: mounted, where directories have the "
			"same path inside");
	return 0;
}

/* What is on record stays: a profile that names another program or way wants another sandbox. */
static int
check_same(const struct sb_dockerlink *l, const char *const *options, struct sb_error *err)
{
	static const char *const kinds[] = { [SB_DOCKERLINK_SBX] = "sbx",
		[SB_DOCKERLINK_SANDBOX] = "docker-sandbox",
		[SB_DOCKERLINK_CONTAINER] = "container" };
	const char *const is[][2] = { { "kind", kinds[l->kind] },
		{ "engine",
			l->kind != SB_DOCKERLINK_CONTAINER ? NULL :
				l->engine.podman           ? "podman" :
							     "docker" },
		{ "sync", l->mounted ? "mounted" : "synced" } };

	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		const char *want = sb_strlist_get(options, is[i][0]);

		if (want && is[i][1] && strcmp(want, "auto") != 0 && strcmp(want, is[i][1]) != 0)
			return sb_fail(err, SB_E_STATE,
				"the profile wants %s: %s, but sandbox %s has %s: destroy it, or "
				"use another",
				is[i][0], want, l->id, is[i][1]);
	}
	return 0;
}

static int
docker_prepare(struct sb_provider *base, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct docker_provider *p = (struct docker_provider *)base;
	struct sb_capabilities can = SB_CAPABILITIES_INIT;
	const char *const *options = sb_strlist_borrow(&req->profile->options);
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = NULL;
	bool container = sb_dockerlink_guess(options) == SB_DOCKERLINK_CONTAINER;
	struct sb_error own = { 0 };
	int r;

	err = err ? err : &own;
	r = docker_capabilities(base, req->profile, &can, err);
	/* Of the other kinds it is known when one is made. */
	if (r == 0)
		r = sb_provider_check_request(req, SB_BACKEND_DOCKER,
			can.enforces_network || !container, err);
	if (r == 0)
		r = check_profile(req->profile, err);
	if (r < 0)
		return r;
	if (req->provider_state) {
		l = sb_dockerlink_open(req->sandbox_id, req->provider_state, options,
			p->c.state_dir, err);
		if (l)
			r = check_same(l, options, err);
	} else {
		l = sb_dockerlink_choose(req->sandbox_id, options, p->c.state_dir, call, err);
		if (l)
			tell(l, call);
	}
	if (r == 0)
		r = l ? sb_dockerlink_lock(l, call, err) : err->code;
	if (r == 0)
		r = sb_dockerlink_ensure(l, req, call, err);
	if (r == 0)
		r = l->mounted ? prepare_mounted(p, l, req, out, err) :
				 prepare_synced(p, l, req, call, out, err);
	/* Who has no time left leaves it to recover. */
	if (r < 0 && l && r != SB_E_CANCELED && r != SB_E_TIMEOUT)
		sb_dockerlink_unmake(l, call);
	return r;
}

/* Those of sbx and docker sandbox start by themselves. */
static int
start(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	return l->kind == SB_DOCKERLINK_CONTAINER ?
		sb_engine_start(&l->engine, l->name, l->paused, call, err) :
		0;
}

/* A sandbox that runs; one that was stopped (the machine was) is started. */
static int
wake(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	bool running;
	int r = sb_dockerlink_find(l, NULL, call, &running, err);

	return r == 0 && !running ? start(l, call, err) : r;
}

/* The state as the ssh provider wrote it; `options` is to be freed, the rest is borrowed. */
static int
as_ssh(const struct sb_dockerlink *l, const struct sb_state *s, struct sb_state *out,
	struct sb_strlist *options, struct sb_error *err)
{
	int r = ssh_options(l, options, err);

	*out = *s;
	out->backend = SB_BACKEND_SSH;
	out->persist = SB_PERSIST_TRANSIENT;
	out->options = *options;
	out->provider_state = NULL;
	return r;
}

static int
docker_sync(struct sb_provider *base, const struct sb_state *s, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct docker_provider *p = (struct docker_provider *)base;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = NULL;
	struct sb_error own = { 0 };
	struct sb_state inner;
	int r;

	err = err ? err : &own;
	memset(out, 0, sizeof *out);
	l = link_of_state(p, s, err);
	r = l ? 0 : err->code;
	if (r == 0 && l->mounted && way == SB_WAY_FROM_RUNTIME)
		r = sb_mounted_after(s, p->c.state_dir, o->dry_run || o->reason == SB_WHEN_TURN,
			call, out, err);
	else if (r == 0 && l->mounted && o->reason == SB_WHEN_START && !o->dry_run)
		r = sb_mounted_before(s, p->c.state_dir, call, out, err);
	out->direction = sb_way_name(way);
	out->reason = sb_when_name(o->reason);
	if (r < 0 || l->mounted)
		return r;
	r = wake(l, call, err);
	if (r == 0)
		r = as_ssh(l, s, &inner, &options, err);
	return r < 0 ? r : sb_provider_sync(p->ssh, &inner, way, o, call, out, err);
}

static int
docker_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return docker_sync(p, s, SB_WAY_TO_RUNTIME, o, call, out, err);
}

static int
docker_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return docker_sync(p, s, SB_WAY_FROM_RUNTIME, o, call, out, err);
}

/*
 * What is in the sandbox: 0 when its place is there, with its instance in `out` (freed by the
 * caller); SB_E_SANDBOX_NOT_FOUND when there is none.
 */
static int
find_place(struct docker_provider *p, const struct sb_dockerlink *l,
	const struct sb_find_request *like, const char *const *labels, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_find_request inner = *like;
	struct sb_profile profile = *like->profile;
	int r = ssh_options(l, &options, err);

	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	profile.persist = SB_PERSIST_TRANSIENT;
	inner.profile = &profile;
	inner.provider_state = NULL;
	inner.instance_id = NULL;
	inner.labels = labels;
	return r < 0 ? r : sb_provider_find(p->ssh, &inner, call, out, err);
}

/* Removes a synced sandbox, after a look at what is in it unless its files are given up. */
static int
destroy_synced(struct docker_provider *p, struct sb_dockerlink *l, bool running,
	const struct sb_state *s, bool discard, const struct sb_call *call, struct sb_error *err)
{
	struct sb_find_request like = SB_FIND_REQUEST_INIT;
	sb_auto(sb_profile) struct sb_profile profile = { 0 };
	sb_auto(sb_state) struct sb_state there = SB_STATE_INIT;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_state inner;
	int r = running ? 0 : start(l, call, err);

	if (r == 0)
		r = sb_profile_default(SB_BACKEND_DOCKER, NULL, &profile, err);
	if (r < 0)
		return r;
	like.sandbox_id = s->sandbox_id;
	like.local_root = s->local_root;
	like.local_dirs = sb_strlist_borrow(&s->local_dirs);
	like.profile = &profile;
	r = find_place(p, l, &like, NULL, call, &there, err);
	/* A later sandbox of the same name is not the one that is to go. */
	if (r == 0 && s->instance_id && there.instance_id &&
		strcmp(s->instance_id, there.instance_id) != 0)
		return sb_pairs_forget(s, p->c.state_dir, err);
	if (r == 0 && !discard) {
		r = as_ssh(l, s, &inner, &options, err);
		if (r == 0)
			r = sb_provider_destroy(p->ssh, &inner, false, call, err);
	}
	if (discard && (r == SB_E_SANDBOX_NOT_FOUND || r == SB_E_UNSUPPORTED))
		r = 0; /* nothing of ours is in it, or its shell does not even start */
	if (r == SB_E_SANDBOX_NOT_FOUND)
		r = 0;
	return r < 0 ? r : sb_dockerlink_remove(l, call, err);
}

static int
end(struct docker_provider *p, struct sb_dockerlink *l, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	bool running;
	int r;

	if (s->persist == SB_PERSIST_ARCHIVE && !discard)
		return sb_dockerlink_archive(l, call, err);
	r = sb_dockerlink_find(l, NULL, call, &running, err);
	if (r == SB_E_SANDBOX_NOT_FOUND || (r == 0 && l->mounted))
		r = sb_dockerlink_remove(l, call, err);
	else if (r == 0)
		r = destroy_synced(p, l, running, s, discard, call, err);
	return r < 0 ? r : sb_pairs_forget(s, p->c.state_dir, err);
}

static int
docker_destroy(struct sb_provider *base, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct docker_provider *p = (struct docker_provider *)base;
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = NULL;
	struct sb_error own = { 0 };
	int r;

	err = err ? err : &own;
	/* What the record forbids needs no program. */
	r = discard ? 0 : sb_pairs_check_record(s, p->c.state_dir, err);
	if (r < 0 || (s->persist == SB_PERSIST_REUSE && !discard))
		return r;
	l = link_of_state(p, s, err);
	r = l ? sb_dockerlink_lock(l, call, err) : err->code;
	return r < 0 ? r : end(p, l, s, discard, call, err);
}

/* The state of one that is there, but not (any more) its place in it: all that is known of it. */
static int
bare_state(const struct sb_find_request *req, const struct sb_dockerlink *l, struct sb_state *out,
	struct sb_error *err)
{
	struct sb_prepare_request like = SB_PREPARE_REQUEST_INIT;
	int r;

	like.sandbox_id = req->sandbox_id;
	like.session_id = req->session_id;
	like.workspace_id = req->workspace_id;
	like.instance_id = req->instance_id;
	like.local_root = req->local_root;
	like.local_dirs = req->local_dirs;
	like.profile = req->profile;
	like.permissions = req->profile->permissions;
	r = sb_state_from_request(&like, out, err);
	if (r < 0)
		return r;
	free(out->runtime_root);
	out->runtime_root = strdup(l->mounted && req->local_root ? req->local_root : "/");
	if (l->mounted && !out->instance_id)
		out->instance_id = strdup(l->name);
	sb_strlist_free(&out->runtime_dirs);
	sb_strlist_add_all(&out->runtime_dirs, req->local_dirs);
	r = sb_strlist_check(&out->runtime_dirs, err);
	return r == 0 && !out->runtime_root ? sb_fail(err, SB_E_NOMEM, "out of memory") : r;
}

static int
docker_find(struct sb_provider *base, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	struct docker_provider *p = (struct docker_provider *)base;
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = NULL;
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error own = { 0 };
	bool running = false;
	int r;

	err = err ? err : &own;
	if (!req->profile || req->profile->backend != SB_BACKEND_DOCKER)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"find: the profile is not one of backend docker");
	l = req->provider_state ?
		sb_dockerlink_open(req->sandbox_id, req->provider_state,
			sb_strlist_borrow(&req->profile->options), p->c.state_dir, err) :
		sb_dockerlink_choose(req->sandbox_id, sb_strlist_borrow(&req->profile->options),
			p->c.state_dir, call, err);
	r = l ? sb_dockerlink_lock(l, call, err) : err->code;
	if (r == 0)
		r = sb_dockerlink_find(l, req->labels, call, &running, err);
	if (r < 0)
		return r;
	r = running && !l->mounted ? find_place(p, l, req, NULL, call, &s, err) :
				     SB_E_SANDBOX_NOT_FOUND;
	/* What has no labels of its own has those of its place. */
	if (r == 0 && req->labels && l->kind != SB_DOCKERLINK_CONTAINER) {
		sb_state_free(&s);
		r = find_place(p, l, req, req->labels, call, &s, err);
		if (r < 0)
			return r;
	}
	if (r == 0)
		s.persist = req->profile->persist;
	if (r == 0 && req->instance_id && s.instance_id &&
		strcmp(req->instance_id, s.instance_id) != 0)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: another instance of %s is there",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), req->sandbox_id);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		r = bare_state(req, l, &s, err);
	if (r == 0)
		r = adopt(&s, l, err);
	if (r < 0)
		return r;
	s.life = SB_LIFE_FOUND;
	*out = s;
	s = (struct sb_state)SB_STATE_INIT;
	return 0;
}

static void
docker_free(struct sb_provider *base)
{
	struct docker_provider *p = (struct docker_provider *)base;

	sb_provider_free(p->ssh);
	sb_provider_common_free(&p->c);
}

static const struct sb_provider_ops docker_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "a sandbox of sbx or docker sandbox, or a container of docker or podman",
	.backend = SB_BACKEND_DOCKER,
	.state_version = 1,
	.options = sb_dockerlink_options,
	.capabilities = docker_capabilities,
	.prepare = docker_prepare,
	.sync_to_runtime = docker_sync_to,
	.sync_from_runtime = docker_sync_from,
	.destroy = docker_destroy,
	.find = docker_find,
	.free = docker_free,
};

struct sb_provider *
sb_provider_docker_new(const struct sb_builtin_opts *o, struct sb_error *err)
{
	struct docker_provider *p = sb_provider_common_new(sizeof *p, &docker_ops, o, err);

	if (!p)
		return NULL;
	p->ssh = sb_provider_ssh_new(o, err);
	if (!p->ssh) {
		docker_free(&p->c.base);
		return NULL;
	}
	return &p->c.base;
}
