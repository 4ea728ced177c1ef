/* SPDX-License-Identifier: MIT */
/*
 * Exclude rules: what a pattern hits, in which order sources count, their limits and their
 * encoding.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <sync/scan/rules.h>

#include <sync/scan/rules-priv.h>
#include "tests/lib/unit.h"

/* Does the one pattern exclude the path? A trailing '/' of the path says directory. */
static bool
hits(const char *pattern, const char *path)
{
	sb_auto(sb_rules) struct sb_rules *r = NULL;
	struct sb_error err = { 0 };
	char copy[256];
	size_t len = strlen(path);
	bool is_dir = len > 0 && path[len - 1] == '/';

	r = sb_rules_new(&err);
	assert_non_null(r);
	assert_true(len < sizeof copy);
	memcpy(copy, path, len + 1);
	if (is_dir)
		copy[len - 1] = 0;
	assert_ok(sb_rules_add_file(r, SB_RULES_GITIGNORE, "", pattern, strlen(pattern), &err),
		&err);
	return sb_rules_excluded(r, copy, is_dir);
}

/* Whether git ignores the path. */
static const struct {
	const char *pattern, *path;
	bool want;
} verdicts[] = {
	{ "core", "core", true },
	{ "core", "a/b/core", true },
	{ "core", "core2", false },
	{ "core", "core/x", true },
	{ "core/", "core", false },
	{ "core/", "core/", true },
	{ "core/", "core/x", true },
	{ "/core", "a/core", false },
	{ "/core", "core", true },
	{ "a/core", "a/core", true },
	{ "a/core", "b/a/core", false },
	{ "*.o", "x.o", true },
	{ "*.o", "d/.o", true },
	{ "*.o", "x.oo", false },
	{ "*", "anything", true },
	{ "ab*", "ab", true },
	{ "ab*", "abc", true },
	{ "ab*", "xab", false },
	{ "/*.c", "a/x.c", false },
	{ "/*.c", "x.c", true },
	{ "a/*", "a/b", true },
	{ "a/*/c", "a/b/c", true },
	{ "a/*/c", "a/b/b/c", false },
	{ "a/**", "a/b/c", true },
	{ "a/**", "a/", false },
	{ "**/c", "c", true },
	{ "**/c", "a/b/c", true },
	{ "a/**/c", "a/c", true },
	{ "a/**/c", "a/b/b/c", true },
	{ "a/**/c", "ac", false },
	{ "**/a/**/b", "x/a/y/z/b", true },
	{ "**/a/**/b", "x/b/a", false },
	{ "x**/y", "x1/2/y", true },
	{ "**\\/c", "c", false },
	{ "**\\/c", "a/c", true },
	{ "a?c", "abc", true },
	{ "a?c", "ac", false },
	{ "/a?c", "a/c", false },
	{ "[abc]x", "bx", true },
	{ "[!abc]x", "bx", false },
	{ "[^abc]x", "dx", true },
	{ "[a-c]x", "bx", true },
	{ "[]x]", "]", true },
	{ "[]-a]", "_", true },
	{ "[a-]", "-", true },
	{ "[[:digit:]]", "7", true },
	{ "[[:digit:]]", "a", false },
	{ "[[:foo:]]", "f", false },
	{ "[[:digit]", ":", true },
	{ "[[:space:]]", "\v", false },
	{ "[[:space:]]", "\t", true },
	{ "[a", "[a", false },
	{ "x\\", "x\\", false },
	{ "\\*", "*", true },
	{ "\\*", "x", false },
	{ "\\#x", "#x", true },
	{ "#x", "#x", false },
	{ "\\!x", "!x", true },
	{ "x ", "x", true },
	{ "x\\ ", "x ", true },
	{ "x\\  ", "x ", true },
	{ "x ", "x ", false },
	{ "\tx", "\tx", true },
	{ "x\t", "x\t", true },
	{ "x\r\n", "x", true },
	{ "\xef\xbb\xbfx", "x", true },
	{ "X", "x", false },
	{ "a[/]b", "a/b", false },
	{ "a/[!x]b/", "a/yb/", true },
	{ "/", "a", false },
	{ "//", "a", false },
	{ "!", "!", false },
	{ "x/", "a/x/", true },
	{ "*a*b*c", "1a2b3c", true },
	{ "*a*b*c", "1a2b3", false },
	{ "***", "x", true },
	{ "a\\/b", "a/b", true },
	{ "d/[[:alpha:]-z]", "d/-", true },
};

