/* SPDX-License-Identifier: MIT */
/* Walks over the entries of a manifest. */
#include "config.h"

#include <sync/tree/manifest.h>

#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <sync/tree/manifest-priv.h>

/*
 * The way from the top to where the walk is. On the heap: a tree may be deeper than the stack is
 * large.
 */
struct walk_frame {
	const struct sb_dir *dir;
	uint32_t next;
	size_t path_len; /* of the directory, with the slash behind it unless empty */
};

struct manifest_walk {
	struct walk_frame *v;
	size_t n;
	size_t cap;
	char *path;
	size_t path_cap;
};

static int
walk_push(struct manifest_walk *w, const struct sb_dir *d, size_t path_len)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 32;
		struct walk_frame *grown = reallocarray(w->v, cap, sizeof *grown);

		if (!grown)
			return SB_E_NOMEM;
		w->v = grown;
		w->cap = cap;
	}
	w->v[w->n++] = (struct walk_frame){ .dir = d, .path_len = path_len };
	return 0;
}

/*
 * Makes the path `at` bytes of the present one and `name`; room for a slash is left. Returns its
 * length, 0: no memory.
 */
static size_t
walk_name(struct manifest_walk *w, size_t at, const char *name)
{
	size_t len = strlen(name);

	if (at + len + 2 > w->path_cap) {
		size_t cap = (at + len + 2) * 2;
		char *grown = realloc(w->path, cap);

		if (!grown)
			return 0;
		w->path = grown;
		w->path_cap = cap;
	}
	memcpy(w->path + at, name, len + 1);
	return at + len;
}

static int
walk_run(struct manifest_walk *w, sb_manifest_walk_fn fn, void *arg)
{
	while (w->n) {
		struct walk_frame *f = &w->v[w->n - 1];
		struct sb_entry *e;
		size_t len;
		int r;

		if (f->next == f->dir->n) {
			w->n--;
			continue;
		}
		r = sb_work_alive(NULL);
		if (r < 0)
			return r;
		e = &f->dir->entries[f->next++];
		len = walk_name(w, f->path_len, e->name);
		if (!len)
			return SB_E_NOMEM;
		r = fn(w->path, len, e, arg);
		if (r < 0)
			return r;
		if (e->type != SB_ENTRY_DIR || r == 1 || !e->dir->n)
			continue;
		w->path[len] = '/';
		r = walk_push(w, e->dir, len + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

int
sb_manifest_walk_dir(const struct sb_dir *d, const char *prefix, sb_manifest_walk_fn fn, void *arg)
{
	struct manifest_walk w = { 0 };
	size_t at = 0;
	int r = 0;

	if (*prefix) {
		at = walk_name(&w, 0, prefix);
		if (!at)
			return SB_E_NOMEM;
		w.path[at++] = '/';
	}
	r = walk_push(&w, d, at);
	if (r == 0)
		r = walk_run(&w, fn, arg);
	free(w.v);
	free(w.path);
	return r;
}

int
sb_manifest_walk(const struct sb_manifest *m, sb_manifest_walk_fn fn, void *arg)
{
	return sb_manifest_walk_dir(m->root.dir, "", fn, arg);
}

struct sb_entry **
sb_manifest_dirs(const struct sb_entry *root, size_t *out_n, struct sb_error *err)
{
	size_t n = 0, cap = 64;
	struct sb_entry **v = malloc(cap * sizeof *v);

	if (!v)
		goto fail;
	v[n++] = (struct sb_entry *)root;
	for (size_t i = 0; i < n; i++) {
		const struct sb_dir *d = v[i]->dir;

		for (uint32_t k = 0; k < d->n; k++) {
			if (d->entries[k].type != SB_ENTRY_DIR)
				continue;
			if (n == cap) {
				struct sb_entry **grown = reallocarray(v, cap * 2, sizeof *v);

				if (!grown)
					goto fail;
				v = grown;
				cap *= 2;
			}
			v[n++] = &d->entries[k];
		}
	}
	*out_n = n;
	return v;
fail:
	free(v);
	(void)sb_fail(err, SB_E_NOMEM, "list of directories: out of memory");
	return NULL;
}
