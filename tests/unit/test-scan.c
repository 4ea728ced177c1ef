/* SPDX-License-Identifier: MIT */
/*
 * Reading a tree: entries are as the file system has them, and a change is noticed however the
 * clocks stand.
 */
#include "config.h"

#include "tests/lib/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <sync/scan/scan.h>
#include <sync/tree/stage-names.h>

#include "tests/lib/tree.h"

static const struct sb_scan_opts plain = SB_SCAN_OPTS_INIT;

static void
entries_are_as_the_file_system_has_them(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = -5, .tv_nsec = 123456789 } };
	struct stat st;
	char name[256];

	memset(name, 'n', 255);
	name[255] = 0;
	make_dir(t->fd, "dir");
	make_file(t->fd, "dir/f", "hello");
	assert_int_equal(utimensat(t->fd, "dir/f", times, 0), 0);
	assert_int_equal(fchmodat(t->fd, "dir/f", 06751, 0), 0);
	make_file(t->fd, "empty", "");
	make_file(t->fd, "new\nline", "1");
	make_file(t->fd, "\xff\xc3(", "2");
	make_file(t->fd, "-tab\t", "3");
	make_file(t->fd, name, "4");
	assert_int_equal(symlinkat("../nowhere", t->fd, "dir/l"), 0);
	scan_ok(t->fd, &plain, &s);
	assert_int_equal(s.manifest->count, 8);
	assert_int_equal(s.hashed_files, 6);
	assert_int_equal(s.hashed_bytes, 9);
	assert_int_equal(s.n_skipped, 0);
	assert_content(&s, "dir/f", "hello");
	assert_int_equal(entry_of(&s, "dir/f")->mtime, -4876543211);
	assert_int_equal(entry_of(&s, "dir/f")->mode, 06751);
	assert_content(&s, "empty", "");
	assert_content(&s, "new\nline", "1");
	assert_content(&s, "\xff\xc3(", "2");
	assert_content(&s, "-tab\t", "3");
	assert_content(&s, name, "4");
	assert_string_equal(sb_entry_target(entry_of(&s, "dir/l")), "../nowhere");
	assert_int_equal(entry_of(&s, "dir/l")->type, SB_ENTRY_LINK);
	assert_int_equal(entry_of(&s, "dir/l")->size, 10);
	assert_int_equal(fstatat(t->fd, "dir", &st, 0), 0);
	assert_int_equal(entry_of(&s, "dir")->ino, st.st_ino);
	assert_int_equal(entry_of(&s, "dir")->dir->dev, st.st_dev);
	assert_int_equal(entry_of(&s, "dir")->mode, st.st_mode & 07777);
}

static void
long_targets_are_read_whole(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan a = { 0 }, b = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	char target[4096];

	memset(target, 'x', 4095);
	target[4095] = 0;
	/* Not every file system can: tmpfs and ext4 take 4095. */
	if (symlinkat(target, t->fd, "l") < 0)
		skip_because("this file system takes no link target of 4095 bytes");
	scan_ok(t->fd, &plain, &a);
	assert_string_equal(sb_entry_target(entry_of(&a, "l")), target);
	sb_scan_free(&a);
	scan_settled(t->fd, &plain, &a);
	o.cache = a.manifest;
	scan_ok(t->fd, &o, &b);
	assert_string_equal(sb_entry_target(entry_of(&b, "l")), target);
}

/* Content of every size around the buffer's borders. */
static void
every_length_is_hashed_right(void **state)
{
	struct tmpdir *t = *state;
	static const size_t sizes[] = { 1, 4095, 4096, 262143, 262144, 262145, 524288, 1000003,
		3145728 };
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	sb_autofree uint8_t *data = malloc(3145728);
	char name[32];

	assert_non_null(data);
	for (size_t i = 0; i < 3145728; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int f;

		(void)snprintf(name, sizeof name, "f%zu", sizes[i]);
		f = openat(t->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_int_equal(write(f, data, sizes[i]), sizes[i]);
		(void)close(f);
	}
	scan_ok(t->fd, &plain, &s);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct sb_digest d = sb_digest_of(data, sizes[i]);

		(void)snprintf(name, sizeof name, "f%zu", sizes[i]);
		assert_memory_equal(entry_of(&s, name)->digest.b, d.b, 16);
	}
	assert_int_equal(s.hashed_bytes,
		1 + 4095 + 4096 + 262143 + 262144 + 262145 + 524288 + 1000003 + 3145728);
}

