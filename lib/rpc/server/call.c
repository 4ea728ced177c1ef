/* SPDX-License-Identifier: MIT */
/*
 * The life of a call. MHD calls on_request when the header is there, for every piece of the body,
 * and at its end: then the handler runs on a thread of the pool while the connection sleeps (or,
 * for a stream, is written to as messages come). Two parties hold the call: MHD until on_completed,
 * the worker until it is done.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rpc/protocol/envelope.h>
#include <rpc/server/server-priv.h>

#define DROP_MAX \
	(1024 * 1024) /* of a body nobody wants, read so that the client sees the answer \
		       */

static int64_t
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void *
sb_rpc_call_arg(const struct sb_rpc_call *c)
{
	return c->server->service->arg;
}

const struct sb_cancel *
sb_rpc_call_cancel(const struct sb_rpc_call *c)
{
	return c->cancel;
}

sb_deadline
sb_rpc_call_deadline(const struct sb_rpc_call *c)
{
	return c->deadline;
}

const struct sb_rpc_who *
sb_rpc_call_who(const struct sb_rpc_call *c)
{
	return &c->who;
}

uint64_t
sb_rpc_call_fence(const struct sb_rpc_call *c)
{
	return c->fence;
}

bool
sb_rpc_call_inlined(const struct sb_rpc_call *c)
{
	return c->inlined;
}

void
sb_rpc_call_bad_field(struct sb_rpc_call *c, const char *field)
{
	(void)snprintf(c->failure.field, sizeof c->failure.field, "%s", field);
}

static struct sb_rpc_call *
call_new(struct sb_rpc_listener *l, struct MHD_Connection *mc)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct sb_rpc_call *c;

	/* A connection that found no place in the table has no context. */
	if (!info || !info->socket_context || !(c = calloc(1, sizeof *c)))
		return NULL;
	c->server = l->server;
	c->conn = info->socket_context;
	c->mc = mc;
	atomic_store(&c->refs, 1);
	c->deadline = SB_NEVER;
	sb_buf_init(&c->body, l->server->o.max_message + SB_RPC_ENVELOPE_SIZE);
	sb_buf_init(&c->queue, 0);
	(void)pthread_mutex_init(&c->mu, NULL);
	(void)pthread_cond_init(&c->room, NULL);
	atomic_fetch_add(&c->server->live, 1);
	return c;
}

/* Frees what the body took as soon as the handler has its message. */
static void
drop_body(struct sb_rpc_call *c)
{
	sb_buf_free(&c->body);
	atomic_fetch_sub(&c->server->buffered, c->reserved);
	sb_rpc_share_give(c->server->share, &c->who, SB_RPC_SHARE_BYTES, c->reserved);
	c->reserved = 0;
}

void
sb_rpc_call_unref(struct sb_rpc_call *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	if (c->response)
		MHD_destroy_response(c->response);
	json_decref(c->message);
	drop_body(c);
	if (c->counted)
		sb_rpc_share_give(c->server->share, &c->who, c->place, 1);
	sb_buf_free(&c->queue);
	sb_rpc_http_free(c->http);
	sb_cancel_free(c->cancel);
	(void)pthread_cond_destroy(&c->room);
	(void)pthread_mutex_destroy(&c->mu);
	free(c);
}

void
sb_rpc_call_resume(struct sb_rpc_call *c)
{
	if (!c->suspended)
		return;
	c->suspended = false;
	MHD_resume_connection(c->mc);
}

void
sb_rpc_call_abort(struct sb_rpc_call *c, int why, bool hung_up)
{
	(void)pthread_mutex_lock(&c->mu);
	if (!c->abort_why)
		c->abort_why = why;
	if (c->cancel)
		sb_cancel_request(c->cancel);
	if (hung_up && (c->streaming || (c->http && c->http->queued))) {
		c->gone = true;
		sb_rpc_call_resume(c);
	}
	(void)pthread_cond_broadcast(&c->room);
	(void)pthread_mutex_unlock(&c->mu);
}

