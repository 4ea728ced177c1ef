/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_STATE_DIR_H
#define SB_PROVIDER_STATE_DIR_H

#include <sb/error.h>

/*
 * Where the user's sandboxes and consents are on record: $SBSYNC_STATE_DIR, $XDG_STATE_HOME/sbsync
 * or ~/.local/state/sbsync, the store that libsbsync uses too. A new string; NULL: error.
 */
char *sb_state_dir_default(struct sb_error *err);

#endif
