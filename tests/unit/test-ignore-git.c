/* SPDX-License-Identifier: MIT */
/*
 * Generated trees with generated ignore files, and git's word for every path in them. A
 * case is one tree with its ignore files; many cases share a repository, so that one
 * git process answers for all of them. SB_IGNORE_CASES sets their number,
 * SB_IGNORE_SEED the seed (else the clock).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <sync/scan/rules.h>

#include "tests/lib/unit.h"

enum {
	CASES = 6000,
	CASES_IN_REPO = 50,
	PATHS_MAX = 40,
	TEXT_MAX = 1 << 16,
};

static uint64_t rng;
static char base[64];

static unsigned
rnd(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)((rng >> 20) % n);
}

static bool
chance(unsigned percent)
{
	return rnd(100) < percent;
}

/* One tree: paths relative to the repository, in the order parents first. */
struct path {
	char *s;
	bool is_dir;
};

struct repo {
	char dir[PATH_MAX];
	struct path v[CASES_IN_REPO * (PATHS_MAX + 1)];
	size_t n;
	struct sb_rules *rules;
	struct sb_buf log; /* the ignore files, for the report of a failure */
};

static void
repo_path(const struct repo *r, const char *rel, char *out, size_t size)
{
	int n = snprintf(out, size, "%s/%s", r->dir, rel);

	assert_true(n > 0 && (size_t)n < size);
}

static void
write_file(const struct repo *r, const char *rel, const void *data, size_t len)
{
	char full[PATH_MAX * 2];
	int fd;

	repo_path(r, rel, full, sizeof full);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		fail_msg("write %s: %s", full, strerror(errno));
	assert_int_equal(close(fd), 0);
}

static void
make_dir(const struct repo *r, const char *rel)
{
	char full[PATH_MAX * 2];

	repo_path(r, rel, full, sizeof full);
	if (mkdir(full, 0755) < 0)
		fail_msg("mkdir %s: %s", full, strerror(errno));
}

static void
make_name(struct sb_buf *out)
{
	static const char *const usual[] = { "a", "b", "ab", "abc", "x.o", "x.c", "lib.a", "foo",
		"bar", "build", "a.b.c", "node_modules", "core", "aaab", "abab" };
	static const char odd[] = "aaabbbcABC019.-_ *?[]\\!#~^:\t\v\f\r\n\x7f\xc3\xa9\xff";
	size_t len = 1 + rnd(4), at = out->len;

	if (chance(60)) {
		sb_buf_add_str(out, usual[rnd(sizeof usual / sizeof usual[0])]);
		return;
	}
	while (len-- > 0)
		sb_buf_add_char(out, odd[rnd(sizeof odd - 1)]);
	if (strcmp((char *)out->data + at, ".") == 0 || strcmp((char *)out->data + at, "..") == 0)
		sb_buf_add_char(out, 'x');
}

static bool
taken(const struct repo *r, size_t first, const char *path)
{
	for (size_t i = first; i < r->n; i++)
		if (strcmp(r->v[i].s, path) == 0)
			return true;
	return false;
}

static void
add_path(struct repo *r, const char *path, bool is_dir)
{
	r->v[r->n].s = strdup(path);
	assert_non_null(r->v[r->n].s);
	r->v[r->n++].is_dir = is_dir;
	/*
	 * To git a path that is not there is no directory, which is all it asks of a
	 * file.
	 */
	if (is_dir)
		make_dir(r, path);
}

/*
 * Grows a tree beneath `top` ("": the repository itself), which was entered as path
 * `first` unless it is "".
 */
