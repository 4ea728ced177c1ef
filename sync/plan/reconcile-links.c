/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/reconcile-links.h>

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <sync/plan/guard.h>
#include <sync/tree/diff.h>

#define GONE UINT32_MAX /* instead of a group: there is no such file in that tree */
#define NO_GROUP UINT32_MAX
#define KINDS 16 /* of members with different histories in one group: more leave it */

enum { TREE_BASE, TREE_LOCAL, TREE_RUNTIME };

/* What a tree, or all three, say about two names. */
enum opinion { SAY_NOTHING, ONE_FILE, TWO_FILES };

/* A name that is hard-linked in any of the trees. */
struct name {
	char *path;
	uint32_t in[3]; /* its group in each tree; 0: a file by itself */
	/* On the side that is being settled: */
	const struct sb_entry *now; /* as it is there; NULL: no file */
	struct sb_entry then;       /* as it will be; type 0: no file */
	uint32_t want;              /* index of its group */
	bool changes;               /* the content does */
	bool pinned;                /* it must not become another file */
};

/* Names that will be one file on that side. */
struct want {
	uint32_t members;
	uint32_t first;  /* name */
	uint32_t leader; /* name: the one that keeps its inode, else the first */
	uint32_t kinds[KINDS];
	uint32_t n_kinds;
	bool stays; /* the leader keeps its inode */
	bool act;   /* something is to be done */
};

struct links {
	const struct sb_manifest *tree[3];
	const struct sb_reconcile_opts *o;
	struct name *v;
	uint32_t n, cap;
	struct want *want;
	uint32_t n_want;
	uint16_t mode_mask; /* the mode bits that count on this side */
	uint32_t *heirs;    /* by group of this side's tree: 1 + the want that keeps the inode */
	struct sb_error *err;
};

static int
by_order(const void *a, const void *b)
{
	const struct sb_change *x = a, *y = b;
	int c = sb_diff_path_order(x->path, y->path);

	return c ? c : (int)y->del - (int)x->del;
}

void
sb_reconcile_sort(struct sb_diff *d)
{
	if (d->n)
		qsort(d->v, d->n, sizeof *d->v, by_order);
}

static int
add_name(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct links *w = arg;

	if (e->type != SB_ENTRY_FILE || !e->link)
		return 0;
	if (w->n == w->cap) {
		uint32_t cap = w->cap ? w->cap * 2 : 64;
		struct name *v = realloc(w->v, cap * sizeof *v);

		if (!v)
			return SB_E_NOMEM;
		w->v = v;
		w->cap = cap;
	}
	w->v[w->n] = (struct name){ .path = strndup(path, len) };
	return w->v[w->n].path ? (int)(w->n++ & 0) : SB_E_NOMEM;
}

static int
by_name(const void *a, const void *b)
{
	return sb_diff_path_order(((const struct name *)a)->path, ((const struct name *)b)->path);
}

/* All names that any tree links, each once, with what each tree says about it. */
static int
gather(struct links *w)
{
	uint32_t kept = 0;
	int r = 0;

	for (int t = 0; r == 0 && t < 3; t++)
		if (w->tree[t]->n_leaders)
			r = sb_manifest_walk(w->tree[t], add_name, w);
	if (r < 0)
		return sb_fail(w->err, SB_E_NOMEM, "hard links: out of memory");
	if (w->n)
		qsort(w->v, w->n, sizeof *w->v, by_name);
	for (uint32_t i = 0; i < w->n; i++) {
		if (kept && strcmp(w->v[kept - 1].path, w->v[i].path) == 0) {
			free(w->v[i].path);
			continue;
		}
		w->v[kept++] = w->v[i];
	}
	w->n = kept;
	for (uint32_t i = 0; i < w->n; i++)
		for (int t = 0; t < 3; t++) {
			const struct sb_entry *e = sb_manifest_find(w->tree[t], w->v[i].path);

			w->v[i].in[t] = e && e->type == SB_ENTRY_FILE ? e->link : GONE;
		}
	return 0;
}

static enum opinion
opinion(uint32_t a, uint32_t b)
{
	if (a == GONE || b == GONE)
		return SAY_NOTHING;
	return a && a == b ? ONE_FILE : TWO_FILES;
}

