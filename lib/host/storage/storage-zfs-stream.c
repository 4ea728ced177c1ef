/* SPDX-License-Identifier: MIT */
/* Send, receive and diff on ZFS. */
#include "config.h"

#include <host/storage/storage-zfs-priv.h>

#include <stdio.h>
#include <string.h>

#include <base/path.h>
#include <base/str.h>

int
sb_storage_zfs_send(struct sb_storage *st, const char *id, const char *snap, const char *from,
	int fd, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	sb_autofree char *name = sb_storage_zfs_name(s, id, snap, err);
	sb_autofree char *base = from ? sb_storage_zfs_name(s, id, from, err) : NULL;
	const char *const full[] = { "send", name, NULL };
	const char *const part[] = { "send", "-i", base, name, NULL };

	if (!name || (from && !base))
		return SB_E_INVAL;
	return sb_zfs_stream(&s->z, from ? part : full, -1, fd, s->transfer_ms, call, err);
}

static int
count_line(char **field, size_t n, void *arg, struct sb_error *err)
{
	(void)field;
	(void)n;
	(void)err;
	*(size_t *)arg += 1;
	return 0;
}

/*
 * A stream may carry properties and whole trees; neither may put anything outside the session's
 * place.
 */
static int
tame(struct sb_storage_zfs *s, const char *ds, struct sb_error *err)
{
	static const char *const props[] = { "mountpoint", "setuid", "devices", "canmount" };
	const char *const list[] = { "list", "-H", "-r", "-t", "filesystem,volume", "-o", "name",
		ds, NULL };
	sb_auto(sb_buf) struct sb_buf text;
	size_t n = 0;
	int r = sb_zfs_run(&s->z, false, list, &text, err);

	if (r == 0)
		r = sb_zfs_lines((char *)text.data, 1, count_line, &n, err);
	if (r == 0 && n != 1)
		r = sb_fail(err, SB_E_INVAL, "the stream holds %zu datasets, a session is one", n);
	for (size_t i = 0; r == 0 && i < sizeof props / sizeof props[0]; i++) {
		const char *const inherit[] = { "inherit", props[i], ds, NULL };
		const char *const set[] = { "set", "canmount=on", ds, NULL };

		r = sb_zfs_run(&s->z, false, strcmp(props[i], "canmount") == 0 ? set : inherit,
			NULL, err);
	}
	return r;
}

int
sb_storage_zfs_receive(struct sb_storage_zfs *s, const char *ds, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	const char *const args[] = { "receive", "-u", ds, NULL };
	int r = sb_zfs_stream(&s->z, args, fd, -1, s->transfer_ms, call, err);

	return r < 0 ? r : tame(s, ds, err);
}

int
sb_storage_zfs_receive_next(struct sb_storage *st, const char *id, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	sb_autofree char *ds = sb_storage_zfs_name(s, id, NULL, err);
	const char *const args[] = { "receive", "-u", "-F", ds, NULL };
	int r = ds ? sb_zfs_stream(&s->z, args, fd, -1, s->transfer_ms, call, err) : SB_E_INVAL;

	return r < 0 ? r : tame(s, ds, err);
}

struct diff {
	struct sb_changes *out;
	const char *prefix; /* mountpoint with a slash */
};

/* The path behind the mountpoint, NULL for the root itself or something else. */
static const char *
inside(const struct diff *d, char *path)
{
	size_t len = strlen(d->prefix);

	sb_zfs_unescape(path);
	return strncmp(path, d->prefix, len) == 0 && path[len] ? path + len : NULL;
}

static int
diff_line(char **f, size_t n, void *arg, struct sb_error *err)
{
	struct diff *d = arg;
	const char *path, *from = NULL;
	enum sb_host_change_kind kind;
	char type;

	if (n < 3 || (f[0][0] == 'R' && n < 4))
		return sb_fail(err, SB_E_STORAGE, "zfs diff: unexpected line of %zu columns", n);
	type = f[1][0] == 'F' ? 'f' : f[1][0] == '/' ? 'd' : f[1][0] == '@' ? 'l' : 'o';
	switch (f[0][0]) {
	case '+': kind = SB_HOST_ADDED; break;
	case '-': kind = SB_HOST_REMOVED; break;
	case 'M': kind = SB_HOST_MODIFIED; break;
	case 'R': kind = SB_HOST_RENAMED; break;
	default: return sb_fail(err, SB_E_STORAGE, "zfs diff: unknown change '%c'", f[0][0]);
	}
	/* A directory is "modified" whenever an entry in it is: that is no news. */
	if (kind == SB_HOST_MODIFIED && type == 'd')
		return 0;
	path = inside(d, f[2]);
	if (kind == SB_HOST_RENAMED) {
		from = path;
		path = inside(d, f[3]);
		if (!from)
			return 0;
	}
	return path ? sb_changes_add(d->out, kind, type, path, from, 0, err) : 0;
}

