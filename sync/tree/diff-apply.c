/* SPDX-License-Identifier: MIT */
/* Applies a difference to a manifest. */
#include "config.h"

#include <sync/tree/diff.h>

#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <sb/log.h>
#include <sync/tree/manifest-priv.h>

/*
 * Changes come in pre-order, so every directory they touch is rebuilt by one merge of its old
 * entries with the changes: the cost is that of the directories touched, not one insertion a
 * change.
 */
struct apply_frame {
	struct sb_dir *dir;
	uint32_t next; /* the first old entry not yet taken over */
	struct sb_entry *v;
	uint32_t n;
	uint32_t cap;
	size_t path_len; /* of the directory within `path` */
};

struct diff_applier {
	struct sb_manifest *m;
	struct apply_frame *v;
	size_t n;
	size_t cap;
	const char *path; /* the change before: every frame's directory is a prefix of it */
	struct sb_error *err;
};

static int
no_memory(struct diff_applier *a)
{
	return sb_fail(a->err, SB_E_NOMEM, "changes to a manifest: out of memory");
}

static int
misfit(struct diff_applier *a, const struct sb_change *c, const char *why)
{
	char shown[256];

	return sb_fail(a->err, SB_E_CORRUPT, "change does not fit the manifest: %s: %s",
		sb_escape(c->path, strlen(c->path), shown, sizeof shown), why);
}

static int
push_frame(struct diff_applier *a, struct sb_dir *d, size_t path_len)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 32;
		struct apply_frame *grown = reallocarray(a->v, cap, sizeof *grown);

		if (!grown)
			return no_memory(a);
		a->v = grown;
		a->cap = cap;
	}
	a->v[a->n++] = (struct apply_frame){ .dir = d, .path_len = path_len };
	return 0;
}

static int
append(struct diff_applier *a, struct apply_frame *f, const struct sb_entry *e, uint32_t n)
{
	if (n > f->cap - f->n) {
		uint64_t cap =
			(uint64_t)f->n + n > 2ull * f->cap ? (uint64_t)f->n + n : 2ull * f->cap;
		struct sb_entry *grown;

		if (cap > UINT32_MAX)
			return no_memory(a);
		grown = reallocarray(f->v, (size_t)cap, sizeof *grown);
		if (!grown)
			return no_memory(a);
		f->v = grown;
		f->cap = (uint32_t)cap;
	}
	if (n)
		memcpy(f->v + f->n, e, n * sizeof *e);
	f->n += n;
	return 0;
}

/* Takes over the old entries below `name`; `out_old` is the old entry of that name or NULL. */
static int
advance(struct diff_applier *a, struct apply_frame *f, const char *name, size_t len,
	struct sb_entry **out_old)
{
	struct sb_dir rest = { .n = f->dir->n - f->next };
	bool hit;
	uint32_t n;
	int r;

	*out_old = NULL;
	if (!rest.n)
		return 0;
	rest.entries = f->dir->entries + f->next;
	n = sb_manifest_dir_lower_bound(&rest, name, len, &hit);
	r = append(a, f, rest.entries, n);
	if (r < 0)
		return r;
	f->next += n;
	*out_old = hit ? &f->dir->entries[f->next] : NULL;
	return 0;
}

/* Is `name` above everything that was put in so far? */
static bool
in_order(const struct apply_frame *f, const char *name)
{
	return !f->n || strcmp(f->v[f->n - 1].name, name) < 0;
}

/* Ends the topmost directory: what is left of the old entries, then all of it into the manifest. */
static int
pop_frame(struct diff_applier *a)
{
	struct apply_frame *f = &a->v[a->n - 1];
	struct sb_dir *d = f->dir;
	int r = 0;

	if (f->next < d->n)
		r = append(a, f, d->entries + f->next, d->n - f->next);
	if (r < 0)
		return r;
	if (f->n > d->cap) {
		struct sb_entry *grown = sb_manifest_alloc(a->m, f->n * sizeof *grown);

		if (!grown)
			return no_memory(a);
		d->entries = grown;
		d->cap = f->n;
	}
	if (f->n)
		memcpy(d->entries, f->v, f->n * sizeof *f->v);
	d->n = f->n;
	free(f->v);
	a->n--;
	return 0;
}

/* Goes from the topmost directory into its child `name`. */
static int
descend(struct diff_applier *a, const struct sb_change *c, const char *name, size_t len)
{
	struct apply_frame *f = &a->v[a->n - 1];
	struct sb_entry *old;
	struct sb_entry *e = f->n ? &f->v[f->n - 1] : NULL;
	int r;

	if (!e || strncmp(e->name, name, len) != 0 || e->name[len]) {
		r = advance(a, f, name, len, &old);
		if (r < 0)
			return r;
		if (!old)
			return misfit(a, c, "its directory is not there");
		r = append(a, f, old, 1);
		if (r < 0)
			return r;
		f->next++;
		e = &f->v[f->n - 1];
	}
	if (e->type != SB_ENTRY_DIR)
		return misfit(a, c, "its parent is not a directory");
	return push_frame(a, e->dir, (size_t)(name + len - c->path));
}

/* Brings the directory of the change to the top; `out_leaf` is its name in there. */
static int
enter_parent(struct diff_applier *a, const struct sb_change *c, const char **out_leaf)
{
	const char *p, *slash;
	int r;

	for (;;) {
		size_t len = a->v[a->n - 1].path_len;

		if (!len || (strncmp(a->path, c->path, len) == 0 && c->path[len] == '/'))
			break;
		r = pop_frame(a);
		if (r < 0)
			return r;
	}
	a->path = c->path;
	p = c->path + a->v[a->n - 1].path_len;
	if (p != c->path)
		p++;
	while ((slash = strchr(p, '/'))) {
		r = descend(a, c, p, (size_t)(slash - p));
		if (r < 0)
			return r;
		p = slash + 1;
	}
	*out_leaf = p;
	return 0;
}

static int
apply_change(struct diff_applier *a, const struct sb_change *c)
{
	struct sb_entry *old, made;
	struct apply_frame *f;
	const char *leaf;
	int r = enter_parent(a, c, &leaf);

	if (r < 0)
		return r;
	f = &a->v[a->n - 1];
	if (!*leaf || !in_order(f, leaf))
		return misfit(a, c, "out of order");
	r = advance(a, f, leaf, strlen(leaf), &old);
	if (r < 0)
		return r;
	if (c->del && !old)
		return misfit(a, c, "nothing to remove");
	f->next += old != NULL;
	if (c->del)
		return 0;
	if (old && (old->type == SB_ENTRY_DIR) != (c->entry.type == SB_ENTRY_DIR))
		return misfit(a, c, "replaces another type without removing it");
	if (sb_manifest_make_entry(a->m, leaf, &c->entry, c->target, old, &made) < 0)
		return no_memory(a);
	if (c->leader) {
		r = sb_manifest_set_link(a->m, &made, c->leader, a->err);
		if (r < 0)
			return r;
	}
	return append(a, f, &made, 1);
}

int
sb_diff_apply(struct sb_manifest *m, const struct sb_diff *d, struct sb_error *err)
{
	struct diff_applier a = { .m = m, .path = "", .err = err };
	int r = push_frame(&a, m->root.dir, 0);

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		r = sb_work_alive(err);
		if (r == 0)
			r = apply_change(&a, &d->v[i]);
	}
	while (r == 0 && a.n)
		r = pop_frame(&a);
	while (a.n)
		free(a.v[--a.n].v);
	free(a.v);
	return r < 0 ? r : sb_manifest_finish(m, err);
}
