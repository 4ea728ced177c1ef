/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/guard-tree.h>

#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <sync/plan/guard.h>
#include <sync/plan/guard-places.h>

#define NO_KIND SB_CONFLICT_KINDS

struct guard_work {
	const struct sb_manifest *local;
	struct sb_diff *d;
	const struct sb_guard_opts *o;
	struct sb_guard_places places;
	struct sb_guard_verdicts *out;
	struct sb_error *err;
};

/* One change: what is at its path before and after the plan. */
struct change_at {
	const char *path;
	const struct sb_entry *before; /* NULL: nothing */
	const struct sb_change *put;   /* NULL: nothing will be there */
	uint8_t was, will;             /* types, 0: nothing */
};

void
sb_guard_verdicts_free(struct sb_guard_verdicts *v)
{
	free(v->v);
	memset(v, 0, sizeof *v);
}

static enum sb_conflict_kind
kind_of(enum sb_guard_git g)
{
	return g == SB_GUARD_GIT_NONE    ? NO_KIND :
		g == SB_GUARD_GIT_CONFIG ? SB_CONFLICT_GIT :
		g == SB_GUARD_GIT_STATE  ? SB_CONFLICT_GIT_STATE :
					   SB_CONFLICT_GIT_PATH;
}

/* The first component that was made for a version that lies aside; NULL: none. */
static const char *
find_aside(const char *rel)
{
	const char *a = strstr(rel, ".runtime-conflict-"), *b = strstr(rel, ".undo-conflict-");
	const char *at = !a || (b && b < a) ? b : a;

	while (at && at > rel && at[-1] != '/')
		at--;
	return at;
}

/*
 * What git makes of `rel`. It uses no name of a version that lies aside: not as a hook, nor as a
 * part of a half-done operation. What lies in such a directory may be used where any name may lead.
 */
static enum sb_guard_git
class_at(const char *rel)
{
	const char *at = find_aside(rel);
	char plain[4097];
	size_t n;

	if (!at)
		return sb_guard_git_class(rel);
	n = (size_t)(at - rel);
	if (strlen(rel) >= sizeof plain)
		return SB_GUARD_GIT_PATH;
	/* "hooks/x" for "hooks/": is everything in there obeyed by its place alone? */
	memcpy(plain, rel, n);
	memcpy(plain + n, "x", 2);
	if (n && sb_guard_git_class(plain))
		return SB_GUARD_GIT_NONE;
	memcpy(plain + n + 1, at + strcspn(at, "/"), strlen(at + strcspn(at, "/")) + 1);
	return sb_guard_git_class(plain);
}

static int
find_obeyed(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)len;
	if (e->type == SB_ENTRY_LINK)
		return *(bool *)arg ? SB_E_EXISTS : 0;
	return class_at(path) ? SB_E_EXISTS : 0;
}

/* Does this directory, `rel` in its git directory, hold anything that git obeys (or a link)? */
static bool
holds_obeyed(const struct sb_entry *dir, const char *rel, bool links)
{
	return dir && dir->type == SB_ENTRY_DIR &&
		sb_manifest_walk_dir(dir->dir, rel, find_obeyed, &links) < 0;
}

static bool
is_tainted(const struct guard_work *w, struct sb_guard_place *g)
{
	if (!g->tainted)
		g->tainted = holds_obeyed(sb_manifest_find(w->local, g->path), "", true) ? 1 : -1;
	return g->tainted > 0;
}

/* A symlink that lies aside is harmless, but not among refs: git writes to those of any name. */
static bool
is_harmless_link(const char *rel)
{
	const char *at = find_aside(rel);
	size_t top = strcspn(rel, "/");

	return at && !strchr(at, '/') &&
		!(rel[top] &&
			(strncmp(rel, "refs/", 5) == 0 || strncmp(rel, "logs/", 5) == 0 ||
				strncmp(rel, "objects/", 8) == 0));
}

/* A half-done operation that is gone as a whole leaves nothing to be done. */
static bool
ends_state(const struct change_at *c, const char *rel)
{
	const char *slash = strrchr(rel, '/');
	char up[4097];

	if (c->will)
		return false;
	if (!slash)
		return true;
	if ((size_t)(slash - rel) >= sizeof up)
		return false;
	memcpy(up, rel, (size_t)(slash - rel));
	up[slash - rel] = 0;
	return sb_guard_git_class(up) == SB_GUARD_GIT_NONE;
}

