/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-undo.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <sync/tree/digest.h>
#include <sync/tree/diff.h>
#include <sync/tree/stage-names.h>

/*
 * The file, rootN.undo-STAMP (with "-new" behind it until the changes are made):
 *   8 bytes "SBUNDO2\n", u64 stamp, byte string reason, varint layers,
 *   per layer two byte strings (diffs: forward, reverse),
 *   16 bytes XXH3-128 of all before
 * Version 1, rootN.undo, was of the last run only and had no reason.
 */
#define MAGIC "SBUNDO2\n"
#define MAGIC_1 "SBUNDO1\n"
#define UNDO_MAX (256u << 20)
#define LAYERS_MAX 64
#define KEEP_FILE (128u << 20) /* larger files are not kept */
#define KEEP_ALL (512u << 20)  /* and no more than this for one run */

void
sb_session_undo_free(struct sb_session_undo *u)
{
	for (size_t i = 0; i < u->n; i++) {
		sb_diff_free(&u->layers[i].forward);
		sb_diff_free(&u->layers[i].reverse);
	}
	free(u->layers);
	memset(u, 0, sizeof *u);
}

static char *
undo_name(size_t pair, uint64_t stamp, bool made, char *buf, size_t size)
{
	(void)snprintf(buf, size, "root%zu.undo-%016llx%s", pair, (unsigned long long)stamp,
		made ? "" : "-new");
	return buf;
}

static int
take_layer(struct sb_cursor *c, size_t max, struct sb_session_layer *out, struct sb_error *err)
{
	static const struct sb_manifest_limits limits = SB_MANIFEST_LIMITS_INIT;
	size_t n[2];
	const uint8_t *p[2];
	int r;

	for (int i = 0; i < 2; i++)
		p[i] = sb_cursor_bytes(c, max, &n[i]);
	if (c->bad)
		return sb_fail(err, SB_E_CORRUPT, "the record of a sync is damaged");
	r = sb_diff_decode(p[0], n[0], &limits, &out->forward, err);
	return r < 0 ? r : sb_diff_decode(p[1], n[1], &limits, &out->reverse, err);
}

static int
parse(const struct sb_buf *b, struct sb_session_undo *out, struct sb_error *err)
{
	struct sb_digest d;
	struct sb_cursor c;
	uint64_t n;
	size_t len = 0;
	const uint8_t *reason = NULL;
	int r = 0;
	bool old = b->len >= 8 && memcmp(b->data, MAGIC_1, 8) == 0;

	if (b->len < 8 + 8 + 1 + 16 || (!old && memcmp(b->data, MAGIC, 8) != 0))
		return sb_fail(err, SB_E_CORRUPT, "the record of a sync is damaged");
	d = sb_digest_of(b->data, b->len - 16);
	if (memcmp(d.b, b->data + b->len - 16, 16) != 0)
		return sb_fail(err, SB_E_CORRUPT, "the record of a sync is damaged");
	sb_cursor_init(&c, b->data + 8, b->len - 8 - 16);
	out->stamp = sb_cursor_u64(&c);
	if (!old)
		reason = sb_cursor_bytes(&c, sizeof out->reason - 1, &len);
	n = sb_cursor_varint(&c);
	if (!c.bad && len)
		memcpy(out->reason, reason, len);
	if (c.bad || n > LAYERS_MAX)
		return sb_fail(err, SB_E_CORRUPT, "the record of a sync is damaged");
	out->layers = calloc(n + 1, sizeof *out->layers);
	if (!out->layers)
		return sb_fail(err, SB_E_NOMEM, "undo: out of memory");
	while (r == 0 && out->n < n)
		r = take_layer(&c, b->len, &out->layers[out->n++], err);
	return r;
}

static int
load_file(int dirfd, const char *name, struct sb_session_undo *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = sb_file_read(dirfd, name, UNDO_MAX, &b, err);

	memset(out, 0, sizeof *out);
	if (r == 0)
		r = parse(&b, out, err);
	if (r < 0)
		sb_session_undo_free(out);
	return r;
}

int
sb_session_undo_load(int dirfd, size_t pair, uint64_t stamp, struct sb_session_undo *out,
	struct sb_error *err)
{
	char name[64];
	int r = load_file(dirfd, undo_name(pair, stamp, true, name, sizeof name), out, err);

