/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_WSFRAME_H
#define SB_COMPAT_WSFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>

/* WebSocket frames (RFC 6455) as a server has to do with them: it reads masked ones. */
enum sb_wsframe_kind {
	SB_WSFRAME_TEXT = 1,
	SB_WSFRAME_BINARY = 2,
	SB_WSFRAME_CLOSE = 8,
	SB_WSFRAME_PING = 9,
	SB_WSFRAME_PONG = 10,
};

/* What comes in; it holds one message and one frame, each of at most `max` bytes. */
struct sb_wsframe {
	struct sb_buf in, msg;
	size_t max;
	int begun;         /* the kind of a message in parts, 0: none */
	bool over;         /* the message has been given away */
	int bad;           /* the mistake that ended it: a close code */
	uint8_t hand[126]; /* of a control frame */
};

void sb_wsframe_init(struct sb_wsframe *w, size_t max);
void sb_wsframe_free(struct sb_wsframe *w);

/* At most SB_WSFRAME_PIECE bytes as they came. */
#define SB_WSFRAME_PIECE 65536
void sb_wsframe_add(struct sb_wsframe *w, const void *data, size_t len);
/*
 * 1: a message, or a control frame; NUL-terminated, good until the next call. 0: more is needed.
 * SB_E_PROTO: no frames of a client; `bad` is the code to close with. Take all before adding more.
 */
int sb_wsframe_next(struct sb_wsframe *w, enum sb_wsframe_kind *kind, const uint8_t **data,
	size_t *len, struct sb_error *err);

/* Appends a whole message as a server sends it. */
void sb_wsframe_put(struct sb_buf *out, enum sb_wsframe_kind kind, const void *data, size_t len);

#endif
