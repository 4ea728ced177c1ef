/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes of E2B, or of a host that speaks its API. There is no SSH there: `sbctl e2b attach`,
 * which this process does itself (e2blink.c), is the remote shell with which the ssh provider does
 * most of the work. This file makes, finds, pauses and kills them. Nothing of a secret is in what a
 * sandbox is made with: programs get theirs when they are launched.
 */
#include "config.h"

#include <provider/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cloud/http/json.h>
#include <provider/e2blink.h>
#include <provider/pairs.h>
#include <provider/toolset.h>

#define ROOT "work" /* in the home directory there */
#define KILL_MS 30000
#define BARE_ROOT "/" /* of one that nobody has looked into */
#define LABEL_NETWORK "sb_network"

struct e2b_provider {
	struct sb_provider_common c;
	struct sb_provider *ssh;
};

/* One sandbox during one call. */
struct visit {
	struct sb_e2blink *link;
	struct sb_rest_wait wait;
	char *id; /* the service's; NULL: not known */
};

static void
visit_end(struct visit *v)
{
	sb_e2blink_free(v->link);
	free(v->id);
}
SB_CLEANUP_VALUE(visit, visit_end)

/* The service's id in a state, a new string; NULL: there is none. */
static char *
id_of(const char *provider_state)
{
	json_t *v =
		provider_state ? sb_json_parse(provider_state, strlen(provider_state), NULL) : NULL;
	const char *id = sb_json_get(v, "sandbox");
	char *copy = id ? strdup(id) : NULL;

	json_decref(v);
	return copy;
}

static int
visit_begin(struct visit *v, const char *const *options, const char *provider_state,
	const struct sb_call *call, struct sb_error *err)
{
	v->link = sb_e2blink_open(options, call ? &call->log : NULL, err);
	v->wait = (struct sb_rest_wait){ sb_call_cancel(call), sb_call_deadline(call) };
	v->id = id_of(provider_state);
	return v->link ? 0 : err->code;
}

static int
e2b_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	(void)p;
	(void)profile;
	(void)err;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->remote = true;
	out->syncs = true;
	out->find = true;
	out->pause = true;
	out->streaming = true;
	out->tty = true;
	out->isolation = "vm";
	out->enforces_network = true;
	out->enforces_lists = true;
	return 0;
}

/* The options that the ssh provider gets: the sandbox as its host. */
static int
ssh_options(const struct visit *v, struct sb_strlist *out, struct sb_error *err)
{
	sb_autofree char *rsh = sb_e2blink_rsh(v->link, err);

	if (!rsh)
		return SB_E_NOMEM;
	sb_strlist_putf(out, "host=%s", v->id);
	sb_strlist_putf(out, "rsh=%s", rsh);
	return sb_strlist_check(out, err);
}

static int
not_found(const char *sandbox_id, struct sb_error *err)
{
	return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: %s", sb_code_text(SB_E_SANDBOX_NOT_FOUND),
		sandbox_id);
}

/* The service's id by the labels of ours. */
static int
look(struct visit *v, const char *sandbox_id, const char *const *labels, bool *running,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist own = { 0 };
	int r;

	sb_strlist_addf(&own, SB_LABEL_SANDBOX "=%s", sandbox_id);
	sb_strlist_add_all(&own, labels);
	r = sb_strlist_check(&own, err);
	free(v->id);
	v->id = NULL;
	return r < 0 ? r :
		       sb_e2bapi_find(sb_e2blink_api(v->link), sb_strlist_borrow(&own), &v->wait,
			       &v->id, running, err);
}

static void
add_to_sum(uint64_t *sum, const struct sb_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (const char *p = l->v[i];; p++) {
			*sum = (*sum ^ (unsigned char)*p) * UINT64_C(1099511628211);
			if (!*p)
				break;
		}
	*sum = (*sum ^ 0xff) * UINT64_C(1099511628211);
}

/*
 * What a sandbox of this profile may reach, in one word: "on", "off", or lists by their sum. Only
 * we write it, so a sum is enough to see that lists are others.
 */
static void
network_word(const struct sb_network *n, char out[40])
{
	uint64_t sum = UINT64_C(14695981039346656037);

	if (!n->allow_list.n && !n->deny_list.n) {
		(void)snprintf(out, 40, "%s", n->allow_outbound || !n->required ? "on" : "off");
		return;
	}
	add_to_sum(&sum, &n->allow_list);
	add_to_sum(&sum, &n->deny_list);
	(void)snprintf(out, 40, "%s %016llx", n->allow_outbound ? "on" : "lists",
		(unsigned long long)sum);
}