	if (r != SB_E_NOTFOUND)
		return r;
	r = load_file(dirfd, undo_name(pair, stamp, false, name, sizeof name), out, err);
	/* Its run died while it wrote the record, so before it changed anything. */
	return r == SB_E_CORRUPT ? SB_E_NOTFOUND : r;
}

void
sb_session_undo_drop(int dirfd, size_t pair, uint64_t stamp)
{
	char name[64];

	(void)unlinkat(dirfd, undo_name(pair, stamp, true, name, sizeof name), 0);
	(void)unlinkat(dirfd, undo_name(pair, stamp, false, name, sizeof name), 0);
}

int
sb_session_undo_append(struct sb_session_undo *u, struct sb_session_undo *from,
	struct sb_error *err)
{
	struct sb_session_layer *v = reallocarray(u->layers, u->n + from->n + 1, sizeof *u->layers);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "undo: out of memory");
	u->layers = v;
	if (from->n)
		memcpy(v + u->n, from->layers, from->n * sizeof *v);
	u->n += from->n;
	from->n = 0;
	return 0;
}

/* The record of an older version becomes one of many. */
static void
upgrade(int dirfd, size_t pair)
{
	sb_auto(sb_session_undo) struct sb_session_undo u = { 0 };
	char old[64], name[64];

	(void)snprintf(old, sizeof old, "root%zu.undo", pair);
	if (load_file(dirfd, old, &u, NULL) == 0)
		(void)renameat(dirfd, old, dirfd,
			undo_name(pair, u.stamp, true, name, sizeof name));
}

/* Is this the name of a record of the root? */
static bool
take_name(const char *name, size_t pair, struct sb_session_undo_file *out)
{
	char prefix[32], *end;
	size_t n = (size_t)snprintf(prefix, sizeof prefix, "root%zu.undo-", pair);

	if (strncmp(name, prefix, n) != 0 || strspn(name + n, "0123456789abcdef") != 16)
		return false;
	out->stamp = strtoull(name + n, &end, 16);
	out->settled = !*end;
	return out->settled || strcmp(end, "-new") == 0;
}

static int
by_stamp(const void *a, const void *b)
{
	const struct sb_session_undo_file *x = a, *y = b;

	return (x->stamp < y->stamp) - (x->stamp > y->stamp);
}

int
sb_session_undo_files(int dirfd, size_t pair, struct sb_session_undo_file **out, size_t *out_n,
	struct sb_error *err)
{
	sb_autofree struct sb_session_undo_file *v = NULL;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return sb_fail_errno(err, "read the session's folder");
	}
	upgrade(dirfd, pair);
	while ((e = readdir(d))) {
		struct sb_session_undo_file f, *more;
		struct stat st;

		if (!take_name(e->d_name, pair, &f) ||
			fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.size = (uint64_t)st.st_size;
		more = reallocarray(v, n + 1, sizeof *v);
		if (!more)
			return sb_fail(err, SB_E_NOMEM, "undo: out of memory");
		v = more;
		v[n++] = f;
	}
	if (n)
		qsort(v, n, sizeof *v, by_stamp);
	*out = sb_steal(&v);
	*out_n = n;
	return 0;
}

/* One entry of the old tree, with all beneath it. */
static int
restore_tree(struct sb_diff *d, const struct sb_manifest *pre, const char *path,
	const struct sb_entry *e, struct sb_error *err)
{
	struct sb_entry c = *e;
	int r;

	if (e->type == SB_ENTRY_DIR)
		c.dir = NULL;
	r = sb_diff_add(d, path, false, &c, e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL,
		e->link ? pre->leaders[e->link - 1] : NULL, err);
	for (uint32_t i = 0; r == 0 && e->type == SB_ENTRY_DIR && i < e->dir->n; i++) {
		sb_autofree char *sub = sb_str_printf("%s/%s", path, e->dir->entries[i].name);

		r = sub ? restore_tree(d, pre, sub, &e->dir->entries[i], err) :
			  sb_fail(err, SB_E_NOMEM, "undo: out of memory");
	}
	return r;
}

