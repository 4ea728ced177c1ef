/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/guard-places.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/str.h>
#include <base/work.h>
#include <sync/plan/guard.h>
#include <sync/plan/guard-config.h>

#define MAX_HOPS 40
#define TEXT_MAX (1u << 20)
#define INCLUDE_DEPTH 10
/* Whether it is one in the old tree already, its signs say: a plan may give it its HEAD. */
#define LED_TO (SB_PLACE_GIT | SB_PLACE_HELD)

/* The signs of a git directory. */
enum { SIGN_HEAD = 1, SIGN_OBJECTS = 2, SIGN_REFS = 4, SIGN_COMMON = 8 };

struct places_work {
	const struct sb_manifest *local;
	const struct sb_guard_files *files;
	struct sb_guard_places *out;
	const char *by;               /* what is being followed */
	struct sb_guard_config obeys; /* of all configurations */
	struct sb_strlist tops;       /* of working trees that a configuration names */
	struct sb_error *err;
};

void
sb_guard_places_free(struct sb_guard_places *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].by);
	}
	free(p->v);
	memset(p, 0, sizeof *p);
}

static int
oom(struct places_work *w)
{
	return sb_fail(w->err, SB_E_NOMEM, "guard: out of memory");
}

static int
add(struct places_work *w, const char *path, size_t len, unsigned what)
{
	struct sb_guard_places *p = w->out;

	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 32;
		struct sb_guard_place *v = realloc(p->v, cap * sizeof *v);

		if (!v)
			return oom(w);
		p->v = v;
		p->cap = cap;
	}
	p->v[p->n] = (struct sb_guard_place){ .path = strndup(path, len),
		.by = w->by ? strdup(w->by) : NULL,
		.what = what };
	if (!p->v[p->n].path || (w->by && !p->v[p->n].by)) {
		free(p->v[p->n].path);
		return oom(w);
	}
	p->n++;
	return 0;
}

static unsigned
sign_of(const char *name)
{
	switch (tolower((unsigned char)*name)) {
	case 'h': return sb_guard_is_named(name, "HEAD") ? SIGN_HEAD : 0;
	case 'o': return sb_guard_is_named(name, "objects") ? SIGN_OBJECTS : 0;
	case 'r': return sb_guard_is_named(name, "refs") ? SIGN_REFS : 0;
	case 'c': return sb_guard_is_named(name, "commondir") ? SIGN_COMMON : 0;
	default: return 0;
	}
}

static bool
is_gitdir(unsigned signs)
{
	return (signs & SIGN_HEAD) &&
		((signs & SIGN_COMMON) ||
			(signs & (SIGN_OBJECTS | SIGN_REFS)) == (SIGN_OBJECTS | SIGN_REFS));
}

static unsigned
signs_in(const struct sb_entry *dir)
{
	unsigned signs = 0;

	for (uint32_t i = 0; dir && dir->type == SB_ENTRY_DIR && i < dir->dir->n; i++)
		signs |= sign_of(dir->dir->entries[i].name);
	return signs;
}

static const struct sb_entry *
find_n(const struct sb_manifest *m, const char *path, size_t len)
{
	char buf[4097];

	if (len >= sizeof buf)
		return NULL;
	memcpy(buf, path, len);
	buf[len] = 0;
	return sb_manifest_find(m, buf);
}

/* The part of an absolute path that lies beneath the root; NULL: it lies elsewhere. */
static const char *
beneath_root(const struct sb_guard_files *f, const char *path)
{
	const char *roots[2] = { f ? f->root : NULL, f ? f->real_root : NULL };

	for (int i = 0; i < 2; i++) {
		size_t n = roots[i] ? strlen(roots[i]) : 0;

		if (n && strncmp(path, roots[i], n) == 0 && (path[n] == '/' || !path[n]))
			return path + n;
	}
	return NULL;
}

/*
 * Follows `text` from the directory `dir` through the old tree as the system would. Notes every
 * link on the way; 1 with the path where it ends, 0 when it leads out of the root.
 */
