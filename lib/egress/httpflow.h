/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_HTTPFLOW_H
#define SB_EGRESS_HTTPFLOW_H

#include <stddef.h>
#include <stdint.h>

#include <egress/httphead.h>

/*
 * What may follow the head of a request on its connection: its body, and nothing behind it. Another
 * request, which could name another host, never gets through.
 */
enum sb_httpflow_step {
	SB_HTTPFLOW_LENGTH, /* `left` bytes of body */
	SB_HTTPFLOW_SIZE,   /* in the line with a chunk's size */
	SB_HTTPFLOW_CHUNK,  /* `left` bytes of a chunk, its line end included */
	SB_HTTPFLOW_TRAILER,
	SB_HTTPFLOW_END, /* no byte more */
	SB_HTTPFLOW_BAD,
};

struct sb_httpflow {
	enum sb_httpflow_step step;
	uint64_t left;
	size_t line;  /* bytes of the current line so far */
	size_t total; /* of all lines of the trailer */
	uint8_t last; /* the byte before */
	bool in_size; /* digits of the size still come */
};

void sb_httpflow_init(struct sb_httpflow *f, const struct sb_httphead *h);
/* How many of the bytes may go to the server; fewer than `len` once it is at END or BAD. */
size_t sb_httpflow_pass(struct sb_httpflow *f, const uint8_t *data, size_t len);

#endif
