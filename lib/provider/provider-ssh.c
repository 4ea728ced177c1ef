/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes on another machine, over SSH: a folder there, the agent, and a connection that is
 * kept.
 */
#include "config.h"

#include <provider/provider.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <provider/pairs.h>
#include <provider/sshlink.h>

#define STATE_TEXT "{\"version\":1}"
/*
 * Connections that nobody uses are kept up to this number: a stop is followed by a sync and a
 * destroy.
 */
#define IDLE_MAX 4

/* The connection of one sandbox. */
struct ssh_entry {
	struct ssh_entry *next;
	char *id;
	struct sb_sshlink *link;
	unsigned users; /* calls under way */
};

struct ssh_provider {
	struct sb_provider_common c;
	struct ssh_entry *entries; /* latest first */
};

static void
entry_free(struct ssh_entry *e)
{
	sb_sshlink_unref(e->link);
	free(e->id);
	free(e);
}

/*
 * Takes connections that no call uses out of the list until IDLE_MAX are left, and returns them for
 * the caller to free. With the lock held.
 */
static struct ssh_entry *
trim(struct ssh_provider *p)
{
	struct ssh_entry **at = &p->entries, *gone = NULL;
	unsigned idle = 0;

	while (*at) {
		struct ssh_entry *e = *at;

		if (!e->users && ++idle > IDLE_MAX) {
			*at = e->next;
			e->next = gone;
			gone = e;
		} else {
			at = &e->next;
		}
	}
	return gone;
}

/* The sandbox's connection, for one call. */
static struct ssh_entry *
enter(struct ssh_provider *p, const char *id, const char *const *options, struct sb_error *err)
{
	struct ssh_entry *e;

	(void)pthread_mutex_lock(&p->c.mu);
	for (e = p->entries; e && strcmp(e->id, id) != 0; e = e->next)
		;
	if (!e) {
		e = calloc(1, sizeof *e);
		if (e)
			e->id = strdup(id);
		if (e && e->id)
			e->link = sb_sshlink_new(options, p->c.state_dir, err);
		if (e && e->link) {
			e->next = p->entries;
			p->entries = e;
		} else if (e) {
			if (!e->id)
				sb_fail(err, SB_E_NOMEM, "out of memory");
			entry_free(e);
			e = NULL;
		} else {
			sb_fail(err, SB_E_NOMEM, "out of memory");
		}
	}
	if (e)
		e->users++;
	(void)pthread_mutex_unlock(&p->c.mu);
	return e;
}

static void
leave(struct ssh_provider *p, struct ssh_entry *e)
{
	struct ssh_entry *gone;

	(void)pthread_mutex_lock(&p->c.mu);
	e->users--;
	gone = trim(p);
	(void)pthread_mutex_unlock(&p->c.mu);
	while (gone) {
		struct ssh_entry *next = gone->next;

		entry_free(gone);
		gone = next;
	}
}

/* The sandbox is gone: its connection goes too, once no call uses it. */
static void
drop(struct ssh_provider *p, const char *id)
{
	struct ssh_entry **at, *gone = NULL;

	(void)pthread_mutex_lock(&p->c.mu);
	for (at = &p->entries; *at; at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0 && !(*at)->users) {
			gone = *at;
			*at = gone->next;
			break;
		}
	(void)pthread_mutex_unlock(&p->c.mu);
	if (gone)
		entry_free(gone);
}

static int
check_state(const struct sb_state *s, struct sb_error *err)
{
	if (s->backend != SB_BACKEND_SSH)
		return sb_fail(err, SB_E_BACKEND_INVALID, "sandbox %s is of backend %s, not of ssh",
			s->sandbox_id, sb_backend_name(s->backend));
	return 0;
}

static int
ssh_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	(void)p;
	(void)profile;
	(void)err;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->remote = true;
	out->syncs = true;
	out->find = true;
	out->streaming = true;
	out->tty = true;
	out->isolation = "machine";
	return 0;
}

static int
make_labels(const char *sandbox_id, const char *session_id, struct sb_strlist *out,
	struct sb_error *err)
{
	sb_strlist_putf(out, SB_LABEL_SANDBOX "=%s", sandbox_id);
	if (session_id)
		sb_strlist_putf(out, SB_LABEL_SESSION "=%s", session_id);
	return sb_strlist_check(out, err);
}

/* Copies what the far side said about the sandbox into the state. */
static int
fill_state(const struct sb_place *place, struct sb_state *s, struct sb_error *err)
{
	int r;

	free(s->instance_id);
	free(s->runtime_root);
	free(s->provider_state);
	sb_strlist_free(&s->runtime_dirs);
	s->instance_id = strdup(place->instance);
	s->runtime_root = strdup(place->root);
	s->provider_state = strdup(STATE_TEXT);
	sb_strlist_join(&s->runtime_dirs, &place->dirs);
	r = sb_strlist_check(&s->runtime_dirs, err);
	if (r == 0 && (!s->instance_id || !s->runtime_root || !s->provider_state))
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	/* Made once, with as many directories as there were then. */
	if (r == 0 && s->local_dirs.n != place->dirs.n)
		r = sb_fail(err, SB_E_INVAL,
			"sandbox %s was made with %zu further directories, now there are %zu: "
			"destroy it first",
			s->sandbox_id, place->dirs.n, s->local_dirs.n);
	return r;
}

