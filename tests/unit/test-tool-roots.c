/* SPDX-License-Identifier: MIT */
/*
 * Files that a tool may touch: paths resolve beneath the roots only, also while somebody swaps
 * links.
 */
#include "config.h"

#include <tool/roots.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <base/str.h>
#include <sb/cancel.h>
#include <tool/textfile.h>

#include "tests/lib/tmpdir.h"

/* DIR/in and DIR/more are roots, DIR/out is not. */
struct place {
	struct tmpdir dir;
	struct sb_roots roots;
	char in[300], more[300], out[300];
};

static int
setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	struct sb_error err = { 0 };
	const char *roots[3];

	tmpdir_make(&p->dir);
	(void)snprintf(p->in, sizeof p->in, "%s/in", p->dir.path);
	(void)snprintf(p->more, sizeof p->more, "%s/more", p->dir.path);
	(void)snprintf(p->out, sizeof p->out, "%s/out", p->dir.path);
	assert_int_equal(mkdir(p->in, 0755) | mkdir(p->more, 0755) | mkdir(p->out, 0755), 0);
	tmpdir_file(&p->dir, "in/a", "one\ntwo\nthree\n");
	tmpdir_file(&p->dir, "more/b", "b");
	tmpdir_file(&p->dir, "out/secret", "secret");
	roots[0] = p->in;
	roots[1] = "  ";
	roots[2] = p->more;
	assert_ok(sb_roots_open(roots, 3, &p->roots, &err), &err);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	sb_roots_close(&p->roots);
	tmpdir_remove(&p->dir);
	free(p);
	return 0;
}

/* The path resolves to DIR/`want`. */
static void
resolves(const struct place *p, const char *path, const char *want)
{
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	sb_autofree char *full = sb_str_printf("%s/%s", p->dir.path, want);
	struct sb_error err = { 0 };

	assert_ok(sb_roots_resolve(&p->roots, path, &at, &err), &err);
	assert_string_equal(at.path, full);
}

static void
refuses(const struct place *p, const char *path, int code)
{
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	struct sb_error err = { 0 };

	assert_fails(sb_roots_resolve(&p->roots, path, &at, &err), code, &err);
}

static void
link_to(const struct place *p, const char *target, const char *name)
{
	assert_int_equal(symlinkat(target, p->dir.fd, name), 0);
}

static void
plain_paths_resolve(void **state)
{
	const struct place *p = *state;
	sb_autofree char *abs = sb_str_printf("%s//./b", p->more);
	sb_autofree char *spaced = sb_str_printf(" \t%s/a \n", p->in);

	resolves(p, "a", "in/a");
	resolves(p, "./x/../a", "in/a");
	resolves(p, "new/file", "in/new/file");
	resolves(p, ".", "in");
	resolves(p, abs, "more/b");
	resolves(p, spaced, "in/a");
	refuses(p, "", SB_E_INVAL);
	refuses(p, "  ", SB_E_INVAL);
}

static void
ways_out_are_refused(void **state)
{
	const struct place *p = *state;
	sb_autofree char *sibling = sb_str_printf("%s-not", p->in);

	refuses(p, "..", SB_E_ESCAPE);
	refuses(p, "../out/secret", SB_E_ESCAPE);
	refuses(p, "x/../../out/secret", SB_E_ESCAPE);
	refuses(p, "/etc/passwd", SB_E_ESCAPE);
	refuses(p, p->out, SB_E_ESCAPE);
	refuses(p, sibling, SB_E_ESCAPE);
	refuses(p, "/no/such/place", SB_E_ESCAPE);
}

static void
links_inside_are_followed(void **state)
{
	const struct place *p = *state;
	sb_autofree char *alias = sb_str_printf("%s/alias/a", p->dir.path);

	assert_int_equal(mkdirat(p->dir.fd, "in/d", 0755), 0);
	link_to(p, "../a", "in/d/up");
	link_to(p, "d", "in/dir");
	link_to(p, p->more, "in/other");
	link_to(p, "in", "alias");
	resolves(p, "d/up", "in/a");
	resolves(p, "dir/up", "in/a");
	resolves(p, "dir/new", "in/d/new");
	resolves(p, "other/b", "more/b");
	resolves(p, alias, "in/a");
}

