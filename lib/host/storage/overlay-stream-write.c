/* SPDX-License-Identifier: MIT */
/* Writing layers of the overlay storage as streams. */
#include "config.h"

#include <host/storage/overlay-stream.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/overlay-layer.h>

#define DEPTH_MAX 2048
#define FLUSH_AT (1u << 18)
#define CHUNK (1u << 16)
#define XATTR_MAX 65536

struct link {
	dev_t dev;
	ino_t ino;
	char *path;
};

struct writer {
	int fd;
	bool marks;
	const struct sb_host_call *call;
	struct sb_buf b;
	XXH3_state_t *sum;
	struct link *links;
	size_t n_links, cap_links;
	unsigned depth;
};

/* Until the other side takes bytes, the call is canceled, or its time is over. */
static int
await(const struct writer *w, struct sb_error *err)
{
	const struct sb_cancel *cancel = w->call ? w->call->cancel : NULL;
	sb_deadline d = w->call ? w->call->deadline : SB_NEVER;
	struct pollfd f[2] = { { .fd = w->fd, .events = POLLOUT },
		{ .fd = sb_cancel_fd(cancel), .events = POLLIN } };

	(void)poll(f, 2, sb_deadline_poll_ms(d));
	return sb_check_alive(cancel, d, "send", err);
}

static int
flush(struct writer *w, struct sb_error *err)
{
	size_t done = 0;
	int r = sb_buf_check(&w->b, "stream", err);

	if (r == 0)
		(void)XXH3_64bits_update(w->sum, w->b.data, w->b.len);
	while (r == 0 && done < w->b.len) {
		ssize_t n;

		r = await(w, err);
		if (r < 0)
			return r;
		n = sb_file_write_nosig(w->fd, w->b.data + done, w->b.len - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN)
			return sb_fail_errno(err, "write the stream");
	}
	sb_buf_reset(&w->b);
	return r;
}

static int
maybe_flush(struct writer *w, struct sb_error *err)
{
	return w->b.len >= FLUSH_AT ? flush(w, err) : 0;
}

static void
add_text(struct sb_buf *b, const char *s)
{
	sb_buf_add_bytes(b, s, strlen(s));
}

/* What travels; the rest belongs to the machine. */
static bool
travels(const char *name)
{
	return sb_str_starts(name, "user.") || sb_str_starts(name, "system.posix_acl_") ||
		strcmp(name, "security.capability") == 0;
}

static int
add_xattrs(struct writer *w, int fd, struct sb_error *err)
{
	sb_autofree char *list = malloc(XATTR_MAX);
	sb_autofree char *value = malloc(XATTR_MAX);
	ssize_t n = list && value && fd >= 0 ? flistxattr(fd, list, XATTR_MAX) : 0;
	uint64_t count = 0;

	if (!list || !value)
		return sb_fail(err, SB_E_NOMEM, "attributes");
	if (n < 0 && errno != ENOTSUP)
		return sb_fail_errno(err, "list attributes");
	for (const char *p = list; p < list + n; p += strlen(p) + 1)
		count += travels(p);
	sb_buf_add_varint(&w->b, count);
	for (const char *p = list; p < list + n; p += strlen(p) + 1) {
		ssize_t len;

		if (!travels(p))
			continue;
		len = fgetxattr(fd, p, value, XATTR_MAX);
		if (len < 0)
			return sb_fail_errno(err, "read attribute %s", p);
		add_text(&w->b, p);
		sb_buf_add_bytes(&w->b, value, (size_t)len);
	}
	return 0;
}