static void
specials_are_counted(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char name[32];

	make_file(t->fd, "f", "x");
	assert_true((size_t)snprintf(sa.sun_path, sizeof sa.sun_path, "%s/sock", t->path) <
		sizeof sa.sun_path);
	assert_int_equal(bind(sock, (struct sockaddr *)&sa, sizeof sa), 0);
	(void)close(sock);
	make_dir(t->fd, "d");
	for (int i = 0; i < 1100; i++) {
		(void)snprintf(name, sizeof name, "d/fifo%d", i);
		assert_int_equal(mkfifoat(t->fd, name, 0644), 0);
	}
	scan_ok(t->fd, &plain, &s);
	assert_int_equal(s.manifest->count, 2);
	assert_int_equal(s.n_specials, 1101);
	assert_int_equal(s.n_skipped, 1000);
	for (size_t i = 0; i < s.n_skipped; i++) {
		assert_int_equal(s.skipped[i].reason, SB_SKIP_SPECIAL);
		if (i)
			assert_true(strcmp(s.skipped[i - 1].path, s.skipped[i].path) < 0);
	}
}

static void
unchanged_files_are_not_read_again(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan a = { 0 }, b = { 0 }, d = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *loaded = NULL;
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };

	make_dir(t->fd, "d");
	make_dir(t->fd, "d/e");
	make_file(t->fd, "d/e/f", "one");
	make_file(t->fd, "g", "two");
	make_file(t->fd, "d/h", "three");
	scan_settled(t->fd, &plain, &a);
	assert_int_equal(a.hashed_files, 3);
	o.cache = a.manifest;
	scan_ok(t->fd, &o, &b);
	assert_int_equal(b.hashed_files, 0);
	assert_memory_equal(b.manifest->id.b, a.manifest->id.b, 16);

	/* Through a file, with changes: only those are read. */
	assert_ok(sb_manifest_save(a.manifest, true, false, t->fd, "g.cache", &err), &err);
	loaded = sb_manifest_load(t->fd, "g.cache", &err);
	assert_non_null(loaded);
	assert_int_equal(unlinkat(t->fd, "g.cache", 0), 0);
	make_file(t->fd, "d/h", "threE");
	make_file(t->fd, "d/new", "4");
	assert_int_equal(unlinkat(t->fd, "d/e/f", 0), 0);
	o.cache = loaded;
	scan_ok(t->fd, &o, &d);
	assert_int_equal(d.hashed_files, 2);
	assert_content(&d, "d/h", "threE");
	assert_content(&d, "g", "two");
	assert_absent(&d, "d/e/f");
}

static void
spoil(struct sb_manifest *m, const char *path, unsigned flags)
{
	struct sb_entry *e = sb_manifest_find(m, path);

	e->digest = sb_digest_of("wrong", 5);
	e->flags |= flags & 0xf;
}

