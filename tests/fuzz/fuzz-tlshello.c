/* SPDX-License-Identifier: MIT */
/*
 * The first bytes of a TLS client. What is told does not depend on how many bytes came at once:
 * once a hello is done, bad or something else, more bytes change nothing; a name is a name of a
 * host; and nobody waits for more than the limit.
 */
#include <string.h>

#include <egress/tlshello.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[SB_NETNAME_MAX], again[SB_NETNAME_MAX], checked[SB_NETNAME_MAX];
	enum sb_tlshello all = sb_tlshello_read(data, len, name), part;

	FUZZ_CHECK(all != SB_TLSHELLO_MORE || len < SB_TLSHELLO_MAX + 5);
	if (all == SB_TLSHELLO_DONE && name[0])
		FUZZ_CHECK(sb_netname_check(name, strlen(name), checked) &&
			strcmp(name, checked) == 0);
	for (size_t i = 0; i<len; i += len> 200 ? len / 50 : 1) {
		part = sb_tlshello_read(data, i, again);
		FUZZ_CHECK(part == SB_TLSHELLO_MORE || part == all);
		FUZZ_CHECK(part != SB_TLSHELLO_DONE || strcmp(name, again) == 0);
	}
	return 0;
}
