/* SPDX-License-Identifier: MIT */
/*
 * Destroyed sessions on ZFS: what forks still need of them stays, marked dead, until a sweep can
 * remove it.
 */
#include "config.h"

#include <host/storage/storage-zfs-priv.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <base/str.h>
#include <base/strmap.h>
#include <host/storage/idcheck.h>

#define DEAD_PROPERTY "sbhost:dead"

/* Left-overs that are busy are tried again by the next sweep. */
#define SWEEP_BUSY_MS 1000

const char *
sb_storage_zfs_id(const char *leaf)
{
	const char *p = leaf + 1;

	if (leaf[0] != '_' || !isdigit((unsigned char)*p))
		return leaf;
	while (isdigit((unsigned char)*p))
		p++;
	return *p == '-' && sb_idcheck_session(p + 1, NULL) == 0 ? p + 1 : leaf;
}

/* With `mu` held. */
static bool
is_dead(const struct sb_storage_zfs *s, const char *leaf)
{
	return sb_strmap_get(&s->dead, leaf) != NULL;
}

char *
sb_storage_zfs_leaf(struct sb_storage_zfs *s, const char *id)
{
	const char *moved;
	char *leaf;

	(void)pthread_mutex_lock(&s->mu);
	moved = sb_strmap_get(&s->moved, id);
	leaf = moved || !is_dead(s, id) ? strdup(moved ? moved : id) : strdup("");
	(void)pthread_mutex_unlock(&s->mu);
	return leaf;
}