/* A sandbox keeps the network that it was made with; one that has less is no answer, too. */
static int
check_network(const struct visit *v, const struct sb_prepare_request *req, struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	json_t *metadata = NULL;
	const char *have;
	char want[40];
	bool running;
	int r;

	if (!n->required && !n->allow_list.n && !n->deny_list.n)
		return 0;
	network_word(n, want);
	r = sb_e2bapi_get(sb_e2blink_api(v->link), v->id, &v->wait, &running, &metadata, err);
	have = sb_json_get(metadata, LABEL_NETWORK);
	if (r == 0 && (!have || strcmp(have, want) != 0))
		r = sb_fail(err, SB_E_NETWORK_POLICY,
			"the profile requires network %s, but sandbox %s was made with network %s: "
			"destroy it, or use another",
			want, req->sandbox_id, have ? have : "unknown");
	json_decref(metadata);
	return r;
}

static int
create(struct visit *v, const struct sb_prepare_request *req, struct sb_e2bapi_box *box,
	struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	struct sb_e2bapi_wish w = { .template = sb_e2blink_template(v->link),
		.timeout_s = sb_e2blink_timeout(v->link),
		/* What nobody forbids is as the service has it. */
		.internet = n->allow_outbound || !n->required,
		.allow = sb_strlist_borrow(&n->allow_list),
		.deny = sb_strlist_borrow(&n->deny_list) };
	char network[40];
	int r;

	network_word(n, network);
	sb_strlist_addf(&labels, SB_LABEL_SANDBOX "=%s", req->sandbox_id);
	sb_strlist_addf(&labels, LABEL_NETWORK "=%s", network);
	if (req->session_id)
		sb_strlist_addf(&labels, SB_LABEL_SESSION "=%s", req->session_id);
	r = sb_strlist_check(&labels, err);
	w.metadata = sb_strlist_borrow(&labels);
	return r < 0 ? r : sb_e2bapi_create(sb_e2blink_api(v->link), &w, &v->wait, box, err);
}

/* The sandbox is there and runs afterwards; `made`: by this call. */
static int
ensure(struct visit *v, const struct sb_prepare_request *req, bool *made, struct sb_error *err)
{
	sb_auto(sb_e2bapi_box) struct sb_e2bapi_box box = { 0 };
	int64_t timeout = sb_e2blink_timeout(v->link);
	bool running;
	int r = SB_E_SANDBOX_NOT_FOUND;

	*made = false;
	if (v->id)
		r = sb_e2bapi_connect(sb_e2blink_api(v->link), v->id, timeout, &v->wait, &box, err);
	/* Also what a call before this one made without hearing of it. */
	if (r == SB_E_SANDBOX_NOT_FOUND) {
		r = look(v, req->sandbox_id, NULL, &running, err);
		if (r == 0)
			r = sb_e2bapi_connect(sb_e2blink_api(v->link), v->id, timeout, &v->wait,
				&box, err);
	}
	if (r == 0)
		r = check_network(v, req, err);
	if (r == 0)
		return sb_e2blink_sweep(v->link, &box, &v->wait, err);
	if (r != SB_E_SANDBOX_NOT_FOUND)
		return r;
	if (!req->may_create)
		return not_found(req->sandbox_id, err);
	r = create(v, req, &box, err);
	if (r < 0)
		return r;
	*made = true;
	free(v->id);
	v->id = box.id;
	box.id = NULL;
	return 0;
}

