/* SPDX-License-Identifier: MIT */
/* The three-way rules, on random trees against a model of them that is written as a table. */
#include "tests/lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sync/plan/reconcile.h>
#include <sync/tree/diff.h>

#include "tests/lib/model.h"

#define TRIPLES 24000 /* RECONCILE_TRIPLES overrides */

static struct sb_manifest *
manifest_of(const struct model_list *l)
{
	struct sb_error err = { 0 };
	struct sb_manifest *m = sb_manifest_new(&err);

	assert_non_null(m);
	for (size_t i = 0; i < l->n; i++) {
		const struct model_node *n = &l->v[i].n;
		struct sb_entry e = { .type = n->type, .mode = n->mode, .mtime = n->mtime };
		struct sb_entry *put;
		char target[32];

		(void)snprintf(target, sizeof target, "to-%u", n->content);
		if (n->type == MODEL_FILE)
			e.size = 4;
		if (n->type == MODEL_LINK)
			e.size = strlen(target);
		if (n->type != MODEL_DIR)
			e.digest = sb_digest_of(target, strlen(target));
		put = sb_manifest_put(m, l->v[i].path, &e, n->type == MODEL_LINK ? target : NULL,
			&err);
		assert_non_null(put);
		for (size_t k = 0; n->link && k <= i; k++)
			if (l->v[k].n.type == MODEL_FILE && l->v[k].n.link == n->link) {
				assert_ok(sb_manifest_set_link(m, put, l->v[k].path, &err), &err);
				break;
			}
	}
	assert_ok(sb_manifest_finish(m, &err), &err);
	return m;
}

/* Contents are told from digests again by looking them up in what went in. */
struct reading {
	const struct model_list *known[2];
	struct model_list *out;
};

static uint32_t
content_of(const struct reading *x, const struct sb_entry *e)
{
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < x->known[k]->n; i++) {
			const struct model_node *n = &x->known[k]->v[i].n;
			char target[32];
			struct sb_digest d;

			(void)snprintf(target, sizeof target, "to-%u", n->content);
			d = sb_digest_of(target, strlen(target));
			if (n->type == e->type && sb_digest_eq(&d, &e->digest))
				return n->content;
		}
	return UINT32_MAX;
}

static int
read_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct reading *x = arg;
	struct model_row *r = &x->out->v[x->out->n++];

	(void)len;
	assert_true(x->out->n <= sizeof x->out->v / sizeof x->out->v[0]);
	(void)snprintf(r->path, sizeof r->path, "%s", path);
	r->n = (struct model_node){ .type = e->type, .mode = e->mode, .mtime = (uint32_t)e->mtime };
	if (e->type != SB_ENTRY_DIR)
		r->n.content = content_of(x, e);
	r->n.link = e->link;
	return 0;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_row *)a)->path, ((const struct model_row *)b)->path);
}

/* The outcome of the real thing: both trees afterwards. */
struct outcome {
	struct model_list local, runtime;
	struct sb_reconciled rec;
};

static void
apply(const struct sb_manifest *m, const struct sb_diff *d, const struct model_list *l,
	const struct model_list *r, struct model_list *out)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *next = sb_manifest_copy(m, &err);
	struct reading x = { { l, r }, out };

	assert_non_null(next);
	assert_ok(sb_diff_apply(next, d, &err), &err);
	out->n = 0;
	assert_ok(sb_manifest_walk(next, read_entry, &x), &err);
	qsort(out->v, out->n, sizeof out->v[0], by_path);
}

