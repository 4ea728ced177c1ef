/* SPDX-License-Identifier: MIT */
/* sbctl turn: the end of an agent's turn, told from outside the sandbox. */
#include "config.h"

#include <stdlib.h>

#include <bin/sbctl/options.h>

static int
turn_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_autofree char *id = ctl_pick(ctl, ctl->a.n ? ctl->a.v[0] : NULL, err);
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	const struct sb_state *s;
	int r = id ? sb_sandbox_open(ctl->keeper, id, &sb, err) : err->code;

	if (r < 0)
		return r;
	s = sb_sandbox_state(sb);
	if (s->sync_mode != SB_SYNC_MODE_TURN)
		return sb_fail(err, SB_E_STATE,
			"sandbox %s has sync mode %s: sbctl sync %s syncs it now, and --sync-mode "
			"turn-bidirectional of run makes turns count",
			s->sandbox_id, sb_sync_mode_name(s->sync_mode), s->sandbox_id);
	r = sb_sandbox_turn(sb, &ctl->call, &res, err);
	ctl_report_sync(ctl, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? CTL_CONFLICTS : 0;
}

static const struct sb_opt options[] = {
	OPTIONS_TIMEOUT,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_turn = {
	.cmd = {
		.name = "turn",
		.args = "[ID]",
		.help = "tell that an agent's turn has ended: sync both ways",
		.details = "For sync mode turn-bidirectional. Inside the sandbox, running $SB_TURN "
			   "does the same.",
		.opts = options,
		.max_args = 1,
	},
	.run = turn_verb,
};