/* Whoever changed it decides. */
static enum opinion
verdict(const struct name *a, const struct name *b)
{
	enum opinion base = opinion(a->in[TREE_BASE], b->in[TREE_BASE]),
		     l = opinion(a->in[TREE_LOCAL], b->in[TREE_LOCAL]),
		     r = opinion(a->in[TREE_RUNTIME], b->in[TREE_RUNTIME]);

	if (l == SAY_NOTHING || l == r)
		return r;
	if (r == SAY_NOTHING)
		return l;
	return base == SAY_NOTHING ? TWO_FILES : l == base ? r : l;
}

/* The first change at or after `path`. */
static size_t
lower_bound(const struct sb_diff *d, const char *path)
{
	size_t lo = 0, hi = d->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sb_diff_path_order(d->v[mid].path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Is the name removed, by itself or with a directory above it? */
static bool
is_deleted(const struct sb_diff *d, const char *path, struct sb_buf *buf)
{
	size_t len = strlen(path);

	sb_buf_reset(buf);
	sb_buf_add_str(buf, path);
	if (buf->failed)
		return false;
	for (;;) {
		const char *at = (const char *)buf->data;
		size_t i = lower_bound(d, at);

		if (i < d->n && d->v[i].del && strcmp(d->v[i].path, at) == 0)
			return true;
		while (len && buf->data[len] != '/')
			len--;
		if (!len)
			return false;
		buf->data[len] = 0;
	}
}

/* Inside .git, or one that later runs obey: no link from elsewhere changes which file it is. */
static bool
is_guarded(const struct sb_reconcile_opts *o, const char *path)
{
	if (strncmp(path, ".git/", 5) == 0 || strstr(path, "/.git/"))
		return !o->trust_git_config;
	return sb_guard_path(path) == SB_GUARD_PROJECT && !o->trust_project_files;
}

/* Each name as it is on this side and as it will be. */
static int
look(struct links *w, const struct sb_manifest *m, const struct sb_diff *d, bool local)
{
	sb_auto(sb_buf) struct sb_buf buf = { 0 };

	sb_buf_init(&buf, 1u << 20);
	for (uint32_t i = 0; i < w->n; i++) {
		struct name *x = &w->v[i];
		const struct sb_entry *e = sb_manifest_find(m, x->path);
		const struct sb_change *put = sb_diff_find_put(d, x->path);

		x->now = e && e->type == SB_ENTRY_FILE ? e : NULL;
		memset(&x->then, 0, sizeof x->then);
		if (put)
			x->then = put->entry;
		else if (x->now && !is_deleted(d, x->path, &buf))
			x->then = *x->now;
		if (x->then.type != SB_ENTRY_FILE)
			x->then.type = 0;
		x->changes = x->now && x->then.type && !sb_entry_same_content(x->now, &x->then);
		x->pinned = local && x->now && is_guarded(w->o, x->path);
		x->want = NO_GROUP;
	}
	return sb_buf_check(&buf, "hard links", w->err);
}

static bool
may_join(const struct links *w, const struct want *g, const struct name *x)
{
	const struct sb_entry *a = &w->v[g->first].then, *b = &x->then;
	bool one = false;

	if (!sb_entry_same_content(a, b) || ((a->mode ^ b->mode) & w->mode_mask) ||
		a->mtime != b->mtime)
		return false;
	for (uint32_t i = 0; i < g->n_kinds; i++) {
		enum opinion v = verdict(&w->v[g->kinds[i]], x);

		if (v == TWO_FILES)
			return false;
		one |= v == ONE_FILE;
	}
	return one;
}

/*
 * Where to look for groups that a name may join, of which it takes the first: those with a member
 * of one of its groups in a tree. Lists, by tree and group.
 */
struct opened {
	uint32_t *head[3];
	struct {
		uint32_t want, next;
	} * v;
	uint32_t n;
};

static void
open_for(struct opened *o, const struct name *x, uint32_t want)
{
	for (int t = 0; t < 3; t++) {
		uint32_t g = x->in[t];

		if (!g || g == GONE)
			continue;
		o->v[++o->n].want = want;
		o->v[o->n].next = o->head[t][g];
		o->head[t][g] = o->n;
	}
}

static void
join(struct links *w, struct opened *o, uint32_t group, uint32_t name)
{
	struct want *g = &w->want[group];
	struct name *x = &w->v[name];
	bool known = false;

	for (uint32_t i = 0; i < g->n_kinds && !known; i++)
		known = memcmp(w->v[g->kinds[i]].in, x->in, sizeof x->in) == 0;
	if (!known && g->n_kinds == KINDS)
		return;
	x->want = group;
	g->members++;
	if (!known) {
		g->kinds[g->n_kinds++] = name;
		open_for(o, x, group);
	}
}

static void
place_name(struct links *w, struct opened *o, uint32_t i)
{
	struct name *x = &w->v[i];
	uint32_t best = NO_GROUP;

	for (int t = 0; t < 3 && !x->pinned; t++) {
		uint32_t g = x->in[t];

		for (uint32_t k = g && g != GONE ? o->head[t][g] : 0; k; k = o->v[k].next)
			if (o->v[k].want < best && may_join(w, &w->want[o->v[k].want], x))
				best = o->v[k].want;
	}
	if (best != NO_GROUP)
		join(w, o, best, i);
	if (x->want != NO_GROUP)
		return;
	w->want[w->n_want] = (struct want){ .members = 1,
		.first = i,
		.leader = i,
		.kinds = { i },
		.n_kinds = 1 };
	x->want = w->n_want;
	if (!x->pinned)
		open_for(o, x, w->n_want);
	w->n_want++;
}

static int
gather_wants(struct links *w)
{
	struct opened o = { .v = calloc((size_t)w->n * 3 + 1, sizeof *o.v) };
	int r = 0;

	w->n_want = 0;
	for (int t = 0; t < 3; t++)
		o.head[t] = calloc((size_t)w->tree[t]->n_leaders + 1, sizeof *o.head[t]);
	if (!o.v || !o.head[0] || !o.head[1] || !o.head[2])
		r = sb_fail(w->err, SB_E_NOMEM, "hard links: out of memory");
	for (uint32_t i = 0; r == 0 && i < w->n; i++)
		if (w->v[i].then.type)
			place_name(w, &o, i);
	for (int t = 0; t < 3; t++)
		free(o.head[t]);
	free(o.v);
	return r;
}

/*
 * Of the names that share an inode now, which keep it: those that are pinned, else those with the
 * first name whose content stays.
 */
static void
choose_heirs(struct links *w, int side)
{
	memset(w->heirs, 0, (size_t)(w->tree[side]->n_leaders + 1) * sizeof *w->heirs);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < w->n; i++) {
			const struct name *x = &w->v[i];

			if (x->now && x->now->link && x->then.type && !x->changes &&
				(x->pinned || pass) && !w->heirs[x->now->link])
				w->heirs[x->now->link] = x->want + 1;
		}
	for (uint32_t i = 0; i < w->n; i++) {
		const struct name *x = &w->v[i];
		struct want *g = x->then.type ? &w->want[x->want] : NULL;
		bool stays = g && x->now && !x->changes &&
			(!x->now->link || w->heirs[x->now->link] == x->want + 1);

		if (stays && !g->stays) {
			g->stays = true;
			g->leader = i;
		}
	}
}

/* Does this side have the group as it should be, without any change to it? */
static void
mark_act(struct links *w, const struct sb_diff *d)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const struct name *x = &w->v[i];
		struct want *g = x->then.type ? &w->want[x->want] : NULL;
		const struct name *lead = g ? &w->v[g->leader] : NULL;

		if (!g)
			continue;
		if (sb_diff_find_put(d, x->path) || !g->stays)
			g->act = true;
		else if (x != lead && (!x->now->link || x->now->link != lead->now->link))
			g->act = true;
	}
}

