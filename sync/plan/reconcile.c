/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/reconcile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/plan/guard-tree.h>
#include <sync/plan/reconcile-links.h>
#include <sync/tree/diff.h>

/* One reconciliation under way. A side is L or R; each has its own list of changes. */
struct reconcile_work {
	const struct sb_reconcile_opts *o;
	const struct sb_manifest *base, *local, *runtime;
	struct sb_reconciled *out;
	struct sb_error *err;
	struct sb_strlist taken;             /* names given to saved versions so far */
	const struct sb_skipped **unseen[2]; /* those of the options, by path */
};

/* The three states of one path; NULL: not there. */
struct three {
	const struct sb_entry *b, *l, *r;
};

const char *
sb_reconcile_conflict_text(enum sb_conflict_kind k)
{
	switch (k) {
	case SB_CONFLICT_EDIT: return "changed on both sides";
	case SB_CONFLICT_TYPE: return "changed into different kinds of things on both sides";
	case SB_CONFLICT_GIT:
		return "git's configuration or hooks: not taken from a sandbox (--trust-git-config "
		       "takes it)";
	case SB_CONFLICT_GIT_PATH:
		return "leads git to another configuration or other hooks: not taken from a "
		       "sandbox (--trust-git-config takes it)";
	case SB_CONFLICT_GIT_STATE:
		return "a half-done operation of git, which would run its rest: not taken from a "
		       "sandbox (--trust-git-config takes it)";
	case SB_CONFLICT_LINK: return "a link out of the root: kept aside";
	case SB_CONFLICT_PROJECT:
		return "decides about later runs: not taken from a sandbox "
		       "(--trust-project-files takes it)";
	case SB_CONFLICT_KINDS: break;
	case SB_CONFLICT_REVIVED: return "edited on one side, deleted on the other: the edit stays";
	}
	return "unknown";
}

void
sb_reconcile_free(struct sb_reconciled *r)
{
	sb_diff_free(&r->local);
	sb_diff_free(&r->runtime);
	for (size_t i = 0; i < r->n_conflicts; i++) {
		free(r->conflicts[i].path);
		free(r->conflicts[i].saved_as);
	}
	free(r->conflicts);
	for (size_t i = 0; i < r->n_unsettled; i++)
		free(r->unsettled[i]);
	free(r->unsettled);
	sb_strlist_free(&r->missed);
	memset(r, 0, sizeof *r);
}

static int
oom(struct reconcile_work *w)
{
	return sb_fail(w->err, SB_E_NOMEM, "reconcile: out of memory");
}

static int
note(struct reconcile_work *w, const char *path, const char *saved_as, enum sb_conflict_kind kind)
{
	struct sb_reconciled *o = w->out;

	if (o->n_conflicts == o->cap_conflicts) {
		size_t cap = o->cap_conflicts ? o->cap_conflicts * 2 : 16;
		struct sb_conflict *v = realloc(o->conflicts, cap * sizeof *v);

		if (!v)
			return oom(w);
		o->conflicts = v;
		o->cap_conflicts = cap;
	}
	o->conflicts[o->n_conflicts] = (struct sb_conflict){ .path = strdup(path),
		.saved_as = saved_as ? strdup(saved_as) : NULL,
		.kind = kind };
	if (!o->conflicts[o->n_conflicts].path ||
		(saved_as && !o->conflicts[o->n_conflicts].saved_as)) {
		free(o->conflicts[o->n_conflicts].path);
		return oom(w);
	}
	o->n_conflicts++;
	return 0;
}

static int
unsettle(struct reconcile_work *w, const char *path)
{
	struct sb_reconciled *o = w->out;

	if (o->n_unsettled == o->cap_unsettled) {
		size_t cap = o->cap_unsettled ? o->cap_unsettled * 2 : 16;
		char **v = realloc(o->unsettled, cap * sizeof *v);

		if (!v)
			return oom(w);
		o->unsettled = v;
		o->cap_unsettled = cap;
	}
	o->unsettled[o->n_unsettled] = strdup(path);
	if (!o->unsettled[o->n_unsettled])
		return oom(w);
	o->n_unsettled++;
	return 0;
}