/* Turns the handler's error into the answer; a cancel has its own reason. */
void
sb_rpc_call_fail(struct sb_rpc_call *c, struct sb_error *err)
{
	char field[SB_RPC_FIELD_MAX];
	int why;

	(void)pthread_mutex_lock(&c->mu);
	why = c->abort_why;
	(void)pthread_mutex_unlock(&c->mu);
	if (err->code == SB_E_CANCELED && why == SB_E_TIMEOUT)
		(void)sb_fail(err, SB_E_TIMEOUT, "the deadline passed");
	else if (err->code == SB_E_CANCELED && why == SB_E_SHUTTING_DOWN)
		(void)sb_fail(err, SB_E_SHUTTING_DOWN, "%s", sb_code_text(SB_E_SHUTTING_DOWN));
	memcpy(field, c->failure.field, sizeof field);
	sb_rpc_failure_from_error(&c->failure, err);
	memcpy(c->failure.field, field, sizeof field);
	if (c->server->service->hide)
		c->server->service->hide(c->server->service->arg, &c->who, c->failure.msg,
			sizeof c->failure.msg);
}

/* Runs the handler: 0 and `out`, SB_RPC_LATER, or an error in `failure`. */
static int
run_method(struct sb_rpc_call *c, json_t **out)
{
	struct sb_error err = { 0 };
	int r;

	*out = NULL;
	if (!c->message)
		c->message = sb_rpc_request_message(c);
	drop_body(c);
	if (!c->message)
		return SB_E_INVAL;
	r = sb_check_alive(c->cancel, c->deadline, c->method->name, &err);
	if (r == 0)
		r = c->method->run(c, c->message, out, &err);
	if (r == SB_RPC_LATER && c->inlined)
		return r;
	json_decref(c->message);
	c->message = NULL;
	if (r >= 0) {
		if (!*out)
			*out = json_object();
		return 0;
	}
	if (err.code >= 0)
		err.code = r;
	sb_rpc_call_fail(c, &err);
	json_decref(*out);
	*out = NULL;
	return r;
}

void
sb_rpc_call_count_end(struct sb_rpc_call *c)
{
	struct sb_rpc_server *s = c->server;
	int64_t us = now_us() - c->start_us;

	sb_rpc_metrics_end(s->metrics, c->index, c->failure.code, us);
	sb_log(&s->o.log, c->failure.code == SB_RPC_INTERNAL ? SB_LOG_WARN : SB_LOG_DEBUG, "rpc",
		"%s by %s: %s in %lld us%s%s", c->method ? c->method->name : "-",
		c->who.name[0] ? c->who.name : "-", sb_rpc_code_name(c->failure.code),
		(long long)us, c->failure.msg[0] ? ": " : "", c->failure.msg);
}

/* The worker's last step: once nothing runs, the server may be stopped and freed. */
static void
leave(struct sb_rpc_call *c)
{
	struct sb_rpc_server *s = c->server;

	sb_rpc_call_unref(c);
	atomic_fetch_sub(&s->running, 1);
}

static void
finish_unary(struct sb_rpc_call *c)
{
	sb_rpc_call_count_end(c);
	sb_rpc_pool_settle();
	(void)pthread_mutex_lock(&c->mu);
	c->finished = true;
	sb_rpc_call_resume(c);
	(void)pthread_mutex_unlock(&c->mu);
	leave(c);
}

/* How long a client may take to fetch `len` bytes: what an idle one may, and 8 KiB/s. */
static sb_deadline
reply_due(const struct sb_rpc_call *c)
{
	return sb_deadline_in(c->server->o.idle_ms + (int64_t)(c->server->o.max_message / 8192));
}

