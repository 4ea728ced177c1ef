/* SPDX-License-Identifier: MIT */
/* sbctl ls: the sandboxes on record. */
#include "config.h"

#include <bin/sbctl/options.h>

static int
ls_verb(struct ctl *ctl, struct sb_error *err)
{
	struct sb_state *v = NULL;
	size_t n = 0, kept = 0;
	int r = sb_keeper_list(ctl->keeper, &v, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (ctl->a.all || v[i].life != SB_LIFE_DESTROYED) {
			struct sb_state t = v[kept];

			v[kept++] = v[i];
			v[i] = t;
		}
	ctl_show_states(ctl, v, kept);
	sb_states_free(v, n);
	return 0;
}

static const struct sb_opt options[] = {
	OPT_FLAG('a', "all", all, "list removed sandboxes too"),
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_ls = {
	.cmd = {
		.name = "ls",
		.args = "",
		.help = "list sandboxes",
		.opts = options,
	},
	.run = ls_verb,
};
