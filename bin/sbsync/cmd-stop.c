/* SPDX-License-Identifier: MIT */
/* sbsync stop: syncs back and closes the session. */
#include "config.h"

#include <bin/sbsync/options.h>

static int
stop_verb(void *values, int argc, char **argv)
{
	return sync_once_session(values, argc, argv, SB_REASON_STOP);
}

const struct sb_cmd cmd_stop = {
	.name = "stop",
	.args = "[SESSION]",
	.help = "sync back from the sandbox and close the session",
	.opts = session_options,
	.max_args = 1,
	.run = stop_verb,
};