/* On a thread of its own, as the service may have to ask around for its figures. */
static void
answer_metrics(struct sb_rpc_call *c)
{
	sb_auto(sb_buf) struct sb_buf text;

	sb_buf_init(&text, 4 << 20);
	sb_rpc_metrics_print(c->server->metrics, &text);
	if (c->server->service->metrics)
		c->server->service->metrics(c->server->service->arg, &text);
	sb_rpc_reply_text(c, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

/* Makes the response; SB_RPC_LATER when that takes a thread. */
static int
answer_unary(struct sb_rpc_call *c)
{
	json_t *out;
	int r;

	if (c->target == SB_RPC_TARGET_METRICS) {
		answer_metrics(c);
		return 0;
	}
	r = run_method(c, &out);
	if (r == SB_RPC_LATER)
		return r;
	if (out)
		sb_rpc_reply_json(c, out);
	else
		sb_rpc_reply_failure(c);
	json_decref(out);
	return 0;
}

static void
work_unary(void *arg)
{
	struct sb_rpc_call *c = arg;

	(void)answer_unary(c);
	finish_unary(c);
}

/* The handler of plain HTTP; by its end there is an answer. */
static void
work_http(void *arg)
{
	struct sb_rpc_call *c = arg;
	struct sb_error err = { 0 };
	int r = sb_check_alive(c->cancel, c->deadline, "request", &err);

	if (r == 0)
		r = c->http->plan.run(c, &err);
	if (r < 0) {
		err.code = err.code < 0 ? err.code : r;
		sb_rpc_call_fail(c, &err);
	}
	if (!c->http->streaming)
		sb_rpc_http_fail(c);
	sb_rpc_pool_settle();
	(void)pthread_mutex_lock(&c->mu);
	c->http->cut = r < 0;
	c->http->ready = true;
	c->finished = true;
	sb_rpc_call_resume(c);
	(void)pthread_mutex_unlock(&c->mu);
	sb_rpc_call_count_end(c);
	leave(c);
}

static void
work_stream(void *arg)
{
	struct sb_rpc_call *c = arg;
	json_t *out;

	(void)run_method(c, &out);
	json_decref(out);
	sb_rpc_stream_end(c);
	sb_rpc_call_count_end(c);
	leave(c);
}

static enum MHD_Result
queue_response(struct sb_rpc_call *c)
{
	if (!c->response)
		return MHD_NO;
	sb_rpc_watchdog_call(c->server->watch, c->conn, NULL);
	sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_REPLY, reply_due(c));
	return MHD_queue_response(c->mc, (unsigned)c->status, c->response);
}

static bool
is_ready(const struct sb_rpc_server *s)
{
	return !atomic_load(&s->stopping) &&
		(!s->service->ready || s->service->ready(s->service->arg));
}

/* An answer without a handler: an error found before, or the health page. */
static enum MHD_Result
answer_now(struct sb_rpc_call *c)
{
	sb_auto(sb_buf) struct sb_buf text;

	sb_buf_init(&text, 16);
	if (c->failure.code != SB_RPC_OK) {
		sb_rpc_metrics_begin(c->server->metrics, c->index);
		sb_rpc_metrics_end(c->server->metrics, c->index, c->failure.code, 0);
	}
	if (c->failure.code != SB_RPC_OK && c->streaming) {
		if (sb_rpc_stream_open(c, NULL) < 0)
			return MHD_NO;
		sb_rpc_stream_end(c);
	} else if (c->failure.code != SB_RPC_OK && c->http) {
		sb_rpc_http_fail(c);
	} else if (c->failure.code != SB_RPC_OK) {
		sb_rpc_reply_failure(c);
	} else {
		bool ok = !c->want_ready || is_ready(c->server);

		sb_buf_add_str(&text, ok ? "ok\n" : "not ready\n");
		sb_rpc_reply_text(c, ok ? 200 : 503, "text/plain; charset=utf-8", &text);
	}
	return queue_response(c);
}

static enum MHD_Result
start_unary(struct sb_rpc_call *c)
{
	struct sb_error err = { 0 };

	atomic_fetch_add(&c->refs, 1);
	c->suspended = true;
	MHD_suspend_connection(c->mc);
	if (sb_rpc_pool_run(c->server->calls, work_unary, c, &err) == 0)
		return MHD_YES;
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_REFUSED, 1);
	sb_rpc_call_fail(c, &err);
	sb_rpc_reply_failure(c);
	finish_unary(c);
	return MHD_YES;
}

static enum MHD_Result
start_stream(struct sb_rpc_call *c)
{
	struct sb_error err = { 0 };

	atomic_fetch_add(&c->refs, 1);
	if (sb_rpc_stream_open(c, &err) < 0) {
		sb_rpc_call_count_end(c);
		leave(c);
		return MHD_NO;
	}
	if (sb_rpc_pool_run(c->server->streams, work_stream, c, &err) < 0) {
		sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_REFUSED, 1);
		sb_rpc_call_fail(c, &err);
		sb_rpc_stream_end(c);
		sb_rpc_call_count_end(c);
		leave(c);
	}
	return MHD_queue_response(c->mc, (unsigned)c->status, c->response);
}

