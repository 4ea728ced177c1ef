/* SPDX-License-Identifier: MIT */
/* Listings on ZFS: sessions with their snapshots, space of the pool, base images. */
#include "config.h"

#include <host/storage/storage-zfs-priv.h>

#include <string.h>

/*
 * `zfs get -r` prints three columns a property, contiguous for each dataset or snapshot, snapshots
 * in order of creation. It is the one listing whose numbers are exact on old and new programs
 * alike.
 */
struct list_walk {
	struct sb_storage_zfs *s;
	sb_storage_entry_fn fn;
	void *arg;
	char name[SB_ZFS_NAME_MAX + 1]; /* being collected; "" for none */
	char origin[SB_ZFS_NAME_MAX + 1];
	char mountpoint[4096];
	bool filesystem;
	struct sb_storage_entry e;
};

/* "<sessions>/LEAF[@SNAP]" of a session that is not dead: cut in place, and its id. */
static bool
split(struct sb_storage_zfs *s, char *name, const char **id, char **snap)
{
	sb_autofree char *current = NULL;
	size_t len = strlen(s->sessions);
	char *leaf = name + len + 1;

	if (strncmp(name, s->sessions, len) != 0 || name[len] != '/')
		return false;
	*snap = strchr(leaf, '@');
	if (*snap)
		*(*snap)++ = '\0';
	*id = sb_storage_zfs_id(leaf);
	current = sb_storage_zfs_leaf(s, *id);
	return current && strcmp(current, leaf) == 0 && !strchr(leaf, '/') && !strchr(leaf, '#');
}

static int
deliver(struct list_walk *w, struct sb_error *err)
{
	const char *id, *oid;
	char *snap, *osnap;

	if (!w->name[0] || !split(w->s, w->name, &id, &snap) || (!snap && !w->filesystem))
		return 0;
	w->e.id = id;
	w->e.snap = snap;
	if (split(w->s, w->origin, &oid, &osnap) && osnap) {
		w->e.origin_id = oid;
		w->e.origin_snap = osnap;
	}
	w->e.mountpoint = w->mountpoint;
	return w->fn(&w->e, w->arg, err);
}

static bool
store(struct list_walk *w, const char *prop, const char *value)
{
	uint64_t n = 0;

	if (strcmp(prop, "type") == 0) {
		w->filesystem = strcmp(value, "filesystem") == 0;
		return true;
	}
	if (strcmp(prop, "origin") == 0)
		return snprintf(w->origin, sizeof w->origin, "%s", value) < (int)sizeof w->origin;
	if (strcmp(prop, "mountpoint") == 0)
		return snprintf(w->mountpoint, sizeof w->mountpoint, "%s", value) <
			(int)sizeof w->mountpoint;
	if (!sb_zfs_parse_size(value, &n))
		return false;
	if (strcmp(prop, "creation") == 0)
		w->e.created_s = (int64_t)n;
	else if (strcmp(prop, "used") == 0)
		w->e.used = n;
	else if (strcmp(prop, "referenced") == 0)
		w->e.referenced = n;
	else if (strcmp(prop, "refquota") == 0)
		w->e.quota = n;
	else if (strcmp(prop, "userrefs") == 0)
		w->e.holds = (unsigned)n;
	return true;
}

static int
line(char **field, size_t n, void *arg, struct sb_error *err)
{
	struct list_walk *w = arg;
	int r;

	if (n != 3)
		return sb_fail(err, SB_E_STORAGE, "zfs get: unexpected line of %zu columns", n);
	if (strcmp(w->name, field[0]) != 0 || strcmp(field[1], "type") == 0) {
		r = deliver(w, err);
		if (r < 0)
			return r;
		w->e = (struct sb_storage_entry){ 0 };
		w->origin[0] = w->mountpoint[0] = '\0';
		w->filesystem = false;
		if (snprintf(w->name, sizeof w->name, "%s", field[0]) >= (int)sizeof w->name)
			w->name[0] = '\0';
	}
	if (w->name[0] && !store(w, field[1], field[2]))
		return sb_fail(err, SB_E_STORAGE, "zfs get: %s of %s is \"%s\"", field[1], field[0],
			field[2]);
	return 0;
}