int
sb_storage_zfs_claim(struct sb_storage_zfs *s, const char *id, struct sb_error *err)
{
	sb_autofree char *leaf = strdup(id);
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	for (unsigned n = 2; leaf && is_dead(s, leaf); n++) {
		free(leaf);
		leaf = sb_str_printf("_%u-%s", n, id);
	}
	if (!leaf)
		r = sb_fail(err, SB_E_NOMEM, "dataset name");
	else if (strcmp(leaf, id) != 0)
		r = sb_strmap_set(&s->moved, id, leaf, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

void
sb_storage_zfs_unclaim(struct sb_storage_zfs *s, const char *id)
{
	(void)pthread_mutex_lock(&s->mu);
	(void)sb_strmap_del(&s->moved, id);
	(void)pthread_mutex_unlock(&s->mu);
}

static int
note_snap(char **field, size_t n, void *arg, struct sb_error *err)
{
	(void)n;
	sb_strlist_add(arg, field[0]);
	return sb_strlist_check(arg, err);
}

/* Removes the snapshots that no fork needs, newest first. What fails is for the sweep. */
static void
prune(struct sb_storage_zfs *s, const char *ds)
{
	const char *const list[] = { "list", "-H", "-r", "-t", "snapshot", "-o", "name", "-s",
		"creation", ds, NULL };
	sb_auto(sb_strlist) struct sb_strlist snaps = { 0 };
	sb_auto(sb_buf) struct sb_buf out;

	if (sb_zfs_run(&s->z, false, list, &out, NULL) < 0 ||
		sb_zfs_lines((char *)out.data, 1, note_snap, &snaps, NULL) < 0)
		return;
	for (size_t i = snaps.n; i-- > 0;) {
		const char *const args[] = { "destroy", snaps.v[i], NULL };

		(void)sb_zfs_run(&s->z, false, args, NULL, NULL);
	}
}

/* Runs what unmounts `ds`. */
static int
run_unmounting(struct sb_storage_zfs *s, const char *ds, const char *const *args, int64_t busy_ms,
	struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", s->root, strrchr(ds, '/') + 1);

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "path of %s", ds);
	return sb_zfs_run_patient(&s->z, args, path, busy_ms, err);
}

int
sb_storage_zfs_remove(struct sb_storage_zfs *s, const char *ds, int64_t busy_ms,
	struct sb_error *err)
{
	const char *const modern[] = { "destroy", "-r", "-f", ds, NULL };
	const char *const fuse[] = { "destroy", "-r", ds, NULL };

	return run_unmounting(s, ds, s->z.modern ? modern : fuse, busy_ms, err);
}

int
sb_storage_zfs_unmount(struct sb_storage_zfs *s, const char *ds, int64_t busy_ms,
	struct sb_error *err)
{
	const char *const modern[] = { "unmount", "-f", ds, NULL };
	const char *const fuse[] = { "unmount", ds, NULL };

	return run_unmounting(s, ds, s->z.modern ? modern : fuse, busy_ms, err);
}

int
sb_storage_zfs_bury(struct sb_storage_zfs *s, const char *id, const char *leaf, bool forks,
	struct sb_error *err)
{
	sb_autofree char *ds = sb_str_printf("%s/%s", s->sessions, leaf);
	const char *const stay[] = { "set", "canmount=noauto", ds, NULL };
	const char *const mark[] = { "set", DEAD_PROPERTY "=1", ds, NULL };
	int r = ds ? 0 : sb_fail(err, SB_E_NOMEM, "dataset name");

	if (r == 0)
		r = sb_zfs_run(&s->z, false, stay, NULL, err);
	/* From here on it is nobody's: the id is free, and what is left is for the sweep. */
	if (r == 0)
		r = sb_zfs_run(&s->z, false, mark, NULL, err);
	if (r == SB_E_NOTFOUND) {
		sb_storage_zfs_unclaim(s, id);
		return 0;
	}
	if (r < 0)
		return sb_wrap(err, r, "set aside %s/%s", s->sessions, leaf);
	(void)pthread_mutex_lock(&s->mu);
	r = sb_strmap_set(&s->dead, leaf, "1", err);
	if (r == 0)
		(void)sb_strmap_del(&s->moved, id);
	(void)pthread_mutex_unlock(&s->mu);
	atomic_store(&s->graves, true);
	if (r == 0 && forks)
		prune(s, ds);
	return r;
}

/* What a listing of names and marks tells. */
struct marks {
	struct sb_storage_zfs *s;
	struct sb_strlist sweep; /* leaves to be destroyed */
	struct sb_strmap dead;   /* leaves with the mark */
	struct sb_strmap moved;  /* ids of living sessions with another leaf */
};

static void
marks_free(struct marks *m)
{
	sb_strlist_free(&m->sweep);
	sb_strmap_free(&m->dead);
	sb_strmap_free(&m->moved);
}

static int
note_mark(char **field, size_t n, void *arg, struct sb_error *err)
{
	struct marks *m = arg;
	size_t len = strlen(m->s->sessions);
	const char *leaf = field[0] + len + 1;
	bool dead;

	if (n != 2)
		return sb_fail(err, SB_E_STORAGE, "zfs list: unexpected line of %zu columns", n);
	if (strncmp(field[0], m->s->sessions, len) != 0 || field[0][len] != '/' ||
		strchr(leaf, '/'))
		return 0;
	dead = strcmp(field[1], "1") == 0;
	if (dead && sb_strmap_set(&m->dead, leaf, "1", err) < 0)
		return SB_E_NOMEM;
	if (dead || sb_str_starts(leaf, SB_STORAGE_ZFS_DEAD) ||
		(sb_str_starts(leaf, SB_STORAGE_ZFS_VIEW) && !strstr(leaf, m->s->instance))) {
		sb_strlist_add(&m->sweep, leaf);
		return sb_strlist_check(&m->sweep, err);
	}
	return sb_storage_zfs_id(leaf) == leaf ?
		0 :
		sb_strmap_set(&m->moved, sb_storage_zfs_id(leaf), leaf, err);
}

static int
read_marks(struct sb_storage_zfs *s, struct marks *m, struct sb_error *err)
{
	const char *const list[] = { "list", "-H", "-r", "-d", "1", "-t", "filesystem", "-o",
		"name," DEAD_PROPERTY, s->sessions, NULL };
	sb_auto(sb_buf) struct sb_buf out;
	int r = sb_zfs_run(&s->z, false, list, &out, err);

	*m = (struct marks){ .s = s };
	return r < 0 ? r : sb_zfs_lines((char *)out.data, 3, note_mark, m, err);
}

int
sb_storage_zfs_load_marks(struct sb_storage_zfs *s, struct sb_error *err)
{
	struct marks m;
	int r = read_marks(s, &m, err);

	if (r == 0) {
		s->dead = m.dead;
		s->moved = m.moved;
		m.dead = m.moved = (struct sb_strmap){ 0 };
	}
	marks_free(&m);
	return r;
}

struct grave_sweep {
	size_t left, busy;
	bool progress;
};

/*
 * One pass over the left-overs; a dead session may free the one it was forked from, so callers
 * repeat.
 */
static int
sweep_pass(struct sb_storage_zfs *s, struct grave_sweep *sw, struct sb_error *err)
{
	struct marks m;
	int r = read_marks(s, &m, err);

	*sw = (struct grave_sweep){ 0 };
	for (size_t i = 0; r == 0 && i < m.sweep.n; i++) {
		sb_autofree char *ds = sb_str_printf("%s/%s", s->sessions, m.sweep.v[i]);
		int one = ds ? sb_storage_zfs_remove(s, ds, SWEEP_BUSY_MS, NULL) : SB_E_NOMEM;

		if (one == 0 || one == SB_E_NOTFOUND) {
			(void)pthread_mutex_lock(&s->mu);
			(void)sb_strmap_del(&s->dead, m.sweep.v[i]);
			(void)pthread_mutex_unlock(&s->mu);
			sw->progress = true;
			continue;
		}
		sw->left++;
		sw->busy += one != SB_E_SNAPSHOT_IN_USE;
	}
	marks_free(&m);
	return r;
}

/*
 * One sweep at a time: a name that one sweep made free may be a new session's by the time another,
 * with an older list, comes to it.
 */
int
sb_storage_zfs_sweep(struct sb_storage *st, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	struct grave_sweep sw = { 0 };
	int r;

	(void)pthread_mutex_lock(&s->sweep_mu);
	if (!atomic_exchange(&s->graves, false)) {
		(void)pthread_mutex_unlock(&s->sweep_mu);
		return 0;
	}
	do
		r = sweep_pass(s, &sw, err);
	while (r == 0 && sw.left > 0 && sw.progress);
	if (r < 0 || sw.left > 0)
		atomic_store(&s->graves, true);
	(void)pthread_mutex_unlock(&s->sweep_mu);
	return r < 0 ? r : sw.busy > 0;
}