static bool
same_mode(const struct reconcile_work *w, const struct sb_entry *a, const struct sb_entry *b)
{
	return a->type == SB_ENTRY_LINK || ((a->mode ^ b->mode) & w->o->mode_mask) == 0;
}

/* Equal as far as one entry goes: directories without what is in them. */
static bool
equal(const struct reconcile_work *w, const struct sb_entry *a, const struct sb_entry *b)
{
	if (!a || !b)
		return !a && !b;
	return sb_entry_same_content(a, b) && same_mode(w, a, b) && a->mtime == b->mtime;
}

/*
 * The same, but for the time: not every file system keeps that, and a file that was only touched
 * was not edited.
 */
static bool
unedited(const struct reconcile_work *w, const struct sb_entry *a, const struct sb_entry *b)
{
	return sb_entry_same_content(a, b) && same_mode(w, a, b);
}

/* Equal, but for times, with everything beneath. */
static bool
deep_equal(const struct reconcile_work *w, const struct sb_entry *a, const struct sb_entry *b)
{
	if (!a || !b)
		return !a && !b;
	if (a->type != SB_ENTRY_DIR || b->type != SB_ENTRY_DIR)
		return unedited(w, a, b);
	if (!same_mode(w, a, b))
		return false;
	if (sb_digest_eq(&a->digest, &b->digest))
		return true;
	if (a->dir->n != b->dir->n)
		return false;
	/* The digests cover mode bits that do not count and times of directories: look closer. */
	for (uint32_t i = 0; i < a->dir->n; i++)
		if (strcmp(a->dir->entries[i].name, b->dir->entries[i].name) != 0 ||
			!deep_equal(w, &a->dir->entries[i], &b->dir->entries[i]))
			return false;
	return true;
}

static struct sb_diff *
side(struct reconcile_work *w, enum sb_direction d)
{
	return d == SB_FROM_RUNTIME ? &w->out->local : &w->out->runtime;
}

/*
 * PUT of one entry on a side: FROM_RUNTIME changes the local tree, TO_RUNTIME the other. Does
 * nothing when the sync does not go in that direction.
 */
static int
put(struct reconcile_work *w, enum sb_direction d, const char *path, const struct sb_entry *e)
{
	struct sb_entry c = *e;

	if (!(w->o->direction & d))
		return 0;
	if (d == SB_FROM_RUNTIME && e->type != SB_ENTRY_LINK)
		c.mode &= w->o->mode_mask;
	if (e->type == SB_ENTRY_DIR)
		c.dir = NULL;
	return sb_diff_add(side(w, d), path, false, &c,
		e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL, NULL, w->err);
}

static int
del(struct reconcile_work *w, enum sb_direction d, const char *path)
{
	if (!(w->o->direction & d))
		return 0;
	return sb_diff_add(side(w, d), path, true, NULL, NULL, NULL, w->err);
}

static char *
join(struct reconcile_work *w, const char *dir, const char *name)
{
	char *s = *dir ? sb_str_printf("%s/%s", dir, name) : strdup(name);

	if (!s)
		(void)oom(w);
	return s;
}

/* The entry with all that is beneath it; `path` may be another than its own. */
static int
put_tree(struct reconcile_work *w, enum sb_direction d, const char *path, const struct sb_entry *e)
{
	int r = put(w, d, path, e);

	if (r < 0 || e->type != SB_ENTRY_DIR)
		return r;
	for (uint32_t i = 0; r == 0 && i < e->dir->n; i++) {
		sb_autofree char *sub = join(w, path, e->dir->entries[i].name);

		r = sub ? put_tree(w, d, sub, &e->dir->entries[i]) : SB_E_NOMEM;
	}
	return r;
}

static int
by_unseen_path(const void *a, const void *b)
{
	return strcmp((*(const struct sb_skipped *const *)a)->path,
		(*(const struct sb_skipped *const *)b)->path);
}