static int
add_meta(struct writer *w, const struct stat *st, int fd, struct sb_error *err)
{
	sb_buf_add_varint(&w->b, st->st_mode);
	sb_buf_add_varint(&w->b, st->st_uid);
	sb_buf_add_varint(&w->b, st->st_gid);
	sb_buf_add_svarint(&w->b, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
	return add_xattrs(w, fd, err);
}

/* 1: another name of a file that was written already. */
static int
try_link(struct writer *w, const struct stat *st, const char *name, const char *path,
	struct sb_error *err)
{
	struct link *l;

	for (size_t i = 0; i < w->n_links; i++)
		if (w->links[i].ino == st->st_ino && w->links[i].dev == st->st_dev) {
			sb_buf_add_u8(&w->b, 'K');
			add_text(&w->b, name);
			add_text(&w->b, w->links[i].path);
			return 1;
		}
	if (w->n_links == w->cap_links) {
		size_t cap = w->cap_links ? w->cap_links * 2 : 16;
		struct link *v = reallocarray(w->links, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "hard links");
		w->links = v;
		w->cap_links = cap;
	}
	l = &w->links[w->n_links];
	*l = (struct link){ st->st_dev, st->st_ino, strdup(path) };
	if (!l->path)
		return sb_fail(err, SB_E_NOMEM, "hard links");
	w->n_links++;
	return 0;
}

/* The bytes between two holes. */
static int
add_data(struct writer *w, int fd, off_t at, off_t end, char *buf, struct sb_error *err)
{
	while (at < end) {
		size_t want = end - at < (off_t)CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t n = pread(fd, buf, want, at);
		int r;

		if (n < 0)
			return sb_fail_errno(err, "read");
		if (n == 0)
			return sb_fail(err, SB_E_CHANGED,
				"a file became shorter while it was read");
		sb_buf_add_varint(&w->b, (uint64_t)at);
		sb_buf_add_bytes(&w->b, buf, (size_t)n);
		at += n;
		r = maybe_flush(w, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
write_file(struct writer *w, int dir, const char *name, const char *path, struct sb_error *err)
{
	sb_autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autofree char *buf = malloc(CHUNK);
	struct stat st;
	off_t at = 0;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "open %s", path);
	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "send");
	if (st.st_nlink > 1)
		r = try_link(w, &st, name, path, err);
	if (r != 0)
		return r < 0 ? r : 0;
	sb_buf_add_u8(&w->b, 'F');
	add_text(&w->b, name);
	r = add_meta(w, &st, fd, err);
	while (r == 0 && at < st.st_size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		data = data < 0 ? at : data;
		hole = lseek(fd, data, SEEK_HOLE);
		hole = hole < 0 || hole > st.st_size ? st.st_size : hole;
		r = add_data(w, fd, data, hole, buf, err);
		at = hole;
	}
	sb_buf_add_varint(&w->b, (uint64_t)st.st_size);
	sb_buf_add_bytes(&w->b, "", 0);
	return r;
}

static int
write_special(struct writer *w, int dir, const char *name, const struct stat *st,
	struct sb_error *err)
{
	char target[4097];
	ssize_t n;
	int r;

	if (sb_overlay_layer_is_whiteout(st) && w->marks) {
		sb_buf_add_u8(&w->b, 'W');
		add_text(&w->b, name);
		return 0;
	}
	/* Devices do not travel: nothing in a workspace may use them. */
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	sb_buf_add_u8(&w->b, S_ISLNK(st->st_mode) ? 'L' : 'S');
	add_text(&w->b, name);
	r = add_meta(w, st, -1, err);
	if (r < 0 || !S_ISLNK(st->st_mode))
		return r;
	n = readlinkat(dir, name, target, sizeof target - 1);
	if (n < 0)
		return sb_fail_errno(err, "read link %s", name);
	sb_buf_add_bytes(&w->b, target, (size_t)n);
	return 0;
}

static int write_entries(struct writer *w, int dir, const char *path, struct sb_error *err);

static int
write_dir(struct writer *w, int up, const char *name, const char *path, struct sb_error *err)
{
	sb_autoclose int dir = openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sb_autofree char *opaque = NULL;
	sb_autofree char *redirect = NULL;
	bool bad = false;
	struct stat st;
	int r;

	if (dir < 0 || fstat(dir, &st) < 0)
		return sb_fail_errno(err, "open %s", path);
	if (++w->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	if (w->marks) {
		opaque = sb_overlay_layer_mark(dir, SB_OVERLAY_OPAQUE, &bad);
		if (!bad)
			redirect = sb_overlay_layer_mark(dir, SB_OVERLAY_REDIRECT, &bad);
		if (bad)
			return sb_fail_errno(err, "marks of %s", path);
	}
	sb_buf_add_u8(&w->b, 'D');
	add_text(&w->b, name);
	r = add_meta(w, &st, dir, err);
	sb_buf_add_u8(&w->b, opaque && opaque[0] == 'y');
	add_text(&w->b, redirect ? redirect : "");
	if (r == 0)
		r = write_entries(w, dir, path, err);
	sb_buf_add_u8(&w->b, 'U');
	w->depth--;
	return r;
}

static int
write_entry(struct writer *w, int dir, const char *name, const char *path, struct sb_error *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return write_dir(w, dir, name, path, err);
	return S_ISREG(st.st_mode) ? write_file(w, dir, name, path, err) :
				     write_special(w, dir, name, &st, err);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
names_of(int dir, const char *path, struct sb_strlist *out, struct sb_error *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read %s", path);
	}
	while ((errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			sb_strlist_add(out, e->d_name);
	if (errno)
		return sb_fail_errno(err, "read %s", path);
	if (out->n > 0)
		qsort(out->v, out->n, sizeof out->v[0], by_name);
	return sb_strlist_check(out, err);
}

/* By name: one tree is one stream, whatever file system it comes from. */
static int
write_entries(struct writer *w, int dir, const char *path, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	int r = names_of(dir, path, &names, err);

	for (size_t i = 0; i < names.n && r == 0; i++) {
		const char *name = names.v[i];
		sb_autofree char *sub = *path ? sb_str_printf("%s/%s", path, name) : strdup(name);

		r = sub ? write_entry(w, dir, name, sub, err) : sb_fail(err, SB_E_NOMEM, "send");
		if (r == 0)
			r = maybe_flush(w, err);
	}
	return r;
}

static int
write_part(struct writer *w, const struct sb_overlay_part *part, int dir, struct sb_error *err)
{
	struct stat st;
	int r;

	if (fstat(dir, &st) < 0)
		return sb_fail_errno(err, "stat the tree");
	sb_buf_add(&w->b, "SBLAYER1", 8);
	add_text(&w->b, part->name);
	add_text(&w->b, part->from);
	sb_buf_add_svarint(&w->b, part->time_ns);
	r = add_meta(w, &st, dir, err);
	if (r == 0)
		r = write_entries(w, dir, "", err);
	sb_buf_add_u8(&w->b, 'E');
	if (r == 0)
		r = flush(w, err);
	sb_buf_add_u64(&w->b, XXH3_64bits_digest(w->sum));
	return r < 0 ? r : flush(w, err);
}

int
sb_overlay_stream_write(int fd, const struct sb_overlay_part *part, int dir, bool marks,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct writer w = { .fd = fd, .marks = marks, .call = call, .sum = XXH3_createState() };
	int r;

	if (!w.sum)
		return sb_fail(err, SB_E_NOMEM, "send");
	(void)XXH3_64bits_reset(w.sum);
	sb_buf_init(&w.b, 16u << 20);
	r = write_part(&w, part, dir, err);
	for (size_t i = 0; i < w.n_links; i++)
		free(w.links[i].path);
	free(w.links);
	sb_buf_free(&w.b);
	(void)XXH3_freeState(w.sum);
	return r;
}
