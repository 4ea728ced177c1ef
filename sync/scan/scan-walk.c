/* SPDX-License-Identifier: MIT */
/* The parallel walk of a scan: who reads which directory next. */
#include "config.h"

#include <sync/scan/scan-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/path.h>

/*
 * Workers share a stack of directories with untaken children and a list of files to hash. One that
 * has read a directory goes on with its first child itself and leaves the others on the stack.
 * Taking from the top keeps the walk depth-first: few directories are open or half done at a time,
 * however wide or deep the tree is.
 */

/* Gives back a use of the descriptor (if `user`) and a reference. */
static void
release(struct sb_scan_ctx *c, struct sb_scan_node *n, bool user)
{
	int fd = -1;

	pthread_mutex_lock(&c->mu);
	if (user && --n->users == 0) {
		fd = n->fd;
		n->fd = -1;
		c->retained -= n->retained;
		n->retained = false;
	}
	while (n && --n->refs == 0) {
		struct sb_scan_node *parent = n->parent;

		free(n);
		n = parent;
	}
	pthread_mutex_unlock(&c->mu);
	if (fd >= 0)
		(void)close(fd);
}

/*
 * The next child directory that nobody has taken. The caller holds the mutex or is alone with the
 * node.
 */
static struct sb_entry *
next_child(struct sb_scan_node *n)
{
	struct sb_dir *d = n->entry->dir;

	while (n->next < d->n) {
		struct sb_entry *e = &d->entries[n->next++];

		if (e->type == SB_ENTRY_DIR)
			return e;
	}
	return NULL;
}

static bool
more_children(struct sb_scan_node *n)
{
	const struct sb_dir *d = n->entry->dir;

	while (n->next < d->n && d->entries[n->next].type != SB_ENTRY_DIR)
		n->next++;
	return n->next < d->n;
}

/*
 * Opens by path from the root, for a directory whose parent is not open any more. Negative errno on
 * failure.
 */
static int
open_by_path(struct sb_scan_worker *w, const struct sb_scan_node *parent, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	struct sb_error err = { 0 };
	int fd;

	if (!sb_scan_node_path(w, parent))
		return -ENOMEM;
	if (w->path.len)
		sb_buf_add_char(&w->path, '/');
	sb_buf_add_str(&w->path, name);
	if (w->path.failed)
		return -ENOMEM;
	fd = sb_path_open(w->c->rootfd, (const char *)w->path.data,
		flags | (w->noatime ? O_NOATIME : 0), 0, &err);
	if (fd < 0 && err.sys == EPERM && w->noatime) {
		w->noatime = false;
		fd = sb_path_open(w->c->rootfd, (const char *)w->path.data, flags, 0, &err);
	}
	return fd >= 0 ? fd : err.sys ? -err.sys : -EINVAL;
}

/* A child that cannot be opened: gone, skipped, or the end of the scan. */
static void
lose_child(struct sb_scan_worker *w, const struct sb_scan_node *parent, struct sb_entry *e, int sys)
{
	enum sb_skip_reason why;
	const char *dir;

	if (sys == ENOENT) {
		sb_scan_drop(w->c, e);
		return;
	}
	if (!sb_scan_node_path(w, parent))
		return;
	dir = (const char *)w->path.data;
	if (sb_scan_explain(sys, &why)) {
		sb_scan_skip(w->c, dir, e->name, why, sys);
		sb_scan_drop(w->c, e);
		return;
	}
	sb_scan_fail_at(w->c, sys, "open directory", dir, e->name);
}

/* Opens the child `e`, through `parentfd` if that is not -1. NULL: there is nothing to visit. */
static struct sb_scan_node *
open_child(struct sb_scan_worker *w, struct sb_scan_node *parent, int parentfd, struct sb_entry *e)
{
	struct sb_scan_node *n;
	const struct sb_entry *have;
	int fd = parentfd >= 0 ? sb_scan_open(w, parentfd, e->name, O_DIRECTORY) :
				 open_by_path(w, parent, e->name);

	if (fd < 0) {
		lose_child(w, parent, e, -fd);
		return NULL;
	}
	n = malloc(sizeof *n);
	if (!n) {
		(void)close(fd);
		sb_scan_fail_memory(w->c);
		return NULL;
	}
	*n = (struct sb_scan_node){ .parent = parent, .entry = e, .fd = fd, .refs = 1, .users = 1 };
	have = parent->cached ? sb_manifest_dir_find(parent->cached, e->name, strlen(e->name)) :
				NULL;
	if (have && have->type == SB_ENTRY_DIR)
		n->cached = have->dir;
	pthread_mutex_lock(&w->c->mu);
	parent->refs++;
	pthread_mutex_unlock(&w->c->mu);
	return n;
}

