/* SPDX-License-Identifier: MIT */
#include "tests/lib/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The second has the case of the first, the last is where a saved version of the first goes. */
static const char *const tops[MODEL_TOPS] = { "A", "a", ("a.runtime-conflict-" MODEL_LABEL), "b" };
static const char *const mids[MODEL_MIDS] = { "X", "x", "y" };
static const char *const lows[MODEL_LOWS] = { "p", "q" };

#define PER_TOP (1 + MODEL_MIDS * (1 + MODEL_LOWS))
#define PER_MID (1 + MODEL_LOWS)

uint64_t
model_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t
model_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(model_random(seed) % n);
}

const char *
model_path(size_t i)
{
	static char paths[MODEL_PATHS][96];
	size_t in = i % PER_TOP, mid = in ? (in - 1) / PER_MID : 0,
	       low = in ? (in - 1) % PER_MID : 0;

	if (paths[i][0])
		return paths[i];
	(void)snprintf(paths[i], sizeof paths[i], "%s%s%s%s%s", tops[i / PER_TOP], in ? "/" : "",
		in ? mids[mid] : "", in && low ? "/" : "", in && low ? lows[low - 1] : "");
	return paths[i];
}

size_t
model_parent(size_t i)
{
	size_t in = i % PER_TOP;

	if (!in)
		return MODEL_PATHS;
	return (in - 1) % PER_MID ? i - (in - 1) % PER_MID : i - in;
}

/* How many paths the subtree at `i` has in the table; they follow `i`. */
static size_t
span(size_t i)
{
	size_t in = i % PER_TOP;

	return !in ? PER_TOP : (in - 1) % PER_MID ? 1 : PER_MID;
}

static bool
may_be(const struct model_tree *t, size_t i)
{
	size_t up = model_parent(i);

	return up == MODEL_PATHS || t->v[up].type == MODEL_DIR;
}

static void
wipe(struct model_tree *t, size_t i)
{
	memset(&t->v[i], 0, span(i) * sizeof t->v[i]);
}

/* Mostly of its own, sometimes one of a few that others have too. */
static uint32_t
new_content(uint64_t *seed)
{
	return model_below(seed, 3) ? 10 + model_below(seed, 1u << 30) : 1 + model_below(seed, 3);
}

static void
fill(struct model_tree *t, size_t i, uint64_t *seed)
{
	static const uint16_t modes[] = { 0644, 0755, 0600 };
	struct model_node n = { .mode = modes[model_below(seed, 3)],
		.mtime = 1 + model_below(seed, 4) };

	n.type = span(i) > 1 && model_below(seed, 2) ? MODEL_DIR :
		model_below(seed, 5)                 ? MODEL_FILE :
						       MODEL_LINK;
	if (n.type == MODEL_DIR)
		n.mode = 0755;
	else
		n.content = new_content(seed);
	wipe(t, i);
	t->v[i] = n;
	for (size_t k = i + 1; k < i + span(i); k++)
		if (model_parent(k) == i && n.type == MODEL_DIR && model_below(seed, 2))
			fill(t, k, seed);
}

void
model_make(struct model_tree *t, uint64_t *seed)
{
	memset(t, 0, sizeof *t);
	for (size_t i = 0; i < MODEL_PATHS; i += PER_TOP)
		if (model_below(seed, 3))
			fill(t, i, seed);
}

static void
rename_one(struct model_tree *t, size_t i, uint64_t *seed)
{
	size_t to = model_below(seed, MODEL_PATHS);

	for (int tries = 0; tries < 20; tries++, to = (to + 1) % MODEL_PATHS)
		if (span(to) == span(i) && to != i && may_be(t, to)) {
			memcpy(&t->v[to], &t->v[i], span(i) * sizeof t->v[0]);
			wipe(t, i);
			return;
		}
}

