/* SPDX-License-Identifier: MIT */
/* Tells a caller what changed in a workspace since a snapshot. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/storage/idcheck.h>

#define CHANGES_MAX 100000

int
sb_host_snapshot_diff(struct sb_host *h, const char *id, const char *from, const char *to,
	size_t max, const struct sb_host_call *call, struct sb_host_change **out, size_t *out_n,
	bool *out_more, struct sb_error *err)
{
	sb_auto(sb_changes) struct sb_changes c = { .max = max ? max : CHANGES_MAX };
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(from, err);

	if (to && !*to)
		to = NULL;
	if (r == 0 && to)
		r = sb_idcheck_snapshot(to, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);
	if (r < 0)
		return r;
	if (!sb_host_snapshot_visible(s, from, err) ||
		(to && !sb_host_snapshot_visible(s, to, err)))
		r = SB_E_SNAPSHOT_NOT_FOUND;
	if (r == 0)
		r = h->st->ops->diff(h->st, id, from, to, call, &c, err);
	if (r == 0) {
		sb_changes_finish(&c);
		*out = c.v;
		*out_n = c.n;
		*out_more = c.more;
		c.v = NULL;
		c.n = 0;
	}
	return sb_host_op_done(h, s, r);
}

struct reading {
	const struct sb_host_call *call;
	struct sb_host_change *v;
	size_t n;
	size_t left; /* bytes that may be read yet */
};

/* The target of the symlink `name` in `dir`. */
static const char *
read_link(int dir, const char *name, char **out, size_t *len)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof target);

	*out = n >= 0 ? strndup(target, (size_t)n) : NULL;
	*len = *out ? (size_t)n : 0;
	return *out ? NULL : "cannot be read";
}

/* Nothing of it is interpreted, no link is followed, and nothing but a file is read. */
static const char *
read_one(int root, const char *path, char type, size_t *left, char **out, size_t *len)
{
	const char *leaf;
	sb_autoclose int dir = sb_path_open_parent(root, path, &leaf, NULL);
	sb_autofree char *data = NULL;
	sb_autoclose int fd = -1;
	struct stat st;
	ssize_t n;

	if (dir < 0)
		return "cannot be read";
	if (type == 'l')
		return read_link(dir, leaf, out, len);
	fd = openat(dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return "cannot be read";
	if (!S_ISREG(st.st_mode))
		return "another kind of file";
	if (st.st_size > SB_HOST_CONTENT_MAX)
		return "too large";
	if ((size_t)st.st_size > *left)
		return "too much in all";
	data = malloc((size_t)st.st_size + 1);
	n = data ? sb_file_read_full(fd, data, (size_t)st.st_size, NULL) : -1;
	if (n < 0)
		return "cannot be read";
	*left -= (size_t)n;
	*len = (size_t)n;
	*out = sb_steal(&data);
	return NULL;
}

static int
read_all(int old_dir, int new_dir, void *arg, struct sb_error *err)
{
	struct reading *rd = arg;
	int r = 0;

	for (size_t i = 0; i < rd->n && r == 0; i++) {
		struct sb_host_change *c = &rd->v[i];

		r = sb_check_alive(rd->call ? rd->call->cancel : NULL,
			rd->call ? rd->call->deadline : SB_NEVER, "diff", err);
		if (r < 0 || (c->type != 'f' && c->type != 'l'))
			continue;
		if (c->kind != SB_HOST_ADDED)
			c->unread = read_one(old_dir, c->from ? c->from : c->path, c->type,
				&rd->left, &c->old_data, &c->old_len);
		if (!c->unread && c->kind != SB_HOST_REMOVED)
			c->unread = read_one(new_dir, c->path, c->type, &rd->left, &c->new_data,
				&c->new_len);
	}
	return r;
}

int
sb_host_snapshot_contents(struct sb_host *h, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_host_change *v, size_t n, struct sb_error *err)
{
	struct reading rd = { call, v, n, SB_HOST_CONTENTS_MAX };
	struct sb_hsess *s;
	int r = sb_host_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);

	if (to && !*to)
		to = NULL;
	if (r < 0)
		return r;
	if (!sb_host_snapshot_visible(s, from, err) ||
		(to && !sb_host_snapshot_visible(s, to, err)))
		r = SB_E_SNAPSHOT_NOT_FOUND;
	if (r == 0)
		r = h->st->ops->look(h->st, id, from, to, read_all, &rd, err);
	return sb_host_op_done(h, s, r);
}

const char *
sb_host_change_name(enum sb_host_change_kind k)
{
	static const char *const names[] = { "added", "removed", "modified", "renamed" };

	return (unsigned)k < sizeof names / sizeof names[0] ? names[k] : "unknown";
}
