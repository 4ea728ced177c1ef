/* SPDX-License-Identifier: MIT */
/*
 * Frames of an attached client, however they are cut: each stays within its bounds, what was read
 * is read the same in pieces, and a broken one ends it.
 */
#include <string.h>

#include <rpc/protocol/attach-frame.h>
#include <rpc/protocol/envelope.h>

#include "fuzz.h"

/* Reads all frames; `step` bytes come at a time. Sums up what they were. */
static uint64_t
read_all(const uint8_t *data, size_t len, size_t step)
{
	sb_auto(sb_buf) struct sb_buf in;
	uint64_t sum = 0;
	int r = 0;

	sb_buf_init(&in, 1 << 20);
	for (size_t at = 0; at < len && r >= 0; at += step) {
		enum sb_rpc_attach_frame what;
		const uint8_t *part;
		size_t n;

		sb_buf_add(&in, data + at, len - at < step ? len - at : step);
		while ((r = sb_rpc_attach_frame_next(&in, &what, &part, &n, NULL)) == 1) {
			FUZZ_CHECK(n <= SB_RPC_ATTACH_FRAME_MAX && part >= in.data &&
				part + n <= in.data + in.len);
			sum = sum * 31 + (uint64_t)what * 7 + n;
			sb_buf_consume(&in, SB_RPC_ENVELOPE_SIZE + n);
		}
		FUZZ_CHECK(r == 0 || r == SB_E_PROTO);
	}
	return r < 0 ? sum * 31 + 1 : sum * 31;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t step = len > 0 ? (size_t)data[0] % 64 + 1 : 1;

	if (len == 0 || len > 65536)
		return 0;
	FUZZ_CHECK(read_all(data + 1, len - 1, step) == read_all(data + 1, len - 1, len));
	return 0;
}
