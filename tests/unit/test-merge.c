/* SPDX-License-Identifier: MIT */
/*
 * The three-way merge of texts: changes apart from each other are joined, the others are left as a
 * conflict.
 */
#include "tests/lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <sync/plan/merge.h>

#include "tests/lib/model.h"
#include "tests/lib/tmpdir.h"

static int
merge_bytes(const char *base, size_t nb, const char *a, size_t na, const char *b, size_t nc,
	struct sb_buf *out)
{
	struct sb_error err = { 0 };
	struct sb_merge_text tb = { base, nb }, ta = { a, na }, tc = { b, nc };
	int r = sb_merge_texts(&tb, &ta, &tc, out, &err);

	if (r < 0)
		fail_msg("merge: %s", err.msg);
	sb_buf_add_char(out, 0);
	out->len--;
	return r;
}

static void
merges_to(const char *base, const char *a, const char *b, const char *want)
{
	sb_auto(sb_buf) struct sb_buf out = { 0 }, swapped = { 0 };
	int r = merge_bytes(base, strlen(base), a, strlen(a), b, strlen(b), &out);

	if (r != (want != NULL))
		fail_msg("\"%s\" and \"%s\" on \"%s\": %s", a, b, base,
			r ? "merged" : "not merged");
	if (want)
		assert_string_equal((char *)out.data, want);
	assert_int_equal(merge_bytes(base, strlen(base), b, strlen(b), a, strlen(a), &swapped), r);
	if (want)
		assert_string_equal((char *)swapped.data, want);
}

static void
changes_apart_are_joined(void **state)
{
	(void)state;
	merges_to("1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n",
		"one\n2\n3\n4\nfive\n");
	merges_to("1\n2\n3\n", "0\n1\n2\n3\n", "1\n2\n", "0\n1\n2\n");
	merges_to("1\n2\n3\n4\n5\n", "1\n3\n4\n5\n", "1\n2\n3\n4\n4a\n5\n", "1\n3\n4\n4a\n5\n");
	merges_to("a\nb\nc\n", "a\nb\nc\n", "x\n", "x\n");
	merges_to("a\nb\nc\n", "", "a\nb\nc\n", "");
	merges_to("", "new\n", "", "new\n");
	merges_to("1\n2", "1\n2", "1\n2\n3", "1\n2\n3");
}

static void
what_both_did_counts_once(void **state)
{
	(void)state;
	merges_to("1\n2\n3\n", "1\ntwo\n3\n", "1\ntwo\n3\n", "1\ntwo\n3\n");
	merges_to("1\n2\n3\n4\n5\n6\n", "1\nX\n3\n4\n5\nsix\n", "1\nX\n3\n4\n5\n6\n",
		"1\nX\n3\n4\n5\nsix\n");
	merges_to("", "same\n", "same\n", "same\n");
}

static void
changes_of_the_same_place_are_not_guessed_at(void **state)
{
	(void)state;
	merges_to("1\n2\n3\n", "1\na\n3\n", "1\nb\n3\n", NULL);
	merges_to("1\n2\n3\n", "1\n3\n", "1\nb\n3\n", NULL);
	merges_to("", "a\n", "b\n", NULL);
	merges_to("1\n2", "1\nX", "1\n2\n3", NULL);
	/* neighbours: nothing between them tells where one change ends */
	merges_to("1\n2\n", "one\n2\n", "1\ntwo\n", NULL);
}

static void
what_is_no_text_is_left_alone(void **state)
{
	sb_auto(sb_buf) struct sb_buf out = { 0 }, big = { 0 };
	sb_autofree char *many = malloc(SB_MERGE_MAX_BYTES + 1);

	(void)state;
	assert_int_equal(merge_bytes("a\0b\n", 4, "a\0b\nc\n", 6, "x\na\0b\n", 6, &out), 0);
	assert_non_null(many);
	memset(many, '\n', SB_MERGE_MAX_BYTES + 1);
	assert_int_equal(merge_bytes("a\n", 2, many, SB_MERGE_MAX_BYTES + 1, "a\n", 2, &big), 0);
}

