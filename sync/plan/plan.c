/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/plan.h>
#include <sync/tree/diff.h>

#include <stdlib.h>
#include <string.h>

#include <base/work.h>
/*
 * Content (or whole directories) the receiver has, by digest: open addressing over walk-ordered
 * rows.
 */
struct row {
	struct sb_digest digest;
	char *path;
	const struct sb_entry *e;
	bool gone; /* deleted by this plan: may be moved, once */
	bool used;
};

struct content_table {
	struct row *v;
	size_t n, cap;
	uint32_t *slots; /* 1 + row */
	size_t mask;
	struct sb_error *err;
};

static void
table_free(struct content_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].path);
	free(t->v);
	free(t->slots);
}

static size_t
slot_of(const struct content_table *t, const struct sb_digest *d)
{
	size_t h;

	memcpy(&h, d->b, sizeof h);
	return h & t->mask;
}

/* Is content of this digest wanted by the plan? A table of only those keeps memory small. */
struct plan_wanted {
	struct sb_digest *v;
	size_t n, mask;
};

static bool
is_wanted(const struct plan_wanted *w, const struct sb_digest *d)
{
	size_t h;

	if (!w->v)
		return false;
	memcpy(&h, d->b, sizeof h);
	for (h &= w->mask; sb_digest_known(&w->v[h]); h = (h + 1) & w->mask)
		if (sb_digest_eq(&w->v[h], d))
			return true;
	return false;
}

static int
want_all(const struct sb_diff *diff, struct plan_wanted *w, struct sb_error *err)
{
	size_t n = 0, cap = 64;

	for (size_t i = 0; i < diff->n; i++)
		n += !diff->v[i].del && diff->v[i].entry.type != SB_ENTRY_LINK;
	while (cap < n * 2)
		cap *= 2;
	w->v = calloc(cap, sizeof *w->v);
	if (!w->v)
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	w->mask = cap - 1;
	for (size_t i = 0; i < diff->n; i++) {
		const struct sb_change *c = &diff->v[i];
		size_t h;
		int r = sb_work_alive(err);

		if (r < 0)
			return r;
		if (c->del || c->entry.type == SB_ENTRY_LINK ||
			!sb_digest_known(&c->entry.digest) || is_wanted(w, &c->entry.digest))
			continue;
		memcpy(&h, c->entry.digest.b, sizeof h);
		for (h &= w->mask; sb_digest_known(&w->v[h]);)
			h = (h + 1) & w->mask;
		w->v[h] = c->entry.digest;
	}
	return 0;
}

struct plan_gather {
	struct content_table *t;
	const struct plan_wanted *w;
	const struct sb_diff *diff;
	size_t at;       /* the DEL change that may cover the current path */
	const char *del; /* the subtree that is being deleted, or NULL */
	bool replaced;   /* something else comes to its path */
};

static int
add_row(struct content_table *t, const char *path, const struct sb_entry *e, bool gone)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct row *v = realloc(t->v, cap * sizeof *v);

		if (!v)
			return sb_fail(t->err, SB_E_NOMEM, "plan: out of memory");
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n] =
		(struct row){ .digest = e->digest, .e = e, .gone = gone, .path = strdup(path) };
	if (!t->v[t->n].path)
		return sb_fail(t->err, SB_E_NOMEM, "plan: out of memory");
	t->n++;
	return 0;
}

/*
 * Walks the receiver in the order of the diff, noting what is wanted elsewhere and whether it is
 * about to be deleted.
 */
static int
gather_row(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct plan_gather *g = arg;
	size_t n = g->del ? strlen(g->del) : 0;
	bool gone;

	(void)len;
	if (g->del && (strncmp(path, g->del, n) != 0 || (path[n] && path[n] != '/')))
		g->del = NULL;
	/* Both are in pre-order of whole components, so one pass over the DELs is enough. */
	while (!g->del && g->at < g->diff->n) {
		const struct sb_change *c = &g->diff->v[g->at];

		if (!c->del) {
			g->at++;
			continue;
		}
		if (strcmp(c->path, path) != 0)
			break;
		g->del = c->path;
		g->replaced =
			g->at + 1 < g->diff->n && strcmp(g->diff->v[g->at + 1].path, c->path) == 0;
		g->at++;
	}
	gone = g->del && !(g->replaced && strcmp(g->del, path) == 0);
	if (e->type == SB_ENTRY_LINK || !is_wanted(g->w, &e->digest))
		return 0;
	if (e->type == SB_ENTRY_DIR && (!gone || !e->dir->total))
		return 0;
	if (e->type == SB_ENTRY_FILE && (!e->size || e->link))
		gone = false; /* hard links are not moved */
	return add_row(g->t, path, e, gone);
}

static int
index_rows(struct content_table *t)
{
	size_t cap = 64;

	while (cap < t->n * 2)
		cap *= 2;
	t->slots = calloc(cap, sizeof *t->slots);
	if (!t->slots)
		return sb_fail(t->err, SB_E_NOMEM, "plan: out of memory");
	t->mask = cap - 1;
	for (size_t i = 0; i < t->n; i++) {
		size_t h = slot_of(t, &t->v[i].digest);

		while (t->slots[h])
			h = (h + 1) & t->mask;
		t->slots[h] = (uint32_t)i + 1;
	}
	return 0;
}

