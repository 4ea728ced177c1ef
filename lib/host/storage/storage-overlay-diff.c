/* SPDX-License-Identifier: MIT */
/*
 * What changed between two states of the overlay storage. Only what the layers between them and
 * their common ancestor name is looked at; how it looks in either state the kernel tells, by
 * read-only mounts.
 */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/overlay-view.h>

/* One of the two states. */
struct side {
	struct sb_overlay_node *node;
	uint64_t upper;                        /* "now": the session's upper; else 0 */
	uint64_t above[SB_OVERLAY_LAYERS_MAX]; /* layers above the common ancestor, top first */
	size_t n_above;
	int fds[SB_OVERLAY_LAYERS_MAX];
	struct sb_overlay_view view;
	int dir; /* the whole state */
};

struct diff {
	struct sb_storage_overlay *o;
	const struct sb_host_call *call;
	struct sb_changes *out;
	struct side old, now;
	struct sb_strlist moved; /* directories that were told as renamed, by their old names */
	bool whole;              /* compare everything */
	sb_storage_states_fn fn; /* of who only looks */
	void *arg;
};

static size_t
depth(const struct sb_overlay_node *n)
{
	size_t d = 0;

	for (; n; n = n->parent)
		d++;
	return d;
}

static bool
add_above(struct side *s, uint64_t layer)
{
	if (s->n_above == SB_OVERLAY_LAYERS_MAX)
		return false;
	s->above[s->n_above++] = layer;
	return true;
}

/* Fills in the layers above the common ancestor. False: too many. With `mu` held. */
static bool
find_above(struct diff *d)
{
	const struct sb_overlay_node *a = d->old.node, *b = d->now.node;
	size_t da = depth(a), db = depth(b);
	bool fits = !d->now.upper || add_above(&d->now, d->now.upper);

	while (a != b && fits)
		if (da > db) {
			fits = add_above(&d->old, a->layer);
			a = a->parent;
			da--;
		} else if (db > da) {
			fits = add_above(&d->now, b->layer);
			b = b->parent;
			db--;
		} else {
			fits = add_above(&d->old, a->layer) && add_above(&d->now, b->layer);
			a = a->parent;
			b = b->parent;
			da--;
			db--;
		}
	return fits;
}

static int
open_above(struct sb_storage_overlay *o, struct side *s, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < s->n_above && r >= 0; i++) {
		s->fds[i] = r = sb_overlay_layer_open(o->layersfd, s->above[i], err);
		if (r >= 0)
			s->view.n++;
	}
	s->view.fds = s->fds;
	return r < 0 ? r : 0;
}

static void
side_close(struct sb_storage_overlay *o, struct side *s)
{
	for (size_t i = 0; i < s->view.n; i++)
		(void)close(s->fds[i]);
	if (s->dir >= 0)
		(void)close(s->dir);
	(void)pthread_mutex_lock(&o->mu);
	sb_overlay_node_unpin(&o->state.tree, s->node);
	(void)pthread_mutex_unlock(&o->mu);
}

int
sb_storage_overlay_open_state(struct sb_storage_overlay *o, const struct sb_overlay_session *se,
	const struct sb_overlay_node *node, struct sb_error *err)
{
	uint64_t stack[SB_OVERLAY_LAYERS_MAX];
	struct sb_overlay_mount m = { .layers = o->layersfd, .stack = stack };
	sb_autofree char *place = sb_str_printf("%s/view-%llx", o->root,
		(unsigned long long)sb_storage_overlay_new_id(o));
	sb_autoclose int base = sb_storage_overlay_base_of(o, se, err);
	int r = base;

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_node_stack(node, stack, 0, SB_OVERLAY_LAYERS_MAX, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r < 0)
		return r;
	if (r == 0) {
		r = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return r < 0 ? sb_fail_errno(err, "open the base") : r;
	}
	m.n = (size_t)r;
	m.base = base;
	m.base_place = se->owner ? o->base_place : NULL;
	if (!place)
		return sb_fail(err, SB_E_NOMEM, "view");
	if (mkdir(place, 0700) < 0)
		return sb_fail_errno(err, "make %s", place);
	r = sb_overlay_mount_view(&m, place, err);
	(void)rmdir(place);
	return r;
}

static char *
join(const char *dir, const char *name)
{
	return *dir ? sb_str_printf("%s/%s", dir, name) : strdup(name);
}

