/* SPDX-License-Identifier: MIT */
/* Environments: one session of a host as an agent loop sees it (declared in sb/env.h). */
#include "config.h"

#include <rpc/client/env-priv.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <rpc/client/embed.h>
#include <rpc/protocol/json.h>

#define IDLE_MAX 16
#define BOX_WORKSPACE "/workspace"
#define SOCKET_PATH_MAX 100

struct sb_env_host {
	struct sb_rpc_embed *embed; /* NULL: somebody else's host */
	char *address, *token, *ca_file;
	int64_t connect_ms;
	pthread_mutex_t mu; /* guards the clients that wait for their next call */
	struct sb_rpc_client *idle[IDLE_MAX];
	size_t n_idle;
};

void
sb_env_host_free(struct sb_env_host *h)
{
	if (!h)
		return;
	while (h->n_idle > 0)
		sb_rpc_client_free(h->idle[--h->n_idle]);
	sb_rpc_embed_close(h->embed);
	(void)pthread_mutex_destroy(&h->mu);
	free(h->address);
	if (h->token)
		explicit_bzero(h->token, strlen(h->token));
	free(h->token);
	free(h->ca_file);
	free(h);
}

static int
open_embedded(struct sb_env_host *h, const struct sb_env_host_opts *o, struct sb_error *err)
{
	sb_autofree char *socket =
		o->socket ? strdup(o->socket) : sb_str_printf("%s/env.sock", o->host->state_dir);

	h->address = socket ? sb_str_printf("unix:%s", socket) : NULL;
	if (!h->address)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (strlen(socket) > SOCKET_PATH_MAX)
		return sb_fail(err, SB_E_INVAL, "socket: %s is longer than %d bytes", socket,
			SOCKET_PATH_MAX);
	h->embed = sb_rpc_embed_open(o->host, socket, err);
	return h->embed ? 0 : err->code;
}

static int
open_host(struct sb_env_host *h, const struct sb_env_host_opts *o, struct sb_error *err)
{
	struct sb_rpc_client *c;
	int r = 0;

	if (!o->address == !o->host)
		return sb_fail(err, SB_E_INVAL,
			"either an address or the options of a host are required");
	if (o->host && !o->host->state_dir)
		return sb_fail(err, SB_E_INVAL, "state_dir is required");
	h->connect_ms = o->connect_ms;
	if (o->host)
		return open_embedded(h, o, err);
	h->address = strdup(o->address);
	h->token = o->token ? strdup(o->token) : NULL;
	h->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
	if (!h->address || (o->token && !h->token) || (o->ca_file && !h->ca_file))
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	/* A mistake in the address is told here, not by the first call. */
	c = r == 0 ? sb_env_take(h, err) : NULL;
	if (c)
		sb_env_give(h, c);
	return c ? 0 : r < 0 ? r : err->code;
}

struct sb_env_host *
sb_env_host_open(const struct sb_env_host_opts *opts, struct sb_error *err)
{
	struct sb_env_host_opts o = SB_ENV_HOST_OPTS_INIT;
	struct sb_env_host *h = calloc(1, sizeof *h);
	struct sb_error why = { 0 };

	if (!h) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&h->mu, NULL);
	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (open_host(h, &o, &why) < 0) {
		sb_env_host_free(h);
		if (err)
			*err = why;
		return NULL;
	}
	return h;
}

struct sb_rpc_client *
sb_env_take(struct sb_env_host *h, struct sb_error *err)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_rpc_client *c = NULL;

	(void)pthread_mutex_lock(&h->mu);
	if (h->n_idle > 0)
		c = h->idle[--h->n_idle];
	(void)pthread_mutex_unlock(&h->mu);
	if (c)
		return c;
	o.address = h->address;
	o.token = h->token;
	o.ca_file = h->ca_file;
	o.connect_ms = h->connect_ms;
	return sb_rpc_client_new(&o, err);
}

void
sb_env_give(struct sb_env_host *h, struct sb_rpc_client *c)
{
	(void)pthread_mutex_lock(&h->mu);
	if (h->n_idle < IDLE_MAX) {
		h->idle[h->n_idle++] = c;
		c = NULL;
	}
	(void)pthread_mutex_unlock(&h->mu);
	sb_rpc_client_free(c);
}

void
sb_env_fence(json_t *in, const struct sb_host_call *call)
{
	if (call && call->fence)
		(void)json_object_set_new(in, "Fence",
			json_sprintf("%llu", (unsigned long long)call->fence));
}