/* Runs the handler of plain HTTP; for one that reads, the body goes on coming. */
static enum MHD_Result
start_http(struct sb_rpc_call *c)
{
	struct sb_rpc_http_state *h = c->http;
	struct sb_error err = { 0 };

	h->started = true;
	h->in_eof = h->plan.body != SB_RPC_HTTP_STREAM;
	atomic_fetch_add(&c->refs, 1);
	if (h->in_eof) {
		c->suspended = true;
		MHD_suspend_connection(c->mc);
	} else {
		sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_BODY,
			sb_deadline_in(c->server->o.body_ms));
	}
	if (sb_rpc_pool_run(h->plan.stream ? c->server->streams : c->server->calls, work_http, c,
		    &err) == 0)
		return MHD_YES;
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_REFUSED, 1);
	sb_rpc_call_fail(c, &err);
	sb_rpc_http_fail(c);
	h->ready = true;
	finish_unary(c);
	return MHD_YES;
}

/* The answer once it is there; until then the connection sleeps. */
static enum MHD_Result
answer_http(struct sb_rpc_call *c)
{
	struct sb_rpc_http_state *h = c->http;
	bool ready, streaming;

	(void)pthread_mutex_lock(&c->mu);
	ready = h->ready;
	streaming = h->streaming && !c->finished;
	h->in_eof = true;
	h->queued = ready;
	if (!ready) {
		c->suspended = true;
		sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_CALL, c->deadline);
		MHD_suspend_connection(c->mc);
	}
	(void)pthread_cond_broadcast(&c->room);
	(void)pthread_mutex_unlock(&c->mu);
	if (!ready)
		return MHD_YES;
	if (!streaming)
		return queue_response(c);
	return c->response ? MHD_queue_response(c->mc, (unsigned)c->status, c->response) : MHD_NO;
}

/* The method on this very thread: true when that was all. */
static bool
try_inline(struct sb_rpc_call *c)
{
	if (!c->method || !(c->method->flags & SB_RPC_INLINE))
		return false;
	c->inlined = true;
	if (answer_unary(c) == SB_RPC_LATER) {
		c->inlined = false;
		return false;
	}
	sb_rpc_call_count_end(c);
	atomic_fetch_sub(&c->server->running, 1);
	return true;
}

/* The request is complete. */
static enum MHD_Result
dispatch(struct sb_rpc_call *c)
{
	struct sb_rpc_server *s = c->server;

	if (c->failure.code != SB_RPC_OK || c->target == SB_RPC_TARGET_HEALTH)
		return answer_now(c);
	/*
	 * Counted before `stopping` is looked at: a stop that is not seen here waits for this call.
	 */
	atomic_fetch_add(&s->running, 1);
	if (atomic_load(&s->stopping)) {
		struct sb_error err = { 0 };

		atomic_fetch_sub(&s->running, 1);
		(void)sb_fail(&err, SB_E_SHUTTING_DOWN, "%s", sb_code_text(SB_E_SHUTTING_DOWN));
		sb_rpc_failure_from_error(&c->failure, &err);
		return answer_now(c);
	}
	c->start_us = now_us();
	sb_rpc_metrics_begin(s->metrics, c->index);
	if (try_inline(c))
		return queue_response(c);
	c->cancel = sb_cancel_new(NULL);
	if (!c->cancel) {
		sb_rpc_failure_set(&c->failure, SB_RPC_RESOURCE_EXHAUSTED,
			"out of descriptors or memory");
		sb_rpc_call_count_end(c);
		atomic_fetch_sub(&s->running, 1);
		c->index = s->service->n;
		return answer_now(c);
	}
	if ((c->method && c->method->upgrade) || (c->http && c->http->plan.upgrade)) {
		if (sb_rpc_upgrade_start(c) == MHD_YES)
			return MHD_queue_response(c->mc, (unsigned)c->status, c->response);
		sb_rpc_call_count_end(c);
		atomic_fetch_sub(&s->running, 1);
		if (c->http)
			sb_rpc_http_fail(c);
		else
			sb_rpc_reply_failure(c);
		return queue_response(c);
	}
	sb_rpc_watchdog_call(s->watch, c->conn, c);
	sb_rpc_watchdog_phase(s->watch, c->conn, SB_RPC_PHASE_CALL, c->deadline);
	if (c->http)
		return start_http(c);
	return c->streaming ? start_stream(c) : start_unary(c);
}

