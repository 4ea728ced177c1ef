/* SPDX-License-Identifier: MIT */
/* sbsync stop: syncs back and closes the session. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
stop_verb(void *values, int argc, char **argv)
{
	return sync_once_session(values, argc, argv, SB_REASON_STOP);
}

static const struct sb_opt options[] = {
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_stop = {
	.name = "stop",
	.args = "[SESSION]",
	.help = "sync back from the sandbox and close the session",
	.opts = options,
	.max_args = 1,
	.run = stop_verb,
};
