/* SPDX-License-Identifier: MIT */
/* sbsync sync: both ways, now. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
sync_verb(void *values, int argc, char **argv)
{
	return sync_once_session(values, argc, argv, SB_REASON_TURN);
}

const struct sb_cmd cmd_sync = {
	.name = "sync",
	.args = "[SESSION]",
	.help = "sync both ways now",
	.details = "SESSION may be left out inside the local directory.",
	.opts = session_options,
	.max_args = 1,
	.run = sync_verb,
};
