/* SPDX-License-Identifier: MIT */
/* The control plane: sandboxes from create to kill. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <host/host.h>
#include <sb/host-cold.h>

#define TIMEOUT_V1 15
#define PAUSE_SNAPSHOT "e2b-pause"

struct sb_e2b_record *
sb_e2b_sandbox_find(struct sb_rpc_call *call, const char *id)
{
	struct sb_e2b_record *r = sb_e2b_record_find(sb_rpc_call_arg(call), id);

	if (r && !r->snapshot)
		return r;
	sb_e2b_record_free(r);
	(void)sb_e2b_refuse(call, 404, "sandbox \"%.64s\" was not found", id);
	return NULL;
}

/* Its session; one that is being destroyed is not there any more. */
static bool
is_there(struct sb_e2b *e, const char *id, struct sb_host_session *s)
{
	if (sb_host_session_get(e->host, id, false, s, NULL) < 0)
		return false;
	if (s->state != SB_HOST_DESTROYING)
		return true;
	sb_host_session_clear(s);
	return false;
}

int
sb_e2b_sandbox_gone(struct sb_rpc_call *call, const char *id)
{
	sb_e2b_record_drop(sb_rpc_call_arg(call), id);
	return sb_e2b_refuse(call, 404, "sandbox \"%s\" was not found", id);
}

bool
sb_e2b_sandbox_paused(const struct sb_host_session *s)
{
	return s->state == SB_HOST_PAUSED || s->state == SB_HOST_RESUMING ||
		s->state == SB_HOST_COOLING || s->state == SB_HOST_COLD ||
		s->state == SB_HOST_WARMING;
}

json_t *
sb_e2b_sandbox_made(const struct sb_e2b_record *r)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:n}", "templateID", r->template,
		"sandboxID", r->id, "clientID", "sbhostd", "alias", r->template, "envdVersion",
		SB_E2B_ENVD_VERSION, "envdAccessToken", r->token, "domain");
}

json_t *
sb_e2b_sandbox_json(struct sb_e2b *e, const struct sb_e2b_record *r,
	const struct sb_host_session *s, bool listed)
{
	const struct sb_host_opts *o = sb_host_options(e->host);
	int64_t cpus =
		o->session_cpus >= 1 ? (int64_t)o->session_cpus : sysconf(_SC_NPROCESSORS_ONLN);
	struct sb_host_health h;
	json_t *j = sb_e2b_sandbox_made(r), *meta = json_object();
	uint64_t disk = s->quota;

	if (disk == 0) {
		sb_host_health(e->host, NULL, &h);
		disk = h.size;
	}
	for (size_t i = 0; i < s->n_labels; i++)
		(void)json_object_set_new(meta, s->labels[i].key,
			sb_rpc_json_text(s->labels[i].value, strlen(s->labels[i].value)));
	(void)json_object_set_new(j, "startedAt", sb_answer_time(r->started_ns));
	(void)json_object_set_new(j, "endAt", sb_answer_time(r->end_ns));
	(void)json_object_set_new(j, "cpuCount", json_integer(cpus > 0 ? cpus : 1));
	(void)json_object_set_new(j, "memoryMB",
		json_integer(o->session_mem_mb ? (json_int_t)o->session_mem_mb :
						 (json_int_t)(sysconf(_SC_PHYS_PAGES) / 1024 *
							 sysconf(_SC_PAGESIZE) / 1024)));
	(void)json_object_set_new(j, "diskSizeMB", json_integer((json_int_t)(disk >> 20)));
	(void)json_object_set_new(j, "metadata", meta);
	(void)json_object_set_new(j, "state",
		json_string(sb_e2b_sandbox_paused(s) ? "paused" : "running"));
	(void)json_object_set_new(j, "volumeMounts", json_array());
	if (listed) {
		(void)json_object_del(j, "envdAccessToken");
		(void)json_object_del(j, "domain");
		return j;
	}
	(void)json_object_set_new(j, "allowInternetAccess", json_boolean(r->internet));
	(void)json_object_set_new(j, "lifecycle",
		json_pack("{s:s, s:b}", "onTimeout", r->pause ? "pause" : "kill", "autoResume",
			r->auto_resume));
	return j;
}

