/* SPDX-License-Identifier: MIT */
/* Buffers that grow up to a ceiling, and the cursor that reads integers and bytes out of them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/cursor.h>

#include "tests/lib/unit.h"

static void
appends_and_terminates(void **state)
{
	sb_auto(sb_buf) struct sb_buf b;

	(void)state;
	sb_buf_init(&b, 100);
	assert_string_equal((char *)b.data, "");
	sb_buf_add_str(&b, "ab");
	sb_buf_addf(&b, "%d", 12);
	sb_buf_add_char(&b, '!');
	assert_string_equal((char *)b.data, "ab12!");
	sb_buf_consume(&b, 2);
	assert_string_equal((char *)b.data, "12!");
	assert_int_equal(sb_buf_check(&b, "x", NULL), 0);
}

static void
ceiling_sticks(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;

	(void)state;
	sb_buf_init(&b, 4);
	sb_buf_add_str(&b, "abc");
	sb_buf_add_str(&b, "de");
	sb_buf_add_str(&b, "d");
	assert_string_equal((char *)b.data, "abc");
	assert_int_equal(sb_buf_check(&b, "name", &err), SB_E_FULL);
	assert_string_equal(err.msg, "name: larger than 4 bytes");
	sb_buf_reset(&b);
	sb_buf_add_str(&b, "abcd");
	assert_int_equal(sb_buf_check(&b, "name", &err), 0);
}

static void
largest_ceiling_does_not_overflow(void **state)
{
	sb_auto(sb_buf) struct sb_buf b;

	(void)state;
	sb_buf_init(&b, SIZE_MAX);
	sb_buf_add_str(&b, "abc");
	assert_string_equal((char *)b.data, "abc");
	assert_null(sb_buf_reserve(&b, SIZE_MAX - 2));
	assert_int_equal(b.failed, SB_E_FULL);
}

static void
bytes_can_be_taken_out(void **state)
{
	sb_auto(sb_buf) struct sb_buf b;
	size_t len = 7;
	uint8_t *taken;

	(void)state;
	sb_buf_init(&b, 10);
	taken = sb_buf_detach(&b, &len);
	assert_non_null(taken);
	assert_int_equal(len, 0);
	assert_string_equal((char *)taken, "");
	free(taken);
	sb_buf_add_str(&b, "abc");
	taken = sb_buf_detach(&b, &len);
	assert_int_equal(len, 3);
	assert_string_equal((char *)taken, "abc");
	free(taken);
	assert_int_equal(b.len, 0);
	assert_string_equal((char *)b.data, "");
	sb_buf_add_str(&b, "again");
	assert_string_equal((char *)b.data, "again");
	taken = sb_buf_detach(&b, NULL);
	free(taken);
}

static void
integers_round_trip(void **state)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX };
	static const int64_t signs[] = { 0, -1, 1, -64, 64, INT64_MIN, INT64_MAX };
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_cursor c;
	size_t n;

	(void)state;
	sb_buf_init(&b, 1000);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		sb_buf_add_varint(&b, values[i]);
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		sb_buf_add_svarint(&b, signs[i]);
	sb_buf_add_u8(&b, 1);
	sb_buf_add_u16(&b, 0x0203);
	sb_buf_add_u32(&b, 0x04050607);
	sb_buf_add_u64(&b, 0x08090a0b0c0d0e0fULL);
	sb_buf_add_bytes(&b, "xyz", 3);
	sb_cursor_init(&c, b.data, b.len);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		assert_true(sb_cursor_varint(&c) == values[i]);
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		assert_true(sb_cursor_svarint(&c) == signs[i]);
	assert_int_equal(sb_cursor_u8(&c), 1);
	assert_int_equal(sb_cursor_u16(&c), 0x0203);
	assert_int_equal(sb_cursor_u32(&c), 0x04050607);
	assert_true(sb_cursor_u64(&c) == 0x08090a0b0c0d0e0fULL);
	assert_memory_equal(sb_cursor_bytes(&c, 3, &n), "xyz", 3);
	assert_int_equal(n, 3);
	assert_int_equal(sb_cursor_left(&c), 0);
	assert_false(c.bad);
}

static void
cursor_refuses_what_is_not_there(void **state)
{
	static const uint8_t overlong[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x02 };
	static const uint8_t len_lie[] = { 0x05, 'a', 'b' };
	struct sb_cursor c;
	size_t n;

	(void)state;
	sb_cursor_init(&c, overlong, sizeof overlong);
	(void)sb_cursor_varint(&c);
	assert_true(c.bad);
	sb_cursor_init(&c, len_lie, sizeof len_lie);
	assert_null(sb_cursor_bytes(&c, 100, &n));
	assert_true(c.bad);
	assert_int_equal(sb_cursor_u64(&c), 0);
	sb_cursor_init(&c, len_lie, sizeof len_lie);
	assert_null(sb_cursor_bytes(&c, 4, &n));
	assert_true(c.bad);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_and_terminates),
		cmocka_unit_test(ceiling_sticks),
		cmocka_unit_test(largest_ceiling_does_not_overflow),
		cmocka_unit_test(bytes_can_be_taken_out),
		cmocka_unit_test(integers_round_trip),
		cmocka_unit_test(cursor_refuses_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
