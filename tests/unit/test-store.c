/* SPDX-License-Identifier: MIT */
/*
 * The store of contents: what was flushed comes back, also after kill -9, and damage reads as
 * absence.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/file.h>
#include <sync/codec/store.h>

#include "tests/lib/tmpdir.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

static struct sb_store *
open_store(int fd, uint64_t cap)
{
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_store *s;

	if (cap)
		o.cap = cap;
	s = sb_store_open(fd, &o, &err);
	if (!s)
		fail_msg("sb_store_open: %s", err.msg);
	return s;
}

/* ---- contents ---- */

#define CONTENT_MAX 300000u

/*
 * Content `i`: of a length and bytes of its own; every 50th is large. Some of it shrinks.
 */
static size_t
content(uint32_t i, uint8_t *out)
{
	size_t len = i % 50 == 49 ? 70000 + i % 1000 : (i * 2654435761u >> 7) % 9000;
	uint32_t x = i * 2654435761u + 1;

	for (size_t k = 0; k < len; k++) {
		if (k % 4 == 0) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
		}
		out[k] = (uint8_t)(x >> 11);
	}
	return len;
}

static void
put(struct sb_store *s, uint32_t i)
{
	static __thread uint8_t data[CONTENT_MAX];
	size_t len = content(i, data);
	struct sb_digest d = sb_digest_of(data, len);
	struct sb_error err = { 0 };

	assert_ok(sb_store_add(s, &d, data, len, &err), &err);
}

/* 1: there and right; 0: not there. Anything else fails the test. */
static int
look(struct sb_store *s, uint32_t i)
{
	static __thread uint8_t data[CONTENT_MAX];
	size_t len = content(i, data);
	struct sb_digest d = sb_digest_of(data, len);
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf got;
	int r = sb_store_get(s, &d, &got, &err);

	if (r == SB_E_NOTFOUND)
		return 0;
	if (r < 0)
		fail_msg("get: %d %s", r, err.msg);
	assert_int_equal(got.len, len);
	assert_memory_equal(got.data, data, len);
	assert_true(sb_store_has(s, &d));
	return 1;
}

static size_t
count(struct sb_store *s, uint32_t from, uint32_t to)
{
	size_t n = 0;

	for (uint32_t i = from; i < to; i++)
		n += (size_t)look(s, i);
	return n;
}

/* ---- tests ---- */

static void
contents_come_back_at_once_and_later(void **state)
{
	struct tmpdir *p = *state;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, 0);

	for (uint32_t i = 0; i < 2000; i++) {
		put(s, i);
		assert_int_equal(look(s, i), 1);
		if (i >= 100)
			assert_int_equal(look(s, i - 100), 1);
	}
	assert_int_equal(look(s, 2000), 0);
	assert_ok(sb_store_flush(s, NULL, NULL, &err), &err);
	assert_int_equal(count(s, 0, 2000), 2000);
	put(s, 2000); /* written by free */
	sb_store_free(s);
	s = open_store(p->fd, 0);
	assert_int_equal(count(s, 0, 2001), 2001);
	sb_store_free(s);
}

static void
same_content_is_kept_once(void **state)
{
	struct tmpdir *p = *state;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, 0);
	uint64_t once;

	for (uint32_t i = 0; i < 300; i++)
		put(s, i);
	assert_ok(sb_store_flush(s, NULL, NULL, &err), &err);
	once = sb_store_bytes(s);
	assert_true(once > 0);
	for (uint32_t i = 0; i < 300; i++)
		put(s, i);
	assert_ok(sb_store_flush(s, NULL, NULL, &err), &err);
	assert_int_equal(sb_store_bytes(s), once);
	sb_store_free(s);
}

static void
what_is_too_large_is_left_out(void **state)
{
	struct tmpdir *p = *state;
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_store *s;
	uint8_t data[100] = { 1 };
	struct sb_digest d = sb_digest_of(data, 100), e = sb_digest_of(data, 99);

	o.max_file = 99;
	s = sb_store_open(p->fd, &o, &err);
	assert_non_null(s);
	assert_ok(sb_store_add(s, &d, data, 100, &err), &err);
	assert_ok(sb_store_add(s, &e, data, 99, &err), &err);
	assert_false(sb_store_has(s, &d));
	assert_true(sb_store_has(s, &e));
	sb_store_free(s);
}