/* Back from the ssh provider: the backend is ours, and so are options and persistence. */
static int
adopt(struct sb_state *s, const struct visit *v, const struct sb_profile *own, struct sb_error *err)
{
	json_t *text = json_pack("{s:i, s:s}", "version", 1, "sandbox", v->id);
	int r;

	s->persist = own->persist;
	s->backend = SB_BACKEND_E2B;
	sb_strlist_free(&s->options);
	sb_strlist_join(&s->options, &own->options);
	r = sb_strlist_check(&s->options, err);
	free(s->provider_state);
	s->provider_state = text ? json_dumps(text, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(text);
	return r == 0 && !s->provider_state ? sb_fail(err, SB_E_NOMEM, "out of memory") : r;
}

/* The place in it, by the ssh provider. */
static int
prepare_in(struct e2b_provider *p, const struct visit *v, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct sb_prepare_request inner = *req;
	struct sb_profile profile = *req->profile;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	int r = ssh_options(v, &options, err);

	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	profile.network = (struct sb_network){ 0 };
	profile.persist = SB_PERSIST_TRANSIENT; /* how it ends is decided here */
	if (!profile.runtime_root)
		profile.runtime_root = (char *)(uintptr_t)ROOT;
	inner.profile = &profile;
	inner.provider_state = NULL;
	if (r == 0)
		r = sb_provider_prepare(p->ssh, &inner, call, out, err);
	if (r == 0) {
		r = adopt(&out->state, v, req->profile, err);
		if (r < 0)
			sb_prepared_free(out);
	}
	return r;
}

static int
e2b_prepare(struct sb_provider *base, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct e2b_provider *p = (struct e2b_provider *)base;
	sb_auto(visit) struct visit v = { 0 };
	struct sb_error own = { 0 };
	bool made = false;
	int r;

	err = err ? err : &own;
	r = sb_provider_check_request(req, SB_BACKEND_E2B, true, err);
	if (r == 0)
		r = sb_provider_check_archive(base, req->profile, err);
	if (r == 0)
		r = visit_begin(&v, sb_strlist_borrow(&req->profile->options), req->provider_state,
			call, err);
	if (r == 0)
		r = ensure(&v, req, &made, err);
	if (r == 0)
		r = prepare_in(p, &v, req, call, out, err);
	/* What was made for nothing goes; who has no time left leaves it to recover. */
	if (r < 0 && made && r != SB_E_CANCELED && r != SB_E_TIMEOUT) {
		struct sb_rest_wait w = { v.wait.cancel, sb_deadline_in(KILL_MS) };

		(void)sb_e2bapi_kill(sb_e2blink_api(v.link), v.id, &w, NULL);
	}
	return r;
}

/* The state as the ssh provider wrote it; `options` is to be freed, the rest is borrowed. */
static int
as_ssh(const struct visit *v, const struct sb_state *s, struct sb_state *out,
	struct sb_strlist *options, struct sb_error *err)
{
	int r = ssh_options(v, options, err);

	*out = *s;
	out->backend = SB_BACKEND_SSH;
	out->persist = SB_PERSIST_TRANSIENT;
	out->options = *options;
	out->provider_state = NULL;
	return r;
}

static int
visit_state(struct visit *v, const struct sb_state *s, const struct sb_call *call,
	struct sb_error *err)
{
	int r;

	if (s->backend != SB_BACKEND_E2B)
		return sb_fail(err, SB_E_BACKEND_INVALID, "sandbox %s is of backend %s, not of e2b",
			s->sandbox_id, sb_backend_name(s->backend));
	r = visit_begin(v, sb_strlist_borrow(&s->options), s->provider_state, call, err);
	if (r == 0 && !v->id)
		r = sb_fail(err, SB_E_INVAL, "the state of sandbox %s does not name one of e2b",
			s->sandbox_id);
	return r;
}

/*
 * It runs, for a while at least, and what a killed process of ours left running there is gone: an
 * agent among it would hold the place.
 */
static int
wake(const struct visit *v, struct sb_error *err)
{
	sb_auto(sb_e2bapi_box) struct sb_e2bapi_box box = { 0 };
	int r = sb_e2bapi_connect(sb_e2blink_api(v->link), v->id, sb_e2blink_timeout(v->link),
		&v->wait, &box, err);

	return r < 0 ? r : sb_e2blink_sweep(v->link, &box, &v->wait, err);
}

static int
e2b_sync(struct sb_provider *base, const struct sb_state *s, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct e2b_provider *p = (struct e2b_provider *)base;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	sb_auto(visit) struct visit v = { 0 };
	struct sb_error own = { 0 };
	struct sb_state inner;
	int r;

	err = err ? err : &own;
	memset(out, 0, sizeof *out);
	out->direction = sb_way_name(way);
	out->reason = sb_when_name(o->reason);
	if (s->backend == SB_BACKEND_E2B && s->sync_mode == SB_SYNC_MODE_NONE)
		return 0;
	r = visit_state(&v, s, call, err);
	if (r == 0)
		r = wake(&v, err);
	if (r == 0)
		r = as_ssh(&v, s, &inner, &options, err);
	return r < 0 ? r : sb_provider_sync(p->ssh, &inner, way, o, call, out, err);
}

static int
e2b_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return e2b_sync(p, s, SB_WAY_TO_RUNTIME, o, call, out, err);
}

