/* SPDX-License-Identifier: MIT */
/* sbctl show: one sandbox on record. */
#include "config.h"

#include <stdlib.h>

#include <bin/sbctl/options.h>

static int
show_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_autofree char *id = ctl_pick(ctl, ctl->a.n ? ctl->a.v[0] : NULL, err);
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	int r = id ? sb_keeper_load(ctl->keeper, id, &s, err) : err->code;

	if (r == 0)
		ctl_show_state(ctl, &s);
	return r;
}

static const struct sb_opt options[] = {
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_show = {
	.cmd = {
		.name = "show",
		.args = "[ID]",
		.help = "show what is on record about a sandbox",
		.opts = options,
		.max_args = 1,
	},
	.run = show_verb,
};
