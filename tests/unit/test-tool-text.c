/* SPDX-License-Identifier: MIT */
/* Command lines split into words, windows of the last bytes, environments without secrets. */
#include "config.h"

#include <tool/environ.h>
#include <tool/window.h>
#include <tool/words.h>

#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

static void
a_line_is_taken_apart_like_a_shell_does(void **state)
{
	static const struct {
		const char *line;
		const char *words[5];
	} cases[] = {
		{ "a b", { "a", "b" } },
		{ "  a\t\nb  ", { "a", "b" } },
		{ "'a b' c", { "a b", "c" } },
		{ "\"a 'b\" c", { "a 'b", "c" } },
		{ "a\\ b c", { "a b", "c" } },
		{ "x'y'\"z\"w", { "xyzw" } },
		{ "'' \"\"", { "", "" } },
		{ "\"\\\"\\\\\\n\"", { "\"\\\\n" } },
		{ "'a\\' b", { "a\\", "b" } },
		{ "$HOME `x` *", { "$HOME", "`x`", "*" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sb_auto(sb_strlist) struct sb_strlist l = { 0 };
		struct sb_error err = { 0 };
		size_t n = 0;

		assert_ok(sb_words_split(cases[i].line, &l, &err), &err);
		for (; cases[i].words[n]; n++)
			assert_string_equal(n < l.n ? l.v[n] : "(none)", cases[i].words[n]);
		assert_int_equal(l.n, n);
	}
}

static void
bad_lines_are_refused(void **state)
{
	static const char *const cases[] = { "", "   ", "a 'b", "a \"b", "a \\", "\"a\\\"" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sb_auto(sb_strlist) struct sb_strlist l = { 0 };
		struct sb_error err = { 0 };

		assert_fails(sb_words_split(cases[i], &l, &err), SB_E_INVAL, &err);
	}
}

/* What a window of `limit` shows of `in`, added `step` bytes at a time. */
static bool
window_of(const char *in, size_t len, size_t limit, size_t step, bool ended, struct sb_buf *out)
{
	struct sb_window w;
	bool cut;

	sb_window_init(&w, limit);
	for (size_t i = 0; i < len; i += step)
		sb_window_add(&w, in + i, len - i < step ? len - i : step);
	cut = sb_window_text(&w, ended, out);
	sb_window_free(&w);
	return cut;
}

static void
a_window_keeps_the_last_bytes(void **state)
{
	static const struct {
		const char *in;
		size_t limit;
		bool ended;
		const char *want;
		bool cut;
	} cases[] = {
		{ "hello", 10, true, "hello", false },
		{ "hello", 5, true, "hello", false },
		{ "hello", 3, true, "llo", true },
		{ "hello", 0, true, "", true },
		{ "", 0, true, "", false },
		/* é is two bytes, € three: what is cut in two is dropped. */
		{ "x\xc3\xa9y", 2, true, "y", true },
		{ "x\xc3\xa9y", 3, true, "\xc3\xa9y", true },
		{ "\xe2\x82\xac\xe2\x82\xac", 5, true, "\xe2\x82\xac", true },
		{ "\xe2\x82\xac\xe2\x82\xac", 4, true, "\xe2\x82\xac", true },
		/* The beginning of a character at the end may still become one. */
		{ "a\xe2\x82", 10, false, "a", false },
		{ "a\xe2\x82", 10, true, "a\xef\xbf\xbd\xef\xbf\xbd", false },
		/* No UTF-8: overlong, surrogate, too high, alone. */
		{ "a\xc0\xaf", 10, true, "a\xef\xbf\xbd\xef\xbf\xbd", false },
		{ "\xed\xa0\x80", 10, true, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", false },
		{ "\xf4\x90\x80\x80z", 20, true,
			"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz", false },
		{ "ab\xff", 3, true, "\xef\xbf\xbd", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t step = 1; step < 8; step += 3) {
			sb_auto(sb_buf) struct sb_buf out;
			bool cut;

			sb_buf_init(&out, 1000);
			cut = window_of(cases[i].in, strlen(cases[i].in), cases[i].limit, step,
				cases[i].ended, &out);
			assert_string_equal(out.len ? (char *)out.data : "", cases[i].want);
			assert_int_equal(cut, cases[i].cut);
			assert_true(out.len <= cases[i].limit);
		}
}

static void
names_of_variables_are_checked(void **state)
{
	char longest[258];

	(void)state;
	assert_true(sb_environ_name_ok("_a1"));
	assert_false(sb_environ_name_ok("1a"));
	assert_false(sb_environ_name_ok("a-b"));
	assert_false(sb_environ_name_ok("a="));
	assert_false(sb_environ_name_ok("\xe4"));
	assert_false(sb_environ_name_ok(""));
	memset(longest, 'a', sizeof longest);
	longest[256] = '\0';
	assert_false(sb_environ_name_ok(longest));
	assert_true(sb_environ_name_ok(longest + 1));
	assert_true(sb_environ_valid("a="));
	assert_false(sb_environ_valid("a"));
	assert_false(sb_environ_valid("="));
}

static void
an_environment_is_built_without_secrets(void **state)
{
	static const char *const more[] = { "ASKED_TOKEN=yes", "PATH=/only", NULL };
	static const char *const bad[] = { "A-B=1", NULL };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_int_equal(setenv("SOME_TOKEN", "hidden", 1), 0);
	assert_int_equal(setenv("SOME_WORD", "shown", 1), 0);
	assert_ok(sb_environ_build(true, more, &env, &err), &err);
	assert_null(sb_strlist_get(sb_strlist_borrow(&env), "SOME_TOKEN"));
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&env), "SOME_WORD"), "shown");
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&env), "ASKED_TOKEN"), "yes");
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&env), "PATH"), "/only");
	assert_fails(sb_environ_build(true, bad, &env, &err), SB_E_INVAL, &err);
}

static void
programs_are_found_in_absolute_places(void **state)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	sb_autofree char *sh = NULL, *own = NULL, *none = NULL;
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_environ_set(&env, "PATH=.:/nowhere:/bin", &err), &err);
	assert_ok(sb_environ_find(&env, "sh", &sh, &err), &err);
	assert_string_equal(sh, "/bin/sh");
	assert_ok(sb_environ_find(&env, "./x", &own, &err), &err);
	assert_string_equal(own, "./x");
	assert_ok(sb_environ_set(&env, "PATH=.:etc:/etc", &err), &err);
	assert_fails(sb_environ_find(&env, "sh", &none, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_environ_find(&env, "passwd", &none, &err), SB_E_DENIED, &err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_taken_apart_like_a_shell_does),
		cmocka_unit_test(bad_lines_are_refused),
		cmocka_unit_test(a_window_keeps_the_last_bytes),
		cmocka_unit_test(names_of_variables_are_checked),
		cmocka_unit_test(an_environment_is_built_without_secrets),
		cmocka_unit_test(programs_are_found_in_absolute_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
