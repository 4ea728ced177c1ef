/* SPDX-License-Identifier: MIT */
/* Frames of the helper in a box: what is taken keeps its bounds and says the same written again. */
#include "config.h"

#include <string.h>

#include <compat/ssh/sshagent.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf in, again;
	struct sb_sshagent_frame f;
	int r;

	sb_buf_init(&in, 1 << 22);
	sb_buf_init(&again, 1 << 22);
	sb_buf_add(&in, data, len);
	while ((r = sb_sshagent_next(&in, &f)) > 0) {
		FUZZ_CHECK(f.number < SB_SSHAGENT_CONNS_MAX && f.len <= SB_SSHAGENT_DATA_MAX);
		FUZZ_CHECK(f.data >= in.data && f.data + f.len <= in.data + in.len);
		sb_sshagent_put(&again, f.what, f.number, f.data, f.len);
		sb_sshagent_drop(&in, &f);
	}
	FUZZ_CHECK(again.len + in.len == len || in.failed);
	FUZZ_CHECK(memcmp(again.data, data, again.len) == 0);
	return 0;
}
