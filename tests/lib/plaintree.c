/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/plaintree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>

#include "tests/lib/unit.h"

void
plaintree_paths_free(struct plaintree_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i]);
	p->n = 0;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
plaintree_walk(int root, const char *at, bool dirs, struct plaintree_paths *out)
{
	int fd = sb_path_open(root, at, O_RDONLY | O_DIRECTORY, 0, NULL);
	struct dirent *e;
	DIR *d;

	assert_true(fd >= 0);
	d = fdopendir(fd);
	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[4000];
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof path, "%s%s%s", at, *at ? "/" : "", e->d_name);
		assert_int_equal(fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (!dirs || S_ISDIR(st.st_mode)) {
			assert_true(out->n < 1000);
			out->v[out->n++] = strdup(path);
		}
		if (S_ISDIR(st.st_mode))
			plaintree_walk(root, path, dirs, out);
	}
	(void)closedir(d);
	if (!*at)
		qsort(out->v, out->n, sizeof out->v[0], by_text);
}

size_t
plaintree_content(int root, const char *path, char out[PLAINTREE_BYTES])
{
	int fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, out, PLAINTREE_BYTES);
	assert_true(n >= 0);
	(void)close(fd);
	return (size_t)n;
}

static bool
same_file(int a, int b, const char *path)
{
	static char x[64 * BYTES_MAX], y[64 * BYTES_MAX];
	size_t n = plaintree_content(a, path, x), m = plaintree_content(b, path, y);

	return n == m && memcmp(x, y, n) == 0;
}

const char *
plaintree_entry_differs(int real, int model, const char *path)
{
	static char why[4200];
	struct stat a, b;
	char x[4096] = "", y[4096] = "";

	if (fstatat(real, path, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(model, path, &b, AT_SYMLINK_NOFOLLOW) < 0)
		return "it is missing";
	if (a.st_mode != b.st_mode || a.st_uid != b.st_uid || a.st_gid != b.st_gid) {
		(void)snprintf(why, sizeof why, "mode %o, want %o", a.st_mode, b.st_mode);
		return why;
	}
	if (a.st_mtim.tv_sec != b.st_mtim.tv_sec || a.st_mtim.tv_nsec != b.st_mtim.tv_nsec) {
		(void)snprintf(why, sizeof why, "mtime %lld.%ld, want %lld.%ld",
			(long long)a.st_mtim.tv_sec, a.st_mtim.tv_nsec, (long long)b.st_mtim.tv_sec,
			b.st_mtim.tv_nsec);
		return why;
	}
	if (S_ISREG(a.st_mode) && !same_file(real, model, path))
		return "its content";
	if (S_ISLNK(a.st_mode) &&
		(readlinkat(real, path, x, sizeof x - 1) < 0 ||
			readlinkat(model, path, y, sizeof y - 1) < 0 || strcmp(x, y) != 0))
		return "where it points";
	return NULL;
}

void
plaintree_assert_same(int real, int model, const char *what)
{
	struct plaintree_paths a = { .n = 0 }, b = { .n = 0 };
	size_t i;

	plaintree_walk(real, "", false, &a);
	plaintree_walk(model, "", false, &b);
	for (i = 0; i < a.n && i < b.n; i++) {
		const char *why;

		if (strcmp(a.v[i], b.v[i]) != 0)
			fail_msg("%s: has %s where the model has %s", what, a.v[i], b.v[i]);
		why = plaintree_entry_differs(real, model, a.v[i]);
		if (why)
			fail_msg("%s: %s: %s", what, a.v[i], why);
	}
	if (a.n != b.n)
		fail_msg("%s: %s is only in the %s", what, i < a.n ? a.v[i] : b.v[i],
			i < a.n ? "storage" : "model");
	if (plaintree_entry_differs(real, model, "."))
		fail_msg("%s: root: %s", what, plaintree_entry_differs(real, model, "."));
	plaintree_paths_free(&a);
	plaintree_paths_free(&b);
}
