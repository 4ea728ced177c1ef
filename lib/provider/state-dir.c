/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/state-dir.h>

#include <stdlib.h>
#include <string.h>

#include <base/str.h>

char *
sb_state_dir_default(struct sb_error *err)
{
	const char *own = getenv("SBSYNC_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	char *dir = NULL;

	if (own && own[0])
		dir = strdup(own);
	else if (xdg && xdg[0] == '/')
		dir = sb_str_printf("%s/sbsync", xdg);
	else if (home && home[0] == '/')
		dir = sb_str_printf("%s/.local/state/sbsync", home);
	if (!dir)
		(void)sb_fail(err, SB_E_INVAL,
			"there is no place for the state of sandboxes: set HOME, XDG_STATE_HOME or "
			"SBSYNC_STATE_DIR");
	return dir;
}
