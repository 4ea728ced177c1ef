/* SPDX-License-Identifier: MIT */
/* Frames of the door: what is taken says the same when it is written again, and keeps its bounds.
 */
#include "config.h"

#include <string.h>

#include <compat/ssh/sshwire.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf again;
	struct sb_sshwire_frame f, g;

	sb_buf_init(&again, SB_SSHWIRE_MAX);
	if (sb_sshwire_parse(data, len, &f, NULL) < 0)
		return 0;
	sb_sshwire_put(&f, &again);
	FUZZ_CHECK(!again.failed && again.len == len && memcmp(again.data, data, len) == 0);
	FUZZ_CHECK(sb_sshwire_parse(again.data, again.len, &g, NULL) == 0);
	FUZZ_CHECK(f.a_len + f.b_len <= len && !memchr(f.a, 0, f.a_len));
	FUZZ_CHECK(f.what != SB_SSHWIRE_START || f.b_len == 0 || f.b[f.b_len - 1] == 0);
	FUZZ_CHECK(f.what == SB_SSHWIRE_START || !memchr(f.b, 0, f.b_len));
	return 0;
}
