/* SPDX-License-Identifier: MIT */
/*
 * Log lines: levels and components filter them, and no text from outside can write to the terminal.
 */
#include "config.h"

#include <string.h>

#include <base/cleanup.h>
#include <sb/log.h>

#include "tests/lib/unit.h"

static void
check_escape(const char *in, size_t len, const char *want)
{
	char out[256];

	assert_string_equal(sb_escape(in, len, out, sizeof out), want);
}
#define ESCAPES(in, want) check_escape(in, sizeof in - 1, want)

static void
text_stays(void **state)
{
	(void)state;
	ESCAPES("", "");
	ESCAPES("plain ~ text", "plain ~ text");
	ESCAPES("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d",
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d");
	/* The last code point before the surrogates, the first behind them, and the very last. */
	ESCAPES("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
		"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}

static void
controls_are_escaped(void **state)
{
	(void)state;
	ESCAPES("a\nb\tc\\d", "a\\nb\\tc\\\\d");
	ESCAPES("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m");
	ESCAPES("\r\x7f\0z", "\\x0d\\x7f\\x00z");
	/* C1: CSI as one character. */
	ESCAPES("\xc2\x9b"
		"31m\xc2\x80\xc2\xa0",
		"\\xc2\\x9b31m\\xc2\\x80\xc2\xa0");
	/* Bidirectional override, isolate, mark, and the line separator. */
	ESCAPES("\xe2\x80\xae.exe", "\\xe2\\x80\\xae.exe");
	ESCAPES("\xe2\x81\xa6\xe2\x80\x8f\xe2\x80\xa8",
		"\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xe2\\x80\\xa8");
	ESCAPES("\xd8\x9c\xef\xbb\xbf", "\\xd8\\x9c\\xef\\xbb\\xbf");
}

static void
invalid_utf8_is_escaped(void **state)
{
	(void)state;
	ESCAPES("\xff", "\\xff");
	ESCAPES("\x80"
		"a",
		"\\x80a");
	ESCAPES("\xc3", "\\xc3");
	ESCAPES("\xc3(", "\\xc3(");
	ESCAPES("\xe2\x82", "\\xe2\\x82");
	/* Overlong slash, overlong euro, surrogate, beyond the last code point. */
	ESCAPES("\xc0\xaf", "\\xc0\\xaf");
	ESCAPES("\xf0\x82\x82\xac", "\\xf0\\x82\\x82\\xac");
	ESCAPES("\xed\xa0\x80", "\\xed\\xa0\\x80");
	ESCAPES("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	ESCAPES("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	/* A good character right behind a broken one survives. */
	ESCAPES("\xe2\xc3\xbc", "\\xe2\xc3\xbc");
}

static void
cuts_only_between_characters(void **state)
{
	static const char in[] = "a\x1b\xe2\x82\xac"
				 "b";
	static const char *const want[] = { "", "a", "a", "a", "a", "a\\x1b", "a\\x1b", "a\\x1b",
		"a\\x1b\xe2\x82\xac",
		("a\\x1b\xe2\x82\xac"
		 "b") };
	char out[16];

	(void)state;
	for (size_t size = 1; size <= 10; size++) {
		memset(out, '#', sizeof out);
		assert_string_equal(sb_escape(in, sizeof in - 1, out, size), want[size - 1]);
		for (size_t i = size; i < sizeof out; i++)
			assert_int_equal(out[i], '#');
	}
	memset(out, '#', sizeof out);
	assert_ptr_equal(sb_escape(in, sizeof in - 1, out, 0), out);
	assert_int_equal(out[0], '#');
}

struct seen {
	int calls;
	enum sb_log_level level;
	char component[16];
	char text[70000];
};

static void
remember(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	struct seen *s = arg;

	s->calls++;
	s->level = level;
	(void)snprintf(s->component, sizeof s->component, "%s", component);
	(void)snprintf(s->text, sizeof s->text, "%s", text);
}

static void
levels_and_components_filter(void **state)
{
	static struct seen s;
	struct sb_log log = { .fn = remember,
		.arg = &s,
		.level = SB_LOG_INFO,
		.components = "scan,ssh" };

	(void)state;
	s = (struct seen){ 0 };
	sb_log(&log, SB_LOG_DEBUG, "scan", "no");
	sb_log(&log, SB_LOG_INFO, "host", "no");
	sb_log(&log, SB_LOG_INFO, "ss", "no");
	sb_log(&log, SB_LOG_INFO, "sshx", "no");
	sb_log(&log, SB_LOG_INFO, "scan,ssh", "no");
	assert_int_equal(s.calls, 0);
	sb_log(&log, SB_LOG_ERROR, "ssh", "to %s", "you");
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.level, SB_LOG_ERROR);
	assert_string_equal(s.component, "ssh");
	assert_string_equal(s.text, "to you");
	sb_log(&log, SB_LOG_INFO, "scan", "x");
	log.components = NULL;
	sb_log(&log, SB_LOG_INFO, "host", "x");
	assert_int_equal(s.calls, 3);
	log.components = "";
	sb_log(&log, SB_LOG_INFO, "host", "x");
	assert_int_equal(s.calls, 3);
	log.fn = NULL;
	sb_log(&log, SB_LOG_ERROR, "scan", "silent");
	sb_log(NULL, SB_LOG_ERROR, "scan", "silent");
}

static void
lines_are_escaped_once(void **state)
{
	static struct seen s;
	const struct sb_log log = { .fn = remember, .arg = &s, .level = SB_LOG_TRACE };

	(void)state;
	s = (struct seen){ 0 };
	sb_log(&log, SB_LOG_INFO, "x", "%s", "a\nb\x1b[2J\\x1b \xe2\x80\xae");
	assert_string_equal(s.text, "a\\nb\\x1b[2J\\x1b \\xe2\\x80\\xae");
}

static void
long_lines_come_through(void **state)
{
	static struct seen s;
	static char long_text[40000];
	const struct sb_log log = { .fn = remember, .arg = &s, .level = SB_LOG_TRACE };

	(void)state;
	s = (struct seen){ 0 };
	memset(long_text, '\x01', sizeof long_text - 1);
	for (int len = 1020; len < 1030; len++) {
		sb_log(&log, SB_LOG_INFO, "x", "%.*s", len, long_text);
		assert_int_equal(strlen(s.text), 4 * len);
	}
	sb_log(&log, SB_LOG_INFO, "x", "%s", long_text);
	assert_int_equal(strlen(s.text), 4 * 16384);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays),
		cmocka_unit_test(controls_are_escaped),
		cmocka_unit_test(invalid_utf8_is_escaped),
		cmocka_unit_test(cuts_only_between_characters),
		cmocka_unit_test(levels_and_components_filter),
		cmocka_unit_test(lines_are_escaped_once),
		cmocka_unit_test(long_lines_come_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
