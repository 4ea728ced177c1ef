/* SPDX-License-Identifier: MIT */
/* tools/list and tools/call: each call runs on a thread of its own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <mcp/mcp-priv.h>
#include <rpc/protocol/json.h>

#define PROGRESS_EVERY_MS 100
#define PROGRESS_TEXT_MAX 1000

struct sb_mcp_call {
	struct sb_mcp_call *next;
	struct sb_mcp *m;
	struct sb_mcp_batch *batch; /* may be NULL */
	const struct sb_host_tool *tool;
	json_t *id;
	json_t *token; /* the client wants progress under this name; NULL: it does not */
	char *args;
	struct sb_cancel *cancel;
	bool canceled; /* by the client: nobody waits for an answer. With m->mu */
	uint64_t bytes;
	int64_t told_ms;
};

json_t *
sb_mcp_tool_list(const struct sb_mcp *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_tools; i++) {
		const struct sb_host_tool *t = &m->tools[i];
		json_t *o = json_object();

		(void)json_object_set_new(o, "name", json_string(t->name));
		(void)json_object_set_new(o, "description", json_string(t->description));
		(void)json_object_set_new(o, "inputSchema", json_loads(t->schema, 0, NULL));
		(void)json_object_set_new(o, "annotations",
			json_pack("{s:b, s:b, s:b}", "readOnlyHint", t->reads, "destructiveHint",
				!t->reads, "openWorldHint", t->network));
		(void)json_array_append_new(list, o);
	}
	return json_pack("{s:o}", "tools", list);
}

static void
call_free(struct sb_mcp_call *c)
{
	json_decref(c->id);
	json_decref(c->token);
	free(c->args);
	sb_cancel_free(c->cancel);
	free(c);
}

/* Tells how much output there is so far, and its newest piece. */
static void
on_progress(const void *data, size_t len, bool is_stderr, void *arg)
{
	struct sb_mcp_call *c = arg;
	const char *s = data;
	json_t *params;

	(void)is_stderr;
	c->bytes += len;
	if (!c->token || sb_now_ms() < c->told_ms + PROGRESS_EVERY_MS)
		return;
	c->told_ms = sb_now_ms();
	if (len > PROGRESS_TEXT_MAX) {
		s += len - PROGRESS_TEXT_MAX;
		len = PROGRESS_TEXT_MAX;
		for (; len > 0 && ((unsigned char)*s & 0xc0) == 0x80; len--)
			s++;
	}
	params = json_object();
	(void)json_object_set_new(params, "progressToken", json_deep_copy(c->token));
	(void)json_object_set_new(params, "progress", json_integer((json_int_t)c->bytes));
	(void)json_object_set_new(params, "message", sb_rpc_json_text(s, len));
	sb_mcp_send(c->m, sb_mcp_message_note("notifications/progress", params));
}

static json_t *
text_result(const char *text, size_t len, bool is_error)
{
	json_t *block = json_object(), *list = json_array();

	(void)json_object_set_new(block, "type", json_string("text"));
	(void)json_object_set_new(block, "text", sb_rpc_json_text(text, len));
	(void)json_array_append_new(list, block);
	return json_pack("{s:o, s:b}", "content", list, "isError", is_error);
}

/*
 * Runs the tool. What goes wrong is a result that says so: the model is to read it, and may do
 * better.
 */
static json_t *
execute(struct sb_mcp_call *c)
{
	struct sb_host_tool_request req = SB_HOST_TOOL_REQUEST_INIT;
	const struct sb_host_call limits = { .cancel = c->cancel, .deadline = SB_NEVER };
	struct sb_host_tool_result res = { 0 };
	struct sb_error err = { 0 };
	json_t *out;

	req.tool = c->tool->name;
	req.params = c->args;
	req.dir = c->m->o.dir;
	req.progress = on_progress;
	req.arg = c;
	if (sb_env_execute(c->m->o.env, &req, &limits, &res, &err) < 0) {
		sb_log(&c->m->o.log, SB_LOG_INFO, "mcp", "%s: %s", c->tool->name, err.msg);
		return text_result(err.msg, strlen(err.msg), true);
	}
	out = text_result(res.text ? res.text : "", res.text_len, res.is_error);
	sb_host_tool_result_clear(&res);
	return out;
}