static int
prepare_in(struct sb_sshlink *b, const struct sb_prepare_request *req, const struct sb_call *call,
	struct sb_prepared *made, struct sb_error *err)
{
	struct sb_place_wish w = { .id = req->sandbox_id,
		.instance = req->instance_id,
		.root = req->profile->runtime_root,
		.names = req->local_dirs,
		.may_create = req->may_create };
	sb_auto(sb_place) struct sb_place place = { 0 };
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	int r = make_labels(req->sandbox_id, req->session_id, &labels, err);

	w.labels = sb_strlist_borrow(&labels);
	if (r == 0)
		r = sb_sshlink_prepare(b, &w, call, &place, err);
	if (r == 0)
		r = fill_state(&place, &made->state, err);
	if (r == 0)
		r = sb_sshlink_roots(b, place.root, sb_strlist_borrow(&place.dirs), err);
	if (r == 0)
		r = sb_prepared_launch(req, made, err);
	if (r < 0)
		return r;
	made->state.prepared_at = time(NULL);
	made->launcher = sb_sshlink_launcher(b, place.root, err);
	made->tools = made->launcher ? sb_sshlink_tools(b, req->permissions, err) : NULL;
	return made->tools ? 0 : SB_E_NOMEM;
}

static int
ssh_prepare(struct sb_provider *base, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct ssh_provider *p = (struct ssh_provider *)base;
	sb_auto(sb_prepared) struct sb_prepared made = { 0 };
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	struct sb_error own = { 0 };
	struct ssh_entry *e;
	int r;

	err = err ? err : &own;
	r = sb_provider_check_request(req, SB_BACKEND_SSH, false, err);
	if (r == 0)
		r = sb_sshlink_sync_opts(sb_strlist_borrow(&req->profile->options), &reach, err);
	if (r == 0)
		r = sb_state_from_request(req, &made.state, err);
	if (r == 0)
		r = check_state(&made.state, err);
	if (r < 0)
		return r;
	e = enter(p, req->sandbox_id, sb_strlist_borrow(&req->profile->options), err);
	if (!e)
		return err->code;
	r = prepare_in(e->link, req, call, &made, err);
	leave(p, e);
	if (r < 0)
		return r;
	*out = made;
	made = (struct sb_prepared){ 0 };
	return 0;
}

/* Fills in what libsbsync needs for this sandbox. The caller frees `remote`. */
static int
make_pairs(struct ssh_provider *p, struct ssh_entry *e, const struct sb_state *s,
	const struct sb_call *call, struct sb_sync_opts *reach, char **remote, struct sb_pairs *out,
	struct sb_error *err)
{
	int r = sb_sshlink_sync_opts(sb_strlist_borrow(&s->options), reach, err);

	if (r < 0)
		return r;
	reach->conn = sb_sshlink_conn(e->link, call, err);
	if (!reach->conn)
		return err->code;
	reach->state_dir = p->c.state_dir;
	*remote = sb_sshlink_endpoint(sb_strlist_borrow(&s->options), s->runtime_root, err);
	if (!*remote)
		return err->code;
	*out = (struct sb_pairs){ .state = s, .remote = *remote, .reach = reach };
	return 0;
}

static int
ssh_sync(struct sb_provider *base, const struct sb_state *s, enum sb_way dir,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct ssh_provider *p = (struct ssh_provider *)base;
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	sb_autofree char *remote = NULL;
	struct sb_error own = { 0 };
	struct sb_pairs pairs;
	struct ssh_entry *e;
	int r;

	err = err ? err : &own;
	memset(out, 0, sizeof *out);
	out->direction = sb_way_name(dir);
	out->reason = sb_when_name(o->reason);
	r = check_state(s, err);
	if (r < 0 || s->sync_mode == SB_SYNC_MODE_NONE)
		return r;
	e = enter(p, s->sandbox_id, sb_strlist_borrow(&s->options), err);
	if (!e)
		return err->code;
	r = make_pairs(p, e, s, call, &reach, &remote, &pairs, err);
	if (r == 0)
		r = sb_pairs_sync(&pairs, dir, o, call, out, err);
	leave(p, e);
	return r;
}

static int
ssh_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return ssh_sync(p, s, SB_WAY_TO_RUNTIME, o, call, out, err);
}

static int
ssh_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return ssh_sync(p, s, SB_WAY_FROM_RUNTIME, o, call, out, err);
}

