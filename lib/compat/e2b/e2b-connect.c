/* SPDX-License-Identifier: MIT */
/* Connect's unary and streaming calls as the vendor's clients make them: JSON, no compression. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <rpc/protocol/envelope.h>

#define KEEPALIVE_MS 90000

int64_t
sb_e2b_keepalive(struct sb_rpc_call *call)
{
	const char *h = sb_rpc_http_header(call, "Keepalive-Ping-Interval");
	int64_t s = 0;

	return h && sb_str_to_i64(h, 1, 3600, &s) ? s * 1000 : KEEPALIVE_MS;
}

void
sb_e2b_failure(struct sb_error *err, struct sb_rpc_failure *out)
{
	sb_rpc_failure_from_error(out, err);
	switch (err->code) {
	case SB_E_PROCESS_NOT_FOUND:
	case SB_E_NOTFOUND: out->code = SB_RPC_NOT_FOUND; break;
	case SB_E_CLOSED: out->code = SB_RPC_INTERNAL; break;
	case SB_E_INVAL:
		out->code =
			err->sys == ELOOP ? SB_RPC_FAILED_PRECONDITION : SB_RPC_INVALID_ARGUMENT;
		break;
	case SB_E_AUTH: out->code = SB_RPC_UNAUTHENTICATED; break;
	case SB_E_TIMEOUT: out->code = SB_RPC_DEADLINE_EXCEEDED; break;
	default: break;
	}
}

static json_t *
failure_json(const struct sb_rpc_failure *f)
{
	return json_pack("{s:s, s:o}", "code", sb_rpc_code_name(f->code), "message",
		sb_rpc_json_text(f->msg, strlen(f->msg)));
}

/* The call's own deadline, which the client tells. */
static void
set_deadline(struct sb_rpc_call *call, struct sb_e2b_visit *v)
{
	const char *h = sb_rpc_http_header(call, "Connect-Timeout-Ms");
	int64_t ms = 0;

	if (h && sb_str_to_i64(h, 1, INT64_C(10000000000), &ms))
		v->call.deadline = sb_deadline_in(ms);
}

int
sb_e2b_unary(struct sb_rpc_call *call, sb_e2b_method_fn fn, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	struct sb_rpc_failure f = { 0 };
	json_t *in = sb_answer_body(call, err), *out = NULL;
	int r = in ? sb_e2b_visit(call, NULL, &v, err) : SB_E_INVAL;

	if (r == 0) {
		set_deadline(call, &v);
		r = fn(call, &v, in, &out, err);
	}
	json_decref(in);
	if (r == 1)
		return 0;
	if (r == 0)
		return sb_answer_json(call, 200, out ? out : json_object(), err);
	json_decref(out);
	if (err->code == SB_E_CANCELED)
		return r;
	sb_e2b_failure(err, &f);
	return sb_answer_json(call, sb_rpc_code_http(f.code), failure_json(&f), err);
}

static int
put(struct sb_rpc_call *call, uint8_t flags, json_t *msg, struct sb_error *err)
{
	char *text = msg ? json_dumps(msg, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;
	sb_auto(sb_buf) struct sb_buf b;
	uint8_t head[SB_RPC_ENVELOPE_SIZE];
	int r;

	sb_buf_init(&b, len + sizeof head);
	json_decref(msg);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_rpc_envelope_head(head, flags, (uint32_t)len);
	sb_buf_add(&b, head, sizeof head);
	sb_buf_add(&b, text, len);
	free(text);
	r = sb_buf_check(&b, "message", err);
	return r < 0 ? r : sb_rpc_http_write(call, b.data, b.len, err);
}

int
sb_e2b_send(struct sb_rpc_call *call, json_t *msg, struct sb_error *err)
{
	return put(call, 0, msg, err);
}

int
sb_e2b_send_end(struct sb_rpc_call *call, json_t *msg, struct sb_error *err)
{
	return put(call, SB_RPC_FLAG_END, msg, err);
}

/* The request's one message in its envelope. */
static json_t *
read_message(struct sb_rpc_call *call, struct sb_error *err)
{
	size_t len, n = 0;
	const char *body = sb_rpc_http_body(call, &len);
	const uint8_t *msg = NULL;
	uint8_t flags = 0;
	int r = sb_rpc_envelope_next((const uint8_t *)body, len, len, &flags, &msg, &n, err);

	if (r < 0)
		return NULL;
	if (r == 0 || flags != 0 || n + SB_RPC_ENVELOPE_SIZE != len) {
		(void)sb_fail(err, SB_E_INVAL, "the request must be one message in its envelope");
		return NULL;
	}
	return sb_rpc_json_parse(msg, n, err);
}

int
sb_e2b_stream(struct sb_rpc_call *call, sb_e2b_method_fn fn, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	struct sb_rpc_failure f = { 0 };
	struct sb_error why = { 0 };
	json_t *in = read_message(call, &why), *none = NULL;
	int r = 0, told;

	if (in)
		r = sb_e2b_visit(call, NULL, &v, &why);
	if (r == 1) {
		json_decref(in);
		return 0;
	}
	/* Strangers get a status; all other errors are the stream's end. */
	if (r < 0 && why.code == SB_E_AUTH) {
		json_decref(in);
		*err = why;
		return r;
	}
	set_deadline(call, &v);
	told = sb_rpc_http_begin(call, 200, "application/connect+json", -1, err);
	if (told == 0 && r == 0)
		r = in ? fn(call, &v, in, &none, &why) : SB_E_INVAL;
	json_decref(in);
	if (told < 0)
		return told;
	if (r >= 0)
		return put(call, SB_RPC_FLAG_END, json_object(), err);
	sb_e2b_failure(&why, &f);
	return put(call, SB_RPC_FLAG_END, json_pack("{s:o}", "error", failure_json(&f)), err);
}
