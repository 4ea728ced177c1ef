/* SPDX-License-Identifier: MIT */
/* The head of an answer that is passed on: what is taken cannot be read in two ways. */
#include "config.h"

#include <string.h>

#include <base/buf.h>
#include <compat/http/replyhead.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_replyhead) struct sb_replyhead h = { 0 }, again = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	size_t used = 0, all = 0;
	int r;

	sb_buf_init(&b, 1 << 20);
	sb_buf_add(&b, data, len < 1 << 19 ? len : 1 << 19);
	r = sb_replyhead_parse((const char *)b.data, b.len, &h, &used, NULL);
	FUZZ_CHECK(r <= 1 && (r != 0 || b.len < SB_REPLYHEAD_MAX));
	if (r != 1)
		return 0;
	FUZZ_CHECK(used <= b.len && h.status >= 100 && h.status <= 999 && h.length >= -1);
	FUZZ_CHECK(h.headers.n % 2 == 0 && h.headers.n <= (size_t)2 * SB_REPLYHEAD_LINES_MAX);
	/* Sent on, it says the same. */
	sb_buf_reset(&b);
	sb_buf_addf(&b, "HTTP/1.1 %d X\r\n", h.status);
	for (size_t i = 0; i < h.headers.n; i += 2) {
		FUZZ_CHECK(
			!strpbrk(h.headers.v[i], "\r\n: ") && !strpbrk(h.headers.v[i + 1], "\r\n"));
		FUZZ_CHECK(!sb_replyhead_is_hop(h.headers.v[i]));
		sb_buf_addf(&b, "%s: %s\r\n", h.headers.v[i], h.headers.v[i + 1]);
	}
	sb_buf_add_str(&b, "\r\n");
	FUZZ_CHECK(sb_replyhead_parse((const char *)b.data, b.len, &again, &all, NULL) == 1);
	FUZZ_CHECK(all == b.len && again.status == h.status);
	return 0;
}