static void
hash_range(struct sb_scan_worker *w, const struct sb_scan_node *n, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last && !sb_scan_stopped(w->c); i++) {
		struct sb_entry *e = &n->entry->dir->entries[i];

		if (sb_scan_wants_hash(w->c, e))
			sb_scan_hash_file(w, n->fd, n, NULL, e);
		sb_scan_progress(w->c);
	}
}

static bool
push_task(struct sb_scan_ctx *c, struct sb_scan_node *n, uint32_t first, uint32_t last)
{
	bool ok = true;

	pthread_mutex_lock(&c->mu);
	if (c->n_tasks == c->cap_tasks) {
		size_t cap = c->cap_tasks ? c->cap_tasks * 2 : 64;
		struct sb_scan_task *grown = reallocarray(c->tasks, cap, sizeof *grown);

		ok = grown != NULL;
		if (ok) {
			c->tasks = grown;
			c->cap_tasks = cap;
		}
	}
	if (ok) {
		c->tasks[c->n_tasks++] =
			(struct sb_scan_task){ .node = n, .first = first, .last = last };
		n->refs++;
		n->users++;
		if (c->waiting)
			pthread_cond_signal(&c->more);
	}
	pthread_mutex_unlock(&c->mu);
	if (!ok)
		sb_scan_fail_memory(c);
	return ok;
}

/* Puts the directory where others find its children. */
static void
push_node(struct sb_scan_ctx *c, struct sb_scan_node *n)
{
	bool ok = true;

	pthread_mutex_lock(&c->mu);
	if (c->n_stack == c->cap_stack) {
		size_t cap = c->cap_stack ? c->cap_stack * 2 : 64;
		struct sb_scan_node **grown = reallocarray(c->stack, cap, sizeof *grown);

		ok = grown != NULL;
		if (ok) {
			c->stack = grown;
			c->cap_stack = cap;
		}
	}
	if (ok) {
		c->stack[c->n_stack++] = n;
		n->refs++;
		n->users += n->retained;
		if (c->waiting)
			pthread_cond_broadcast(&c->more);
	}
	pthread_mutex_unlock(&c->mu);
	if (!ok)
		sb_scan_fail_memory(c);
}

/* Counts what is to be read in a directory; stops counting when it is more than one batch. */
static bool
more_than_a_batch(const struct sb_scan_ctx *c, const struct sb_dir *d)
{
	uint64_t bytes = 0;
	unsigned files = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		if (!sb_scan_wants_hash(c, &d->entries[i]))
			continue;
		files++;
		bytes += d->entries[i].size;
		if (files > SCAN_BATCH_FILES || bytes > SCAN_BATCH_BYTES)
			return true;
	}
	return false;
}

static void
count_wanted(struct sb_scan_ctx *c, const struct sb_dir *d)
{
	uint64_t bytes = 0;

	if (!c->o.progress)
		return;
	for (uint32_t i = 0; i < d->n; i++)
		if (sb_scan_wants_hash(c, &d->entries[i]))
			bytes += d->entries[i].size;
	atomic_fetch_add_explicit(&c->to_hash, bytes, memory_order_relaxed);
}

/* May the descriptor stay open for others? */
static bool
retain(struct sb_scan_ctx *c, struct sb_scan_node *n)
{
	pthread_mutex_lock(&c->mu);
	if (c->retained < c->retain_max) {
		c->retained++;
		n->retained = true;
	}
	pthread_mutex_unlock(&c->mu);
	return n->retained;
}

