/* SPDX-License-Identifier: MIT */
/* Reads one directory of a scan: names, stats, exclude rules, the cache. */
#include "config.h"

#include <sync/scan/scan-priv.h>
#include <sync/tree/stage-names.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_LEN_MAX 255
#define TARGET_LEN_MAX 4095
#define IGNORE_FILE_MAX ((size_t)1 << 20)

/* As the kernel hands it out. */
struct raw_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

bool
sb_scan_node_path(struct sb_scan_worker *w, const struct sb_scan_node *n)
{
	size_t len = 0;
	uint8_t *to;

	for (const struct sb_scan_node *p = n; p->parent; p = p->parent)
		len += strlen(p->entry->name) + 1;
	sb_buf_reset(&w->path);
	if (!len)
		return true;
	len--;
	to = sb_buf_reserve(&w->path, len);
	if (!to) {
		sb_scan_fail_memory(w->c);
		return false;
	}
	sb_buf_grow(&w->path, len);
	to += len;
	for (const struct sb_scan_node *p = n; p->parent; p = p->parent) {
		size_t k = strlen(p->entry->name);

		to -= k;
		memcpy(to, p->entry->name, k);
		if (p->parent->parent)
			*--to = '/';
	}
	return true;
}

/* Reports an entry of the directory being read. */
static void
skip(struct sb_scan_worker *w, const struct sb_scan_node *n, const char *name,
	enum sb_skip_reason why, int sys)
{
	if (sb_scan_node_path(w, n))
		sb_scan_skip(w->c, (const char *)w->path.data, name, why, sys);
}

static void
fail_entry(struct sb_scan_worker *w, const struct sb_scan_node *n, const char *what,
	const char *name, int sys)
{
	if (sb_scan_node_path(w, n))
		sb_scan_fail_at(w->c, sys, what, (const char *)w->path.data, name);
}

static uint64_t
sort_key(const char *name, size_t len)
{
	uint64_t key = 0;

	for (size_t i = 0; i < 8; i++)
		key = key << 8 | (i < len ? (uint8_t)name[i] : 0);
	return key;
}

static int
compare_items(const void *a, const void *b, void *arg)
{
	const struct sb_scan_item *x = a, *y = b;
	const char *names = arg;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return strcmp(names + x->off, names + y->off);
}

static int
add_item(struct sb_scan_worker *w, const char *name, uint8_t type)
{
	size_t len = strlen(name);
	struct sb_scan_item *it;

	if (w->n_items == w->cap_items) {
		size_t cap = w->cap_items ? w->cap_items * 2 : 256;

		it = reallocarray(w->items, cap, sizeof *it);
		if (!it)
			return -ENOMEM;
		w->items = it;
		w->cap_items = cap;
	}
	w->items[w->n_items++] = (struct sb_scan_item){ .key = sort_key(name, len),
		.off = w->names.len,
		.len = (uint16_t)len,
		.type = type };
	sb_buf_add(&w->names, name, len + 1);
	return w->names.failed ? -ENOMEM : 0;
}

/* A directory that is changed while it is read may give a name twice. */
static void
drop_twins(struct sb_scan_worker *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n_items; i++) {
		if (i && compare_items(&w->items[kept - 1], &w->items[i], w->names.data) == 0)
			continue;
		w->items[kept++] = w->items[i];
	}
	w->n_items = kept;
}

/* The names in the directory, sorted, without "." and "..". Negative errno on failure. */
static int
read_names(struct sb_scan_worker *w, int fd)
{
	bool sorted = true;

	w->n_items = 0;
	sb_buf_reset(&w->names);
	for (;;) {
		long n = syscall(SYS_getdents64, fd, w->buf, SCAN_BUF);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (long at = 0; at < n;) {
			const struct raw_dirent *d = (const void *)(w->buf + at);
			int r;

			at += d->len;
			if (d->name[0] == '.' &&
				(!d->name[1] || (d->name[1] == '.' && !d->name[2])))
				continue;
			r = add_item(w, d->name, d->type);
			if (r < 0)
				return r;
		}
		if (sb_scan_stopped(w->c))
			return -ECANCELED;
	}
	for (size_t i = 1; sorted && i < w->n_items; i++)
		sorted = compare_items(&w->items[i - 1], &w->items[i], w->names.data) < 0;
	if (!sorted)
		qsort_r(w->items, w->n_items, sizeof *w->items, compare_items, w->names.data);
	drop_twins(w);
	return 0;
}

