/* SPDX-License-Identifier: MIT */
/* Reading layers of the overlay storage from streams; nothing in them is trusted. */
#include "config.h"

#include <host/storage/overlay-stream.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <host/storage/idcheck.h>
#include <host/storage/overlay-layer.h>

#define DEPTH_MAX 2048
#define ROOM (1u << 18)
#define NAME_BYTES 255
#define PATH_BYTES 65536
#define XATTRS_MAX 256
#define XATTR_BYTES 65536
#define CHUNK_MAX (1u << 20)
#define NS 1000000000

struct sb_overlay_reader {
	int fd;
	const struct sb_host_call *call;
	XXH3_state_t *sum;
	uint8_t *buf;
	size_t at, have;
	bool eof;
	bool marks; /* of the part at hand */
	int root;
	unsigned depth;
};

struct meta {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

static int
damaged(struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "the stream is damaged, or no stream of layers");
}

/* More bytes into the empty room; 0: the end. */
static int
refill(struct sb_overlay_reader *r, struct sb_error *err)
{
	const struct sb_cancel *cancel = r->call ? r->call->cancel : NULL;
	sb_deadline d = r->call ? r->call->deadline : SB_NEVER;

	for (;;) {
		struct pollfd f[2] = { { .fd = r->fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN } };
		ssize_t n;
		int e;

		(void)poll(f, 2, sb_deadline_poll_ms(d));
		e = sb_check_alive(cancel, d, "receive", err);
		if (e < 0)
			return e;
		n = read(r->fd, r->buf, ROOM);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read the stream");
		r->at = 0;
		r->have = (size_t)n;
		r->eof = n == 0;
		return n > 0;
	}
}

static int
take(struct sb_overlay_reader *r, void *out, size_t len, struct sb_error *err)
{
	uint8_t *p = out;

	while (len > 0) {
		size_t n;

		if (r->at == r->have) {
			int e = refill(r, err);

			if (e <= 0)
				return e < 0 ? e : damaged(err);
		}
		n = r->have - r->at < len ? r->have - r->at : len;
		memcpy(p, r->buf + r->at, n);
		(void)XXH3_64bits_update(r->sum, r->buf + r->at, n);
		r->at += n;
		p += n;
		len -= n;
	}
	return 0;
}

static int
take_varint(struct sb_overlay_reader *r, uint64_t *out, struct sb_error *err)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b;
		int e = take(r, &b, 1, err);

		if (e < 0)
			return e;
		if (shift == 63 && b > 1)
			return damaged(err);
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return damaged(err);
}

static int
take_signed(struct sb_overlay_reader *r, int64_t *out, struct sb_error *err)
{
	uint64_t v;
	int e = take_varint(r, &v, err);

	if (e == 0)
		*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return e;
}

/* A byte string of at most `max`, with a NUL behind it, in a new block. */
static int
take_bytes(struct sb_overlay_reader *r, size_t max, char **out, size_t *len, struct sb_error *err)
{
	uint64_t n;
	char *p;
	int e = take_varint(r, &n, err);

	if (e < 0)
		return e;
	if (n > max)
		return damaged(err);
	p = malloc((size_t)n + 1);
	if (!p)
		return sb_fail(err, SB_E_NOMEM, "receive");
	e = take(r, p, (size_t)n, err);
	if (e < 0) {
		free(p);
		return e;
	}
	p[n] = '\0';
	*out = p;
	*len = (size_t)n;
	return 0;
}

/* A text without a NUL in it. */
static int
take_text(struct sb_overlay_reader *r, size_t max, char **out, struct sb_error *err)
{
	size_t len;
	int e = take_bytes(r, max, out, &len, err);

	if (e == 0 && strlen(*out) != len) {
		free(*out);
		*out = NULL;
		return damaged(err);
	}
	return e;
}

/* One component of a path. */
static int
take_name(struct sb_overlay_reader *r, char **out, struct sb_error *err)
{
	int e = take_text(r, NAME_BYTES, out, err);

	if (e == 0 &&
		(!**out || strchr(*out, '/') || strcmp(*out, ".") == 0 ||
			strcmp(*out, "..") == 0)) {
		free(*out);
		*out = NULL;
		return damaged(err);
	}
	return e;
}

static bool
may_have(const char *name)
{
	return sb_str_starts(name, "user.") || sb_str_starts(name, "system.posix_acl_") ||
		strcmp(name, "security.capability") == 0;
}

static int
take_xattr(struct sb_overlay_reader *r, int fd, struct sb_error *err)
{
	sb_autofree char *name = NULL;
	sb_autofree char *value = NULL;
	size_t len;
	int e = take_text(r, NAME_BYTES, &name, err);

	if (e == 0)
		e = take_bytes(r, XATTR_BYTES, &value, &len, err);
	if (e == 0 && (!may_have(name) || fd < 0))
		return damaged(err);
	if (e == 0 && fsetxattr(fd, name, value, len, 0) < 0)
		return sb_fail_errno(err, "set attribute %s", name);
	return e;
}

