/* SPDX-License-Identifier: MIT */
/*
 * Patches of a file against the base that both sides have: small edits cost little, damage is
 * found.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sync/codec/delta.h>
#include <sync/codec/patch.h>

#include "tests/lib/unit.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

static uint8_t *
noise(size_t len, uint32_t seed)
{
	uint8_t *d = malloc(len + 1);
	uint32_t x = seed * 2654435761u + 1;

	assert_non_null(d);
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		d[i] = (uint8_t)(x >> 11);
	}
	return d;
}

/* `old` with `extra` put in at a third, so that everything behind it moves. */
static uint8_t *
with_insert(const uint8_t *old, size_t len, size_t extra)
{
	uint8_t *d = malloc(len + extra + 1);
	size_t at = len / 3;

	assert_non_null(d);
	memcpy(d, old, at);
	memset(d + at, '!', extra);
	memcpy(d + at + extra, old + at, len - at);
	return d;
}

static void
edits_cost_little_and_come_back(void **state)
{
	static const size_t sizes[] = { 0, 1, 511, 4096, 70000, 1 << 20, 9 << 20, 33 << 20 };

	(void)state;
	for (size_t i = 0; i < N(sizes); i++) {
		size_t n = sizes[i], m = n + 17;
		struct sb_error err = { 0 };
		sb_autofree uint8_t *old = noise(n, (uint32_t)i);
		sb_autofree uint8_t *new = with_insert(old, n, 17);
		sb_autofree uint8_t *back = malloc(m);
		sb_auto(sb_buf) struct sb_buf p;

		assert_non_null(back);
		sb_buf_init(&p, SIZE_MAX / 2);
		assert_ok(sb_patch_make(old, n, new, m, 3, &p, &err), &err);
		assert_true(p.len < 100 + m / 1000);
		assert_ok(sb_patch_apply(old, n, p.data, p.len, back, m, &err), &err);
		assert_memory_equal(back, new, m);
		/* the other way, and to nothing */
		sb_buf_reset(&p);
		assert_ok(sb_patch_make(new, m, old, n, 1, &p, &err), &err);
		assert_ok(sb_patch_apply(new, m, p.data, p.len, back, n, &err), &err);
		assert_memory_equal(back, old, n);
	}
}

static void
base_that_looks_like_a_dictionary_is_just_bytes(void **state)
{
	struct sb_error err = { 0 };
	sb_autofree uint8_t *base = noise(5000, 1);
	uint8_t same[5000], back[5000];
	sb_auto(sb_buf) struct sb_buf p;

	(void)state;
	memcpy(base, "\x37\xa4\x30\xec\x01\x00\x00\x00", 8);
	memcpy(same, base, 5000);
	sb_buf_init(&p, 1 << 20);
	assert_ok(sb_patch_make(base, 5000, same, 5000, 3, &p, &err), &err);
	assert_ok(sb_patch_apply(base, 5000, p.data, p.len, back, 5000, &err), &err);
	assert_memory_equal(back, base, 5000);
	assert_true(p.len < 100);
}

static void
appends_below_the_ceiling_only(void **state)
{
	struct sb_error err = { 0 };
	sb_autofree uint8_t *data = noise(5000, 1);
	sb_autofree uint8_t *same = noise(5000, 1);
	sb_auto(sb_buf) struct sb_buf p;

	(void)state;
	sb_buf_init(&p, 4000);
	sb_buf_add_str(&p, "head");
	assert_int_equal(sb_patch_make(NULL, 0, data, 5000, 3, &p, &err), SB_E_FULL);
	assert_int_equal(p.len, 4);
	assert_ok(sb_patch_make(same, 5000, data, 5000, 3, &p, &err), &err);
	assert_memory_equal(p.data, "head\x28\xb5\x2f\xfd", 8);
}