/* Reads one ignore file, if the directory has it as a regular file, into the rules. */
static bool
collect_file(struct sb_scan_worker *w, const struct sb_scan_node *n, const char *name,
	enum sb_rules_source src)
{
	struct sb_error err = { 0 };
	sb_autoclose int fd = sb_scan_open(w, n->fd, name, 0);
	struct sb_scan_stat st;
	sb_auto(sb_buf) struct sb_buf text;
	struct sb_scan_shown shown;
	ssize_t got = 1;
	int r;

	sb_buf_init(&text, IGNORE_FILE_MAX + 1);
	/* What cannot be opened is reported when its turn as an entry comes. */
	if (fd < 0 || sb_scan_stat(fd, NULL, &st) < 0 || !S_ISREG(st.mode))
		return true;
	while (got > 0 && text.len <= IGNORE_FILE_MAX) {
		size_t want = IGNORE_FILE_MAX + 1 - text.len;
		uint8_t *to = sb_buf_reserve(&text, want < 8192 ? want : 8192);

		if (!to) {
			sb_scan_fail_memory(w->c);
			return false;
		}
		got = read(fd, to, want < 8192 ? want : 8192);
		if (got > 0)
			sb_buf_grow(&text, (size_t)got);
		else if (got < 0 && errno == EINTR)
			got = 1;
	}
	if (got < 0) {
		fail_entry(w, n, "read", name, errno);
		return false;
	}
	if (text.len > IGNORE_FILE_MAX)
		r = sb_fail(&err, SB_E_LIMIT, "longer than 1 MiB, which an ignore file may not be");
	else
		r = sb_rules_add_file(w->c->o.rules, src, (const char *)w->path.data,
			(const char *)text.data, text.len, &err);
	(void)sb_scan_show((const char *)w->path.data, name, &shown);
	if (r > 0)
		sb_log(&w->c->o.log, SB_LOG_WARN, "scan",
			"%s: %d patterns of more than 4096 bytes are not used", shown.text, r);
	if (r >= 0)
		return true;
	(void)sb_wrap(&err, r, "%s", shown.text);
	sb_scan_fail(w->c, r, &err);
	return false;
}