/* Attributes; extended ones are set on `fd` at once (-1: there may be none). */
static int
take_meta(struct sb_overlay_reader *r, int fd, struct meta *m, struct sb_error *err)
{
	uint64_t mode = 0, uid = 0, gid = 0, n = 0;
	int64_t mtime = 0, s;
	int e = take_varint(r, &mode, err);

	if (e == 0)
		e = take_varint(r, &uid, err);
	if (e == 0)
		e = take_varint(r, &gid, err);
	if (e == 0)
		e = take_signed(r, &mtime, err);
	if (e == 0)
		e = take_varint(r, &n, err);
	if (e < 0)
		return e;
	if (mode > 0177777 || uid >= UINT32_MAX || gid >= UINT32_MAX || n > XATTRS_MAX)
		return damaged(err);
	for (uint64_t i = 0; i < n && e == 0; i++)
		e = take_xattr(r, fd, err);
	s = mtime >= 0 ? mtime / NS : -((-(mtime + 1)) / NS) - 1;
	*m = (struct meta){ (mode_t)mode, (uid_t)uid, (gid_t)gid,
		{ .tv_sec = s, .tv_nsec = (long)(mtime - s * NS) } };
	return e;
}

static int
set_meta(int fd, const struct meta *m, struct sb_error *err)
{
	const struct timespec times[2] = { m->mtime, m->mtime };

	if (fchown(fd, m->uid, m->gid) < 0 || fchmod(fd, m->mode & 07777) < 0 ||
		futimens(fd, times) < 0)
		return sb_fail_errno(err, "set attributes");
	return 0;
}

static int
read_file(struct sb_overlay_reader *r, int dir, const char *name, struct sb_error *err)
{
	sb_autoclose int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	sb_autofree char *data = NULL;
	uint64_t at = 0, end = 0;
	struct meta m;
	size_t len = 1;
	int e;

	if (fd < 0)
		return errno == EEXIST ? damaged(err) : sb_fail_errno(err, "make %s", name);
	e = take_meta(r, fd, &m, err);
	while (e == 0 && len > 0) {
		free(sb_steal(&data));
		e = take_varint(r, &at, err);
		if (e == 0)
			e = take_bytes(r, CHUNK_MAX, &data, &len, err);
		if (e == 0 && (at < end || at > INT64_MAX - CHUNK_MAX))
			return damaged(err);
		if (e == 0 && len > 0 && pwrite(fd, data, len, (off_t)at) != (ssize_t)len)
			return sb_fail_errno(err, "write %s", name);
		end = at + len;
	}
	if (e == 0 && ftruncate(fd, (off_t)at) < 0)
		return sb_fail_errno(err, "set the size of %s", name);
	return e < 0 ? e : set_meta(fd, &m, err);
}

