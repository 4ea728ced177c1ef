/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/attrs-tree.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/path.h>
#include <base/work.h>

#define NAMES_MAX 65536u /* what Linux allows a list of names, and a value */

struct attrs_reader {
	int rootfd;
	unsigned kinds;
	char *names, *sorted[4096];
	uint8_t *value;
	struct sb_attrs *out;
	struct sb_error *err;
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of `fd` that are carried, sorted; how many. */
static size_t
carried(struct attrs_reader *r, int fd)
{
	ssize_t len = flistxattr(fd, r->names, NAMES_MAX);
	size_t n = 0;

	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(r->names + i) + 1)
		if (sb_attrs_carried(r->names + i, r->kinds) &&
			n < sizeof r->sorted / sizeof r->sorted[0])
			r->sorted[n++] = r->names + i;
	if (n)
		qsort(r->sorted, n, sizeof r->sorted[0], by_name);
	return n;
}

/* The set of an open file, as a row has it. */
static int
set_of(struct attrs_reader *r, int fd, struct sb_buf *out)
{
	size_t n = carried(r, fd);

	for (size_t i = 0; i < n; i++) {
		ssize_t len = fgetxattr(fd, r->sorted[i], r->value, SB_ATTRS_VALUE_MAX);

		if (len < 0)
			continue; /* it went, or is not ours to read */
		sb_buf_add_bytes(out, r->sorted[i], strlen(r->sorted[i]));
		sb_buf_add_bytes(out, r->value, (size_t)len);
	}
	return out->failed;
}

static int
read_one(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct attrs_reader *r = arg;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autoclose int fd = -1;
	int n = sb_work_alive(r->err);

	(void)len;
	if (n < 0 || e->type == SB_ENTRY_LINK)
		return n;
	fd = sb_path_open(r->rootfd, path, O_RDONLY | O_NONBLOCK, 0, NULL);
	sb_buf_init(&b, SB_ATTRS_SET_MAX);
	if (fd < 0 || set_of(r, fd, &b) < 0 || !b.len)
		return 0;
	return sb_attrs_add(r->out, path, b.data, b.len, r->err);
}

static int
make_room(struct attrs_reader *r, struct sb_error *err)
{
	r->names = malloc(NAMES_MAX);
	r->value = malloc(SB_ATTRS_VALUE_MAX);
	return r->names && r->value ? 0 : sb_fail(err, SB_E_NOMEM, "attributes: out of memory");
}

static void
drop_room(struct attrs_reader *r)
{
	free(r->names);
	free(r->value);
}

int
sb_attrs_tree_read(int rootfd, const struct sb_manifest *m, unsigned kinds, struct sb_attrs *out,
	struct sb_error *err)
{
	struct attrs_reader *r = calloc(1, sizeof *r);
	int n = r ? make_room(r, err) : sb_fail(err, SB_E_NOMEM, "attributes: out of memory");

	out->kinds = (uint8_t)kinds;
	if (n == 0 && rootfd >= 0) {
		r->rootfd = rootfd;
		r->kinds = kinds;
		r->out = out;
		r->err = err;
		n = sb_manifest_walk(m, read_one, r);
	}
	if (r)
		drop_room(r);
	free(r);
	return n;
}

/* One that `want` has not goes; 1 when something was refused. */
static int
remove_others(struct attrs_reader *r, int fd, const struct sb_attrs_row *want)
{
	size_t n = carried(r, fd);
	int refused = 0;

	for (size_t i = 0; i < n; i++) {
		struct sb_cursor c;
		struct sb_attr a;
		bool stays = false;

		sb_cursor_init(&c, want->set, want->len);
		while (!stays && sb_attrs_next(&c, &a))
			stays = strcmp(a.name, r->sorted[i]) == 0;
		if (!stays && fremovexattr(fd, r->sorted[i]) < 0 && errno != ENODATA)
			refused = 1;
	}
	return refused;
}

static int
set_all(struct attrs_reader *r, int fd, const struct sb_attrs_row *want)
{
	int refused = remove_others(r, fd, want);
	struct sb_cursor c;
	struct sb_attr a;

	sb_cursor_init(&c, want->set, want->len);
	while (sb_attrs_next(&c, &a))
		if (fsetxattr(fd, a.name, a.value, a.len, 0) < 0)
			refused = 1;
	return refused;
}

/* 1: refused. */
static int
write_one(struct attrs_reader *r, struct sb_manifest *m, const struct sb_attrs_row *want)
{
	struct sb_entry *e = sb_manifest_find(m, want->path);
	sb_autoclose int fd = -1;
	struct stat st;
	int refused;

	if (!e || e->type == SB_ENTRY_LINK)
		return 1;
	fd = sb_path_open(r->rootfd, want->path, O_RDONLY | O_NONBLOCK, 0, NULL);
	if (fd < 0 || fstat(fd, &st) < 0 ||
		(e->type == SB_ENTRY_DIR ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)))
		return 1;
	/* Attributes of a file that nobody may write to are its owner's to change all the same. */
	if (!(st.st_mode & 0200))
		(void)fchmod(fd, (st.st_mode & 07777) | 0200);
	refused = set_all(r, fd, want);
	/* An access control list that came or went has changed the mode, too. */
	(void)fchmod(fd, st.st_mode & 07777);
	e->ctime = 0;
	return refused;
}

int
sb_attrs_tree_write(int rootfd, struct sb_manifest *m, const struct sb_attrs *want,
	struct sb_strlist *refused, struct sb_error *err)
{
	struct attrs_reader *r = calloc(1, sizeof *r);
	int n = r ? make_room(r, err) : sb_fail(err, SB_E_NOMEM, "attributes: out of memory");

	for (size_t i = 0; n == 0 && i < want->n; i++) {
		n = sb_work_alive(err);
		r->rootfd = rootfd;
		r->kinds = want->kinds;
		if (n == 0 && write_one(r, m, &want->v[i]))
			sb_strlist_add(refused, want->v[i].path);
	}
	if (r)
		drop_room(r);
	free(r);
	return n < 0 ? n : sb_strlist_check(refused, err);
}
