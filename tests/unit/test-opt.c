/* SPDX-License-Identifier: MIT */
/* The parser of command lines that all programs share, and the help it prints. */
#include "config.h"

#include <limits.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/opt.h>

#include "tests/lib/unit.h"

struct values {
	bool dry;
	int verbose;
	const char *name;
	int64_t port;
	int64_t any;
	uint64_t size;
	uint64_t limited;
	int64_t timeout;
	int64_t wait;
	int conflict;
	struct sb_opt_list exclude;
};

static const char *const conflicts[] = { "both", "local", "runtime", NULL };

static const struct sb_opt table[] = {
	{ 'n', "dry-run", SB_OPT_FLAG, offsetof(struct values, dry), NULL, "Change nothing.", NULL,
		0, 0 },
	{ 'v', "verbose", SB_OPT_COUNT, offsetof(struct values, verbose), NULL, "Say more.", NULL,
		0, 0 },
	{ 0, "name", SB_OPT_STRING, offsetof(struct values, name), "NAME",
		"The name of the session, which has to be unique among all sessions of this user.",
		NULL, 0, 0 },
	{ 'p', "port", SB_OPT_INT, offsetof(struct values, port), "N", "TCP port.", NULL, 1,
		65535 },
	{ 0, "any", SB_OPT_INT, offsetof(struct values, any), "N", "Any number.", NULL, 0, 0 },
	{ 's', "size", SB_OPT_SIZE, offsetof(struct values, size), "BYTES", "A size.", NULL, 0, 0 },
	{ 0, "limited", SB_OPT_SIZE, offsetof(struct values, limited), "BYTES", NULL, NULL, 10,
		2048 },
	{ 't', "timeout", SB_OPT_TIME, offsetof(struct values, timeout), "TIME", "Total time.",
		NULL, 0, 0 },
	{ 0, "wait", SB_OPT_TIME, offsetof(struct values, wait), "TIME", "Wait so long.", NULL, 100,
		5000 },
	{ 'c', "conflict", SB_OPT_CHOICE, offsetof(struct values, conflict), NULL, "Who wins.",
		conflicts, 0, 0 },
	{ 'x', "exclude", SB_OPT_LIST, offsetof(struct values, exclude), "PATTERN", "Leave out.",
		NULL, 0, 0 },
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 },
};

/* What one parse gave. */
struct result {
	int r;
	struct values v;
	struct sb_error err;
	char *argv[16];
	char **args;
	int n;
};

static struct result
parse(bool stop, const char *const *words)
{
	struct result res = { .v = { .conflict = -1 }, .n = -1 };
	int argc = 1;

	res.argv[0] = (char *)(uintptr_t) "prog";
	for (; words[argc - 1]; argc++)
		res.argv[argc] = (char *)(uintptr_t)words[argc - 1];
	res.r = sb_opt_parse(table, argc, res.argv, stop, &res.v, &res.args, &res.n, &res.err);
	if (res.r >= 0)
		res.args = NULL;
	return res;
}
/* The operands start at argv[1] of the result (the copy that is returned, not the one parsed). */
#define PARSE(...) parse(false, (const char *const[]){ __VA_ARGS__, NULL })
#define PARSE_STOP(...) parse(true, (const char *const[]){ __VA_ARGS__, NULL })