static void
patterns_hit_what_git_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++)
		if (hits(verdicts[i].pattern, verdicts[i].path) != verdicts[i].want)
			fail_msg("pattern \"%s\", path \"%s\": want %s", verdicts[i].pattern,
				verdicts[i].path, verdicts[i].want ? "excluded" : "not excluded");
}

static void
add_text(struct sb_rules *r, enum sb_rules_source src, const char *dir, const char *text)
{
	struct sb_error err = { 0 };

	assert_ok(sb_rules_add_file(r, src, dir, text, strlen(text), &err), &err);
}

static void
last_match_wins_and_negation_brings_back(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);

	(void)state;
	add_text(r, SB_RULES_GITIGNORE, "", "*.log\n!keep.log\nlogs/\n!logs/keep.log\n");
	assert_true(sb_rules_excluded(r, "a.log", false));
	assert_false(sb_rules_excluded(r, "keep.log", false));
	assert_false(sb_rules_excluded(r, "sub/keep.log", false));
	/* The directory is out, so nothing beneath it comes back. */
	assert_true(sb_rules_excluded(r, "logs/keep.log", false));
}

static void
sources_have_their_order(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_rules_add(r, SB_RULES_BUILTIN, "f", &err), &err);
	assert_true(sb_rules_excluded(r, "d/e/f", false));
	assert_ok(sb_rules_add(r, SB_RULES_FROM_FILE, "!f", &err), &err);
	assert_false(sb_rules_excluded(r, "d/e/f", false));
	add_text(r, SB_RULES_GITIGNORE, "", "f\n");
	assert_true(sb_rules_excluded(r, "d/e/f", false));
	add_text(r, SB_RULES_SBSYNCIGNORE, "", "!f\n");
	assert_false(sb_rules_excluded(r, "d/e/f", false));
	add_text(r, SB_RULES_GITIGNORE, "d", "f\n");
	assert_true(sb_rules_excluded(r, "d/e/f", false));
	assert_false(sb_rules_excluded(r, "x/f", false));
	add_text(r, SB_RULES_SBSYNCIGNORE, "d/e", "!/f\n");
	assert_false(sb_rules_excluded(r, "d/e/f", false));
	assert_true(sb_rules_excluded(r, "d/f", false));
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, "/d/e/f", &err), &err);
	assert_true(sb_rules_excluded(r, "d/e/f", false));
	assert_true(sb_rules_excluded(r, "d/e/f/g", false));
}

static void
nodes_answer_like_single_paths(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	const struct sb_rules_node *root, *a, *ab, *abc;
	struct sb_error err = { 0 };

	(void)state;
	root = sb_rules_root(r);
	assert_non_null(root);
	assert_ptr_equal(sb_rules_enter(r, root, "a"), root);
	assert_false(sb_rules_match(root, "x.o", "x.o", false));
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, "*.o", &err), &err);
	add_text(r, SB_RULES_GITIGNORE, "a", "/x\nb/y\n");
	add_text(r, SB_RULES_GITIGNORE, "a/b/c", "!/z\nw\n");
	/* A node is a picture of its time. */
	assert_false(sb_rules_match(root, "x.o", "x.o", false));
	root = sb_rules_root(r);
	assert_true(sb_rules_match(root, "x.o", "x.o", false));
	assert_ptr_equal(sb_rules_root(r), root);
	a = sb_rules_enter(r, root, "a");
	assert_ptr_not_equal(a, root);
	assert_ptr_equal(sb_rules_enter(r, root, "a"), a);
	ab = sb_rules_enter(r, a, "a/b");
	assert_ptr_equal(ab, a);
	abc = sb_rules_enter(r, ab, "a/b/c");
	assert_ptr_not_equal(abc, a);
	assert_true(sb_rules_match(a, "a/x", "x", false));
	assert_false(sb_rules_match(ab, "a/b/x", "x", false));
	assert_true(sb_rules_match(ab, "a/b/y", "y", false));
	assert_true(sb_rules_match(abc, "a/b/c/w", "w", false));
	assert_true(sb_rules_match(abc, "a/b/c/q.o", "q.o", false));
	assert_false(sb_rules_match(abc, "a/b/c/y", "y", false));
}