/* Parts of the vendor's request that this host has nothing for. */
static const char *
cannot(const json_t *in)
{
	static const char *const members[] = { "mcp", "iam", "volumeMounts", NULL };
	static const char *const network[] = { "rules", "egressProxy", "maskRequestHost",
		"httpsPorts", NULL };
	const json_t *net = json_object_get(in, "network");

	for (size_t i = 0; members[i]; i++) {
		const json_t *v = json_object_get(in, members[i]);

		if (v && !json_is_null(v) && (json_array_size(v) || json_object_size(v)))
			return members[i];
	}
	for (size_t i = 0; network[i]; i++) {
		const json_t *v = json_object_get(net, network[i]);

		if (v && !json_is_null(v) &&
			(json_is_string(v) || json_array_size(v) || json_object_size(v)))
			return network[i];
	}
	return NULL;
}

/* What a create or a fork is to make. */
struct wish {
	struct sb_strmap labels;
	struct sb_host_label v[SB_HOST_LABELS_MAX];
	struct sb_strlist allow, deny;
	struct sb_host_create_opts o;
};

static void
wish_free(struct wish *w)
{
	sb_strmap_free(&w->labels);
	sb_strlist_free(&w->allow);
	sb_strlist_free(&w->deny);
}

static void
wish_labels(struct wish *w)
{
	for (size_t i = 0; i < w->labels.n && i < SB_HOST_LABELS_MAX; i++)
		w->v[i] = (struct sb_host_label){ w->labels.v[i].key, w->labels.v[i].value };
	w->o.labels = w->v;
	w->o.n_labels = w->labels.n;
}

/* Entries of the vendor's lists are addresses, networks and names, as ours; all is 0.0.0.0/0. */
static void
read_network(struct sb_e2b *e, struct sb_rpc_fields *f, const json_t *in, struct wish *w,
	struct sb_e2b_record *rec)
{
	const json_t *internet = json_object_get(in, "allow_internet_access");
	const json_t *net = json_object_get(in, "network");
	struct sb_host_capabilities caps;
	struct sb_rpc_fields nf;

	rec->internet = !json_is_false(internet);
	if (net && json_is_object(net)) {
		sb_rpc_fields_init(&nf, net);
		nf.prefix = "network.";
		sb_rpc_field_list(&nf, "allowOut", 256, 256, &w->allow);
		sb_rpc_field_list(&nf, "denyOut", 256, 256, &w->deny);
		if (nf.failed) {
			sb_rpc_field_bad(f, "network", "%s", nf.err.msg);
			return;
		}
	}
	if (!rec->internet && w->allow.n == 0) {
		w->o.network = SB_HOST_NET_NONE;
		return;
	}
	if (w->allow.n == 0 && w->deny.n == 0) {
		/* As the operator has it; where nothing is said, what the lists can hold. */
		if (sb_host_options(e->host)->default_network == SB_HOST_NET_DEFAULT) {
			sb_host_capabilities(e->host, &caps);
			w->o.network =
				caps.network_lists ? SB_HOST_NET_OUTBOUND : SB_HOST_NET_DEFAULT;
		}
		return;
	}
	w->o.network = SB_HOST_NET_OUTBOUND;
	w->o.allow = (const char *const *)w->allow.v;
	w->o.n_allow = w->allow.n;
	w->o.deny = (const char *const *)w->deny.v;
	w->o.n_deny = w->deny.n;
}

static bool
base_exists(struct sb_e2b *e, const char *name, char **full)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	size_t len = strlen(name);

	*full = NULL;
	if (sb_host_base_list(e->host, &l, NULL) < 0)
		return false;
	/* On ZFS a base is NAME@SNAPSHOT; the last of them is meant. */
	for (size_t i = 0; i < l.n; i++)
		if (strncmp(l.v[i], name, len) == 0 &&
			(l.v[i][len] == '\0' || l.v[i][len] == '@')) {
			free(*full);
			*full = strdup(l.v[i]);
		}
	return *full != NULL;
}

