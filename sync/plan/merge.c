/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/merge.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include <base/cleanup.h>

#define MAX_STEPS 60000000u /* comparisons of one difference */

/* A text as lines, each with its newline; equal lines of all three texts have equal numbers. */
struct text {
	const uint8_t *data;
	size_t *at; /* n + 1 offsets */
	uint32_t *id;
	size_t n;
};

/* Numbers for lines: open addressing over all lines seen. */
struct numbers {
	struct {
		const uint8_t *p;
		size_t len;
		uint32_t id; /* 0: free */
	} * v;
	size_t mask;
	uint32_t next;
};

static void
text_free(struct text *t)
{
	free(t->at);
	free(t->id);
}
SB_CLEANUP_VALUE(text, text_free)

static uint32_t
number_of(struct numbers *n, const uint8_t *p, size_t len)
{
	size_t k = XXH3_64bits(p, len) & n->mask;

	while (n->v[k].id && (n->v[k].len != len || memcmp(n->v[k].p, p, len) != 0))
		k = (k + 1) & n->mask;
	if (!n->v[k].id) {
		n->v[k].p = p;
		n->v[k].len = len;
		n->v[k].id = ++n->next;
	}
	return n->v[k].id;
}

static size_t
count_lines(const struct sb_merge_text *t)
{
	const uint8_t *p = t->data, *end = p + t->len;
	size_t n = 0;

	while (p < end) {
		const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));

		n++;
		p = nl ? nl + 1 : end;
	}
	return n;
}

static int
split(const struct sb_merge_text *from, size_t lines, struct numbers *numbers, struct text *out,
	struct sb_error *err)
{
	const uint8_t *p = from->data, *end = p + from->len;

	out->data = from->data;
	out->at = calloc(lines + 1, sizeof *out->at);
	out->id = calloc(lines + 1, sizeof *out->id);
	if (!out->at || !out->id)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	while (p < end) {
		const uint8_t *nl = memchr(p, '\n', (size_t)(end - p)), *next = nl ? nl + 1 : end;

		out->at[out->n] = (size_t)(p - out->data);
		out->id[out->n++] = number_of(numbers, p, (size_t)(next - p));
		p = next;
	}
	out->at[out->n] = from->len;
	return 0;
}

/*
 * The greedy shortest edit script (Myers): after `d` edits, v[k] is how far the diagonal k (x - y)
 * reaches in `a`. The v of every d is kept, so that the way can be walked back.
 */
struct edits {
	const uint32_t *a, *b;
	int n, m;
	int **v;   /* for each d, 2d + 1 entries, v[d][k + d] */
	int depth; /* the d that reached the end; -1: none within bounds */
	uint64_t steps;
};

static void
edits_free(struct edits *e)
{
	for (int d = 0; e->v && d <= SB_MERGE_MAX_EDITS; d++)
		free(e->v[d]);
	free(e->v);
}
SB_CLEANUP_VALUE(edits, edits_free)

#define MAX_WAYS 50000000u
#define DEAD (-1) /* a diagonal that left the table */

/*
 * The diagonal from which d edits reach diagonal k furthest; 0 with `*x` DEAD when there is none.
 */
static int
come_from(const struct edits *e, int d, int k, int *x)
{
	const int *last = e->v[d - 1] + (d - 1);
	int down = k + 1 <= d - 1 ? last[k + 1] : DEAD, right = k - 1 >= 1 - d ? last[k - 1] : DEAD;

	down = down != DEAD && down - k <= e->m ? down : DEAD;
	right = right != DEAD && right + 1 <= e->n ? right + 1 : DEAD;
	*x = down >= right ? down : right;
	return *x == DEAD ? 0 : down >= right ? k + 1 : k - 1;
}

/* Where diagonal k gets to with d edits, from what d - 1 edits reached. */
static int
reach(struct edits *e, int d, int k)
{
	int x = 0, y;

	e->steps++;
	if (d)
		(void)come_from(e, d, k, &x);
	if (x == DEAD)
		return x;
	for (y = x - k; x < e->n && y < e->m && e->a[x] == e->b[y]; x++, y++)
		e->steps++;
	return x;
}

