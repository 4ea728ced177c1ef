/* SPDX-License-Identifier: MIT */
/* Lists and maps of strings, numbers and hex digits as texts, random bytes. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <base/strlist.h>
#include <base/strmap.h>

#include "tests/lib/unit.h"

static void
list_keeps_order_and_terminates(void **state)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		if (i % 2)
			sb_strlist_add(&l, "odd");
		else
			sb_strlist_addf(&l, "n%d", i);
		assert_null(l.v[l.n]);
	}
	assert_ok(sb_strlist_check(&l, &err), &err);
	assert_int_equal(l.n, 100);
	assert_string_equal(l.v[0], "n0");
	assert_string_equal(l.v[98], "n98");
	assert_string_equal(l.v[99], "odd");
	sb_strlist_free(&l);
	assert_null(l.v);
	assert_int_equal(l.n, 0);
}

static void
lists_are_added_whole(void **state)
{
	static const char *const more[] = { "a", "", "c", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };

	(void)state;
	sb_strlist_add_all(&l, NULL);
	assert_null(l.v);
	sb_strlist_add(&l, "first");
	sb_strlist_add_all(&l, more);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.v[2], "");
	assert_string_equal(l.v[3], "c");
	assert_null(l.v[4]);
}

static void
pairs_are_put_once_and_found(void **state)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	const char *const *v;

	(void)state;
	sb_strlist_put(&l, "KEY=1");
	sb_strlist_putf(&l, "KEYS=%d", 2);
	sb_strlist_put(&l, "bare");
	sb_strlist_putf(&l, "KEY=%s", "a=b");
	sb_strlist_put(&l, "=empty");
	v = sb_strlist_borrow(&l);
	assert_int_equal(sb_strlist_count(v), 4);
	assert_string_equal(v[0], "KEY=a=b");
	assert_string_equal(sb_strlist_get(v, "KEY"), "a=b");
	assert_string_equal(sb_strlist_get(v, "KEYS"), "2");
	assert_string_equal(sb_strlist_get(v, ""), "empty");
	assert_null(sb_strlist_get(v, "bare"));
	assert_null(sb_strlist_get(v, "KE"));
	assert_null(sb_strlist_get(NULL, "KEY"));
	assert_int_equal(sb_strlist_count(NULL), 0);
}

/* Joining copies, and a list that is not whole does not become one by being joined. */
static void
joined_lists_carry_the_failure(void **state)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	sb_auto(sb_strlist) struct sb_strlist other = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	sb_strlist_join(&l, &other);
	assert_null(l.v);
	sb_strlist_add(&other, "a");
	sb_strlist_add(&l, "first");
	sb_strlist_join(&l, &other);
	assert_ok(sb_strlist_check(&l, &err), &err);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[1], "a");
	assert_ptr_not_equal(l.v[1], other.v[0]);
	other.failed = SB_E_NOMEM;
	sb_strlist_join(&l, &other);
	assert_fails(sb_strlist_check(&l, &err), SB_E_NOMEM, &err);
}

/* What failed once takes nothing more, keeps what it had and says so until it is freed. */
static void
a_failed_list_stays_failed(void **state)
{
	static const char *const more[] = { "x", "y", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	sb_strlist_add(&l, "kept");
	l.failed = SB_E_NOMEM;
	sb_strlist_add(&l, "lost");
	sb_strlist_addf(&l, "%d", 1);
	sb_strlist_add_all(&l, more);
	sb_strlist_put(&l, "kept");
	sb_strlist_putf(&l, "a=%d", 1);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0], "kept");
	assert_null(l.v[1]);
	assert_fails(sb_strlist_check(&l, &err), SB_E_NOMEM, &err);
	assert_int_equal(sb_strlist_check(&l, NULL), SB_E_NOMEM);
	sb_strlist_free(&l);
	assert_ok(sb_strlist_check(&l, &err), &err);
	sb_strlist_add(&l, "again");
	assert_int_equal(l.n, 1);
}

