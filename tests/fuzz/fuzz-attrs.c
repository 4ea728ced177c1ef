/* SPDX-License-Identifier: MIT */
/* Lists of attributes: what is accepted encodes to the same bytes and may all be carried. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sync/tree/attrs.h>
#include <sync/tree/diff.h>

#include "fuzz.h"

/* With the sum that it should have, so that what is before it is read at all. */
static void
one(const uint8_t *data, size_t len)
{
	struct sb_attrs a = { 0 };
	struct sb_buf b;

	if (sb_attrs_decode(data, len, 1000, &a, NULL) < 0)
		return;
	FUZZ_CHECK(a.n <= 1000);
	for (size_t i = 0; i < a.n; i++) {
		struct sb_cursor c;
		struct sb_attr x;

		FUZZ_CHECK(!i || sb_diff_path_order(a.v[i - 1].path, a.v[i].path) < 0);
		FUZZ_CHECK(sb_attrs_find(&a, a.v[i].path) == &a.v[i]);
		sb_cursor_init(&c, a.v[i].set, a.v[i].len);
		while (sb_attrs_next(&c, &x))
			FUZZ_CHECK(
				sb_attrs_carried(x.name, a.kinds) && x.len <= SB_ATTRS_VALUE_MAX);
		FUZZ_CHECK(!c.bad && !sb_cursor_left(&c));
	}
	sb_buf_init(&b, 0);
	FUZZ_CHECK(sb_attrs_encode(&a, &b, NULL) == 0);
	FUZZ_CHECK(b.len == len && memcmp(b.data, data, len) == 0);
	sb_buf_free(&b);
	sb_attrs_free(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_buf b;

	one(data, len);
	sb_buf_init(&b, 0);
	sb_buf_add(&b, data, len);
	if (!b.failed) {
		sb_buf_add_u64(&b, XXH3_64bits(b.data, b.len));
		one(b.data, b.len);
	}
	sb_buf_free(&b);
	return 0;
}
