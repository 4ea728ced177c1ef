/* SPDX-License-Identifier: MIT */
/* One tool call from the request to the result: checks it, lets it through the gate, runs it. */
#include "config.h"

#include <string.h>

#include <host/host-map.h>
#include <host/host-bounds.h>
#include <host/host-op.h>
#include <host/host.h>
#include <host/proc.h>
#include <host/tool/tool-gate.h>
#include <host/tool/tool-snapshot.h>
#include <host/tool/tool-table.h>

#define CALL_ID_MAX 256
#define DIR_MAX 4096

static int
execute(struct sb_toolcall *c, const struct sb_tool *tool, struct sb_host_tool_result *out,
	struct sb_error *err)
{
	int64_t start = sb_host_now_ns();
	int r = sb_tool_gate_enter(c, err);

	if (r < 0)
		return r;
	(void)sb_host_proc_mark(c->h, c->s, "t", (uint64_t)start, c->mark);
	r = tool->run(c, out, err);
	r = sb_tool_gate_leave(c, r, err);
	sb_host_count_tool(c->h, r < 0 || out->is_error);
	if (r < 0)
		return r;
	out->duration_ns = sb_host_now_ns() - start;
	sb_tool_snapshot_take(c, out);
	sb_host_note(c->h, "tool.done", c->s->id, c->req->call_id, SB_HOST_ACTIVE);
	return 0;
}

static int
check_dir(const char *dir, struct sb_error *err)
{
	const char *p = dir ? dir : "";

	if (*p == '/' || strnlen(p, DIR_MAX + 1) > DIR_MAX)
		return sb_fail(err, SB_E_INVAL,
			"dir must be relative to the workspace, of at most %d bytes", DIR_MAX);
	for (; *p; p += strcspn(p, "/"), p += *p == '/')
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			return sb_fail(err, SB_E_INVAL, "dir must not have \"..\"");
	return 0;
}

static int
parse(struct sb_toolcall *c, const struct sb_tool **tool, struct sb_error *err)
{
	const struct sb_host_tool_request *q = c->req;
	int r;

	if (!q->tool || !*q->tool)
		return sb_fail(err, SB_E_INVAL, "tool_name is required");
	if (q->call_id && strnlen(q->call_id, CALL_ID_MAX + 1) > CALL_ID_MAX)
		return sb_fail(err, SB_E_INVAL, "tool_call_id is longer than %d bytes",
			CALL_ID_MAX);
	r = check_dir(q->dir, err);
	if (r < 0)
		return r;
	*tool = sb_tool_table_find(q->tool);
	if (!*tool)
		return sb_fail(err, SB_E_TOOL_UNKNOWN, "%s: %.80s", sb_code_text(SB_E_TOOL_UNKNOWN),
			q->tool);
	c->run.again = (*tool)->again;
	if (!(*tool)->parse)
		return 0;
	r = sb_params_parse(q->tool, q->params ? q->params : "{}",
		q->params ? strlen(q->params) : 2, &c->params, err);
	return r < 0 || !(*tool)->check ? r : (*tool)->check(c, err);
}

int
sb_host_tool_execute(struct sb_host *h, const struct sb_host_tool_request *request,
	const struct sb_host_call *call, struct sb_host_tool_result *out, struct sb_error *err)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_toolcall c = { .h = h, .req = &q, .call = call };
	const struct sb_tool *tool = NULL;
	struct sb_error why = { 0 };
	int64_t ms, longest = sb_host_options(h)->tool_timeout_ms;
	int r = sb_host_call_begin(h, true, &why);

	memcpy(&q, request, request->size < sizeof q ? request->size : sizeof q);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	*out = (struct sb_host_tool_result){ 0 };
	ms = q.res.timeout_ms > 0 && q.res.timeout_ms < longest ? q.res.timeout_ms : longest;
	c.deadline = sb_deadline_in(ms);
	c.s = sb_host_map_find(h, q.session, &why);
	r = c.s ? parse(&c, &tool, &why) : why.code;
	if (r == 0)
		r = sb_host_bounds_call(sb_host_options(h), c.s->rt, &q.res, &why);
	if (r == 0) {
		c.run.kill = sb_cancel_new(&why);
		r = c.run.kill ? execute(&c, tool, out, &why) : why.code;
	}
	sb_cancel_free(c.run.kill);
	sb_params_free(&c.params);
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
