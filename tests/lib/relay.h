/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_RELAY_H
#define SB_TESTS_RELAY_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A TCP relay on 127.0.0.1 that spoils connections on purpose: cuts, stalls or corrupts at a byte,
 * delays. "up" is from the client to the server. Byte positions count from 0 in each connection;
 * negative: never.
 */
struct relay_opts {
	int to_port;
	int64_t cut_up, cut_down; /* both sides are reset once so many bytes passed */
	int64_t stall_up,
		stall_down; /* nothing passes behind this byte, the connection stays open */
	int64_t corrupt_up, corrupt_down; /* one bit of this byte is flipped */
	int delay_ms;                     /* one way; connecting costs two of them */
	int cuts; /* so many connections are cut at a random byte, counted in both directions ... */
	int64_t cut_max; /* ... below this one; later connections pass */
	unsigned seed;
};
#define RELAY_OPTS_INIT \
	{ \
		.cut_up = -1, .cut_down = -1, .stall_up = -1, .stall_down = -1, .corrupt_up = -1, \
		.corrupt_down = -1 \
	}

struct relay {
	int port;
	_Atomic int connections;
	_Atomic int cuts_done;
	_Atomic uint64_t bytes_up, bytes_down;
	struct relay_priv *priv;
};

/* NULL with errno set on failure. */
struct relay *relay_start(const struct relay_opts *opts);
void relay_stop(struct relay *r);

#endif