/*
 * When some names of a group of this side become, or are told to be, another file, the rest are
 * told what they are, too: the group's name may go with the former.
 */
static void
spread_act(struct links *w, int side)
{
	bool more = true;

	memset(w->heirs, 0, (size_t)(w->tree[side]->n_leaders + 1) * sizeof *w->heirs);
	while (more) {
		more = false;
		for (uint32_t i = 0; i < w->n; i++) {
			const struct name *x = &w->v[i];
			uint32_t g = x->then.type && x->now ? x->now->link : 0;

			if (!g)
				continue;
			if (w->want[x->want].act && !w->heirs[g]) {
				w->heirs[g] = 1;
				more = true;
			} else if (!w->want[x->want].act && w->heirs[g]) {
				w->want[x->want].act = true;
				more = true;
			}
		}
	}
}

/* Tells the list of changes what one name becomes. */
static int
tell(struct links *w, struct sb_diff *d, uint32_t i)
{
	const struct name *x = &w->v[i];
	const struct want *g = &w->want[x->want];
	const char *leader = g->members > 1 ? w->v[g->leader].path : NULL;
	struct sb_change *c = (struct sb_change *)(uintptr_t)sb_diff_find_put(d, x->path);
	int r = 0;

	if (!c) {
		/* A name by itself that has its own inode: nothing is to be done. */
		if (x->pinned || (!leader && x->now && !x->now->link))
			return 0;
		r = sb_diff_add(d, x->path, false, &w->v[g->leader].then, NULL, leader, w->err);
		c = r == 0 ? &d->v[d->n - 1] : NULL;
	} else if (leader) {
		r = sb_diff_set_leader(d, c, leader, w->err);
	}
	/* One file has one mode. */
	if (r == 0)
		c->entry.mode = w->v[g->leader].then.mode;
	if (r == 0 && i == g->leader && x->now && x->now->link && !x->changes)
		c->fresh = !g->stays;
	return r;
}

