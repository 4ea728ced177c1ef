/* SPDX-License-Identifier: MIT */
/*
 * A session of a sandbox host. The ssh provider does most of the work (agent, syncs, tools,
 * launches): it reaches the session like a machine, with `sbctl host attach` as the remote shell,
 * which this process does itself (hostlink-carry.c); sbsync, by itself, starts the program.
 * This file makes, finds and destroys the session, and translates between the two backends.
 */
#include "config.h"

#include <provider/provider.h>

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <provider/hostlink.h>
#include <provider/pairs.h>

#define STATE_TEXT "{\"version\":1}"
#define ASK_MS 10000
#define ROOT "work" /* in the session's workspace, which is the home directory there */

SB_CLEANUP_PTR(json_t, json_decref)

struct host_entry {
	struct host_entry *next;
	char *id;
	struct sb_hostlink *link;
};

struct host_provider {
	struct sb_provider_common c;
	struct sb_provider *ssh;
	struct host_entry
		*entries; /* hosts that are open, until the provider goes or their sandbox does */
};

static void
entry_free(struct host_entry *e)
{
	sb_hostlink_free(e->link);
	free(e->id);
	free(e);
}

/* The host of a sandbox. It stays open. */
static struct sb_hostlink *
link_of(struct host_provider *p, const char *id, const char *const *options, bool make,
	struct sb_error *err)
{
	struct sb_hostlink *l = NULL;
	struct host_entry *e;

	(void)pthread_mutex_lock(&p->c.mu);
	for (e = p->entries; e && strcmp(e->id, id) != 0; e = e->next)
		;
	if (e) {
		l = e->link;
	} else if ((e = calloc(1, sizeof *e)) && (e->id = strdup(id))) {
		l = e->link = sb_hostlink_open(id, options, make, err);
		if (l) {
			e->next = p->entries;
			p->entries = e;
		} else {
			entry_free(e);
		}
	} else {
		free(e);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	(void)pthread_mutex_unlock(&p->c.mu);
	return l;
}

static void
drop_link(struct host_provider *p, const char *id)
{
	struct host_entry **at, *gone = NULL;

	(void)pthread_mutex_lock(&p->c.mu);
	for (at = &p->entries; *at && !gone; at = *at ? &(*at)->next : at)
		if (strcmp((*at)->id, id) == 0) {
			gone = *at;
			*at = gone->next;
			break;
		}
	(void)pthread_mutex_unlock(&p->c.mu);
	if (gone)
		entry_free(gone);
}

/* The options the ssh provider gets: the session as its host. */
static int
ssh_options(const struct sb_hostlink *l, const char *id, struct sb_strlist *out,
	struct sb_error *err)
{
	sb_autofree char *rsh = sb_hostlink_rsh(l, err);