static int
read_link(struct sb_overlay_reader *r, int dir, const char *name, struct sb_error *err)
{
	sb_autofree char *path = NULL;
	sb_autoclose int from = -1;
	const char *leaf;
	struct stat st;
	int e = take_text(r, PATH_BYTES, &path, err);

	if (e < 0)
		return e;
	from = sb_path_open_parent(r->root, path, &leaf, NULL);
	if (from < 0 || fstatat(from, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return damaged(err);
	if (linkat(from, leaf, dir, name, 0) < 0)
		return errno == EEXIST ? damaged(err) : sb_fail_errno(err, "link %s", name);
	return 0;
}

static int
read_special(struct sb_overlay_reader *r, char kind, int dir, const char *name,
	struct sb_error *err)
{
	sb_autofree char *target = NULL;
	struct meta m = { 0 };
	struct timespec times[2];
	int e = kind == 'W' ? 0 : take_meta(r, -1, &m, err);

	if (e == 0 && kind == 'L')
		e = take_text(r, 4096, &target, err);
	if (e < 0)
		return e;
	if (kind == 'W')
		e = !r->marks ? -1 : mknodat(dir, name, S_IFCHR, makedev(0, 0));
	else if (kind == 'L')
		e = *target ? symlinkat(target, dir, name) : -1;
	else
		e = S_ISFIFO(m.mode) || S_ISSOCK(m.mode) ?
			mknodat(dir, name, m.mode & (S_IFMT | 07777), 0) :
			-1;
	if (e < 0)
		return damaged(err);
	if (kind == 'W')
		return 0;
	times[0] = times[1] = m.mtime;
	if (fchownat(dir, name, m.uid, m.gid, AT_SYMLINK_NOFOLLOW) < 0 ||
		(kind == 'S' && fchmodat(dir, name, m.mode & 07777, 0) < 0) ||
		utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "set attributes of %s", name);
	return 0;
}

/* "/a/b" or "name", as overlayfs writes them. */
static bool
redirect_ok(const char *s)
{
	if (*s == '/')
		return s[1] && sb_path_check(s + 1, strlen(s + 1), NULL) == 0;
	return !strchr(s, '/') && sb_path_check(s, strlen(s), NULL) == 0;
}

static int
take_marks(struct sb_overlay_reader *r, int dir, struct sb_error *err)
{
	sb_autofree char *redirect = NULL;
	uint8_t opaque;
	int e = take(r, &opaque, 1, err);

	if (e == 0)
		e = take_text(r, 4096, &redirect, err);
	if (e < 0)
		return e;
	if (opaque > 1 || ((opaque || *redirect) && !r->marks) ||
		(*redirect && !redirect_ok(redirect)))
		return damaged(err);
	if ((opaque && fsetxattr(dir, SB_OVERLAY_OPAQUE, "y", 1, 0) < 0) ||
		(*redirect &&
			fsetxattr(dir, SB_OVERLAY_REDIRECT, redirect, strlen(redirect), 0) < 0))
		return sb_fail_errno(err, "mark a directory");
	return 0;
}

static int read_entries(struct sb_overlay_reader *r, int dir, char end, struct sb_error *err);

static int
read_dir(struct sb_overlay_reader *r, int up, const char *name, struct sb_error *err)
{
	sb_autoclose int dir = -1;
	struct meta m;
	int e;

	if (++r->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	if (mkdirat(up, name, 0700) < 0)
		return errno == EEXIST ? damaged(err) : sb_fail_errno(err, "make %s", name);
	dir = openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return sb_fail_errno(err, "open %s", name);
	e = take_meta(r, dir, &m, err);
	if (e == 0)
		e = take_marks(r, dir, err);
	if (e == 0)
		e = read_entries(r, dir, 'U', err);
	r->depth--;
	return e < 0 ? e : set_meta(dir, &m, err);
}

static int
read_entries(struct sb_overlay_reader *r, int dir, char end, struct sb_error *err)
{
	for (;;) {
		sb_autofree char *name = NULL;
		char kind;
		int e = take(r, &kind, 1, err);

		if (e < 0 || kind == end)
			return e;
		e = take_name(r, &name, err);
		if (e < 0)
			return e;
		switch (kind) {
		case 'D': e = read_dir(r, dir, name, err); break;
		case 'F': e = read_file(r, dir, name, err); break;
		case 'K': e = read_link(r, dir, name, err); break;
		case 'L':
		case 'S':
		case 'W': e = read_special(r, kind, dir, name, err); break;
		default: return damaged(err);
		}
		if (e < 0)
			return e;
	}
}

struct sb_overlay_reader *
sb_overlay_stream_open(int fd, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_overlay_reader *r = calloc(1, sizeof *r);

	if (r) {
		r->fd = fd;
		r->call = call;
		r->root = -1;
		r->buf = malloc(ROOM);
		r->sum = XXH3_createState();
	}
	if (!r || !r->buf || !r->sum) {
		sb_overlay_stream_close(r);
		(void)sb_fail(err, SB_E_NOMEM, "receive");
		return NULL;
	}
	return r;
}

void
sb_overlay_stream_close(struct sb_overlay_reader *r)
{
	if (!r)
		return;
	(void)XXH3_freeState(r->sum);
	free(r->buf);
	free(r);
}

/* The name of a snapshot; `empty`: there may be none. */
static int
take_snapshot_name(struct sb_overlay_reader *r, bool empty, char out[SB_HOST_NAME_MAX + 1],
	struct sb_error *err)
{
	sb_autofree char *name = NULL;
	int e = take_text(r, SB_HOST_NAME_MAX, &name, err);

	if (e == 0 && !(empty && !*name) && sb_idcheck_snapshot(name, NULL) < 0)
		return damaged(err);
	if (e == 0)
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", name);
	return e;
}

int
sb_overlay_stream_next(struct sb_overlay_reader *r, struct sb_overlay_part *out,
	struct sb_error *err)
{
	char magic[8];
	int e;

	if (r->at == r->have) {
		e = refill(r, err);
		if (e <= 0)
			return e;
	}
	(void)XXH3_64bits_reset(r->sum);
	e = take(r, magic, sizeof magic, err);
	if (e == 0 && memcmp(magic, "SBLAYER1", 8) != 0)
		return damaged(err);
	if (e == 0)
		e = take_snapshot_name(r, false, out->name, err);
	if (e == 0)
		e = take_snapshot_name(r, true, out->from, err);
	if (e == 0)
		e = take_signed(r, &out->time_ns, err);
	return e < 0 ? e : 1;
}

int
sb_overlay_stream_read(struct sb_overlay_reader *r, const struct sb_overlay_part *part, int to,
	struct sb_error *err)
{
	uint8_t said[8];
	uint64_t sum, want = 0;
	struct meta m;
	int e;

	r->marks = part->from[0] != '\0';
	r->root = to;
	r->depth = 0;
	e = take_meta(r, to, &m, err);
	if (e == 0)
		e = read_entries(r, to, 'E', err);
	if (e < 0)
		return e;
	sum = XXH3_64bits_digest(r->sum);
	e = take(r, said, sizeof said, err);
	for (int i = 7; i >= 0 && e == 0; i--)
		want = want << 8 | said[i];
	if (e == 0 && want != sum)
		return damaged(err);
	return e < 0 ? e : set_meta(to, &m, err);
}