static void
links_that_lead_out_are_refused(void **state)
{
	const struct place *p = *state;
	struct sb_error err = { 0 };
	struct stat st;

	link_to(p, "../out", "in/leak");
	link_to(p, p->out, "in/leak2");
	link_to(p, "../out/made-by-write", "in/dangling");
	link_to(p, "loop", "in/loop");
	link_to(p, "leak", "in/chain");
	refuses(p, "leak/secret", SB_E_ESCAPE);
	refuses(p, "leak2/secret", SB_E_ESCAPE);
	refuses(p, "chain/secret", SB_E_ESCAPE);
	refuses(p, "dangling", SB_E_ESCAPE);
	refuses(p, "loop", SB_E_ESCAPE);
	assert_fails(sb_textfile_write(&p->roots, "dangling", "x", 1, &err), SB_E_ESCAPE, &err);
	assert_int_equal(fstatat(p->dir.fd, "out/made-by-write", &st, 0), -1);
	assert_int_equal(errno, ENOENT);
}

static void
a_dangling_link_inside_is_written_through(void **state)
{
	const struct place *p = *state;
	struct sb_error err = { 0 };
	struct stat st;

	link_to(p, "later", "in/soon");
	assert_ok(sb_textfile_write(&p->roots, "soon", "x", 1, &err), &err);
	assert_int_equal(fstatat(p->dir.fd, "in/later", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(fstatat(p->dir.fd, "in/soon", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* Swaps in/swap between a directory and a link to the outside, as fast as it can. */
struct swapper {
	const struct place *p;
	atomic_bool end;
};

static void *
swap(void *arg)
{
	struct swapper *s = arg;
	int fd = s->p->dir.fd;

	while (!atomic_load(&s->end)) {
		(void)!renameat(fd, "in/swap", fd, "in/aside");
		(void)!renameat(fd, "in/link", fd, "in/swap");
		(void)!renameat(fd, "in/swap", fd, "in/link");
		(void)!renameat(fd, "in/aside", fd, "in/swap");
	}
	return NULL;
}

static void
a_swap_between_check_and_open_leads_nowhere(void **state)
{
	const struct place *p = *state;
	struct swapper s = { .p = p };
	unsigned wrote = 0, refused = 0;
	struct stat st;
	pthread_t t;

	assert_int_equal(mkdirat(p->dir.fd, "in/swap", 0755), 0);
	tmpdir_file(&p->dir, "in/swap/secret", "mine");
	link_to(p, "../out", "in/link");
	assert_int_equal(pthread_create(&t, NULL, swap, &s), 0);
	for (int i = 0; i < 3000; i++) {
		sb_auto(sb_buf) struct sb_buf b;
		int r;

		sb_buf_init(&b, 1000);
		r = sb_textfile_read(&p->roots, "swap/secret", 0, 0, &b, NULL);
		if (r == 0)
			assert_string_equal((char *)b.data, "mine");
		if (i % 4 == 0)
			r = sb_textfile_write(&p->roots, "swap/new", "x", 1, NULL);
		wrote += r == 0;
		refused += r < 0;
	}
	atomic_store(&s.end, true);
	(void)pthread_join(t, NULL);
	assert_int_equal(fstatat(p->dir.fd, "out/new", &st, 0), -1);
	print_message("# %u went through, %u were refused\n", wrote, refused);
	assert_true(wrote > 0);
	assert_true(refused > 0);
}

static void
lines_are_counted_from_one(void **state)
{
	static const struct {
		uint32_t line, limit;
		const char *want;
	} cases[] = {
		{ 0, 0, "one\ntwo\nthree\n" },
		{ 1, 1, "one\n" },
		{ 2, 1, "two\n" },
		{ 2, 0, "two\nthree\n" },
		{ 3, 9, "three\n" },
		{ 4, 1, "" },
		{ UINT32_MAX, UINT32_MAX, "" },
	};
	const struct place *p = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sb_auto(sb_buf) struct sb_buf b;
		struct sb_error err = { 0 };

		sb_buf_init(&b, 1000);
		assert_ok(sb_textfile_read(&p->roots, "a", cases[i].line, cases[i].limit, &b, &err),
			&err);
		assert_string_equal(b.len ? (char *)b.data : "", cases[i].want);
	}
}

static void
what_is_no_file_is_not_read(void **state)
{
	const struct place *p = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 1000);
	assert_int_equal(mkfifoat(p->dir.fd, "in/fifo", 0644), 0);
	assert_fails(sb_textfile_read(&p->roots, "fifo", 0, 0, &b, &err), SB_E_INVAL, &err);
	assert_fails(sb_textfile_read(&p->roots, ".", 0, 0, &b, &err), SB_E_INVAL, &err);
	assert_fails(sb_textfile_read(&p->roots, "none", 0, 0, &b, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_textfile_write(&p->roots, "fifo", "x", 1, &err), SB_E_INVAL, &err);
	assert_fails(sb_textfile_write(&p->roots, ".", "x", 1, &err), SB_E_INVAL, &err);
	assert_true(sb_textfile_write(&p->roots, "a/b", "x", 1, &err) < 0);
}

static void
a_large_file_needs_lines(void **state)
{
	const struct place *p = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	int fd = openat(p->dir.fd, "in/large", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	sb_buf_init(&b, SIZE_MAX / 2);
	assert_int_equal(write(fd, "first\n", 6), 6);
	assert_int_equal(ftruncate(fd, (off_t)SB_TEXTFILE_MAX + 100), 0);
	(void)close(fd);
	assert_fails(sb_textfile_read(&p->roots, "large", 0, 0, &b, &err), SB_E_LIMIT, &err);
	sb_buf_reset(&b);
	assert_ok(sb_textfile_read(&p->roots, "large", 1, 1, &b, &err), &err);
	assert_string_equal((char *)b.data, "first\n");
}

static void
a_write_replaces_at_once_and_keeps_the_mode(void **state)
{
	const struct place *p = *state;
	struct sb_error err = { 0 };
	struct stat before, after, fresh;
	int old = openat(p->dir.fd, "in/a", O_RDONLY | O_CLOEXEC);
	char text[20] = "";

	assert_int_equal(fchmodat(p->dir.fd, "in/a", 0751, 0), 0);
	assert_int_equal(fstat(old, &before), 0);
	assert_ok(sb_textfile_write(&p->roots, "a", "new", 3, &err), &err);
	assert_int_equal(fstatat(p->dir.fd, "in/a", &after, 0), 0);
	assert_int_equal(after.st_mode & 07777, 0751);
	/* Who had it open still reads all of the old text: it was not written in place. */
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(read(old, text, sizeof text), 14);
	(void)close(old);
	assert_ok(sb_textfile_write(&p->roots, "deep/er/new", "", 0, &err), &err);
	assert_int_equal(fstatat(p->dir.fd, "in/deep/er/new", &fresh, 0), 0);
	assert_int_equal(fresh.st_mode & 07777, 0600);
}

static void
roots_must_be_directories(void **state)
{
	const struct place *p = *state;
	sb_autofree char *file = sb_str_printf("%s/a", p->in);
	const char *relative = "in", *none = "/no/such/dir", *blank = " ",
		   *twice[] = { p->in, p->in };
	struct sb_error err = { 0 };
	struct sb_roots r = { 0 };

	assert_true(sb_roots_open((const char *const *)&file, 1, &r, &err) < 0);
	assert_fails(sb_roots_open(&relative, 1, &r, &err), SB_E_INVAL, &err);
	assert_fails(sb_roots_open(&none, 1, &r, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_roots_open(&blank, 1, &r, &err), SB_E_INVAL, &err);
	assert_ok(sb_roots_open(twice, 2, &r, &err), &err);
	assert_int_equal(r.n, 1);
	sb_roots_close(&r);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(plain_paths_resolve),
		T(ways_out_are_refused),
		T(links_inside_are_followed),
		T(links_that_lead_out_are_refused),
		T(a_dangling_link_inside_is_written_through),
		T(a_swap_between_check_and_open_leads_nowhere),
		T(lines_are_counted_from_one),
		T(what_is_no_file_is_not_read),
		T(a_large_file_needs_lines),
		T(a_write_replaces_at_once_and_keeps_the_mode),
		T(roots_must_be_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