static bool
is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* What leads back: of each changed path its old entry, or its removal. */
static int
reverse_of(const struct sb_manifest *pre, const struct sb_diff *forward, struct sb_diff *out,
	struct sb_error *err)
{
	const char *done = NULL; /* all of it is settled */
	int r = 0;

	for (size_t i = 0; r == 0 && i < forward->n; i++) {
		const struct sb_change *c = &forward->v[i];
		const struct sb_entry *old = sb_manifest_find(pre, c->path);
		bool replaced = c->del && i + 1 < forward->n &&
			strcmp(forward->v[i + 1].path, c->path) == 0;

		if (done && is_beneath(c->path, done))
			continue;
		done = NULL;
		if (c->del && !replaced) {
			r = old ? restore_tree(out, pre, c->path, old, err) : 0;
			continue;
		}
		if (replaced || !old) {
			r = sb_diff_add(out, c->path, true, NULL, NULL, NULL, err);
			if (r == 0 && old)
				r = restore_tree(out, pre, c->path, old, err);
			done = c->path;
			i += replaced;
			continue;
		}
		if (old->type == SB_ENTRY_DIR) {
			struct sb_entry dir = *old;

			dir.dir = NULL;
			r = sb_diff_add(out, c->path, false, &dir, NULL, NULL, err);
		} else {
			r = restore_tree(out, pre, c->path, old, err);
		}
	}
	return r;
}

/* Of each hard-linked file whose first name comes back: a name that needs not. */
struct heirs {
	const struct sb_manifest *pre;
	const struct sb_diff *reverse;
	char **v; /* by group */
};

static int
find_heir(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct heirs *h = arg;

	if (e->type != SB_ENTRY_FILE || !e->link || h->v[e->link - 1] ||
		!sb_diff_find_put(h->reverse, h->pre->leaders[e->link - 1]) ||
		sb_diff_find_put(h->reverse, path))
		return 0;
	h->v[e->link - 1] = strndup(path, len);
	return h->v[e->link - 1] ? 0 : SB_E_NOMEM;
}

/* What comes back becomes a name of the file that was left, not one of a file by itself. */
static int
link_to_heirs(const struct sb_manifest *pre, struct sb_diff *reverse, struct sb_error *err)
{
	struct heirs h = { pre, reverse, calloc((size_t)pre->n_leaders + 1, sizeof *h.v) };
	int r = h.v ? 0 : SB_E_NOMEM;

	if (r == 0 && pre->n_leaders)
		r = sb_manifest_walk(pre, find_heir, &h);
	if (r < 0)
		(void)sb_fail(err, r, "undo: out of memory");
	for (size_t i = 0; r == 0 && pre->n_leaders && i < reverse->n; i++) {
		struct sb_change *c = &reverse->v[i];
		const struct sb_entry *old = c->leader ? sb_manifest_find(pre, c->path) : NULL;

		if (old && old->link && h.v[old->link - 1])
			r = sb_diff_set_leader(reverse, c, h.v[old->link - 1], err);
	}
	for (uint32_t i = 0; h.v && i < pre->n_leaders; i++)
		free(h.v[i]);
	free(h.v);
	return r;
}

/* The content that the reverse needs goes into the base store, unless it is there. */
static void
keep_content(struct sb_replica *rep, const struct sb_diff *reverse)
{
	struct sb_store *store = sb_replica_store(rep);
	uint64_t all = 0;

	for (size_t i = 0; store && i < reverse->n; i++) {
		const struct sb_change *c = &reverse->v[i];
		sb_autofree uint8_t *data = NULL;
		sb_autoclose int fd = -1;
		struct sb_digest d;

		if (c->del || c->entry.type != SB_ENTRY_FILE || !c->entry.size ||
			c->entry.size > KEEP_FILE || all + c->entry.size > KEEP_ALL ||
			sb_store_has(store, &c->entry.digest))
			continue;
		fd = sb_path_open(rep->rootfd, c->path, O_RDONLY | O_NONBLOCK, 0, NULL);
		data = fd < 0 ? NULL : malloc(c->entry.size);
		if (!data ||
			sb_file_read_full(fd, data, c->entry.size, NULL) != (ssize_t)c->entry.size)
			continue;
		d = sb_digest_of(data, c->entry.size);
		if (sb_digest_eq(&d, &c->entry.digest) &&
			sb_store_add(store, &d, data, c->entry.size, NULL) == 0)
			all += c->entry.size;
	}
}

