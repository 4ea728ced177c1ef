/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/toolcall.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-snapshot.h>
#include <host/retention.h>

#define BASH_TIMEOUT_MS 120000
#define BASH_OUTPUT_MAX (256u << 10)
#define CALL_ID_MAX 256
#define CALL_NAME_MAX 64 /* of a call id in a snapshot name */

/* The command: `cmd`, or `command` as the other generation of tools has it. */
static const char *
bash_cmd(const struct sb_toolcall *c)
{
	const char *cmd = json_string_value(json_object_get(c->params, "cmd"));

	return cmd ? cmd : json_string_value(json_object_get(c->params, "command"));
}

static int
bash_check(const struct sb_toolcall *c, struct sb_error *err)
{
	const json_t *t = json_object_get(c->params, "timeout_ms");

	if (!bash_cmd(c) || !*bash_cmd(c))
		return sb_fail(err, SB_E_INVAL, "bash cmd is required");
	if (t &&
		(!json_is_number(t) || json_number_value(t) < 1 || json_number_value(t) > 86400000))
		return sb_fail(err, SB_E_INVAL, "bash timeout_ms must be in range [1,86400000]");
	return 0;
}

static void
bash_text(const struct sb_toolrun_out *run, int64_t ms, struct sb_buf *text)
{
	sb_buf_add(text, run->out.data, run->out.len);
	if (run->errs.len) {
		if (text->len && text->data[text->len - 1] != '\n')
			sb_buf_add_char(text, '\n');
		sb_buf_add_str(text, "STDERR:\n");
		sb_buf_add(text, run->errs.data, run->errs.len);
	}
	if (text->len == 0)
		sb_buf_add_str(text, "(no output)");
	if (text->data[text->len - 1] != '\n')
		sb_buf_add_char(text, '\n');
	if (run->truncated)
		sb_buf_add_str(text, "(output truncated)\n");
	if (run->timed_out)
		sb_buf_add_str(text, "(timed out)\n");
	if (run->oom)
		sb_buf_add_str(text, "(out of memory: the kernel killed a process)\n");
	sb_buf_addf(text, "Exit code: %d\nDuration: %lldms", run->exit_code, (long long)ms);
}

static int
bash_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	const char *const argv[] = { access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh", "-c",
		bash_cmd(c), NULL };
	const json_t *t = json_object_get(c->params, "timeout_ms");
	int64_t ms = t ? (int64_t)json_number_value(t) : BASH_TIMEOUT_MS;
	uint64_t max = c->req->res.max_output ? c->req->res.max_output : BASH_OUTPUT_MAX;
	sb_auto(sb_toolrun_out) struct sb_toolrun_out run = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int64_t start = sb_now_ms();
	int r = sb_toolcall_exec(c, argv, NULL, ms,
		max < SB_TOOL_TEXT_MAX / 4 ? (size_t)max : SB_TOOL_TEXT_MAX / 4, &run, err);

	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	if (r < 0)
		return r;
	bash_text(&run, sb_now_ms() - start, &text);
	r = sb_toolcall_result(out, &text, false, err);
	if (r == 0)
		sb_toolcall_flags(c, &run, out);
	return r;
}

static const struct sb_tool shells[] = {
	{ "bash", "shell", bash_check, bash_run },
	{ NULL, NULL, NULL, NULL },
};

static const struct sb_tool *
find_tool(const char *name)
{
	static const struct sb_tool *const tables[] = { shells, sb_tool_file_table,
		sb_tool_search_table, sb_tool_git_table };

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const struct sb_tool *t = tables[i]; t->name; t++)
			if (strcmp(t->name, name) == 0 || (t->alias && strcmp(t->alias, name) == 0))
				return t;
	return NULL;
}