/* The best source for this content: something that goes anyway, else anything. */
static struct row *
find_row(struct content_table *t, const struct sb_entry *e)
{
	struct row *any = NULL;

	if (!t->slots || !sb_digest_known(&e->digest))
		return NULL;
	for (size_t h = slot_of(t, &e->digest); t->slots[h]; h = (h + 1) & t->mask) {
		struct row *r = &t->v[t->slots[h] - 1];

		if (sb_work_alive(NULL) < 0)
			return NULL;
		if (!sb_digest_eq(&r->digest, &e->digest) || r->e->type != e->type)
			continue;
		if (e->type == SB_ENTRY_FILE && r->e->size != e->size)
			continue;
		if (r->gone && !r->used)
			return r;
		any = any ? any : r;
	}
	return e->type == SB_ENTRY_FILE ? any : NULL;
}

void
sb_plan_free(struct sb_plan *p)
{
	if (p->steps)
		for (size_t i = 0; i < p->diff.n; i++)
			free((char *)p->steps[i].from);
	free(p->steps);
	sb_diff_free(&p->diff);
	memset(p, 0, sizeof *p);
}

static bool
have_left(const struct sb_plan_opts *o, const struct sb_entry *e)
{
	size_t lo = 0, hi = o->n_have;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = memcmp(o->have[mid].digest.b, e->digest.b, 16);

		if (c == 0)
			return o->have[mid].size == e->size;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static int
set_from(struct sb_plan_step *s, uint8_t method, const char *from, struct sb_error *err)
{
	s->method = method;
	s->from = strdup(from);
	return s->from ? 0 : sb_fail(err, SB_E_NOMEM, "plan: out of memory");
}

/* How one file comes. */
static int
file_step(struct sb_plan *p, const struct sb_change *c, const struct sb_entry *old,
	bool parent_moved, struct content_table *t, const struct sb_plan_opts *o,
	struct sb_plan_step *s, struct sb_error *err)
{
	struct row *r;

	if (c->leader && strcmp(c->leader, c->path) != 0) {
		s->method = SB_METHOD_HARDLINK;
		return 0;
	}
	if (old && old->type == SB_ENTRY_FILE && sb_entry_same_content(old, &c->entry)) {
		/* A link that is one no more gets an inode of its own. */
		if ((old->link && !c->leader) || c->fresh)
			return set_from(s, SB_METHOD_CLONE, c->path, err);
		s->method = SB_METHOD_META;
		return 0;
	}
	if (!c->entry.size) {
		s->method = SB_METHOD_MAKE;
		return 0;
	}
	if (!o->no_reuse && have_left(o, &c->entry)) {
		s->method = SB_METHOD_LEFTOVER;
		return 0;
	}
	r = o->no_reuse ? NULL : find_row(t, &c->entry);
	if (r && r->gone && !r->used && !old && !c->leader && !parent_moved) {
		r->used = true;
		p->n_move++;
		return set_from(s, SB_METHOD_MOVE, r->path, err);
	}
	if (r) {
		p->n_clone++;
		return set_from(s, SB_METHOD_CLONE, r->path, err);
	}
	s->method = SB_METHOD_DATA;
	p->n_data++;
	p->data_bytes += c->entry.size;
	return 0;
}

/* A row is used up by a move; so is everything inside it. */
static void
use_subtree(struct content_table *t, const char *dir)
{
	size_t n = strlen(dir);

	for (size_t i = 0; i < t->n; i++)
		if (strncmp(t->v[i].path, dir, n) == 0 &&
			(t->v[i].path[n] == '/' || !t->v[i].path[n]))
			t->v[i].used = true;
}

static bool
subtree_used(const struct content_table *t, const char *dir)
{
	size_t n = strlen(dir);

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].used && strncmp(t->v[i].path, dir, n) == 0 && t->v[i].path[n] == '/')
			return true;
	return false;
}

static int
find_link(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)len;
	(void)arg;
	return e->type == SB_ENTRY_FILE && e->link ? SB_E_EXISTS : 0;
}

/* Is anything that goes into the directory of change `i` a hard link? */
static bool
puts_links(const struct sb_diff *d, size_t i)
{
	const char *dir = d->v[i].path;
	size_t len = strlen(dir);

	while (++i < d->n && strncmp(d->v[i].path, dir, len) == 0 && d->v[i].path[len] == '/')
		if (d->v[i].leader)
			return true;
	return false;
}

/*
 * Is the new directory of change `i` one that the receiver is about to delete elsewhere? One with
 * hard links is not moved as a whole: its digest says nothing about them.
 */
static struct row *
moved_dir(struct content_table *t, const struct sb_diff *d, size_t i, const struct sb_entry *old,
	const struct sb_plan_opts *o)
{
	const struct sb_change *c = &d->v[i];
	struct row *r = o->no_reuse || old || !sb_digest_known(&c->entry.digest) ?
		NULL :
		find_row(t, &c->entry);

	return r && !subtree_used(t, r->path) && !puts_links(d, i) &&
			sb_manifest_walk_dir(r->e->dir, "", find_link, NULL) == 0 ?
		r :
		NULL;
}