static int
diff_native(struct sb_storage_zfs *s, const char *id, const char *from, const char *to,
	struct sb_changes *out, struct sb_error *err)
{
	sb_autofree char *a = sb_storage_zfs_name(s, id, from, err);
	sb_autofree char *b = sb_storage_zfs_name(s, id, to, err);
	sb_autofree char *leaf = sb_storage_zfs_leaf(s, id);
	sb_autofree char *prefix = leaf ? sb_str_printf("%s/%s/", s->root, leaf) : NULL;
	const char *const args[] = { "diff", "-F", "-H", a, b, NULL };
	struct diff d = { out, prefix };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, 0);
	if (!a || !b || !prefix)
		return sb_fail(err, SB_E_NOMEM, "diff");
	r = sb_zfs_run(&s->z, false, args, &text, err);
	return r < 0 ? r : sb_zfs_lines((char *)text.data, 4, diff_line, &d, err);
}

/* A read-only clone of the snapshot, as `_view-INSTANCE-N`; its open directory. */
static int
view_open(struct sb_storage_zfs *s, const char *id, const char *snap, char *view, size_t size,
	struct sb_error *err)
{
	sb_autofree char *origin = sb_storage_zfs_name(s, id, snap, err);
	sb_autofree char *ds = NULL;
	sb_autofree char *path = NULL;
	const char *args[] = { "clone", "-o", "readonly=on", origin, NULL, NULL };
	int r;

	(void)snprintf(view, size, SB_STORAGE_ZFS_VIEW "%s-%u", s->instance,
		atomic_fetch_add(&s->n_views, 1));
	ds = sb_storage_zfs_name(s, view, NULL, err);
	if (!origin || !ds)
		return SB_E_INVAL;
	args[4] = ds;
	r = sb_zfs_run(&s->z, false, args, NULL, err);
	if (r == 0)
		r = sb_storage_zfs_mount(&s->st, view, &path, err);
	return r < 0 ? r : sb_path_open_root(path, err);
}

static void
view_close(struct sb_storage_zfs *s, const char *view)
{
	if (view[0] && s->st.ops->destroy(&s->st, view, NULL) < 0)
		atomic_store(&s->graves, true);
}

int
sb_storage_zfs_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	char a[64] = "", b[64] = "";
	sb_autofree char *now = NULL;
	int old_dir, new_dir = -1;
	int r;

	old_dir = r = view_open(s, id, from, a, sizeof a, err);
	if (r >= 0 && to)
		new_dir = r = view_open(s, id, to, b, sizeof b, err);
	else if (r >= 0) {
		r = sb_storage_zfs_mount(&s->st, id, &now, err);
		if (r >= 0)
			new_dir = r = sb_path_open_root(now, err);
	}
	if (r >= 0)
		r = fn(old_dir, new_dir, arg, err);
	if (old_dir >= 0)
		(void)close(old_dir);
	if (new_dir >= 0)
		(void)close(new_dir);
	view_close(s, a);
	view_close(s, b);
	return r;
}

struct walk {
	const struct sb_host_call *call;
	struct sb_changes *out;
};

static int
walk_both(int old_dir, int new_dir, void *arg, struct sb_error *err)
{
	const struct walk *w = arg;

	return sb_changes_compare(old_dir, new_dir, w->call, w->out, err);
}

int
sb_storage_zfs_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err)
{
	struct sb_storage_zfs *s = (struct sb_storage_zfs *)st;
	struct walk w = { call, out };

	return s->z.modern ? diff_native(s, id, from, to, out, err) :
			     sb_storage_zfs_look(st, id, from, to, walk_both, &w, err);
}