/* A wrong digest in the cache shows what is taken from it and what is not. */
static void
racy_and_foreign_cache_entries_are_not_trusted(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan a = { 0 }, b = { 0 }, d = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_digest wrong = sb_digest_of("wrong", 5);
	static const char *const names[] = { "ctime", "ino", "mode", "mtime", "racy", "size",
		"taken", "type", "unhashed" };

	for (size_t i = 0; i < 9; i++)
		make_file(t->fd, names[i], names[i]);
	scan_settled(t->fd, &plain, &a);
	for (size_t i = 0; i < 9; i++)
		spoil(a.manifest, names[i], 0);
	entry_of(&a, "ctime")->ctime++;
	entry_of(&a, "ino")->ino++;
	entry_of(&a, "mode")->mode ^= 1;
	entry_of(&a, "mtime")->mtime--;
	entry_of(&a, "racy")->flags |= SB_ENTRY_RACY;
	entry_of(&a, "size")->size++;
	entry_of(&a, "type")->type = SB_ENTRY_LINK;
	entry_of(&a, "unhashed")->flags |= SB_ENTRY_UNHASHED;
	o.cache = a.manifest;
	scan_ok(t->fd, &o, &b);
	assert_int_equal(b.hashed_files, 8);
	assert_memory_equal(entry_of(&b, "taken")->digest.b, wrong.b, 16);
	for (size_t i = 0; i < 9; i++) {
		if (strcmp(names[i], "taken") != 0)
			assert_content(&b, names[i], names[i]);
	}
	sb_scan_free(&b);
	o.checksum = true;
	scan_ok(t->fd, &o, &b);
	assert_content(&b, "taken", "taken");
	o.checksum = false;
	a.manifest->root.dir->dev++;
	scan_ok(t->fd, &o, &d);
	assert_content(&d, "taken", "taken");
}

static void
a_rewrite_with_the_same_size_and_mtime_is_noticed(void **state)
{
	struct tmpdir *t = *state;

	for (int i = 0; i < 20; i++) {
		sb_auto(sb_scan) struct sb_scan a = { 0 }, b = { 0 };
		struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
		struct stat st;
		int f;

		make_file(t->fd, "f", "old");
		scan_ok(t->fd, &plain, &a);
		assert_int_equal(entry_of(&a, "f")->flags, SB_ENTRY_RACY);
		assert_int_equal(fstatat(t->fd, "f", &st, 0), 0);
		f = openat(t->fd, "f", O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(f, "new", 3, 0), 3);
		times[1] = st.st_mtim;
		assert_int_equal(futimens(f, times), 0);
		(void)close(f);
		o.cache = a.manifest;
		scan_ok(t->fd, &o, &b);
		assert_content(&b, "f", "new");
	}
}

static void
a_time_in_the_future_is_not_racy_for_ever(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan a = { 0 }, b = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = 4000000000, .tv_nsec = 1 } };

	make_file(t->fd, "f", "x");
	assert_int_equal(utimensat(t->fd, "f", times, 0), 0);
	scan_settled(t->fd, &plain, &a);
	o.cache = a.manifest;
	scan_ok(t->fd, &o, &b);
	assert_int_equal(b.hashed_files, 0);
}

/* What was just written is racy whatever mtime it was given. */
static void
a_time_in_the_past_does_not_hide_a_change(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan a = { 0 };
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = 1000000000, .tv_nsec = 1 } };

	make_file(t->fd, "f", "x");
	assert_int_equal(utimensat(t->fd, "f", times, 0), 0);
	scan_ok(t->fd, &plain, &a);
	assert_int_equal(entry_of(&a, "f")->flags, SB_ENTRY_RACY);
}

static void
hard_links_are_grouped(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 }, again = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;

	make_dir(t->fd, "d");
	make_dir(t->fd, "a");
	make_file(t->fd, "z", "zz");
	make_file(t->fd, "p", "pp");
	assert_int_equal(linkat(t->fd, "z", t->fd, "d/z2", 0), 0);
	assert_int_equal(linkat(t->fd, "z", t->fd, "a/z3", 0), 0);
	assert_int_equal(linkat(t->fd, "p", t->fd, "q", 0), 0);
	make_file(t->fd, "lone", "pp");
	scan_settled(t->fd, &plain, &s);
	assert_int_equal(s.manifest->n_leaders, 2);
	assert_string_equal(s.manifest->leaders[0], "a/z3");
	assert_string_equal(s.manifest->leaders[1], "p");
	assert_int_equal(entry_of(&s, "a/z3")->link, 1);
	assert_int_equal(entry_of(&s, "d/z2")->link, 1);
	assert_int_equal(entry_of(&s, "z")->link, 1);
	assert_int_equal(entry_of(&s, "q")->link, 2);
	assert_int_equal(entry_of(&s, "lone")->link, 0);
	assert_int_equal(unlinkat(t->fd, "q", 0), 0);
	o.cache = s.manifest;
	scan_ok(t->fd, &o, &again);
	assert_int_equal(again.manifest->n_leaders, 1);
	assert_int_equal(entry_of(&again, "p")->link, 0);
}

