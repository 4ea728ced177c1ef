/* SPDX-License-Identifier: MIT */
/* A server of the Model Context Protocol: reads lines, answers requests (declared in sb/mcp.h). */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cond.h>
#include <base/file.h>
#include <mcp/mcp-priv.h>
#include <sb/version.h>

#define CHUNK 65536
/* How often to look whether anybody still reads while calls end after the input. */
#define LOOK_MS 200

/* Newest first: what a client gets that asks for one we do not know. */
static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };
/* The one that has batches. */
#define BATCH_VERSION "2025-03-26"

void
sb_mcp_send(struct sb_mcp *m, json_t *msg)
{
	sb_autofree char *text = msg ? json_dumps(msg, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(msg);
	if (!text)
		return;
	text[len] = '\n'; /* in place of the NUL: one write, so that lines stay whole */
	(void)pthread_mutex_lock(&m->out_mu);
	if (!m->gone && sb_file_write_all(m->o.out, text, len + 1, NULL) < 0)
		m->gone = true;
	(void)pthread_mutex_unlock(&m->out_mu);
}

void
sb_mcp_answer(struct sb_mcp *m, struct sb_mcp_batch *b, json_t *answer)
{
	bool last;

	if (!b) {
		sb_mcp_send(m, answer);
		return;
	}
	(void)pthread_mutex_lock(&m->mu);
	if (answer)
		(void)json_array_append_new(b->answers, answer);
	last = --b->left == 0;
	(void)pthread_mutex_unlock(&m->mu);
	if (!last)
		return;
	if (json_array_size(b->answers) > 0)
		sb_mcp_send(m, b->answers);
	else
		json_decref(b->answers);
	free(b);
}

static json_t *
initialize(struct sb_mcp *m, const json_t *id, const json_t *params)
{
	const char *want = json_string_value(json_object_get(params, "protocolVersion"));
	json_t *res;

	if (!want)
		return sb_mcp_message_error(id, SB_MCP_INVALID_PARAMS,
			"protocolVersion must be text");
	if (m->version)
		return sb_mcp_message_error(id, SB_MCP_INVALID_REQUEST, "initialized already");
	m->version = versions[0];
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
		if (strcmp(versions[i], want) == 0)
			m->version = versions[i];
	res = json_object();
	(void)json_object_set_new(res, "protocolVersion", json_string(m->version));
	(void)json_object_set_new(res, "capabilities",
		json_pack("{s:{s:b}}", "tools", "listChanged", 0));
	(void)json_object_set_new(res, "serverInfo",
		json_pack("{s:s, s:s, s:s}", "name", "sbctl", "title", "Sandbox", "version",
			sb_version()));
	(void)json_object_set_new(res, "instructions",
		json_sprintf("The tools work on the files of sandbox %s, and bash runs in it.",
			sb_env_id(m->o.env)));
	return sb_mcp_message_result(id, res);
}

static void
on_request(struct sb_mcp *m, struct sb_mcp_batch *b, const struct sb_mcp_message *q)
{
	json_t *answer;

	if (strcmp(q->method, "ping") == 0) {
		answer = sb_mcp_message_result(q->id, json_object());
	} else if (strcmp(q->method, "initialize") == 0) {
		answer = b ? sb_mcp_message_error(q->id, SB_MCP_INVALID_REQUEST,
				     "initialize cannot be part of a batch") :
			     initialize(m, q->id, q->params);
	} else if (!m->version) {
		answer = sb_mcp_message_error(q->id, SB_MCP_INVALID_REQUEST,
			"initialize comes first");
	} else if (strcmp(q->method, "tools/list") == 0) {
		/* There is one page. */
		answer = json_object_get(q->params, "cursor") ?
			sb_mcp_message_error(q->id, SB_MCP_INVALID_PARAMS, "unknown cursor") :
			sb_mcp_message_result(q->id, sb_mcp_tool_list(m));
	} else if (strcmp(q->method, "tools/call") == 0) {
		sb_mcp_tool_call(m, b, q->id, q->params);
		return;
	} else {
		answer = sb_mcp_message_error(q->id, SB_MCP_METHOD_NOT_FOUND,
			"method not found: %.100s", q->method);
	}
	sb_mcp_answer(m, b, answer);
}

static void
on_message(struct sb_mcp *m, struct sb_mcp_batch *b, const json_t *v)
{
	struct sb_mcp_message q;
	json_t *refusal = NULL;

	if (b) {
		(void)pthread_mutex_lock(&m->mu);
		b->left++;
		(void)pthread_mutex_unlock(&m->mu);
	}
	if (!sb_mcp_message_read(v, &q, &refusal)) {
		sb_mcp_answer(m, b, refusal);
		return;
	}
	if (q.kind == SB_MCP_MESSAGE_REQUEST) {
		on_request(m, b, &q);
		return;
	}
	if (q.kind == SB_MCP_MESSAGE_NOTIFICATION &&
		strcmp(q.method, "notifications/cancelled") == 0)
		sb_mcp_tool_cancel(m, json_object_get(q.params, "requestId"));
	if (b)
		sb_mcp_answer(m, b, NULL);
}

static void
on_batch(struct sb_mcp *m, const json_t *list)
{
	struct sb_mcp_batch *b;
	const json_t *v;
	size_t i;

	if (!m->version || strcmp(m->version, BATCH_VERSION) != 0) {
		sb_mcp_send(m,
			sb_mcp_message_error(NULL, SB_MCP_INVALID_REQUEST,
				"only version %s of the protocol has batches", BATCH_VERSION));
		return;
	}
	b = calloc(1, sizeof *b);
	if (!b || !(b->answers = json_array())) {
		free(b);
		sb_mcp_send(m, sb_mcp_message_error(NULL, SB_MCP_INTERNAL_ERROR, "out of memory"));
		return;
	}
	b->left = 1;
	json_array_foreach(list, i, v)
	{
		on_message(m, b, v);
	}
	sb_mcp_answer(m, b, NULL);
}

static void
on_line(struct sb_mcp *m, const char *line, size_t len)
{
	json_t *refusal = NULL, *v;

	while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1])
		len--;
	if (len == 0)
		return;
	v = sb_mcp_message_parse(line, len, &refusal);
	if (!v)
		sb_mcp_send(m, refusal);
	else if (json_is_array(v))
		on_batch(m, v);
	else
		on_message(m, NULL, v);
	json_decref(v);
}