/* The signs of a git directory stay; new ones do not make one of a directory that holds more. */
static bool
turns_git(const struct guard_work *w, const struct change_at *c, struct sb_guard_place *g,
	const char *rel)
{
	bool head = sb_guard_is_named(rel, "HEAD");

	if (strchr(rel, '/') ||
		(!head && !sb_guard_is_named(rel, "objects") && !sb_guard_is_named(rel, "refs")))
		return false;
	if (c->was && (head ? c->will != SB_ENTRY_FILE : c->will != SB_ENTRY_DIR))
		return true;
	return c->will && !(g->what & SB_PLACE_HERE) && is_tainted(w, g);
}

/* A change at or in a place. */
static enum sb_conflict_kind
judge_inside(const struct guard_work *w, const struct change_at *c, struct sb_guard_place *g)
{
	const char *rel = c->path + strlen(g->path);
	enum sb_guard_git class;

	if (g->what & SB_PLACE_WHOLE)
		return c->will == SB_ENTRY_FILE ? SB_CONFLICT_GIT : SB_CONFLICT_GIT_PATH;
	if (*g->path)
		rel += *rel == '/';
	if (!*rel) {
		bool gone = c->will != SB_ENTRY_DIR &&
			(c->will == SB_ENTRY_LINK || (g->what & SB_PLACE_HELD));

		return gone ? SB_CONFLICT_GIT_PATH : NO_KIND;
	}
	if (c->will == SB_ENTRY_LINK && !is_harmless_link(rel))
		return SB_CONFLICT_GIT_PATH;
	class = class_at(rel);
	if (class && !(class == SB_GUARD_GIT_STATE && ends_state(c, rel)))
		return kind_of(class);
	if (c->was == SB_ENTRY_DIR && c->will != SB_ENTRY_DIR && !class &&
		holds_obeyed(c->before, rel, false))
		return SB_CONFLICT_GIT_PATH;
	return turns_git(w, c, g, rel) ? SB_CONFLICT_GIT_PATH : NO_KIND;
}

static bool
covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* A change at a directory above places: the way to them may not become another. */
static enum sb_conflict_kind
judge_above(const struct guard_work *w, const struct change_at *c)
{
	size_t n;
	const struct sb_guard_place *g = sb_guard_places_beneath(&w->places, c->path, &n);

	for (size_t i = 0; i < n; i++) {
		/* What goes together with all that leads to it is not reached any more. */
		if ((g[i].what & (SB_PLACE_HELD | SB_PLACE_WHOLE)) &&
			(c->will == SB_ENTRY_LINK || !g[i].by || !covers(c->path, g[i].by)))
			return SB_CONFLICT_GIT_PATH;
		if (c->will == SB_ENTRY_LINK && (g[i].what & SB_PLACE_HERE))
			return SB_CONFLICT_GIT_PATH;
	}
	return NO_KIND;
}

/* The prefixes of whole components, from the empty one (SIZE_MAX begins) to the path itself. */
static bool
next_prefix(const char *path, size_t *len)
{
	size_t from;

	if (*len == SIZE_MAX) {
		*len = 0;
		return true;
	}
	from = *len + (*len > 0 && path[*len]);
	if (!path[from])
		return false;
	*len = from + strcspn(path + from, "/");
	return true;
}

static enum sb_conflict_kind
judge_git(const struct guard_work *w, const struct change_at *c)
{
	if (sb_guard_git_name(c->path, sb_guard_redirects(c->was, c->will)))
		return SB_CONFLICT_GIT_PATH;
	for (size_t len = SIZE_MAX; next_prefix(c->path, &len);) {
		struct sb_guard_place *g = sb_guard_places_at(&w->places, c->path, len);
		enum sb_conflict_kind k = g ? judge_inside(w, c, g) : NO_KIND;

		if (k != NO_KIND)
			return k;
	}
	return c->will == SB_ENTRY_DIR ? NO_KIND : judge_above(w, c);
}

/* Nothing but a time changes: a directory that stays one, or the same content and mode. */
static bool
is_touch(const struct change_at *c)
{
	if (c->was != c->will || !c->put)
		return false;
	return c->was == SB_ENTRY_DIR ||
		(sb_entry_same_content(c->before, &c->put->entry) &&
			(c->was == SB_ENTRY_LINK || c->before->mode == c->put->entry.mode));
}

