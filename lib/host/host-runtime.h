/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_RUNTIME_H
#define SB_HOST_HOST_RUNTIME_H

#include <host/runtime/runtime.h>

struct sb_host;

/* Which runtime and which network a session gets. */

/* The runtime of that kind, opened when it is not yet; AUTO: the host's default. */
struct sb_runtime *sb_host_runtime_get(struct sb_host *h, enum sb_host_runtime kind,
	struct sb_error *err);
/* What a session with these options runs in, or NULL and why it may not have it. */
struct sb_runtime *sb_host_runtime_for(struct sb_host *h, const struct sb_host_create_opts *o,
	struct sb_error *err);
/*
 * The network of a session in `rt` that asked for `asked`. Never DEFAULT, so a session keeps its
 * network when the host's default changes.
 */
enum sb_host_network sb_host_runtime_network(const struct sb_host *h, const struct sb_runtime *rt,
	enum sb_host_network asked);
void sb_host_runtime_close_all(struct sb_host *h);

#endif