static void
command_patterns_are_taken_literally(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	assert_true(sb_rules_empty(r));
	assert_ok(sb_rules_add(r, SB_RULES_FROM_FILE, "# a comment", &err), &err);
	assert_true(sb_rules_empty(r));
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, "#x#", &err), &err);
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, "y ", &err), &err);
	assert_false(sb_rules_empty(r));
	assert_true(sb_rules_excluded(r, "#x#", false));
	assert_true(sb_rules_excluded(r, "y ", false));
	assert_false(sb_rules_excluded(r, "y", false));
	assert_fails(sb_rules_add(r, SB_RULES_COMMAND, "", &err), SB_E_INVAL, &err);
}

static void
limits_are_named(void **state)
{
	static char text[SB_RULES_FILE_MAX + 2];
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	memset(text, 'a', sizeof text - 1);
	memcpy(text, "x\n#\n", 4);
	assert_fails(sb_rules_add_file(r, SB_RULES_FROM_FILE, "", text, 4 + 4097, &err), SB_E_LIMIT,
		&err);
	assert_string_equal(err.msg,
		"exclude file, line 3: a pattern of 4097 bytes, at "
		"most 4096 are allowed; shorten it");
	assert_true(sb_rules_empty(r));
	/* What lies in the tree fails nothing: the line is left out. */
	assert_int_equal(sb_rules_add_file(r, SB_RULES_GITIGNORE, "d", text, 4 + 4097, &err), 1);
	assert_true(sb_rules_excluded(r, "d/x", false));
	assert_ok(sb_rules_add_file(r, SB_RULES_GITIGNORE, "d", text, 4 + 4096, &err), &err);
	assert_fails(
		sb_rules_add_file(r, SB_RULES_GITIGNORE, "", text, SB_RULES_FILE_MAX + 1, &err),
		SB_E_LIMIT, &err);
	text[4 + 4097] = 0;
	assert_fails(sb_rules_add(r, SB_RULES_COMMAND, text + 4, &err), SB_E_LIMIT, &err);
	assert_fails(sb_rules_add_file(r, SB_RULES_GITIGNORE, "../x", "a", 1, &err), SB_E_INVAL,
		&err);
	assert_fails(sb_rules_add_file(r, SB_RULES_GITIGNORE, "/x", "a", 1, &err), SB_E_INVAL,
		&err);
	assert_fails(sb_rules_add_file(r, SB_RULES_GITIGNORE, "a//b", "a", 1, &err), SB_E_INVAL,
		&err);
	memset(text, '\n', 1 << 20);
	for (size_t i = 0; i < (1 << 20); i += 4)
		text[i] = 'y';
	assert_fails(sb_rules_add_file(r, SB_RULES_GITIGNORE, "", text, 1 << 20, &err), SB_E_LIMIT,
		&err);
	assert_string_equal(err.msg, "more than 262144 exclude patterns");
}