static void
every_kind_is_stored(void **state)
{
	struct result a = PARSE("--dry-run", "--verbose", "--name", "x", "--port", "22", "--any=-7",
		"--size=1.5K", "--limited=2K", "--timeout=2m", "--wait", "250ms");
	struct result b = PARSE("--conflict=runtime", "--exclude=*.o", "--exclude", "-x");

	(void)state;
	assert_ok(a.r, &a.err);
	assert_true(a.v.dry);
	assert_int_equal(a.v.verbose, 1);
	assert_string_equal(a.v.name, "x");
	assert_int_equal(a.v.port, 22);
	assert_int_equal(a.v.any, -7);
	assert_int_equal(a.v.size, 1536);
	assert_int_equal(a.v.limited, 2048);
	assert_int_equal(a.v.timeout, 120000);
	assert_int_equal(a.v.wait, 250);
	assert_int_equal(a.n, 0);
	assert_ok(b.r, &b.err);
	assert_int_equal(b.v.conflict, 2);
	assert_int_equal(b.v.exclude.n, 2);
	assert_string_equal(b.v.exclude.v[0], "*.o");
	assert_string_equal(b.v.exclude.v[1], "-x");
	assert_null(b.v.exclude.v[2]);
	sb_opt_list_free(&b.v.exclude);
	assert_null(b.v.exclude.v);
	assert_int_equal(b.v.exclude.n, 0);
}

static void
letters_may_be_bundled(void **state)
{
	struct result r = PARSE("-nvvp2222", "-v", "-t", "5", "-vs10M", "-clocal");

	(void)state;
	assert_ok(r.r, &r.err);
	assert_true(r.v.dry);
	assert_int_equal(r.v.verbose, 4);
	assert_int_equal(r.v.port, 2222);
	assert_int_equal(r.v.timeout, 5000);
	assert_int_equal(r.v.size, 10485760);
	assert_int_equal(r.v.conflict, 1);
}

static void
empty_values_are_values(void **state)
{
	struct result r = PARSE("--name=", "--exclude", "");

	(void)state;
	assert_ok(r.r, &r.err);
	assert_string_equal(r.v.name, "");
	assert_int_equal(r.v.exclude.n, 1);
	sb_opt_list_free(&r.v.exclude);
}

static void
operands_stand_among_options(void **state)
{
	struct result r =
		PARSE("one", "-n", "two", "--port", "5", "-", "three", "--", "-v", "--", "x");

	(void)state;
	assert_ok(r.r, &r.err);
	assert_int_equal(r.n, 7);
	assert_string_equal(r.argv[1], "one");
	assert_string_equal(r.argv[2], "two");
	assert_string_equal(r.argv[3], "-");
	assert_string_equal(r.argv[4], "three");
	assert_string_equal(r.argv[5], "-v");
	assert_string_equal(r.argv[6], "--");
	assert_string_equal(r.argv[7], "x");
	assert_int_equal(r.v.verbose, 0);
	assert_int_equal(r.v.port, 5);
}

static void
first_operand_can_end_the_options(void **state)
{
	struct result r = PARSE_STOP("-n", "cmd", "-v", "--port");

	(void)state;
	assert_ok(r.r, &r.err);
	assert_true(r.v.dry);
	assert_int_equal(r.v.verbose, 0);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.argv[1], "cmd");
	assert_string_equal(r.argv[2], "-v");
	assert_string_equal(r.argv[3], "--port");
}

static void
argv_without_words_is_fine(void **state)
{
	struct sb_error err = { 0 };
	struct values v = { 0 };
	char *none[] = { NULL };
	char **args = NULL;
	int n = -1;

	(void)state;
	assert_ok(sb_opt_parse(table, 0, none, false, &v, &args, &n, &err), &err);
	assert_int_equal(n, 0);
	assert_ptr_equal(args, none);
}