static int
e2b_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return e2b_sync(p, s, SB_WAY_FROM_RUNTIME, o, call, out, err);
}

static int
find_in(struct e2b_provider *p, const struct visit *v, const struct sb_find_request *req,
	const struct sb_call *call, struct sb_state *out, struct sb_error *err)
{
	struct sb_find_request inner = *req;
	struct sb_profile profile = *req->profile;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	int r = ssh_options(v, &options, err);

	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	profile.persist = SB_PERSIST_TRANSIENT;
	inner.profile = &profile;
	inner.provider_state = NULL;
	inner.labels = NULL; /* they are the service's */
	return r < 0 ? r : sb_provider_find(p->ssh, &inner, call, out, err);
}

/* What a search found without looking into it: the state as the place over there has it. */
static int
look_into(struct e2b_provider *p, const struct visit *v, const struct sb_state *s,
	const struct sb_call *call, struct sb_state *out, struct sb_error *err)
{
	struct sb_find_request like = SB_FIND_REQUEST_INIT;
	sb_auto(sb_profile) struct sb_profile profile = { 0 };
	int r = sb_profile_default(SB_BACKEND_E2B, NULL, &profile, err);

	like.sandbox_id = s->sandbox_id;
	like.local_root = s->local_root;
	like.local_dirs = sb_strlist_borrow(&s->local_dirs);
	like.profile = &profile;
	return r < 0 ? r : find_in(p, v, &like, call, out, err);
}

/* Is there anything over there that is not here? */
static int
check_back(struct e2b_provider *p, const struct visit *v, const struct sb_state *s,
	struct sb_state *inner, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_state) struct sb_state there = SB_STATE_INIT;
	int r = wake(v, err);

	if (r == 0 && s->runtime_root && strcmp(s->runtime_root, BARE_ROOT) == 0) {
		r = look_into(p, v, s, call, &there, err);
		inner->runtime_root = there.runtime_root;
		inner->runtime_dirs = there.runtime_dirs;
		inner->instance_id = there.instance_id;
	}
	if (r == 0)
		r = sb_provider_destroy(p->ssh, inner, false, call, err);
	return r == SB_E_SANDBOX_NOT_FOUND ? 0 : r;
}

/* Ends the connection that the ssh provider keeps: one that stays is used no more. */
static void
let_go(struct e2b_provider *p, const struct sb_state *inner, const struct sb_call *call)
{
	struct sb_state kept = *inner;

	kept.persist = SB_PERSIST_REUSE;
	(void)sb_provider_destroy(p->ssh, &kept, true, call, NULL);
}

static int
end(struct e2b_provider *p, struct visit *v, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_state inner;
	int r = as_ssh(v, s, &inner, &options, err);

	if (r < 0)
		return r;
	if (s->persist != SB_PERSIST_TRANSIENT) {
		let_go(p, &inner, call);
		r = sb_e2bapi_pause(sb_e2blink_api(v->link), v->id, &v->wait, err);
		return r == SB_E_SANDBOX_NOT_FOUND ? 0 : r;
	}
	if (!discard)
		r = check_back(p, v, s, &inner, call, err);
	else
		let_go(p, &inner, call);
	if (r == 0)
		r = sb_e2bapi_kill(sb_e2blink_api(v->link), v->id, &v->wait, err);
	return r < 0 ? r : sb_pairs_forget(s, p->c.state_dir, err);
}

static int
e2b_destroy(struct sb_provider *base, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct e2b_provider *p = (struct e2b_provider *)base;
	sb_auto(visit) struct visit v = { 0 };
	struct sb_error own = { 0 };
	bool running;
	int r;

	err = err ? err : &own;
	/* What the record forbids needs no connection. */
	r = discard ? 0 : sb_pairs_check_record(s, p->c.state_dir, err);
	if (r == 0)
		r = visit_begin(&v, sb_strlist_borrow(&s->options), s->provider_state, call, err);
	if (r == 0 && !v.id)
		r = look(&v, s->sandbox_id, NULL, &running, err);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		return sb_pairs_forget(s, p->c.state_dir, err);
	return r < 0 ? r : end(p, &v, s, discard, call, err);
}

