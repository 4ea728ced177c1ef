/* SPDX-License-Identifier: MIT */
/*
 * The state of a sandbox on disk. What is accepted is written as something that reads back the
 * same.
 */
#include <string.h>

#include <provider/provider.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	sb_auto(sb_state) struct sb_state again = SB_STATE_INIT;
	sb_autofree char *one = NULL, *two = NULL;
	struct sb_error err = { 0 };

	if (sb_state_decode((const char *)data, len, &s, &err) < 0) {
		FUZZ_CHECK(err.msg[0] && !s.sandbox_id);
		return 0;
	}
	FUZZ_CHECK(sb_state_encode(&s, &one, &err) == 0 || err.code == SB_E_LIMIT);
	if (!one)
		return 0;
	FUZZ_CHECK(sb_state_decode(one, strlen(one), &again, &err) == 0);
	FUZZ_CHECK(sb_state_encode(&again, &two, &err) == 0 && strcmp(one, two) == 0);
	return 0;
}
