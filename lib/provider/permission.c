/* SPDX-License-Identifier: MIT */
/*
 * Decides what a tool host may do: one table of modes and operations (declared in sb/toolhost.h).
 */
#include "config.h"

#include <sb/toolhost.h>

#include <string.h>

/* The one table: which operation each mode allows without asking. */
static const bool allowed[SB_PERM_MODE_COUNT][SB_PERM_OP_COUNT] = {
	[SB_PERM_MODE_APPROVE_READS] = { [SB_PERM_OP_READ] = true },
	[SB_PERM_MODE_DENY_ALL] = { false },
	[SB_PERM_MODE_APPROVE_ALL] = { [SB_PERM_OP_READ] = true,
		[SB_PERM_OP_WRITE] = true,
		[SB_PERM_OP_TERMINAL] = true,
		[SB_PERM_OP_REQUEST] = true },
};

int
sb_permission_authorize(enum sb_perm_mode mode, enum sb_perm_op op, struct sb_error *err)
{
	if ((unsigned)mode < SB_PERM_MODE_COUNT && (unsigned)op < SB_PERM_OP_COUNT &&
		allowed[mode][op])
		return 0;
	return sb_fail(err, SB_E_DENIED, "%s is not allowed with permissions %s",
		sb_perm_op_name(op), sb_perm_mode_name(mode));
}

enum sb_decision
sb_permission_decide(enum sb_perm_mode mode, const char *kind, bool *interactive)
{
	*interactive = false;
	if (mode == SB_PERM_MODE_APPROVE_ALL)
		return SB_DECISION_ALLOW_ONCE;
	if (mode != SB_PERM_MODE_APPROVE_READS)
		return SB_DECISION_REJECT_ONCE;
	if (kind && strcmp(kind, "read") == 0)
		return SB_DECISION_ALLOW_ONCE;
	*interactive = true;
	return SB_DECISION_PENDING;
}