/* The state of one that is there, of which nothing more is known: it is paused, or half made. */
static int
bare_state(const struct sb_find_request *req, struct sb_state *out, struct sb_error *err)
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
	out->runtime_root = strdup(BARE_ROOT);
	sb_strlist_free(&out->runtime_dirs);
	sb_strlist_add_all(&out->runtime_dirs, req->local_dirs);
	r = sb_strlist_check(&out->runtime_dirs, err);
	return r == 0 && !out->runtime_root ? sb_fail(err, SB_E_NOMEM, "out of memory") : r;
}

static int
e2b_find(struct sb_provider *base, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	struct e2b_provider *p = (struct e2b_provider *)base;
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	sb_auto(visit) struct visit v = { 0 };
	struct sb_error own = { 0 };
	bool running = false;
	int r;

	err = err ? err : &own;
	if (!req->profile || req->profile->backend != SB_BACKEND_E2B)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"find: the profile is not one of backend e2b");
	r = visit_begin(&v, sb_strlist_borrow(&req->profile->options), NULL, call, err);
	if (r == 0)
		r = look(&v, req->sandbox_id, req->labels, &running, err);
	/* A paused one is not woken for a look. */
	if (r == 0 && running)
		r = find_in(p, &v, req, call, &s, err);
	if (r == 0 && running && req->instance_id && s.instance_id &&
		strcmp(req->instance_id, s.instance_id) != 0)
		return not_found(req->sandbox_id, err);
	if (v.id && ((r == 0 && !running) || (r == SB_E_SANDBOX_NOT_FOUND && running)))
		r = bare_state(req, &s, err);
	if (r == 0)
		r = adopt(&s, &v, req->profile, err);
	if (r < 0)
		return r;
	s.life = SB_LIFE_FOUND;
	*out = s;
	s = (struct sb_state)SB_STATE_INIT;
	return 0;
}

static int
e2b_probe(struct sb_provider *p, const struct sb_profile *profile, const struct sb_call *call,
	struct sb_strlist *out, struct sb_error *err)
{
	const char *const *options = sb_strlist_borrow(&profile->options);
	const char *key = sb_strlist_get(options, "key");
	sb_auto(visit) struct visit v = { 0 };
	struct sb_error own = { 0 };
	struct sb_e2bapi *api;
	const char *template;
	int r;

	(void)p;
	err = err ? err : &own;
	r = visit_begin(&v, options, NULL, call, err);
	if (r < 0)
		return r;
	api = sb_e2blink_api(v.link);
	template = sb_e2blink_template(v.link);
	sb_strlist_addf(out, "there is a key in %s", key ? key : SB_E2BLINK_KEY);
	r = sb_e2bapi_try(api, &v.wait, err);
	if (r < 0)
		return r;
	sb_strlist_addf(out, "%s answers and takes the key", sb_e2bapi_name(api));
	r = sb_e2bapi_try_template(api, template, &v.wait, err);
	if (r == 0)
		sb_strlist_addf(out, "template %s is there", template);
	return r;
}

static void
e2b_free(struct sb_provider *base)
{
	struct e2b_provider *p = (struct e2b_provider *)base;

	sb_provider_free(p->ssh);
	sb_provider_common_free(&p->c);
}

static const struct sb_provider_ops e2b_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "a sandbox of E2B, or of a host with its API",
	.backend = SB_BACKEND_E2B,
	.options = sb_e2blink_options,
	.capabilities = e2b_capabilities,
	.prepare = e2b_prepare,
	.sync_to_runtime = e2b_sync_to,
	.sync_from_runtime = e2b_sync_from,
	.destroy = e2b_destroy,
	.find = e2b_find,
	.free = e2b_free,
	.state_version = 1,
	.probe = e2b_probe,
};

struct sb_provider *
sb_provider_e2b_new(const struct sb_builtin_opts *o, struct sb_error *err)
{
	struct e2b_provider *p = sb_provider_common_new(sizeof *p, &e2b_ops, o, err);

	sb_e2blink_carry();
	if (!p)
		return NULL;
	p->ssh = sb_provider_ssh_new(o, err);
	if (!p->ssh) {
		e2b_free(&p->c.base);
		return NULL;
	}
	return &p->c.base;
}