/* Finds a name among the sorted ones. */
static bool
has_name(const struct sb_scan_worker *w, const char *name)
{
	struct sb_scan_item key = { .key = sort_key(name, strlen(name)) };
	const char *names = (const char *)w->names.data;
	size_t lo = 0, hi = w->n_items;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct sb_scan_item *it = &w->items[mid];
		int c = it->key != key.key ? (it->key < key.key ? -1 : 1) :
					     strcmp(names + it->off, name);

		if (c == 0)
			return true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/*
 * Makes n->rules the ones in force for the entries of this directory; its path is in w->path then.
 */
static bool
enter_rules(struct sb_scan_worker *w, struct sb_scan_node *n)
{
	const struct sb_scan_opts *o = &w->c->o;

	if (!o->rules)
		return true;
	if (!sb_scan_node_path(w, n))
		return false;
	if (o->collect_gitignore && has_name(w, ".gitignore") &&
		!collect_file(w, n, ".gitignore", SB_RULES_GITIGNORE))
		return false;
	if (o->collect_sbsyncignore && has_name(w, ".sbsyncignore") &&
		!collect_file(w, n, ".sbsyncignore", SB_RULES_SBSYNCIGNORE))
		return false;
	n->rules = n->parent ?
		sb_rules_enter(o->rules, n->parent->rules, (const char *)w->path.data) :
		sb_rules_root(o->rules);
	if (n->rules)
		return true;
	sb_scan_fail_memory(w->c);
	return false;
}

static bool
excluded(struct sb_scan_worker *w, const struct sb_scan_node *n, const struct sb_scan_item *it,
	bool is_dir)
{
	const char *name = (const char *)w->names.data + it->off;
	size_t len = w->path.len;
	bool hit;

	if (!n->parent && strcmp(name, SB_STAGE_NAME) == 0)
		return true;
	if (!is_dir && it->len > 5 && n->parent && strcmp(name + it->len - 5, ".lock") == 0 &&
		strcmp(n->entry->name, ".git") == 0)
		return true;
	if (!n->rules)
		return false;
	/* w->path holds the directory since enter_rules; reporting something leaves it so. */
	if (len)
		sb_buf_add_char(&w->path, '/');
	sb_buf_add(&w->path, name, it->len + 1);
	if (w->path.failed) {
		sb_scan_fail_memory(w->c);
		return true;
	}
	hit = sb_rules_match(n->rules, (const char *)w->path.data,
		(const char *)w->path.data + (len ? len + 1 : 0), is_dir);
	w->path.len = len;
	w->path.data[len] = 0;
	return hit;
}

/* Is what the cache knows still true? Its own stat must have been safe to rely on. */
static bool
cache_holds(const struct sb_scan_worker *w, const struct sb_scan_node *n,
	const struct sb_entry *have, const struct sb_scan_stat *st, uint8_t type)
{
	return have && have->type == type && !(have->flags & (SB_ENTRY_RACY | SB_ENTRY_UNHASHED)) &&
		n->cached->dev == n->entry->dir->dev && have->ino == st->ino &&
		have->mtime == st->mtime && have->ctime == st->ctime && have->size == st->size &&
		(type == SB_ENTRY_LINK || have->mode == (st->mode & 07777)) && !w->c->o.checksum;
}

/* A symlink's target behind a second copy of its name. Negative errno on failure. */
static int
read_target(struct sb_scan_worker *w, const struct sb_scan_node *n, const struct sb_scan_item *it,
	const struct sb_entry *have, const struct sb_scan_stat *st, struct sb_scan_pending *p)
{
	char target[TARGET_LEN_MAX + 2];
	const char *text = target;
	ssize_t len;

	if (cache_holds(w, n, have, st, SB_ENTRY_LINK)) {
		text = sb_entry_target(have);
		len = (ssize_t)have->size;
	} else {
		len = readlinkat(n->fd, (const char *)w->names.data + it->off, target,
			sizeof target);
		if (len < 0)
			return -errno;
		if (len == 0 || len > TARGET_LEN_MAX)
			return -ENAMETOOLONG;
		target[len] = 0;
	}
	p->e.size = (uint64_t)len;
	p->e.digest = sb_digest_of(text, (size_t)len);
	p->off = w->names.len;
	if (!sb_buf_reserve(&w->names, it->len + 2u + (size_t)len))
		return -ENOMEM;
	sb_buf_add(&w->names, w->names.data + it->off, it->len + 1u);
	sb_buf_add(&w->names, text, (size_t)len + 1);
	return 0;
}

/* The path of an entry of the directory; its own end is in w->path until the next report. */
static const char *
entry_path(struct sb_scan_worker *w, const struct sb_scan_node *n, const char *name)
{
	if (!sb_scan_node_path(w, n))
		return NULL;
	if (w->path.len)
		sb_buf_add_char(&w->path, '/');
	sb_buf_add_str(&w->path, name);
	if (!w->path.failed)
		return (const char *)w->path.data;
	sb_scan_fail_memory(w->c);
	return NULL;
}

/* Looks at mounts that are, or were, here. False: what was mounted here is out of sight. */
static bool
look_at_mount(struct sb_scan_worker *w, const struct sb_scan_node *n, const char *name, bool mount)
{
	const struct sb_strlist *old = w->c->o.mounts;
	const char *path = mount || (old && old->n) ? entry_path(w, n, name) : NULL;
	bool was = false;

	for (size_t i = 0; path && !mount && old && i < old->n; i++)
		was |= strcmp(old->v[i], path) == 0;
	if (path && mount)
		sb_scan_note_mount(w->c, path);
	/* Others count on the directory alone. */
	if (path)
		(void)sb_scan_node_path(w, n);
	return !was;
}

/*
 * What becomes of one name. Returns 1: `p` is filled; 0: not to be in the manifest; negative errno.
 */
static int
make_pending(struct sb_scan_worker *w, const struct sb_scan_node *n, const struct sb_scan_item *it,
	const struct sb_entry *have, const struct sb_scan_stat *st, struct sb_scan_pending *p)
{
	const char *name = (const char *)w->names.data + it->off;
	struct sb_scan_ctx *c = w->c;
	bool mount = st->mount || (S_ISDIR(st->mode) && st->dev != n->entry->dir->dev);
	int r;

	*p = (struct sb_scan_pending){ .off = it->off, .dev = st->dev, .nlink = 1 };
	if ((mount && !c->o.cross_mounts) || !look_at_mount(w, n, name, mount)) {
		skip(w, n, name, SB_SKIP_MOUNT, 0);
		return 0;
	}
	if (S_ISDIR(st->mode)) {
		p->e.type = SB_ENTRY_DIR;
	} else if (S_ISREG(st->mode)) {
		p->e.type = SB_ENTRY_FILE;
		p->nlink = st->nlink;
		if (cache_holds(w, n, have, st, SB_ENTRY_FILE))
			p->e.digest = have->digest;
		else
			p->e.flags = SB_ENTRY_UNHASHED;
	} else if (S_ISLNK(st->mode)) {
		p->e.type = SB_ENTRY_LINK;
		r = read_target(w, n, it, have, st, p);
		if (r == -ENAMETOOLONG)
			skip(w, n, name, SB_SKIP_NAME, 0);
		if (r < 0)
			return r == -ENAMETOOLONG ? 0 : r;
	} else {
		skip(w, n, name, SB_SKIP_SPECIAL, 0);
		return 0;
	}
	sb_scan_take_stat(c, st, &p->e);
	return 1;
}

/*
 * One name: excluded, gone, skipped or pending. As make_pending, but a failure is noted and gives
 * 0.
 */
static int
read_entry(struct sb_scan_worker *w, const struct sb_scan_node *n, const struct sb_scan_item *it,
	const struct sb_entry *have, struct sb_scan_pending *p)
{
	const char *name = (const char *)w->names.data + it->off;
	enum sb_skip_reason why;
	struct sb_scan_stat st;
	int r;

	if (it->type != DT_UNKNOWN && excluded(w, n, it, it->type == DT_DIR))
		return 0;
	if (it->len > NAME_LEN_MAX) {
		skip(w, n, name, SB_SKIP_NAME, 0);
		return 0;
	}
	r = sb_scan_stat(n->fd, name, &st);
	if (r == 0 && (it->type == DT_UNKNOWN || (it->type == DT_DIR) != S_ISDIR(st.mode)) &&
		excluded(w, n, it, S_ISDIR(st.mode)))
		return 0;
	if (r == 0)
		r = make_pending(w, n, it, have, &st, p);
	if (r >= 0 || r == -ENOENT)
		return r > 0;
	name = (const char *)w->names.data + it->off;
	if (sb_scan_explain(-r, &why))
		skip(w, n, name, why, -r);
	else
		fail_entry(w, n, "stat", name, -r);
	return 0;
}

/* Notes the files that have several names. */
static bool
note_link(struct sb_scan_ctx *c, const struct sb_scan_pending *p, struct sb_entry *e)
{
	bool ok = true;

	pthread_mutex_lock(&c->mu);
	if (c->n_links == c->cap_links) {
		size_t cap = c->cap_links ? c->cap_links * 2 : 64;
		struct sb_scan_link *grown = reallocarray(c->links, cap, sizeof *grown);

		ok = grown != NULL;
		if (ok) {
			c->links = grown;
			c->cap_links = cap;
		}
	}
	if (ok)
		c->links[c->n_links++] =
			(struct sb_scan_link){ .dev = p->dev, .ino = p->e.ino, .entry = e };
	pthread_mutex_unlock(&c->mu);
	return ok;
}

static size_t
pending_name_size(const struct sb_scan_worker *w, const struct sb_scan_pending *p)
{
	return strlen((const char *)w->names.data + p->off) + 1 +
		(p->e.type == SB_ENTRY_LINK ? p->e.size + 1 : 0);
}

/* Moves the pending entries into the manifest. */
static bool
place_entries(struct sb_scan_worker *w, struct sb_dir *d, size_t n)
{
	struct sb_manifest *m = w->c->m;
	size_t bytes = 0, dirs = 0;
	struct sb_entry *v;
	struct sb_dir *made;
	char *names;

	if (!n)
		return true;
	for (size_t i = 0; i < n; i++) {
		bytes += pending_name_size(w, &w->pending[i]);
		dirs += w->pending[i].e.type == SB_ENTRY_DIR;
	}
	v = n < UINT32_MAX ? sb_manifest_alloc(m, n * sizeof *v) : NULL;
	made = sb_manifest_alloc(m, dirs * sizeof *made);
	names = sb_manifest_bytes(m, bytes);
	if (!v || !made || !names)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sb_scan_pending *p = &w->pending[i];
		size_t k = pending_name_size(w, p);

		v[i] = p->e;
		memcpy(names, w->names.data + p->off, k);
		v[i].name = names;
		names += k;
		if (p->e.type == SB_ENTRY_DIR) {
			*made = (struct sb_dir){ .dev = p->dev };
			v[i].dir = made++;
		}
		if (p->nlink > 1 && !note_link(w->c, p, &v[i]))
			return false;
	}
	d->entries = v;
	d->n = d->cap = (uint32_t)n;
	return true;
}