/* It is what has that name below, and nothing was moved there. */
static bool
is_natural(const struct sb_overlay_vdir *up, const struct sb_overlay_ventry *e)
{
	sb_autofree char *natural = sb_overlay_view_natural(up, e->name);

	return e->kind == SB_OVERLAY_V_DIR && natural && e->dir.low &&
		strcmp(natural, e->dir.low) == 0;
}

/* A directory in both states, and what the layers say about it. */
struct pair {
	const struct sb_overlay_vdir *a, *b; /* NULL: nothing */
	int old, now;
	const char *path; /* of it now */
};

static int walk(struct diff *d, const struct pair *p, struct sb_error *err);

/* Goes down where both have a directory; 1: not so. */
static int
go_down(struct diff *d, const struct pair *p, const char *name, const struct sb_overlay_ventry *ea,
	const struct sb_overlay_ventry *eb, struct sb_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	sb_autoclose int old = openat(p->old, name, flags);
	sb_autoclose int now = openat(p->now, name, flags);
	sb_autofree char *path = join(p->path, name);
	const struct pair sub = { ea ? &ea->dir : NULL, eb ? &eb->dir : NULL, old, now, path };

	if (old < 0 || now < 0)
		return 1;
	return path ? walk(d, &sub, err) : sb_fail(err, SB_E_NOMEM, "diff");
}

/* A directory that was called otherwise in the old state, which the layers stand upon; 1: it is
 * not. */
static int
renamed(struct diff *d, const struct pair *p, const struct sb_overlay_ventry *e,
	struct sb_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	sb_autofree char *path = join(p->path, e->name);
	sb_autoclose int old = -1;
	sb_autoclose int now = -1;
	struct stat st;
	struct pair sub;
	int r;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "diff");
	if (d->old.n_above > 0 || !e->dir.low)
		return 1;
	old = sb_path_open(d->old.dir, e->dir.low, flags, 0, NULL);
	now = openat(p->now, e->name, flags | O_NOFOLLOW | O_CLOEXEC);
	if (old < 0 || now < 0)
		return 1;
	/* What was at the new path before is gone, unless it moved away itself. */
	if (p->old >= 0 && fstatat(p->old, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		sb_autoclose int nothing = openat(d->o->emptyfd, ".", O_RDONLY | O_CLOEXEC);

		r = nothing < 0 ? sb_fail_errno(err, "open") :
				  sb_changes_compare_name(p->old, nothing, p->path, e->name,
					  d->call, d->out, err);
		if (r < 0)
			return r;
	}
	r = sb_changes_add(d->out, SB_HOST_RENAMED, 'd', path, e->dir.low, 0, err);
	if (r == 0) {
		sb_strlist_add(&d->moved, e->dir.low);
		r = sb_strlist_check(&d->moved, err);
	}
	sub = (struct pair){ NULL, &e->dir, old, now, path };
	return r < 0 ? r : walk(d, &sub, err);
}

static int
compare_entry(struct diff *d, const struct pair *p, const struct sb_overlay_ventry *ea,
	const struct sb_overlay_ventry *eb, struct sb_error *err)
{
	const char *name = ea ? ea->name : eb->name;
	int r = 1;

	if (d->out->more)
		return 0;
	if ((!ea || is_natural(p->a, ea)) && (!eb || is_natural(p->b, eb)))
		r = go_down(d, p, name, ea, eb, err);
	else if (!ea && eb->kind == SB_OVERLAY_V_DIR)
		r = renamed(d, p, eb, err);
	return r == 1 ?
		sb_changes_compare_name(p->old, p->now, p->path, name, d->call, d->out, err) :
		r;
}

static int
walk(struct diff *d, const struct pair *p, struct sb_error *err)
{
	struct sb_overlay_ventry *a = NULL, *b = NULL;
	size_t na = 0, nb = 0, i = 0, k = 0;
	int r = sb_check_alive(d->call ? d->call->cancel : NULL,
		d->call ? d->call->deadline : SB_NEVER, "diff", err);

	if (r == 0 && p->a)
		r = sb_overlay_view_list(&d->old.view, p->a, &a, &na, err);
	if (r == 0 && p->b)
		r = sb_overlay_view_list(&d->now.view, p->b, &b, &nb, err);
	while (r == 0 && (i < na || k < nb)) {
		int c = i == na ? 1 : k == nb ? -1 : strcmp(a[i].name, b[k].name);

		r = compare_entry(d, p, c <= 0 ? &a[i] : NULL, c >= 0 ? &b[k] : NULL, err);
		i += c <= 0;
		k += c >= 0;
	}
	sb_overlay_view_list_free(a, na);
	sb_overlay_view_list_free(b, nb);
	return r;
}

