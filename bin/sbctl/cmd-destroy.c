/* SPDX-License-Identifier: MIT */
/* sbctl destroy: syncs back, then removes the sandbox. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/options.h>

static int
destroy_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	int r = sb_sandbox_open(ctl->keeper, ctl->a.v[0], &sb, err);

	if (r < 0)
		return r;
	if (sb_state_owned(sb_sandbox_state(sb)))
		return sb_fail(err, SB_E_LOCKED,
			"process %lld works with sandbox %s: sbctl stop %s first",
			(long long)sb_sandbox_state(sb)->owner_pid,
			sb_sandbox_state(sb)->sandbox_id, sb_sandbox_state(sb)->sandbox_id);
	if (ctl->a.discard && !ctl->a.quiet && sb_sandbox_state(sb)->life == SB_LIFE_UNSYNCED)
		(void)fprintf(stderr, "sbctl: %s: its work since the last sync is thrown away\n",
			sb_sandbox_state(sb)->sandbox_id);
	r = sb_sandbox_destroy(sb, ctl->a.discard, &ctl->call, &res, err);
	ctl_report_sync(ctl, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? CTL_CONFLICTS : 0;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "discard", discard, "throw away work that was not synced back"),
	OPTIONS_TIMEOUT,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_destroy = {
	.cmd = {
		.name = "destroy",
		.args = "ID",
		.help = "sync back, then remove the sandbox",
		.opts = options,
		.min_args = 1,
		.max_args = 1,
	},
	.run = destroy_verb,
};