static void
real_run(const struct model_list *b, const struct model_list *l, const struct model_list *r,
	int direction, enum model_policy policy, struct outcome *out)
{
	struct sb_error err = { 0 };
	struct sb_reconcile_opts o = SB_RECONCILE_OPTS_INIT;
	sb_auto(sb_manifest) struct sb_manifest *mb = manifest_of(b), *ml = manifest_of(l),
						*mr = manifest_of(r);

	o.direction = (enum sb_direction)direction;
	o.policy = policy == MODEL_TAKE_LOCAL ? SB_POLICY_LOCAL :
		policy == MODEL_TAKE_RUNTIME  ? SB_POLICY_RUNTIME :
						SB_POLICY_KEEP_BOTH;
	o.label = MODEL_LABEL;
	assert_ok(sb_reconcile_trees(mb, ml, mr, &o, &out->rec, &err), &err);
	apply(ml, &out->rec.local, l, r, &out->local);
	apply(mr, &out->rec.runtime, l, r, &out->runtime);
}

static size_t
asides(const struct sb_reconciled *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_conflicts; i++)
		n += r->conflicts[i].saved_as != NULL;
	return n;
}

/* Three random trees, their lists, and what the rules make of them. */
struct triple {
	uint64_t seed;
	struct model_tree b, l, r;
	struct model_list bl, ll, rl;
};

static void
make_triple(struct triple *t, uint64_t seed)
{
	t->seed = seed;
	if (seed % 8 == 0)
		memset(&t->b, 0, sizeof t->b);
	else
		model_make(&t->b, &seed);
	t->l = t->r = t->b;
	if (model_below(&seed, 12) == 0)
		model_make(&t->l, &seed);
	if (model_below(&seed, 12) == 0)
		model_make(&t->r, &seed);
	model_edit(&t->l, model_below(&seed, 14), &seed);
	model_edit(&t->r, model_below(&seed, 14), &seed);
	/* What both do alike is no conflict. */
	if (model_below(&seed, 3) == 0) {
		uint64_t s = seed, again = seed;

		model_edit(&t->l, 3, &s);
		model_edit(&t->r, 3, &again);
	}
	model_list_of(&t->b, &t->bl);
	model_list_of(&t->l, &t->ll);
	model_list_of(&t->r, &t->rl);
}

/* The same with hard links everywhere. */
static void
make_linked(struct triple *t, uint64_t seed)
{
	t->seed = seed;
	model_make(&t->b, &seed);
	model_edit_links(&t->b, 12, &seed);
	t->l = t->r = t->b;
	model_edit_links(&t->l, model_below(&seed, 8), &seed);
	model_edit_links(&t->r, model_below(&seed, 8), &seed);
	if (model_below(&seed, 3) == 0) {
		uint64_t s = seed, again = seed;

		model_edit_links(&t->l, 3, &s);
		model_edit_links(&t->r, 3, &again);
	}
	model_list_of(&t->b, &t->bl);
	model_list_of(&t->l, &t->ll);
	model_list_of(&t->r, &t->rl);
}

static void
must_match(const struct triple *t, const char *what, const struct model_list *got,
	const struct model_list *want)
{
	char why[512];

	if (model_differ(got, want, true, why, sizeof why))
		fail_msg("seed %llu: %s: %s", (unsigned long long)t->seed, what, why);
}

static const char *const ways[] = { "", "to", "from", "both" };

static void
check_model(const struct triple *t, int direction, enum model_policy policy, struct outcome *got)
{
	struct model_result want;
	char what[96];

	real_run(&t->bl, &t->ll, &t->rl, direction, policy, got);
	model_run(&t->b, &t->l, &t->r, direction, policy, &want);
	(void)snprintf(what, sizeof what, "%s, policy %d, local", ways[direction], policy);
	must_match(t, what, &got->local, &want.local);
	(void)snprintf(what, sizeof what, "%s, policy %d, runtime", ways[direction], policy);
	must_match(t, what, &got->runtime, &want.runtime);
	if (asides(&got->rec) != want.n_conflicts ||
		got->rec.n_conflicts != want.n_conflicts + want.n_revived)
		fail_msg("seed %llu: %s: %zu conflicts and %zu in all instead of %zu and %zu",
			(unsigned long long)t->seed, what, asides(&got->rec), got->rec.n_conflicts,
			want.n_conflicts, want.n_conflicts + want.n_revived);
	for (size_t i = 0, k = 0; i < got->rec.n_conflicts; i++) {
		const struct sb_conflict *c = &got->rec.conflicts[i];

		if (!c->saved_as)
			continue;
		for (k = 0; k < want.n_conflicts; k++)
			if (strcmp(c->path, model_path(want.at[k])) == 0 &&
				strcmp(c->saved_as, want.conflicts[k]) == 0)
				break;
		if (k == want.n_conflicts)
			fail_msg("seed %llu: %s: conflict %s saved as %s",
				(unsigned long long)t->seed, what, c->path, c->saved_as);
	}
}

