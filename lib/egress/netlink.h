/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_NETLINK_H
#define SB_EGRESS_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/* A message to the kernel, put together piece by piece; too much in it fails when it is sent. */
struct sb_netlink {
	uint32_t buf[512]; /* aligned as the kernel wants it */
	size_t len;
	size_t begin; /* of the current message */
	bool full;
};

void sb_netlink_init(struct sb_netlink *n);
/* Begins a message with a fixed part behind its header; ends the one before. */
void sb_netlink_begin(struct sb_netlink *n, uint16_t type, uint16_t flags, const void *fixed,
	size_t len);
void sb_netlink_put(struct sb_netlink *n, uint16_t type, const void *data, size_t len);
void sb_netlink_put_u32(struct sb_netlink *n, uint16_t type, uint32_t v);
void sb_netlink_put_str(struct sb_netlink *n, uint16_t type, const char *s);
/* Bytes as they are, for the fixed part of a nested message. */
void sb_netlink_put_raw(struct sb_netlink *n, const void *data, size_t len);
/* What is put between the two is inside the attribute. */
size_t sb_netlink_open(struct sb_netlink *n, uint16_t type);
void sb_netlink_shut(struct sb_netlink *n, size_t mark);

/*
 * Sends all messages on a new socket of that protocol and waits for `acks` answers. The error of
 * the first that fails names `what`.
 */
int sb_netlink_send(struct sb_netlink *n, int protocol, int acks, const char *what,
	struct sb_error *err);

#endif