static enum sb_conflict_kind
judge(const struct guard_work *w, const struct change_at *c)
{
	enum sb_conflict_kind kind = NO_KIND;

	if (!is_touch(c)) {
		if (!w->o->trust_git)
			kind = judge_git(w, c);
		if (kind == NO_KIND && !w->o->trust_project &&
			sb_guard_path(c->path) == SB_GUARD_PROJECT)
			kind = SB_CONFLICT_PROJECT;
	}
	if (kind == NO_KIND && w->o->no_escaping_links && c->will == SB_ENTRY_LINK &&
		sb_guard_escapes(c->path, c->put->target))
		kind = SB_CONFLICT_LINK;
	return kind;
}

/* Is this a thing in a git directory that git obeys? */
static bool
is_obeyed(const struct guard_work *w, const char *path)
{
	struct change_at c = { .path = path, .was = SB_ENTRY_FILE, .will = SB_ENTRY_FILE };

	return judge_git(w, &c) != NO_KIND;
}

static int
refuse(struct guard_work *w, const char *path, enum sb_conflict_kind kind)
{
	struct sb_guard_verdicts *o = w->out;

	if (o->n == o->cap) {
		size_t cap = o->cap ? o->cap * 2 : 16;
		struct sb_guard_verdict *v = realloc(o->v, cap * sizeof *v);

		if (!v)
			return sb_fail(w->err, SB_E_NOMEM, "guard: out of memory");
		o->v = v;
		o->cap = cap;
	}
	o->v[o->n++] = (struct sb_guard_verdict){ path, kind };
	return 0;
}

static int
judge_all(struct guard_work *w)
{
	const char *last = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->d->n; i++) {
		const struct sb_change *c = &w->d->v[i];
		struct change_at at = { .path = c->path, .put = c->del ? NULL : c };
		enum sb_conflict_kind kind;

		r = sb_work_alive(w->err);
		if (r < 0 || (last && covers(last, c->path)))
			continue;
		if (c->del && i + 1 < w->d->n && strcmp(w->d->v[i + 1].path, c->path) == 0)
			at.put = &w->d->v[i + 1];
		at.before = sb_manifest_find(w->local, c->path);
		at.was = at.before ? at.before->type : 0;
		at.will = at.put ? at.put->entry.type : 0;
		kind = judge(w, &at);
		if (kind == NO_KIND)
			continue;
		r = refuse(w, c->path, kind);
		last = c->path;
	}
	return r;
}

/* The order of a diff: by whole components. */
static int
by_components(const char *a, const char *b)
{
	const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	return (*p == '/' ? 1 : *p ? *p + 1 : 0) - (*q == '/' ? 1 : *q ? *q + 1 : 0);
}

/* The first verdict whose path is not before `path`. */
static size_t
verdict_from(const struct sb_guard_verdicts *v, const char *path)
{
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (by_components(v->v[mid].path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
is_refused(const struct sb_guard_verdicts *v, const char *path)
{
	size_t i = verdict_from(v, path);

	return (i < v->n && strcmp(v->v[i].path, path) == 0) ||
		(i && covers(v->v[i - 1].path, path));
}

/* A git directory at, above or beneath it, or something refused in it. */
static bool
must_not_move(const struct guard_work *w, const char *path)
{
	size_t n, i = verdict_from(w->out, path);

	if (i < w->out->n && covers(path, w->out->v[i].path))
		return true;
	(void)sb_guard_places_beneath(&w->places, path, &n);
	for (size_t len = SIZE_MAX; !n && next_prefix(path, &len);)
		n += sb_guard_places_at(&w->places, path, len) != NULL;
	return n > 0;
}

int
sb_guard_tree_check(const struct sb_manifest *local, struct sb_diff *d,
	const struct sb_guard_opts *o, struct sb_guard_verdicts *out, struct sb_error *err)
{
	struct guard_work w = { .local = local, .d = d, .o = o, .out = out, .err = err };
	int r = 0;

	out->n = 0;
	if (d->n && !o->trust_git)
		r = sb_guard_places_find(local, d, o->files, &w.places, err);
	if (r == 0)
		r = judge_all(&w);
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		struct sb_change *c = &d->v[i];

		if (c->del)
			continue;
		if (c->leader && strcmp(c->leader, c->path) != 0 && w.places.n &&
			(is_refused(out, c->leader) || is_obeyed(&w, c->leader)))
			c->leader = NULL;
		if (c->entry.type == SB_ENTRY_DIR && must_not_move(&w, c->path))
			memset(&c->entry.digest, 0, sizeof c->entry.digest);
	}
	sb_guard_places_free(&w.places);
	return r;
}

void
sb_guard_tree_drop(struct sb_diff *d, const struct sb_guard_verdicts *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->n; i++)
		if (!is_refused(v, d->v[i].path))
			d->v[kept++] = d->v[i];
	d->n = kept;
}
