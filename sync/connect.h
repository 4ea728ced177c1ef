/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONNECT_H
#define SBSYNC_CONNECT_H

#include <sbsync/sync.h>
#include <sync/endpoint.h>
#include <sync/link.h>

/* Starts an agent for this endpoint (a child process for a local one) and greets it. NULL with `err` on failure. */
struct sb_link *sb_connect(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_error *err);

#endif
