/* SPDX-License-Identifier: MIT */
/* Requests of plain HTTP: their header, body and answer, as a service's handlers see them. */
#include "config.h"

#include <rpc/server/http.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/str.h>
#include <rpc/server/server-priv.h>

#define PIECE (64 * 1024)
#define IN_HIGH (256 * 1024)

struct sb_rpc_http_kept {
	struct sb_rpc_http_kept *next;
	max_align_t data[];
};

const char *
sb_rpc_http_verb(const struct sb_rpc_call *c)
{
	return c->http->verb;
}

const char *
sb_rpc_http_target(const struct sb_rpc_call *c)
{
	return c->http->target;
}

const char *
sb_rpc_http_header(const struct sb_rpc_call *c, const char *name)
{
	for (size_t i = 0; i + 1 < c->http->headers.n; i += 2)
		if (strcasecmp(c->http->headers.v[i], name) == 0)
			return c->http->headers.v[i + 1];
	return NULL;
}

size_t
sb_rpc_http_headers(const struct sb_rpc_call *c)
{
	return c->http->headers.n / 2;
}

const char *
sb_rpc_http_header_at(const struct sb_rpc_call *c, size_t i, const char **value)
{
	*value = c->http->headers.v[2 * i + 1];
	return c->http->headers.v[2 * i];
}

const void *
sb_rpc_http_route(const struct sb_rpc_call *c)
{
	return c->http->plan.route;
}

void *
sb_rpc_http_keep(struct sb_rpc_call *c, size_t size)
{
	struct sb_rpc_http_kept *k = calloc(1, sizeof *k + size);

	if (!k)
		return NULL;
	k->next = c->http->kept;
	c->http->kept = k;
	return k->data;
}

const char *
sb_rpc_http_body(const struct sb_rpc_call *c, size_t *len)
{
	*len = c->body.len;
	return c->body.data ? (const char *)c->body.data : "";
}

static enum MHD_Result
copy_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct sb_strlist *l = arg;

	(void)kind;
	sb_strlist_add(l, name);
	sb_strlist_add(l, value ? value : "");
	return MHD_YES;
}

int
sb_rpc_http_open(struct sb_rpc_call *c, const char *verb, struct sb_error *err)
{
	struct sb_rpc_http_state *h = calloc(1, sizeof *h);

	c->http = h;
	if (!h)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_buf_init(&h->in, 2 * IN_HIGH);
	h->plan.deadline = SB_NEVER;
	h->plan.index = c->server->service->n;
	sb_strlist_add(&h->names, verb);
	sb_strlist_add(&h->names, c->conn->raw ? c->conn->raw : "");
	(void)MHD_get_connection_values(c->mc, MHD_HEADER_KIND, copy_header, &h->headers);
	if (sb_strlist_check(&h->names, err) < 0 || sb_strlist_check(&h->headers, err) < 0)
		return SB_E_NOMEM;
	h->verb = h->names.v[0];
	h->target = h->names.v[1];
	return c->server->service->http->open(c, &h->plan, err);
}

void
sb_rpc_http_free(struct sb_rpc_http_state *h)
{
	if (!h)
		return;
	while (h->kept) {
		struct sb_rpc_http_kept *k = h->kept;

		h->kept = k->next;
		free(k);
	}
	sb_strlist_free(&h->names);
	sb_strlist_free(&h->headers);
	sb_strlist_free(&h->out);
	sb_buf_free(&h->in);
	free(h);
}

/* A piece of the body for a handler that reads; what finds no room stays with MHD. */
size_t
sb_rpc_http_feed(struct sb_rpc_call *c, const char *data, size_t len)
{
	struct sb_rpc_http_state *h = c->http;
	size_t room, take = len;

	(void)pthread_mutex_lock(&c->mu);
	if (!c->finished && !h->in_unwanted) {
		if (h->in_head > 0 && h->in_head >= h->in.len / 2) {
			sb_buf_consume(&h->in, h->in_head);
			h->in_head = 0;
		}
		room = IN_HIGH > h->in.len - h->in_head ? IN_HIGH - (h->in.len - h->in_head) : 0;
		take = len < room ? len : room;
		sb_buf_add(&h->in, data, take);
		if (h->in.failed)
			h->in_unwanted = true;
		if (take < len) {
			c->suspended = true;
			sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_CALL,
				c->deadline);
			MHD_suspend_connection(c->mc);
		}
		(void)pthread_cond_broadcast(&c->room);
	} else {
		c->dropped += len;
	}
	(void)pthread_mutex_unlock(&c->mu);
	return take;
}