	if (!rsh)
		return SB_E_NOMEM;
	sb_strlist_putf(out, "host=%s", id);
	sb_strlist_putf(out, "rsh=%s", rsh);
	return sb_strlist_check(out, err);
}

/* What a host calls its isolation, in the words of a provider. */
static const char *
isolation_of(const char *level)
{
	if (level && strcmp(level, "kernel") == 0)
		return "gvisor";
	return level && strcmp(level, "namespaces") == 0 ? "namespace" : "none";
}

/* A host elsewhere says itself what it can do. */
static int
ask_host(const char *const *options, struct sb_capabilities *out, struct sb_error *err)
{
	struct sb_call call = SB_CALL_INIT;
	struct sb_hostlink *l = sb_hostlink_open("", options, false, err);
	sb_autofree char *text = NULL;
	json_t *answer, *c;
	int r;

	if (!l)
		return err ? err->code : SB_E_INVAL;
	call.deadline = sb_deadline_in(ASK_MS);
	r = sb_hostlink_call(l, "GetCapabilities", "{}", &call, &text, err);
	sb_hostlink_free(l);
	if (r < 0)
		return r;
	answer = json_loads(text, 0, NULL);
	c = json_object_get(answer, "ServerCapabilities");
	out->snapshots = json_is_true(json_object_get(c, "Snapshots"));
	out->rollback = json_is_true(json_object_get(c, "Rollback"));
	out->fork = json_is_true(json_object_get(c, "Fork"));
	out->pause = json_is_true(json_object_get(c, "Pause"));
	out->isolation = isolation_of(json_string_value(json_object_get(c, "IsolationLevel")));
	out->enforces_network = json_is_true(json_object_get(c, "NetworkPolicy"));
	out->enforces_lists = json_is_true(json_object_get(c, "NetworkLists"));
	json_decref(answer);
	return 0;
}

static bool
has_lists(const struct sb_network *n)
{
	return n->allow_list.n || n->deny_list.n;
}

/* Whether the policy lets anything out. */
static bool
reaches_out(const struct sb_network *n)
{
	return n->allow_outbound || has_lists(n);
}

static int
host_capabilities(struct sb_provider *base, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	const char *const *options = profile ? sb_strlist_borrow(&profile->options) : NULL;
	int r = 0;

	(void)base;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->remote = true;
	out->syncs = true;
	out->find = true;
	out->archive = true;
	out->streaming = true;
	out->tty = true;
	out->isolation = sb_hostlink_isolation(options);
	out->enforces_network = strcmp(out->isolation, "none") != 0;
	out->enforces_lists = sb_hostlink_lists(options);
	if (sb_strlist_get(options, "url"))
		r = ask_host(options, out, err);
	if (profile && reaches_out(&profile->network))
		out->enforces_network = out->enforces_lists;
	return r;
}

static json_t *
session_request(const char *id)
{
	return json_pack("{s:s}", "SessionID", id);
}

/* Takes `in`. The answer is dropped when `out` is NULL. */
static int
call_json(struct sb_hostlink *l, const char *method, json_t *in, const struct sb_call *call,
	char **out, struct sb_error *err)
{
	sb_autofree char *text = in ? json_dumps(in, JSON_COMPACT) : NULL;

	json_decref(in);
	return text ? sb_hostlink_call(l, method, text, call, out, err) :
		      sb_fail(err, SB_E_NOMEM, "out of memory");
}

/*
 * The network that a sandbox of this profile has; NULL: the host's default will do. Where lists
 * cannot be enforced, a profile that has none and requires nothing gets what there is: the host's.
 */
static const char *
network_of(const struct sb_network *n, bool lists)
{
	if (reaches_out(n))
		return lists || n->required || has_lists(n) ? "outbound" : "host";
	return n->required ? "none" : NULL;
}

static json_t *
list_json(const struct sb_strlist *l)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(a, json_string(l->v[i]));
	return a;
}

/* The lists of the profile into a request; without any that allows, all that is public. */
static void
put_lists(json_t *in, const struct sb_network *n)
{
	json_t *allow = list_json(&n->allow_list);

	if (json_array_size(allow) == 0)
		(void)json_array_append_new(allow, json_string("*"));
	(void)json_object_set_new(in, "Allow", allow);
	(void)json_object_set_new(in, "Deny", list_json(&n->deny_list));
}

/*
 * Refuses a session that was made with another network than the profile requires: a session keeps
 * its network. 0 also when there is no such session.
 */
static int
check_network(struct sb_hostlink *l, const struct sb_prepare_request *req, const char *want,
	const struct sb_call *call, struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	const char *have;
	sb_autofree char *text = NULL;
	json_t *answer, *s;
	int r = call_json(l, "GetSession", session_request(req->sandbox_id), call, &text, err);

	if (r < 0)
		return r == SB_E_SESSION_NOT_FOUND ? 0 : r;
	answer = json_loads(text, 0, NULL);
	s = json_object_get(answer, "Session");
	have = json_string_value(json_object_get(s, "Network"));
	if ((n->required || has_lists(n)) && (!have || strcmp(have, want) != 0)) {
		r = sb_fail(err, SB_E_NETWORK_POLICY,
			"the profile requires network %s, but sandbox %s was made with network %s: "
			"destroy it, or use another",
			want, req->sandbox_id, have && *have ? have : "unknown");
	} else if (have && strcmp(have, "outbound") == 0 && reaches_out(n)) {
		/* The lists of today, for a sandbox of yesterday. */
		json_t *in = session_request(req->sandbox_id);

		put_lists(in, n);
		r = call_json(l, "SetNetworkPolicy", in, call, NULL, err);
	}
	json_decref(answer);
	return r;
}