static int
settle_side(struct links *w, int side, struct sb_diff *d)
{
	uint32_t *heirs = calloc((size_t)w->tree[side]->n_leaders + 1, sizeof *heirs);
	sb_auto(sb_diff) struct sb_diff more = { 0 };
	int r = look(w, w->tree[side], d, side == TREE_LOCAL);

	w->heirs = heirs;
	w->mode_mask = side == TREE_LOCAL ? w->o->mode_mask : 07777;
	if (!heirs)
		r = sb_fail(w->err, SB_E_NOMEM, "hard links: out of memory");
	if (r == 0)
		r = gather_wants(w);
	if (r == 0) {
		choose_heirs(w, side);
		mark_act(w, d);
		spread_act(w, side);
	}
	free(heirs);
	w->heirs = NULL;
	/* Those that are in the list first, while it is in order; then the new ones. */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; r == 0 && i < w->n; i++) {
			const struct name *x = &w->v[i];

			if (!x->then.type || !w->want[x->want].act ||
				(sb_diff_find_put(d, x->path) != NULL) == (pass == 1))
				continue;
			r = tell(w, pass ? &more : d, i);
		}
	for (size_t i = 0; r == 0 && i < more.n; i++) {
		const struct sb_change *c = &more.v[i];

		r = sb_diff_add(d, c->path, false, &c->entry, NULL, c->leader, w->err);
		if (r == 0)
			d->v[d->n - 1].fresh = c->fresh;
	}
	sb_reconcile_sort(d);
	return r;
}

int
sb_reconcile_links(const struct sb_manifest *base, const struct sb_manifest *local,
	const struct sb_manifest *runtime, const struct sb_reconcile_opts *opts,
	struct sb_reconciled *out, struct sb_error *err)
{
	struct links w = { .tree = { base, local, runtime }, .o = opts, .err = err };
	int r = 0;

	if (!base->n_leaders && !local->n_leaders && !runtime->n_leaders)
		return 0;
	r = gather(&w);
	w.want = r < 0 ? NULL : calloc((size_t)w.n + 1, sizeof *w.want);
	if (r == 0 && !w.want)
		r = sb_fail(err, SB_E_NOMEM, "hard links: out of memory");
	if (r == 0 && (opts->direction & SB_FROM_RUNTIME))
		r = settle_side(&w, TREE_LOCAL, &out->local);
	if (r == 0 && (opts->direction & SB_TO_RUNTIME))
		r = settle_side(&w, TREE_RUNTIME, &out->runtime);
	for (uint32_t i = 0; i < w.n; i++)
		free(w.v[i].path);
	free(w.v);
	free(w.want);
	return r;
}