static void
map_replaces_deletes_and_keeps_order(void **state)
{
	sb_auto(sb_strmap) struct sb_strmap m = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_null(sb_strmap_get(&m, "a"));
	assert_false(sb_strmap_del(&m, "a"));
	for (int i = 0; i < 20; i++) {
		char key[2] = { (char)('a' + i), 0 };

		assert_ok(sb_strmap_set(&m, key, "x", &err), &err);
	}
	assert_ok(sb_strmap_set(&m, "b", "two", &err), &err);
	assert_int_equal(m.n, 20);
	assert_string_equal(sb_strmap_get(&m, "b"), "two");
	assert_true(sb_strmap_del(&m, "a"));
	assert_true(sb_strmap_del(&m, "t"));
	assert_false(sb_strmap_del(&m, "t"));
	assert_null(sb_strmap_get(&m, "a"));
	assert_int_equal(m.n, 18);
	assert_string_equal(m.v[0].key, "b");
	assert_string_equal(m.v[17].key, "s");
}

static void
numbers_are_strict(void **state)
{
	static const char *const bad[] = { "", "-", "+1", " 1", "1 ", "1x", "--1", "0x10", "1.0",
		"9223372036854775808", "-9223372036854775809", "99999999999999999999" };
	int64_t v = 77;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (sb_str_to_i64(bad[i], INT64_MIN, INT64_MAX, &v))
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(v, 77);
	}
	assert_true(sb_str_to_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v));
	assert_true(v == INT64_MAX);
	assert_true(sb_str_to_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
	assert_true(v == INT64_MIN);
	assert_true(sb_str_to_i64("007", 0, 7, &v));
	assert_int_equal(v, 7);
	assert_false(sb_str_to_i64("8", 0, 7, &v));
	assert_false(sb_str_to_i64("-1", 0, 7, &v));
}

static void
hex_round_trips_and_refuses(void **state)
{
	static const char *const bad[] = { "", "0", "000", "00ff0", "00fg", "00 f", "00ff00" };
	uint8_t in[256];
	uint8_t back[256];
	char hex[513];

	(void)state;
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)i;
	assert_ptr_equal(sb_str_hex(in, sizeof in, hex), hex);
	assert_int_equal(strlen(hex), 512);
	assert_memory_equal(hex, "000102", 6);
	assert_string_equal(hex + 508, "feff");
	assert_true(sb_str_unhex(hex, back, sizeof back));
	assert_memory_equal(in, back, sizeof in);
	assert_true(sb_str_unhex("00FF", back, 2));
	assert_int_equal(back[1], 255);
	assert_true(sb_str_unhex("", back, 0));
	assert_string_equal(sb_str_hex(in, 0, hex), "");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		back[0] = 7;
		if (sb_str_unhex(bad[i], back, 2))
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(back[0], 7);
	}
}

static void
prefixes_and_suffixes(void **state)
{
	(void)state;
	assert_true(sb_str_starts("abc", "ab"));
	assert_true(sb_str_starts("abc", ""));
	assert_false(sb_str_starts("a", "ab"));
	assert_true(sb_str_ends("abc", "bc"));
	assert_true(sb_str_ends("abc", ""));
	assert_false(sb_str_ends("c", "bc"));
	assert_false(sb_str_ends("bcd", "bc"));
}

static void
printf_makes_a_string(void **state)
{
	sb_autofree char *s = sb_str_printf("%s-%d", "x", 7);

	(void)state;
	assert_string_equal(s, "x-7");
}

static void
random_bytes_fill_and_differ(void **state)
{
	uint8_t a[1000] = { 0 };
	uint8_t b[1000] = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_random(a, sizeof a, &err), &err);
	assert_ok(sb_random(b, sizeof b, &err), &err);
	assert_ok(sb_random(NULL, 0, &err), &err);
	assert_memory_not_equal(a, b, sizeof a);
	/* 32 zero bytes in a row at the end would mean that it was not filled. */
	assert_memory_not_equal(a + 968, (uint8_t[32]){ 0 }, 32);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_keeps_order_and_terminates),
		cmocka_unit_test(lists_are_added_whole),
		cmocka_unit_test(pairs_are_put_once_and_found),
		cmocka_unit_test(joined_lists_carry_the_failure),
		cmocka_unit_test(a_failed_list_stays_failed),
		cmocka_unit_test(map_replaces_deletes_and_keeps_order),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(hex_round_trips_and_refuses),
		cmocka_unit_test(prefixes_and_suffixes),
		cmocka_unit_test(printf_makes_a_string),
		cmocka_unit_test(random_bytes_fill_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