static void
mistakes_name_option_and_way_out(void **state)
{
	static const struct {
		const char *words[4];
		const char *msg;
	} cases[] = {
		{ { "--nonsense" }, "unknown option --nonsense: see --help" },
		{ { "--exclud=a" }, "unknown option --exclud: did you mean --exclude?" },
		{ { "--excludee" }, "unknown option --excludee: did you mean --exclude?" },
		{ { "--prot", "5" }, "unknown option --prot: did you mean --port?" },
		{ { "--pors=5" }, "unknown option --pors: did you mean --port?" },
		{ { "--dry" }, "unknown option --dry: see --help" },
		{ { "--=x" }, "unknown option --: see --help" },
		{ { "--a\x1b[0m" }, "unknown option --a\\x1b[0m: see --help" },
		{ { "-nz" }, "unknown option -z: see --help" },
		{ { "-n\x1b" }, "unknown option -\\x1b: see --help" },
		{ { "--dry-run=yes" }, "--dry-run takes no value" },
		{ { "--port" }, "--port needs a value: --port N" },
		{ { "-np" }, "-p needs a value: -p N" },
		{ { "--conflict" }, "--conflict needs a value: --conflict VALUE" },
		{ { "--port", "0" }, "--port \"0\": must be a whole number from 1 to 65535" },
		{ { "-p", "65536" }, "-p \"65536\": must be a whole number from 1 to 65535" },
		{ { "-p\n" }, "-p \"\\n\": must be a whole number from 1 to 65535" },
		{ { "--any=x" }, "--any \"x\": must be a whole number" },
		{ { "--size=10X" },
			"--size \"10X\": must be a size such as 4096, 10K, 1.5M or 2GiB" },
		{ { "--limited=9" }, "--limited \"9\": must be from 10 to 2048 bytes" },
		{ { "--limited=3K" }, "--limited \"3K\": must be from 10 to 2048 bytes" },
		{ { "-t3y" }, "-t \"3y\": must be a time such as 30, 30s, 5m, 250ms or 2h" },
		{ { "--wait=6" }, "--wait \"6\": must be from 100ms to 5000ms" },
		{ { "--conflict=me" }, "--conflict \"me\": must be one of both, local, runtime" },
		{ { "--conflict=" }, "--conflict \"\": must be one of both, local, runtime" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct result r = parse(false, cases[i].words);

		assert_fails(r.r, SB_E_USAGE, &r.err);
		assert_string_equal(r.err.msg, cases[i].msg);
		assert_int_equal(r.n, -1);
	}
}

static void
sizes_are_exact(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {
		{ "0", 0 },
		{ "10", 10 },
		{ "10B", 10 },
		{ "10k", 10240 },
		{ "10KB", 10000 },
		{ "10KiB", 10240 },
		{ "1.5M", 1572864 },
		{ "0.001K", 1 },
		{ "2GiB", UINT64_C(2147483648) },
		{ "1T", UINT64_C(1) << 40 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", (UINT64_C(1) << 40) * 16777215 },
	};
	static const char *const bad[] = { "", "K", ".5K", "1.K", "1.5", "1.5B", "-1", "+1", " 1",
		"1 ", "1 K", "1Q", "1..5K", "1.5.5K", "0x10", "18446744073709551616", "16777216T",
		"1.0000000000000000001M", "1e3" };
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		v = 77;
		if (!sb_opt_size(good[i].text, &v) || v != good[i].want)
			fail_msg("%s gave %llu", good[i].text, (unsigned long long)v);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		v = 77;
		if (sb_opt_size(bad[i], &v) || v != 77)
			fail_msg("\"%s\" gave %llu", bad[i], (unsigned long long)v);
	}
}

static void
times_are_milliseconds(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {
		{ "0", 0 },
		{ "30", 30000 },
		{ "30s", 30000 },
		{ "250ms", 250 },
		{ "5m", 300000 },
		{ "5min", 300000 },
		{ "2h", 7200000 },
		{ "1d", 86400000 },
		{ "0.25", 250 },
		{ "1.5h", 5400000 },
		{ "9223372036854775807ms", INT64_MAX },
	};
	static const char *const bad[] = { "", "s", "-1", "1.5ms", "3y", "9223372036854775808ms",
		"9223372036854775807", "1s ", "1ss" };
	int64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		v = 77;
		if (!sb_opt_time(good[i].text, &v) || v != good[i].want)
			fail_msg("%s gave %lld", good[i].text, (long long)v);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		v = 77;
		if (sb_opt_time(bad[i], &v) || v != 77)
			fail_msg("\"%s\" gave %lld", bad[i], (long long)v);
	}
}

