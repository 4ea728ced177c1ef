/* SPDX-License-Identifier: MIT */
/*
 * DNS messages: the first byte chooses between a session's question and a resolver's reply. An
 * accepted question is answered by a message that reads as the reply to it.
 */
#include <string.h>

#include <egress/dns.h>

#include "fuzz.h"

static void
check_query(const uint8_t *data, size_t len)
{
	const struct sb_netaddr a = { 4, { 198, 19, 0, 1 } };
	char checked[SB_NETNAME_MAX];
	struct sb_dns_query q;
	struct sb_dns_reply r;
	uint8_t out[SB_DNS_REPLY];
	size_t n;
	int rcode;

	if (!sb_dns_read_query(data, len, &q, &rcode))
		return;
	n = sb_dns_write_answer(&q, rcode, rcode == SB_DNS_OK ? &a : NULL, 30, out);
	FUZZ_CHECK(n >= 12 && n <= sizeof out);
	if (rcode != SB_DNS_OK || !q.name[0])
		return;
	FUZZ_CHECK(
		sb_netname_check(q.name, strlen(q.name), checked) && strcmp(q.name, checked) == 0);
	if (q.type != SB_DNS_A || q.class != 1)
		return;
	FUZZ_CHECK(sb_dns_read_reply(out, n, q.id, q.name, SB_DNS_A, &r));
	FUZZ_CHECK(r.rcode == SB_DNS_OK && r.n == 1 && sb_netaddr_equal(&r.v[0], &a));
}

static void
check_reply(const uint8_t *data, size_t len)
{
	uint16_t type = data[0] & 1 ? SB_DNS_A : SB_DNS_AAAA;
	struct sb_dns_reply r;

	if (!sb_dns_read_reply(data + 1, len - 1, 0x1234, "good.test", type, &r))
		return;
	FUZZ_CHECK(r.n <= SB_DNS_ADDRS && r.rcode >= 0 && r.rcode <= 15);
	for (size_t i = 0; i < r.n; i++)
		FUZZ_CHECK(r.v[i].family == 4 || (r.v[i].family == 6 && type == SB_DNS_AAAA));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	if (data[0] & 0x80)
		check_query(data + 1, len - 1);
	else
		check_reply(data, len);
	return 0;
}