static void
empty_and_large_contents_work(void **state)
{
	struct tmpdir *p = *state;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, 0);
	struct sb_digest none = sb_digest_of("", 0), big;
	size_t len = 5 << 20;
	sb_autofree uint8_t *data = calloc(1, len);
	sb_auto(sb_buf) struct sb_buf got;

	assert_non_null(data);
	for (size_t i = 0; i < len; i += 7)
		data[i] = (uint8_t)(i * i >> 8);
	big = sb_digest_of(data, len);
	assert_ok(sb_store_add(s, &none, NULL, 0, &err), &err);
	assert_ok(sb_store_add(s, &big, data, len, &err), &err);
	sb_store_free(s);
	s = open_store(p->fd, 0);
	assert_ok(sb_store_get(s, &none, &got, &err), &err);
	assert_int_equal(got.len, 0);
	sb_buf_free(&got);
	assert_ok(sb_store_get(s, &big, &got, &err), &err);
	assert_int_equal(got.len, len);
	assert_memory_equal(got.data, data, len);
	sb_store_free(s);
}

static void
cap_lets_the_oldest_go(void **state)
{
	struct tmpdir *p = *state;
	uint64_t cap = 2 << 20;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, cap);
	size_t last;

	for (uint32_t i = 0; i < 3000; i++) {
		put(s, i);
		assert_true(sb_store_bytes(s) <= cap + cap / 2);
	}
	assert_ok(sb_store_flush(s, NULL, NULL, &err), &err);
	assert_true(sb_store_bytes(s) <= cap);
	assert_true(sb_store_bytes(s) >= cap / 2);
	assert_int_equal(count(s, 0, 1000), 0);
	last = count(s, 2800, 3000);
	assert_int_equal(last, 200);
	sb_store_free(s);
	s = open_store(p->fd, cap);
	assert_int_equal(count(s, 2800, 3000), last);
	sb_store_free(s);
	/* A smaller cap applies to what is there. */
	s = open_store(p->fd, 300000);
	assert_ok(sb_store_flush(s, NULL, NULL, &err), &err);
	assert_true(sb_store_bytes(s) <= 300000);
	(void)count(s, 0, 3000);
	sb_store_free(s);
}

struct live_set {
	struct sb_digest *d;
	size_t n;
};

static bool
is_live(const struct sb_digest *d, void *arg)
{
	const struct live_set *l = arg;

	for (size_t i = 0; i < l->n; i++)
		if (sb_digest_eq(&l->d[i], d))
			return true;
	return false;
}

/* Every 20th of the first `n`. */
static struct live_set
live_every_20th(uint32_t n)
{
	struct live_set l = { calloc(n / 20 + 1, sizeof *l.d), 0 };
	static uint8_t data[CONTENT_MAX];

	assert_non_null(l.d);
	for (uint32_t i = 0; i < n; i += 20)
		l.d[l.n++] = sb_digest_of(data, content(i, data));
	return l;
}

static void
wanted_contents_outlive_others(void **state)
{
	struct tmpdir *p = *state;
	uint64_t cap = 3 << 20;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, cap);
	struct live_set l = live_every_20th(600);

	for (uint32_t i = 0; i < 600; i++)
		put(s, i);
	for (uint32_t i = 10000; i < 14000; i += 100) {
		assert_ok(sb_store_flush(s, is_live, &l, &err), &err);
		for (uint32_t k = 0; k < 50; k++)
			put(s, i + k);
	}
	assert_ok(sb_store_flush(s, is_live, &l, &err), &err);
	assert_true(sb_store_bytes(s) <= cap);
	for (uint32_t i = 0; i < 600; i += 20)
		assert_int_equal(look(s, i), 1);
	sb_store_free(s);
	s = open_store(p->fd, cap);
	for (uint32_t i = 0; i < 600; i += 20)
		assert_int_equal(look(s, i), 1);
	sb_store_free(s);
	free(l.d);
}

static void
mostly_dead_store_shrinks(void **state)
{
	struct tmpdir *p = *state;
	struct sb_error err = { 0 };
	struct sb_store *s = open_store(p->fd, 0);
	struct live_set l = live_every_20th(3000);
	uint64_t before;

	for (uint32_t i = 0; i < 3000; i++)
		put(s, i);
	before = sb_store_bytes(s);
	assert_true(before > 4 << 20);
	assert_ok(sb_store_flush(s, is_live, &l, &err), &err);
	assert_true(sb_store_bytes(s) < before / 4);
	for (uint32_t i = 0; i < 3000; i += 20)
		assert_int_equal(look(s, i), 1);
	sb_store_free(s);
	free(l.d);
}

/* ---- damage ---- */

static void
each_file(int dirfd, const char *prefix, void (*fn)(int fd, off_t size, void *arg), void *arg)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	struct stat st;

	assert_non_null(d);
	while ((e = readdir(d))) {
		int f;

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		f = openat(dirfd, e->d_name, O_RDWR | O_CLOEXEC);
		assert_true(f >= 0 && fstat(f, &st) == 0);
		fn(f, st.st_size, arg);
		(void)close(f);
	}
	(void)closedir(d);
}

