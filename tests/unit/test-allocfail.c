/* SPDX-License-Identifier: MIT */
/*
 * What test-nomem.c does not see: allocations that libc makes for us (opendir) fail, too, and
 * descriptors are counted. The first, second, third ... allocation of a scenario fails until one
 * run needs none that fails. Every run must end well or with SB_E_NOMEM, and leave neither a
 * descriptor nor a block behind.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/spawn.h>
#include <sb/cancel.h>

#include "tests/lib/tmpdir.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_MALLOC 1
#endif

#ifndef OWN_MALLOC

/* Counts down to the allocation that fails; 0: none does. */
static atomic_long fail_in;
static atomic_long live;

/* The program's malloc goes before libc's, also for calls from inside libc. */
#define INTERPOSED __attribute__((visibility("default")))
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);
INTERPOSED void *malloc(size_t size);
INTERPOSED void *calloc(size_t n, size_t size);
INTERPOSED void *realloc(void *p, size_t size);
INTERPOSED void free(void *p);

static bool
refuse(void)
{
	if (!atomic_load(&fail_in) || atomic_fetch_sub(&fail_in, 1) != 1)
		return false;
	errno = ENOMEM;
	return true;
}

static void *
counted(void *p)
{
	if (p)
		(void)atomic_fetch_add(&live, 1);
	return p;
}

void *
malloc(size_t size)
{
	return refuse() ? NULL : counted(__libc_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
	return refuse() ? NULL : counted(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
	if (refuse())
		return NULL;
	return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}

void
free(void *p)
{
	if (p)
		(void)atomic_fetch_sub(&live, 1);
	__libc_free(p);
}

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static const struct tmpdir *dir;

static int
use_cancel(struct sb_error *err)
{
	struct sb_cancel *c = sb_cancel_new(err);

	sb_cancel_free(c);
	return c ? 0 : SB_E_NOMEM;
}

static int
use_files(struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	static const char data[100000];
	char path[400];
	int r = sb_file_replace(dir->fd, "d/f", data, sizeof data, 0600, err);

	sb_buf_init(&b, 0);
	if (r >= 0)
		r = sb_file_read(dir->fd, "d/f", sizeof data, &b, err);
	if (r >= 0 && (b.len != sizeof data || b.data[5]))
		return SB_E_CORRUPT;
	sb_buf_free(&b);
	if (r >= 0)
		r = sb_file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &b, err);
	(void)snprintf(path, sizeof path, "%s/x/y/z", dir->path);
	return r < 0 ? r : sb_file_mkdirs(path, 0700, err);
}

static int
use_paths(struct sb_error *err)
{
	char deep[120];
	struct stat st;
	int r;

	memset(deep, 'd', sizeof deep);
	for (size_t i = 1; i < sizeof deep; i += 2)
		deep[i] = i + 1 < sizeof deep ? '/' : 0;
	r = sb_path_mkdirs(dir->fd, deep, 0755, err);
	if (r >= 0)
		r = sb_path_stat(dir->fd, deep, &st, err);
	if (r >= 0)
		r = sb_path_remove_tree(dir->fd, "d", err);
	return r < 0 ? r : sb_path_mkdirs(dir->fd, "d", 0755, err);
}

static int
use_children(struct sb_error *err)
{
	static const char *const argv[] = { "sh", "-c", "cat; echo oops >&2; exit 3", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf eout;
	int r;

	o.search_path = true;
	sb_buf_init(&out, 100);
	sb_buf_init(&eout, 100);
	r = sb_child_run(argv, &o, "hello", 5, &out, &eout, NULL, sb_deadline_in(60000), err);
	if (r >= 0 &&
		(r != 3 || strcmp((char *)out.data, "hello") ||
			strcmp((char *)eout.data, "oops\n")))
		return SB_E_CORRUPT;
	return r;
}

static void
survives(const char *name, int (*scenario)(struct sb_error *err))
{
	struct sb_error err = { 0 };
	long n;

	/* Once without failures, so that what libc keeps for itself is there already. */
	assert_true(scenario(&err) >= 0);
	for (n = 1; n < 10000; n++) {
		int fds = count_fds();
		long blocks = atomic_load(&live);
		bool reached;
		int r;

		atomic_store(&fail_in, n);
		r = scenario(&err);
		reached = atomic_load(&fail_in) <= 0;
		atomic_store(&fail_in, 0);
		if (r < 0 && (!reached || r != SB_E_NOMEM))
			fail_msg("%s, allocation %ld: %d %s", name, n, r, err.msg);
		if (atomic_load(&live) != blocks)
			fail_msg("%s, allocation %ld: %ld blocks left", name, n,
				atomic_load(&live) - blocks);
		if (count_fds() != fds)
			fail_msg("%s, allocation %ld: %d descriptors left", name, n,
				count_fds() - fds);
		if (!reached)
			break;
	}
	print_message("%s: %ld allocations\n", name, n - 1);
	/* A scenario without any would prove nothing. */
	assert_in_range(n, 2, 9999);
}

static int
setup(void **state)
{
	struct sb_error err = { 0 };
	int r = tmpdir_setup(state);

	dir = *state;
	return r ? r : sb_path_mkdirs(dir->fd, "d", 0755, &err);
}

#define SURVIVES(what) \
	static void what##_survive(void **state) \
	{ \
		(void)state; \
		survives(#what, use_##what); \
	}
SURVIVES(cancel)
SURVIVES(files)
SURVIVES(paths)
SURVIVES(children)

int
main(void)
{
#define IN_TMPDIR(fn) cmocka_unit_test_setup_teardown(fn, setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		IN_TMPDIR(cancel_survive),
		IN_TMPDIR(files_survive),
		IN_TMPDIR(paths_survive),
		IN_TMPDIR(children_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
	(void)puts("1..0 # SKIP a sanitizer or another libc has its own malloc");
	return 0;
}

#endif
