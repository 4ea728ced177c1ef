/* SPDX-License-Identifier: MIT */
/*
 * A program of a sandbox with streams: its output comes as a stream of events, its input goes in
 * requests of their own, on a second thread.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/base64.h>
#include <base/file.h>
#include <base/work.h>
#include <cloud/e2b/envd-event.h>
#include <cloud/e2b/envd-priv.h>
#include <rpc/protocol/envelope.h>

#define INPUT_PIECE (256u << 10) /* of input in one request */
#define PING_S "20"
#define PING_STALL_MS 70000 /* three of them did not come */
#define INPUT_MS 120000

/* A command under way. */
struct run {
	struct sb_envd *e;
	const struct sb_envd_run *o;
	const struct sb_rest_wait *wait;
	struct sb_cancel *stop; /* one of the threads wants the other to end */
	struct sb_buf in;       /* of the stream: what is not used up */
	struct sb_buf *small;   /* stdout goes here instead of into a descriptor */
	pthread_t feeder;
	bool feeds;
	json_int_t pid;
	int code;
	bool started, ended, closed;
	struct sb_error fed; /* what the feeder found */
};

/* --- input --- */

static int
send_piece(struct run *u, const void *data, size_t len, const struct sb_rest_wait *w)
{
	size_t size = (len + 2) / 3 * 4 + 1;
	sb_autofree char *text = malloc(size);

	if (!text || !sb_base64_encode_padded(data, len, text, size))
		return sb_fail(&u->fed, SB_E_NOMEM, "out of memory");
	/* Twice would be other bytes. */
	return sb_envd_ask(u->e, "SendInput",
		json_pack("{s:{s:I}, s:{s:s}}", "process", "pid", u->pid, "input", "stdin", text),
		SB_REST_UNSENT, w, NULL, &u->fed);
}

/* One round of the feeder: bytes, the end, or time. False: it is done. */
static bool
feed_once(struct run *u, char *buf, bool *open, int64_t *tick_at)
{
	struct pollfd p[2] = { { .fd = sb_cancel_fd(u->stop), .events = POLLIN },
		{ .fd = *open ? u->o->fds[0] : -1, .events = POLLIN } };
	struct sb_rest_wait w = { u->stop, sb_deadline_in(INPUT_MS) };
	ssize_t n;
	int r;

	(void)poll(p, 2, sb_deadline_poll_ms(*tick_at));
	if (p[0].revents)
		return false;
	if (u->o->tick && sb_deadline_passed(*tick_at)) {
		u->o->tick(u->o->tick_arg, u->stop);
		*tick_at = sb_deadline_in(u->o->tick_ms);
	}
	if (!p[1].revents)
		return true;
	n = read(p[1].fd, buf, INPUT_PIECE);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n > 0) {
		r = send_piece(u, buf, (size_t)n, &w);
	} else {
		*open = false;
		r = sb_envd_ask(u->e, "CloseStdin",
			json_pack("{s:{s:I}}", "process", "pid", u->pid), SB_REST_REPEAT, &w, NULL,
			&u->fed);
	}
	/* It has ended, or reads no more: its end says how. */
	if (r == SB_E_NOTFOUND || r == SB_E_STATE) {
		u->fed = (struct sb_error){ 0 };
		*open = false;
		return true;
	}
	return r == 0;
}

static void *
feed(void *arg)
{
	struct run *u = arg;
	char *buf = malloc(INPUT_PIECE);
	int64_t tick_at = u->o->tick ? sb_deadline_in(u->o->tick_ms) : SB_NEVER;
	bool open = u->o->fds[0] >= 0;

	if (!buf)
		(void)sb_fail(&u->fed, SB_E_NOMEM, "out of memory");
	while (buf && feed_once(u, buf, &open, &tick_at))
		;
	free(buf);
	if (u->fed.code < 0)
		sb_cancel_request(u->stop);
	return NULL;
}

/* --- output --- */