/* The session is there and active afterwards. */
static int
ensure_session(struct sb_hostlink *l, const struct sb_prepare_request *req, bool lists,
	const struct sb_call *call, struct sb_error *err)
{
	const struct sb_profile *pr = req->profile;
	const char *base = sb_strlist_get(sb_strlist_borrow(&pr->options), "base");
	const char *network = network_of(&pr->network, lists);
	struct sb_error why = { 0 };
	json_t *in, *labels;
	int r = network ? check_network(l, req, network, call, err) : 0;

	if (r < 0)
		return r;
	r = call_json(l, "ResumeSession", session_request(req->sandbox_id), call, NULL, &why);
	/* It is there: resumed, or it was not paused. */
	if (r == 0 || r == SB_E_INVALID_STATE)
		return 0;
	if (r != SB_E_SESSION_NOT_FOUND) {
		*err = why;
		return r;
	}
	if (!req->may_create)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), req->sandbox_id);
	in = session_request(req->sandbox_id);
	labels = json_pack("{s:s}", SB_LABEL_SANDBOX, req->sandbox_id);
	if (req->session_id)
		(void)json_object_set_new(labels, SB_LABEL_SESSION, json_string(req->session_id));
	(void)json_object_set_new(in, "Labels", labels);
	if (base)
		(void)json_object_set_new(in, "BaseSnapshot", json_string(base));
	else
		(void)json_object_set_new(in, "Empty", json_true());
	/* Else as the host has it. One that cannot do what is required refuses the session. */
	if (network)
		(void)json_object_set_new(in, "Network", json_string(network));
	if (network && strcmp(network, "outbound") == 0)
		put_lists(in, &pr->network);
	r = call_json(l, "CreateSession", in, call, NULL, err);
	if (r == SB_E_SESSION_EXISTS) /* somebody else's, just now */
		r = network ? check_network(l, req, network, call, err) : 0;
	return r;
}

/* Back from the ssh provider: the backend is ours, and so are options and persistence. */
static int
adopt(struct sb_state *s, const struct sb_profile *own, struct sb_error *err)
{
	int r;

	s->persist = own->persist;
	sb_strlist_free(&s->options);
	sb_strlist_join(&s->options, &own->options);
	r = sb_strlist_check(&s->options, err);
	if (r < 0)
		return r;
	s->backend = SB_BACKEND_HOST;
	free(s->provider_state);
	s->provider_state = strdup(STATE_TEXT);
	return s->provider_state ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
host_prepare(struct sb_provider *base, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_capabilities can = SB_CAPABILITIES_INIT;
	struct sb_prepare_request inner = *req;
	struct sb_profile profile;
	struct sb_error own = { 0 };
	struct sb_hostlink *l;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	int r;

	err = err ? err : &own;
	if (req->profile->network.required || reaches_out(&req->profile->network)) {
		r = host_capabilities(base, req->profile, &can, err);
		if (r < 0)
			return r;
	}
	r = sb_provider_check_request(req, SB_BACKEND_HOST, can.enforces_network, err);
	if (r < 0)
		return r;
	l = link_of(p, req->sandbox_id, sb_strlist_borrow(&req->profile->options), req->may_create,
		err);
	if (!l)
		return err->code;
	r = ensure_session(l, req, can.enforces_lists, call, err);
	if (r == 0)
		r = ssh_options(l, req->sandbox_id, &options, err);
	profile = *req->profile;
	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	profile.network = (struct sb_network){ 0 };
	profile.persist = SB_PERSIST_TRANSIENT;
	if (!profile.runtime_root)
		profile.runtime_root = (char *)(uintptr_t)ROOT;
	inner.profile = &profile;
	inner.provider_state = NULL;
	if (r == 0)
		r = sb_provider_prepare(p->ssh, &inner, call, out, err);
	if (r == 0) {
		r = adopt(&out->state, req->profile, err);
		if (r < 0)
			sb_prepared_free(out);
	}
	return r;
}

/* The state as the ssh provider wrote it; `options` is to be freed, the rest is borrowed. */
static int
as_ssh(struct host_provider *p, const struct sb_state *s, bool make, struct sb_state *out,
	struct sb_strlist *options, struct sb_hostlink **link, struct sb_error *err)
{
	int r;

	if (s->backend != SB_BACKEND_HOST)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"sandbox %s is of backend %s, not of host", s->sandbox_id,
			sb_backend_name(s->backend));
	*link = link_of(p, s->sandbox_id, sb_strlist_borrow(&s->options), make, err);
	if (!*link)
		return err->code;
	r = ssh_options(*link, s->sandbox_id, options, err);
	*out = *s;
	out->backend = SB_BACKEND_SSH;
	out->options = *options;
	out->provider_state = NULL;
	return r;
}