static int
find_script(struct edits *e, struct sb_error *err)
{
	e->depth = -1;
	e->v = calloc(SB_MERGE_MAX_EDITS + 1, sizeof *e->v);
	if (!e->v)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	for (int d = 0; d <= SB_MERGE_MAX_EDITS && e->steps < MAX_STEPS; d++) {
		e->v[d] = calloc(2 * (size_t)d + 1, sizeof *e->v[d]);
		if (!e->v[d])
			return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
		for (int k = -d; k <= d; k += 2) {
			int x = reach(e, d, k);

			e->v[d][k + d] = x;
			if (x == e->n && x - k == e->m) {
				e->depth = d;
				return 0;
			}
		}
	}
	return 0;
}

/* Fills match[i] with the line of b that line i of a is, or -1. */
static void
walk_back(const struct edits *e, int *match)
{
	int x = e->n, y = e->m;

	for (int d = e->depth; d >= 0; d--) {
		int start = 0, k = x - y, from = d ? come_from(e, d, k, &start) : 0;

		/* Back along the equal lines to where the edit ended, then over the edit. */
		while (x > start) {
			x--;
			y--;
			match[x] = y;
		}
		if (d) {
			x = e->v[d - 1][from + d - 1];
			y = x - from;
		}
	}
}

/* match[i], i in the base: the same line in `t`, or -1. 1: found, 0: too different. */
static int
match_lines(const struct text *base, const struct text *t, int *match, struct sb_error *err)
{
	size_t head = 0, tail = 0;
	sb_auto(edits) struct edits e = { 0 };
	int r;

	for (size_t i = 0; i < base->n; i++)
		match[i] = -1;
	while (head < base->n && head < t->n && base->id[head] == t->id[head]) {
		match[head] = (int)head;
		head++;
	}
	while (tail < base->n - head && tail < t->n - head &&
		base->id[base->n - 1 - tail] == t->id[t->n - 1 - tail]) {
		match[base->n - 1 - tail] = (int)(t->n - 1 - tail);
		tail++;
	}
	e.a = base->id + head;
	e.b = t->id + head;
	e.n = (int)(base->n - head - tail);
	e.m = (int)(t->n - head - tail);
	r = find_script(&e, err);
	if (r < 0 || e.depth < 0)
		return r;
	walk_back(&e, match + head);
	for (int i = 0; i < e.n; i++)
		if (match[head + (size_t)i] >= 0)
			match[head + (size_t)i] += (int)head;
	return 1;
}

/*
 * Between equal lines a difference can be read in several ways: of three equal lines any one may be
 * the one that went. A line of the base is sure when there is one way to read what became of it;
 * only such lines hold the three texts together, so that two sides that each removed one of the
 * three are seen to have done the same, or to be in each other's way.
 */
struct alignment {
	const struct text *t;
	int *match;    /* of each line of the base: the same line in `t`, or -1 */
	uint8_t *sure; /* of each line of the base */
};

static void
alignment_free(struct alignment *a)
{
	free(a->match);
	free(a->sure);
}
SB_CLEANUP_VALUE(alignment, alignment_free)

/* A text backwards: read from its end, a difference shows its other ways. */
static int
turn_around(const struct text *t, struct text *out, struct sb_error *err)
{
	out->id = calloc(t->n + 1, sizeof *out->id);
	if (!out->id)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	out->n = t->n;
	for (size_t i = 0; i < t->n; i++)
		out->id[i] = t->id[t->n - 1 - i];
	return 0;
}

/*
 * Lines removed from `i0` to `i`, or added from `j0` to `j`, could as well be the same number of
 * lines further up or down, as long as what enters on one end equals what leaves on the other.
 * `v` is the text they are lines of, `from` and `to` where they are in it.
 */
static void
slide(const struct text *base, const struct alignment *a, size_t i0, size_t i, size_t j0, size_t j,
	bool removed)
{
	const uint32_t *v = removed ? base->id : a->t->id;
	size_t from = removed ? i0 : j0, to = removed ? i : j, k;

	if (from == to)
		return;
	for (k = 0; i + k < base->n && a->match[i + k] == (int)(j + k) && v[from + k] == v[to + k];
		k++)
		a->sure[i + k] = 0;
	for (k = 1;
		k <= i0 && k <= j0 && a->match[i0 - k] == (int)(j0 - k) && v[from - k] == v[to - k];
		k++)
		a->sure[i0 - k] = 0;
}