/* All of it, as long as nobody gives up. */
static int
write_out(struct run *u, int fd, const uint8_t *data, size_t len, struct sb_error *err)
{
	while (len > 0) {
		struct pollfd p[3] = { { .fd = fd, .events = POLLOUT },
			{ .fd = sb_cancel_fd(u->stop), .events = POLLIN },
			{ .fd = sb_cancel_fd(u->wait->cancel), .events = POLLIN } };
		/* A piece that a pipe with room takes without waiting. */
		size_t piece = len < 4096 ? len : 4096;
		ssize_t n;
		int r = sb_check_alive(u->wait->cancel, u->wait->deadline, "output", err);

		if (r == 0 && sb_cancel_requested(u->stop))
			r = sb_fail(err, SB_E_CANCELED, "canceled");
		if (r < 0)
			return r;
		if (poll(p, 3, sb_deadline_poll_ms(u->wait->deadline)) <= 0 || !p[0].revents)
			continue;
		n = sb_file_write_nosig(fd, data, piece);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			u->closed = true;
			return sb_fail(err, SB_E_CLOSED, "nobody reads the output any more");
		}
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int
take_start(struct run *u, json_int_t pid, struct sb_error *err)
{
	int r;

	if (u->started)
		return sb_fail(err, SB_E_PROTO, "a program that starts twice");
	u->pid = pid;
	u->started = true;
	if (u->small)
		return 0;
	r = pthread_create(&u->feeder, NULL, feed, u);
	u->feeds = r == 0;
	errno = r;
	return r == 0 ? 0 : sb_fail_errno(err, "start a thread");
}

static int
take_event(struct run *u, const uint8_t *msg, size_t len, struct sb_error *err)
{
	sb_auto(sb_envd_event) struct sb_envd_event ev = { 0 };
	int r = sb_envd_event_parse(msg, len, &ev, err);

	if (r < 0)
		return r;
	if (!u->started && (ev.kind == SB_ENVD_OUTPUT || ev.kind == SB_ENVD_END))
		return sb_fail(err, SB_E_PROTO, "the first event is not the start");
	if (ev.kind == SB_ENVD_START)
		return take_start(u, ev.pid, err);
	if (ev.kind == SB_ENVD_END) {
		u->ended = true;
		u->code = ev.code;
	}
	if (ev.kind != SB_ENVD_OUTPUT)
		return 0;
	if (ev.fd == 1 && u->small) {
		sb_buf_add(u->small, ev.data.data, ev.data.len);
		return 0;
	}
	return u->o->fds[ev.fd] < 0 ?
		0 :
		write_out(u, u->o->fds[ev.fd], ev.data.data, ev.data.len, err);
}

/* The message that ends a stream: {} or an error. */
static int
take_last(const struct run *u, const uint8_t *msg, size_t len, struct sb_error *err)
{
	int r = sb_envd_event_last(msg, len, err);

	return r == 0 && !u->ended ?
		sb_fail(err, SB_E_CLOSED, "the stream ended before the program did") :
		r;
}

static int
on_data(const void *data, size_t n, void *arg, struct sb_error *err)
{
	struct run *u = arg;
	size_t used = 0, len = 0;
	const uint8_t *msg = NULL;
	uint8_t flags = 0;
	int r;

	sb_buf_add(&u->in, data, n);
	r = sb_buf_check(&u->in, "event", err);
	if (r < 0)
		return r;
	while ((r = sb_rpc_envelope_next(u->in.data + used, u->in.len - used, SB_ENVD_EVENT_MAX,
			&flags, &msg, &len, err)) > 0) {
		if (flags & SB_RPC_FLAG_COMPRESSED)
			r = sb_fail(err, SB_E_PROTO, "a compressed event, which nobody asked for");
		else if (flags & SB_RPC_FLAG_END)
			r = take_last(u, msg, len, err);
		else
			r = take_event(u, msg, len, err);
		if (r < 0)
			break;
		used += SB_RPC_ENVELOPE_SIZE + len;
	}
	sb_buf_consume(&u->in, used);
	return r;
}

/* --- the whole --- */

static int
request(struct run *u, struct sb_buf *out, struct sb_error *err)
{
	json_t *in = json_pack("{s:{s:s, s:[s, s], s:{}}, s:b}", "process", "cmd", "/bin/sh",
		"args", "-c", u->o->command, "envs", "stdin", !u->small);
	uint8_t head[SB_RPC_ENVELOPE_SIZE];
	char *text;

	if (in && u->o->tag)
		(void)json_object_set_new(in, "tag", json_string(u->o->tag));
	text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_INVAL, "the command is not UTF-8");
	sb_rpc_envelope_head(head, 0, (uint32_t)strlen(text));
	sb_buf_add(out, head, sizeof head);
	sb_buf_add_str(out, text);
	free(text);
	return sb_buf_check(out, "command", err);
}

