/* SPDX-License-Identifier: MIT */
/*
 * git's configuration files: read as git reads them, on generated texts; and what the guard makes
 * of them.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <sync/plan/guard-config.h>
#include <sync/scan/gitconfig.h>

#include "tests/lib/unit.h"

enum { TEXTS = 300 };

static uint64_t rng;

static unsigned
rnd(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)((rng >> 20) % n);
}

/* As `git config --list -z` shows it. */
static int
show(const struct sb_gitconfig_var *v, void *arg)
{
	struct sb_buf *out = arg;

	sb_buf_addf(out, v->sub ? "%s.%s.%s" : "%s%s.%s", v->section, v->sub ? v->sub : "",
		v->name);
	if (v->value)
		sb_buf_addf(out, "\n%s", v->value);
	sb_buf_add_char(out, 0);
	return 0;
}

static void
ours(const char *text, size_t len, struct sb_buf *out)
{
	struct sb_error err = { 0 };

	sb_buf_init(out, 1 << 20);
	assert_ok(sb_gitconfig_read(text, len, show, out, &err), &err);
}

/* 0, or 1 when git does not take the file. */
static int
gits(const char *file, struct sb_buf *out)
{
	char cmd[512], buf[4096];
	FILE *f;
	size_t n;

	sb_buf_init(out, 1 << 20);
	snprintf(cmd, sizeof cmd, "git config -f '%s' --list -z 2>/dev/null", file);
	f = popen(cmd, "r");
	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		sb_buf_add(out, buf, n);
	return pclose(f) != 0;
}

static void
make_text(struct sb_buf *b)
{
	static const char *const parts[] = { "[core]\n", "[include]", "[a \"B c\"]\n",
		"[filter.Sub]\n", "[x \"q\\\"r\\\\\"] ", "\tname = value\n", "Key=v # no\n",
		"k = \"a ; b\" c ; d\n", "flag\n", "e = one\\\n  two\\\n\n", "t = a\\tb\\nc\\\\\n",
		"s =   spaced   out   \n", "q = \"  kept  \"  \n", "empty =\n", "# comment [x]\n",
		"; more\n", "\n", "  \n", "r = x\r\n", "u = \xc3\xa9\n", "n-1 = a=b\n",
		"z = \"\"x\"y z\"\n" };

	sb_buf_add_str(b, "[first]\n");
	for (unsigned i = 3 + rnd(12); i; i--)
		sb_buf_add_str(b, parts[rnd(sizeof parts / sizeof parts[0])]);
	sb_buf_add_str(b, "\n");
}

static void
texts_are_read_as_git_reads_them(void **state)
{
	const char *tmp = getenv("TMPDIR");
	unsigned equal = 0;
	char file[300];
	int fd;

	(void)state;
	snprintf(file, sizeof file, "%s/gitconfig-XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(file);
	assert_true(fd >= 0);
	rng = 0x9e3779b97f4a7c15u;
	for (unsigned i = 0; i < TEXTS; i++) {
		sb_auto(sb_buf) struct sb_buf text, a, b;

		sb_buf_init(&text, 1 << 16);
		make_text(&text);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text.data, text.len, 0), (ssize_t)text.len);
		ours((char *)text.data, text.len, &a);
		if (gits(file, &b) != 0)
			continue;
		if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
			fail_msg("text %u:\n%s\nours:\n%s\ngit's:\n%s", i, (char *)text.data,
				(char *)a.data, (char *)b.data);
		equal++;
	}
	close(fd);
	unlink(file);
	if (equal < TEXTS / 2)
		fail_msg("git took only %u of %u texts", equal, (unsigned)TEXTS);
}

static void
what_git_runs_is_found(void **state)
{
	static const char text[] =
		"[core] hooksPath = .husky/_\n\tfsmonitor = ./watch -x\n\tpager = less\n"
		"[include]\n\tpath = ../more\n[includeIf \"gitdir:x\"] path=~/z\n"
		"[filter \"f\"]\n\tclean = \"python3 tools/clean.py %f | cat\"\n"
		"[alias]\n\tst = !./run\n[remote \"o\"]\n\turl = ./elsewhere\n"
		"[core]\n\tworktree = ../up\n";
	static const char *const words[] = { "./watch", "less", "python3", "tools/clean.py",
		"cat" };
	sb_auto(sb_guard_config) struct sb_guard_config c = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_guard_config_read(&c, text, sizeof text - 1, &err), &err);
	assert_int_equal(c.hooks.n, 1);
	assert_string_equal(c.hooks.v[0], ".husky/_");
	assert_int_equal(c.includes.n, 2);
	assert_string_equal(c.includes.v[1], "~/z");
	assert_int_equal(c.tops.n, 1);
	assert_int_equal(c.words.n, sizeof words / sizeof words[0]);
	for (size_t i = 0; i < c.words.n; i++)
		assert_string_equal(c.words.v[i], words[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_read_as_git_reads_them),
		cmocka_unit_test(what_git_runs_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
