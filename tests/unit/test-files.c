/* SPDX-License-Identifier: MIT */
/* What runs in sb-files: patterns, globs, the confinement, and a worker as the host sees it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <host/files/confine.h>
#include <host/files/pathglob.h>
#include <host/files/pattern.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

static bool
finds(const char *pattern, const char *text)
{
	sb_auto(sb_pattern) struct sb_pattern p = { 0 };
	struct sb_error err = { 0 };
	const char *end;

	assert_ok(sb_pattern_make(pattern, false, &p, &err), &err);
	return sb_pattern_find(&p, text, text, text + strlen(text), &end) != NULL;
}

/* What agents write, and what POSIX had. */
static void
patterns_mean_what_they_did(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool found;
	} v[] = {
		{ "fo+\\(\\d{2}\\)", "x foo(12)", true },
		{ "fo+\\(\\d{2}\\)", "x foo(1)", false },
		{ "^a|b$", "xb", true },
		{ "(?:ab)+c", "ababc", true },
		{ "(?i)FOO", "a foo", true },
		{ "[[:alpha:]_]+[0-9]", "ab_1", true },
		{ "[]x]", "]", true },
		{ "[^]x]", "]x", false },
		{ "\\<foo\\>", "a foo b", true },
		{ "\\<foo\\>", "afoo", false },
		{ "\\bfoo\\b", "foo", true },
		{ "a{2,3}b", "aab", true },
		{ "^a{,2}b", "aaab", false },
		{ "^xa**b", "xb", true },
		{ "^xa+++b", "xb", false },
		{ "^xa+++b", "xaab", true },
		{ "^xa+?b", "xb", false },
		{ "^xa+?+b", "xb", true },
		{ "\\Aab\\z", "ab", true },
		{ "a.c",
			"a\xc3\xa9"
			"c",
			true },
		{ "^a.c$",
			"a\xe9"
			"c",
			true },
		{ "(?i)\xc3\x89", "\xc3\xa9", true },
		{ "\xc3\xa9*x", "x", true },
		{ "[\\w.-]+@", "a.b-c@", true },
		{ "[a\\]bcdef]x", "fx", true },
		{ "\\x41BC", "ABC", true },
		{ "a\\.b", "a.b", true },
		{ "a\\.b", "axb", false },
		{ "{", "a{b", true },
		{ "a{b}", "a{b}", true },
		{ "foo\\s+bar", "foo \t bar", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
		if (finds(v[i].pattern, v[i].text) != v[i].found)
			fail_msg("%s in %s: %d", v[i].pattern, v[i].text, !v[i].found);
}

static void
wrong_patterns_say_why(void **state)
{
	static const char *const v[][2] = {
		{ "(", "missing )" },
		{ "(a)\\1", "back references are not supported" },
		{ "(?=a)b", "(?=" },
		{ "((a{200}){200}){200}", "invalid repetition size" },
		{ "[b-a]", "b-a" },
		{ "*a", "no argument for repetition operator" },
	};
	struct sb_pattern p;
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		assert_fails(sb_pattern_make(v[i][0], false, &p, &err), SB_E_INVAL, &err);
		if (!strstr(err.msg, v[i][1]))
			fail_msg("%s: \"%s\" is not in \"%s\"", v[i][0], v[i][1], err.msg);
	}
}

/* Globs agree with fnmatch(3) wherever that knows an answer. */
static void
globs_agree_with_fnmatch(void **state)
{
	static const char *const patterns[] = { "*", "?", "a*", "*a", "*a*b", "a?c", "[a-c]x",
		"[!a]b", "[^a]b", "[]]x", "[!]]x", "[[:alpha:]]*", "[[:digit:]-]", "\\*a", "[",
		"[a", "a[", "**", "*.c", ".*", "[.]a", "\\.a", "?a", "[a\\]]b", "[a-]", "[-a]",
		"" };
	static const char *const names[] = { "", "a", "ab", "abc", "acb", "b", "bx", "]x", "*a",
		"[", "[a", "a[", "x.c", ".c", ".a", "1", "-", "]b", "a\\", "aab", "zab", "a b" };

	(void)state;
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
		for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
			bool want = fnmatch(patterns[i], names[k], 0) == 0;

			if (sb_pathglob_name(patterns[i], names[k]) != want)
				fail_msg("%s on %s: not %d", patterns[i], names[k], want);
			want = fnmatch(patterns[i], names[k], FNM_PERIOD) == 0;
			if (*names[k] && *patterns[i] && strcmp(patterns[i], "**") != 0 &&
				sb_pathglob_path(patterns[i], names[k]) != want)
				fail_msg("path %s on %s: not %d", patterns[i], names[k], want);
		}
}