static void
find_slides(const struct text *base, const struct alignment *a)
{
	size_t i = 0, j = 0;

	while (i < base->n || j < a->t->n) {
		size_t i0 = i, j0 = j;

		if (i < base->n && a->match[i] == (int)j) {
			i++;
			j++;
			continue;
		}
		while (i < base->n && a->match[i] < 0)
			i++;
		j = i < base->n ? (size_t)a->match[i] : a->t->n;
		slide(base, a, i0, i, j0, j, true);
		slide(base, a, i0, i, j0, j, false);
	}
}

/* The fewest edits to line `x` of a, on diagonal k; more than there are: it is not reached. */
static int
distance(const struct edits *e, int x, int k)
{
	int d = k < 0 ? -k : k;

	while (d <= e->depth && e->v[d][k + d] < x)
		d += 2;
	return d;
}

/* In how many shortest scripts' ways does line i stay, or go (which counts twice)? */
static int
count_ways(const struct edits *e, const struct edits *back, int i)
{
	int ways = 0, all = e->depth, left = e->n - i - 1;

	for (int k = -all; k <= all && ways < 2; k++) {
		int y = i - k, f = y >= 0 && y <= e->m ? distance(e, i, k) : all + 1;
		int same = e->n - e->m - k;

		if (f > all)
			continue;
		if (same - 1 >= -all && f + 1 + distance(back, left, same - 1) <= all)
			ways += 2;
		if (y < e->m && e->a[i] == e->b[y] && same >= -all && same <= all &&
			f + distance(back, left, same) <= all)
			ways++;
	}
	return ways;
}

/*
 * Of all shortest scripts between the two texts, where few edits make that affordable: a line that
 * some of them keep elsewhere, or take away, is not sure.
 */
static int
find_other_ways(const struct text *base, const struct text *rbase, const struct text *rt,
	const struct alignment *out, struct sb_error *err)
{
	sb_auto(edits) struct edits e = { 0 }, back = { 0 };
	const struct text *t = out->t;
	size_t head = 0, tail = 0;
	int r;

	while (head < base->n && head < t->n && base->id[head] == t->id[head])
		head++;
	while (tail < base->n - head && tail < t->n - head &&
		base->id[base->n - 1 - tail] == t->id[t->n - 1 - tail])
		tail++;
	e.a = base->id + head;
	e.b = t->id + head;
	back.a = rbase->id + tail;
	back.b = rt->id + tail;
	e.n = back.n = (int)(base->n - head - tail);
	e.m = back.m = (int)(t->n - head - tail);
	r = find_script(&e, err);
	if (r == 0)
		r = find_script(&back, err);
	if (r < 0 || e.depth < 0 || back.depth < 0 ||
		(uint64_t)e.n * (uint64_t)e.depth * (uint64_t)(e.depth + 1) > MAX_WAYS)
		return r;
	for (int i = 0; i < e.n; i++)
		if (out->sure[head + (size_t)i] && count_ways(&e, &back, i) != 1)
			out->sure[head + (size_t)i] = 0;
	return 0;
}

/* 1: aligned, 0: too different. */
static int
align(const struct text *base, const struct text *t, struct alignment *out, struct sb_error *err)
{
	sb_auto(text) struct text rbase = { 0 }, rt = { 0 };
	sb_autofree int *back = calloc(base->n + 1, sizeof *back);
	int r;

	out->t = t;
	out->match = calloc(base->n + 1, sizeof *out->match);
	out->sure = calloc(base->n + 1, 1);
	if (!back || !out->match || !out->sure)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	r = turn_around(base, &rbase, err);
	if (r == 0)
		r = turn_around(t, &rt, err);
	if (r == 0)
		r = match_lines(base, t, out->match, err);
	if (r == 1)
		r = match_lines(&rbase, &rt, back, err);
	if (r != 1)
		return r;
	for (size_t i = 0; i < base->n; i++) {
		int other = back[base->n - 1 - i];

		out->sure[i] =
			out->match[i] >= 0 && other >= 0 && out->match[i] == (int)t->n - 1 - other;
	}
	find_slides(base, out);
	r = find_other_ways(base, &rbase, &rt, out, err);
	return r < 0 ? r : 1;
}