/* Patterns that take a backtracking matcher longer than the universe lasts. */
static void
rule_bombs_end_soon(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	struct sb_error err = { 0 };
	static char pattern[4097], path[4096];

	(void)state;
	for (size_t i = 0; i + 1 < sizeof path; i++)
		path[i] = i % 50 == 49 ? '/' : 'a';
	for (size_t i = 0; i < 4096; i += 2)
		memcpy(pattern + i, "a*", 2);
	pattern[4095] = 'b';
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, pattern, &err), &err);
	for (size_t i = 0; i + 3 < 4096; i += 3)
		memcpy(pattern + i, "**/", 3);
	memcpy(pattern + 4085, "/*a*a*a*a*b", 11);
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, pattern, &err), &err);
	for (size_t i = 0; i + 8 < 4096; i += 8)
		memcpy(pattern + i, "**/*a*a/", 8);
	pattern[4088] = 'b';
	pattern[4089] = 0;
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, pattern, &err), &err);
	for (size_t i = 0; i + 4 < 4096; i += 4)
		memcpy(pattern + i, "[a]*", 4);
	pattern[4092] = 'b';
	pattern[4093] = 0;
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, pattern, &err), &err);
	assert_false(sb_rules_excluded(r, path, false));
	memset(path, 'a', 255);
	path[255] = 0;
	assert_false(sb_rules_excluded(r, path, false));
}

static void
encoding_is_canonical_and_comes_back(void **state)
{
	sb_auto(sb_rules) struct sb_rules *a = sb_rules_new(NULL);
	sb_auto(sb_rules) struct sb_rules *b = sb_rules_new(NULL);
	sb_auto(sb_rules) struct sb_rules *c = NULL;
	struct sb_error err = { 0 };
	struct sb_digest da, db, dc;
	sb_auto(sb_buf) struct sb_buf out;

	(void)state;
	sb_buf_init(&out, 1 << 20);
	for (int i = 0; i < 300; i++) {
		char dir[32];

		(void)snprintf(dir, sizeof dir, "d%d", i);
		add_text(a, SB_RULES_GITIGNORE, dir, "x\ny\n");
		(void)snprintf(dir, sizeof dir, "d%d", 299 - i);
		add_text(b, SB_RULES_GITIGNORE, dir, "# comment\nx  \n\ny\r\n");
	}
	for (int i = 0; i < 50; i++) {
		assert_ok(sb_rules_add(a, SB_RULES_COMMAND, i % 2 ? "!p/" : "p/", &err), &err);
		assert_ok(sb_rules_add(b, SB_RULES_COMMAND, i % 2 ? "!p/" : "p/", &err), &err);
	}
	assert_ok(sb_rules_digest(a, &da, &err), &err);
	assert_ok(sb_rules_digest(b, &db, &err), &err);
	assert_memory_equal(&da, &db, sizeof da);
	assert_ok(sb_rules_encode(a, &out, &err), &err);
	c = sb_rules_decode(out.data, out.len, &err);
	if (!c)
		fail_msg("decode: %s", err.msg);
	assert_ok(sb_rules_digest(c, &dc, &err), &err);
	assert_memory_equal(&da, &dc, sizeof da);
	assert_true(sb_rules_excluded(c, "d7/x", false));
	assert_false(sb_rules_excluded(c, "e7/x", false));
	assert_ok(sb_rules_add(c, SB_RULES_COMMAND, "p/", &err), &err);
	assert_ok(sb_rules_digest(c, &dc, &err), &err);
	assert_memory_not_equal(&da, &dc, sizeof da);
	for (size_t cut = 0; cut < out.len; cut += cut < 64 ? 1 : 97)
		if (sb_rules_decode(out.data, cut, &err))
			fail_msg("decoded %zu of %zu bytes", cut, out.len);
}