void
model_edit(struct model_tree *t, unsigned edits, uint64_t *seed)
{
	static const uint16_t modes[] = { 0644, 0755, 0600 };

	while (edits-- > 0) {
		size_t i = model_below(seed, MODEL_PATHS);
		struct model_node *n = &t->v[i];

		if (!may_be(t, i))
			continue;
		switch (n->type ? model_below(seed, 7) : 9) {
		case 0: wipe(t, i); break;
		case 1:
			if (n->link)
				break;
			n->mode = n->type == MODEL_LINK ?
				n->mode :
				modes[n->type == MODEL_DIR ? 1 + model_below(seed, 1) :
							     model_below(seed, 3)];
			break;
		case 2:
			if (!n->link)
				n->mtime = 1 + model_below(seed, 6);
			break;
		case 3: rename_one(t, i, seed); break;
		case 4: fill(t, i, seed); break;
		case 9:
			if (model_below(seed, 2))
				fill(t, i, seed);
			break;
		default:
			if (n->type != MODEL_DIR && !n->link) {
				n->content = new_content(seed);
				n->mtime = 1 + model_below(seed, 6);
			}
		}
	}
}

/* All names of one file, or this one alone. */
static void
set_file(struct model_tree *t, size_t i, const struct model_node *n, bool in_place)
{
	uint32_t link = t->v[i].link;

	for (size_t k = 0; k < MODEL_PATHS; k++)
		if (k == i || (in_place && link && t->v[k].type && t->v[k].link == link)) {
			t->v[k] = *n;
			t->v[k].link = in_place ? link : 0;
		}
}

static void
link_one(struct model_tree *t, size_t i, uint64_t *seed)
{
	size_t to = model_below(seed, MODEL_PATHS);

	if (to == i || !may_be(t, to) || (i > to && i < to + span(to)))
		return;
	if (!t->v[i].link)
		t->v[i].link = 1 + model_below(seed, 1u << 30);
	wipe(t, to);
	t->v[to] = t->v[i];
}

void
model_edit_links(struct model_tree *t, unsigned edits, uint64_t *seed)
{
	static const uint16_t modes[] = { 0644, 0755, 0600 };

	while (edits-- > 0) {
		size_t i = model_below(seed, MODEL_PATHS);
		struct model_node n;

		/* Rather a file than nothing. */
		for (int tries = 0; tries < 8 && t->v[i].type != MODEL_FILE; tries++)
			i = model_below(seed, MODEL_PATHS);
		n = t->v[i];
		if (n.type != MODEL_FILE) {
			model_edit(t, 1, seed);
			continue;
		}
		switch (model_below(seed, 8)) {
		case 0:
		case 1:
		case 2: link_one(t, i, seed); break;
		case 3:
		case 4:
			n.content = new_content(seed);
			n.mtime = 1 + model_below(seed, 6);
			set_file(t, i, &n, model_below(seed, 3) != 0);
			break;
		case 5:
			n.mode = modes[model_below(seed, 3)];
			set_file(t, i, &n, true);
			break;
		case 6: set_file(t, i, &n, false); break; /* a copy of its own */
		default:
			if (model_below(seed, 2))
				wipe(t, i);
			else
				rename_one(t, i, seed);
		}
	}
}

/* The rules. */

struct run {
	const struct model_tree *b, *l, *r;
	int direction;
	enum model_policy policy;
	struct model_result *out;
	char taken[MODEL_PATHS][96];
	size_t n_taken;
};

static bool
same_content(const struct model_node *a, const struct model_node *b)
{
	return a->type == b->type && a->content == b->content;
}

static bool
same_leaf(const struct model_node *a, const struct model_node *b)
{
	return same_content(a, b) && (a->type == MODEL_LINK || a->mode == b->mode) &&
		a->mtime == b->mtime;
}

/* A file that was only touched was not edited. */
static bool
same_work(const struct model_node *a, const struct model_node *b)
{
	return same_content(a, b) && (a->type == MODEL_LINK || a->mode == b->mode);
}

static bool
same_below(const struct model_tree *a, size_t i, const struct model_tree *b, size_t k)
{
	for (size_t n = 0; n < span(i); n++) {
		const struct model_node *x = &a->v[i + n], *y = &b->v[k + n];

		if (x->type != y->type)
			return false;
		if (x->type == MODEL_DIR ? x->mode != y->mode : x->type && !same_work(x, y))
			return false;
	}
	return true;
}

/* Has `x` anything at or below `i` that the base has not? */
static bool
touched(const struct run *w, const struct model_tree *x, size_t i)
{
	for (size_t k = i; k < i + span(i); k++) {
		if (!x->v[k].type)
			continue;
		if (x->v[k].type != w->b->v[k].type ||
			(x->v[k].type != MODEL_DIR && !same_work(&x->v[k], &w->b->v[k])))
			return true;
	}
	return false;
}

