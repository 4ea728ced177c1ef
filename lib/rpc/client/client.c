/* SPDX-License-Identifier: MIT */
/* A Connect client over libcurl: unary calls and streams (declared in sb/rpc.h). */
#include "config.h"

#include <sb/rpc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/str.h>
#include <cloud/http/rest.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/gzip.h>

#define DIGITS_MAX 24

struct sb_rpc_client {
	struct sb_rest *rest;
	char *service;
	size_t max_message;
};

/* One stream under way. */
struct transfer {
	struct sb_rpc_client *client;
	struct sb_buf in; /* what came and is not used up */
	bool is_stream;   /* the answer really is one */
	bool ended;       /* the end-of-stream message came */
	sb_rpc_message_fn fn;
	void *arg;
};

void
sb_rpc_client_free(struct sb_rpc_client *c)
{
	if (!c)
		return;
	sb_rest_free(c->rest);
	free(c->service);
	free(c);
}

struct sb_rpc_client *
sb_rpc_client_new(const struct sb_rpc_client_opts *o, struct sb_error *err)
{
	struct sb_rpc_client *c = calloc(1, sizeof *c);
	struct sb_rest_opts ro = SB_REST_OPTS_INIT;
	sb_autofree char *bearer = o->token ? sb_str_printf("Bearer %s", o->token) : NULL;
	sb_autofree char *place = NULL;
	struct sb_rest_header headers[] = { { "Connect-Protocol-Version", "1", false },
		{ "Authorization", bearer, true } };

	/* A path alone is a socket, too. */
	if (strchr(o->address, '/') && !strstr(o->address, "://") &&
		!sb_str_starts(o->address, "unix:"))
		place = sb_str_printf("unix:%s", o->address);
	if (c)
		c->service = strdup(o->service);
	if (!c || !c->service || (o->token && !bearer)) {
		sb_rpc_client_free(c);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	c->max_message = o->max_message;
	ro.base = place ? place : o->address;
	ro.name = o->address;
	ro.ca_file = o->ca_file;
	/* An environment proxy is not for a host on this machine or in this fleet. */
	ro.proxy = "";
	ro.headers = headers;
	ro.n_headers = o->token ? 2 : 1;
	ro.connect_ms = o->connect_ms;
	ro.stall_ms = 0; /* a tool may be silent for as long as its caller waits */
	ro.max_body = o->max_message;
	ro.tries = 1;
	c->rest = sb_rest_new(&ro, err);
	if (bearer)
		explicit_bzero(bearer, strlen(bearer));
	if (!c->rest) {
		sb_rpc_client_free(c);
		return NULL;
	}
	return c;
}

/* Hands a message of the stream on, or takes the one that ends it. */
static int
take_message(struct transfer *t, uint8_t flags, const uint8_t *msg, size_t len,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf plain;
	json_t *end, *error;
	int r = 0;

	sb_buf_init(&plain, t->client->max_message);
	if ((flags & SB_RPC_FLAG_COMPRESSED) && len > 0) {
		r = sb_rpc_gzip_inflate(msg, len, &plain, err);
	} else {
		sb_buf_add(&plain, msg, len);
		r = sb_buf_check(&plain, "message", err);
	}
	if (r < 0)
		return r;
	if (!(flags & SB_RPC_FLAG_END))
		return t->fn((const char *)plain.data, plain.len, t->arg, err);
	t->ended = true;
	end = json_loadb((const char *)plain.data, plain.len, 0, NULL);
	if (!json_is_object(end))
		r = sb_fail(err, SB_E_PROTO, "the end of the stream is not a JSON object");
	else if ((error = json_object_get(end, "error")) != NULL)
		r = sb_rpc_failure_parse(error, 200, err);
	json_decref(end);
	return r;
}

static int
on_head(const struct sb_rest_answer *a, void *arg, struct sb_error *err)
{
	struct transfer *t = arg;
	const char *type = sb_rest_header(a, "content-type");

	(void)err;
	t->is_stream = a->status == 200 && type && strcmp(type, "application/connect+json") == 0;
	return 0;
}

static int
on_data(const void *data, size_t n, void *arg, struct sb_error *err)
{
	struct transfer *t = arg;
	size_t used = 0, len = 0;
	const uint8_t *msg = NULL;
	uint8_t flags = 0;
	int r;

	if (!t->is_stream)
		return 0;
	sb_buf_add(&t->in, data, n);
	r = sb_buf_check(&t->in, "answer", err);
	if (r < 0)
		return r;
	while ((r = sb_rpc_envelope_next(t->in.data + used, t->in.len - used,
			t->client->max_message, &flags, &msg, &len, err)) > 0) {
		if (t->ended)
			return sb_fail(err, SB_E_PROTO, "message behind the end of the stream");
		r = take_message(t, flags, msg, len, err);
		if (r < 0)
			break;
		used += SB_RPC_ENVELOPE_SIZE + len;
	}
	sb_buf_consume(&t->in, used);
	return r;
}

/* Makes the request with what all have. */
static int
perform(struct sb_rpc_client *c, const char *method, struct sb_rest_request *q,
	const struct sb_rpc_wait *wait, struct sb_rest_answer *a, struct sb_error *err)
{
	sb_autofree char *target = sb_str_printf("/%s/%s", c->service, method);
	struct sb_rest_wait w = SB_REST_WAIT_INIT;
	char left[DIGITS_MAX];
	struct sb_rest_header headers[2];

	if (!target)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (wait)
		w = (struct sb_rest_wait){ wait->cancel, wait->deadline };
	if (q->write)
		headers[q->n_headers++] =
			(struct sb_rest_header){ "Connect-Accept-Encoding", "gzip", false };
	if (w.deadline != SB_NEVER) {
		int64_t ms = w.deadline - sb_now_ms();

		(void)snprintf(left, sizeof left, "%lld",
			(long long)(ms < 1              ? 1 :
					ms > 9999999999 ? 9999999999 :
							  ms));
		headers[q->n_headers++] =
			(struct sb_rest_header){ "Connect-Timeout-Ms", left, false };
	}
	q->method = "POST";
	q->target = target;
	q->headers = headers;
	q->secret = true;
	return sb_rest_call(c->rest, q, &w, a, err);
}

/* The error in an answer that is not a success. */
static int
answer_error(const struct sb_rest_answer *a, struct sb_error *err)
{
	json_t *obj = json_loadb((const char *)a->body.data, a->body.len, 0, NULL);
	int r = sb_rpc_failure_parse(json_is_object(obj) ? obj : NULL, a->status, err);

	json_decref(obj);
	return r;
}

int
sb_rpc_client_call(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, char **out, size_t *out_len, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	int r;

	q.body = json ? json : "{}";
	q.body_len = strlen(q.body);
	q.type = "application/json";
	q.gunzip = true;
	r = perform(c, method, &q, wait, &a, err);
	if (r == 0 && a.status != 200)
		r = answer_error(&a, err);
	if (r == 0) {
		*out = (char *)sb_buf_detach(&a.body, out_len);
		if (!*out)
			r = sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	return r;
}

int
sb_rpc_client_stream(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, sb_rpc_message_fn fn, void *arg, struct sb_error *err)
{
	struct transfer t = { .client = c, .fn = fn, .arg = arg };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	sb_auto(sb_buf) struct sb_buf body;
	uint8_t head[SB_RPC_ENVELOPE_SIZE];
	int r;

	if (!json)
		json = "{}";
	sb_buf_init(&body, c->max_message + sizeof head);
	sb_rpc_envelope_head(head, 0, (uint32_t)strlen(json));
	sb_buf_add(&body, head, sizeof head);
	sb_buf_add_str(&body, json);
	r = sb_buf_check(&body, "request", err);
	if (r < 0)
		return r;
	/* A piece that comes may be as long as libcurl reads at a time. */
	sb_buf_init(&t.in, c->max_message + SB_RPC_ENVELOPE_SIZE + SB_REST_PIECE_MAX);
	q.body = body.data;
	q.body_len = body.len;
	q.type = "application/connect+json";
	q.head = on_head;
	q.write = on_data;
	q.write_arg = &t;
	r = perform(c, method, &q, wait, &a, err);
	if (r == 0 && !t.is_stream)
		r = a.status == 200 ? sb_fail(err, SB_E_PROTO, "%s: the answer is not a stream",
					      sb_rest_name(c->rest)) :
				      answer_error(&a, err);
	if (r == 0 && !t.ended)
		r = sb_fail(err, SB_E_CLOSED, "%s: the stream was cut off", sb_rest_name(c->rest));
	sb_buf_free(&t.in);
	return r;
}
