/* SPDX-License-Identifier: MIT */
/* WebSocket frames of a client: what they say does not depend on the pieces that they come in. */
#include "config.h"

#include <string.h>

#include <compat/http/wsframe.h>

#include "fuzz.h"

#define MAX 4096

/* The messages of the frames as we would send them. */
static int
read_all(const uint8_t *data, size_t len, size_t step, struct sb_buf *out, int *bad)
{
	struct sb_wsframe w;
	enum sb_wsframe_kind kind;
	const uint8_t *msg;
	size_t n;
	int r = 0;

	sb_wsframe_init(&w, MAX);
	for (size_t at = 0; at < len && r >= 0; at += step) {
		sb_wsframe_add(&w, data + at, len - at < step ? len - at : step);
		while ((r = sb_wsframe_next(&w, &kind, &msg, &n, NULL)) == 1) {
			FUZZ_CHECK(n <= MAX && msg[n] == 0);
			FUZZ_CHECK(kind < SB_WSFRAME_CLOSE || n <= 125);
			sb_wsframe_put(out, kind, msg, n);
		}
	}
	*bad = w.bad;
	FUZZ_CHECK((r < 0) == (w.bad != 0));
	sb_wsframe_free(&w);
	return r;
}

/* The same with a mask of nothing, as a client may send it. */
static void
mask(const struct sb_buf *in, struct sb_buf *out)
{
	size_t at = 0;

	while (at < in->len) {
		const uint8_t *p = in->data + at;
		size_t head = 2, n = p[1];

		if (n == 126) {
			n = (size_t)p[2] << 8 | p[3];
			head = 4;
		}
		FUZZ_CHECK(p[1] < 127);
		sb_buf_add_u8(out, p[0]);
		sb_buf_add_u8(out, p[1] | 0x80);
		sb_buf_add(out, p + 2, head - 2);
		sb_buf_add(out, "\0\0\0\0", 4);
		sb_buf_add(out, p + head, n);
		at += head + n;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf a, b, c, again;
	int bad_a, bad_b, bad_c;

	if (len > SB_WSFRAME_PIECE)
		return 0;
	sb_buf_init(&a, 1 << 24);
	sb_buf_init(&b, 1 << 24);
	sb_buf_init(&c, 1 << 24);
	sb_buf_init(&again, 1 << 24);
	(void)read_all(data, len, len + 1, &a, &bad_a);
	(void)read_all(data, len, 1, &b, &bad_b);
	FUZZ_CHECK(bad_a == bad_b);
	FUZZ_CHECK(a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0));
	mask(&a, &again);
	FUZZ_CHECK(read_all(again.data, again.len, 7, &c, &bad_c) == 0);
	FUZZ_CHECK(a.len == c.len && (a.len == 0 || memcmp(a.data, c.data, a.len) == 0));
	return 0;
}