/* Makes the session of `rec`: of a snapshot, a base image, or the default one. */
static int
make(struct sb_e2b *e, struct sb_e2b_record *rec, struct wish *w, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_auto(sb_e2b_record) struct sb_e2b_record *snap = sb_e2b_record_find(e, rec->template);
	sb_autofree char *full = NULL;
	struct sb_host_session s;
	int r;

	w->o.id = rec->id;
	if (snap && snap->snapshot) {
		r = sb_e2b_record_save(e, rec, err);
		if (r == 0)
			r = sb_host_session_fork(e->host, snap->id, NULL, &w->o, call, &s, err);
	} else {
		if (base_exists(e, rec->template, &full))
			w->o.base = full;
		else if (strcmp(rec->template, "base") != 0)
			return sb_fail(err, SB_E_BASE_NOT_FOUND, "template '%.100s' not found",
				rec->template);
		w->o.empty = !w->o.base && !sb_host_options(e->host)->default_base;
		r = sb_e2b_record_save(e, rec, err);
		if (r == 0)
			r = sb_host_session_create(e->host, &w->o, call, &s, err);
	}
	if (r < 0) {
		sb_e2b_record_drop(e, rec->id);
		return r;
	}
	sb_host_session_clear(&s);
	return 0;
}

static int
create(struct sb_rpc_call *call, int64_t timeout, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *rec = sb_e2b_record_new(false, err);
	json_t *in = rec ? sb_answer_body(call, err) : NULL;
	struct wish w = { .o = SB_HOST_CREATE_OPTS_INIT };
	struct sb_rpc_fields f;
	const char *template, *not_here;
	const json_t *resume;
	int r;

	if (!in)
		return rec ? SB_E_INVAL : SB_E_NOMEM;
	sb_rpc_fields_init(&f, in);
	template = sb_rpc_field_str(&f, "templateID", 256, SB_RPC_REQUIRED);
	if (sb_rpc_field(&f, "timeout"))
		timeout = sb_rpc_field_int(&f, "timeout", 0, SB_E2B_TIMEOUT_MAX);
	sb_rpc_field_map(&f, "metadata", SB_HOST_LABELS_MAX, SB_HOST_LABEL_KEY_MAX,
		SB_HOST_LABEL_VALUE_MAX, &w.labels);
	rec->pause = sb_rpc_field_bool(&f, "autoPause");
	resume = sb_rpc_field_object(&f, "autoResume");
	rec->auto_resume = json_is_true(json_object_get(resume, "enabled"));
	if (sb_rpc_field_object(&f, "envVars")) {
		json_decref(rec->env);
		rec->env = json_deep_copy(sb_rpc_field_object(&f, "envVars"));
	}
	read_network(e, &f, in, &w, rec);
	r = sb_rpc_fields_check(&f, err);
	not_here = cannot(in);
	if (r == 0 && not_here)
		r = sb_fail(err, SB_E_INVAL, "this host does not support %s", not_here);
	if (r == 0) {
		free(rec->template);
		rec->template = strdup(template);
		rec->started_ns = sb_e2b_now();
		rec->end_ns = rec->started_ns + timeout * SB_E2B_SECOND;
		wish_labels(&w);
		r = rec->template ? make(e, rec, &w, &limits, err) :
				    sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	wish_free(&w);
	json_decref(in);
	return r < 0 ? r : sb_answer_json(call, 201, sb_e2b_sandbox_made(rec), err);
}

static int
create_v1(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	return create(call, TIMEOUT_V1, err);
}

static int
create_v2(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	return create(call, SB_E2B_TIMEOUT_V2, err);
}

static int
get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[1]);
	struct sb_host_session s;
	json_t *o;

	if (!r)
		return 0;
	if (!is_there(e, r->id, &s))
		return sb_e2b_sandbox_gone(call, r->id);
	o = sb_e2b_sandbox_json(e, r, &s, false);
	sb_host_session_clear(&s);
	return sb_answer_json(call, 200, o, err);
}

