/* SPDX-License-Identifier: MIT */
/*
 * Answers a call with a stream of messages. A bounded queue makes the handler wait for the
 * client.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rpc/protocol/envelope.h>
#include <rpc/protocol/gzip.h>
#include <rpc/server/server-priv.h>

#define PIECE (32 * 1024)

ssize_t
sb_rpc_stream_read(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct sb_rpc_call *c = cls;
	size_t left;
	ssize_t n = 0;

	(void)pos;
	(void)pthread_mutex_lock(&c->mu);
	left = c->queue.len - c->queue_head;
	if (left > 0) {
		n = (ssize_t)(left < max ? left : max);
		memcpy(buf, c->queue.data + c->queue_head, (size_t)n);
		c->queue_head += (size_t)n;
		if (c->queue_head == c->queue.len) {
			sb_buf_reset(&c->queue);
			c->queue_head = 0;
		}
		(void)pthread_cond_broadcast(&c->room);
	} else if (c->finished) {
		n = c->http && c->http->cut ? MHD_CONTENT_READER_END_WITH_ERROR :
					      MHD_CONTENT_READER_END_OF_STREAM;
	} else if (c->gone) {
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	} else {
		c->suspended = true;
		MHD_suspend_connection(c->mc);
	}
	(void)pthread_mutex_unlock(&c->mu);
	return n;
}

int
sb_rpc_stream_open(struct sb_rpc_call *c, struct sb_error *err)
{
	sb_buf_init(&c->queue, c->server->o.max_message + SB_RPC_QUEUE_HIGH + 4096);
	c->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, sb_rpc_stream_read,
		c, NULL);
	if (!c->response)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	c->status = 200;
	sb_rpc_reply_headers(c, "application/connect+json");
	if (c->out_gzip)
		(void)MHD_add_response_header(c->response, "Connect-Content-Encoding", "gzip");
	(void)MHD_add_response_header(c->response, "Connect-Accept-Encoding", "gzip");
	return 0;
}

/* With `mu` held: what was read already makes room for what comes. */
static void
compact(struct sb_rpc_call *c)
{
	if (c->queue_head > 0 && c->queue_head >= c->queue.len / 2) {
		sb_buf_consume(&c->queue, c->queue_head);
		c->queue_head = 0;
	}
}

/* With `mu` held. */
static int
enqueue(struct sb_rpc_call *c, uint8_t flags, const void *data, size_t len, struct sb_error *err)
{
	uint8_t head[SB_RPC_ENVELOPE_SIZE];
	size_t before;

	compact(c);
	before = c->queue.len;
	sb_rpc_envelope_head(head, flags, (uint32_t)len);
	if (!sb_buf_reserve(&c->queue, sizeof head + len))
		return sb_buf_check(&c->queue, "stream", err);
	sb_buf_add(&c->queue, head, sizeof head);
	sb_buf_add(&c->queue, data, len);
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_BYTES_OUT,
		(int64_t)(c->queue.len - before));
	sb_rpc_call_resume(c);
	return 0;
}

/* Turns the object into bytes, compressed when that is wanted and worth it. */
static int
encode(struct sb_rpc_call *c, const json_t *obj, struct sb_buf *out, uint8_t *flags,
	struct sb_error *err)
{
	sb_autofree char *text = obj ? json_dumps(obj, JSON_COMPACT) : NULL;
	size_t len;

	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	len = strlen(text);
	if (len > c->server->o.max_message)
		return sb_fail(err, SB_E_LIMIT, "message of %zu bytes is longer than %zu", len,
			c->server->o.max_message);
	if (c->out_gzip && len >= SB_RPC_GZIP_FROM) {
		*flags |= SB_RPC_FLAG_COMPRESSED;
		return sb_rpc_gzip_deflate(text, len, out, err);
	}
	sb_buf_add(out, text, len);
	return sb_buf_check(out, "message", err);
}

int
sb_rpc_stream_send(struct sb_rpc_call *c, json_t *msg, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf bytes;
	uint8_t flags = 0;
	int r;

	sb_buf_init(&bytes, c->server->o.max_message + 4096);
	r = encode(c, msg, &bytes, &flags, err);
	json_decref(msg);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&c->mu);
	while (c->queue.len - c->queue_head > SB_RPC_QUEUE_HIGH && !c->gone && !c->abort_why)
		(void)pthread_cond_wait(&c->room, &c->mu);
	if (c->gone || c->abort_why)
		r = sb_fail(err, c->abort_why ? c->abort_why : SB_E_CANCELED,
			"the stream was ended");
	else
		r = enqueue(c, flags, bytes.data, bytes.len, err);
	(void)pthread_mutex_unlock(&c->mu);
	return r;
}

void
sb_rpc_stream_end(struct sb_rpc_call *c)
{
	static const char oom_text[] =
		"{\"error\":{\"code\":\"resource_exhausted\",\"message\":\"out of memory\"}}";
	sb_auto(sb_buf) struct sb_buf bytes;
	uint8_t flags = SB_RPC_FLAG_END;
	json_t *end = json_object();

	sb_buf_init(&bytes, 64 * 1024);
	if (c->failure.code != SB_RPC_OK)
		json_object_set_new(end, "error", sb_rpc_failure_json(&c->failure));
	sb_rpc_pool_settle();
	(void)pthread_mutex_lock(&c->mu);
	if (encode(c, end, &bytes, &flags, NULL) == 0)
		(void)enqueue(c, flags, bytes.data, bytes.len, NULL);
	else
		(void)enqueue(c, SB_RPC_FLAG_END, oom_text, sizeof oom_text - 1, NULL);
	c->finished = true;
	sb_rpc_call_resume(c);
	(void)pthread_mutex_unlock(&c->mu);
	json_decref(end);
}
