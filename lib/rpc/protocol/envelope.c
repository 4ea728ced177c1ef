/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/envelope.h>

void
sb_rpc_envelope_head(uint8_t head[SB_RPC_ENVELOPE_SIZE], uint8_t flags, uint32_t len)
{
	head[0] = flags;
	head[1] = (uint8_t)(len >> 24);
	head[2] = (uint8_t)(len >> 16);
	head[3] = (uint8_t)(len >> 8);
	head[4] = (uint8_t)len;
}

int
sb_rpc_envelope_next(const uint8_t *data, size_t len, size_t max, uint8_t *out_flags,
	const uint8_t **out_msg, size_t *out_len, struct sb_error *err)
{
	uint32_t n;

	if (len > 0 && (data[0] & ~(SB_RPC_FLAG_COMPRESSED | SB_RPC_FLAG_END)) != 0)
		return sb_fail(err, SB_E_INVAL, "envelope has unknown flags 0x%02x", data[0]);
	if (len < SB_RPC_ENVELOPE_SIZE)
		return 0;
	n = (uint32_t)data[1] << 24 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 8 | data[4];
	if (n > max)
		return sb_fail(err, SB_E_LIMIT, "message of %u bytes is longer than %zu", n, max);
	if (len - SB_RPC_ENVELOPE_SIZE < n)
		return 0;
	*out_flags = data[0];
	*out_msg = data + SB_RPC_ENVELOPE_SIZE;
	*out_len = n;
	return 1;
}
