/* SPDX-License-Identifier: MIT */
/*
 * The garbage collector. A part that no index names is marked first; then all indexes are listed
 * again, and what still none names goes. A writer that wants to use a part looks for marks after
 * its index is written, and reads everything back after that: either it sees the mark and does
 * without the part, or the collector sees its index. Marks carry the collector's own name, so none
 * takes away another's; one that died leaves marks, which only make writers write a frame anew,
 * until a later collector removes them.
 */
#include "config.h"

#include <host/cold/cold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/random.h>
#include <base/str.h>
#include <base/strlist.h>

/* A collector that stood still for so long gives up; later its marks may be removed. */
#define PATIENCE_S 3600
#define STALE_S (24 * 3600)
#define NAME_LEN (SB_COLDINDEX_PART_MAX - 1)

/* Names of parts, sorted once all are there. */
struct names {
	char (*v)[SB_COLDINDEX_PART_MAX];
	size_t n, cap;
};

struct collector {
	struct sb_cold *c;
	const struct sb_host_call *call;
	char own[17];
	int64_t older_than_s, now_s;
	struct names used, found, marked;
	uint64_t *sizes; /* of `found` */
	struct sb_strlist read, indexes, gone;
	struct sb_cold_collected out;
};

static int
add_name(struct names *n, const char *name, struct sb_error *err)
{
	if (n->n == n->cap) {
		size_t cap = n->cap ? n->cap * 2 : 256;
		void *v = reallocarray(n->v, cap, sizeof n->v[0]);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "parts");
		n->v = v;
		n->cap = cap;
	}
	(void)snprintf(n->v[n->n++], sizeof n->v[0], "%.*s", NAME_LEN, name);
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool
has(const struct names *n, const char *name)
{
	return n->n > 0 && bsearch(name, n->v, n->n, sizeof n->v[0], by_name);
}

static bool
is_part(const char *name)
{
	return strspn(name, "0123456789abcdef") == NAME_LEN;
}

static int64_t
now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec;
}

static int
on_session(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct collector *g = arg;

	if (sb_str_ends(e->key, ".index"))
		sb_strlist_add(&g->indexes, e->key);
	return sb_strlist_check(&g->indexes, err);
}

/* Reads the indexes that were not read yet. What cannot be read may name anything. */
static int
read_indexes(struct collector *g, struct sb_error *err)
{
	struct sb_coldread_opts o = sb_cold_reading(g->c, g->call);
	sb_autofree char *prefix = sb_str_printf("%s/sessions/", g->c->space);
	struct sb_error why = { 0 };
	int r = prefix ? g->c->store->ops->list(g->c->store, prefix, on_session, g, g->call, err) :
			 sb_fail(err, SB_E_NOMEM, "collect");

	for (size_t i = 0; i < g->indexes.n && r == 0; i++) {
		sb_auto(sb_coldindex) struct sb_coldindex x = { 0 };

		if (sb_strlist_has(sb_strlist_borrow(&g->read), g->indexes.v[i]))
			continue;
		r = sb_coldread_index(&o, g->indexes.v[i], &x, &why);
		if (r == SB_E_NOTFOUND) {
			r = 0; /* its session was destroyed meanwhile, or has a newer one */
			continue;
		}
		if (r < 0)
			return sb_fail(err, r, "nothing is removed: %s", why.msg);
		for (size_t k = 0; k < x.n_parts && r == 0; k++)
			r = add_name(&g->used, x.parts[k].name, err);
		sb_strlist_add(&g->read, g->indexes.v[i]);
	}
	if (r == 0)
		r = sb_strlist_check(&g->read, err);
	sb_strlist_free(&g->indexes);
	if (g->used.n > 0)
		qsort(g->used.v, g->used.n, sizeof g->used.v[0], by_name);
	return r;
}

static int
on_gone(const struct sb_cold_entry *e, void *arg, struct sb_error *err)
{
	struct collector *g = arg;

	if (strcmp(e->where, "gone") == 0)
		sb_strlist_addf(&g->gone, "%s/sessions/%s.%s", g->c->space, e->id, e->nonce);
	return sb_strlist_check(&g->gone, err);
}

/* The archives of sessions that were destroyed, in case their host did not come to it. */
static int
remove_gone(struct collector *g, struct sb_error *err)
{
	int r = sb_cold_list(g->c, NULL, false, g->call, on_gone, g, err);

	for (size_t i = 0; i < g->gone.n && r == 0; i++)
		r = sb_cold_prune(g->c, g->gone.v[i], NULL, g->call, err);
	g->out.archives = g->gone.n;
	return r;
}

static int
on_part(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct collector *g = arg;
	const char *name = e->key + strlen(g->c->space) + strlen("/parts/");
	uint64_t *v;

	if (!is_part(name) || strlen(name) != NAME_LEN)
		return 0;
	if (has(&g->used, name) || e->time_s > g->now_s - g->older_than_s) {
		g->out.kept++;
		return 0;
	}
	v = reallocarray(g->sizes, g->found.n + 1, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "parts");
	g->sizes = v;
	v[g->found.n] = e->size;
	return add_name(&g->found, name, err);
}