static void
put(struct model_list *to, const char *path, const struct model_node *n)
{
	(void)snprintf(to->v[to->n].path, sizeof to->v[to->n].path, "%s", path);
	to->v[to->n++].n = *n;
}

static void
put_tree(struct model_list *to, const struct model_tree *t, size_t i, const char *as)
{
	size_t cut = strlen(model_path(i));

	for (size_t k = i; k < i + span(i); k++) {
		char path[96];

		(void)snprintf(path, sizeof path, "%s%s", as ? as : model_path(i),
			model_path(k) + cut);
		if (t->v[k].type)
			put(to, path, &t->v[k]);
	}
}

static size_t
index_of(const char *path)
{
	for (size_t i = 0; i < MODEL_PATHS; i++)
		if (strcmp(model_path(i), path) == 0)
			return i;
	return MODEL_PATHS;
}

static bool
is_taken(const struct run *w, const char *path)
{
	for (size_t i = 0; i < w->n_taken; i++)
		if (strcmp(w->taken[i], path) == 0)
			return true;
	return false;
}

/* All that is at or below `i` in the runtime, whatever else there is. */
static bool
holds(const struct model_tree *t, size_t k, const struct run *w, size_t i)
{
	if (w->r->v[i].type == MODEL_DIR && span(k) != span(i))
		return false;
	for (size_t n = 0; n < span(i); n++) {
		const struct model_node *r = &w->r->v[i + n];

		if (r->type && !same_content(&t->v[k + n], r))
			return false;
		if (w->r->v[i].type != MODEL_DIR)
			break;
	}
	return true;
}

/* Where the runtime's version goes; true: it is there already, for good. */
static bool
saved_name(struct run *w, size_t i, char *out, size_t size)
{
	for (unsigned n = 1;; n++) {
		char num[12] = "";
		size_t k;

		if (n > 1)
			(void)snprintf(num, sizeof num, "-%u", n);
		(void)snprintf(out, size, "%s.runtime-conflict-" MODEL_LABEL "%s", model_path(i),
			num);
		k = index_of(out);
		if (k < MODEL_PATHS && w->l->v[k].type && holds(w->l, k, w, i) &&
			(holds(w->r, k, w, i) || (!w->b->v[k].type && !w->r->v[k].type)))
			return true;
		if (is_taken(w, out) ||
			(k < MODEL_PATHS &&
				(w->l->v[k].type || w->r->v[k].type || w->b->v[k].type)))
			continue;
		(void)snprintf(w->taken[w->n_taken++], sizeof w->taken[0], "%s", out);
		return false;
	}
}

static void
conflict(struct run *w, size_t i)
{
	bool to = w->direction & MODEL_TO, from = w->direction & MODEL_FROM, there;
	char *as = w->out->conflicts[w->out->n_conflicts];

	if (w->policy != MODEL_KEEP_BOTH) {
		bool mine = w->policy == MODEL_TAKE_LOCAL;

		put_tree(&w->out->local, from && !mine ? w->r : w->l, i, NULL);
		put_tree(&w->out->runtime, to && mine ? w->l : w->r, i, NULL);
		return;
	}
	there = saved_name(w, i, as, sizeof w->out->conflicts[0]);
	w->out->at[w->out->n_conflicts++] = (uint8_t)i;
	put_tree(&w->out->local, w->l, i, NULL);
	if (from && !there)
		put_tree(&w->out->local, w->r, i, as);
	put_tree(&w->out->runtime, to ? w->l : w->r, i, NULL);
	if (to && !there)
		put_tree(&w->out->runtime, w->r, i, as);
}

static uint32_t
later(uint32_t b, uint32_t l, uint32_t r)
{
	return l == b ? r : r == b ? l : l > r ? l : r;
}

static void
both_leaves(struct run *w, size_t i)
{
	const struct model_node *b = &w->b->v[i], *l = &w->l->v[i], *r = &w->r->v[i];
	bool lc = !same_content(b, l), rc = !same_content(b, r);
	struct model_node m;

	if (lc && rc && !same_content(l, r)) {
		conflict(w, i);
		return;
	}
	m = lc ? *l : *r;
	if (l->type == MODEL_FILE && r->type == MODEL_FILE) {
		bool lm = b->type != MODEL_FILE || b->mode != l->mode,
		     rm = b->type != MODEL_FILE || b->mode != r->mode;

		m.mode = !lm || (rm && w->policy == MODEL_TAKE_RUNTIME) ? r->mode : l->mode;
	}
	if (same_content(l, r))
		m.mtime = later(b->type ? b->mtime : UINT32_MAX, l->mtime, r->mtime);
	put(&w->out->local, model_path(i), w->direction & MODEL_FROM ? &m : l);
	put(&w->out->runtime, model_path(i), w->direction & MODEL_TO ? &m : r);
}