static int
follow(struct places_work *w, const char *dir, size_t dir_len, const char *text, char **out)
{
	sb_autofree char *at = strndup(dir, dir_len), *rest = strdup(text);
	unsigned hops = 0;

	if (!at || !rest)
		return oom(w);
	for (char *p = rest; *p;) {
		size_t len = strcspn(p, "/");
		const struct sb_entry *e;
		char *next, *slash;

		if (p == rest && !len) {
			const char *inside = beneath_root(w->files, rest);

			if (!inside)
				return 0;
			*at = 0;
			p += inside - rest;
			len = strcspn(p, "/");
		}
		if (len == 2 && memcmp(p, "..", 2) == 0) {
			if (!*at)
				return 0;
			slash = strrchr(at, '/');
			*(slash ? slash : at) = 0;
		} else if (len && !(len == 1 && *p == '.')) {
			next = *at ? sb_str_printf("%s/%.*s", at, (int)len, p) :
				     sb_str_printf("%.*s", (int)len, p);
			if (!next)
				return oom(w);
			e = sb_manifest_find(w->local, next);
			if (e && e->type == SB_ENTRY_LINK) {
				char *spliced = sb_str_printf("%s%s", sb_entry_target(e), p + len);
				int r = add(w, next, strlen(next), SB_PLACE_WHOLE);

				free(next);
				free(rest);
				rest = spliced;
				if (r < 0 || !spliced)
					return r < 0 ? r : oom(w);
				if (++hops > MAX_HOPS)
					return 0;
				p = rest;
				continue;
			}
			free(at);
			at = next;
		}
		p += len;
		p += *p == '/';
	}
	*out = sb_steal(&at);
	return 1;
}

static int
add_target(struct places_work *w, const char *dir, size_t dir_len, const char *text, unsigned what)
{
	sb_autofree char *to = NULL;
	int r = follow(w, dir, dir_len, text, &to);

	if (r > 0)
		r = add(w, to, strlen(to), what);
	return r;
}

static int
read_text(const struct places_work *w, const char *path, char *buf, size_t size)
{
	ssize_t n = w->files && w->files->read ?
		w->files->read(path, buf, size - 1, w->files->arg) :
		-1;

	if (n < 0)
		return 0;
	buf[n] = 0;
	return 1;
}

static void
trim(char *s)
{
	size_t n = strlen(s);

	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
}

/* A .git that is no directory leads to one: "gitdir: PATH", or a symlink. */
static int
redirect(struct places_work *w, const char *path, size_t len, const struct sb_entry *e)
{
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash - path) : 0;
	char text[4200];
	int r = add(w, path, len, SB_PLACE_HERE);

	if (r < 0)
		return r;
	w->by = path;
	if (e->type == SB_ENTRY_LINK) {
		r = add_target(w, path, dir, sb_entry_target(e), LED_TO);
	} else if (read_text(w, path, text, sizeof text) && strncmp(text, "gitdir:", 7) == 0) {
		trim(text);
		r = add_target(w, path, dir, text + 7 + strspn(text + 7, " \t"), LED_TO);
	}
	w->by = NULL;
	return r;
}

static int
look(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct places_work *w = arg;
	const char *slash;

	switch ((unsigned char)*e->name) {
	case 'H':
	case 'h':
		if (e->type == SB_ENTRY_DIR || sign_of(e->name) != SIGN_HEAD)
			return 0;
		slash = strrchr(path, '/');
		len = slash ? (size_t)(slash - path) : 0;
		if (!is_gitdir(signs_in(find_n(w->local, path, len))))
			return 0;
		return add(w, path, len, SB_PLACE_GIT | SB_PLACE_HERE);
	case '.':
	case 'g':
	case 'G':
	case 0xe2:
	case 0xef:
		if (!sb_guard_is_git(e->name))
			return 0;
		if (e->type == SB_ENTRY_DIR)
			return add(w, path, len, SB_PLACE_GIT | SB_PLACE_HERE);
		return redirect(w, path, len, e);
	default: return 0;
	}
}

/* A sign that the plan puts into a directory. */
struct sign_row {
	const char *path;
	size_t len;
	unsigned signs;
};