/* What the scan of side `s` says about a path that it could not see; NULL: it saw it. */
static const struct sb_skipped *
unseen_by(const struct reconcile_work *w, int s, const char *path)
{
	const struct sb_skipped key = { .path = (char *)(uintptr_t)path }, *k = &key, **hit;

	hit = w->unseen[s] ?
		bsearch(&k, w->unseen[s], w->o->n_unseen[s], sizeof k, by_unseen_path) :
		NULL;
	return hit ? *hit : NULL;
}

/* A sandbox decides how many paths it cannot read. */
static int
sort_unseen(struct reconcile_work *w)
{
	for (int s = 0; s < 2; s++) {
		size_t n = w->o->n_unseen[s];

		if (!n)
			continue;
		w->unseen[s] = calloc(n, sizeof *w->unseen[s]);
		if (!w->unseen[s])
			return sb_fail(w->err, SB_E_NOMEM, "reconcile: out of memory");
		for (size_t i = 0; i < n; i++)
			w->unseen[s][i] = &w->o->unseen[s][i];
		qsort(w->unseen[s], n, sizeof *w->unseen[s], by_unseen_path);
	}
	return 0;
}

/*
 * Nothing is done where a side could not be seen. What the runtime did there is not here then, and
 * whoever would give the runtime up has to know: all but the deletion of what never syncs.
 */
static int
leave_unseen(struct reconcile_work *w, const char *path, const struct three *t)
{
	const struct sb_skipped *here = unseen_by(w, 0, path);

	if (here && !deep_equal(w, t->b, t->r) && (t->r || sb_scan_skip_is_loss(here->reason))) {
		sb_strlist_add(&w->out->missed, path);
		if (sb_strlist_check(&w->out->missed, w->err) < 0)
			return SB_E_NOMEM;
	}
	return unsettle(w, path);
}

static bool
name_free(const struct reconcile_work *w, const char *path)
{
	for (size_t i = 0; i < w->taken.n; i++)
		if (strcmp(w->taken.v[i], path) == 0)
			return false;
	return !sb_manifest_find(w->local, path) && !sb_manifest_find(w->runtime, path) &&
		!sb_manifest_find(w->base, path);
}

/*
 * Does `e`, which lies aside, keep the version `r`? The guard may have put aside, once more, some
 * things in a directory that lies aside.
 */
static bool
is_kept(const struct reconcile_work *w, const struct sb_entry *e, const struct sb_entry *r)
{
	if (r->type != SB_ENTRY_DIR || e->type != SB_ENTRY_DIR)
		return sb_entry_same_content(e, r);
	if (sb_digest_eq(&e->digest, &r->digest))
		return true;
	for (uint32_t i = 0; i < r->dir->n; i++) {
		const struct sb_entry *c = &r->dir->entries[i], *k;
		char again[256];

		k = sb_manifest_dir_find(e->dir, c->name, strlen(c->name));
		if (k && is_kept(w, k, c))
			continue;
		(void)snprintf(again, sizeof again, "%s.%s-%s", c->name, w->o->word, w->o->label);
		k = sb_manifest_dir_find(e->dir, again, strlen(again));
		if (!k || !is_kept(w, k, c))
			return false;
	}
	return true;
}

static bool
holds(const struct reconcile_work *w, const struct sb_manifest *m, const char *path,
	const struct sb_entry *r)
{
	const struct sb_entry *e = sb_manifest_find(m, path);

	return e && is_kept(w, e, r);
}

/*
 * Is this very version saved under that name already, and will it stay there? Both sides have it,
 * or it is new here: any other may be edited or deleted by the other side's word in this same run.
 */
static bool
is_saved(const struct reconcile_work *w, const char *name, const struct sb_entry *r)
{
	return holds(w, w->local, name, r) &&
		(holds(w, w->runtime, name, r) ||
			(!sb_manifest_find(w->base, name) && !sb_manifest_find(w->runtime, name)));
}