static char *
mark_key(const struct collector *g, const char *part, struct sb_error *err)
{
	char *key = sb_str_printf("%s/marks/%s.%s", g->c->space, part, g->own);

	if (!key)
		(void)sb_fail(err, SB_E_NOMEM, "collect");
	return key;
}

static int
mark(struct collector *g, struct sb_error *err)
{
	struct sb_coldstore *st = g->c->store;
	int r = 0;

	for (size_t i = 0; i < g->found.n && r == 0; i++) {
		sb_autofree char *key = mark_key(g, g->found.v[i], err);

		r = key ? st->ops->put(st, key, "x", 1, g->call, err) : SB_E_NOMEM;
		if (r == SB_E_EXISTS)
			r = 0;
	}
	return r;
}

/* What still nobody names goes; the marks go in any case, after what they stand for. */
static int
sweep(struct collector *g, int64_t began, struct sb_error *err)
{
	struct sb_coldstore *st = g->c->store;
	int r = 0;

	for (size_t i = 0; i < g->found.n && r == 0; i++) {
		sb_autofree char *key = mark_key(g, g->found.v[i], err);
		sb_autofree char *part = sb_str_printf("%s/parts/%s", g->c->space, g->found.v[i]);

		if (!key || !part)
			return sb_fail(err, SB_E_NOMEM, "collect");
		if (now_s() - began > PATIENCE_S)
			return sb_fail(err, SB_E_TIMEOUT,
				"the collector stood still for too long: begin again");
		if (has(&g->used, g->found.v[i])) {
			g->out.kept++;
		} else {
			r = st->ops->remove(st, part, g->call, err);
			g->out.removed += r == 0;
			g->out.bytes += r == 0 ? g->sizes[i] : 0;
		}
		if (r == 0)
			r = st->ops->remove(st, key, g->call, err);
	}
	return r;
}

static int
on_mark(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct collector *g = arg;

	if (e->time_s < g->now_s - STALE_S)
		sb_strlist_add(&g->indexes, e->key);
	return sb_strlist_check(&g->indexes, err);
}

static int
remove_stale_marks(struct collector *g, struct sb_error *err)
{
	sb_autofree char *prefix = sb_str_printf("%s/marks/", g->c->space);
	int r = prefix ? g->c->store->ops->list(g->c->store, prefix, on_mark, g, g->call, err) :
			 sb_fail(err, SB_E_NOMEM, "collect");

	for (size_t i = 0; i < g->indexes.n && r == 0; i++)
		r = g->c->store->ops->remove(g->c->store, g->indexes.v[i], g->call, err);
	sb_strlist_free(&g->indexes);
	return r;
}

int
sb_cold_collect(struct sb_cold *c, int64_t older_than_s, const struct sb_host_call *call,
	struct sb_cold_collected *out, struct sb_error *err)
{
	struct collector g = { .c = c,
		.call = call,
		.older_than_s = older_than_s,
		.now_s = (int64_t)time(NULL) };
	sb_autofree char *prefix = sb_str_printf("%s/parts/", c->space);
	int64_t began = now_s();
	uint8_t rnd[8];
	int r = prefix ? sb_random(rnd, sizeof rnd, err) : sb_fail(err, SB_E_NOMEM, "collect");

	if (r == 0) {
		(void)sb_str_hex(rnd, sizeof rnd, g.own);
		r = remove_gone(&g, err);
	}
	if (r == 0)
		r = read_indexes(&g, err);
	if (r == 0)
		r = c->store->ops->list(c->store, prefix, on_part, &g, call, err);
	if (r == 0)
		r = mark(&g, err);
	if (r == 0 && g.found.n > 0)
		r = read_indexes(&g, err);
	if (r == 0)
		r = sweep(&g, began, err);
	if (r == 0)
		r = remove_stale_marks(&g, err);
	if (r == 0 && c->store->ops->sweep)
		r = c->store->ops->sweep(c->store, older_than_s, call, err);
	*out = g.out;
	sb_strlist_free(&g.read);
	sb_strlist_free(&g.indexes);
	sb_strlist_free(&g.gone);
	free(g.used.v);
	free(g.found.v);
	free(g.sizes);
	return r;
}

struct looking {
	size_t skip;
	struct names marks;
};

static int
on_any_mark(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct looking *l = arg;
	const char *name = e->key + l->skip;

	return is_part(name) && name[NAME_LEN] == '.' ? add_name(&l->marks, name, err) : 0;
}

int
sb_cold_marked(struct sb_cold *c, const struct sb_coldindex *x, char part[SB_COLDINDEX_PART_MAX],
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_autofree char *prefix = sb_str_printf("%s/marks/", c->space);
	struct looking l = { .skip = strlen(c->space) + strlen("/marks/") };
	int r = prefix ? c->store->ops->list(c->store, prefix, on_any_mark, &l, call, err) :
			 sb_fail(err, SB_E_NOMEM, "cold storage");

	if (l.marks.n > 0)
		qsort(l.marks.v, l.marks.n, sizeof l.marks.v[0], by_name);
	for (size_t i = 0; i < x->n_parts && r == 0; i++)
		if (has(&l.marks, x->parts[i].name)) {
			memcpy(part, x->parts[i].name, SB_COLDINDEX_PART_MAX);
			r = 1;
		}
	free(l.marks.v);
	return r;
}
