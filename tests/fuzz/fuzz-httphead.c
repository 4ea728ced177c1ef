/* SPDX-License-Identifier: MIT */
/*
 * The head of a request and what may follow it. An accepted head is written so that it reads as the
 * same request, with one Host, one length and an end of the connection; what passes of the body
 * does not depend on the pieces it comes in.
 */
#include "config.h"

#include <string.h>

#include <base/buf.h>
#include <egress/httpflow.h>

#include "fuzz.h"

static void
check_written(const struct sb_httphead *h, const uint8_t *data)
{
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_httphead again;

	sb_buf_init(&out, 4 * SB_HTTPHEAD_MAX);
	sb_httphead_write(h, data, &out);
	FUZZ_CHECK(out.failed == 0);
	if (h->target == SB_HTTPHEAD_CONNECT || out.len >= SB_HTTPHEAD_MAX)
		return;
	/* The line that ends the connection may be one too many. */
	if (sb_httphead_read(out.data, out.len, &again) != SB_HTTPHEAD_DONE) {
		FUZZ_CHECK(strcmp(again.why, "too many lines") == 0);
		return;
	}
	FUZZ_CHECK(again.len == out.len && again.target == SB_HTTPHEAD_ORIGIN);
	FUZZ_CHECK(again.has_host == h->has_host && again.length == h->length);
	FUZZ_CHECK(again.chunked == h->chunked && again.upgrade == h->upgrade);
	FUZZ_CHECK(!h->has_host || sb_httphead_same_peer(&again.host, &h->host, 80));
	FUZZ_CHECK(h->upgrade || memmem(out.data, out.len, "\r\nConnection: close\r\n", 21));
}

static size_t
pass(const struct sb_httphead *h, const uint8_t *data, size_t len, size_t step,
	struct sb_httpflow *f)
{
	size_t at = 0;

	sb_httpflow_init(f, h);
	while (at < len) {
		size_t n = len - at < step ? len - at : step;
		size_t p = sb_httpflow_pass(f, data + at, n);

		FUZZ_CHECK(p <= n);
		at += p;
		if (p < n)
			break;
	}
	return at;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_httphead h, part;
	enum sb_httphead_state s = sb_httphead_read(data, len, &h), p;
	struct sb_httpflow f, g;
	size_t a, b;

	FUZZ_CHECK(s != SB_HTTPHEAD_MORE || len <= SB_HTTPHEAD_MAX);
	FUZZ_CHECK(s != SB_HTTPHEAD_BAD || h.why);
	for (size_t i = 0; i<len; i += len> 200 ? len / 50 : 1) {
		p = sb_httphead_read(data, i, &part);
		FUZZ_CHECK(p == SB_HTTPHEAD_MORE || p == s);
	}
	if (s != SB_HTTPHEAD_DONE)
		return 0;
	FUZZ_CHECK(h.len <= len);
	check_written(&h, data);
	a = pass(&h, data + h.len, len - h.len, len + 1, &f);
	b = pass(&h, data + h.len, len - h.len, 3, &g);
	FUZZ_CHECK(a == b && f.step == g.step);
	FUZZ_CHECK(h.chunked || a <= h.length);
	return 0;
}