/*
 * A name beside `path` for the runtime's version: NAME.runtime-conflict-LABEL[-N]. One that holds
 * this very version already is taken again: `*reused` is set and nothing needs saving.
 */
static char *
beside(struct reconcile_work *w, const char *path, const struct sb_entry *r, bool *reused)
{
	const char *leaf = strrchr(path, '/');
	size_t dir = leaf ? (size_t)(leaf + 1 - path) : 0, keep;

	leaf = path + dir;
	keep = strlen(leaf) + strlen(w->o->label) + 26 > 255 ? 255 - 26 - strlen(w->o->label) :
							       strlen(leaf);
	*reused = false;
	for (unsigned n = 1; n < 1000000; n++) {
		char num[16] = "";
		char *s;

		if (n > 1)
			(void)snprintf(num, sizeof num, "-%u", n);
		s = sb_str_printf("%.*s%.*s.%s-%s%s", (int)dir, path, (int)keep, leaf, w->o->word,
			w->o->label, num);
		if (!s) {
			(void)oom(w);
			return NULL;
		}
		if (is_saved(w, s, r)) {
			*reused = true;
			return s;
		}
		if (name_free(w, s)) {
			sb_strlist_add(&w->taken, s);
			if (sb_strlist_check(&w->taken, w->err) < 0) {
				free(s);
				return NULL;
			}
			return s;
		}
		free(s);
	}
	(void)sb_fail(w->err, SB_E_LIMIT, "%s has too many saved versions beside it", path);
	return NULL;
}

/*
 * Both have it and it differs: L keeps the place, R's version goes beside it wherever something is
 * changed.
 */
static int
keep_both(struct reconcile_work *w, const char *path, const struct three *t,
	enum sb_conflict_kind kind)
{
	bool reused;
	sb_autofree char *aside = beside(w, path, t->r, &reused);
	int r;

	if (!aside)
		return w->err ? w->err->code : SB_E_NOMEM;
	r = note(w, path, aside, kind);
	if (r == 0 && !reused)
		r = put_tree(w, SB_FROM_RUNTIME, aside, t->r);
	if (r == 0 && !reused)
		r = put_tree(w, SB_TO_RUNTIME, aside, t->r);
	/* L's version takes the place over there. */
	if (r == 0 && (t->r->type == SB_ENTRY_DIR) != (t->l->type == SB_ENTRY_DIR))
		r = del(w, SB_TO_RUNTIME, path);
	if (r == 0)
		r = put_tree(w, SB_TO_RUNTIME, path, t->l);
	return r;
}

/* One side's version goes over, whatever is at the other. */
static int
take(struct reconcile_work *w, enum sb_direction d, const char *path, const struct sb_entry *e,
	const struct sb_entry *at)
{
	int r = 0;

	if (at && (!e || (e->type == SB_ENTRY_DIR) != (at->type == SB_ENTRY_DIR)))
		r = del(w, d, path);
	if (r == 0 && e)
		r = put_tree(w, d, path, e);
	return r;
}

static enum sb_policy
policy_at(const struct reconcile_work *w, const char *path)
{
	return w->o->policy_of ? w->o->policy_of(path, w->o->arg) : w->o->policy;
}

/*
 * The mode of whoever changed it; of the local side when both did, unless the runtime's is asked
 * for.
 */
static uint16_t
merged_mode(const struct reconcile_work *w, const char *path, const struct sb_entry *b,
	const struct sb_entry *l, const struct sb_entry *r)
{
	if (b && same_mode(w, b, l))
		return r->mode;
	if (b && same_mode(w, b, r))
		return l->mode;
	return policy_at(w, path) == SB_POLICY_RUNTIME ? r->mode : l->mode;
}

static int
resolve(struct reconcile_work *w, const char *path, const struct three *t,
	enum sb_conflict_kind kind)
{
	enum sb_policy p = policy_at(w, path);

