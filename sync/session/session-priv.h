/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_PRIV_H
#define SBSYNC_SESSION_PRIV_H

#include <sbsync/session.h>

/*
 * The way to the other side as it was given at the start, where `o` does not say otherwise. Borrows
 * from `s`.
 */
void sb_session_use_way(const struct sb_session *s, struct sb_sync_opts *o);

#endif