/* A piece of the body. What is not wanted is dropped, within reason. */
static bool
drop_enough(const struct sb_rpc_call *c)
{
	return c->dropped > DROP_MAX + (c->close ? 0 : c->server->o.max_message);
}

/* A piece of the body for a handler that is reading: what it cannot take yet stays in `*size`. */
static enum MHD_Result
feed_reader(struct sb_rpc_call *c, const char *data, size_t *size)
{
	size_t took = sb_rpc_http_feed(c, data, *size);

	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_BYTES_IN, (int64_t)took);
	if (took == *size)
		sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_BODY,
			sb_deadline_in(c->server->o.body_ms));
	*size -= took;
	return drop_enough(c) ? MHD_NO : MHD_YES;
}

static enum MHD_Result
feed(struct sb_rpc_call *c, const char *data, size_t len)
{
	struct sb_rpc_server *s = c->server;
	struct sb_error err = { 0 };

	sb_rpc_metrics_add(s->metrics, SB_RPC_GAUGE_BYTES_IN, (int64_t)len);
	if (c->failure.code == SB_RPC_OK && !(c->http && c->http->plan.body != SB_RPC_HTTP_WHOLE)) {
		if (sb_rpc_share_take(s->share, &c->who, SB_RPC_SHARE_BYTES, len, &err) < 0) {
			sb_rpc_failure_from_error(&c->failure, &err);
		} else {
			c->reserved += len;
			if (atomic_fetch_add(&s->buffered, len) + len > s->o.max_buffered)
				sb_rpc_failure_set(&c->failure, SB_RPC_RESOURCE_EXHAUSTED,
					"the server holds too many request bodies, try again");
			else
				sb_buf_add(&c->body, data, len);
		}
		if (c->body.failed) {
			sb_rpc_failure_set(&c->failure, SB_RPC_RESOURCE_EXHAUSTED,
				"message is longer than %zu bytes", s->o.max_message);
			c->failure.http = c->streaming ? 0 : 413;
		}
		if (c->failure.code == SB_RPC_OK)
			return MHD_YES;
		drop_body(c);
	}
	c->dropped += len;
	return drop_enough(c) ? MHD_NO : MHD_YES;
}

enum MHD_Result
sb_rpc_call_on_request(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
	const char *version, const char *data, size_t *size, void **ctx)
{
	struct sb_rpc_listener *l = cls;
	struct sb_rpc_call *c = *ctx;

	if (!c) {
		c = call_new(l, mc);
		if (!c)
			return MHD_NO;
		*ctx = c;
		sb_rpc_watchdog_phase(l->server->watch, c->conn, SB_RPC_PHASE_BODY,
			sb_deadline_in(l->server->o.body_ms));
		sb_rpc_request_open(c, url, method, version);
		if (c->early)
			return answer_now(c);
		/* Who reads the body itself begins before there is one. */
		return c->http && c->http->plan.body == SB_RPC_HTTP_STREAM ? dispatch(c) : MHD_YES;
	}
	if (*size > 0 && c->http && c->http->started)
		return feed_reader(c, data, size);
	if (*size > 0) {
		size_t len = *size;

		*size = 0;
		return feed(c, data, len);
	}
	if (c->http && c->http->started)
		return answer_http(c);
	if (c->finished)
		return queue_response(c);
	return dispatch(c);
}

void
sb_rpc_call_on_completed(void *cls, struct MHD_Connection *mc, void **ctx,
	enum MHD_RequestTerminationCode why)
{
	struct sb_rpc_call *c = *ctx;
	struct sb_rpc_server *s;

	(void)cls;
	(void)mc;
	if (!c)
		return;
	*ctx = NULL;
	s = c->server;
	sb_rpc_watchdog_call(s->watch, c->conn, NULL);
	sb_rpc_watchdog_phase(s->watch, c->conn, SB_RPC_PHASE_IDLE, sb_deadline_in(s->o.idle_ms));
	(void)pthread_mutex_lock(&c->mu);
	c->gone = true;
	if (!c->finished) {
		if (!c->abort_why)
			c->abort_why = SB_E_CANCELED;
		if (c->cancel)
			sb_cancel_request(c->cancel);
	}
	(void)pthread_cond_broadcast(&c->room);
	(void)pthread_mutex_unlock(&c->mu);
	sb_rpc_call_unref(c);
	atomic_fetch_sub(&s->live, 1);
	(void)why;
}