	if (p == SB_POLICY_LOCAL)
		return take(w, SB_TO_RUNTIME, path, t->l, t->r);
	if (p == SB_POLICY_RUNTIME)
		return take(w, SB_FROM_RUNTIME, path, t->r, t->l);
	return keep_both(w, path, t, kind);
}

/* Two files or two symlinks (or one of each): content and mode each from whoever changed them. */
static int
merge_leaves(struct reconcile_work *w, const char *path, const struct three *t)
{
	const struct sb_entry *b = t->b, *l = t->l, *r = t->r;
	bool lc = !b || !sb_entry_same_content(b, l), rc = !b || !sb_entry_same_content(b, r);
	bool same = sb_entry_same_content(l, r);
	struct sb_entry to_l, to_r;
	int n = 0;

	if (lc && rc && !same)
		return resolve(w, path, t,
			l->type == r->type ? SB_CONFLICT_EDIT : SB_CONFLICT_TYPE);
	to_l = to_r = lc && !same ? *l : *r;
	if (l->type == SB_ENTRY_FILE && r->type == SB_ENTRY_FILE)
		to_l.mode = to_r.mode =
			merged_mode(w, path, b && b->type == SB_ENTRY_FILE ? b : NULL, l, r);
	if (same)
		to_l.mtime = to_r.mtime = b && l->mtime == b->mtime ? r->mtime :
			b && r->mtime == b->mtime                   ? l->mtime :
			l->mtime > r->mtime                         ? l->mtime :
								      r->mtime;
	if (!equal(w, &to_l, l))
		n = put(w, SB_FROM_RUNTIME, path, &to_l);
	if (n == 0 && !equal(w, &to_r, r))
		n = put(w, SB_TO_RUNTIME, path, &to_r);
	return n;
}

static int merge(struct reconcile_work *w, const char *path, const struct three *t);

/*
 * Everything in any of the three directories, in order. A missing one, or one that is no directory,
 * is empty.
 */
static int
merge_children(struct reconcile_work *w, const char *path, const struct three *t)
{
	const struct sb_entry *e[3] = { t->b, t->l, t->r };
	uint32_t at[3] = { 0, 0, 0 };
	int r = 0;

	while (r == 0) {
		const struct sb_entry *now[3] = { NULL, NULL, NULL };
		const char *first = NULL;
		sb_autofree char *sub = NULL;

		for (int i = 0; i < 3; i++) {
			if (!e[i] || e[i]->type != SB_ENTRY_DIR || at[i] >= e[i]->dir->n)
				continue;
			now[i] = &e[i]->dir->entries[at[i]];
			if (!first || strcmp(now[i]->name, first) < 0)
				first = now[i]->name;
		}
		if (!first)
			break;
		sub = join(w, path, first);
		if (!sub)
			return SB_E_NOMEM;
		for (int i = 0; i < 3; i++) {
			if (now[i] && strcmp(now[i]->name, first) != 0)
				now[i] = NULL;
			at[i] += now[i] != NULL;
		}
		r = merge(w, sub, &(struct three){ now[0], now[1], now[2] });
	}
	return r;
}

/* Two directories: mode and time like a file's, then entry by entry. */
static int
merge_dirs(struct reconcile_work *w, const char *path, const struct three *t)
{
	const struct sb_entry *b = t->b && t->b->type == SB_ENTRY_DIR ? t->b : NULL, *l = t->l,
			      *r = t->r;
	struct sb_entry to = *l;
	int n = 0;

	if (sb_digest_eq(&l->digest, &r->digest) && equal(w, l, r))
		return 0;
	if (*path) {
		to.mode = merged_mode(w, path, b, l, r);
		to.mtime = b && l->mtime == b->mtime ? r->mtime :
			b && r->mtime == b->mtime    ? l->mtime :
			l->mtime > r->mtime          ? l->mtime :
						       r->mtime;
		if (!equal(w, &to, l))
			n = put(w, SB_FROM_RUNTIME, path, &to);
		if (n == 0 && !equal(w, &to, r))
			n = put(w, SB_TO_RUNTIME, path, &to);
	}
	return n < 0 ? n : merge_children(w, path, t);
}