static int
by_dir(const void *a, const void *b)
{
	const struct sign_row *x = a, *y = b;
	int c = memcmp(x->path, y->path, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Old and new signs together, since a commit may end in between. */
static int
weigh(struct places_work *w, const struct sign_row *rows, size_t n)
{
	for (size_t i = 0, k; i < n; i = k) {
		unsigned old, now = 0;
		int r = sb_work_alive(w->err);

		if (r < 0)
			return r;
		for (k = i; k < n && by_dir(&rows[i], &rows[k]) == 0; k++)
			now |= rows[k].signs;
		old = signs_in(find_n(w->local, rows[i].path, rows[i].len));
		if (!is_gitdir(old) && is_gitdir(old | now))
			r = add(w, rows[i].path, rows[i].len, SB_PLACE_GIT);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
look_at_plan(struct places_work *w, const struct sb_diff *d)
{
	sb_autofree struct sign_row *rows = calloc(d->n + 1, sizeof *rows);
	size_t n = 0;
	int r = rows ? 0 : oom(w);

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		const struct sb_change *c = &d->v[i];
		const char *slash = strrchr(c->path, '/'), *leaf = slash ? slash + 1 : c->path;
		unsigned sign = c->del ? 0 : sign_of(leaf);

		if (sign)
			rows[n++] = (struct sign_row){ c->path,
				slash ? (size_t)(slash - c->path) : 0, sign };
		if (!c->del && c->entry.type == SB_ENTRY_DIR && sb_guard_is_git(leaf))
			r = add(w, c->path, strlen(c->path), SB_PLACE_GIT);
	}
	if (r < 0)
		return r;
	if (n)
		qsort(rows, n, sizeof *rows, by_dir);
	return weigh(w, rows, n);
}

/* A path that a configuration at `path` names: from its directory, or from `home`. */
static char *
included(const struct places_work *w, const char *path, const char *text)
{
	const char *slash = strrchr(path, '/'), *root = *path == '/' ? "" : w->files->root;
	int dir = slash ? (int)(slash - path) : 0;

	if (*text == '/')
		return strdup(text);
	if (strncmp(text, "~/", 2) == 0)
		return sb_str_printf("%s/%s", w->files->home ? w->files->home : "", text + 2);
	return sb_str_printf("%s%s%.*s/%s", root, *path == '/' ? "" : "/", dir, path, text);
}

/*
 * What the configuration at `path` makes git read or run; the files that it includes are
 * configuration, too. `git_dir` is NULL for one that belongs to no repository.
 */
static int
read_config(struct places_work *w, const char *git_dir, const char *path, unsigned depth)
{
	sb_auto(sb_guard_config) struct sb_guard_config c = { 0 };
	sb_autofree char *text = depth ? malloc(TEXT_MAX) : NULL;
	int r;

	if (!depth)
		return 0;
	if (!text)
		return oom(w);
	if (!read_text(w, path, text, TEXT_MAX))
		return 0;
	r = sb_guard_config_read(&c, text, strlen(text), w->err);
	if (r == 0)
		r = sb_guard_config_join(&w->obeys, &c, w->err);
	for (size_t i = 0; r == 0 && git_dir && i < c.tops.n; i++) {
		sb_autofree char *to = NULL;

		r = follow(w, git_dir, strlen(git_dir), c.tops.v[i], &to);
		if (r > 0)
			sb_strlist_add(&w->tops, to);
		r = r < 0 ? r : 0;
	}
	for (size_t i = 0; r == 0 && i < c.includes.n; i++) {
		sb_autofree char *full = included(w, path, c.includes.v[i]), *to = NULL;

		if (!full)
			return oom(w);
		r = follow(w, "", 0, full, &to);
		if (r > 0)
			r = add(w, to, strlen(to), SB_PLACE_WHOLE);
		if (r == 0)
			r = read_config(w, git_dir, to ? to : full, depth - 1);
	}
	return r;
}

/* What a git directory of the old tree leads to: links in place of what git obeys, and texts. */
static int
lead_on(struct places_work *w, const char *dir)
{
	const struct sb_entry *e = sb_manifest_find(w->local, dir);
	int r = 0;

	w->by = dir;
	for (uint32_t i = 0; r == 0 && e && e->type == SB_ENTRY_DIR && i < e->dir->n; i++) {
		const struct sb_entry *c = &e->dir->entries[i];
		sb_autofree char *path = NULL;
		char text[4200];

		if (c->type == SB_ENTRY_LINK && sb_guard_git_class(c->name)) {
			r = add_target(w, dir, strlen(dir), sb_entry_target(c), SB_PLACE_WHOLE);
			continue;
		}
		if (c->type != SB_ENTRY_FILE ||
			(strcmp(c->name, "commondir") != 0 && strncmp(c->name, "config", 6) != 0))
			continue;
		path = *dir ? sb_str_printf("%s/%s", dir, c->name) : strdup(c->name);
		if (!path) {
			r = oom(w);
		} else if (c->name[2] == 'n') {
			r = sb_guard_git_class(c->name) ? read_config(w, dir, path, INCLUDE_DEPTH) :
							  0;
		} else if (read_text(w, path, text, sizeof text)) {
			trim(text);
			r = add_target(w, dir, strlen(dir), text, LED_TO);
		}
	}
	w->by = NULL;
	return r;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct sb_guard_place *)a)->path,
		((const struct sb_guard_place *)b)->path);
}

