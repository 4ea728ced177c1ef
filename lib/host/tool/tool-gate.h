/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOL_GATE_H
#define SB_HOST_TOOL_GATE_H

#include <host/tool/toolcall.h>

/*
 * The gate says which tool calls may run when. A call enters an ACTIVE session that runs fewer than
 * max_tools; while a turn ends (`gate` of the session is set) it waits outside. Between enter and
 * leave the session counts the call, knows how to kill it, and does not change its state under it.
 */

/* Fills `c->workspace`. SB_E_LIMIT, or the error of the session's state. */
int sb_tool_gate_enter(struct sb_toolcall *c, struct sb_error *err);
/*
 * Returns `r`, the result of the call; for one that the session killed, the error of the session's
 * state instead.
 */
int sb_tool_gate_leave(struct sb_toolcall *c, int r, struct sb_error *err);

#endif