#define LINES 60

/*
 * Two sides that edit lines of their own, with one untouched between any two: the merge is the sum
 * of the edits.
 */
static void
random_edits_apart_add_up(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char base[4096] = "", a[4096] = "", b[4096] = "", want[4096] = "";
		size_t nb = 0, na = 0, nc = 0, nw = 0;

		for (unsigned i = 0; i < LINES; i++) {
			unsigned owner = i % 2 ? model_below(&seed, 4) : 3,
				 what = model_below(&seed, 3);
			char line[32], edit[64] = "";

			/* Few different lines, so that the same ones stand in many places. */
			(void)snprintf(line, sizeof line, "%u\n",
				i % 2 ? model_below(&seed, 3) : 100 + i);
			if (what)
				(void)snprintf(edit, sizeof edit, "%s%u-%u\n",
					what == 1 ? line : "", owner, model_below(&seed, 1000));
			nb += (size_t)snprintf(base + nb, sizeof base - nb, "%s", line);
			na += (size_t)snprintf(a + na, sizeof a - na, "%s",
				owner == 0 || owner == 2 ? edit : line);
			nc += (size_t)snprintf(b + nc, sizeof b - nc, "%s",
				owner == 1 || owner == 2 ? edit : line);
			nw += (size_t)snprintf(want + nw, sizeof want - nw, "%s",
				owner < 3 ? edit : line);
		}
		merges_to(base, a, b, want);
	}
}

/* Texts without anything in common end within bounds, and unmerged. */
static void
very_different_texts_end_in_time(void **state)
{
	sb_auto(sb_buf) struct sb_buf a = { 0 }, b = { 0 }, c = { 0 }, out = { 0 };
	uint64_t seed = 9;

	(void)state;
	sb_buf_init(&a, 1u << 24);
	sb_buf_init(&b, 1u << 24);
	sb_buf_init(&c, 1u << 24);
	for (int i = 0; i < 20000; i++) {
		sb_buf_addf(&a, "a%u\n", model_below(&seed, 1000000));
		sb_buf_addf(&b, "b%u\n", model_below(&seed, 1000000));
		sb_buf_addf(&c, "c%u\n", model_below(&seed, 1000000));
	}
	assert_int_equal(merge_bytes((char *)a.data, a.len, (char *)b.data, b.len, (char *)c.data,
				 c.len, &out),
		0);
}

/* Of the shortest ways from the base to the third text one moves line 138: git takes that one. */
static void
lines_that_may_have_moved_are_no_hold(void **state)
{
	static const char base[] = "d\n138\nd\nd\nd\nd\nd\nd\nc\n",
			  here[] = "d\nd\n138\nd\nd\nd\nd\nd\nd\nc\n",
			  there[] = "d\nd\n138\nd\nd\nd\nd\nd\n";
	sb_auto(sb_buf) struct sb_buf out = { 0 };

	(void)state;
	assert_int_equal(merge_bytes(base, sizeof base - 1, here, sizeof here - 1, there,
				 sizeof there - 1, &out),
		0);
}

#define SHORT 16  /* lines */
#define TEXTS 300 /* MERGE_TEXTS overrides */

struct lines {
	char v[4 * SHORT][8];
	size_t n;
};

static void
random_line(char out[8], uint32_t letters, uint64_t *seed)
{
	uint32_t k = model_below(seed, letters + 2);

	/* The same few lines again and again, now and then one of its own. */
	if (k < letters)
		(void)snprintf(out, 8, "%c\n", (char)('a' + k));
	else
		(void)snprintf(out, 8, "%u\n", model_below(seed, 900) + 100);
}

