/* SPDX-License-Identifier: MIT */
/* sbsync undo: takes the local side back to before the last sync. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
undo_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { .reason = "undo" };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	if (r)
		return r;
	o.log = stderr_log(a);
	r = find_session(argc ? argv[0] : NULL, &s, &err);
	if (r == 0)
		r = sb_session_undo(&s, &o, &res, &err);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r;
}

static const struct sb_opt options[] = {
	OPTIONS_DRY_RUN,
	OPTIONS_TRUST_GIT,
	OPTIONS_JSON,
	OPTIONS_QUIET_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_undo = {
	.name = "undo",
	.args = "[SESSION]",
	.help = "put the local side back as it was before the last sync",
	.details = "Files edited since then stay; undo puts the old version beside them. A second\n"
		   "undo undoes the first.",
	.opts = options,
	.max_args = 1,
	.run = undo_verb,
};
