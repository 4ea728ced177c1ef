/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_OWNADDR_H
#define SB_EGRESS_OWNADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <egress/netaddr.h>

/* The addresses of this machine's interfaces, looked at again when they are a second old. */
struct sb_ownaddr {
	struct sb_netaddr *v;
	size_t n;
	int64_t read_ms; /* 0: not yet */
	bool unknown;    /* could not be read: every address may be one of ours */
};

bool sb_ownaddr_has(struct sb_ownaddr *o, const struct sb_netaddr *a, int64_t now_ms);
void sb_ownaddr_free(struct sb_ownaddr *o);

#endif