/* Two finds of one place; a find without `by` says nothing about who leads there. */
static void
join(struct sb_guard_place *a, struct sb_guard_place *b)
{
	unsigned led = SB_PLACE_HELD | SB_PLACE_WHOLE;

	if (!(a->what & led)) {
		free(a->by);
		a->by = b->by;
	} else {
		if ((b->what & led) && a->by && (!b->by || strcmp(a->by, b->by) != 0)) {
			free(a->by);
			a->by = NULL;
		}
		free(b->by);
	}
	a->what |= b->what;
	free(b->path);
}

static void
merge_doubles(struct sb_guard_places *p)
{
	size_t kept = 0;

	if (!p->n)
		return;
	qsort(p->v, p->n, sizeof *p->v, by_path);
	for (size_t i = 1; i < p->n; i++) {
		if (strcmp(p->v[kept].path, p->v[i].path) != 0) {
			p->v[++kept] = p->v[i];
			continue;
		}
		join(&p->v[kept], &p->v[i]);
	}
	p->n = kept + 1;
}

static bool
covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return !n || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

/* A directory of hooks; one that holds the working tree itself is obeyed in these names only. */
static int
add_hooks(struct places_work *w, const char *top, const char *text)
{
	sb_autofree char *to = NULL;
	int r = follow(w, top, strlen(top), text, &to);

	if (r <= 0 || !covers(to, top))
		return r <= 0 ? r : add(w, to, strlen(to), SB_PLACE_WHOLE);
	r = 0;
	for (size_t i = 0; r == 0 && sb_guard_config_hooks[i]; i++) {
		sb_autofree char *hook =
			sb_str_printf("%s%s%s", to, *to ? "/" : "", sb_guard_config_hooks[i]);

		r = hook ? add(w, hook, strlen(hook), SB_PLACE_WHOLE) : oom(w);
	}
	return r;
}

/* A word of a command: what it names in the tree, as a file that is or could be there. */
static int
add_word(struct places_work *w, const char *top, const char *text)
{
	sb_autofree char *to = NULL;
	const struct sb_entry *e;
	int r = follow(w, top, strlen(top), text, &to);

	if (r <= 0)
		return r;
	e = sb_manifest_find(w->local, to);
	if (!*to || (e ? e->type == SB_ENTRY_DIR : !strchr(text, '/')))
		return 0;
	return add(w, to, strlen(to), SB_PLACE_WHOLE);
}

