/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/attach-frame.h>

#include <rpc/protocol/envelope.h>

void
sb_rpc_attach_frame_put(struct sb_buf *out, enum sb_rpc_attach_frame what, const void *data,
	size_t len)
{
	uint8_t head[SB_RPC_ENVELOPE_SIZE];

	sb_rpc_envelope_head(head, (uint8_t)what, (uint32_t)len);
	sb_buf_add(out, head, sizeof head);
	if (len > 0)
		sb_buf_add(out, data, len);
}

int
sb_rpc_attach_frame_next(const struct sb_buf *in, enum sb_rpc_attach_frame *what,
	const uint8_t **data, size_t *len, struct sb_error *err)
{
	size_t n;

	if (in->len < SB_RPC_ENVELOPE_SIZE)
		return 0;
	n = (size_t)in->data[1] << 24 | (size_t)in->data[2] << 16 | (size_t)in->data[3] << 8 |
		in->data[4];
	if (in->data[0] > SB_RPC_ATTACH_FRAME_ERROR || n > SB_RPC_ATTACH_FRAME_MAX)
		return sb_fail(err, SB_E_PROTO, "frame of kind %u with %zu bytes", in->data[0], n);
	if (in->len < SB_RPC_ENVELOPE_SIZE + n)
		return 0;
	*what = (enum sb_rpc_attach_frame)in->data[0];
	*data = in->data + SB_RPC_ENVELOPE_SIZE;
	*len = n;
	return 1;
}
