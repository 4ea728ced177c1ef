/* SPDX-License-Identifier: MIT */
/*
 * What the exclude rules cost a scan: 50,000 paths in 4,000 directories against 30
 * patterns, and a rule bomb.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sync/scan/rules.h>

enum {
	DIRS = 4000,
	FILES = 50000,
	ROUNDS = 7,
};

static const char patterns[] =
	"*.o\n*.a\n*.so\n*.py[cod]\n__pycache__/\nnode_modules/\n/build/\n/"
	"dist\n.cache\n*.log\n!keep.log\n*~\n\\#*#\n.DS_Store\n"
	"*.swp\ncoverage/\n.env\n.env.*\n!.env.example\nvendor/bundle\n**/tmp/\n/doc/"
	"*.html\n/doc/**/*.pdf\n*.egg-info/\n"
	"Thumbs.db\n[Bb]in/\n[Oo]bj/\n.idea\n*.min.js\nout-*\n";

static double
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char dirs[DIRS][64];
static char files[FILES][128];
static int dir_of[FILES];

static void
make_paths(void)
{
	static const char *const ends[] = { ".c", ".h", ".py", ".o", ".js", ".txt", ".pyc", "" };

	for (int i = 0; i < DIRS; i++)
		(void)snprintf(dirs[i], sizeof dirs[i], "source/module%d/part%d", i % 60, i);
	for (int i = 0; i < FILES; i++) {
		dir_of[i] = i / (FILES / DIRS + 1);
		(void)snprintf(files[i], sizeof files[i], "%s/some_name_%d%s", dirs[dir_of[i]], i,
			ends[i % 8]);
	}
}

static int
walk(struct sb_rules *r)
{
	const struct sb_rules_node *n = sb_rules_root(r), *in = n;
	int hits = 0;

	for (int i = 0; i < FILES; i++) {
		size_t at = strlen(dirs[dir_of[i]]) + 1;

		if (i == 0 || dir_of[i] != dir_of[i - 1])
			in = sb_rules_enter(r, n, dirs[dir_of[i]]);
		hits += sb_rules_match(in, files[i], files[i] + at, false);
	}
	return hits;
}

static void
measure(const char *what, struct sb_rules *r)
{
	double best = 1e9;
	int hits = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double t = now_ms();

		hits = walk(r);
		t = now_ms() - t;
		best = t < best ? t : best;
	}
	printf("%-40s %8.2f ms for %d paths (%d excluded)\n", what, best, FILES, hits);
}

int
main(void)
{
	static char bomb[4097];
	struct sb_rules *r = sb_rules_new(NULL);
	struct sb_error err = { 0 };
	double t;

	make_paths();
	if (!r ||
		sb_rules_add_file(r, SB_RULES_GITIGNORE, "", patterns, sizeof patterns - 1, &err) <
			0) {
		(void)fprintf(stderr, "bench-ignore: %s\n", err.msg);
		return 1;
	}
	measure("30 patterns of one ignore file", r);
	for (int i = 0; i < DIRS; i += 4)
		if (sb_rules_add_file(r, SB_RULES_GITIGNORE, dirs[i], "*.tmp\n/x\n", 9, &err) < 0)
			return 1;
	measure("the same, 1000 nested ignore files", r);
	sb_rules_free(r);
	r = sb_rules_new(NULL);
	for (size_t i = 0; i < 4095; i += 3)
		memcpy(bomb + i, i < 300 ? "**/" : "*a*", 3);
	bomb[4095] = 'b';
	if (!r || sb_rules_add(r, SB_RULES_COMMAND, bomb, &err) < 0)
		return 1;
	t = now_ms();
	for (int i = 0; i < 100; i++)
		(void)sb_rules_excluded(r,
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaa/"
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaab",
			false);
	printf("%-40s %8.2f us a path\n", "a bomb of 4 KiB", (now_ms() - t) * 10);
	sb_rules_free(r);
	return 0;
}
