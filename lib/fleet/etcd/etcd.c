/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "etcd-priv.h"

#include <stdlib.h>
#include <string.h>

/* Codes of gRPC that the gateway answers with. */
enum {
	GRPC_CANCELED = 1,
	GRPC_INVALID = 3,
	GRPC_DEADLINE = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_DENIED = 7,
	GRPC_EXHAUSTED = 8,
	GRPC_PRECONDITION = 9,
	GRPC_RANGE = 11,
	GRPC_UNAVAILABLE = 14,
	GRPC_NOBODY = 16,
};

void
sb_etcd_free(struct sb_etcd *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++)
		sb_rest_free(e->member[i]);
	free(e);
}

struct sb_etcd *
sb_etcd_new(const struct sb_etcd_opts *o, struct sb_error *err)
{
	sb_auto(sb_etcd) struct sb_etcd *e = NULL;

	if (o->n_endpoints == 0 || o->n_endpoints > MEMBERS_MAX) {
		(void)sb_fail(err, SB_E_INVAL, "%zu etcd endpoints: 1 to %d are needed",
			o->n_endpoints, MEMBERS_MAX);
		return NULL;
	}
	e = calloc(1, sizeof *e);
	if (!e) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	e->call_ms = o->call_ms;
	e->log = o->log;
	for (size_t i = 0; i < o->n_endpoints; i++) {
		struct sb_rest_opts r = SB_REST_OPTS_INIT;

		r.base = o->endpoints[i];
		r.ca_file = o->ca_file;
		r.cert_file = o->cert_file;
		r.key_file = o->key_file;
		r.proxy = "";
		r.connect_ms = o->connect_ms;
		r.max_body = ANSWER_MAX;
		r.tries = 1;
		r.log = o->log;
		e->member[i] = sb_rest_new(&r, err);
		if (!e->member[i])
			return NULL;
		e->n++;
	}
	return sb_steal(&e);
}

/* The code of a failure, by gRPC's; texts of etcd where one code stands for several things. */
static int
code_of(int64_t grpc, const char *text)
{
	if (strstr(text, "database space exceeded"))
		return SB_E_NOSPACE;
	switch (grpc) {
	case GRPC_INVALID: return strstr(text, "too large") ? SB_E_LIMIT : SB_E_INVAL;
	case GRPC_NOT_FOUND: return SB_E_NOTFOUND;
	case GRPC_RANGE: return SB_E_CHANGED;
	case GRPC_EXHAUSTED: return SB_E_LIMIT;
	case GRPC_DENIED:
	case GRPC_NOBODY: return SB_E_AUTH;
	case GRPC_CANCELED:
	case GRPC_DEADLINE:
	case GRPC_UNAVAILABLE: return SB_E_UNAVAILABLE;
	case GRPC_PRECONDITION: return SB_E_CONFLICT;
	default: return SB_E_PEER;
	}
}

int
sb_etcd_failure(const json_t *o, const char *what, struct sb_error *err)
{
	const json_t *code = json_object_get(o, "grpc_code");
	const char *text = json_string_value(json_object_get(o, "message"));

	if (!code)
		code = json_object_get(o, "code");
	if (!text)
		text = json_string_value(json_object_get(o, "error"));
	if (!text)
		return sb_fail(err, SB_E_PROTO, "etcd %s: a failure without a text", what);
	return sb_fail(err, code_of(json_integer_value(code), text), "etcd %s: %s", what, text);
}

int
sb_etcd_call_one(struct sb_etcd *e, size_t member, const char *path, const json_t *ask, bool reads,
	const struct sb_rest_wait *wait, json_t **out, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	json_t *o;
	int r;

	q.method = "POST";
	q.target = path;
	q.json = ask;
	q.again = reads ? SB_REST_REPEAT : SB_REST_UNSENT;
	r = sb_rest_call(e->member[member], &q, wait, &a, err);
	if (r < 0)
		return r;
	o = sb_rest_json(&a, path, err);
	if (!o)
		return SB_E_PROTO;
	if (a.status == 200) {
		*out = o;
		return 0;
	}
	r = sb_etcd_failure(o, path, err);
	json_decref(o);
	return r;
}

/* Another member may know more. */
static bool
worth_another(int code)
{
	return code == SB_E_CONNECT || code == SB_E_CLOSED || code == SB_E_TIMEOUT ||
		code == SB_E_UNAVAILABLE || code == SB_E_HOSTKEY || code == SB_E_PROTO;
}

/*
 * The member has not taken the request: it was not reached, or said itself that it cannot. An
 * answer that is lost proves nothing.
 */
static bool
nothing_happened(const struct sb_error *err)
{
	return err->code == SB_E_CONNECT || err->code == SB_E_HOSTKEY ||
		(err->code == SB_E_UNAVAILABLE && strstr(err->msg, "no leader"));
}

static int
call_members(struct sb_etcd *e, const char *path, const json_t *ask, bool reads,
	const struct sb_cancel *cancel, json_t **out, struct sb_error *why)
{
	sb_deadline end = sb_deadline_in(e->call_ms);
	size_t first = atomic_load(&e->last);
	int r = 0;

	for (size_t i = 0; i < e->n; i++) {
		size_t at = (first + i) % e->n;
		struct sb_rest_wait wait = { .cancel = cancel, .deadline = end };

		/* A member that hangs leaves time for the others. */
		if (reads && i + 1 < e->n)
			wait.deadline =
				sb_deadline_min(end, sb_deadline_in(e->call_ms / (int64_t)e->n));
		r = sb_etcd_call_one(e, at, path, ask, reads, &wait, out, why);
		if (r == 0) {
			atomic_store(&e->last, at);
			return 0;
		}
		if (sb_check_alive(cancel, end, "etcd", NULL) < 0 || !worth_another(r))
			return r;
		(void)atomic_compare_exchange_strong(&e->last, &at, (at + 1) % e->n);
		if (!reads && !nothing_happened(why))
			return r;
	}
	return r;
}

int
sb_etcd_call(struct sb_etcd *e, const char *path, json_t *ask, bool reads,
	const struct sb_cancel *cancel, json_t **out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r;

	if (!ask)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = call_members(e, path, ask, reads, cancel, out, &why);
	json_decref(ask);
	if (r == 0)
		return 0;
	if (sb_cancel_requested(cancel))
		return sb_fail(err, SB_E_CANCELED, "etcd %s: canceled", path);
	return sb_fail(err, worth_another(r) ? SB_E_UNAVAILABLE : r, "%s", why.msg);
}