static void
make_tree(struct repo *r, const char *top, size_t first)
{
	size_t want = 6 + rnd(PATHS_MAX - 6);
	sb_auto(sb_buf) struct sb_buf path;

	sb_buf_init(&path, 4096);
	for (size_t tries = 0; tries < want; tries++) {
		const struct path *parent =
			r->n > first ? &r->v[first + rnd((unsigned)(r->n - first))] : NULL;

		sb_buf_reset(&path);
		sb_buf_add_str(&path, parent && parent->is_dir ? parent->s : top);
		if (path.len > 0)
			sb_buf_add_char(&path, '/');
		make_name(&path);
		if (!taken(r, first, (char *)path.data))
			add_path(r, (char *)path.data, chance(45));
	}
}

/* A class that has (or, negated, has not) the byte, most of the time. */
static void
add_class(struct sb_buf *out, char c)
{
	static const char *const named[] = { "[:alpha:]", "[:digit:]", "[:punct:]", "[:space:]",
		"[:print:]", "[:lower:]", "[:alnum:]", "[:cntrl:]", "[:graph:]", "[:blank:]",
		"[:upper:]", "[:xdigit:]", "[:nope:]", "[:", "[:]" };

	sb_buf_add_char(out, '[');
	if (chance(25))
		sb_buf_add_char(out, chance(50) ? '!' : '^');
	switch (rnd(7)) {
	case 0: sb_buf_add_str(out, named[rnd(sizeof named / sizeof named[0])]); break;
	case 1: sb_buf_add_str(out, "a-c"); break;
	case 2: sb_buf_add_str(out, "]-a"); break;
	case 3: sb_buf_addf(out, "%c-%c", c, (char)(c + (char)rnd(4))); break;
	case 4: sb_buf_addf(out, "x\\%c-", c); break;
	case 5: sb_buf_addf(out, "/%c", c); break;
	default: sb_buf_addf(out, "%c%c", 'a' + (char)rnd(3), c); break;
	}
	if (chance(97))
		sb_buf_add_char(out, ']');
}

static void
add_mutated_component(struct sb_buf *out, const char *s, size_t len)
{
	unsigned whole = rnd(100);

	if (whole < 25) {
		sb_buf_add_str(out, whole < 12 ? "*" : whole < 23 ? "**" : "***");
		return;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned how = rnd(100);

		if (how < 6)
			sb_buf_add_char(out, '?');
		else if (how < 12)
			sb_buf_add_str(out, chance(20) ? "**" : "*");
		else if (how < 20)
			add_class(out, s[i]);
		else if (how < 24)
			sb_buf_addf(out, "\\%c", s[i]);
		else if (how < 26)
			continue;
		else if (strchr("*?[\\", s[i]) && chance(80))
			sb_buf_addf(out, "\\%c", s[i]);
		else
			sb_buf_add_char(out, s[i]);
	}
	if (chance(8))
		sb_buf_add_str(out, chance(50) ? "*" : "**");
}

/* A pattern made from a path that exists: whole, or some of its last components. */
static void
add_mutated_path(struct sb_buf *out, const char *path)
{
	/* What stands for a slash; some of these never match one. */
	static const char *const joints[] = { "/", "/", "/", "/", "/", "/", "/", "/", "/", "/",
		"/**/", "/**/", "\\/", "[/]", "[!a]", "?" };
	const char *p = path;

	for (const char *q = path; *q; q++)
		if (*q == '/' && chance(40))
			p = q + 1;
	if (chance(25))
		sb_buf_add_str(out, chance(50) ? "/" : "**/");
	while (*p) {
		size_t len = strcspn(p, "/");

		add_mutated_component(out, p, len);
		p += len;
		if (*p == '/') {
			p++;
			sb_buf_add_str(out, joints[rnd(sizeof joints / sizeof joints[0])]);
		}
	}
	if (chance(30)) {
		static const char *const ends[] = { "/", "/", "/", "/*", "/**", "*", "**", " ",
			"\\ ", " \\ ", "\t", "\r", "\\", "//", "/**/", "[" };

		sb_buf_add_str(out, ends[rnd(sizeof ends / sizeof ends[0])]);
	}
}