static bool
wants_a(const char *path, const struct sb_entry *e, void *arg)
{
	(void)e;
	(void)arg;
	return path[0] == 'a';
}

static void
lazy_files_are_hashed_later(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 }, whole = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };

	make_dir(t->fd, "a");
	make_dir(t->fd, "b");
	make_file(t->fd, "a/1", "small");
	make_file(t->fd, "a/2", "small too");
	make_file(t->fd, "a/large", "this one is large");
	make_file(t->fd, "b/1", "b's");
	make_file(t->fd, "b/gone", "b's");
	assert_int_equal(linkat(t->fd, "a/1", t->fd, "z", 0), 0);
	o.lazy_below = 10;
	scan_ok(t->fd, &o, &s);
	assert_int_equal(s.unhashed, 5);
	assert_int_equal(s.hashed_files, 1);
	assert_content(&s, "a/large", "this one is large");
	assert_int_equal(entry_of(&s, "a/1")->flags & SB_ENTRY_UNHASHED, SB_ENTRY_UNHASHED);
	assert_ok(sb_scan_hash_rest(t->fd, &o, &s, wants_a, NULL, &err), &err);
	assert_int_equal(s.unhashed, 2);
	assert_content(&s, "a/1", "small");
	assert_content(&s, "a/2", "small too");
	/* Another name of a file that was wanted has the same digest, and stays linked to it. */
	assert_content(&s, "z", "small");
	assert_int_equal(entry_of(&s, "z")->link, 1);
	assert_int_equal(unlinkat(t->fd, "b/gone", 0), 0);
	make_file(t->fd, "b/1", "changed");
	assert_ok(sb_scan_hash_rest(t->fd, &o, &s, NULL, NULL, &err), &err);
	assert_int_equal(s.unhashed, 0);
	assert_content(&s, "b/1", "changed");
	assert_absent(&s, "b/gone");
	scan_ok(t->fd, &plain, &whole);
	entry_of(&s, "b")->mtime = entry_of(&whole, "b")->mtime;
	assert_ok(sb_manifest_finish(s.manifest, &err), &err);
	assert_memory_equal(whole.manifest->id.b, s.manifest->id.b, 16);
}

static void
our_own_and_locks_are_left_out(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 };

	make_dir(t->fd, SB_STAGE_NAME);
	make_file(t->fd, SB_STAGE_NAME "/x", "x");
	make_dir(t->fd, "d");
	make_dir(t->fd, "d/" SB_STAGE_NAME);
	make_dir(t->fd, "d/.git");
	make_dir(t->fd, "d/.git/refs");
	make_dir(t->fd, "d/.git/dir.lock");
	make_file(t->fd, "d/.git/index.lock", "x");
	make_file(t->fd, "d/.git/refs/x.lock", "x");
	make_file(t->fd, "d/.git/.lock", "x");
	make_file(t->fd, "yarn.lock", "x");
	scan_ok(t->fd, &plain, &s);
	assert_absent(&s, SB_STAGE_NAME);
	assert_absent(&s, "d/.git/index.lock");
	assert_non_null(entry_of(&s, "d/" SB_STAGE_NAME));
	assert_non_null(entry_of(&s, "d/.git/dir.lock"));
	assert_non_null(entry_of(&s, "d/.git/refs/x.lock"));
	assert_non_null(entry_of(&s, "yarn.lock"));
	assert_int_equal(s.n_skipped, 0);
}