static int
kill_one(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[1]);
	int res;

	if (!r)
		return 0;
	sb_e2b_watchers_end(e, r->id);
	res = sb_host_session_destroy(e->host, r->id, true, &limits, err);
	if (res == SB_E_SESSION_NOT_FOUND)
		return sb_e2b_sandbox_gone(call, r->id);
	/* Once it is begun, the host finishes it. */
	if (res < 0 && res != SB_E_TIMEOUT && res != SB_E_CANCELED)
		return res;
	sb_e2b_record_drop(e, r->id);
	sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return 0;
}

int
sb_e2b_sandbox_pause(struct sb_e2b *e, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct sb_host_capabilities caps;
	struct sb_host_snapshot snap;
	int r = sb_host_session_pause(e->host, id, call, err);

	if (r < 0)
		return r;
	/* Where the storage can: what it was when it paused, the last time only. */
	sb_host_capabilities(e->host, &caps);
	if (caps.snapshots) {
		struct sb_error why = { 0 };

		(void)sb_host_snapshot_delete(e->host, id, PAUSE_SNAPSHOT, call, NULL);
		if (sb_host_snapshot_create(e->host, id, PAUSE_SNAPSHOT, call, &snap, &why) == 0)
			sb_host_snapshot_clear(&snap);
		else
			sb_log(&e->log, SB_LOG_WARN, "e2b",
				"sandbox %s is paused without a snapshot: %s", id, why.msg);
	}
	return 0;
}

static int
pause_one(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[1]);
	int res;

	if (!r)
		return 0;
	res = sb_e2b_sandbox_pause(e, r->id, &limits, err);
	if (res == SB_E_SESSION_NOT_FOUND)
		return sb_e2b_sandbox_gone(call, r->id);
	if (res == SB_E_SESSION_PAUSED || res == SB_E_INVALID_STATE)
		return sb_e2b_refuse(call, 409, "sandbox '%s' is already paused", r->id);
	if (res < 0)
		return res;
	sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return 0;
}

/* Wherever it waits: here, or in cold storage, where a host may put what is paused for long. */
static int
wake_up(struct sb_e2b *e, const char *id, const struct sb_host_call *call, struct sb_error *err)
{
	int r = sb_host_session_resume(e->host, id, call, err);
	struct sb_host_session s = { 0 };
	bool cold = r == SB_E_INVALID_STATE &&
		sb_host_session_get(e->host, id, false, &s, NULL) == 0 &&
		(s.state == SB_HOST_COLD || s.state == SB_HOST_COOLING);

	sb_host_session_clear(&s);
	if (!cold)
		return r;
	r = sb_host_session_deep_resume(e->host, id, call, &s, err);
	sb_host_session_clear(&s);
	return r;
}

int
sb_e2b_sandbox_resume(struct sb_e2b *e, struct sb_e2b_record *r, const struct sb_host_call *call,
	struct sb_error *err)
{
	int res;

	/* The keeper must not find it running with its time over. */
	if (r->end_ns < sb_e2b_now() + SB_E2B_TIMEOUT_V2 * SB_E2B_SECOND)
		r->end_ns = sb_e2b_now() + SB_E2B_TIMEOUT_V2 * SB_E2B_SECOND;
	res = sb_e2b_record_save(e, r, err);
	if (res == 0)
		res = wake_up(e, r->id, call, err);
	return res == SB_E_INVALID_STATE ? 0 : res;
}