static int
host_sync(struct sb_provider *base, const struct sb_state *s, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_error own = { 0 };
	struct sb_hostlink *l;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_state inner;
	int r;

	err = err ? err : &own;
	memset(out, 0, sizeof *out);
	out->direction = sb_way_name(way);
	out->reason = sb_when_name(o->reason);
	if (s->sync_mode == SB_SYNC_MODE_NONE)
		return 0;
	r = as_ssh(p, s, false, &inner, &options, &l, err);
	if (r == 0)
		r = sb_provider_sync(p->ssh, &inner, way, o, call, out, err);
	return r;
}

static int
host_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return host_sync(p, s, SB_WAY_TO_RUNTIME, o, call, out, err);
}

static int
host_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return host_sync(p, s, SB_WAY_FROM_RUNTIME, o, call, out, err);
}

/* The session and, of an embedded host, all of it. */
static int
remove_session(struct host_provider *p, struct sb_hostlink *l, const struct sb_state *s,
	const struct sb_call *call, struct sb_error *err)
{
	json_t *in = session_request(s->sandbox_id);
	int r;

	(void)json_object_set_new(in, "Force", json_true());
	r = call_json(l, "DestroySession", in, call, NULL, err);
	if (r < 0 && r != SB_E_SESSION_NOT_FOUND)
		return r;
	drop_link(p, s->sandbox_id);
	r = sb_hostlink_remove(s->sandbox_id, sb_strlist_borrow(&s->options), err);
	return r < 0 ? r : sb_pairs_forget(s, p->c.state_dir, err);
}

static int
host_destroy(struct sb_provider *base, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_error own = { 0 };
	struct sb_hostlink *l = NULL;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	struct sb_state inner;
	int r;

	err = err ? err : &own;
	r = discard ? 0 : sb_pairs_check_record(s, p->c.state_dir, err);
	if (r < 0 || s->persist == SB_PERSIST_REUSE)
		return r;
	r = as_ssh(p, s, false, &inner, &options, &l, err);
	if (s->persist == SB_PERSIST_ARCHIVE) {
		/* The connection goes first: it is a tool that runs in the session. */
		if (r == 0)
			r = sb_provider_destroy(p->ssh, &inner, discard, call, err);
		if (r == 0)
			r = sb_hostlink_archive(l, s, call, err);
		drop_link(p, s->sandbox_id);
		return r == SB_E_SANDBOX_NOT_FOUND ? 0 : r;
	}
	if (r == 0 && !discard) {
		r = call_json(l, "GetSession", session_request(s->sandbox_id), call, NULL, err);
		if (r == 0)
			r = sb_provider_destroy(p->ssh, &inner, false, call, err);
		else if (r == SB_E_SESSION_NOT_FOUND)
			r = 0;
	}
	/* Not there is success. */
	if (r == SB_E_SANDBOX_NOT_FOUND)
		return sb_pairs_forget(s, p->c.state_dir, err);
	return r < 0 ? r : remove_session(p, l, s, call, err);
}