static int
make_steps(struct sb_plan *p, const struct sb_manifest *receiver, struct content_table *t,
	const struct sb_plan_opts *o, struct sb_error *err)
{
	const char *inside = NULL; /* of a directory that moves as a whole */
	size_t kept = 0, len = 0;
	int r = 0;

	for (size_t i = 0; i < p->diff.n && r == 0; i++) {
		struct sb_change *c = &p->diff.v[i];
		struct sb_plan_step *s = &p->steps[kept];
		const struct sb_entry *old;

		r = sb_work_alive(err);
		if (r < 0)
			break;
		if (inside && strncmp(c->path, inside, len) == 0 && c->path[len] == '/')
			continue;
		inside = NULL;
		old = sb_manifest_find(receiver, c->path);
		if (c->del) {
			s->method = SB_METHOD_DELETE;
			p->n_delete += 1 + (old && old->type == SB_ENTRY_DIR ? old->dir->total : 0);
			if (i + 1 < p->diff.n && strcmp(p->diff.v[i + 1].path, c->path) == 0)
				p->n_delete--; /* replaced, not gone */
		} else if (c->entry.type == SB_ENTRY_DIR) {
			struct row *from = moved_dir(t, &p->diff, i, old, o);

			s->method = SB_METHOD_MAKE;
			if (from) {
				use_subtree(t, from->path);
				p->n_move += 1;
				p->n_delete -= 1 + from->e->dir->total;
				r = set_from(s, SB_METHOD_MOVE, from->path, err);
				inside = c->path;
				len = strlen(inside);
			} else if (old && old->type == SB_ENTRY_DIR) {
				s->method = SB_METHOD_META;
			}
		} else if (c->entry.type == SB_ENTRY_LINK) {
			s->method = old && sb_entry_same_content(old, &c->entry) ? SB_METHOD_META :
										   SB_METHOD_MAKE;
		} else {
			r = file_step(p, c, old, false, t, o, s, err);
			if (r == 0 && s->method == SB_METHOD_MOVE)
				p->n_delete--;
		}
		p->diff.v[kept++] = *c;
	}
	p->diff.n = kept;
	return r;
}

int
sb_plan_make(struct sb_diff *diff, const struct sb_manifest *receiver,
	const struct sb_plan_opts *opts, struct sb_plan *out, struct sb_error *err)
{
	struct content_table t = { .err = err };
	struct plan_wanted w = { 0 };
	struct plan_gather g = { .t = &t, .w = &w };
	int r = 0;

	memset(out, 0, sizeof *out);
	out->diff = *diff;
	memset(diff, 0, sizeof *diff);
	out->steps = calloc(out->diff.n + 1, sizeof *out->steps);
	if (!out->steps) {
		sb_plan_free(out);
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	}
	g.diff = &out->diff;
	if (!opts->no_reuse && receiver->count) {
		r = want_all(&out->diff, &w, err);
		if (r == 0)
			r = sb_manifest_walk(receiver, gather_row, &g);
		if (r == 0)
			r = index_rows(&t);
	}
	if (r == 0)
		r = make_steps(out, receiver, &t, opts, err);
	table_free(&t);
	free(w.v);
	if (r < 0)
		sb_plan_free(out);
	return r;
}

size_t
sb_plan_piece_len(const struct sb_plan *p, size_t from, size_t max)
{
	size_t n = p->diff.n - from;

	if (n <= max)
		return n;
	if (p->diff.v[from + max - 1].del &&
		strcmp(p->diff.v[from + max - 1].path, p->diff.v[from + max].path) == 0)
		return max - 1;
	return max;
}

int
sb_plan_check_brake(const struct sb_plan *p, const struct sb_manifest *receiver, int64_t max_delete,
	bool trusted, const char *where, struct sb_error *err)
{
	uint64_t n = receiver->count;
	uint64_t few = trusted ? (n > 100 ? 0 : n) : 10;
	uint64_t limit = max_delete >= 0 ? (uint64_t)max_delete : n / 2 > few ? n / 2 : few;

	if (p->n_delete > limit)
		return sb_fail(err, SB_E_BRAKE,
			"this would delete %llu of %llu entries in %s, more than the limit of "
			"%llu; nothing was "
			"changed; to go on: --max-delete %llu",
			(unsigned long long)p->n_delete, (unsigned long long)n, where,
			(unsigned long long)limit, (unsigned long long)p->n_delete);
	if (max_delete < 0 && n > 1 && p->n_delete >= n) {
		bool puts = false;

		for (size_t i = 0; trusted && i < p->diff.n && !puts; i++)
			puts = !p->diff.v[i].del;
		if (!puts)
			return sb_fail(err, SB_E_BRAKE,
				"this would empty %s (%llu entries); nothing was changed; to go "
				"on: "
				"--max-delete %llu",
				where, (unsigned long long)n, (unsigned long long)n);
	}
	return 0;
}