static void *
run(void *arg)
{
	struct sb_mcp_call *c = arg, **p;
	struct sb_mcp *m = c->m;
	json_t *res = execute(c), *answer;
	bool canceled;

	if (m->o.done && !c->tool->reads)
		m->o.done(c->tool, m->o.arg);
	(void)pthread_mutex_lock(&m->mu);
	for (p = &m->calls; *p != c; p = &(*p)->next)
		;
	*p = c->next;
	canceled = c->canceled;
	(void)pthread_mutex_unlock(&m->mu);
	answer = sb_mcp_message_result(c->id, res);
	if (canceled) {
		json_decref(answer);
		answer = NULL;
	}
	sb_mcp_answer(m, c->batch, answer);
	call_free(c);
	/* Who waits for the last one may free everything from here on. */
	(void)pthread_mutex_lock(&m->mu);
	if (--m->n_calls == 0)
		(void)pthread_cond_broadcast(&m->idle);
	(void)pthread_mutex_unlock(&m->mu);
	return NULL;
}

static const struct sb_host_tool *
find(const struct sb_mcp *m, const char *name)
{
	for (size_t i = 0; i < m->n_tools; i++)
		if (strcmp(m->tools[i].name, name) == 0)
			return &m->tools[i];
	return NULL;
}

/* A call that is ready to run; NULL: `*refusal` is the answer. */
static struct sb_mcp_call *
prepare(struct sb_mcp *m, const json_t *id, const json_t *params, json_t **refusal)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	const json_t *args = json_object_get(params, "arguments");
	const json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");
	struct sb_mcp_call *c;

	*refusal = NULL;
	if (!name)
		*refusal = sb_mcp_message_error(id, SB_MCP_INVALID_PARAMS, "name must be text");
	else if (!find(m, name))
		*refusal = sb_mcp_message_error(id, SB_MCP_INVALID_PARAMS, "unknown tool: %.100s",
			name);
	else if (args && !json_is_object(args))
		*refusal = sb_mcp_message_error(id, SB_MCP_INVALID_PARAMS,
			"arguments must be an object");
	if (*refusal)
		return NULL;
	c = calloc(1, sizeof *c);
	if (c) {
		c->m = m;
		c->tool = find(m, name);
		c->id = json_deep_copy(id);
		c->token = token ? json_deep_copy(token) : NULL;
		c->args = args ? json_dumps(args, JSON_COMPACT) : strdup("{}");
		c->cancel = sb_cancel_new(NULL);
		if (c->id && c->args && c->cancel)
			return c;
		call_free(c);
	}
	*refusal = sb_mcp_message_error(id, SB_MCP_INTERNAL_ERROR, "out of memory");
	return NULL;
}

/* Enters the call among those under way. NULL: it is, else the answer. */
static json_t *
enter(struct sb_mcp *m, struct sb_mcp_call *c)
{
	const char *why = NULL;
	pthread_attr_t attr;
	pthread_t th;

	(void)pthread_mutex_lock(&m->mu);
	for (const struct sb_mcp_call *o = m->calls; o; o = o->next)
		if (json_equal(o->id, c->id))
			why = "a request of that id is under way";
	if (!why && m->n_calls >= SB_MCP_CALLS_MAX)
		why = "too many calls at a time";
	if (!why) {
		(void)pthread_attr_init(&attr);
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		c->next = m->calls;
		m->calls = c;
		m->n_calls++;
		if (pthread_create(&th, &attr, run, c) != 0) {
			m->calls = c->next;
			m->n_calls--;
			why = "no thread for the call";
		}
		(void)pthread_attr_destroy(&attr);
	}
	(void)pthread_mutex_unlock(&m->mu);
	return why ? sb_mcp_message_error(c->id, SB_MCP_INTERNAL_ERROR, "%s", why) : NULL;
}

void
sb_mcp_tool_call(struct sb_mcp *m, struct sb_mcp_batch *b, const json_t *id, const json_t *params)
{
	json_t *refusal = NULL;
	struct sb_mcp_call *c = prepare(m, id, params, &refusal);

	if (c) {
		c->batch = b;
		refusal = enter(m, c);
		if (!refusal)
			return;
		call_free(c);
	}
	sb_mcp_answer(m, b, refusal);
}

void
sb_mcp_tool_cancel(struct sb_mcp *m, const json_t *id)
{
	(void)pthread_mutex_lock(&m->mu);
	for (struct sb_mcp_call *c = m->calls; c; c = c->next)
		if (json_equal(c->id, id)) {
			c->canceled = true;
			sb_cancel_request(c->cancel);
		}
	(void)pthread_mutex_unlock(&m->mu);
}

void
sb_mcp_tool_cancel_all(struct sb_mcp *m)
{
	(void)pthread_mutex_lock(&m->mu);
	for (struct sb_mcp_call *c = m->calls; c; c = c->next)
		sb_cancel_request(c->cancel);
	(void)pthread_mutex_unlock(&m->mu);
}
