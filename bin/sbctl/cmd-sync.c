/* SPDX-License-Identifier: MIT */
/* sbctl sync: a sandbox both ways, now. */
#include "config.h"

#include <stdlib.h>

#include <bin/sbctl/options.h>

static int
sync_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_autofree char *id = ctl_pick(ctl, ctl->a.n ? ctl->a.v[0] : NULL, err);
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	int r = id ? sb_sandbox_open(ctl->keeper, id, &sb, err) : err->code;

	if (r < 0)
		return r;
	o.dry_run = ctl->a.dry_run;
	o.take_local = ctl->a.conflict == 1;
	o.take_runtime = ctl->a.conflict == 2;
	o.max_delete = ctl->a.max_delete;
	r = sb_sandbox_sync(sb, &o, &ctl->call, &res, err);
	ctl_report_sync(ctl, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? CTL_CONFLICTS : 0;
}

static const char *const conflict_words[] = { "keep", "local", "runtime", NULL };

static const struct sb_opt options[] = {
	OPT_FLAG('n', "dry-run", dry_run, "show what would be done, change nothing"),
	OPT_CHOICE(0, "conflict", conflict, "SIDE", conflict_words,
		"keep (both), local or runtime"),
	OPT_INT(0, "max-delete", max_delete, "N", 0, INT64_MAX,
		"let a sync delete up to N entries"),
	OPTIONS_TIMEOUT,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_sync = {
	.cmd = {
		.name = "sync",
		.args = "[ID]",
		.help = "sync a sandbox both ways now",
		.opts = options,
		.max_args = 1,
	},
	.run = sync_verb,
};
