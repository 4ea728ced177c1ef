/* SPDX-License-Identifier: MIT */
/*
 * The text of a policy. A mistake has a message without control characters; whatever was accepted
 * lets nothing through that can never be reached, and a name that is denied altogether is not
 * allowed at any port.
 */
#include <string.h>

#include <egress/netpolicy.h>

#include "fuzz.h"

static void
check_never(const struct sb_netpolicy *p, const char *text)
{
	struct sb_netverdict v;
	struct sb_netaddr a;

	FUZZ_CHECK(sb_netaddr_parse(text, strlen(text), &a));
	for (int i = 0; i < 4; i++)
		FUZZ_CHECK(!sb_netpolicy_addr(p, &a, 443, i & 1, i & 2, &v));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const names[] = { "a.test", "b.a.test", "host.sandbox.internal" };
	struct sb_error err = { 0 };
	sb_auto(sb_netpolicy) struct sb_netpolicy *p =
		sb_netpolicy_parse((const char *)data, len, &err);
	struct sb_netverdict v;

	if (!p) {
		FUZZ_CHECK(err.msg[0]);
		for (const char *s = err.msg; *s; s++)
			FUZZ_CHECK((unsigned char)*s >= ' ');
		return 0;
	}
	check_never(p, "224.0.0.1");
	check_never(p, "0.0.0.0");
	check_never(p, "198.19.0.1");
	check_never(p, "64:ff9b::7f00:1");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		bool any = sb_netpolicy_name(p, names[i], 0, &v);

		FUZZ_CHECK(any == v.allow);
		for (uint16_t port = 1; port < 2000; port += 41)
			FUZZ_CHECK(any || !sb_netpolicy_name(p, names[i], port, &v));
	}
	return 0;
}