int
sb_env_call(struct sb_env_host *h, const char *method, json_t *in, const struct sb_host_call *call,
	json_t **out, struct sb_error *err)
{
	const struct sb_rpc_wait w = { call ? call->cancel : NULL,
		call ? call->deadline : SB_NEVER };
	sb_autofree char *text = NULL, *answer = NULL;
	struct sb_error why = { 0 };
	struct sb_rpc_client *c;
	size_t len = 0;
	int r;

	sb_env_fence(in, call);
	text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	c = sb_env_take(h, &why);
	r = c ? sb_rpc_client_call(c, method, text, &w, &answer, &len, &why) : why.code;
	if (c)
		sb_env_give(h, c);
	if (r == 0 && out && !(*out = json_loadb(answer, len, JSON_ALLOW_NUL, NULL)))
		r = sb_fail(&why, SB_E_PROTO, "%s: the answer is not JSON", method);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_env_host_capabilities(struct sb_env_host *h, const struct sb_host_call *call,
	struct sb_env_capabilities *out, struct sb_error *err)
{
	const struct {
		const char *key;
		bool *to;
	} flags[] = { { "Snapshots", &out->snapshots }, { "Rollback", &out->rollback },
		{ "Fork", &out->fork }, { "Diff", &out->diff }, { "Quota", &out->quota },
		{ "Pause", &out->pause }, { "StreamingProgress", &out->streaming_progress },
		{ "TierRouting", &out->tier_routing }, { "Isolation", &out->isolation },
		{ "NetworkPolicy", &out->network_policy }, { "Ports", &out->ports } };
	json_t *answer = NULL, *c;
	int r = sb_env_call(h, "GetCapabilities", json_object(), call, &answer, err);

	if (r < 0)
		return r;
	c = json_object_get(answer, "ServerCapabilities");
	*out = (struct sb_env_capabilities){ 0 };
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
		*flags[i].to = sb_json_flag(c, flags[i].key);
	out->concurrent_sessions = (unsigned)sb_json_int(c, "ConcurrentSessions");
	out->max_session_ms = sb_json_int(c, "MaxSessionDuration") / 1000000;
	(void)snprintf(out->storage, sizeof out->storage, "%s", sb_json_str(c, "Storage"));
	(void)snprintf(out->runtime, sizeof out->runtime, "%s", sb_json_str(c, "Runtime"));
	(void)snprintf(out->isolation_level, sizeof out->isolation_level, "%s",
		sb_json_str(c, "IsolationLevel"));
	json_decref(answer);
	return 0;
}

/* `boxed`: whatever the host's own runtime is, an isolating one is used. */
static int
judge(const struct sb_env_capabilities *caps, unsigned needs, bool boxed, struct sb_error *err)
{
	const struct sb_env_capabilities c = *caps;
	const char *lacks = NULL;

	if ((needs & SB_ENV_NEED_SNAPSHOTS) && !(c.snapshots && c.rollback))
		lacks = "snapshots";
	else if ((needs & SB_ENV_NEED_PAUSE) && !c.pause)
		lacks = "pause";
	else if ((needs & SB_ENV_NEED_TIERS) && !c.tier_routing && !boxed)
		lacks = "tiers";
	else if ((needs & SB_ENV_NEED_ISOLATION) && !c.isolation && !boxed)
		lacks = "isolation";
	else if ((needs & SB_ENV_NEED_NETWORK_POLICY) && !c.network_policy && !boxed)
		lacks = "a network policy";
	return lacks ? sb_fail(err, SB_E_UNSUPPORTED, "the host (%s, %s) has no %s", c.storage,
			       c.runtime, lacks) :
		       0;
}

/* A session in a runtime that it names has what that runtime gives, whatever the host's own is. */
static int
check_needs(struct sb_env_host *h, const struct sb_host_create_opts *o, unsigned needs,
	const struct sb_host_call *call, struct sb_error *err)
{
	bool boxed = o->runtime == SB_HOST_RUNTIME_BWRAP || o->runtime == SB_HOST_RUNTIME_GVISOR;
	struct sb_env_capabilities c;
	int r = needs ? sb_env_host_capabilities(h, call, &c, err) : 0;

	return r < 0 || !needs ? r : judge(&c, needs, boxed, err);
}

int
sb_env_host_check(struct sb_env_host *h, const struct sb_env_config *given,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_env_config want = SB_ENV_CONFIG_INIT;
	struct sb_env_capabilities c;
	int r = sb_env_host_capabilities(h, call, &c, err);

	memcpy(&want, given, given->size < sizeof want ? given->size : sizeof want);
	if (r < 0)
		return r;
	if (want.storage && strcmp(want.storage, c.storage) != 0)
		return sb_fail(err, SB_E_UNSUPPORTED, "the host has storage %s, not %s", c.storage,
			want.storage);
	if (want.runtime && strcmp(want.runtime, c.runtime) != 0)
		return sb_fail(err, SB_E_UNSUPPORTED, "the host has runtime %s, not %s", c.runtime,
			want.runtime);
	return judge(&c, want.needs, false, err);
}

static int
new_env(struct sb_env_host *h, const char *id, struct sb_env **out, struct sb_error *err)
{
	struct sb_env *e = calloc(1, sizeof *e);

	if (!e || !(e->id = strdup(id))) {
		free(e);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	e->host = h;
	atomic_init(&e->destroyed, false);
	*out = e;
	return 0;
}

static void
put_list(json_t *in, const char *key, const char *const *v, size_t n)
{
	json_t *list = n > 0 ? json_array() : NULL;

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(v[i]));
	if (list)
		(void)json_object_set_new(in, key, list);
}

static json_t *
create_request(const struct sb_host_create_opts *o)
{
	json_t *in = json_object();

	(void)json_object_set_new(in, "SessionID", json_string(o->id ? o->id : ""));
	(void)json_object_set_new(in, "BaseSnapshot", json_string(o->base ? o->base : ""));
	(void)json_object_set_new(in, "Empty", json_boolean(o->empty));
	(void)json_object_set_new(in, "Quota", json_integer((json_int_t)o->quota));
	(void)json_object_set_new(in, "Runtime",
		json_string(o->runtime == SB_HOST_RUNTIME_AUTO ? "" :
								 sb_host_runtime_name(o->runtime)));
	(void)json_object_set_new(in, "Network", json_string(sb_host_network_name(o->network)));
	put_list(in, "Allow", o->allow, o->n_allow);
	put_list(in, "Deny", o->deny, o->n_deny);
	if (o->n_labels > 0) {
		json_t *labels = json_object();

		for (size_t i = 0; i < o->n_labels; i++)
			(void)json_object_set_new(labels, o->labels[i].key,
				json_string(o->labels[i].value));
		(void)json_object_set_new(in, "Labels", labels);
	}
	return in;
}

int
sb_env_create(struct sb_env_host *h, const struct sb_host_create_opts *given, unsigned needs,
	const struct sb_host_call *call, struct sb_env **out, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	json_t *answer = NULL;
	int r;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	r = check_needs(h, &o, needs, call, err);
	if (r == 0)
		r = sb_env_call(h, "CreateSession", create_request(&o), call, &answer, err);
	if (r < 0)
		return r;
	r = new_env(h, sb_json_str(json_object_get(answer, "Session"), "ID"), out, err);
	json_decref(answer);
	return r;
}

int
sb_env_attach(struct sb_env_host *h, const char *session, const struct sb_host_call *call,
	struct sb_env **out, struct sb_error *err)
{
	int r = sb_env_call(h, "GetSession", json_pack("{s:s}", "SessionID", session), call, NULL,
		err);

	return r < 0 ? r : new_env(h, session, out, err);
}

void
sb_env_free(struct sb_env *e)
{
	if (!e)
		return;
	free(e->id);
	free(e);
}

const char *
sb_env_id(const struct sb_env *e)
{
	return e->id;
}

json_t *
sb_env_request(const struct sb_env *e, struct sb_error *err)
{
	json_t *in;

	if (atomic_load(&e->destroyed)) {
		(void)sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SESSION_NOT_FOUND), e->id);
		return NULL;
	}
	in = json_pack("{s:s}", "SessionID", e->id);
	if (!in)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return in;
}

