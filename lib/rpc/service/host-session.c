/* SPDX-License-Identifier: MIT */
/* The procedures about sessions: create, look, label, pause, resume, cold, fork, destroy. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/service/host-priv.h>
#include <sb/host-cold.h>

#define LIST_LIMIT 1000
#define LIST_LIMIT_MAX 10000

const char *
sb_rpc_host_session_id(struct sb_rpc_call *call, struct sb_rpc_fields *f)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	const struct sb_rpc_who *who = sb_rpc_call_who(call);
	const char *id = sb_rpc_field_str(f, "SessionID", SB_HOST_ID_MAX, SB_RPC_REQUIRED);
	struct sb_host_session s;

	if (!f->failed)
		f->failed = sb_host_session_fence(h->host, id, sb_rpc_call_fence(call), &f->err);
	if (f->failed || !who->nonce[0])
		return id;
	f->failed = sb_host_session_get(h->host, id, false, &s, &f->err);
	if (f->failed < 0)
		return id;
	f->failed = 0;
	if (strcmp(s.nonce, who->nonce) != 0)
		f->failed = sb_fail(&f->err, SB_E_DENIED,
			"this token is for another session of that id");
	sb_host_session_clear(&s);
	return id;
}

int
sb_rpc_host_fields_end(struct sb_rpc_call *call, const struct sb_rpc_fields *f,
	struct sb_error *err)
{
	if (f->failed && f->field[0])
		sb_rpc_call_bad_field(call, f->field);
	return sb_rpc_fields_check(f, err);
}

int
sb_rpc_host_only_session(struct sb_rpc_call *call, const json_t *in, const char **out_id,
	struct sb_error *err)
{
	struct sb_rpc_fields f;

	sb_rpc_fields_init(&f, in);
	*out_id = sb_rpc_host_session_id(call, &f);
	return sb_rpc_host_fields_end(call, &f, err);
}

struct sb_host_call
sb_rpc_host_limits(const struct sb_rpc_call *call)
{
	return (struct sb_host_call){ sb_rpc_call_cancel(call), sb_rpc_call_deadline(call),
		sb_rpc_call_fence(call) };
}

struct sb_host_label *
sb_rpc_host_labels(struct sb_rpc_fields *f, struct sb_strmap *map)
{
	struct sb_host_label *v;

	sb_rpc_field_map(f, "Labels", SB_HOST_LABELS_MAX, SB_HOST_LABEL_KEY_MAX,
		SB_HOST_LABEL_VALUE_MAX, map);
	if (f->failed)
		return NULL;
	v = calloc(map->n + 1, sizeof *v);
	if (!v) {
		f->failed = sb_fail(&f->err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < map->n; i++)
		v[i] = (struct sb_host_label){ map->v[i].key, map->v[i].value };
	return v;
}

/* The answer with one session; clears it. */
static int
answer(struct sb_rpc_call *call, struct sb_host_session *s, json_t **out)
{
	*out = sb_rpc_host_wrap("Session", sb_rpc_host_session_json(call, s));
	sb_host_session_clear(s);
	return 0;
}

/* "" in either means the host's own. */
static void
runtime_fields(struct sb_rpc_fields *f, struct sb_host_create_opts *o)
{
	const char *runtime = sb_rpc_field_str(f, "Runtime", 32, 0);
	const char *network = sb_rpc_field_str(f, "Network", 32, 0);

	if (runtime && *runtime && !sb_host_runtime_from(runtime, &o->runtime))
		sb_rpc_field_bad(f, "Runtime", "must be none, bwrap, gvisor or auto");
	if (network && *network && !sb_host_network_from(network, &o->network))
		sb_rpc_field_bad(f, "Network", "must be none, outbound, sandbox or host");
}

int
sb_rpc_host_create_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };
	sb_auto(sb_strlist) struct sb_strlist allow = { 0 }, deny = { 0 };
	sb_autofree struct sb_host_label *labels = NULL;
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_session s;
	struct sb_rpc_fields f;
	int r;

	sb_rpc_fields_init(&f, in);
	o.base = sb_rpc_field_str(&f, "BaseSnapshot", 2048, 0);
	o.id = sb_rpc_field_str(&f, "SessionID", SB_HOST_ID_MAX, 0);
	o.quota = (uint64_t)sb_rpc_field_int(&f, "Quota", 0, INT64_MAX);
	o.empty = sb_rpc_field_bool(&f, "Empty");
	runtime_fields(&f, &o);
	sb_rpc_host_network_lists(&f, &allow, &deny, &o);
	labels = sb_rpc_host_labels(&f, &map);
	o.labels = labels;
	o.n_labels = map.n;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0 && o.id[0])
		r = sb_host_session_fence(h->host, o.id, limits.fence, err);
	if (r == 0)
		r = sb_host_session_create(h->host, &o, &limits, &s, err);
	if (r < 0)
		return r;
	(void)answer(call, &s, out);
	(void)json_object_set_new(*out, "ServerCapabilities",
		sb_rpc_host_capabilities_json(h->host));
	return 0;
}

int
sb_rpc_host_get_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_session s;
	struct sb_rpc_fields f;
	const char *id;
	bool measure;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	measure = sb_rpc_field_bool(&f, "Measure");
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0 && measure && sb_rpc_call_inlined(call))
		return SB_RPC_LATER;
	if (r == 0)
		r = sb_host_session_get(h->host, id, measure, &s, err);
	return r < 0 ? r : answer(call, &s, out);
}