/* In through the gate: the session is active and counts us until we leave. */
static int
admit(struct sb_toolcall *c, struct sb_error *err)
{
	struct sb_hsess *s = c->s;
	int r;

	(void)pthread_mutex_lock(&s->mu);
	for (;;) {
		r = s->gone ? sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
				      sb_code_text(SB_E_SESSION_NOT_FOUND), s->id) :
			      sb_host_state_admit(SB_HOST_OP_TOOL, s->state, s->id, err);
		if (r < 0 || !s->gate)
			break;
		r = sb_hsess_wait(s, c->call, c->deadline, "the end of the turn", err);
		if (r < 0)
			break;
	}
	if (r == 0 && c->h->o.max_tools && s->active_tools >= c->h->o.max_tools)
		r = sb_fail(err, SB_E_LIMIT, "session %s runs %u tools, at most %u are allowed",
			s->id, s->active_tools, c->h->o.max_tools);
	if (r == 0) {
		c->workspace = strdup(s->mountpoint);
		if (!c->workspace)
			r = sb_fail(err, SB_E_NOMEM, "tool call");
	}
	if (r == 0) {
		s->active_tools++;
		s->ran = true;
		c->run.next = s->tools;
		s->tools = &c->run;
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* Out again. A call that was killed tells what for. */
static int
leave(struct sb_toolcall *c, int r, struct sb_error *err)
{
	struct sb_hsess *s = c->s;
	struct sb_hsess_tool **p = &s->tools;
	struct sb_error why = { 0 };

	(void)pthread_mutex_lock(&s->mu);
	while (*p != &c->run)
		p = &(*p)->next;
	*p = c->run.next;
	s->active_tools--;
	if (r == SB_E_CANCELED && sb_cancel_requested(c->run.kill) &&
		sb_host_state_admit(SB_HOST_OP_TOOL, s->state, s->id, &why) < 0) {
		r = why.code;
		*err = why;
	}
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* tool-<call>-<time>-<n>: the number makes it unique, whatever the call id is. */
static void
snapshot_name(struct sb_hsess *s, const char *call_id, char *out, size_t size)
{
	char id[CALL_NAME_MAX + 1];
	time_t now = time(NULL);
	struct tm tm;
	size_t n = 0;

	for (; call_id[n] && n < CALL_NAME_MAX; n++) {
		char ch = call_id[n];
		bool fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			(ch >= '0' && ch <= '9') || ch == '.' || ch == '_' || ch == '-';

		id[n] = fine ? ch : '_';
	}
	id[n] = '\0';
	(void)gmtime_r(&now, &tm);
	(void)pthread_mutex_lock(&s->mu);
	(void)snprintf(out, size, "tool-%s-%04d%02d%02d-%02d%02d%02d-%llu", id, tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned long long)++s->snap_seq);
	(void)pthread_mutex_unlock(&s->mu);
}

/* After a call that did its work; a failure is told, not hidden, and does not undo the call. */
static void
take_snapshot(struct sb_toolcall *c, struct sb_host_tool_result *out)
{
	struct sb_error why = { 0 };
	char name[SB_HOST_NAME_MAX + 1];
	int r;

	if (!c->h->o.per_tool_snapshots || !c->h->st->ops->snapshots || !c->req->call_id ||
		!*c->req->call_id)
		return;
	r = sb_hsess_enter(c->s, SB_HOST_OP_SNAPSHOT, c->call, &why);
	if (r == 0) {
		snapshot_name(c->s, c->req->call_id, name, sizeof name);
		r = sb_host_snapshot_take(c->h, c->s, name, SB_HOST_SNAP_TOOL, c->s->turn, NULL,
			&why);
		if (r == 0)
			sb_host_retention_apply(c->h, c->s, SB_HOST_SNAP_TOOL);
		sb_hsess_leave(c->s);
	}
	if (r == 0)
		memcpy(out->snapshot, name, sizeof name);
	else
		(void)snprintf(out->snapshot_error, sizeof out->snapshot_error, "%.150s", why.msg);
}

static int
execute(struct sb_toolcall *c, const struct sb_tool *tool, struct sb_host_tool_result *out,
	struct sb_error *err)
{
	int64_t start = sb_host_now_ns();
	int r = admit(c, err);

	if (r < 0)
		return r;
	(void)sb_host_proc_mark(c->h, c->s, "t", (uint64_t)start, c->mark);
	r = tool->run(c, out, err);
	r = leave(c, r, err);
	atomic_fetch_add(&c->h->tools, 1);
	if (r < 0 || out->is_error)
		atomic_fetch_add(&c->h->tool_errors, 1);
	if (r < 0)
		return r;
	out->duration_ns = sb_host_now_ns() - start;
	take_snapshot(c, out);
	sb_host_event_note(c->h->events, "tool.done", c->s->id, c->req->call_id, SB_HOST_ACTIVE);
	return 0;
}

static int
parse(struct sb_toolcall *c, const struct sb_tool **tool, struct sb_error *err)
{
	const struct sb_host_tool_request *q = c->req;
	json_error_t je;

	if (!q->tool || !*q->tool)
		return sb_fail(err, SB_E_INVAL, "tool_name is required");
	if (q->call_id && strnlen(q->call_id, CALL_ID_MAX + 1) > CALL_ID_MAX)
		return sb_fail(err, SB_E_INVAL, "tool_call_id is longer than %d bytes",
			CALL_ID_MAX);
	*tool = find_tool(q->tool);
	if (!*tool)
		return sb_fail(err, SB_E_TOOL_UNKNOWN, "%s: %.80s", sb_code_text(SB_E_TOOL_UNKNOWN),
			q->tool);
	c->params = json_loads(q->params ? q->params : "{}", JSON_REJECT_DUPLICATES, &je);
	if (!c->params || !json_is_object(c->params))
		return sb_fail(err, SB_E_INVAL, "params of %s: %s", q->tool,
			c->params ? "not an object" : je.text);
	return (*tool)->check ? (*tool)->check(c, err) : 0;
}

int
sb_host_tool_execute(struct sb_host *h, const struct sb_host_tool_request *request,
	const struct sb_host_call *call, struct sb_host_tool_result *out, struct sb_error *err)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_toolcall c = { .h = h, .req = &q, .call = call };
	const struct sb_tool *tool = NULL;
	struct sb_error why = { 0 };
	int64_t ms;
	int r = sb_host_call_begin(h, true, &why);

	memcpy(&q, request, request->size < sizeof q ? request->size : sizeof q);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	*out = (struct sb_host_tool_result){ 0 };
	ms = q.res.timeout_ms > 0 && q.res.timeout_ms < h->o.tool_timeout_ms ? q.res.timeout_ms :
									       h->o.tool_timeout_ms;
	c.deadline = sb_deadline_in(ms);
	c.s = sb_host_map_find(h, q.session, &why);
	r = c.s ? parse(&c, &tool, &why) : why.code;
	if (r == 0) {
		c.run.kill = sb_cancel_new(&why);
		r = c.run.kill ? execute(&c, tool, out, &why) : why.code;
	}
	sb_cancel_free(c.run.kill);
	json_decref(c.params);
	free(c.workspace);
	sb_hsess_unref(c.s);
	if (r < 0) {
		sb_host_tool_result_clear(out);
		if (err)
			*err = why;
	}
	sb_host_call_end(h);
	return r;
}

void
sb_host_tool_result_clear(struct sb_host_tool_result *r)
{
	if (!r)
		return;
	free(r->text);
	*r = (struct sb_host_tool_result){ 0 };
}
