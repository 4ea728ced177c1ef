/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_EMBED_H
#define SB_RPC_EMBED_H

#include <sb/host.h>

/*
 * A sandbox host inside this process that answers on a unix socket, as sbhostd does, so that a
 * client talks to it as to a remote host. It ends with the process; its sessions do not.
 */
struct sb_rpc_embed;

/*
 * `opts` as for sb_host_open (on_event is taken over). SB_E_LOCKED: another process serves that
 * directory.
 */
struct sb_rpc_embed *sb_rpc_embed_open(const struct sb_host_opts *opts, const char *socket,
	struct sb_error *err);
/* Sessions stay as they are. NULL is allowed. */
void sb_rpc_embed_close(struct sb_rpc_embed *e);

#endif