static void
add_pattern(struct sb_buf *out, const char *near)
{
	static const char *const bits[] = { "*", "**", "?", "[", "]", "!", "-", "^", "\\", "/", "a",
		"b", "ab", ".o", "[!a]", "[a-c]", "#", " ", "**/", "/**", "[[:alpha:]]",
		"[[:space:]]", "foo", "[]]", "[^]]", "\\*", "c" };
	sb_auto(sb_buf) struct sb_buf line;
	size_t n = 1 + rnd(7);

	sb_buf_init(&line, TEXT_MAX);
	if (chance(28))
		sb_buf_add_char(&line, '!');
	if (near && chance(80))
		add_mutated_path(&line, near);
	else
		while (n-- > 0)
			sb_buf_add_str(&line, bits[rnd(sizeof bits / sizeof bits[0])]);
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] != '\n')
			sb_buf_add_char(out, (char)line.data[i]);
	sb_buf_add_str(out, chance(5) ? "\r\n" : "\n");
}

/* An ignore file of a few patterns near the paths of one tree below `dir`. */
static void
make_rules(struct repo *r, enum sb_rules_source src, const char *dir, const char *file,
	size_t first, size_t patterns)
{
	struct sb_error err = { 0 };
	size_t dir_len = strlen(dir);
	sb_auto(sb_buf) struct sb_buf text;

	sb_buf_init(&text, TEXT_MAX);
	if (chance(3))
		sb_buf_add_str(&text, "\xef\xbb\xbf");
	while (patterns-- > 0) {
		const char *near =
			r->n > first ? r->v[first + rnd((unsigned)(r->n - first))].s : NULL;

		if (near && dir_len)
			near = strncmp(near, dir, dir_len) == 0 && near[dir_len] == '/' ?
				near + dir_len + 1 :
				NULL;
		add_pattern(&text, near);
	}
	if (chance(20) && text.len > 0)
		text.len--;
	assert_int_equal(sb_buf_check(&text, "patterns", NULL), 0);
	write_file(r, file, text.data, text.len);
	assert_ok(sb_rules_add_file(r->rules, src, dir, (char *)text.data, text.len, &err), &err);
	sb_buf_addf(&r->log, "--- %s\n", file);
	sb_buf_add(&r->log, text.data, text.len);
}

static void
make_case(struct repo *r, const char *top)
{
	size_t first = r->n;
	char file[PATH_MAX];

	if (*top) {
		add_path(r, top, true);
		(void)snprintf(file, sizeof file, "%s/.gitignore", top);
	} else {
		(void)snprintf(file, sizeof file, ".gitignore");
	}
	make_tree(r, top, first);
	make_rules(r, SB_RULES_GITIGNORE, top, file, first, 1 + rnd(7));
	for (size_t i = first + (*top != 0), end = r->n; i < end; i++) {
		if (!r->v[i].is_dir || !chance(25))
			continue;
		assert_true((size_t)snprintf(file, sizeof file, "%s/.gitignore", r->v[i].s) <
			sizeof file);
		make_rules(r, SB_RULES_GITIGNORE, r->v[i].s, file, first, 1 + rnd(4));
	}
}

static int
remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void
close_repo(struct repo *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].s);
	sb_rules_free(r->rules);
	sb_buf_free(&r->log);
	(void)nftw(r->dir, remove_entry, 20, FTW_DEPTH | FTW_PHYS);
}

static void
open_repo(struct repo *r, size_t number)
{
	r->n = 0;
	sb_buf_init(&r->log, 64 << 20);
	r->rules = sb_rules_new(NULL);
	assert_non_null(r->rules);
	assert_true(
		(size_t)snprintf(r->dir, sizeof r->dir, "%s/r%zu", base, number) < sizeof r->dir);
	make_dir(r, "");
	make_dir(r, ".git");
	make_dir(r, ".git/objects");
	make_dir(r, ".git/refs");
	make_dir(r, ".git/info");
	write_file(r, ".git/HEAD", "ref: refs/heads/main\n", 21);
}