/* The states of a filter as a bit mask; the wire's names stand for all they cover. */
static unsigned
states_mask(struct sb_rpc_fields *f)
{
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	unsigned mask = 0;

	sb_rpc_field_list(f, "States", SB_HOST_STATES, 32, &names);
	for (size_t i = 0; i < names.n; i++) {
		unsigned found = 0;

		for (int s = 0; s < SB_HOST_STATES; s++)
			if (strcmp(names.v[i], sb_host_state_wire((enum sb_host_state)s)) == 0 ||
				strcmp(names.v[i], sb_host_state_name((enum sb_host_state)s)) == 0)
				found |= 1u << s;
		if (found == 0)
			sb_rpc_field_bad(f, "States",
				"must be of creating, active, paused, cold, destroying, failed");
		mask |= found;
	}
	return mask;
}

int
sb_rpc_host_list_sessions(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_filter filter = SB_HOST_FILTER_INIT;
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };
	sb_autofree struct sb_host_label *labels = NULL;
	struct sb_host_session *v = NULL;
	struct sb_rpc_fields f;
	size_t n = 0, limit;
	json_t *list;
	int r;

	sb_rpc_fields_init(&f, in);
	labels = sb_rpc_host_labels(&f, &map);
	filter.labels = labels;
	filter.n_labels = map.n;
	filter.states = states_mask(&f);
	filter.after = sb_rpc_field_str(&f, "After", SB_HOST_ID_MAX, 0);
	limit = (size_t)sb_rpc_field_int(&f, "Limit", 0, LIST_LIMIT_MAX);
	limit = limit > 0 ? limit : LIST_LIMIT;
	filter.limit = limit + 1;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_session_list(h->host, &filter, &v, &n, err);
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < n && i < limit; i++)
		(void)json_array_append_new(list, sb_rpc_host_session_json(call, &v[i]));
	*out = sb_rpc_host_wrap("Sessions", list);
	sb_rpc_host_put(*out, "NextAfter", n > limit ? v[limit - 1].id : "");
	sb_host_sessions_free(v, n);
	return 0;
}

int
sb_rpc_host_set_labels(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };
	sb_autofree struct sb_host_label *labels = NULL;
	struct sb_host_session s;
	struct sb_rpc_fields f;
	const char *id;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	labels = sb_rpc_host_labels(&f, &map);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_session_set_labels(h->host, id, labels, map.n, err);
	if (r == 0)
		r = sb_host_session_get(h->host, id, false, &s, err);
	return r < 0 ? r : answer(call, &s, out);
}

/* A procedure that does one thing to the session it names and answers nothing. */
static int
to_session(struct sb_rpc_call *call, const json_t *in,
	int (*fn)(struct sb_host *, const char *, const struct sb_host_call *, struct sb_error *),
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	const char *id;
	int r = sb_rpc_host_only_session(call, in, &id, err);

	return r < 0 ? r : fn(h->host, id, &limits, err);
}

int
sb_rpc_host_pause_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	(void)out;
	return to_session(call, in, sb_host_session_pause, err);
}

int
sb_rpc_host_resume_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	(void)out;
	return to_session(call, in, sb_host_session_resume, err);
}

int
sb_rpc_host_deep_pause_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	(void)out;
	return to_session(call, in, sb_host_session_deep_pause, err);
}

int
sb_rpc_host_deep_resume_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_session s = { 0 };
	const char *id;
	int r = sb_rpc_host_only_session(call, in, &id, err);

	if (r == 0)
		r = sb_host_session_deep_resume(h->host, id, &limits, &s, err);
	return r < 0 ? r : answer(call, &s, out);
}

int
sb_rpc_host_destroy_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_rpc_fields f;
	const char *id;
	bool force;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	force = sb_rpc_field_bool(&f, "Force");
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r < 0)
		return r;
	r = sb_host_session_destroy(h->host, id, force, &limits, err);
	sb_rpc_idem_forget(h->idem, id);
	return r;
}

int
sb_rpc_host_fork(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };
	sb_auto(sb_strlist) struct sb_strlist allow = { 0 }, deny = { 0 };
	sb_autofree struct sb_host_label *labels = NULL;
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_session s;
	struct sb_rpc_fields f;
	const char *id, *name;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	name = sb_rpc_field_str(&f, "SnapshotID", SB_HOST_NAME_MAX, 0);
	o.id = sb_rpc_field_str(&f, "NewSessionID", SB_HOST_ID_MAX, 0);
	o.quota = (uint64_t)sb_rpc_field_int(&f, "Quota", 0, INT64_MAX);
	runtime_fields(&f, &o);
	sb_rpc_host_network_lists(&f, &allow, &deny, &o);
	labels = sb_rpc_host_labels(&f, &map);
	o.labels = labels;
	o.n_labels = map.n;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0 && o.id[0])
		r = sb_host_session_fence(h->host, o.id, limits.fence, err);
	if (r == 0)
		r = sb_host_session_fork(h->host, id, name, &o, &limits, &s, err);
	return r < 0 ? r : answer(call, &s, out);
}