/* What is in `from` and not in the base is in `in`. */
static void
must_hold(const struct triple *t, const struct model_list *from, const struct model_list *in,
	const char *what)
{
	for (size_t i = 0; i < from->n; i++)
		if (from->v[i].n.type != MODEL_DIR && !model_has_content(&t->bl, &from->v[i].n) &&
			!model_has_content(in, &from->v[i].n))
			fail_msg("seed %llu: %s: content %u of %s is lost",
				(unsigned long long)t->seed, what, from->v[i].n.content,
				from->v[i].path);
}

static void
check_nothing_lost(const struct triple *t, int direction, const struct outcome *o)
{
	must_hold(t, &t->ll, &o->local, "local work, here");
	must_hold(t, &t->rl, direction == MODEL_TO ? &o->runtime : &o->local, "the runtime's work");
	if (direction & MODEL_TO) {
		must_hold(t, &t->ll, &o->runtime, "local work, there");
		must_hold(t, &t->rl, &o->runtime, "the runtime's work, there");
	}
	if (direction == MODEL_BOTH)
		must_match(t, "the two sides after a turn", &o->local, &o->runtime);
	else if (direction == MODEL_TO)
		must_match(t, "the side that is not changed", &o->local, &t->ll);
	else
		must_match(t, "the side that is not changed", &o->runtime, &t->rl);
}

/* Again, with the base that is recorded: the tree that was not changed, or the common one. */
static void
check_again(const struct triple *t, int direction, enum model_policy policy,
	const struct outcome *o)
{
	const struct model_list *base = direction == MODEL_FROM ? &t->rl :
		direction == MODEL_TO                           ? &t->ll :
								  &o->local;
	struct outcome again;

	real_run(base, &o->local, &o->runtime, direction, policy, &again);
	if (again.rec.local.n || again.rec.runtime.n)
		fail_msg("seed %llu: %s: the second run changes %s", (unsigned long long)t->seed,
			ways[direction],
			again.rec.local.n ? again.rec.local.v[0].path :
					    again.rec.runtime.v[0].path);
	if (asides(&again.rec))
		fail_msg("seed %llu: %s: the second run finds conflicts",
			(unsigned long long)t->seed, ways[direction]);
	sb_reconcile_free(&again.rec);
}

/* The sides exchanged, directions and policies too: the same with the sides exchanged. */
static void
check_mirrored(const struct triple *t, int direction, enum model_policy policy,
	const struct outcome *o)
{
	static const int back[] = { 0, MODEL_FROM, MODEL_TO, MODEL_BOTH };
	static const enum model_policy other[] = { MODEL_KEEP_BOTH, MODEL_TAKE_RUNTIME,
		MODEL_TAKE_LOCAL };
	struct outcome m;

	real_run(&t->bl, &t->rl, &t->ll, back[direction], other[policy], &m);
	must_match(t, "mirrored: local", &m.runtime, &o->local);
	must_match(t, "mirrored: runtime", &m.local, &o->runtime);
	sb_reconcile_free(&m.rec);
}

static const struct model_node *
at(const struct model_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0)
			return &l->v[i].n;
	return NULL;
}