static void
globs_of_paths(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} v[] = {
		{ "**", "a/b/c", true },
		{ "**/c", "a/b/c", true },
		{ "**/c", "c", true },
		{ "a/**", "a/b/c", true },
		{ "a/**", "a", false },
		{ "a/**/c", "a/c", true },
		{ "a/**/c", "a/x/y/c", true },
		{ "a/**/c/**/d", "a/c/c/x/d", true },
		{ "**/b/**/b/d", "b/x/b/c/b/d", true },
		{ "*/c", "a/b/c", false },
		{ "*", "a/b", false },
		{ "**/*.h", "x/.y.h", false },
		{ "**/.*.h", "x/.y.h", true },
		{ "?", "\xc3\xa9", true },
		{ "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true },
		{ "?", "\xe9", true },
		{ "a//b", "a/b", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
		if (sb_pathglob_path(v[i].pattern, v[i].path) != v[i].matches)
			fail_msg("%s on %s: not %d", v[i].pattern, v[i].path, v[i].matches);
}

/* The errno of an attempt; 0: it succeeded. */
static int
open_errno(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? errno : 0;
}

/* In a child: what is still possible. The number of what should not be, or 0. */
static int
confined(int dir, int above)
{
	struct sb_error err = { 0 };
	char *const argv[] = { (char *)"/bin/true", NULL };
	int pipes[2], n = 1;
	void *p;

	if (sb_confine(dir, &err) != (SB_CONFINE_LANDLOCK | SB_CONFINE_SECCOMP))
		return 100;
#define MUST(x) \
	do { \
		if (!(x)) \
			return n; \
		n++; \
	} while (0)
	MUST(open_errno(dir, "file", O_RDONLY) == 0);
	MUST(open_errno(dir, "new", O_WRONLY | O_CREAT) == 0);
	MUST(mkdirat(dir, "sub", 0755) == 0);
	MUST(renameat(dir, "new", dir, "renamed") == 0);
	MUST(unlinkat(dir, "renamed", 0) == 0);
	MUST(open_errno(AT_FDCWD, "/etc/passwd", O_RDONLY) == EACCES);
	MUST(open_errno(dir, "../outside", O_RDONLY) == EACCES);
	MUST(open_errno(dir, "..", O_RDONLY | O_DIRECTORY) == EACCES);
	MUST(open_errno(above, "outside", O_RDONLY) == EACCES);
	MUST(open_errno(above, "outside", O_WRONLY) == EACCES);
	MUST(open_errno(dir, "link", O_RDONLY) == EACCES);
	MUST(symlinkat("/etc/passwd", dir, "made") < 0);
	MUST(mknodat(dir, "fifo", S_IFIFO | 0600, 0) < 0);
	MUST(linkat(above, "outside", dir, "hard", 0) < 0);
	MUST(fchownat(dir, "file", 12345, 12345, 0) < 0);
	MUST(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
	MUST(pipe(pipes) < 0);
	MUST(kill(getppid(), 0) < 0 && errno == EPERM);
	MUST(execv(argv[0], argv) < 0 && errno == EPERM);
	MUST(fork() < 0);
	MUST(chdir("/") < 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p == MAP_FAILED);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	p = malloc(SB_CONFINE_MEMORY);
	MUST(!p);
#endif
	return 0;
}

static void
a_confined_process_reaches_one_directory(void **state)
{
	struct tmpdir t;
	int status, dir, above;
	pid_t pid;

	(void)state;
	tmpdir_make(&t);
	assert_int_equal(mkdirat(t.fd, "w", 0755), 0);
	above = t.fd;
	dir = openat(t.fd, "w", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(open_errno(dir, "file", O_WRONLY | O_CREAT), 0);
	assert_int_equal(open_errno(above, "outside", O_WRONLY | O_CREAT), 0);
	assert_int_equal(symlinkat("../outside", dir, "link"), 0);
	pid = fork();
	if (pid == 0)
		_exit(confined(dir, above));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(dir);
	tmpdir_remove(&t);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 100)
		skip_because("this kernel has no Landlock or no seccomp");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_mean_what_they_did),
		cmocka_unit_test(wrong_patterns_say_why),
		cmocka_unit_test(globs_agree_with_fnmatch),
		cmocka_unit_test(globs_of_paths),
		cmocka_unit_test(a_confined_process_reaches_one_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