static void
rules_are_applied_and_collected(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(&err), *bare = sb_rules_new(&err);
	sb_auto(sb_scan) struct sb_scan s = { 0 }, without = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;

	assert_non_null(r);
	assert_ok(sb_rules_add(r, SB_RULES_COMMAND, "*.o", &err), &err);
	assert_ok(sb_rules_add(bare, SB_RULES_COMMAND, "*.o", &err), &err);
	make_dir(t->fd, "src");
	make_dir(t->fd, "src/deep");
	make_dir(t->fd, "build");
	make_dir(t->fd, "src/build");
	make_file(t->fd, ".gitignore", "/build/\n*.tmp\n");
	make_file(t->fd, "src/.gitignore", "!keep.tmp\n");
	make_file(t->fd, "src/deep/.sbsyncignore", "secret\n");
	make_file(t->fd, "build/x", "x");
	make_file(t->fd, "src/build/x", "x");
	make_file(t->fd, "src/a.o", "x");
	make_file(t->fd, "src/a.tmp", "x");
	make_file(t->fd, "src/keep.tmp", "x");
	make_file(t->fd, "src/deep/secret", "x");
	make_file(t->fd, "src/secret", "x");
	o.rules = r;
	o.collect_gitignore = o.collect_sbsyncignore = true;
	scan_ok(t->fd, &o, &s);
	assert_absent(&s, "build");
	assert_absent(&s, "src/a.o");
	assert_absent(&s, "src/a.tmp");
	assert_absent(&s, "src/deep/secret");
	assert_content(&s, "src/keep.tmp", "x");
	assert_content(&s, "src/build/x", "x");
	assert_content(&s, "src/secret", "x");
	o.rules = bare;
	o.collect_gitignore = o.collect_sbsyncignore = false;
	scan_ok(t->fd, &o, &without);
	assert_absent(&without, "src/a.o");
	assert_content(&without, "src/a.tmp", "x");
	assert_content(&without, "build/x", "x");
	assert_content(&without, "src/deep/secret", "x");
}

static void
odd_ignore_files_do_no_harm(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(&err);
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	int f;

	assert_non_null(r);
	make_dir(t->fd, "fifo");
	make_dir(t->fd, "link");
	make_dir(t->fd, "dir");
	assert_int_equal(mkfifoat(t->fd, "fifo/.gitignore", 0644), 0);
	make_file(t->fd, "patterns", "f\n");
	assert_int_equal(symlinkat("../patterns", t->fd, "link/.gitignore"), 0);
	make_dir(t->fd, "dir/.gitignore");
	make_file(t->fd, "fifo/f", "x");
	make_file(t->fd, "link/f", "x");
	make_file(t->fd, "dir/f", "x");
	o.rules = r;
	o.collect_gitignore = true;
	scan_ok(t->fd, &o, &s);
	assert_content(&s, "fifo/f", "x");
	assert_content(&s, "link/f", "x");
	assert_content(&s, "dir/f", "x");
	sb_scan_free(&s);
	make_dir(t->fd, "big");
	f = openat(t->fd, "big/.gitignore", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(f, (1 << 20) + 1), 0);
	(void)close(f);
	assert_fails(sb_scan_run(t->fd, &o, &s, &err), SB_E_LIMIT, &err);
	assert_non_null(strstr(err.msg, "big/.gitignore"));
}