/* The state of a session that is put away: nothing runs there that could be asked. */
static int
found_away(const struct sb_find_request *req, const json_t *labels, struct sb_state *out,
	struct sb_error *err)
{
	const char *instance = json_string_value(json_object_get(labels, SB_HOSTLINK_INSTANCE)),
		   *root = json_string_value(json_object_get(labels, SB_HOSTLINK_ROOT)),
		   *dirs = json_string_value(json_object_get(labels, SB_HOSTLINK_DIRS));
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
		r = adopt(&s, req->profile, err);
	s.instance_id = strdup(instance);
	s.runtime_root = strdup(root ? root : "");
	for (; dirs && *dirs; dirs += strcspn(dirs, "\n"), dirs += *dirs == '\n')
		sb_strlist_addf(&s.runtime_dirs, "%.*s", (int)strcspn(dirs, "\n"), dirs);
	if (r == 0)
		r = sb_strlist_check(&s.runtime_dirs, err);
	if (r == 0 && (!s.instance_id || !s.runtime_root))
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r < 0)
		return r;
	s.life = SB_LIFE_FOUND;
	*out = s;
	s = (struct sb_state)SB_STATE_INIT;
	return 0;
}

/* Do all of `wanted` ("KEY=value") stand among the labels? */
static bool
has_labels(const json_t *labels, const char *const *wanted)
{
	for (; wanted && *wanted; wanted++) {
		size_t n = strcspn(*wanted, "=");
		sb_autofree char *key = strndup(*wanted, n);
		const char *value = key ? json_string_value(json_object_get(labels, key)) : NULL;

		if (!value || !(*wanted)[n] || strcmp(value, *wanted + n + 1) != 0)
			return false;
	}
	return true;
}

static int
host_find(struct sb_provider *base, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_find_request inner = *req;
	struct sb_profile profile;
	struct sb_error own = { 0 };
	struct sb_hostlink *l;
	sb_auto(sb_strlist) struct sb_strlist options = { 0 };
	sb_autofree char *text = NULL;
	sb_auto(json_t) json_t *answer = NULL;
	const json_t *session, *labels;
	const char *state;
	int r;

	err = err ? err : &own;
	if (!req->profile || req->profile->backend != SB_BACKEND_HOST)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"find: the profile is not one of backend host");
	l = link_of(p, req->sandbox_id, sb_strlist_borrow(&req->profile->options), false, err);
	if (!l)
		return err->code;
	r = call_json(l, "GetSession", session_request(req->sandbox_id), call, &text, err);
	answer = r == 0 ? json_loads(text, 0, NULL) : NULL;
	session = json_object_get(answer, "Session");
	labels = json_object_get(session, "Labels");
	state = json_string_value(json_object_get(session, "State"));
	if (r == SB_E_SESSION_NOT_FOUND || (r == 0 && !has_labels(labels, req->labels)))
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), req->sandbox_id);
	if (r == 0 && state && strcmp(state, "paused") == 0 &&
		json_object_get(labels, SB_HOSTLINK_INSTANCE))
		return found_away(req, labels, out, err);
	if (r == 0)
		r = ssh_options(l, req->sandbox_id, &options, err);
	profile = *req->profile;
	profile.backend = SB_BACKEND_SSH;
	profile.options = options;
	inner.profile = &profile;
	inner.provider_state = NULL;
	if (r == 0)
		r = sb_provider_find(p->ssh, &inner, call, out, err);
	if (r == 0) {
		r = adopt(out, req->profile, err);
		if (r < 0)
			sb_state_free(out);
	}
	return r;
}