/* `only_paused`: the older call, which is an error for one that runs. */
static int
connect_to(struct sb_rpc_call *call, const char *id, int64_t timeout, bool only_paused,
	struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r = NULL;
	json_t *in = sb_answer_body(call, err);
	struct sb_host_session s;
	struct sb_rpc_fields f;
	int64_t end;
	bool paused;
	int res;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	if (sb_rpc_field(&f, "timeout"))
		timeout = sb_rpc_field_int(&f, "timeout", 0, SB_E2B_TIMEOUT_MAX);
	res = sb_rpc_fields_check(&f, err);
	r = res == 0 ? sb_e2b_sandbox_find(call, id) : NULL;
	if (r && sb_rpc_field(&f, "autoPause"))
		r->pause = sb_rpc_field_bool(&f, "autoPause");
	json_decref(in);
	if (!r)
		return res;
	if (!is_there(e, r->id, &s))
		return sb_e2b_sandbox_gone(call, r->id);
	paused = sb_e2b_sandbox_paused(&s);
	sb_host_session_clear(&s);
	if (!paused && only_paused)
		return sb_e2b_refuse(call, 409, "sandbox '%s' is running already", r->id);
	end = sb_e2b_now() + timeout * SB_E2B_SECOND;
	/* Only ever longer for one that runs. */
	if (paused || end > r->end_ns)
		r->end_ns = end;
	res = sb_e2b_record_save(e, r, err);
	if (res == 0 && paused)
		res = wake_up(e, r->id, &limits, err);
	if (res < 0 && res != SB_E_INVALID_STATE)
		return res;
	return sb_answer_json(call, paused ? 201 : 200, sb_e2b_sandbox_made(r), err);
}

static int
connect_any(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	bool v2 = strcmp(q->segments.v[0], "v2") == 0;

	return connect_to(call, q->segments.v[v2 ? 2 : 1], v2 ? SB_E2B_TIMEOUT_V2 : TIMEOUT_V1,
		false, err);
}

static int
resume(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return connect_to(call, q->segments.v[1], TIMEOUT_V1, true, err);
}

/* A new end from now on; `longer`: never an earlier one. */
static int
set_end(struct sb_rpc_call *call, const char *id, const char *field, int64_t max, bool longer,
	struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r = NULL;
	json_t *in = sb_answer_body(call, err);
	struct sb_rpc_fields f;
	int64_t seconds, end;
	int res;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	seconds = sb_rpc_field_int(&f, field, 0, max);
	res = sb_rpc_fields_check(&f, err);
	json_decref(in);
	if (res < 0)
		return res;
	r = sb_e2b_sandbox_find(call, id);
	if (!r)
		return 0;
	end = sb_e2b_now() + seconds * SB_E2B_SECOND;
	if (!longer || end > r->end_ns)
		r->end_ns = end;
	res = sb_e2b_record_save(e, r, err);
	if (res == 0)
		sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return res;
}

static int
set_timeout(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return set_end(call, q->segments.v[1], "timeout", SB_E2B_TIMEOUT_MAX, false, err);
}

static int
refresh(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return set_end(call, q->segments.v[1], "duration", 3600, true, err);
}

static int
health(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	(void)err;
	sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return 0;
}

/* The host keeps no series of figures: there are none for any time. */
static int
metrics(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[1]);

	return r ? sb_answer_json(call, 200, json_array(), err) : 0;
}

static int
logs(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	bool v2 = strcmp(q->segments.v[0], "v2") == 0;
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[v2 ? 2 : 1]);

	if (!r)
		return 0;
	return sb_answer_json(call, 200,
		v2 ? json_pack("{s:[]}", "logs") : json_pack("{s:[], s:[]}", "logs", "logEntries"),
		err);
}

static int
set_network(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r =
		sb_e2b_sandbox_find(call, q->segments.v[1]);
	sb_auto(sb_strlist) struct sb_strlist allow = { 0 }, deny = { 0 };
	static const char *const all[] = { "*" };
	json_t *in = r ? sb_answer_body(call, err) : NULL;
	struct sb_rpc_fields f;
	const char *not_here;
	size_t cut;
	int res;

	if (!r)
		return 0;
	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	sb_rpc_field_list(&f, "allowOut", 256, 256, &allow);
	sb_rpc_field_list(&f, "denyOut", 256, 256, &deny);
	if (sb_rpc_field(&f, "allow_internet_access"))
		r->internet = sb_rpc_field_bool(&f, "allow_internet_access");
	res = sb_rpc_fields_check(&f, err);
	not_here = cannot(in)                      ? cannot(in) :
		json_object_get(in, "rules")       ? "rules" :
		json_object_get(in, "egressProxy") ? "egressProxy" :
						     NULL;
	json_decref(in);
	if (res == 0 && not_here)
		return sb_e2b_refuse(call, 400, "this host does not support %s", not_here);
	if (res == 0)
		res = sb_host_network_set(e->host, r->id,
			r->internet && allow.n == 0 ? all : (const char *const *)allow.v,
			r->internet && allow.n == 0 ? 1 : allow.n, (const char *const *)deny.v,
			deny.n, &cut, err);
	if (res == 0)
		res = sb_e2b_record_save(e, r, err);
	if (res == SB_E_INVALID_STATE)
		return sb_e2b_refuse(call, 409, "%s", err->msg);
	if (res == 0)
		sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return res;
}