/* Cuts the files to be hashed into tasks for everyone. */
static void
push_tasks(struct sb_scan_ctx *c, struct sb_scan_node *n)
{
	const struct sb_dir *d = n->entry->dir;
	uint32_t first = 0, files = 0, i;
	uint64_t bytes = 0;

	for (i = 0; i < d->n; i++) {
		/* Nobody but us sees the files from `first` on. */
		if (!sb_scan_wants_hash(c, &d->entries[i]))
			continue;
		files++;
		bytes += d->entries[i].size;
		if (files < SCAN_BATCH_FILES && bytes < SCAN_BATCH_BYTES)
			continue;
		if (!push_task(c, n, first, i + 1))
			return;
		first = i + 1;
		files = 0;
		bytes = 0;
	}
	if (files)
		(void)push_task(c, n, first, i);
}

/*
 * Reads a directory and hands out what it leads to. Returns the child to go on with, or NULL.
 * Releases `n`.
 */
static struct sb_scan_node *
visit(struct sb_scan_worker *w, struct sb_scan_node *n)
{
	struct sb_scan_ctx *c = w->c;
	struct sb_scan_node *child = NULL;
	struct sb_entry *e;

	if (sb_scan_read_dir(w, n)) {
		count_wanted(c, n->entry->dir);
		if (more_than_a_batch(c, n->entry->dir) && retain(c, n))
			push_tasks(c, n);
		else
			hash_range(w, n, 0, n->entry->dir->n);
		while (!child && (e = next_child(n)))
			child = open_child(w, n, n->fd, e);
		if (more_children(n)) {
			if (!n->retained)
				(void)retain(c, n);
			push_node(c, n);
		}
	}
	release(c, n, true);
	sb_scan_progress(c);
	return child;
}

/* What there is to do, as take_work found it. */
struct walk_work {
	struct sb_scan_task task;    /* node NULL: none */
	struct sb_scan_node *parent; /* NULL: none */
	struct sb_entry *child;
	int parentfd; /* -1: closed */
	bool user;    /* of the parent's descriptor */
};

/* The caller holds the mutex. */
static bool
find_work(struct sb_scan_ctx *c, struct walk_work *out)
{
	*out = (struct walk_work){ .parentfd = -1 };
	if (c->n_tasks) {
		out->task = c->tasks[--c->n_tasks];
		return true;
	}
	if (c->n_stack) {
		struct sb_scan_node *n = c->stack[c->n_stack - 1];

		/* A node is on the stack only while it has untaken children. */
		out->child = next_child(n);
		out->parent = n;
		out->user = n->retained;
		if (n->retained)
			out->parentfd = n->fd;
		if (more_children(n)) {
			n->refs++;
			n->users += n->retained;
		} else {
			c->n_stack--;
		}
		return true;
	}
	return false;
}

/* Waits for work. False: there will be none any more. */
static bool
take_work(struct sb_scan_ctx *c, struct walk_work *out)
{
	bool found = false;

	pthread_mutex_lock(&c->mu);
	while (!atomic_load(&c->stop) && !(found = find_work(c, out))) {
		c->active--;
		if (!c->active)
			pthread_cond_broadcast(&c->more);
		while (c->active && !c->n_tasks && !c->n_stack && !atomic_load(&c->stop)) {
			c->waiting++;
			pthread_cond_wait(&c->more, &c->mu);
			c->waiting--;
		}
		if (!c->n_tasks && !c->n_stack)
			break;
		c->active++;
	}
	pthread_mutex_unlock(&c->mu);
	return found;
}

void
sb_scan_walk(struct sb_scan_worker *w)
{
	struct sb_scan_ctx *c = w->c;
	struct sb_scan_node *n = w->start;
	struct walk_work work;

	for (;;) {
		while (n && !sb_scan_stopped(c))
			n = visit(w, n);
		if (n)
			release(c, n, true);
		n = NULL;
		if (!take_work(c, &work))
			return;
		if (work.task.node) {
			hash_range(w, work.task.node, work.task.first, work.task.last);
			release(c, work.task.node, true);
		} else {
			n = open_child(w, work.parent, work.parentfd, work.child);
			release(c, work.parent, work.user);
		}
	}
}

void
sb_scan_walk_drain(struct sb_scan_ctx *c)
{
	while (c->n_tasks)
		release(c, c->tasks[--c->n_tasks].node, true);
	while (c->n_stack) {
		struct sb_scan_node *n = c->stack[--c->n_stack];

		release(c, n, n->retained);
	}
	free(c->tasks);
	free(c->stack);
	c->tasks = NULL;
	c->stack = NULL;
	c->cap_tasks = c->cap_stack = 0;
}