/* Lines from..to of a text. */
struct part {
	const struct text *t;
	size_t from, to;
};

static bool
same_part(const struct part *x, const struct part *y)
{
	return x->to - x->from == y->to - y->from &&
		memcmp(x->t->id + x->from, y->t->id + y->from,
			(x->to - x->from) * sizeof *x->t->id) == 0;
}

static void
add_part(struct sb_buf *out, const struct part *p)
{
	if (p->to > p->from)
		sb_buf_add(out, p->t->data + p->t->at[p->from],
			p->t->at[p->to] - p->t->at[p->from]);
}

/*
 * Goes through the base: lines all three have are taken, what lies between them from whoever
 * changed it.
 */
static bool
weave(const struct text *base, const struct alignment *x, const struct alignment *y,
	struct sb_buf *out)
{
	const struct text *a = x->t, *b = y->t;
	const int *ma = x->match, *mb = y->match;
	size_t i = 0, ja = 0, jb = 0;

	while (i < base->n || ja < a->n || jb < b->n) {
		size_t next = i;
		struct part pb = { base, i, 0 }, pa = { a, ja, a->n }, pc = { b, jb, b->n };

		if (i < base->n && x->sure[i] && y->sure[i] && ma[i] == (int)ja &&
			mb[i] == (int)jb) {
			add_part(out, &(struct part){ base, i, i + 1 });
			i++;
			ja++;
			jb++;
			continue;
		}
		while (next < base->n && !(x->sure[next] && y->sure[next]))
			next++;
		pb.to = next;
		if (next < base->n) {
			pa.to = (size_t)ma[next];
			pc.to = (size_t)mb[next];
		}
		if (same_part(&pb, &pa) || same_part(&pa, &pc))
			add_part(out, &pc);
		else if (same_part(&pb, &pc))
			add_part(out, &pa);
		else
			return false;
		i = next;
		ja = pa.to;
		jb = pc.to;
	}
	return true;
}

static bool
is_text(const struct sb_merge_text *t)
{
	return t->len <= SB_MERGE_MAX_BYTES && (!t->len || !memchr(t->data, 0, t->len));
}

int
sb_merge_texts(const struct sb_merge_text *base, const struct sb_merge_text *a,
	const struct sb_merge_text *b, struct sb_buf *out, struct sb_error *err)
{
	const struct sb_merge_text *in[3] = { base, a, b };
	sb_auto(text) struct text t0 = { 0 }, t1 = { 0 }, t2 = { 0 };
	struct text *t[3] = { &t0, &t1, &t2 };
	sb_auto(alignment) struct alignment x = { 0 }, y = { 0 };
	struct numbers numbers = { 0 };
	size_t lines[3], all = 0;
	int r = 0;

	sb_buf_init(out, 4 * (size_t)SB_MERGE_MAX_BYTES);
	for (int i = 0; i < 3; i++) {
		if (!is_text(in[i]))
			return 0;
		lines[i] = count_lines(in[i]);
		if (lines[i] > SB_MERGE_MAX_LINES)
			return 0;
		all += lines[i];
	}
	for (numbers.mask = 15; numbers.mask < 2 * all; numbers.mask = 2 * numbers.mask + 1)
		;
	numbers.v = calloc(numbers.mask + 1, sizeof *numbers.v);
	if (!numbers.v)
		r = sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	for (int i = 0; r == 0 && i < 3; i++)
		r = split(in[i], lines[i], &numbers, t[i], err);
	free(numbers.v);
	if (r == 0)
		r = align(t[0], t[1], &x, err);
	if (r == 1)
		r = align(t[0], t[2], &y, err);
	if (r == 1)
		r = weave(t[0], &x, &y, out) ? 1 : 0;
	return r == 1 && out->failed ? sb_fail(err, SB_E_NOMEM, "merge: out of memory") : r;
}