static void settle(struct run *w, size_t i);

static void
settle_below(struct run *w, size_t i)
{
	for (size_t k = i + 1; k < i + span(i); k++)
		if (model_parent(k) == i)
			settle(w, k);
}

static void
both_dirs(struct run *w, size_t i)
{
	const struct model_node *b = &w->b->v[i], *l = &w->l->v[i], *r = &w->r->v[i];
	struct model_node m = *l;
	bool was = b->type == MODEL_DIR, lm = !was || b->mode != l->mode,
	     rm = !was || b->mode != r->mode;

	m.mode = !lm || (rm && w->policy == MODEL_TAKE_RUNTIME) ? r->mode : l->mode;
	m.mtime = later(was ? b->mtime : UINT32_MAX, l->mtime, r->mtime);
	put(&w->out->local, model_path(i), w->direction & MODEL_FROM ? &m : l);
	put(&w->out->runtime, model_path(i), w->direction & MODEL_TO ? &m : r);
	settle_below(w, i);
}

/* Only one side, `x`, has it. */
static void
one_side(struct run *w, size_t i, bool local)
{
	const struct model_tree *x = local ? w->l : w->r;
	struct model_list *mine = local ? &w->out->local : &w->out->runtime,
			  *other = local ? &w->out->runtime : &w->out->local;
	bool go = w->direction & (local ? MODEL_TO : MODEL_FROM),
	     come = w->direction & (local ? MODEL_FROM : MODEL_TO);

	if (w->b->v[i].type && !touched(w, x, i)) {
		if (!come)
			put_tree(mine, x, i, NULL);
	} else if (w->b->v[i].type == MODEL_DIR && x->v[i].type == MODEL_DIR) {
		put(mine, model_path(i), &x->v[i]);
		if (go)
			put(other, model_path(i), &x->v[i]);
		settle_below(w, i);
	} else {
		w->out->n_revived += w->b->v[i].type != MODEL_NONE;
		put_tree(mine, x, i, NULL);
		if (go)
			put_tree(other, x, i, NULL);
	}
}

static void
settle(struct run *w, size_t i)
{
	uint8_t l = w->l->v[i].type, r = w->r->v[i].type, b = w->b->v[i].type;

	if (!l && !r)
		return;
	if (!l || !r)
		one_side(w, i, l != MODEL_NONE);
	else if (l == MODEL_DIR && r == MODEL_DIR)
		both_dirs(w, i);
	else if (l != MODEL_DIR && r != MODEL_DIR)
		both_leaves(w, i);
	else if (b && same_below(w->b, i, w->l, i)) {
		put_tree(&w->out->local, w->direction & MODEL_FROM ? w->r : w->l, i, NULL);
		put_tree(&w->out->runtime, w->r, i, NULL);
	} else if (b && same_below(w->b, i, w->r, i)) {
		put_tree(&w->out->local, w->l, i, NULL);
		put_tree(&w->out->runtime, w->direction & MODEL_TO ? w->l : w->r, i, NULL);
	} else {
		conflict(w, i);
	}
}

/* What a tree says about two names: 0 nothing, 1 one file, 2 two files. */
static int
says(const struct model_tree *t, size_t i, size_t k)
{
	const struct model_node *a = &t->v[i], *b = &t->v[k];

	if (a->type != MODEL_FILE || b->type != MODEL_FILE)
		return 0;
	return a->link && a->link == b->link ? 1 : 2;
}

/* Whoever changed it decides; without a base they are two. */
static int
decided(const struct run *w, size_t i, size_t k)
{
	int b = says(w->b, i, k), l = says(w->l, i, k), r = says(w->r, i, k);

	return !l || l == r ? r : !r ? l : !b ? 2 : l == b ? r : l;
}