/* What the configurations name, seen from this top of a working tree. */
static int
look_from(struct places_work *w, const char *top)
{
	const struct sb_strlist *hooks = &w->obeys.hooks, *words = &w->obeys.words;
	int r = sb_work_alive(w->err);

	for (size_t i = 0; r == 0 && i < hooks->n + words->n; i++) {
		bool hook = i < hooks->n;
		const char *text = hook ? hooks->v[i] : words->v[i - hooks->n];
		sb_autofree char *full = NULL;

		if (strncmp(text, "~/", 2) == 0) {
			if (!w->files->home)
				continue;
			full = sb_str_printf("%s/%s", w->files->home, text + 2);
			if (!full)
				return oom(w);
			text = full;
		}
		r = hook ? add_hooks(w, top, text) : add_word(w, top, text);
	}
	return r;
}

/* From every working tree: beside what is called .git, and bare repositories themselves. */
static int
look_from_tops(struct places_work *w)
{
	size_t n = w->obeys.hooks.n + w->obeys.words.n ? w->out->n : 0;
	int r = n ? sb_strlist_check(&w->tops, w->err) : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		sb_autofree char *by = strdup(w->out->v[i].path);
		sb_autofree char *top = by ? strdup(by) : NULL;
		char *slash;

		if (!top)
			return oom(w);
		if (!(w->out->v[i].what & (SB_PLACE_GIT | SB_PLACE_HERE)))
			continue;
		slash = strrchr(top, '/');
		if (sb_guard_is_git(slash ? slash + 1 : top))
			*(slash ? slash : top) = 0;
		w->by = by;
		r = look_from(w, top);
		w->by = NULL;
	}
	for (size_t i = 0; n && r == 0 && i < w->tops.n; i++)
		r = look_from(w, w->tops.v[i]);
	return r;
}

static int
find_places(struct places_work *w, const struct sb_diff *d)
{
	struct sb_guard_places *out = w->out;
	const char *const *user = w->files ? w->files->git_configs : NULL;
	int r = sb_manifest_walk(w->local, look, w);

	if (r == 0)
		r = look_at_plan(w, d);
	merge_doubles(out);
	/* The list grows by what they lead to; that may lead on, but not for ever. */
	for (size_t i = 0, n = out->n; r == 0 && i < out->n && i < n + MAX_HOPS; i++) {
		sb_autofree char *dir = strdup(out->v[i].path);

		if (!dir)
			return oom(w);
		if (out->v[i].what & SB_PLACE_GIT)
			r = lead_on(w, dir);
	}
	for (; r == 0 && user && *user; user++) {
		r = add_target(w, "", 0, *user, SB_PLACE_WHOLE);
		if (r == 0)
			r = read_config(w, NULL, *user, INCLUDE_DEPTH);
	}
	merge_doubles(out);
	if (r == 0)
		r = look_from_tops(w);
	merge_doubles(out);
	return r;
}

int
sb_guard_places_find(const struct sb_manifest *local, const struct sb_diff *d,
	const struct sb_guard_files *files, struct sb_guard_places *out, struct sb_error *err)
{
	struct places_work w = { .local = local, .files = files, .out = out, .err = err };
	int r = find_places(&w, d);

	sb_guard_config_free(&w.obeys);
	sb_strlist_free(&w.tops);
	return r;
}

struct sb_guard_place *
sb_guard_places_at(const struct sb_guard_places *p, const char *path, size_t len)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = strncmp(p->v[mid].path, path, len);

		if (c == 0 && p->v[mid].path[len])
			c = 1;
		if (c == 0)
			return &p->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct sb_guard_place *
sb_guard_places_beneath(const struct sb_guard_places *p, const char *path, size_t *out_n)
{
	size_t lo = 0, hi = p->n, len = strlen(path), first;

	/* The first that is not less than `path` and a slash. */
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = strncmp(p->v[mid].path, path, len);

		if (c < 0 || (c == 0 && (unsigned char)p->v[mid].path[len] < '/'))
			lo = mid + 1;
		else
			hi = mid;
	}
	first = lo;
	while (lo < p->n && strncmp(p->v[lo].path, path, len) == 0 && p->v[lo].path[len] == '/')
		lo++;
	*out_n = lo - first;
	return p->v + first;
}