int
sb_storage_zfs_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	sb_autofree char *ds = id ? sb_storage_zfs_name(s, id, NULL, err) : strdup(s->sessions);
	const char *const args[] = { "get", "-H", "-p", "-r", "-o", "name,property,value",
		"type,creation,used,referenced,refquota,userrefs,origin,mountpoint", ds, NULL };
	sb_autofree struct list_walk *w = calloc(1, sizeof *w);
	sb_auto(sb_buf) struct sb_buf out;
	int r;

	sb_buf_init(&out, 0);
	if (!ds || !w)
		return sb_fail(err, SB_E_NOMEM, "list of sessions");
	w->s = s;
	w->fn = fn;
	w->arg = arg;
	r = sb_zfs_run(&s->z, false, args, &out, err);
	if (r == 0)
		r = sb_zfs_lines((char *)out.data, 4, line, w, err);
	return r == 0 ? deliver(w, err) : r;
}

int
sb_storage_zfs_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	sb_autofree char *ds = sb_storage_zfs_name(s, id, NULL, err);
	const char *const args[] = { "get", "-H", "-p", "-o", "value", "used", ds, NULL };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, 0);
	if (!ds)
		return SB_E_INVAL;
	r = sb_zfs_run(&s->z, false, args, &text, err);
	if (r < 0)
		return r;
	text.data[strcspn((char *)text.data, "\n")] = '\0';
	if (!sb_zfs_parse_size((char *)text.data, out))
		return sb_fail(err, SB_E_STORAGE, "zfs get: used of %s is \"%s\"", ds,
			(char *)text.data);
	return 0;
}

struct space {
	struct sb_storage_space *out;
	bool fragmentation;
	size_t rows;
};

static int
space_line(char **f, size_t n, void *arg, struct sb_error *err)
{
	struct space *sp = arg;
	struct sb_storage_space *o = sp->out;

	if (n != (sp->fragmentation ? 6u : 5u) || sp->rows++ > 0)
		return sb_fail(err, SB_E_STORAGE, "zpool list: unexpected answer");
	if (!sb_zfs_parse_size(f[0], &o->size) || !sb_zfs_parse_size(f[1], &o->used) ||
		!sb_zfs_parse_size(f[2], &o->free) || !sb_zfs_parse_percent(f[3], &o->capacity))
		return sb_fail(err, SB_E_STORAGE, "zpool list: \"%s %s %s %s\" are not sizes", f[0],
			f[1], f[2], f[3]);
	(void)snprintf(o->state, sizeof o->state, "%s", f[4]);
	o->fragmentation = -1;
	/* Pools that cannot tell print "-"; that is no failure of the pool. */
	if (sp->fragmentation)
		(void)sb_zfs_parse_percent(f[5], &o->fragmentation);
	return 0;
}

int
sb_storage_zfs_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	const char *const modern[] = { "list", "-H", "-p", "-o",
		"size,allocated,free,capacity,health,fragmentation", s->pool, NULL };
	const char *const old[] = { "list", "-H", "-o", "size,allocated,free,capacity,health",
		s->pool, NULL };
	struct space sp = { .out = out, .fragmentation = s->z.modern };
	sb_auto(sb_buf) struct sb_buf text;
	int r = sb_zfs_run(&s->z, true, s->z.modern ? modern : old, &text, err);

	if (r == 0)
		r = sb_zfs_lines((char *)text.data, 7, space_line, &sp, err);
	if (r == 0 && sp.rows == 0)
		r = sb_fail(err, SB_E_STORAGE, "zpool list: no answer about %s", s->pool);
	/* The column is in whole percents; the sizes are finer where there are any. */
	if (r == 0 && out->size > 0)
		out->capacity = (double)out->used / (double)out->size;
	return r;
}

struct bases {
	const struct sb_storage_zfs *s;
	struct sb_strlist *out;
};

static int
base_line(char **field, size_t n, void *arg, struct sb_error *err)
{
	struct bases *b = arg;
	size_t len = strlen(b->s->bases);

	(void)n;
	if (strncmp(field[0], b->s->bases, len) != 0 ||
		(field[0][len] != '/' && field[0][len] != '@'))
		return 0;
	sb_strlist_add(b->out, field[0][len] == '/' ? field[0] + len + 1 : field[0]);
	return sb_strlist_check(b->out, err);
}

int
sb_storage_zfs_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	const char *const args[] = { "list", "-H", "-r", "-t", "snapshot", "-o", "name", s->bases,
		NULL };
	struct bases b = { s, out };
	sb_auto(sb_buf) struct sb_buf text;
	int r = sb_zfs_run(&s->z, false, args, &text, err);

	return r < 0 ? r : sb_zfs_lines((char *)text.data, 1, base_line, &b, err);
}