static int
template_alias(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_autofree char *full = NULL;
	const char *name = q->segments.v[2];

	if (strcmp(name, "base") != 0 && !base_exists(sb_rpc_call_arg(call), name, &full))
		return sb_e2b_refuse(call, 404, "template '%.100s' not found", name);
	return sb_answer_json(call, 200, json_pack("{s:s, s:b}", "templateID", name, "public", 1),
		err);
}

static int
not_here(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)err;
	return sb_e2b_refuse(call, 501, "this host does not serve %s: see sbhostd(8)",
		q->segments.v[0]);
}

#define ROUTE(verb, path, run, body) \
	{ \
		verb, path, SB_E2B_CONTROL, run, SB_RPC_HTTP_##body, false, false, false \
	}
const struct sb_e2b_route sb_e2b_control_routes[] = {
	{ "GET", "/health", SB_E2B_CONTROL, health, SB_RPC_HTTP_NO_BODY, false, false, true },
	ROUTE("POST", "/sandboxes", create_v1, WHOLE),
	ROUTE("POST", "/v2/sandboxes", create_v2, WHOLE),
	ROUTE("GET", "/sandboxes", sb_e2b_list_v1, NO_BODY),
	ROUTE("GET", "/v2/sandboxes", sb_e2b_list_v2, NO_BODY),
	ROUTE("GET", "/sandboxes/*", get, NO_BODY),
	ROUTE("DELETE", "/sandboxes/*", kill_one, NO_BODY),
	ROUTE("POST", "/sandboxes/*/pause", pause_one, WHOLE),
	ROUTE("POST", "/sandboxes/*/connect", connect_any, WHOLE),
	ROUTE("POST", "/v2/sandboxes/*/connect", connect_any, WHOLE),
	ROUTE("POST", "/sandboxes/*/resume", resume, WHOLE),
	ROUTE("POST", "/sandboxes/*/timeout", set_timeout, WHOLE),
	ROUTE("POST", "/sandboxes/*/refreshes", refresh, WHOLE),
	ROUTE("GET", "/sandboxes/*/metrics", metrics, NO_BODY),
	ROUTE("GET", "/sandboxes/*/logs", logs, NO_BODY),
	ROUTE("GET", "/v2/sandboxes/*/logs", logs, NO_BODY),
	ROUTE("POST", "/sandboxes/*/snapshots", sb_e2b_snapshot_take, WHOLE),
	ROUTE("POST", "/sandboxes/*/fork", sb_e2b_snapshot_fork, WHOLE),
	ROUTE("PUT", "/sandboxes/*/network", set_network, WHOLE),
	ROUTE("GET", "/snapshots", sb_e2b_snapshot_list, NO_BODY),
	ROUTE("DELETE", "/templates/*", sb_e2b_snapshot_delete, NO_BODY),
	ROUTE("GET", "/templates/aliases/*", template_alias, NO_BODY),
	ROUTE("POST", "/v3/templates", not_here, NO_BODY),
	ROUTE("GET", "/volumes", not_here, NO_BODY),
	ROUTE("POST", "/volumes", not_here, NO_BODY),
	ROUTE("GET", "/secrets", not_here, NO_BODY),
	ROUTE("POST", "/secrets", not_here, NO_BODY),
	{ NULL, NULL, SB_E2B_CONTROL, NULL, SB_RPC_HTTP_NO_BODY, false, false, false },
};