static int
destroy_in(struct ssh_provider *p, struct ssh_entry *e, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	sb_autofree char *remote = NULL;
	sb_auto(sb_place) struct sb_place place = { 0 };
	struct sb_pairs pairs;
	int r = sb_sshlink_find(e->link, s->sandbox_id, s->instance_id, NULL, call, &place, err);

	if (r == 0 && !discard) {
		r = make_pairs(p, e, s, call, &reach, &remote, &pairs, err);
		if (r == 0)
			r = sb_pairs_check_back(&pairs, call, err);
	}
	/* One that is not there may be one whose removal was cut: it goes on. */
	if (r == 0 || r == SB_E_SANDBOX_NOT_FOUND)
		r = sb_sshlink_destroy(e->link, s->sandbox_id, s->instance_id, call, err);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		r = 0;
	return r < 0 ? r : sb_pairs_forget(s, p->c.state_dir, err);
}

static int
ssh_destroy(struct sb_provider *base, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct ssh_provider *p = (struct ssh_provider *)base;
	struct sb_error own = { 0 };
	struct ssh_entry *e;
	int r;

	err = err ? err : &own;
	r = check_state(s, err);
	/* What the record forbids needs no connection. */
	if (r == 0 && !discard)
		r = sb_pairs_check_record(s, p->c.state_dir, err);
	if (r < 0)
		return r;
	if (s->persist != SB_PERSIST_TRANSIENT) {
		/* It stays; the connection is needed no more. */
		drop(p, s->sandbox_id);
		return 0;
	}
	e = enter(p, s->sandbox_id, sb_strlist_borrow(&s->options), err);
	if (!e)
		return err->code;
	r = destroy_in(p, e, s, discard, call, err);
	leave(p, e);
	if (r == 0)
		drop(p, s->sandbox_id);
	return r;
}

/* The state of a sandbox that was found. */
static int
found_state(const struct sb_find_request *req, const struct sb_place *place, struct sb_state *out,
	struct sb_error *err)
{
	struct sb_prepare_request like = SB_PREPARE_REQUEST_INIT;
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	int r;

	like.sandbox_id = req->sandbox_id;
	like.session_id = req->session_id;
	like.workspace_id = req->workspace_id;
	like.local_root = req->local_root;
	like.local_dirs = req->local_dirs;
	like.profile = req->profile;
	like.permissions = req->profile->permissions;
	r = sb_state_from_request(&like, &s, err);
	if (r == 0)
		r = fill_state(place, &s, err);
	if (r < 0)
		return r;
	s.life = SB_LIFE_FOUND;
	*out = s;
	s = (struct sb_state)SB_STATE_INIT;
	return 0;
}

static int
ssh_find(struct sb_provider *base, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	struct ssh_provider *p = (struct ssh_provider *)base;
	sb_auto(sb_place) struct sb_place place = { 0 };
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	struct sb_error own = { 0 };
	struct ssh_entry *e;
	int r;

	err = err ? err : &own;
	if (!req->profile || req->profile->backend != SB_BACKEND_SSH)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"find: the profile is not one of backend ssh");
	r = sb_sshlink_sync_opts(sb_strlist_borrow(&req->profile->options), &reach, err);
	if (r < 0)
		return r;
	e = enter(p, req->sandbox_id, sb_strlist_borrow(&req->profile->options), err);
	if (!e)
		return err->code;
	r = sb_sshlink_find(e->link, req->sandbox_id, req->instance_id, req->labels, call, &place,
		err);
	leave(p, e);
	return r < 0 ? r : found_state(req, &place, out, err);
}

static int
ssh_probe(struct sb_provider *base, const struct sb_profile *profile, const struct sb_call *call,
	struct sb_strlist *out, struct sb_error *err)
{
	struct ssh_provider *p = (struct ssh_provider *)base;
	struct sb_sshlink *link =
		sb_sshlink_new(sb_strlist_borrow(&profile->options), p->c.state_dir, err);
	struct sb_conn *c = link ? sb_sshlink_conn(link, call, err) : NULL;

	if (c)
		sb_strlist_addf(out, "logged in as %s", sb_conn_name(c));
	sb_sshlink_unref(link);
	return c ? 0 : (err ? err->code : SB_E_CONNECT);
}

static void
ssh_free(struct sb_provider *base)
{
	struct ssh_provider *p = (struct ssh_provider *)base;

	while (p->entries) {
		struct ssh_entry *next = p->entries->next;

		entry_free(p->entries);
		p->entries = next;
	}
	sb_provider_common_free(&p->c);
}

static const struct sb_provider_ops ssh_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "a machine reached by SSH",
	.backend = SB_BACKEND_SSH,
	.options = sb_sshlink_options,
	.capabilities = ssh_capabilities,
	.prepare = ssh_prepare,
	.sync_to_runtime = ssh_sync_to,
	.sync_from_runtime = ssh_sync_from,
	.destroy = ssh_destroy,
	.find = ssh_find,
	.free = ssh_free,
	.state_version = 1,
	.probe = ssh_probe,
};

struct sb_provider *
sb_provider_ssh_new(const struct sb_builtin_opts *o, struct sb_error *err)
{
	return sb_provider_common_new(sizeof(struct ssh_provider), &ssh_ops, o, err);
}