static int
host_snapshot(struct sb_provider *base, const struct sb_state *s, const char *name,
	const struct sb_call *call, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_error own = { 0 };
	struct sb_hostlink *l =
		link_of(p, s->sandbox_id, sb_strlist_borrow(&s->options), false, err ? err : &own);

	if (!l)
		return err ? err->code : own.code;
	return call_json(l, "CreateSnapshot",
		json_pack("{s:s,s:s}", "SessionID", s->sandbox_id, "Name", name), call, NULL, err);
}

static int
host_refused(struct sb_provider *base, const struct sb_state *s, const struct sb_call *call,
	char *out, size_t size, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_error own = { 0 };
	struct sb_hostlink *l =
		link_of(p, s->sandbox_id, sb_strlist_borrow(&s->options), false, err ? err : &own);
	sb_autofree char *text = NULL;
	const char *network, *last;
	json_t *answer, *o;
	int r;

	if (!l)
		return err ? err->code : own.code;
	r = call_json(l, "GetSession", session_request(s->sandbox_id), call, &text, err);
	if (r < 0)
		return r;
	answer = json_loads(text, 0, NULL);
	o = json_object_get(answer, "Session");
	network = json_string_value(json_object_get(o, "Network"));
	last = json_string_value(json_object_get(o, "NetworkLast"));
	if (json_integer_value(json_object_get(o, "NetworkRefused")) == 0 || !network)
		out[0] = '\0';
	else if (strcmp(network, "none") == 0)
		(void)snprintf(out, size,
			"the sandbox has no network: --network on, or --network HOST,... gives "
			"one");
	else
		(void)snprintf(out, size,
			"the network policy refused %.300s: list it with --network, or in "
			"allow_list of the profile, to let it through",
			last && *last ? last : "something");
	json_decref(answer);
	return 0;
}

static struct sb_env_host *
host_env(struct sb_provider *base, const struct sb_state *s, struct sb_error *err)
{
	struct host_provider *p = (struct host_provider *)base;
	struct sb_error own = { 0 };
	struct sb_hostlink *l =
		link_of(p, s->sandbox_id, sb_strlist_borrow(&s->options), false, err ? err : &own);

	return l ? sb_hostlink_env(l, err) : NULL;
}

static int
host_probe(struct sb_provider *p, const struct sb_profile *profile, const struct sb_call *call,
	struct sb_strlist *out, struct sb_error *err)
{
	const char *url = sb_strlist_get(sb_strlist_borrow(&profile->options), "url");
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	int r = host_capabilities(p, profile, &c, err);

	(void)call;
	if (r == 0)
		sb_strlist_addf(out, "%s%s isolation %s", url ? url : "a host in this process",
			url ? " answers:" : ":", c.isolation);
	return r;
}

static void
host_free(struct sb_provider *base)
{
	struct host_provider *p = (struct host_provider *)base;

	/* Connections first, then what is at their other end. */
	sb_provider_free(p->ssh);
	while (p->entries) {
		struct host_entry *next = p->entries->next;

		entry_free(p->entries);
		p->entries = next;
	}
	sb_provider_common_free(&p->c);
}

static const struct sb_provider_ops host_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "a session of a sandbox host, in this process or elsewhere",
	.backend = SB_BACKEND_HOST,
	.options = sb_hostlink_options,
	.capabilities = host_capabilities,
	.prepare = host_prepare,
	.sync_to_runtime = host_sync_to,
	.sync_from_runtime = host_sync_from,
	.destroy = host_destroy,
	.find = host_find,
	.snapshot = host_snapshot,
	.free = host_free,
	.refused = host_refused,
	.state_version = 1,
	.env_host = host_env,
	.probe = host_probe,
};

struct sb_provider *
sb_provider_host_new(const struct sb_builtin_opts *o, struct sb_error *err)
{
	struct host_provider *p = sb_provider_common_new(sizeof *p, &host_ops, o, err);

	sb_hostlink_carry();
	if (!p)
		return NULL;
	p->ssh = sb_provider_ssh_new(o, err);
	if (!p->ssh) {
		host_free(&p->c.base);
		return NULL;
	}
	return &p->c.base;
}
