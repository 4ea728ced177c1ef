/* SPDX-License-Identifier: MIT */
/*
 * Patches: u16 length of the base, u24 length of the new content, the base, the patch.
 * Applying one gives exactly the announced bytes or SB_E_CORRUPT, and never writes behind
 * them. Then the base is taken as new content: a patch for it must apply.
 */
#include "config.h"

#include <string.h>

#include <sync/codec/delta.h>
#include <sync/codec/patch.h>

#include "fuzz.h"

#include <base/cursor.h>

static void
apply_one(const uint8_t *base, size_t base_len, const uint8_t *patch, size_t patch_len,
	size_t new_len)
{
	uint8_t *out = malloc(new_len + 1);
	struct sb_error err = { 0 };
	int r;

	FUZZ_CHECK(out);
	out[new_len] = 0x5a;
	r = sb_patch_apply(base, base_len, patch, patch_len, out, new_len, &err);
	FUZZ_CHECK(r == 0 || r == SB_E_CORRUPT);
	FUZZ_CHECK(out[new_len] == 0x5a);
	free(out);
}

static void
make_one(const uint8_t *base, size_t base_len, const uint8_t *data, size_t len)
{
	uint8_t *back = malloc(len + 1);
	sb_auto(sb_buf) struct sb_buf p;

	FUZZ_CHECK(back);
	sb_buf_init(&p, 1 << 24);
	FUZZ_CHECK(sb_patch_make(base, base_len, data, len, 1, &p, NULL) == 0);
	FUZZ_CHECK(sb_patch_apply(base, base_len, p.data, p.len, back, len, NULL) == 0);
	FUZZ_CHECK(memcmp(back, data, len) == 0);
	free(back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_cursor c;
	size_t base_len, new_len;
	const uint8_t *base;

	sb_cursor_init(&c, data, len);
	base_len = sb_cursor_u16(&c);
	new_len = sb_cursor_u16(&c);
	new_len |= (size_t)sb_cursor_u8(&c) << 16;
	if (base_len > sb_cursor_left(&c))
		base_len = sb_cursor_left(&c);
	base = sb_cursor_take(&c, base_len);
	if (c.bad)
		return 0;
	apply_one(base, base_len, c.p, sb_cursor_left(&c), new_len);
	make_one(base, base_len, c.p, sb_cursor_left(&c));
	return 0;
}
