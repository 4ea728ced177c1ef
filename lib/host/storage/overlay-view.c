/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-view.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>

void
sb_overlay_view_root_free(struct sb_overlay_vdir *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->v[i].path);
	free(d->v);
	free(d->low);
	*d = (struct sb_overlay_vdir){ 0 };
}

static int
add_part(struct sb_overlay_vdir *d, size_t layer, const char *path, struct sb_error *err)
{
	struct sb_overlay_vpart *v = reallocarray(d->v, d->n + 1, sizeof *v);

	if (v) {
		d->v = v;
		v[d->n] = (struct sb_overlay_vpart){ layer, strdup(path) };
	}
	if (!v || !v[d->n].path)
		return sb_fail(err, SB_E_NOMEM, "layers");
	d->n++;
	return 0;
}

int
sb_overlay_view_root(const struct sb_overlay_view *v, struct sb_overlay_vdir *out,
	struct sb_error *err)
{
	int r = 0;

	*out = (struct sb_overlay_vdir){ .low = strdup("") };
	if (!out->low)
		r = sb_fail(err, SB_E_NOMEM, "layers");
	for (size_t i = 0; i < v->n && r == 0; i++)
		r = add_part(out, i, "", err);
	if (r < 0)
		sb_overlay_view_root_free(out);
	return r;
}

static char *
join(const char *dir, const char *name)
{
	return *dir ? sb_str_printf("%s/%s", dir, name) : strdup(name);
}

char *
sb_overlay_view_natural(const struct sb_overlay_vdir *d, const char *name)
{
	return d->low ? join(d->low, name) : NULL;
}

/* A lookup on its way down the layers. */
struct look {
	char *want;    /* the name in the parent's parts, or a path from the root */
	bool absolute; /* the latter, without its slash */
	bool stop;     /* nothing below counts any more */
};

enum met { MET_NOTHING, MET_DIR, MET_OTHER, MET_WHITEOUT };

static int
meet(int root, const char *path, enum met *out, struct sb_error *err)
{
	struct stat st;
	int r = sb_path_stat(root, path, &st, err);

	if (r == SB_E_NOTFOUND)
		*out = MET_NOTHING;
	else if (r == 0)
		*out = S_ISDIR(st.st_mode)                ? MET_DIR :
			sb_overlay_layer_is_whiteout(&st) ? MET_WHITEOUT :
							    MET_OTHER;
	return r == SB_E_NOTFOUND ? 0 : r;
}

/*
 * The marks of the directory at `path`, whose last component stands at `prefix` of what is wanted,
 * with `post` behind it: they tell where the layers below go on.
 */
static int
follow_marks(int root, const char *path, size_t prefix, const char *post, struct look *l,
	struct sb_error *err)
{
	sb_autoclose int fd = sb_path_open(root, path, O_RDONLY | O_DIRECTORY, 0, err);
	sb_autofree char *opaque = NULL;
	sb_autofree char *redirect = NULL;
	bool bad = false;
	char *next;

	if (fd < 0)
		return fd;
	opaque = sb_overlay_layer_mark(fd, SB_OVERLAY_OPAQUE, &bad);
	if (!bad)
		redirect = sb_overlay_layer_mark(fd, SB_OVERLAY_REDIRECT, &bad);
	if (bad)
		return sb_fail_errno(err, "marks of %s", path);
	if (opaque && opaque[0] == 'y') {
		l->stop = true;
		return 0;
	}
	if (!redirect)
		return 0;
	if (redirect[0] == '/') {
		next = sb_str_printf("%s%s", redirect + 1, post);
		l->absolute = true;
		/* A directory above may be opaque: that hides what is below it, not this place. */
		l->stop = false;
	} else {
		next = sb_str_printf("%.*s%s%s", (int)prefix, l->want, redirect, post);
	}
	if (!next)
		return sb_fail(err, SB_E_NOMEM, "redirect");
	free(l->want);
	l->want = next;
	return 0;
}

/*
 * Looks for `l->want` in one layer, from the directory `start`; 1: there is a directory, `*out` its
 * path. A redirect met on the way changes `l->want` for the layers below, not for this one.
 */
static int
look_in(int root, const char *start, struct look *l, enum met *met, char **out,
	struct sb_error *err)
{
	sb_autofree char *here = strdup(l->want);
	sb_autofree char *path = strdup(start);
	size_t rest = here ? strlen(here) : 0;

	*met = MET_NOTHING;
	if (!here || !path)
		return sb_fail(err, SB_E_NOMEM, "lookup");
	for (char *at = here;;) {
		size_t len = strcspn(at, "/");
		bool last = at[len] == '\0';
		sb_autofree char *post = NULL;
		size_t prefix = strlen(l->want) - rest;
		char *longer;
		int r;

		at[len] = '\0';
		longer = join(path, at);
		free(path);
		path = longer;
		rest -= len;
		/* What is behind this component is the same in `want`, whatever happened before it.
		 */
		post = strdup(l->want + strlen(l->want) - rest);
		if (!path || !post)
			return sb_fail(err, SB_E_NOMEM, "lookup");
		r = meet(root, path, met, err);
		if (r < 0)
			return r;
		if (*met != MET_DIR) {
			if (*met == MET_WHITEOUT || (*met == MET_OTHER && !last))
				l->stop = true;
			return 0;
		}
		r = follow_marks(root, path, prefix, post, l, err);
		if (r < 0)
			return r;
		if (last) {
			*out = sb_steal(&path);
			return 1;
		}
		at += len + 1;
		rest--;
	}
}