struct flip {
	unsigned step, at;
};

static void
flip_bytes(int fd, off_t size, void *arg)
{
	const struct flip *f = arg;

	for (off_t at = f->at; at < size; at += f->step) {
		uint8_t b;

		assert_int_equal(pread(fd, &b, 1, at), 1);
		b ^= 0x41;
		assert_int_equal(pwrite(fd, &b, 1, at), 1);
	}
}

static void
cut_file(int fd, off_t size, void *arg)
{
	assert_int_equal(ftruncate(fd, size * *(int *)arg / 100), 0);
}

static void
grow_file(int fd, off_t size, void *arg)
{
	(void)arg;
	assert_int_equal(pwrite(fd, "SBF1\1\0\0\0\1\0\0\0\1\0\0\0", 16, size), 16);
}

static void
fill_store(int dirfd)
{
	struct sb_store *s = open_store(dirfd, 0);

	for (uint32_t i = 0; i < 1500; i++)
		put(s, i);
	sb_store_free(s);
}

static void
fill_store_again(int dirfd)
{
	struct sb_store *s = open_store(dirfd, 0);

	(void)count(s, 0, 1500); /* notices what is damaged */
	for (uint32_t i = 0; i < 1500; i++)
		put(s, i);
	sb_store_free(s);
}

static void
empty_dir(struct tmpdir *p)
{
	tmpdir_remove(p);
	tmpdir_make(p);
}

/* After any damage: right or not there, and contents can be added again. */
static size_t
check_damaged(struct tmpdir *p)
{
	static uint32_t from = 100000;
	struct sb_store *s = open_store(p->fd, 0);
	size_t left = count(s, 0, 1500);

	from += 300;
	for (uint32_t i = from; i < from + 300; i++)
		put(s, i);
	sb_store_free(s);
	s = open_store(p->fd, 0);
	assert_int_equal(count(s, from, from + 300), 300);
	sb_store_free(s);
	return left;
}

static void
damage_reads_as_absence(void **state)
{
	struct tmpdir *p = *state;
	static const int percents[] = { 0, 1, 33, 50, 99 };
	struct flip dense = { 4096, 77 }, sparse = { 1 << 20, 5000 };
	struct sb_store *s;

	fill_store(p->fd);
	assert_int_equal(check_damaged(p), 1500);
	each_file(p->fd, "pack-", flip_bytes, &sparse);
	assert_in_range(check_damaged(p), 1200, 1499);
	each_file(p->fd, "pack-", flip_bytes, &dense);
	assert_in_range(check_damaged(p), 0, 1000);
	/* What was found damaged can be added again, and is there then. */
	fill_store_again(p->fd);
	s = open_store(p->fd, 0);
	assert_int_equal(count(s, 0, 1500), 1500);
	sb_store_free(s);
	for (size_t i = 0; i < N(percents); i++) {
		empty_dir(p);
		fill_store(p->fd);
		each_file(p->fd, "pack-", cut_file, (void *)&percents[i]);
		assert_in_range(check_damaged(p), percents[i] > 9 ? percents[i] * 13 : 0,
			percents[i] * 15 + 15);
	}
	empty_dir(p);
	fill_store(p->fd);
	each_file(p->fd, "pack-", grow_file, NULL);
	assert_int_equal(check_damaged(p), 1500);
}

static void
damaged_index_is_made_anew(void **state)
{
	struct tmpdir *p = *state;
	static const int percents[] = { 0, 50, 99 };
	struct stat st;

	fill_store(p->fd);
	assert_int_equal(fstatat(p->fd, "index", &st, 0), 0);
	for (unsigned at = 0; at < 200; at += 7) {
		struct flip f = { 1 << 30, at };

		each_file(p->fd, "index", flip_bytes, &f);
		assert_int_equal(check_damaged(p), 1500);
	}
	for (size_t i = 0; i < N(percents); i++) {
		each_file(p->fd, "index", cut_file, (void *)&percents[i]);
		assert_int_equal(check_damaged(p), 1500);
	}
	(void)unlinkat(p->fd, "index", 0);
	assert_int_equal(check_damaged(p), 1500);
}

/* An index from before the segments were replaced must not be believed. */
static void
foreign_index_does_no_harm(void **state)
{
	struct tmpdir *p = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf old;
	struct sb_store *s;

	fill_store(p->fd);
	assert_ok(sb_file_read(p->fd, "index", 1 << 24, &old, &err), &err);
	empty_dir(p);
	s = open_store(p->fd, 0);
	for (uint32_t i = 9000; i < 11000; i++)
		put(s, i);
	sb_store_free(s);
	assert_ok(sb_file_replace(p->fd, "index", old.data, old.len, 0600, &err), &err);
	s = open_store(p->fd, 0);
	(void)count(s, 0, 1500);
	(void)count(s, 9000, 11000);
	sb_store_free(s);
	(void)check_damaged(p);
}

