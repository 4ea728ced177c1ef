/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_PRIV_H
#define SBSYNC_SESSION_PRIV_H

#include <sbsync/session.h>

/*
 * Fills in the route to the far side (port, key file, ssh configuration, known hosts, remote shell)
 * that the session was started with, where `o` does not say otherwise. Borrows from `s`.
 */
void sb_session_use_route(const struct sb_session *s, struct sb_sync_opts *o);

#endif