static void
too_large_is_a_limit(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf p;

	(void)state;
	sb_buf_init(&p, 1 << 20);
	assert_int_equal(sb_patch_make("x", 1, "x", SB_PATCH_MAX_SIZE + 1u, 3, &p, &err),
		SB_E_LIMIT);
	assert_int_equal(sb_patch_make("x", SB_PATCH_MAX_SIZE + 1u, "x", 1, 3, &p, &err),
		SB_E_LIMIT);
	assert_string_equal(err.msg, "patch of 1 on 134217729 bytes: at most 134217728 each");
}

static void
wrong_base_length_or_patch_is_damage(void **state)
{
	struct sb_error err = { 0 };
	sb_autofree uint8_t *base = noise(9000, 1);
	sb_autofree uint8_t *new = with_insert(base, 9000, 10);
	sb_autofree uint8_t *back = malloc(1 << 20);
	size_t harmless = 0;
	sb_auto(sb_buf) struct sb_buf p;

	(void)state;
	assert_non_null(back);
	sb_buf_init(&p, 1 << 20);
	assert_ok(sb_patch_make(base, 9000, new, 9010, 3, &p, &err), &err);
	assert_int_equal(sb_patch_apply(base, 9000, p.data, p.len, back, 9011, &err), SB_E_CORRUPT);
	assert_int_equal(sb_patch_apply(base, 9000, p.data, p.len, back, 9009, &err), SB_E_CORRUPT);
	assert_int_equal(sb_patch_apply(base, 9000, p.data, p.len, back, 0, &err), SB_E_CORRUPT);
	/* A base that is shorter than the patch reaches back. */
	assert_int_equal(sb_patch_apply(base, 100, p.data, p.len, back, 9010, &err), SB_E_CORRUPT);
	assert_int_equal(sb_patch_apply(NULL, 0, p.data, p.len, back, 9010, &err), SB_E_CORRUPT);
	for (size_t n = 0; n < p.len; n++)
		assert_int_equal(sb_patch_apply(base, 9000, p.data, n, back, 9010, &err),
			SB_E_CORRUPT);
	for (size_t i = 0; i < p.len; i++) {
		int r;

		p.data[i] ^= 0x10;
		r = sb_patch_apply(base, 9000, p.data, p.len, back, 9010, &err);
		assert_true(r == 0 || r == SB_E_CORRUPT);
		harmless += r == 0;
		p.data[i] ^= 0x10;
	}
	assert_true(harmless < p.len / 2);
	/* Two frames, and something behind the frame. */
	sb_buf_add(&p, p.data, 0);
	sb_buf_add_u8(&p, 0);
	assert_int_equal(sb_patch_apply(base, 9000, p.data, p.len, back, 9010, &err), SB_E_CORRUPT);
}

/* Frames that ask for more than they may have. */
static void
greedy_frames_are_damage(void **state)
{
	/* window 2^31, content size 16, one raw block of 16 */
	static const uint8_t window[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0xa8, 16, 0, 0, 0, 0, 0, 0,
		0, 0x81, 0, 0, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd',
		'e', 'f' };
	/* content size 2^62 */
	static const uint8_t huge[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x40,
		0x01, 0, 0 };
	/* single segment of 16 bytes, but an RLE block of 2 MiB - 1 */
	static const uint8_t rle[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 16, 0xfb, 0xff, 0xff, 'x' };
	uint8_t out[16];
	struct sb_error err = { 0 };

	(void)state;
	/* The window is not allocated, so it may be said. */
	assert_int_equal(sb_patch_apply("b", 1, window, sizeof window, out, 16, &err), 0);
	assert_memory_equal(out, "0123456789abcdef", 16);
	assert_int_equal(sb_patch_apply("b", 1, huge, sizeof huge, out, 16, &err), SB_E_CORRUPT);
	assert_int_equal(sb_patch_apply("b", 1, rle, sizeof rle, out, 16, &err), SB_E_CORRUPT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_cost_little_and_come_back),
		cmocka_unit_test(base_that_looks_like_a_dictionary_is_just_bytes),
		cmocka_unit_test(appends_below_the_ceiling_only),
		cmocka_unit_test(too_large_is_a_limit),
		cmocka_unit_test(wrong_base_length_or_patch_is_damage),
		cmocka_unit_test(greedy_frames_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