/*
 * Does anything beneath this directory differ from the base, so that it survives the other side's
 * deletion?
 */
static bool
edited(const struct reconcile_work *w, const struct sb_entry *b, const struct sb_entry *x)
{
	if (!b || b->type != x->type)
		return true;
	if (x->type != SB_ENTRY_DIR)
		return !unedited(w, b, x);
	if (sb_digest_eq(&b->digest, &x->digest))
		return false;
	for (uint32_t i = 0; i < x->dir->n; i++) {
		const struct sb_entry *c = &x->dir->entries[i];

		if (edited(w, sb_manifest_dir_find(b->dir, c->name, strlen(c->name)), c))
			return true;
	}
	return false;
}

/* One side deleted it, `x` is what the other has; `d` leads from the side that has it. */
static int
one_gone(struct reconcile_work *w, const char *path, const struct three *t,
	const struct sb_entry *x, enum sb_direction d)
{
	enum sb_direction back = d == SB_TO_RUNTIME ? SB_FROM_RUNTIME : SB_TO_RUNTIME;
	int r;

	if (!t->b) /* new on that side */
		return put_tree(w, d, path, x);
	if (!edited(w, t->b, x))
		return del(w, back, path);
	if (x->type == SB_ENTRY_DIR && t->b->type == SB_ENTRY_DIR) {
		/*
		 * The directory lives on along the edited paths; the rest of it goes as the other
		 * side wanted.
		 */
		r = put(w, d, path, x);
		return r < 0 ? r : merge_children(w, path, t);
	}
	r = note(w, path, NULL, SB_CONFLICT_REVIVED);
	return r < 0 ? r : put_tree(w, d, path, x);
}

static int
merge(struct reconcile_work *w, const char *path, const struct three *t)
{
	int alive = sb_work_alive(w->err);

	if (alive < 0)
		return alive;
	if (unseen_by(w, 0, path) || unseen_by(w, 1, path))
		return leave_unseen(w, path, t);
	if (!t->l && !t->r)
		return 0;
	if (!t->r)
		return one_gone(w, path, t, t->l, SB_TO_RUNTIME);
	if (!t->l)
		return one_gone(w, path, t, t->r, SB_FROM_RUNTIME);
	if (t->l->type == SB_ENTRY_DIR && t->r->type == SB_ENTRY_DIR)
		return merge_dirs(w, path, t);
	if (t->l->type != SB_ENTRY_DIR && t->r->type != SB_ENTRY_DIR)
		return merge_leaves(w, path, t);
	/* A directory against something else. */
	if (t->b && !edited(w, t->b, t->l) && deep_equal(w, t->b, t->l))
		return take(w, SB_FROM_RUNTIME, path, t->r, t->l);
	if (t->b && !edited(w, t->b, t->r) && deep_equal(w, t->b, t->r))
		return take(w, SB_TO_RUNTIME, path, t->l, t->r);
	return resolve(w, path, t, SB_CONFLICT_TYPE);
}

/*
 * A hard link is only kept where the other name will have this very content: the guard may have
 * refused that.
 */
static void
check_leaders(struct sb_diff *d, const struct sb_manifest *at)
{
	for (size_t i = 0; i < d->n; i++) {
		struct sb_change *c = &d->v[i];
		const struct sb_change *put_there;
		const struct sb_entry *e;

		if (c->del || !c->leader || strcmp(c->leader, c->path) == 0)
			continue;
		put_there = sb_diff_find_put(d, c->leader);
		e = put_there ? &put_there->entry : sb_manifest_find(at, c->leader);
		if (!e || e->type != SB_ENTRY_FILE || !sb_entry_same_content(e, &c->entry))
			c->leader = NULL;
	}
}

