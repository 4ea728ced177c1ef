/* SPDX-License-Identifier: MIT */
/* sbsync diff: what a sync or a mirror would do. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
diff_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;

	if (a->content && a->json) {
		complain("diff takes --content or --json, not both");
		return EXIT_USAGE;
	}
	a->dry_run = true;
	return argc == 2 ? sync_once_mirror(a, argv) :
			   sync_once_session(a, argc, argv, SB_REASON_TURN);
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "content", content, "show what differs in the files, as diff -u"),
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_diff = {
	.name = "diff",
	.args = "[SESSION] | SRC DST",
	.help = "show what a sync, or a mirror, would do; change nothing",
	.details = "Lines with '<-' change the local directory, with '->' the other one.",
	.opts = options,
	.max_args = 2,
	.run = diff_verb,
};
