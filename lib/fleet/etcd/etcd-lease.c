/* SPDX-License-Identifier: MIT */
/* Leases of etcd: keys that end when nobody renews them. */
#include "config.h"

#include "etcd-priv.h"

#include <string.h>

int
sb_etcd_lease_grant(struct sb_etcd *e, int64_t ttl, int64_t *id, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *answer;
	int r;

	r = sb_etcd_call(e, "/v3/lease/grant", json_pack("{s:I}", "TTL", (json_int_t)ttl), false,
		cancel, &answer, err);
	if (r < 0)
		return r;
	if (!sb_etcd_number(answer, "ID", id) || *id == 0)
		r = sb_fail(err, SB_E_PROTO, "etcd: a lease without a number");
	json_decref(answer);
	return r;
}

/* What is left of the lease that one line of the answer is about. */
static int
take_renewal(const char *line, size_t len, const int64_t *ids, size_t n, int64_t *ttl,
	struct sb_error *err)
{
	json_t *o = json_loadb(line, len, 0, NULL);
	const json_t *result = json_object_get(o, "result");
	int64_t id, left;
	int r = 0;

	if (json_object_get(o, "error"))
		r = sb_etcd_failure(json_object_get(o, "error"), "renewing a lease", err);
	else if (!sb_etcd_number(result, "ID", &id) || !sb_etcd_number(result, "TTL", &left))
		r = sb_fail(err, SB_E_PROTO, "etcd: a damaged renewal");
	/* A lease that has ended is answered without a TTL. */
	for (size_t i = 0; r == 0 && i < n; i++)
		if (ids[i] == id)
			ttl[i] = left;
	json_decref(o);
	return r;
}

/* The gateway takes several objects in one body, and answers with as many lines. */
static int
renew_at(struct sb_etcd *e, size_t member, const struct sb_buf *body, const int64_t *ids, size_t n,
	int64_t *ttl, const struct sb_rest_wait *wait, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	const char *at, *end;
	int r;

	q.method = "POST";
	q.target = "/v3/lease/keepalive";
	q.body = body->data;
	q.body_len = body->len;
	q.type = "application/json";
	q.again = SB_REST_REPEAT;
	r = sb_rest_call(e->member[member], &q, wait, &a, err);
	if (r == 0)
		r = sb_rest_check(&a, "renewing leases", err);
	if (r < 0)
		return r;
	at = (const char *)a.body.data;
	end = at + a.body.len;
	while (r == 0 && at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);

		if (len > 0)
			r = take_renewal(at, len, ids, n, ttl, err);
		at += len + 1;
	}
	return r;
}

int
sb_etcd_lease_renew(struct sb_etcd *e, const int64_t *ids, size_t n, int64_t *ttl,
	const struct sb_cancel *cancel, struct sb_error *err)
{
	sb_deadline end = sb_deadline_in(e->call_ms);
	size_t first = atomic_load(&e->last);
	sb_auto(sb_buf) struct sb_buf body;
	struct sb_error why = { 0 };
	int r = 0;

	sb_buf_init(&body, ANSWER_MAX);
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		sb_buf_addf(&body, "{\"ID\":\"%lld\"}", (long long)ids[i]);
	if (sb_buf_check(&body, "leases", err) < 0)
		return SB_E_NOMEM;
	for (size_t i = 0; i < e->n; i++) {
		struct sb_rest_wait wait = { .cancel = cancel,
			.deadline =
				sb_deadline_min(end, sb_deadline_in(e->call_ms / (int64_t)e->n)) };

		memset(ttl, 0, n * sizeof *ttl);
		r = renew_at(e, (first + i) % e->n, &body, ids, n, ttl, &wait, &why);
		if (r == 0)
			return 0;
		if (sb_cancel_requested(cancel))
			return sb_fail(err, SB_E_CANCELED, "etcd: renewing leases: canceled");
	}
	return sb_fail(err, SB_E_UNAVAILABLE, "%s", why.msg);
}

int
sb_etcd_lease_revoke(struct sb_etcd *e, int64_t id, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *answer = NULL;
	struct sb_error why = { 0 };
	int r;

	/* Revoking twice does no harm, so it may be sent again. */
	r = sb_etcd_call(e, "/v3/lease/revoke", json_pack("{s:I}", "ID", (json_int_t)id), true,
		cancel, &answer, &why);
	json_decref(answer);
	if (r == SB_E_NOTFOUND)
		return 0;
	return r < 0 ? sb_fail(err, r, "%s", why.msg) : 0;
}