static int
add_layer(struct sb_buf *b, const struct sb_diff *forward, const struct sb_diff *reverse,
	struct sb_error *err)
{
	const struct sb_diff *both[2] = { forward, reverse };
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++) {
		sb_auto(sb_buf) struct sb_buf one = { 0 };

		sb_buf_init(&one, UNDO_MAX);
		r = sb_diff_encode(both[i], &one, err);
		if (r == 0)
			sb_buf_add_bytes(b, one.data, one.len);
	}
	return r;
}

static int
write_record(int dirfd, size_t pair, uint64_t stamp, const struct sb_buf *b, struct sb_error *err)
{
	char name[64];
	sb_autoclose int fd = openat(dirfd, undo_name(pair, stamp, false, name, sizeof name),
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	/* Not synced to disk: a torn one is noticed by its sum, and losing it loses no file. */
	return fd < 0 ? sb_fail_errno(err, "write %s", name) :
			sb_file_write_all(fd, b->data, b->len, err);
}

int
sb_session_undo_prepare(int dirfd, size_t pair, uint64_t stamp, const char *reason,
	struct sb_replica *rep, const struct sb_diff *forward, struct sb_error *err)
{
	sb_auto(sb_session_undo) struct sb_session_undo old = { 0 };
	sb_auto(sb_diff) struct sb_diff reverse = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest d;
	char name[64];
	bool grows;
	int r = reverse_of(rep->scan.manifest, forward, &reverse, err);

	if (r == 0)
		r = link_to_heirs(rep->scan.manifest, &reverse, err);
	if (r < 0)
		return r;
	keep_content(rep, &reverse);
	grows = load_file(dirfd, undo_name(pair, stamp, true, name, sizeof name), &old, NULL) ==
			0 &&
		old.n < LAYERS_MAX;
	sb_buf_init(&b, UNDO_MAX);
	sb_buf_add(&b, MAGIC, 8);
	sb_buf_add_u64(&b, stamp);
	sb_buf_add_bytes(&b, reason ? reason : "sync",
		strnlen(reason ? reason : "sync", sizeof old.reason - 1));
	sb_buf_add_varint(&b, grows ? old.n + 1 : 1);
	for (size_t i = 0; r == 0 && grows && i < old.n; i++)
		r = add_layer(&b, &old.layers[i].forward, &old.layers[i].reverse, err);
	if (r == 0)
		r = add_layer(&b, forward, &reverse, err);
	if (r == 0)
		r = sb_buf_check(&b, "record of a sync", err);
	if (r < 0)
		return r;
	d = sb_digest_of(b.data, b.len);
	sb_buf_add(&b, d.b, 16);
	r = sb_buf_check(&b, "record of a sync", err);
	return r < 0 ? r : write_record(dirfd, pair, stamp, &b, err);
}

/* Too many, too old or too large together: the oldest go. */
static void
prune(int dirfd, size_t pair)
{
	sb_autofree struct sb_session_undo_file *v = NULL;
	size_t n = 0;
	uint64_t bytes = 0, day = 86400ull * 1000000000u;

	if (sb_session_undo_files(dirfd, pair, &v, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		bytes += v[i].size;
		if (i &&
			(i >= SB_SESSION_UNDO_RUNS || bytes > SB_SESSION_UNDO_BYTES ||
				v[i].stamp + SB_SESSION_UNDO_DAYS * day < v[0].stamp))
			sb_session_undo_drop(dirfd, pair, v[i].stamp);
	}
}

void
sb_session_undo_settle(int dirfd, size_t pair, uint64_t stamp, const struct sb_replica *rep,
	bool made)
{
	char fresh[64], name[64];

	(void)undo_name(pair, stamp, false, fresh, sizeof fresh);
	if (made) {
		(void)renameat(dirfd, fresh, dirfd,
			undo_name(pair, stamp, true, name, sizeof name));
		prune(dirfd, pair);
	} else if (rep->rootfd < 0 ||
		faccessat(rep->rootfd, SB_STAGE_NAME "/" SB_STAGE_JOURNAL, F_OK, 0) < 0) {
		(void)unlinkat(dirfd, fresh, 0);
	}
}