static void
edit_lines(struct lines *l, unsigned edits, uint32_t letters, uint64_t *seed)
{
	while (edits-- > 0) {
		size_t at = model_below(seed, (uint32_t)l->n + 1);
		unsigned what = model_below(seed, 4);

		if (what == 0 && at < l->n) {
			memmove(l->v[at], l->v[at + 1], (l->n - at - 1) * sizeof l->v[0]);
			l->n--;
		} else if (what == 1 && at < l->n) {
			random_line(l->v[at], letters, seed);
		} else if (l->n < sizeof l->v / sizeof l->v[0]) {
			memmove(l->v[at + 1], l->v[at], (l->n - at) * sizeof l->v[0]);
			if (what == 2 && at)
				memcpy(l->v[at], l->v[at - 1], sizeof l->v[0]);
			else
				random_line(l->v[at], letters, seed);
			l->n++;
		}
	}
}

static void
join_lines(const struct lines *l, char *out)
{
	size_t n = 0;

	*out = 0;
	for (size_t i = 0; i < l->n; i++)
		n += (size_t)snprintf(out + n, 512 - n, "%s", l->v[i]);
}

/* What git makes of it: its exit status, 0 for a clean merge. */
static int
git_merge(const struct tmpdir *dir, const char *base, const char *a, const char *b, char *out,
	size_t size)
{
	char command[512];
	size_t n;
	FILE *f;

	tmpdir_file(dir, "base", base);
	tmpdir_file(dir, "a", a);
	tmpdir_file(dir, "b", b);
	(void)snprintf(command, sizeof command,
		"cd '%s' && git merge-file -p -q a base b 2>/dev/null", dir->path);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, size - 1, f);
	out[n] = 0;
	return pclose(f);
}

static void
merges_as_git_does_or_not_at_all(void **state)
{
	const char *env = getenv("MERGE_TEXTS");
	unsigned texts = env ? (unsigned)strtoul(env, NULL, 10) : TEXTS, clean = 0;
	const struct tmpdir *dir = *state;
	uint64_t seed = 11;
	char git[1024];

	/* 0 where there is nothing to merge; anything else where there is no git. */
	if (git_merge(dir, "", "", "", git, sizeof git) != 0)
		skip();
	for (unsigned i = 0; i < texts; i++) {
		uint32_t letters = 1 + model_below(&seed, 4);
		struct lines b = { .n = 0 }, x, y;
		char base[512], here[512], there[512];
		sb_auto(sb_buf) struct sb_buf out = { 0 };

		edit_lines(&b, 2 + model_below(&seed, 2 * SHORT), letters, &seed);
		x = y = b;
		edit_lines(&x, 1 + model_below(&seed, 3), letters, &seed);
		edit_lines(&y, 1 + model_below(&seed, 3), letters, &seed);
		join_lines(&b, base);
		join_lines(&x, here);
		join_lines(&y, there);
		if (!merge_bytes(base, strlen(base), here, strlen(here), there, strlen(there),
			    &out))
			continue;
		clean++;
		if (git_merge(dir, base, here, there, git, sizeof git) != 0)
			fail_msg("text %u: git finds a conflict in\n%s--\n%s--\n%s--\n%s", i, base,
				here, there, (char *)out.data);
		if (strcmp((char *)out.data, git) != 0)
			fail_msg(
				"text %u: git merges it in another way\n%s--\n%s--\n%s--\n%s--\n%s",
				i, base, here, there, (char *)out.data, git);
	}
	print_message("# %u texts, %u merged\n", texts, clean);
	/* A merge that never succeeds would pass. */
	assert_true(clean > texts / 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_apart_are_joined),
		cmocka_unit_test(what_both_did_counts_once),
		cmocka_unit_test(changes_of_the_same_place_are_not_guessed_at),
		cmocka_unit_test(what_is_no_text_is_left_alone),
		cmocka_unit_test(random_edits_apart_add_up),
		cmocka_unit_test(very_different_texts_end_in_time),
		cmocka_unit_test(lines_that_may_have_moved_are_no_hold),
		cmocka_unit_test_setup_teardown(merges_as_git_does_or_not_at_all, tmpdir_setup,
			tmpdir_teardown),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