/* Both the caller's token and ours end the call: a thread that waits for the first tells. */
static int
call_stream(struct run *u, const struct sb_buf *body, struct sb_error *err)
{
	static const struct sb_rest_header ping = { "Keepalive-Ping-Interval", PING_S, false };
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	const struct sb_cancel *before;
	int r;

	q.method = "POST";
	q.target = "/process.Process/Start";
	q.headers = &ping;
	q.n_headers = 1;
	q.type = "application/connect+json";
	q.body = body->data;
	q.body_len = body->len;
	q.write = on_data;
	q.write_arg = u;
	q.again = SB_REST_UNSENT;
	q.secret = true;
	q.stall_ms = PING_STALL_MS;
	/* Two tokens end the call: the caller's, and ours as the thread's. */
	before = sb_work_under(u->stop);
	r = sb_rest_call(u->e->rest, &q, u->wait, &a, err);
	(void)sb_work_under(before);
	if (r == 0)
		r = sb_envd_check(u->e, &a, "start a program", err);
	if (r == 0 && !u->ended)
		r = sb_fail(err, SB_E_CLOSED, "%s: the stream was cut off",
			sb_rest_name(u->e->rest));
	return r;
}

static int
run_it(struct run *u, int *code, struct sb_error *err)
{
	static const struct sb_rest_wait forever = SB_REST_WAIT_INIT;
	struct sb_error own = { 0 };
	sb_auto(sb_buf) struct sb_buf body = { 0 };
	int r;

	err = err ? err : &own;
	u->wait = u->wait ? u->wait : &forever;
	u->stop = sb_cancel_new(err);
	if (!u->stop)
		return SB_E_NOMEM;
	sb_buf_init(&body, SB_ENVD_EVENT_MAX);
	sb_buf_init(&u->in, SB_ENVD_EVENT_MAX + SB_RPC_ENVELOPE_SIZE + SB_REST_PIECE_MAX);
	r = request(u, &body, err);
	if (r == 0)
		r = call_stream(u, &body, err);
	sb_cancel_request(u->stop);
	if (u->feeds)
		(void)pthread_join(u->feeder, NULL);
	/* The stream's own failure says less than that of the input that ended it. */
	if (r == SB_E_CANCELED && u->fed.code < 0 && !sb_cancel_requested(u->wait->cancel)) {
		*err = u->fed;
		r = u->fed.code;
	}
	if (u->started && !u->ended)
		(void)sb_envd_end_program(u->e, u->pid, NULL);
	sb_buf_free(&u->in);
	sb_cancel_free(u->stop);
	if (r == 0)
		*code = u->code;
	return r;
}

int
sb_envd_run(struct sb_envd *e, const struct sb_envd_run *given, const struct sb_rest_wait *wait,
	int *code, struct sb_error *err)
{
	struct sb_envd_run o = SB_ENVD_RUN_INIT;
	struct run u = { .e = e, .o = &o, .wait = wait };

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	return run_it(&u, code, err);
}

int
sb_envd_run_small(struct sb_envd *e, const char *command, const struct sb_rest_wait *wait,
	struct sb_buf *out, int *code, struct sb_error *err)
{
	struct sb_envd_run o = SB_ENVD_RUN_INIT;
	struct run u = { .e = e, .o = &o, .wait = wait, .small = out };
	int r;

	o.command = command;
	r = run_it(&u, code, err);
	return r < 0 ? r : sb_buf_check(out, "output", err);
}
