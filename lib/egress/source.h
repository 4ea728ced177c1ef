/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_SOURCE_H
#define SB_EGRESS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A descriptor in the loop: what the events of epoll point to. `fd` -1 means closed; events of the
 * same round that still name it are passed over.
 */
struct sb_source {
	int fd;
	uint32_t mask; /* what epoll knows; 0 with `in`: known but not asked for anything */
	bool in;       /* epoll knows the descriptor */
	void *owner;   /* whose it is, where that is not told by the place of the structure */
	void (*ready)(struct sb_source *s, uint32_t events);
};

/* Asks for `mask`. 0 or -1 with errno. */
int sb_source_want(struct sb_source *s, int epoll, uint32_t mask);
/* Takes it out of epoll, whatever its state; the descriptor stays open. */
void sb_source_leave(struct sb_source *s, int epoll);
/* Closes the descriptor. */
void sb_source_close(struct sb_source *s);

#endif