/* A call that has only the session in it, or `key` with a text too. */
static int
simple(struct sb_env *e, const char *method, const char *key, const char *value,
	const struct sb_host_call *call, json_t **out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *in = sb_env_request(e, &why);
	int r = in ? 0 : why.code;

	if (r == 0 && key && json_object_set_new(in, key, json_string(value)) < 0) {
		json_decref(in);
		r = sb_fail(&why, SB_E_INVAL, "%s is not UTF-8", key);
	}
	if (r == 0)
		r = sb_env_call(e->host, method, in, call, out, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_env_pause(struct sb_env *e, const struct sb_host_call *call, struct sb_error *err)
{
	return simple(e, "PauseSession", NULL, NULL, call, NULL, err);
}

int
sb_env_resume(struct sb_env *e, const struct sb_host_call *call, struct sb_error *err)
{
	return simple(e, "ResumeSession", NULL, NULL, call, NULL, err);
}

int
sb_env_destroy(struct sb_env *e, bool force, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r;

	if (atomic_load(&e->destroyed))
		return 0;
	r = sb_env_call(e->host, "DestroySession",
		json_pack("{s:s, s:b}", "SessionID", e->id, "Force", force), call, NULL, &why);
	if (r == 0 || r == SB_E_SESSION_NOT_FOUND) {
		atomic_store(&e->destroyed, true);
		return 0;
	}
	if (err)
		*err = why;
	return r;
}

static const char *const state_names[] = { "creating", "active", "paused", "destroying", "failed",
	"destroyed" };

const char *
sb_env_state_name(enum sb_env_state s)
{
	return (unsigned)s <= SB_ENV_DESTROYED ? state_names[s] : "?";
}

int
sb_env_state(struct sb_env *e, const struct sb_host_call *call, enum sb_env_state *out,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *answer = NULL;
	int r = simple(e, "GetSession", NULL, NULL, call, &answer, &why);

	if (r == SB_E_SESSION_NOT_FOUND) {
		*out = SB_ENV_DESTROYED;
		return 0;
	}
	if (r == 0) {
		const char *name = sb_json_str(json_object_get(answer, "Session"), "State");
		int i = SB_ENV_CREATING;

		while (i < SB_ENV_DESTROYED && strcmp(state_names[i], name) != 0)
			i++;
		if (i == SB_ENV_DESTROYED)
			r = sb_fail(&why, SB_E_PROTO, "session %s: unknown state %.40s", e->id,
				name);
		else
			*out = (enum sb_env_state)i;
		json_decref(answer);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_env_workspace(struct sb_env *e, const struct sb_host_call *call, char **out,
	struct sb_error *err)
{
	json_t *answer = NULL, *s;
	const char *path;
	int r = simple(e, "GetSession", NULL, NULL, call, &answer, err);

	if (r < 0)
		return r;
	s = json_object_get(answer, "Session");
	/* Only runtime none shows commands the host's own path. */
	path = strcmp(sb_json_str(s, "Runtime"), "none") == 0 ?
		sb_json_str(s, "Mountpoint") :
		BOX_WORKSPACE;
	*out = strdup(path);
	json_decref(answer);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
take_snapshot(int r, json_t *answer, struct sb_env_snapshot *out)
{
	if (r < 0)
		return r;
	*out = (struct sb_env_snapshot){ .turn = (uint64_t)sb_json_int(answer, "TurnNumber"),
		.space_used = (uint64_t)sb_json_int(answer, "SpaceUsed"),
		.created_ns = sb_json_time(answer, "CreatedAt") };
	(void)snprintf(out->id, sizeof out->id, "%s", sb_json_str(answer, "SnapshotID"));
	json_decref(answer);
	return 0;
}

int
sb_env_snapshot(struct sb_env *e, const char *name, const struct sb_host_call *call,
	struct sb_env_snapshot *out, struct sb_error *err)
{
	json_t *answer = NULL;
	int r = simple(e, "CreateSnapshot", "Name", name, call, &answer, err);

	return take_snapshot(r, answer, out);
}

int
sb_env_turn(struct sb_env *e, const struct sb_host_call *call, struct sb_env_snapshot *out,
	struct sb_error *err)
{
	json_t *answer = NULL;
	int r = simple(e, "TurnComplete", NULL, NULL, call, &answer, err);

	return take_snapshot(r, answer, out);
}

int
sb_env_rollback(struct sb_env *e, const char *snapshot, unsigned how,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *in = sb_env_request(e, &why);
	int r = in ? 0 : why.code;

	if (r == 0 && json_object_set_new(in, "SnapshotID", json_string(snapshot)) < 0) {
		json_decref(in);
		r = sb_fail(&why, SB_E_INVAL, "snapshot is not UTF-8");
	}
	if (r == 0) {
		(void)json_object_set_new(in, "KillTools", json_boolean(how & SB_HOST_KILL_TOOLS));
		(void)json_object_set_new(in, "DropLater", json_boolean(how & SB_HOST_DROP_LATER));
		r = sb_env_call(e->host, "RollbackSession", in, call, NULL, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}