static int
compare(struct diff *d, struct sb_error *err)
{
	struct sb_overlay_vdir a = { 0 }, b = { 0 };
	struct pair p = { &a, &b, d->old.dir, d->now.dir, "" };
	int r;

	if (d->whole)
		return sb_changes_compare(d->old.dir, d->now.dir, d->call, d->out, err);
	r = open_above(d->o, &d->old, err);
	if (r == 0)
		r = open_above(d->o, &d->now, err);
	if (r == 0)
		r = sb_overlay_view_root(&d->old.view, &a, err);
	if (r == 0)
		r = sb_overlay_view_root(&d->now.view, &b, err);
	if (r == 0)
		r = walk(d, &p, err);
	for (size_t i = 0; i < d->moved.n; i++)
		sb_changes_forget(d->out, d->moved.v[i]);
	sb_overlay_view_root_free(&a);
	sb_overlay_view_root_free(&b);
	return r;
}

/* Both nodes, pinned. */
static int
find_sides(struct diff *d, const char *id, const char *from, const char *to,
	struct sb_overlay_session **out, struct sb_error *err)
{
	struct sb_overlay_session *se = sb_storage_overlay_find(d->o, id, err);
	const struct sb_overlay_snap *a = se ? sb_overlay_state_snap(se, from) : NULL;
	const struct sb_overlay_snap *b = se && to ? sb_overlay_state_snap(se, to) : NULL;

	if (!se)
		return SB_E_NOTFOUND;
	if (!a || (to && !b))
		return sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), a ? to : from);
	d->old.node = a->node;
	d->now.node = to ? b->node : se->node;
	d->now.upper = to ? 0 : se->upper;
	sb_overlay_node_pin(d->old.node);
	sb_overlay_node_pin(d->now.node);
	d->whole = !find_above(d);
	*out = se;
	return 0;
}

/* Opens both states; `fn` gets them, with the diff as its argument. */
static int
with_states(struct diff *d, const char *id, const char *from, const char *to,
	int (*fn)(struct diff *d, struct sb_error *err), struct sb_error *err)
{
	struct sb_overlay_session *se = NULL;
	int r;

	d->old.dir = d->now.dir = -1;
	(void)pthread_mutex_lock(&d->o->mu);
	r = find_sides(d, id, from, to, &se, err);
	(void)pthread_mutex_unlock(&d->o->mu);
	if (r < 0)
		return r;
	d->old.dir = r = sb_storage_overlay_open_state(d->o, se, d->old.node, err);
	if (r >= 0 && to) {
		d->now.dir = r = sb_storage_overlay_open_state(d->o, se, d->now.node, err);
	} else if (r >= 0) {
		sb_autofree char *path = NULL;

		r = sb_storage_overlay_mount(&d->o->st, id, &path, err);
		if (r == 0)
			d->now.dir = r = sb_path_open_root(path, err);
	}
	if (r >= 0)
		r = fn(d, err);
	side_close(d->o, &d->old);
	side_close(d->o, &d->now);
	return r;
}

int
sb_storage_overlay_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err)
{
	sb_autofree struct diff *d = calloc(1, sizeof *d);
	int r;

	if (!d)
		return sb_fail(err, SB_E_NOMEM, "diff");
	d->o = (struct sb_storage_overlay *)st;
	d->call = call;
	d->out = out;
	r = with_states(d, id, from, to, compare, err);
	sb_strlist_free(&d->moved);
	return r;
}

static int
show(struct diff *d, struct sb_error *err)
{
	return d->fn(d->old.dir, d->now.dir, d->arg, err);
}

int
sb_storage_overlay_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err)
{
	sb_autofree struct diff *d = calloc(1, sizeof *d);

	if (!d)
		return sb_fail(err, SB_E_NOMEM, "diff");
	d->o = (struct sb_storage_overlay *)st;
	d->fn = fn;
	d->arg = arg;
	return with_states(d, id, from, to, show, err);
}