/* Waits for input. 1: there is some, or its end; 0: it is over; negative: canceled. */
static int
wait_for_input(struct sb_mcp *m, struct sb_error *err)
{
	for (;;) {
		struct pollfd p[] = { { m->o.in, POLLIN, 0 },
			{ sb_cancel_fd(m->o.cancel), POLLIN, 0 }, { m->o.out, 0, 0 } };

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (sb_cancel_requested(m->o.cancel))
			return sb_fail(err, SB_E_CANCELED, "canceled");
		if (p[2].revents & (POLLERR | POLLNVAL))
			return 0;
		if (p[0].revents)
			return 1;
	}
}

/* Lines from what came; one that is too long is refused once and skipped up to its end. */
static void
take_lines(struct sb_mcp *m, struct sb_buf *in, bool *skip)
{
	size_t used = 0;
	const char *nl;

	while (in->len > used && (nl = memchr(in->data + used, '\n', in->len - used)) != NULL) {
		size_t len = (size_t)((const uint8_t *)nl - in->data) - used;

		if (!*skip)
			on_line(m, (const char *)in->data + used, len);
		*skip = false;
		used += len + 1;
	}
	sb_buf_consume(in, used);
	if (in->len < SB_MCP_LINE_MAX)
		return;
	if (!*skip)
		sb_mcp_send(m,
			sb_mcp_message_error(NULL, SB_MCP_INVALID_REQUEST,
				"a message has at most %u bytes", SB_MCP_LINE_MAX));
	*skip = true;
	sb_buf_consume(in, in->len);
}

static int
read_all(struct sb_mcp *m, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf in;
	bool skip = false;
	int r;

	sb_buf_init(&in, SB_MCP_LINE_MAX + CHUNK + 1);
	while ((r = wait_for_input(m, err)) > 0) {
		uint8_t *to = sb_buf_reserve(&in, CHUNK);
		ssize_t n = to ? read(m->o.in, to, CHUNK) : -1;

		if (!to)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read");
		if (n == 0) {
			/* The last line may lack its end. */
			if (!skip)
				on_line(m, (const char *)in.data, in.len);
			return 0;
		}
		sb_buf_grow(&in, (size_t)n);
		take_lines(m, &in, &skip);
	}
	return r;
}

/* Until the calls under way have ended; they are told to when nobody waits for them any more. */
static int
finish(struct sb_mcp *m, int r, struct sb_error *err)
{
	bool told = false;

	(void)pthread_mutex_lock(&m->mu);
	while (m->n_calls > 0) {
		struct pollfd p[] = { { m->o.out, 0, 0 },
			{ sb_cancel_fd(m->o.cancel), POLLIN, 0 } };

		(void)pthread_mutex_unlock(&m->mu);
		(void)poll(p, 2, 0);
		if (r == 0 && sb_cancel_requested(m->o.cancel))
			r = sb_fail(err, SB_E_CANCELED, "canceled");
		if (!told && (r < 0 || (p[0].revents & (POLLERR | POLLNVAL)))) {
			sb_mcp_tool_cancel_all(m);
			told = true;
		}
		(void)pthread_mutex_lock(&m->mu);
		if (m->n_calls > 0)
			sb_cond_wait_until(&m->idle, &m->mu, sb_deadline_in(LOOK_MS));
	}
	(void)pthread_mutex_unlock(&m->mu);
	return r;
}

int
sb_mcp_serve(const struct sb_mcp_opts *given, struct sb_error *err)
{
	struct sb_mcp m = { .o = SB_MCP_OPTS_INIT };
	struct sb_host_call limits;
	int r;

	memcpy(&m.o, given, given->size < sizeof m.o ? given->size : sizeof m.o);
	limits = (struct sb_host_call){ .cancel = m.o.cancel, .deadline = SB_NEVER };
	r = sb_env_tools(m.o.env, &limits, &m.tools, &m.n_tools, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_init(&m.mu, NULL);
	(void)pthread_mutex_init(&m.out_mu, NULL);
	sb_cond_init(&m.idle);
	r = read_all(&m, err);
	r = finish(&m, r, err);
	(void)pthread_cond_destroy(&m.idle);
	(void)pthread_mutex_destroy(&m.out_mu);
	(void)pthread_mutex_destroy(&m.mu);
	sb_host_tools_free(m.tools, m.n_tools);
	return r;
}