static void
hostile_encodings_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int want;
	} t[] = {
		{ "", 0, SB_E_CORRUPT },
		{ "\x03\x00", 2, SB_E_VERSION },
		{ "\x02\x02\x00", 3, SB_E_CORRUPT },                  /* no such flag */
		{ "\x01\x01\x05\x00\x01\x01x", 7, SB_E_CORRUPT },     /* version 1 has no such */
		{ "\x02\x01\x01\x02\x00\x01\x01X", 8, SB_E_CORRUPT }, /* capital letters */
		{ "\x02\x00\x01\x06\x00\x02\x01"
		  "b\x01"
		  "a",
			10, SB_E_CORRUPT }, /* tracked paths out of order */
		{ "\x02\x00\x01\x06\x00\x01\x01/", 8, SB_E_CORRUPT },     /* no path */
		{ "\x02\x00\x01\x06\x00\x01\x04../x", 11, SB_E_CORRUPT }, /* leads out */
		{ "\x01\x00x", 3, SB_E_CORRUPT },                         /* bytes behind the end */
		{ "\x01\x01\x07\x00\x01\x01x", 7, SB_E_CORRUPT },         /* no such source */
		{ "\x01\x01\x02\x02..\x01\x01x", 9, SB_E_CORRUPT },       /* leads out */
		{ "\x01\x01\x04\x01"
		  "d\x01\x01x",
			8, SB_E_CORRUPT },                       /* command line with a directory */
		{ "\x01\x01\x02\x00\x00", 5, SB_E_CORRUPT },     /* empty list */
		{ "\x01\x01\x02\x00\x01\x00", 6, SB_E_CORRUPT }, /* empty pattern */
		{ "\x01\x01\x02\x00\x01\x02x\x00", 8, SB_E_CORRUPT }, /* NUL in the pattern */
		{ "\x01\x01\x02\x00\xff\xff\xff\xff\x0f\x01x", 11,
			SB_E_CORRUPT }, /* more than there is */
		{ "\x01\x02\x02\x00\x01\x01x\x02\x00\x01\x01y", 12,
			SB_E_CORRUPT }, /* one list twice */
		{ "\x01\x02\x04\x00\x01\x01x\x02\x00\x01\x01y", 12, SB_E_CORRUPT }, /* order */
		{ "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, SB_E_CORRUPT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct sb_error err = { 0 };
		struct sb_rules *r = sb_rules_decode(t[i].bytes, t[i].len, &err);

		if (r || err.code != t[i].want)
			fail_msg("case %zu: got %d (%s), want %d", i, err.code, err.msg, t[i].want);
	}
}

struct walker {
	struct sb_rules *r;
	int first;
	int wrong;
};

static void *
add_and_match(void *arg)
{
	struct walker *w = arg;
	const struct sb_rules_node *root = sb_rules_root(w->r);

	for (int i = w->first; i < w->first + 200; i++) {
		const struct sb_rules_node *n;
		char dir[32], path[64];

		(void)snprintf(dir, sizeof dir, "dir%d", i);
		(void)snprintf(path, sizeof path, "dir%d/file", i);
		if (sb_rules_add_file(w->r, SB_RULES_GITIGNORE, dir, "/file\n", 6, NULL) < 0)
			w->wrong++;
		n = sb_rules_enter(w->r, root, dir);
		if (!n || !sb_rules_match(n, path, path + strlen(dir) + 1, false) ||
			sb_rules_match(root, path, path + strlen(dir) + 1, false) ||
			!sb_rules_excluded(w->r, path, false))
			w->wrong++;
	}
	return NULL;
}

static void
threads_add_and_match_together(void **state)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	struct walker w[4];
	pthread_t id[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		w[i] = (struct walker){ .r = r, .first = i * 150 };
		assert_int_equal(pthread_create(&id[i], NULL, add_and_match, &w[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(id[i], NULL), 0);
		assert_int_equal(w[i].wrong, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_hit_what_git_says),
		cmocka_unit_test(last_match_wins_and_negation_brings_back),
		cmocka_unit_test(sources_have_their_order),
		cmocka_unit_test(nodes_answer_like_single_paths),
		cmocka_unit_test(command_patterns_are_taken_literally),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(rule_bombs_end_soon),
		cmocka_unit_test(encoding_is_canonical_and_comes_back),
		cmocka_unit_test(hostile_encodings_are_refused),
		cmocka_unit_test(threads_add_and_match_together),
	};

	return cmocka_run_group_tests_name("ignore", tests, NULL, NULL);
}
