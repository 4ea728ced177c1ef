/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_NET_H
#define SBSYNC_SSH_NET_H

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * Looks the name up and connects, trying the addresses in turn with a head start of 250 ms each, so
 * that one dead address costs little. `family` is AF_UNSPEC, AF_INET or AF_INET6. Returns a
 * non-blocking descriptor. Both the lookup and the connects end at `d` and on cancel. SB_E_CONNECT
 * names what each step said.
 */
int sb_ssh_net_connect(const char *host, int port, int family, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);

#endif