static void
odd_files_in_the_directory(void **state)
{
	struct tmpdir *p = *state;
	struct stat st;

	assert_int_equal(mkdirat(p->fd, "pack-00000001", 0700), 0);
	assert_int_equal(mkdirat(p->fd, "pack-00000007", 0700), 0);
	assert_int_equal(symlinkat("/etc/passwd", p->fd, "pack-00000008"), 0);
	assert_int_equal(mkfifoat(p->fd, "pack-00000009", 0600), 0);
	assert_int_equal(symlinkat("/etc/passwd", p->fd, "index"), 0);
	assert_int_equal(symlinkat("/etc/passwd", p->fd, "pack-zzz"), 0);
	fill_store(p->fd);
	assert_int_equal(check_damaged(p), 1500);
	assert_int_equal(fstatat(p->fd, "pack-zzz", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(stat("/etc/passwd", &st), 0);
	assert_true(st.st_size > 0);
}

/* ---- threads, kills ---- */

struct part {
	struct sb_store *s;
	uint32_t from, to;
};

static void *
add_and_look(void *arg)
{
	struct part *part = arg;

	for (uint32_t i = part->from; i < part->to; i++) {
		put(part->s, i);
		assert_int_equal(look(part->s, i), 1);
		(void)look(part->s, i / 2);
		if (i % 200 == 0)
			(void)sb_store_flush(part->s, NULL, NULL, NULL);
	}
	return NULL;
}

static void
threads_share_a_store(void **state)
{
	struct tmpdir *p = *state;
	struct part parts[4];
	pthread_t t[4];
	struct sb_store *s = open_store(p->fd, 0);

	for (uint32_t i = 0; i < 4; i++) {
		/* neighbours overlap */
		parts[i] = (struct part){ s, i * 300, i * 300 + 450 };
		assert_int_equal(pthread_create(&t[i], NULL, add_and_look, &parts[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(count(s, 0, 1350), 1350);
	sb_store_free(s);
	s = open_store(p->fd, 0);
	assert_int_equal(count(s, 0, 1350), 1350);
	sb_store_free(s);
}

/* Adds for ever, saying in `flushed` what is safe. */
static void
child_adds(int dirfd, volatile uint32_t *flushed, uint32_t from, uint64_t cap)
{
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	static uint8_t data[CONTENT_MAX];
	struct sb_store *s;

	o.cap = cap;
	s = sb_store_open(dirfd, &o, NULL);
	if (!s)
		_exit(1);
	for (uint32_t i = from;; i++) {
		size_t len = content(i, data);
		struct sb_digest d = sb_digest_of(data, len);

		if (sb_store_add(s, &d, data, len, NULL) < 0)
			_exit(1);
		if (i % 64 != 0)
			continue;
		if (sb_store_flush(s, NULL, NULL, NULL) < 0)
			_exit(1);
		*flushed = i + 1;
	}
}

static void
kill_rounds(struct tmpdir *p, uint64_t cap, bool all_stays)
{
	volatile uint32_t *flushed =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = 12345;
	uint32_t from = 0;

	assert_true(flushed != MAP_FAILED);
	for (int round = 0; round < 25; round++) {
		struct sb_store *s;
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			child_adds(p->fd, flushed, from, cap);
		(void)usleep((useconds_t)(rand_r(&seed) % 40000));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		s = open_store(p->fd, cap);
		if (all_stays)
			assert_int_equal(count(s, 0, *flushed), *flushed);
		(void)count(s, *flushed > 300 ? *flushed - 300 : 0, *flushed + 300);
		sb_store_free(s);
		from = *flushed;
	}
	assert_true(*flushed > 0);
	(void)munmap((void *)flushed, 4096);
}

static void
kills_while_adding_lose_nothing_flushed(void **state)
{
	kill_rounds(*state, 1 << 30, true);
}

static void
kills_while_cleaning_do_no_harm(void **state)
{
	kill_rounds(*state, 1 << 20, false);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		T(contents_come_back_at_once_and_later),
		T(same_content_is_kept_once),
		T(what_is_too_large_is_left_out),
		T(empty_and_large_contents_work),
		T(cap_lets_the_oldest_go),
		T(wanted_contents_outlive_others),
		T(mostly_dead_store_shrinks),
		T(damage_reads_as_absence),
		T(damaged_index_is_made_anew),
		T(foreign_index_does_no_harm),
		T(odd_files_in_the_directory),
		T(threads_share_a_store),
		T(kills_while_adding_lose_nothing_flushed),
		T(kills_while_cleaning_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