int64_t
sb_rpc_http_read(struct sb_rpc_call *c, void *data, size_t size, struct sb_error *err)
{
	struct sb_rpc_http_state *h = c->http;
	size_t left;
	int64_t n = 0;

	(void)pthread_mutex_lock(&c->mu);
	while (h->in.len == h->in_head && !h->in_eof && !c->gone && !c->abort_why && !h->in.failed)
		(void)pthread_cond_wait(&c->room, &c->mu);
	left = h->in.len - h->in_head;
	if (h->in.failed) {
		n = sb_fail(err, SB_E_NOMEM, "out of memory");
	} else if (left > 0) {
		n = (int64_t)(left < size ? left : size);
		memcpy(data, h->in.data + h->in_head, (size_t)n);
		h->in_head += (size_t)n;
		if (h->in_head == h->in.len) {
			sb_buf_reset(&h->in);
			h->in_head = 0;
		}
		if (h->in.len - h->in_head <= IN_HIGH / 2 && !h->in_eof && c->suspended) {
			sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_BODY,
				sb_deadline_in(c->server->o.body_ms));
			sb_rpc_call_resume(c);
		}
	} else if (!h->in_eof) {
		n = sb_fail(err, c->abort_why ? c->abort_why : SB_E_CANCELED,
			"the client went away");
	}
	(void)pthread_mutex_unlock(&c->mu);
	return n;
}

void
sb_rpc_http_add_header(struct sb_rpc_call *c, const char *name, const char *value)
{
	sb_strlist_add(&c->http->out, name);
	sb_strlist_add(&c->http->out, value);
}

void
sb_rpc_http_put_headers(struct sb_rpc_call *c, struct MHD_Response *resp, const char *type)
{
	const struct sb_strlist *out = &c->http->out;

	if (type)
		(void)MHD_add_response_header(resp, "Content-Type", type);
	for (size_t i = 0; !out->failed && i + 1 < out->n; i += 2)
		(void)MHD_add_response_header(resp, out->v[i], out->v[i + 1]);
	if (c->close)
		(void)MHD_add_response_header(resp, "Connection", "close");
}

bool
sb_rpc_http_answered(struct sb_rpc_call *c)
{
	return c->response != NULL;
}

void
sb_rpc_http_reply(struct sb_rpc_call *c, int status, const char *type, const void *data, size_t len)
{
	struct MHD_Response *resp;

	if (c->response)
		return;
	resp = MHD_create_response_from_buffer(len, (void *)(uintptr_t)(data ? data : ""),
		MHD_RESPMEM_MUST_COPY);
	if (!resp)
		return;
	sb_rpc_http_put_headers(c, resp, type);
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_BYTES_OUT, (int64_t)len);
	c->status = status;
	c->response = resp;
}

int
sb_rpc_http_begin(struct sb_rpc_call *c, int status, const char *type, int64_t length,
	struct sb_error *err)
{
	struct MHD_Response *resp;

	if (c->response)
		return sb_fail(err, SB_E_STATE, "the answer has begun");
	sb_buf_init(&c->queue, 4 * SB_RPC_QUEUE_HIGH);
	resp = MHD_create_response_from_callback(length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length,
		PIECE, sb_rpc_stream_read, c, NULL);
	if (!resp)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_rpc_http_put_headers(c, resp, type);
	(void)pthread_mutex_lock(&c->mu);
	c->status = status;
	c->response = resp;
	c->http->streaming = c->http->ready = true;
	/* A body that is still being read comes first. */
	if (c->http->in_eof)
		sb_rpc_call_resume(c);
	(void)pthread_mutex_unlock(&c->mu);
	return 0;
}

int
sb_rpc_http_write(struct sb_rpc_call *c, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *p = data;
	int r = 0;

	while (len > 0 && r == 0) {
		size_t n = len < SB_RPC_QUEUE_HIGH ? len : SB_RPC_QUEUE_HIGH;

		(void)pthread_mutex_lock(&c->mu);
		while (c->queue.len - c->queue_head > SB_RPC_QUEUE_HIGH && !c->gone &&
			!c->abort_why)
			(void)pthread_cond_wait(&c->room, &c->mu);
		if (c->queue_head > 0 && c->queue_head >= c->queue.len / 2) {
			sb_buf_consume(&c->queue, c->queue_head);
			c->queue_head = 0;
		}
		sb_buf_add(&c->queue, p, n);
		if (c->gone || c->abort_why)
			r = sb_fail(err, c->abort_why ? c->abort_why : SB_E_CANCELED,
				"the client went away");
		else
			r = sb_buf_check(&c->queue, "answer", err);
		if (r == 0 && c->http->queued)
			sb_rpc_call_resume(c);
		(void)pthread_mutex_unlock(&c->mu);
		sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_BYTES_OUT, (int64_t)n);
		p += n;
		len -= n;
	}
	return r;
}

/* The answer to a failure; one there must be. */
void
sb_rpc_http_fail(struct sb_rpc_call *c)
{
	if (c->response)
		return;
	c->server->service->http->fail(c, &c->failure);
	if (!c->response)
		sb_rpc_http_reply(c, 500, NULL, NULL, 0);
}
