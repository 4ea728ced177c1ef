/* SPDX-License-Identifier: MIT */
/* sbctl forget: takes sandboxes off the record. */
#include "config.h"

#include <bin/sbctl/options.h>

static int
forget_verb(struct ctl *ctl, struct sb_error *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < ctl->a.n; i++)
		r = sb_keeper_forget(ctl->keeper, ctl->a.v[i], ctl->a.discard, err);
	return r;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "discard", discard, "also one that is kept, or whose work is not synced back"),
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_forget = {
	.cmd = {
		.name = "forget",
		.args = "ID...",
		.help = "take a sandbox off the record without asking its backend",
		.details = "For records that nothing else ends: of a start that failed, of a "
			   "machine that is gone. What is over there stays there.",
		.opts = options,
		.min_args = 1,
		.max_args = 1000,
	},
	.run = forget_verb,
};