static void
counting_stops_at_the_top(void **state)
{
	struct sb_error err = { 0 };
	struct values v = { .verbose = INT_MAX - 1 };
	char word[] = "-vvv";
	char *argv[] = { word, word, NULL };
	char **args;
	int n;

	(void)state;
	assert_ok(sb_opt_parse(table, 2, argv, false, &v, &args, &n, &err), &err);
	assert_int_equal(v.verbose, INT_MAX);
}

/* No line of `text` may be wider than 80 columns or end in a space. */
static void
check_width(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		size_t wide = 0;

		for (size_t i = 0; i < len; i++)
			wide += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (wide > 80 || (len && text[len - 1] == ' '))
			fail_msg("%zu columns: \"%.*s\"", wide, (int)len, text);
		text += len + 1;
	}
}

static void
help_fits_and_names_everything(void **state)
{
	static const struct sb_cmd cmd = { "mirror", "SRC DST", "Make DST equal to SRC.",
		"A first paragraph that is long enough to need a second line because it goes on "
		"and on and on.\n"
		"\n"
		"  An indented one, also long enough to be wrapped, so that the second line is "
		"indented likewise.\n"
		"  "
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaa"
		"\xc3\xa4\xc3\xa4\n",
		table, 2, 2, NULL };
	sb_autofree char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	sb_opt_print_help(f, "sbsync", &cmd);
	assert_int_equal(fclose(f), 0);
	check_width(text);
	assert_ptr_equal(
		strstr(text,
			"Usage: sbsync mirror [OPTION]... SRC DST\n\nMake DST equal to SRC.\n"),
		text);
	assert_non_null(strstr(text, "\n  -n, --dry-run             Change nothing.\n"));
	assert_non_null(strstr(text,
		"\n  --name NAME               The name of the session, which has to be unique"
		"\n                            among all sessions of this user.\n"));
	assert_non_null(strstr(text,
		"\n  -c, --conflict both|local|runtime\n                            Who wins.\n"));
	assert_non_null(strstr(text, "\n  --limited BYTES\n"));
	assert_non_null(strstr(text, "\n\n  An indented one"));
	for (const struct sb_opt *o = table; o->name; o++)
		assert_non_null(strstr(text, o->name));
}

static void
usage_lists_the_commands(void **state)
{
	static const struct sb_cmd one = { "start", "LOCAL REMOTE",
		"Open a session: sync to the runtime, and keep a base "
		"so that later syncs know what changed on which side.",
		NULL, NULL, 2, 2, NULL };
	static const struct sb_cmd two = { "ls", NULL, "List.", NULL, NULL, 0, 0, NULL };
	static const struct sb_cmd *const cmds[] = { &one, &two, NULL };
	sb_autofree char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	sb_opt_print_usage(f, "sbsync", "Keeps two trees equal.", cmds);
	sb_opt_print_help(f, "sbsync", &two);
	assert_int_equal(fclose(f), 0);
	check_width(text);
	assert_non_null(strstr(text,
		"Usage: sbsync COMMAND [OPTION]... [ARG]...\n\nKeeps two trees equal.\n"));
	assert_non_null(strstr(text, "\n  start LOCAL REMOTE        Open a session:"));
	assert_non_null(strstr(text, "\n  ls                        List.\n"));
	assert_non_null(strstr(text, "Usage: sbsync ls\n\nList.\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_stored),
		cmocka_unit_test(letters_may_be_bundled),
		cmocka_unit_test(empty_values_are_values),
		cmocka_unit_test(operands_stand_among_options),
		cmocka_unit_test(first_operand_can_end_the_options),
		cmocka_unit_test(argv_without_words_is_fine),
		cmocka_unit_test(mistakes_name_option_and_way_out),
		cmocka_unit_test(sizes_are_exact),
		cmocka_unit_test(times_are_milliseconds),
		cmocka_unit_test(counting_stops_at_the_top),
		cmocka_unit_test(help_fits_and_names_everything),
		cmocka_unit_test(usage_lists_the_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