/* Compares with what lstat says, file by file. */
static unsigned
compare_tree(const struct sb_scan *s, int fd, const char *path)
{
	int sub = openat(fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(sub);
	const struct dirent *de;
	unsigned n = 0;

	assert_non_null(d);
	while ((de = readdir(d))) {
		char child[4096];
		const struct sb_entry *e;
		struct stat st;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		(void)snprintf(child, sizeof child, "%s%s%s", path, *path ? "/" : "", de->d_name);
		assert_int_equal(fstatat(fd, child, &st, AT_SYMLINK_NOFOLLOW), 0);
		e = entry_of(s, child);
		n++;
		assert_int_equal(e->mtime, st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
		assert_int_equal(e->ctime, st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec);
		assert_int_equal(e->ino, st.st_ino);
		assert_int_equal(e->mode, st.st_mode & 07777);
		assert_int_equal(e->type,
			S_ISDIR(st.st_mode)         ? SB_ENTRY_DIR :
				S_ISREG(st.st_mode) ? SB_ENTRY_FILE :
						      SB_ENTRY_LINK);
		if (S_ISDIR(st.st_mode))
			n += compare_tree(s, fd, child);
		else
			assert_int_equal(e->size, st.st_size);
	}
	(void)closedir(d);
	return n;
}

static void
any_number_of_threads_tells_the_same(void **state)
{
	struct tmpdir *t = *state;
	struct sb_digest id = { 0 };
	char path[128];

	for (int i = 0; i < 60; i++) {
		(void)snprintf(path, sizeof path, "d%d", i);
		make_dir(t->fd, path);
		for (int k = 0; k < i % 7; k++) {
			(void)snprintf(path, sizeof path, "d%d/sub%d", i, k);
			make_dir(t->fd, path);
			(void)snprintf(path, sizeof path, "d%d/sub%d/f", i, k);
			make_file(t->fd, path, path);
		}
	}
	/* More than one batch of files. */
	for (int i = 0; i < 300; i++) {
		(void)snprintf(path, sizeof path, "d7/file%d", i);
		make_file(t->fd, path, path);
	}
	for (unsigned jobs = 1; jobs <= 9; jobs++) {
		sb_auto(sb_scan) struct sb_scan s = { 0 };
		struct sb_scan_opts o = SB_SCAN_OPTS_INIT;

		o.jobs = jobs;
		scan_ok(t->fd, &o, &s);
		assert_int_equal(compare_tree(&s, t->fd, ""), s.manifest->count);
		assert_content(&s, "d7/file299", "d7/file299");
		if (jobs > 1)
			assert_memory_equal(id.b, s.manifest->id.b, 16);
		id = s.manifest->id;
	}
}

static void
note_progress(uint64_t entries, uint64_t bytes, uint64_t total, void *arg)
{
	uint64_t *seen = arg;

	seen[0] = entries;
	seen[1] = bytes;
	seen[2] = total;
}

static void
small_things(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	uint64_t seen[3] = { 0 };
	int file;

	make_file(t->fd, "f", "12345");
	o.progress = note_progress;
	o.progress_arg = seen;
	scan_ok(t->fd, &o, &s);
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 5);
	assert_int_equal(seen[2], 5);
	sb_scan_free(&s);
	/* An older caller, that knows of no options but the first. */
	seen[0] = 0;
	o.size = offsetof(struct sb_scan_opts, rules);
	scan_ok(t->fd, &o, &s);
	assert_int_equal(seen[0], 0);
	sb_scan_free(&s);
	file = openat(t->fd, "f", O_RDONLY | O_CLOEXEC);
	assert_true(sb_scan_run(file, &plain, &s, &err) < 0);
	assert_true(err.msg[0] != 0);
	(void)close(file);
	assert_string_equal(sb_scan_skip_text(SB_SKIP_MOUNT), "another file system");
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, tmpdir_setup, tmpdir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(entries_are_as_the_file_system_has_them),
		WITH_DIR(long_targets_are_read_whole),
		WITH_DIR(every_length_is_hashed_right),
		WITH_DIR(specials_are_counted),
		WITH_DIR(unchanged_files_are_not_read_again),
		WITH_DIR(racy_and_foreign_cache_entries_are_not_trusted),
		WITH_DIR(a_rewrite_with_the_same_size_and_mtime_is_noticed),
		WITH_DIR(a_time_in_the_future_is_not_racy_for_ever),
		WITH_DIR(a_time_in_the_past_does_not_hide_a_change),
		WITH_DIR(hard_links_are_grouped),
		WITH_DIR(lazy_files_are_hashed_later),
		WITH_DIR(our_own_and_locks_are_left_out),
		WITH_DIR(rules_are_applied_and_collected),
		WITH_DIR(odd_ignore_files_do_no_harm),
		WITH_DIR(any_number_of_threads_tells_the_same),
		WITH_DIR(small_things),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
