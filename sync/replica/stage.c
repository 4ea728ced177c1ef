/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/stage.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <sync/replica/commit.h>
#include <sync/tree/hash.h>
#include <sync/scan/scan.h>
#include <sync/tree/stage-names.h>

#define MAX_LEFTOVERS 2000000u

static int
remember(struct sb_stage *s, size_t *cap, const struct sb_leftover *l, struct sb_error *err)
{
	if (s->n_left == *cap) {
		size_t c = *cap ? *cap * 2 : 256;
		struct sb_leftover *v = realloc(s->left, c * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
		s->left = v;
		*cap = c;
	}
	s->left[s->n_left++] = *l;
	return 0;
}

/* One directory of the stage: files are hashed, directories appended to `todo`. */
static int
look_into(struct sb_stage *s, const char *dir, struct sb_strlist *todo, size_t *cap,
	struct sb_error *err)
{
	int fd = sb_path_open(s->fd, dir, O_RDONLY | O_DIRECTORY, 0, err);
	sb_autoclosedir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd < 0)
		return fd == SB_E_NOTFOUND ? 0 : fd;
	if (!d) {
		(void)close(fd);
		return sb_fail_errno(err, "read the stage");
	}
	while ((e = readdir(d))) {
		struct sb_leftover l = { 0 };
		struct stat st;
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			/* Staged directories may have got their final mode already. */
			(void)fchmodat(fd, e->d_name, 0700, 0);
			sb_strlist_addf(todo, "%s/%s", dir, e->d_name);
			continue;
		}
		if (!S_ISREG(st.st_mode) || st.st_size == 0 || s->n_left >= MAX_LEFTOVERS)
			continue;
		if ((st.st_mode & 0400) == 0)
			(void)fchmodat(fd, e->d_name, 0600, 0);
		if (sb_hash_file(fd, e->d_name, &l.digest, NULL) < 0)
			continue;
		l.size = (uint64_t)st.st_size;
		l.path = sb_str_printf("%s/%s", dir, e->d_name);
		r = l.path ? remember(s, cap, &l, err) :
			     sb_fail(err, SB_E_NOMEM, "stage: out of memory");
		if (r < 0) {
			free(l.path);
			return r;
		}
	}
	return sb_strlist_check(todo, err);
}

static int
by_digest(const void *a, const void *b)
{
	return memcmp(((const struct sb_leftover *)a)->digest.b,
		((const struct sb_leftover *)b)->digest.b, 16);
}

int
sb_stage_find(int rootfd, const struct sb_cancel *cancel, struct sb_stage **out,
	struct sb_error *err)
{
	sb_auto(sb_stage) struct sb_stage *s = calloc(1, sizeof *s);
	sb_auto(sb_strlist) struct sb_strlist todo = { 0 };
	size_t cap = 0;
	int r;

	if (!s)
		return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
	s->fd = s->newfd = -1;
	if (rootfd >= 0)
		s->fd = openat(rootfd, SB_STAGE_NAME,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd >= 0) {
		sb_strlist_add(&todo, SB_STAGE_OLD);
		sb_strlist_add(&todo, SB_STAGE_NEW);
		r = sb_strlist_check(&todo, err);
		for (size_t i = 0; r == 0 && i < todo.n; i++) {
			r = sb_check_alive(cancel, SB_NEVER, "look at the stage", err);
			if (r == 0)
				r = look_into(s, todo.v[i], &todo, &cap, err);
		}
		if (r < 0)
			return r;
		if (s->n_left)
			qsort(s->left, s->n_left, sizeof *s->left, by_digest);
	}
	*out = sb_steal(&s);
	return 0;
}

/* What is in "new" goes to "old/N"; paths of leftovers follow. */
static int
set_aside(struct sb_stage *s, struct sb_error *err)
{
	char name[32];
	struct stat st;

	if (fstatat(s->fd, SB_STAGE_NEW, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "look at the stage");
	if (mkdirat(s->fd, SB_STAGE_OLD, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make the stage");
	for (unsigned i = 0; i < 100000; i++) {
		(void)snprintf(name, sizeof name, SB_STAGE_OLD "/%u", i);
		if (renameat2(s->fd, SB_STAGE_NEW, s->fd, name, 1) == 0)
			break;
		if (errno == EINVAL && fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno == ENOENT && renameat(s->fd, SB_STAGE_NEW, s->fd, name) == 0)
			break;
		if (errno != EEXIST && errno != ENOTEMPTY)
			return sb_fail_errno(err, "set aside what an interrupted sync left");
	}
	for (size_t i = 0; i < s->n_left; i++) {
		const char *rest = s->left[i].path;
		char *moved;

		if (strncmp(rest, SB_STAGE_NEW "/", 4) != 0)
			continue;
		moved = sb_str_printf("%s/%s", name, rest + 4);
		if (!moved)
			return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
		free(s->left[i].path);
		s->left[i].path = moved;
	}
	return 0;
}

int
sb_stage_begin(int rootfd, struct sb_stage *s, struct sb_error *err)
{
	int r;

	if (s->newfd >= 0)
		return 0;
	if (s->fd < 0) {
		struct stat st;

		if (mkdirat(rootfd, SB_STAGE_NAME, 0700) < 0 && errno != EEXIST) {
			if (errno != EACCES || fstat(rootfd, &st) < 0 ||
				fchmod(rootfd, st.st_mode | 0700) < 0 ||
				mkdirat(rootfd, SB_STAGE_NAME, 0700) < 0)
				return sb_fail_errno(err, "make the stage directory %s",
					SB_STAGE_NAME);
		}
		s->fd = openat(rootfd, SB_STAGE_NAME,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (s->fd < 0)
			return sb_fail_errno(err, "open the stage directory %s", SB_STAGE_NAME);
	}
	r = set_aside(s, err);
	if (r < 0)
		return r;
	if (mkdirat(s->fd, SB_STAGE_NEW, 0700) < 0)
		return sb_fail_errno(err, "make the stage");
	s->newfd = openat(s->fd, SB_STAGE_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->newfd < 0)
		return sb_fail_errno(err, "open the stage");
	return 0;
}

void
sb_stage_free(struct sb_stage *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_left; i++)
		free(s->left[i].path);
	free(s->left);
	if (s->newfd >= 0)
		(void)close(s->newfd);
	if (s->fd >= 0)
		(void)close(s->fd);
	free(s);
}

char *
sb_stage_name(char kind, uint32_t n, char *buf)
{
	(void)snprintf(buf, 16, "%c%u", kind, n);
	return buf;
}

struct sb_leftover *
sb_stage_lookup(struct sb_stage *s, const struct sb_digest *d)
{
	struct sb_leftover key = { .digest = *d };

	return s->n_left ? bsearch(&key, s->left, s->n_left, sizeof *s->left, by_digest) : NULL;
}