/* Keep both, mirrored: conflicts at the same paths, the versions in place and beside exchanged. */
static void
check_mirrored_conflicts(const struct triple *t, const struct outcome *o)
{
	struct outcome m;

	real_run(&t->bl, &t->rl, &t->ll, MODEL_BOTH, MODEL_KEEP_BOTH, &m);
	if (asides(&m.rec) != asides(&o->rec))
		fail_msg("seed %llu: mirrored: %zu conflicts instead of %zu",
			(unsigned long long)t->seed, asides(&m.rec), asides(&o->rec));
	for (size_t i = 0; i < o->rec.n_conflicts; i++) {
		const struct sb_conflict *c = &o->rec.conflicts[i], *d = NULL;
		const struct model_node *place, *beside;

		for (size_t k = 0; c->saved_as && k < m.rec.n_conflicts && !d; k++)
			if (m.rec.conflicts[k].saved_as &&
				strcmp(m.rec.conflicts[k].path, c->path) == 0)
				d = &m.rec.conflicts[k];
		if (!c->saved_as)
			continue;
		assert_non_null(d);
		place = at(&o->local, c->path);
		beside = at(&m.local, d->saved_as);
		if (!place || !beside || place->type != beside->type ||
			place->content != beside->content)
			fail_msg("seed %llu: mirrored: %s is not beside itself",
				(unsigned long long)t->seed, c->path);
	}
	sb_reconcile_free(&m.rec);
}

static unsigned
triples(void)
{
	const char *n = getenv("RECONCILE_TRIPLES");

	return n ? (unsigned)strtoul(n, NULL, 10) : TRIPLES;
}

static void
random_triples_follow_the_table(void **state)
{
	uint64_t conflicts = 0, changes = 0;
	unsigned n = triples();

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct triple t;

		make_triple(&t, seed);
		for (int direction = MODEL_TO; direction <= MODEL_BOTH; direction++) {
			struct outcome o;

			check_model(&t, direction, MODEL_KEEP_BOTH, &o);
			check_nothing_lost(&t, direction, &o);
			check_again(&t, direction, MODEL_KEEP_BOTH, &o);
			if (direction == MODEL_BOTH)
				check_mirrored_conflicts(&t, &o);
			conflicts += o.rec.n_conflicts;
			changes += o.rec.local.n + o.rec.runtime.n;
			sb_reconcile_free(&o.rec);
		}
	}
	print_message("# %u triples, three directions: %llu changes, %llu conflicts\n", n,
		(unsigned long long)changes, (unsigned long long)conflicts);
	/* A generator that makes nothing to decide would let everything pass. */
	assert_true(conflicts > n / 2);
	assert_true(changes > 3 * (uint64_t)n);
}

static void
choosing_a_side_follows_the_table_and_mirrors(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= triples() / 4; seed++) {
		struct triple t;

		make_triple(&t, seed * 31);
		for (int direction = MODEL_TO; direction <= MODEL_BOTH; direction++) {
			enum model_policy policy = seed % 2 ? MODEL_TAKE_LOCAL : MODEL_TAKE_RUNTIME;
			struct outcome o;

			check_model(&t, direction, policy, &o);
			check_mirrored(&t, direction, policy, &o);
			check_again(&t, direction, policy, &o);
			sb_reconcile_free(&o.rec);
		}
	}
}

static void
hard_links_follow_the_table(void **state)
{
	size_t links = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= triples() / 4; seed++) {
		struct triple t;

		make_linked(&t, seed * 17);
		for (int direction = MODEL_TO; direction <= MODEL_BOTH; direction++)
			for (int policy = MODEL_KEEP_BOTH; policy <= MODEL_TAKE_RUNTIME; policy++) {
				struct outcome o;

				check_model(&t, direction, (enum model_policy)policy, &o);
				if (policy == MODEL_KEEP_BOTH)
					check_nothing_lost(&t, direction, &o);
				check_again(&t, direction, (enum model_policy)policy, &o);
				for (size_t i = 0; i < o.local.n; i++)
					links += o.local.v[i].n.link != 0;
				sb_reconcile_free(&o.rec);
			}
	}
	assert_true(links > triples());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_links_follow_the_table),
		cmocka_unit_test(random_triples_follow_the_table),
		cmocka_unit_test(choosing_a_side_follows_the_table_and_mirrors),
	};

	return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
