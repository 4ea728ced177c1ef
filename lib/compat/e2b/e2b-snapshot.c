/* SPDX-License-Identifier: MIT */
/* The control plane: forks and snapshots of a sandbox. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <compat/e2b/e2b-priv.h>
#include <host/host.h>

#define FORKS_MAX 100

/* A session forked from `from`, with a record of its own. NULL: error. */
static struct sb_e2b_record *
fork_record(struct sb_e2b *e, const struct sb_e2b_record *from, bool snapshot,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_e2b_record *r = sb_e2b_record_new(snapshot, err);
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	if (!r)
		return NULL;
	free(r->template);
	r->template = strdup(from->template);
	json_decref(r->env);
	r->env = json_deep_copy(from->env);
	r->pause = from->pause;
	r->auto_resume = from->auto_resume;
	r->internet = from->internet;
	r->started_ns = sb_e2b_now();
	r->end_ns = r->started_ns + SB_E2B_TIMEOUT_V2 * SB_E2B_SECOND;
	memcpy(r->origin, from->id, sizeof r->origin);
	o.id = r->id;
	if (!r->template || !r->env) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	} else if (sb_e2b_record_save(e, r, err) == 0) {
		/* On record first, as every sandbox: the caller says when it ends. */
		if (sb_host_session_fork(e->host, from->id, NULL, &o, call, &s, err) == 0) {
			sb_host_session_clear(&s);
			return r;
		}
		sb_e2b_record_drop(e, r->id);
	}
	sb_e2b_record_free(r);
	return NULL;
}

int
sb_e2b_snapshot_fork(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *from =
		sb_e2b_sandbox_find(call, q->segments.v[1]);
	json_t *in = from ? sb_answer_body(call, err) : NULL, *out;
	int64_t timeout = SB_E2B_TIMEOUT_V2, count = 1;
	struct sb_rpc_fields f;
	int r;

	if (!from)
		return 0;
	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	if (sb_rpc_field(&f, "timeout"))
		timeout = sb_rpc_field_int(&f, "timeout", 0, SB_E2B_TIMEOUT_MAX);
	if (sb_rpc_field(&f, "count"))
		count = sb_rpc_field_int(&f, "count", 1, FORKS_MAX);
	r = sb_rpc_fields_check(&f, err);
	json_decref(in);
	if (r < 0)
		return r;
	out = json_array();
	for (int64_t i = 0; i < count; i++) {
		struct sb_error why = { 0 };
		sb_auto(sb_e2b_record) struct sb_e2b_record *n =
			fork_record(e, from, false, &limits, &why);

		if (n) {
			n->end_ns = n->started_ns + timeout * SB_E2B_SECOND;
			r = sb_e2b_record_save(e, n, &why);
		}
		(void)json_array_append_new(out,
			n && r == 0 ? json_pack("{s:o}", "sandbox", sb_e2b_sandbox_made(n)) :
				      json_pack("{s:{s:i, s:s}}", "error", "code", 500, "message",
					      why.msg));
	}
	return sb_answer_json(call, 201, out, err);
}

static json_t *
snapshot_json(const struct sb_e2b_record *r)
{
	json_t *names = json_array();

	if (*r->name)
		(void)json_array_append_new(names, json_string(r->name));
	return json_pack("{s:s, s:o}", "snapshotID", r->id, "names", names);
}

int
sb_e2b_snapshot_take(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *from = sb_e2b_sandbox_find(call,
							    q->segments.v[1]),
						    *r = NULL;
	json_t *in = from ? sb_answer_body(call, err) : NULL;
	struct sb_rpc_fields f;
	int res;

	if (!from)
		return 0;
	if (!in)
		return SB_E_INVAL;
	r = fork_record(e, from, true, &limits, err);
	res = r ? 0 : err->code;
	if (r) {
		sb_rpc_fields_init(&f, in);
		free(r->name);
		r->name = strdup(sb_rpc_field_str(&f, "name", 256, 0));
		r->end_ns = INT64_MAX;
		res = sb_rpc_fields_check(&f, err);
		if (res == 0)
			res = sb_e2b_record_save(e, r, err);
	}
	json_decref(in);
	if (res == SB_E_SESSION_NOT_FOUND)
		return sb_e2b_sandbox_gone(call, from->id);
	return res < 0 ? res : sb_answer_json(call, 201, snapshot_json(r), err);
}

int
sb_e2b_snapshot_list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	const char *origin = sb_query_get(q, "sandboxID"), *name = sb_query_get(q, "name");
	json_t *out = json_array();
	size_t n;
	struct sb_e2b_record **v = sb_e2b_record_all(e, true, &n);

	for (size_t i = 0; v && i < n; i++) {
		if ((!origin || strcmp(origin, v[i]->origin) == 0) &&
			(!name || strcmp(name, v[i]->name) == 0))
			(void)json_array_append_new(out, snapshot_json(v[i]));
		sb_e2b_record_free(v[i]);
	}
	free(v);
	return sb_answer_json(call, 200, out, err);
}

int
sb_e2b_snapshot_delete(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	sb_auto(sb_e2b_record) struct sb_e2b_record *r = sb_e2b_record_find(e, q->segments.v[1]);
	int res;

	if (!r || !r->snapshot)
		return sb_e2b_refuse(call, 404, "template '%.100s' not found", q->segments.v[1]);
	res = sb_host_session_destroy(e->host, r->id, true, &limits, err);
	if (res < 0 && res != SB_E_SESSION_NOT_FOUND)
		return res;
	sb_e2b_record_drop(e, r->id);
	sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return 0;
}
