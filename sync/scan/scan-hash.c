/* SPDX-License-Identifier: MIT */
/* The digests of a scan: reads files, and reads one again that changed meanwhile. */
#include "config.h"

#include <sync/scan/scan-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>

/* A file that moves while it is read is read again, this often in all. */
#define ATTEMPTS 3

bool
sb_scan_wants_hash(const struct sb_scan_ctx *c, const struct sb_entry *e)
{
	return e->type == SB_ENTRY_FILE && (e->flags & SB_ENTRY_UNHASHED) &&
		!(e->spare & SPARE_GONE) && e->size >= c->o.lazy_below;
}

/* A read into the worker's buffer, through EINTR. Negative errno on failure. */
static ssize_t
read_some(struct sb_scan_worker *w, int fd)
{
	ssize_t n;

	do
		n = read(fd, w->buf, SCAN_BUF);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * Hashes what the file holds. The first read takes small files whole: a short read of a regular
 * file ends it when all that was expected is there; otherwise reading goes on to the end.
 * `out_count` is what was read.
 */
static int
read_content(struct sb_scan_worker *w, int fd, uint64_t expect, struct sb_digest *out,
	uint64_t *out_count)
{
	ssize_t n = read_some(w, fd);

	if (n < 0)
		return (int)n;
	*out_count = (uint64_t)n;
	if ((size_t)n < SCAN_BUF && (uint64_t)n == expect) {
		*out = sb_digest_of(w->buf, (size_t)n);
		return 0;
	}
	(void)XXH3_128bits_reset(w->xxh);
	/* One that grows as fast as it is read is ended behind what was expected: it has moved. */
	while (n > 0 && *out_count <= expect) {
		(void)XXH3_128bits_update(w->xxh, w->buf, (size_t)n);
		atomic_fetch_add_explicit(&w->c->hashed_bytes, (uint64_t)n, memory_order_relaxed);
		sb_scan_progress(w->c);
		if (sb_scan_stopped(w->c))
			return -ECANCELED;
		n = read_some(w, fd);
		if (n > 0)
			*out_count += (uint64_t)n;
	}
	*out = sb_digest_final(w->xxh);
	return n < 0 ? (int)n : 0;
}

static bool
same_stat(const struct sb_scan_stat *a, const struct sb_scan_stat *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime == b->mtime &&
		a->ctime == b->ctime && a->mode == b->mode;
}

/*
 * One reading between two stats. The first time the one of the walk is the first of them, which is
 * why `before` is filled then. Returns 0, a negative errno, or 1: it moved.
 */
static int
try_hash(struct sb_scan_worker *w, int dirfd, const char *name, bool have_before,
	struct sb_scan_stat *before, struct sb_digest *out)
{
	sb_autoclose int fd = sb_scan_open(w, dirfd, name, 0);
	struct sb_scan_stat after;
	uint64_t count = 0;
	int r;

	if (fd < 0)
		return fd;
	if (!have_before) {
		r = sb_scan_stat(fd, NULL, before);
		if (r < 0)
			return r;
		if (!S_ISREG(before->mode))
			return -EISDIR;
	}
	r = read_content(w, fd, before->size, out, &count);
	if (r < 0)
		return r;
	r = sb_scan_stat(fd, NULL, &after);
	if (r < 0)
		return r;
	return count == before->size && same_stat(before, &after) ? 0 : 1;
}

/* Returns 0 and the entry has its digest, a negative errno, or 1: it kept moving. */
static int
hash_entry(struct sb_scan_worker *w, int dirfd, struct sb_entry *e)
{
	struct sb_scan_stat st = { .ino = e->ino,
		.size = e->size,
		.mtime = e->mtime,
		.ctime = e->ctime,
		.mode = S_IFREG | e->mode };
	struct sb_digest d;
	int r = 1;

	for (int i = 0; i < ATTEMPTS && r == 1; i++) {
		r = try_hash(w, dirfd, e->name, i == 0, &st, &d);
		if (r == 0 && i > 0)
			sb_scan_take_stat(w->c, &st, e);
	}
	if (r == 0) {
		e->digest = d;
		e->flags &= (uint8_t)~SB_ENTRY_UNHASHED & 0xf;
	}
	return r;
}

void
sb_scan_hash_file(struct sb_scan_worker *w, int dirfd, const struct sb_scan_node *n,
	const char *dir, struct sb_entry *e)
{
	struct sb_scan_ctx *c = w->c;
	enum sb_skip_reason why = SB_SKIP_UNSTABLE;
	int r = hash_entry(w, dirfd, e);

	if (r == 0) {
		atomic_fetch_add_explicit(&c->hashed_files, 1, memory_order_relaxed);
		if (e->size < SCAN_BUF)
			atomic_fetch_add_explicit(&c->hashed_bytes, e->size, memory_order_relaxed);
		return;
	}
	if (r == -ECANCELED)
		return;
	if (r == -ENOENT) {
		sb_scan_drop(c, e);
		return;
	}
	if (n && !sb_scan_node_path(w, n))
		return;
	if (n)
		dir = (const char *)w->path.data;
	if (r == 1 || sb_scan_explain(-r, &why)) {
		sb_scan_skip(c, dir, e->name, why, r < 0 ? -r : 0);
		sb_scan_drop(c, e);
		return;
	}
	sb_scan_fail_at(c, -r, "read", dir, e->name);
}

static int
add_batch(struct sb_scan_ctx *c, const char *path, size_t len, struct sb_dir *d, uint32_t first,
	uint32_t last)
{
	struct sb_scan_batch *b;

	if (c->n_batches == c->cap_batches) {
		size_t cap = c->cap_batches ? c->cap_batches * 2 : 64;

		b = reallocarray(c->batches, cap, sizeof *b);
		if (!b)
			return SB_E_NOMEM;
		c->batches = b;
		c->cap_batches = cap;
	}
	b = &c->batches[c->n_batches];
	*b = (struct sb_scan_batch){ .path = strndup(path, len),
		.dir = d,
		.first = first,
		.last = last };
	if (!b->path)
		return SB_E_NOMEM;
	c->n_batches++;
	return 0;
}

/* Cuts the wanted files of one directory into batches. */
static int
collect_dir(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct sb_scan_ctx *c = arg;
	uint32_t first = 0, files = 0, i;
	uint64_t bytes = 0;
	int r;

	if (e->type != SB_ENTRY_DIR)
		return 0;
	for (i = 0; i < e->dir->n; i++) {
		if (!(e->dir->entries[i].spare & SPARE_WANTED))
			continue;
		files++;
		bytes += e->dir->entries[i].size;
		atomic_fetch_add_explicit(&c->to_hash, e->dir->entries[i].size,
			memory_order_relaxed);
		if (files < SCAN_BATCH_FILES && bytes < SCAN_BATCH_BYTES)
			continue;
		r = add_batch(c, path, len, e->dir, first, i + 1);
		if (r < 0)
			return r;
		first = i + 1;
		files = 0;
		bytes = 0;
	}
	return files ? add_batch(c, path, len, e->dir, first, i) : 0;
}

/* The directory cannot be entered: what was wanted from it has the same fate. */
static void
lose_batch(struct sb_scan_ctx *c, const struct sb_scan_batch *b, int r, const struct sb_error *err)
{
	enum sb_skip_reason why = SB_SKIP_UNSTABLE;
	bool explained = r == SB_E_ESCAPE || sb_scan_explain(err->sys, &why);

	if (!explained && r != SB_E_NOTFOUND) {
		sb_scan_fail(c, r, err);
		return;
	}
	for (uint32_t i = b->first; i < b->last; i++) {
		struct sb_entry *e = &b->dir->entries[i];

		if (!(e->spare & SPARE_WANTED))
			continue;
		if (explained)
			sb_scan_skip(c, b->path, e->name, why, err->sys);
		sb_scan_drop(c, e);
	}
}

static void
hash_batches(struct sb_scan_worker *w)
{
	struct sb_scan_ctx *c = w->c;

	while (!sb_scan_stopped(c)) {
		size_t i = atomic_fetch_add(&c->next_batch, 1);
		const struct sb_scan_batch *b = &c->batches[i];
		struct sb_error err = { 0 };
		sb_autoclose int fd = -1;

		if (i >= c->n_batches)
			return;
		fd = sb_path_open(c->rootfd, b->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0, &err);
		if (fd < 0) {
			lose_batch(c, b, fd, &err);
			fd = -1;
			continue;
		}
		for (uint32_t k = b->first; k < b->last && !sb_scan_stopped(c); k++) {
			struct sb_entry *e = &b->dir->entries[k];

			if (e->spare & SPARE_WANTED)
				sb_scan_hash_file(w, fd, NULL, b->path, e);
		}
		sb_scan_progress(c);
	}
}

int
sb_scan_hash_wanted(struct sb_scan_ctx *c)
{
	int r = collect_dir("", 0, &c->m->root, c);

	if (r == 0)
		r = sb_manifest_walk(c->m, collect_dir, c);
	atomic_store(&c->next_batch, 0);
	if (r < 0)
		sb_scan_fail_memory(c);
	else if (c->n_batches)
		r = sb_scan_parallel(c, hash_batches, NULL);
	for (size_t i = 0; i < c->n_batches; i++) {
		struct sb_scan_batch *b = &c->batches[i];

		for (uint32_t k = b->first; k < b->last; k++)
			b->dir->entries[k].spare &= (uint8_t)~SPARE_WANTED & 0xf;
		free(b->path);
	}
	free(c->batches);
	c->batches = NULL;
	c->n_batches = c->cap_batches = 0;
	return c->code;
}