/* May the file at path `i` be one with those numbered `link` so far? */
static bool
fits(const struct run *w, struct model_row *const row[], size_t i, uint32_t link)
{
	bool one = false;

	for (size_t k = 0; k < i; k++) {
		int d;

		if (!row[k] || row[k]->n.link != link)
			continue;
		d = decided(w, i, k);
		if (d == 2 || !same_leaf(&row[i]->n, &row[k]->n))
			return false;
		one |= d == 1;
	}
	return one;
}

/* Which names of the outcome are one file. Path by path, each joins the first it may. */
static void
settle_links(const struct run *w, struct model_list *out)
{
	struct model_row *row[MODEL_PATHS] = { NULL };
	uint32_t groups = 0;

	for (size_t i = 0; i < out->n; i++) {
		size_t k = index_of(out->v[i].path);

		out->v[i].n.link = 0;
		if (k < MODEL_PATHS && out->v[i].n.type == MODEL_FILE)
			row[k] = &out->v[i];
	}
	for (size_t i = 0; i < MODEL_PATHS; i++) {
		if (!row[i])
			continue;
		for (uint32_t g = 1; g <= groups && !row[i]->n.link; g++)
			if (fits(w, row, i, g))
				row[i]->n.link = g;
		if (!row[i]->n.link)
			row[i]->n.link = ++groups;
	}
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_row *)a)->path, ((const struct model_row *)b)->path);
}

void
model_run(const struct model_tree *base, const struct model_tree *local,
	const struct model_tree *runtime, int direction, enum model_policy policy,
	struct model_result *out)
{
	struct run w = { .b = base,
		.l = local,
		.r = runtime,
		.direction = direction,
		.policy = policy,
		.out = out };

	out->local.n = out->runtime.n = out->n_conflicts = out->n_revived = 0;
	for (size_t i = 0; i < MODEL_PATHS; i += PER_TOP)
		settle(&w, i);
	if (direction & MODEL_FROM)
		settle_links(&w, &out->local);
	if (direction & MODEL_TO)
		settle_links(&w, &out->runtime);
	qsort(out->local.v, out->local.n, sizeof out->local.v[0], by_path);
	qsort(out->runtime.v, out->runtime.n, sizeof out->runtime.v[0], by_path);
}

void
model_list_of(const struct model_tree *t, struct model_list *out)
{
	out->n = 0;
	for (size_t i = 0; i < MODEL_PATHS; i++)
		if (t->v[i].type)
			put(out, model_path(i), &t->v[i]);
	qsort(out->v, out->n, sizeof out->v[0], by_path);
}

static void
show(const struct model_row *r, char *out, size_t size)
{
	if (r)
		(void)snprintf(out, size, "%s type %d content %u mode %o mtime %u", r->path,
			r->n.type, r->n.content, r->n.mode, r->n.mtime);
	else
		(void)snprintf(out, size, "nothing");
}

static bool
one_file(const struct model_list *l, size_t i, size_t k)
{
	const struct model_node *a = &l->v[i].n, *b = &l->v[k].n;

	return a->type == MODEL_FILE && b->type == MODEL_FILE && a->link && a->link == b->link;
}

bool
model_differ(const struct model_list *a, const struct model_list *b, bool dir_times, char *why,
	size_t size)
{
	for (size_t i = 0; i < a->n || i < b->n; i++) {
		const struct model_row *x = i < a->n ? &a->v[i] : NULL,
				       *y = i < b->n ? &b->v[i] : NULL;
		char xs[192], ys[192];

		if (x && y && strcmp(x->path, y->path) == 0 && x->n.type == y->n.type &&
			x->n.content == y->n.content &&
			(x->n.type == MODEL_LINK || x->n.mode == y->n.mode) &&
			((x->n.type == MODEL_DIR && !dir_times) || x->n.mtime == y->n.mtime))
			continue;
		show(x, xs, sizeof xs);
		show(y, ys, sizeof ys);
		(void)snprintf(why, size, "%s instead of %s", xs, ys);
		return true;
	}
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < i; k++) {
			bool one = one_file(a, i, k);

			if (one == one_file(b, i, k))
				continue;
			(void)snprintf(why, size, "%s and %s are %s", a->v[k].path, a->v[i].path,
				one ? "one file instead of two" : "two files instead of one");
			return true;
		}
	return false;
}

bool
model_has_content(const struct model_list *l, const struct model_node *n)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].n.type == n->type && l->v[i].n.content == n->content)
			return true;
	return false;
}
