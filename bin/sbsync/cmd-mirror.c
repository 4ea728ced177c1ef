/* SPDX-License-Identifier: MIT */
/* sbsync mirror: one way, without a session. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
mirror_verb(void *values, int argc, char **argv)
{
	int r = guard_target(values, argv[1]);

	(void)argc;
	return r ? r : sync_once_mirror(values, argv);
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "yes", yes, "do not ask about directories that are hardly meant"),
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_mirror = {
	.name = "mirror",
	.args = "SRC DST",
	.help = "make DST equal to SRC, one way, without a session",
	.details = "SRC and DST are directories: a local path, [user@]host:path or\n"
		   "ssh://[user@]host[:port]/path. At most one of them is remote.",
	.opts = options,
	.min_args = 2,
	.max_args = 2,
	.run = mirror_verb,
};