/*
 * Runs git for all paths and returns its output: source NUL line NUL pattern NUL path
 * NUL for each.
 */
static void
ask_git(const struct repo *r, struct sb_buf *out)
{
	const char *const argv[] = { "git", "-C", r->dir, "check-ignore", "--no-index", "--stdin",
		"-z", "-v", "-n", NULL };
	const char *const env[] = { "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent", "LC_ALL=C",
		"PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	char in_name[PATH_MAX * 2], out_name[PATH_MAX * 2];
	posix_spawn_file_actions_t fa;
	sb_auto(sb_buf) struct sb_buf in;
	uint8_t *room;
	ssize_t got;
	int status, fd;
	pid_t pid;

	sb_buf_init(&in, 64 << 20);
	/* "./" keeps git from reading a ':' at the beginning as a command to itself. */
	for (size_t i = 0; i < r->n; i++) {
		sb_buf_add_str(&in, "./");
		sb_buf_add(&in, r->v[i].s, strlen(r->v[i].s) + 1);
	}
	write_file(r, ".git/in", in.data, in.len);
	repo_path(r, ".git/in", in_name, sizeof in_name);
	repo_path(r, ".git/out", out_name, sizeof out_name);
	assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
	assert_int_equal(posix_spawn_file_actions_addopen(&fa, 0, in_name, O_RDONLY, 0), 0);
	assert_int_equal(
		posix_spawn_file_actions_addopen(&fa, 1, out_name, O_WRONLY | O_CREAT, 0600), 0);
	assert_int_equal(
		posix_spawnp(&pid, "git", &fa, NULL, (char *const *)argv, (char *const *)env), 0);
	(void)posix_spawn_file_actions_destroy(&fa);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* 1: none of the paths is ignored. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		fail_msg("git check-ignore ended with status %#x", (unsigned)status);
	fd = open(out_name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	while ((room = sb_buf_reserve(out, 65536)) && (got = read(fd, room, 65536)) > 0)
		sb_buf_grow(out, (size_t)got);
	assert_int_equal(close(fd), 0);
	assert_int_equal(sb_buf_check(out, "answers of git", NULL), 0);
}

static const char *
next_field(const char **p, const char *end)
{
	const char *s = *p, *nul = memchr(s, 0, (size_t)(end - s));

	if (!nul)
		fail_msg("the answer of git ends early");
	*p = nul + 1;
	return s;
}

/* The answer by nodes, as a scan asks: down from the root, into nothing excluded. */
static bool
excluded_by_walk(struct sb_rules *rules, const char *path, bool is_dir)
{
	const struct sb_rules_node *n = sb_rules_root(rules);
	char part[PATH_MAX];
	size_t at = 0;

	for (;;) {
		size_t len = at + strcspn(path + at, "/");

		memcpy(part, path, len);
		part[len] = 0;
		assert_non_null(n);
		if (sb_rules_match(n, part, part + at, path[len] == '/' || is_dir))
			return true;
		if (path[len] == 0)
			return false;
		n = sb_rules_enter(rules, n, part);
		at = len + 1;
	}
}

static struct sb_rules *
through_the_codec(const struct sb_rules *rules)
{
	struct sb_error err = { 0 };
	struct sb_rules *copy;
	sb_auto(sb_buf) struct sb_buf enc;

	sb_buf_init(&enc, 64 << 20);
	assert_ok(sb_rules_encode(rules, &enc, &err), &err);
	copy = sb_rules_decode(enc.data, enc.len, &err);
	if (!copy)
		fail_msg("decode: %s", err.msg);
	return copy;
}

/* Returns how many paths are excluded. */
static size_t
compare(const struct repo *r)
{
	sb_auto(sb_rules) struct sb_rules *copy = through_the_codec(r->rules);
	sb_auto(sb_buf) struct sb_buf answers;
	const char *p, *end;
	size_t hits = 0;

	sb_buf_init(&answers, 256 << 20);
	ask_git(r, &answers);
	p = (const char *)answers.data;
	end = p + answers.len;
	for (size_t i = 0; i < r->n; i++) {
		const char *source = next_field(&p, end), *line = next_field(&p, end);
		const char *pattern = next_field(&p, end), *path = next_field(&p, end) + 2;
		bool git = *pattern && *pattern != '!', is_dir = r->v[i].is_dir;
		bool one = sb_rules_excluded(r->rules, path, is_dir),
		     walk = excluded_by_walk(r->rules, path, is_dir);
		bool sent = sb_rules_excluded(copy, path, is_dir);

		assert_string_equal(path, r->v[i].s);
		hits += git;
		if (git != one || git != walk || git != sent)
			fail_msg("%s \"%s\": git %d (%s:%s: \"%s\"), single path %d, "
				 "walk %d, decoded %d\n%s",
				is_dir ? "directory" : "file", path, git, source, line, pattern,
				one, walk, sent, (char *)r->log.data);
	}
	assert_ptr_equal(p, end);
	return hits;
}

static size_t
run_repo(struct repo *r, size_t number, size_t cases, size_t *paths)
{
	size_t hits;

	open_repo(r, number);
	if (cases == 1) {
		make_case(r, "");
	} else {
		for (size_t i = 0; i < cases; i++) {
			char top[16];

			(void)snprintf(top, sizeof top, "c%zu", i);
			make_case(r, top);
		}
		if (chance(25))
			make_rules(r, SB_RULES_GITIGNORE, "", ".gitignore", 0, 2);
	}
	if (chance(30))
		make_rules(r, SB_RULES_FROM_FILE, "", ".git/info/exclude", 0, 1 + rnd(3));
	hits = compare(r);
	*paths += r->n;
	close_repo(r);
	return hits;
}

static uint64_t
from_env(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

static bool
have_git(void)
{
	const char *const argv[] = { "git", "--version", NULL },
			  *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	posix_spawn_file_actions_t fa;
	int status = -1;
	pid_t pid;

	if (posix_spawn_file_actions_init(&fa) != 0)
		return false;
	(void)posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, "git", &fa, NULL, (char *const *)argv, (char *const *)env) == 0)
		(void)waitpid(pid, &status, 0);
	(void)posix_spawn_file_actions_destroy(&fa);
	return status == 0;
}

static void
same_answers_as_git(void **state)
{
	size_t want = (size_t)from_env("SB_IGNORE_CASES", CASES), done = 0, repos = 0, paths = 0,
	       hits = 0;
	uint64_t seed = from_env("SB_IGNORE_SEED", (uint64_t)time(NULL));
	const char *tmp = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	struct repo *r = calloc(1, sizeof *r);

	(void)state;
	if (!have_git()) {
		free(r);
		skip_because("no git to compare with");
	}
	assert_non_null(r);
	rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	print_message("# SB_IGNORE_SEED=%" PRIu64 " SB_IGNORE_CASES=%zu\n", seed, want);
	(void)snprintf(base, sizeof base, "%.30s/sb-ignore-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(base));
	while (done < want) {
		size_t cases = repos % 3 == 0 ? 1 : CASES_IN_REPO;

		hits += run_repo(r, repos++, cases, &paths);
		done += cases;
	}
	free(r);
	print_message("# %zu cases in %zu repositories, %zu paths, %zu excluded\n", done, repos,
		paths, hits);
	/* A generator whose patterns hit nothing, or everything, would prove nothing. */
	assert_in_range(hits, paths / 8, paths - paths / 8);
}

static int
remove_scratch(void **state)
{
	(void)state;
	return *base ? nftw(base, remove_entry, 20, FTW_DEPTH | FTW_PHYS) : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(same_answers_as_git, remove_scratch),
	};

	return cmocka_run_group_tests_name("ignore-git", tests, NULL, NULL);
}
