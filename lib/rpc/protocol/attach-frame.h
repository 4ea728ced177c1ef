/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_ATTACH_FRAME_H
#define SB_RPC_ATTACH_FRAME_H

#include <stdint.h>

#include <base/buf.h>
#include <sb/cancel.h>

/*
 * After a connection was upgraded for Attach, both sides send frames: one byte for the kind, four
 * bytes for the length (big endian), then the content. Streams have the same form of envelope.
 */
enum sb_rpc_attach_frame {
	SB_RPC_ATTACH_FRAME_DATA = 0,   /* client: for stdin; host: of stdout */
	SB_RPC_ATTACH_FRAME_STDERR = 1, /* host */
	SB_RPC_ATTACH_FRAME_EOF = 2,    /* client: stdin ends. Empty */
	SB_RPC_ATTACH_FRAME_EXIT = 3,   /* host: the exit code, four bytes. The last frame */
	SB_RPC_ATTACH_FRAME_ERROR = 4,  /* host: the error as JSON. The last frame */
};
#define SB_RPC_ATTACH_FRAME_MAX (64 * 1024) /* bytes of content */
#define SB_RPC_ATTACH_FRAME_PROTOCOL "sb-attach"

/* Appends a frame to `out`. */
void sb_rpc_attach_frame_put(struct sb_buf *out, enum sb_rpc_attach_frame what, const void *data,
	size_t len);

/*
 * The first frame of `in`: 1 and its parts (borrowed, gone with the next change of `in`), 0 when
 * bytes are missing, or SB_E_PROTO. It takes SB_RPC_ENVELOPE_SIZE + `len` bytes.
 */
int sb_rpc_attach_frame_next(const struct sb_buf *in, enum sb_rpc_attach_frame *what,
	const uint8_t **data, size_t *len, struct sb_error *err);
#endif