bool
sb_scan_read_dir(struct sb_scan_worker *w, struct sb_scan_node *n)
{
	const struct sb_dir *cached = n->cached;
	size_t made = 0;
	uint32_t k = 0;
	int r = read_names(w, n->fd);

	if (r == -ENOENT && n->parent) {
		sb_scan_drop(w->c, n->entry);
		return false;
	}
	if (r < 0) {
		if (r != -ECANCELED)
			fail_entry(w, n, "read directory", "", -r);
		return false;
	}
	if (!enter_rules(w, n))
		return false;
	if (w->n_items > w->cap_pending) {
		struct sb_scan_pending *grown = reallocarray(w->pending, w->n_items, sizeof *grown);

		if (!grown) {
			sb_scan_fail_memory(w->c);
			return false;
		}
		w->pending = grown;
		w->cap_pending = w->n_items;
	}
	for (size_t i = 0; i < w->n_items; i++) {
		const char *name = (const char *)w->names.data + w->items[i].off;
		const struct sb_entry *have = NULL;
		int c = -1;

		while (cached && k < cached->n && (c = strcmp(cached->entries[k].name, name)) < 0)
			k++;
		if (cached && k < cached->n && c == 0)
			have = &cached->entries[k];
		made += (size_t)read_entry(w, n, &w->items[i], have, &w->pending[made]);
		if (i % 1024 == 1023 && sb_scan_stopped(w->c))
			return false;
	}
	if (!place_entries(w, n->entry->dir, made)) {
		sb_scan_fail_memory(w->c);
		return false;
	}
	atomic_fetch_add_explicit(&w->c->entries, made, memory_order_relaxed);
	return true;
}
