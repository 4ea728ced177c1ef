/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/notice.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/str.h>
#include <sync/scan/scan.h>
#include <sync/tree/stage-names.h>

#define MASK \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | \
		IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
#define DEPTH_MAX 256
#define DIRS_MAX 500000u

/* A watched directory; its number is its place in the table. */
struct dir {
	char *path; /* beneath the root, "" is the root; may be out of date after a rename, until
		       its own event is read */
	uint32_t root;
};

struct root {
	char *path;
	struct sb_rules *rules;
};

struct sb_notice {
	int fd;
	bool partial;
	struct root *roots;
	size_t n_roots;
	struct dir *dirs;
	size_t n_dirs; /* room in the table */
};

struct sb_notice *
sb_notice_new(struct sb_error *err)
{
	sb_auto(sb_notice) struct sb_notice *w = calloc(1, sizeof *w);

	if (!w) {
		sb_fail(err, SB_E_NOMEM, "watch: out of memory");
		return NULL;
	}
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0) {
		sb_fail_errno(err, "watch for changes");
		return NULL;
	}
	return sb_steal(&w);
}

void
sb_notice_free(struct sb_notice *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		(void)close(w->fd);
	for (size_t i = 0; i < w->n_dirs; i++)
		free(w->dirs[i].path);
	free(w->dirs);
	for (size_t i = 0; i < w->n_roots; i++) {
		free(w->roots[i].path);
		sb_rules_free(w->roots[i].rules);
	}
	free(w->roots);
	free(w);
}

bool
sb_notice_partial(const struct sb_notice *w)
{
	return w->partial;
}

int
sb_notice_fd(const struct sb_notice *w)
{
	return w->fd;
}

/* Never synced, or excluded. */
static bool
counts(const struct sb_notice *w, uint32_t root, const char *path, bool is_dir)
{
	const char *leaf = strrchr(path, '/');
	size_t n = strlen(path);

	if (sb_stage_holds(path))
		return false;
	if (leaf && n > 5 && strcmp(path + n - 5, ".lock") == 0 && leaf - path >= 4 &&
		memcmp(leaf - 4, ".git", 4) == 0)
		return false;
	return !sb_rules_excluded(w->roots[root].rules, path, is_dir);
}

/* Remembers which directory has this number; false: no memory. */
static bool
remember(struct sb_notice *w, int wd, uint32_t root, const char *path)
{
	char *copy = strdup(path);

	if (copy && (size_t)wd >= w->n_dirs) {
		size_t n = w->n_dirs ? w->n_dirs * 2 : 64;
		struct dir *v;

		while (n <= (size_t)wd)
			n *= 2;
		v = realloc(w->dirs, n * sizeof *v);
		if (!v) {
			free(copy);
			return false;
		}
		memset(v + w->n_dirs, 0, (n - w->n_dirs) * sizeof *v);
		w->dirs = v;
		w->n_dirs = n;
	}
	if (!copy)
		return false;
	free(w->dirs[wd].path);
	w->dirs[wd] = (struct dir){ copy, root };
	return true;
}

static void
add_dir(struct sb_notice *w, uint32_t root, const char *path, int depth)
{
	sb_autofree char *full = *path ? sb_str_printf("%s/%s", w->roots[root].path, path) :
					 strdup(w->roots[root].path);
	sb_autoclosedir DIR *d = NULL;
	struct dirent *e;
	int wd;

	wd = full ? inotify_add_watch(w->fd, full, MASK) : -1;
	if (wd < 0 && full && (errno == ENOENT || errno == ENOTDIR))
		return; /* gone again */
	if (wd < 0 || depth > DEPTH_MAX || (size_t)wd > DIRS_MAX * 4 ||
		!remember(w, wd, root, path)) {
		w->partial = true;
		return;
	}
	/* Watched first, then read: what comes into it between the two is told or seen. */
	d = opendir(full);
	while (d && (e = readdir(d))) {
		sb_autofree char *sub = NULL;

		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
			strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		sub = *path ? sb_str_printf("%s/%s", path, e->d_name) : strdup(e->d_name);
		if (!sub)
			w->partial = true;
		else if (counts(w, root, sub, true))
			add_dir(w, root, sub, depth + 1);
	}
}

int
sb_notice_add(struct sb_notice *w, const char *path, struct sb_rules *rules, struct sb_error *err)
{
	struct root *v = realloc(w->roots, (w->n_roots + 1) * sizeof *v);

	if (v) {
		w->roots = v;
		v[w->n_roots].path = strdup(path);
	}
	if (!v || !v[w->n_roots].path) {
		sb_rules_free(rules);
		return sb_fail(err, SB_E_NOMEM, "watch: out of memory");
	}
	v[w->n_roots++].rules = rules;
	add_dir(w, (uint32_t)(w->n_roots - 1), "", 0);
	return 0;
}

static bool
take_event(struct sb_notice *w, const struct inotify_event *e)
{
	const struct dir *d;
	sb_autofree char *path = NULL;
	bool is_dir = e->mask & IN_ISDIR;

	if (e->mask & IN_Q_OVERFLOW)
		return true;
	d = e->wd >= 0 && (size_t)e->wd < w->n_dirs ? &w->dirs[e->wd] : NULL;
	if (!d || !d->path)
		return false;
	if (e->mask & IN_IGNORED) {
		free(d->path);
		w->dirs[e->wd].path = NULL;
		return false;
	}
	/* Of a directory itself: its parent tells too, and the root's own attributes are ours. */
	if (!e->len)
		return false;
	path = *d->path ? sb_str_printf("%s/%s", d->path, e->name) : strdup(e->name);
	if (!path)
		return true;
	if (!counts(w, d->root, path, is_dir))
		return false;
	if (is_dir && (e->mask & (IN_CREATE | IN_MOVED_TO)))
		add_dir(w, d->root, path, 0);
	return true;
}

bool
sb_notice_take(struct sb_notice *w)
{
	_Alignas(struct inotify_event) char buf[16384];
	bool changed = false;
	ssize_t n;

	while ((n = read(w->fd, buf, sizeof buf)) > 0)
		for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
			const struct inotify_event *e = (const void *)(buf + at);

			changed = take_event(w, e) || changed;
			at += (ssize_t)(sizeof *e + e->len);
		}
	return changed;
}

void
sb_notice_settle(struct sb_notice *w, int quiet_ms, int max_ms, const struct sb_cancel *cancel)
{
	sb_deadline end = sb_deadline_in(max_ms);

	for (;;) {
		struct pollfd p[2] = { { .fd = w->fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN } };

		if (sb_deadline_passed(end) || poll(p, 2, quiet_ms) <= 0 || p[1].revents)
			return;
		(void)sb_notice_take(w);
	}
}