/* The runtime's path of what shall lie at `path`, which may be a name aside. */
static const char *
origin(const struct reconcile_work *w, const char *path, char **made)
{
	const struct sb_conflict *best = NULL;
	size_t len = 0;

	for (size_t i = 0; i < w->out->n_conflicts; i++) {
		const struct sb_conflict *c = &w->out->conflicts[i];
		size_t n = c->saved_as ? strlen(c->saved_as) : 0;

		if (n > len && strncmp(path, c->saved_as, n) == 0 && (path[n] == '/' || !path[n])) {
			best = c;
			len = n;
		}
	}
	if (!best)
		return path;
	*made = sb_str_printf("%s%s", best->path, path + len);
	return *made;
}

/*
 * What the guard refuses is not put in place: the runtime's version goes beside, and its base entry
 * stays as it is. A link that is refused aside, too, stays in the sandbox.
 */
static int
set_aside(struct reconcile_work *w, const struct sb_guard_verdict *v, bool save)
{
	sb_autofree char *made = NULL, *aside = NULL;
	const char *from = origin(w, v->path, &made);
	const struct sb_entry *e = from ? sb_manifest_find(w->runtime, from) : NULL;
	bool reused = false;
	int r;

	if (!from)
		return oom(w);
	save = save && e && v->kind != SB_CONFLICT_LINK && !(made && e->type == SB_ENTRY_LINK);
	if (save && !(aside = beside(w, v->path, e, &reused)))
		return w->err->code;
	r = note(w, from, aside, v->kind);
	if (r == 0 && aside && !reused)
		r = put_tree(w, SB_FROM_RUNTIME, aside, e);
	return r < 0 ? r : unsettle(w, from);
}

static void
sort_local(struct reconcile_work *w)
{
	sb_reconcile_sort(&w->out->local);
	check_leaders(&w->out->local, w->local);
}

/*
 * The guard judges what all changes here make together. Versions that go aside are changes, too: it
 * judges again until it has nothing to refuse.
 */
static int
guard(struct reconcile_work *w)
{
	const struct sb_guard_opts o = { .trust_git = w->o->trust_git_config,
		.trust_project = w->o->trust_project_files,
		.no_escaping_links = w->o->no_escaping_links,
		.files = w->o->files };

	sort_local(w);
	for (int round = 0; round < 16; round++) {
		sb_auto(sb_guard_verdicts) struct sb_guard_verdicts v = { 0 };
		int r = sb_guard_tree_check(w->local, &w->out->local, &o, &v, w->err);

		if (r < 0 || !v.n)
			return r;
		sb_guard_tree_drop(&w->out->local, &v);
		for (size_t i = 0; r == 0 && i < v.n; i++)
			r = set_aside(w, &v.v[i], round < 8);
		if (r < 0)
			return r;
		sort_local(w);
	}
	return sb_fail(w->err, SB_E_BRAKE,
		"the sandbox keeps finding ways to what git obeys: nothing was changed; to take "
		"its tree as it is: --trust-git-config");
}

int
sb_reconcile_trees(const struct sb_manifest *base, const struct sb_manifest *local,
	const struct sb_manifest *runtime, const struct sb_reconcile_opts *opts,
	struct sb_reconciled *out, struct sb_error *err)
{
	struct sb_error own = { 0 };
	struct reconcile_work w = { .o = opts,
		.base = base,
		.local = local,
		.runtime = runtime,
		.out = out,
		.err = err ? err : &own };
	int r;

	memset(out, 0, sizeof *out);
	r = sort_unseen(&w);
	if (r == 0)
		r = merge_dirs(&w, "",
			&(struct three){ &base->root, &local->root, &runtime->root });
	sb_reconcile_sort(&out->local);
	sb_reconcile_sort(&out->runtime);
	if (r == 0)
		r = sb_reconcile_links(base, local, runtime, opts, out, w.err);
	if (r == 0)
		r = guard(&w);
	sb_strlist_free(&w.taken);
	free(w.unseen[0]);
	free(w.unseen[1]);
	if (r < 0)
		sb_reconcile_free(out);
	return r;
}
