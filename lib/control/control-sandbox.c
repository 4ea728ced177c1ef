/* SPDX-License-Identifier: MIT */
/* Sandboxes and processes as a control tells of them. */
#include "config.h"

#include <control/control-priv.h>

#include <stdlib.h>

const char *
sb_control_state_name(enum sb_control_state s)
{
	static const char *const names[] = { "creating", "running", "paused", "destroying",
		"failed", "unreachable" };

	return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

const char *
sb_control_status_name(enum sb_control_status s)
{
	static const char *const names[] = { "starting", "running", "exited" };

	return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

void
sb_control_sandbox_free(struct sb_control_sandbox *s)
{
	sb_strlist_free(&s->labels);
	free(s->why);
	free(s->instance);
	free(s->rsh);
	free(s->endpoint);
	*s = (struct sb_control_sandbox){ 0 };
}

void
sb_control_list_free(struct sb_control_sandbox *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_control_sandbox_free(&v[i]);
	free(v);
}