/* The directory `name` of `d`, which the parts from number `k` on may have; the first has it. */
static int
resolve(const struct sb_overlay_view *v, const struct sb_overlay_vdir *d, size_t k,
	const char *name, struct sb_overlay_vdir *out, struct sb_error *err)
{
	struct look l = { .want = strdup(name) };
	size_t i = k, layer = 0;
	int r = l.want ? 0 : sb_fail(err, SB_E_NOMEM, "lookup");

	*out = (struct sb_overlay_vdir){ 0 };
	while (r >= 0 && !l.stop && (l.absolute ? layer < v->n : i < d->n)) {
		bool was = l.absolute;
		size_t in = was ? layer : d->v[i].layer;
		sb_autofree char *path = NULL;
		enum met met;

		r = look_in(v->fds[in], was ? "" : d->v[i].path, &l, &met, &path, err);
		if (r == 1)
			r = add_part(out, in, path, err);
		else if (r == 0 && met == MET_OTHER)
			l.stop = true;
		i++;
		layer = in + 1;
	}
	if (r >= 0 && !l.stop && (l.absolute || d->low)) {
		out->low = l.absolute ? strdup(l.want) : join(d->low, l.want);
		if (!out->low)
			r = sb_fail(err, SB_E_NOMEM, "lookup");
	}
	free(l.want);
	if (r < 0)
		sb_overlay_view_root_free(out);
	return r < 0 ? r : 0;
}

/* A name and the topmost part that has it. */
struct name {
	char *name;
	size_t part;
};

struct names {
	struct name *v;
	size_t n, cap;
};

static void
names_free(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
}

static int
by_name_and_part(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->part < y->part ? -1 : x->part > y->part;
}

static int
add_name(struct names *l, const char *name, size_t part, struct sb_error *err)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		struct name *v = reallocarray(l->v, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of a layer");
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct name){ strdup(name), part };
	if (!l->v[l->n].name)
		return sb_fail(err, SB_E_NOMEM, "list of a layer");
	l->n++;
	return 0;
}

static int
read_part(const struct sb_overlay_view *v, const struct sb_overlay_vdir *d, size_t part,
	struct names *l, struct sb_error *err)
{
	int fd = sb_path_open(v->fds[d->v[part].layer], d->v[part].path, O_RDONLY | O_DIRECTORY, 0,
		err);
	sb_autoclosedir DIR *dir = NULL;
	struct dirent *e;
	int r = 0;

	if (fd < 0)
		return fd;
	/* The root of a layer is the caller's descriptor's open file: it must not be read along. */
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return sb_fail_errno(err, "read a layer");
	}
	while (r == 0 && (errno = 0, e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = add_name(l, e->d_name, part, err);
	return r == 0 && errno ? sb_fail_errno(err, "read a layer") : r;
}

static int
fill_entry(const struct sb_overlay_view *v, const struct sb_overlay_vdir *d,
	const struct name *name, struct sb_overlay_ventry *e, struct sb_error *err)
{
	const struct sb_overlay_vpart *p = &d->v[name->part];
	sb_autofree char *path = join(p->path, name->name);
	enum met met = MET_NOTHING;
	int r;

	*e = (struct sb_overlay_ventry){ .name = strdup(name->name), .layer = p->layer };
	if (!path || !e->name)
		return sb_fail(err, SB_E_NOMEM, "list of a layer");
	r = meet(v->fds[p->layer], path, &met, err);
	if (r < 0)
		return r;
	switch (met) {
	case MET_WHITEOUT: e->kind = SB_OVERLAY_V_WHITEOUT; return 0;
	case MET_DIR:
		e->kind = SB_OVERLAY_V_DIR;
		return resolve(v, d, name->part, name->name, &e->dir, err);
	case MET_OTHER:
		e->kind = SB_OVERLAY_V_LEAF;
		e->path = sb_steal(&path);
		return 0;
	default: return sb_fail(err, SB_E_CHANGED, "%s went away while it was read", path);
	}
}

void
sb_overlay_view_list_free(struct sb_overlay_ventry *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(e[i].name);
		free(e[i].path);
		sb_overlay_view_root_free(&e[i].dir);
	}
	free(e);
}

int
sb_overlay_view_list(const struct sb_overlay_view *v, const struct sb_overlay_vdir *d,
	struct sb_overlay_ventry **out, size_t *out_n, struct sb_error *err)
{
	struct names l = { 0 };
	struct sb_overlay_ventry *e = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < d->n && r == 0; i++)
		r = read_part(v, d, i, &l, err);
	if (r == 0 && l.n) {
		qsort(l.v, l.n, sizeof *l.v, by_name_and_part);
		e = calloc(l.n, sizeof *e);
		if (!e)
			r = sb_fail(err, SB_E_NOMEM, "list of a layer");
	}
	for (size_t i = 0; i < l.n && r == 0; i++)
		if (i == 0 || strcmp(l.v[i].name, l.v[i - 1].name) != 0)
			r = fill_entry(v, d, &l.v[i], &e[n++], err);
	names_free(&l);
	if (r < 0) {
		sb_overlay_view_list_free(e, n);
		return r;
	}
	*out = e;
	*out_n = n;
	return 0;
}
