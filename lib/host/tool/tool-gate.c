/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/tool-gate.h>

#include <string.h>

#include <host/host.h>

int
sb_tool_gate_enter(struct sb_toolcall *c, struct sb_error *err)
{
	struct sb_hsess *s = c->s;
	unsigned max = sb_host_options(c->h)->max_tools;
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
	if (r == 0 && max && s->active_tools >= max)
		r = sb_fail(err, SB_E_LIMIT, "session %s runs %u tools, at most %u are allowed",
			s->id, s->active_tools, max);
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
	/* A shutdown that began meanwhile has not seen it in the list. */
	if (r == 0 && c->run.again && sb_host_closing(c->h))
		sb_cancel_request(c->run.kill);
	return r;
}

int
sb_tool_gate_leave(struct sb_toolcall *c, int r, struct sb_error *err)
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
	if (r == SB_E_CANCELED && sb_cancel_requested(c->run.kill) && sb_host_closing(c->h))
		return sb_fail(err, SB_E_SHUTTING_DOWN, "%s", sb_code_text(SB_E_SHUTTING_DOWN));
	return r;
}
