/* SPDX-License-Identifier: MIT */
/* SFTP: files and handles. */
#include "config.h"

#include <compat/ssh/sftp-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FLAG_READ = 1,
	FLAG_WRITE = 2,
	FLAG_APPEND = 4,
	FLAG_CREAT = 8,
	FLAG_TRUNC = 16,
	FLAG_EXCL = 32
};

struct sb_sftp_handle *
sb_sftp_handle_new(struct sb_sftp *s)
{
	for (size_t i = 0; i < SB_SFTP_HANDLES_MAX; i++) {
		struct sb_sftp_handle *h = &s->handles[i];

		if (h->used)
			continue;
		*h = (struct sb_sftp_handle){ .serial = h->serial + 1, .used = true, .fd = -1 };
		return h;
	}
	return NULL;
}

void
sb_sftp_handle_close(struct sb_sftp_handle *h)
{
	if (h->dir)
		(void)closedir(h->dir);
	else if (h->fd >= 0)
		(void)close(h->fd);
	h->dir = NULL;
	h->fd = -1;
	h->used = false;
}

struct sb_sftp_handle *
sb_sftp_handle_of(struct sb_sftp *s, struct sb_sftp_ask *a)
{
	size_t len;
	const uint8_t *p = sb_sftp_bytes(a, &len);
	struct sb_sftp_ask h = { .p = p, .end = p ? p + len : p };
	uint32_t at, serial;

	if (!p || len != 8)
		return NULL;
	at = sb_sftp_u32(&h);
	serial = sb_sftp_u32(&h);
	return at < SB_SFTP_HANDLES_MAX && s->handles[at].used && s->handles[at].serial == serial ?
		&s->handles[at] :
		NULL;
}

void
sb_sftp_answer_handle(struct sb_sftp *s, struct sb_buf *out, const struct sb_sftp_ask *a,
	const struct sb_sftp_handle *h)
{
	size_t at = sb_sftp_begin(out, a, SFTP_HANDLE);

	sb_sftp_put_u32(out, 8);
	sb_sftp_put_u32(out, (uint32_t)(h - s->handles));
	sb_sftp_put_u32(out, h->serial);
	sb_sftp_end(out, at);
}

static int
flags_of(uint32_t f)
{
	/* What is no file must not make anybody wait. */
	int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

	flags |= f & FLAG_WRITE ? (f & FLAG_READ ? O_RDWR : O_WRONLY) : O_RDONLY;
	flags |= f & FLAG_CREAT ? O_CREAT : 0;
	flags |= f & FLAG_TRUNC ? O_TRUNC : 0;
	flags |= f & FLAG_EXCL ? O_EXCL : 0;
	flags |= f & FLAG_APPEND ? O_APPEND : 0;
	return flags;
}

void
sb_sftp_file_open(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	struct sb_sftp_attrs v;
	struct sb_sftp_handle *h;
	char path[PATH_MAX];
	struct stat st;
	uint32_t flags;
	int fd;

	(void)sb_sftp_path(s, a, path);
	flags = sb_sftp_u32(a);
	sb_sftp_read_attrs(a, &v);
	if (a->bad) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	fd = open(path, flags_of(flags), v.mode_given ? v.mode & 0777 : 0666);
	if (fd < 0) {
		sb_sftp_answer(out, a, errno);
		return;
	}
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)close(fd);
		sb_sftp_answer(out, a, EISDIR);
		return;
	}
	h = sb_sftp_handle_new(s);
	if (!h) {
		(void)close(fd);
		sb_sftp_answer(out, a, EMFILE);
		return;
	}
	h->fd = fd;
	h->append = flags & FLAG_APPEND;
	sb_sftp_answer_handle(s, out, a, h);
}

void
sb_sftp_file_close(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);

	if (h)
		sb_sftp_handle_close(h);
	sb_sftp_answer(out, a, h ? 0 : EBADF);
}

void
sb_sftp_file_read(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	uint64_t offset = sb_sftp_u64(a);
	uint32_t len = sb_sftp_u32(a);
	size_t at, body;
	uint8_t *room;
	ssize_t n;

	if (a->bad || !h || h->dir || offset > INT64_MAX) {
		sb_sftp_answer(out, a, a->bad ? EBADMSG : EBADF);
		return;
	}
	at = sb_sftp_begin(out, a, SFTP_DATA);
	body = out->len;
	sb_sftp_put_u32(out, 0);
	len = len < SB_SFTP_DATA_MAX ? len : SB_SFTP_DATA_MAX;
	room = sb_buf_reserve(out, len);
	if (!room)
		return;
	n = pread(h->fd, room, len, (off_t)offset);
	/* A pipe or a device has no offsets. */
	if (n < 0 && errno == ESPIPE)
		n = read(h->fd, room, len);
	if (n <= 0 && len > 0) {
		int sys = errno;

		out->len = at;
		if (n == 0)
			sb_sftp_answer_end(out, a);
		else
			sb_sftp_answer(out, a, sys);
		return;
	}
	sb_buf_grow(out, (size_t)n);
	for (int i = 0; i < 4; i++)
		out->data[body + (size_t)i] = (uint8_t)((uint32_t)n >> (24 - 8 * i));
	sb_sftp_end(out, at);
}

void
sb_sftp_file_write(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	uint64_t offset = sb_sftp_u64(a);
	size_t len;
	const uint8_t *p = sb_sftp_bytes(a, &len);

	if (a->bad || !h || h->dir || offset > INT64_MAX - len) {
		sb_sftp_answer(out, a, a->bad ? EBADMSG : EBADF);
		return;
	}
	for (size_t at = 0; at < len;) {
		ssize_t n = h->append ? write(h->fd, p + at, len - at) :
					pwrite(h->fd, p + at, len - at, (off_t)(offset + at));

		if (n < 0 && errno == ESPIPE)
			n = write(h->fd, p + at, len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			sb_sftp_answer(out, a, n < 0 ? errno : EIO);
			return;
		}
		at += (size_t)n;
	}
	sb_sftp_answer(out, a, 0);
}

void
sb_sftp_file_fstat(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	struct stat st;
	size_t at;

	if (!h || fstat(h->fd, &st) < 0) {
		sb_sftp_answer(out, a, h ? errno : EBADF);
		return;
	}
	at = sb_sftp_begin(out, a, SFTP_ATTRS);
	sb_sftp_put_attrs(out, &st);
	sb_sftp_end(out, at);
}

int
sb_sftp_apply(const char *path, int fd, bool nofollow, const struct sb_sftp_attrs *v)
{
	int flag = nofollow ? AT_SYMLINK_NOFOLLOW : 0;
	const struct timespec t[2] = { { .tv_sec = v->atime }, { .tv_sec = v->mtime } };

	if (v->size_given) {
		if (v->size > INT64_MAX || nofollow)
			return EINVAL;
		if ((fd >= 0 ? ftruncate(fd, (off_t)v->size) : truncate(path, (off_t)v->size)) < 0)
			return errno;
	}
	if (v->mode_given &&
		(fd >= 0 ? fchmod(fd, v->mode) : fchmodat(AT_FDCWD, path, v->mode, flag)) < 0)
		return errno;
	if (v->times_given && (fd >= 0 ? futimens(fd, t) : utimensat(AT_FDCWD, path, t, flag)) < 0)
		return errno;
	if (v->owner_given &&
		(fd >= 0 ? fchown(fd, v->uid, v->gid) :
			   fchownat(AT_FDCWD, path, v->uid, v->gid, flag)) < 0)
		return errno;
	return 0;
}

void
sb_sftp_file_fsetstat(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	struct sb_sftp_attrs v;

	sb_sftp_read_attrs(a, &v);
	sb_sftp_answer(out, a,
		a->bad     ? EBADMSG :
			!h ? EBADF :
			     sb_sftp_apply(NULL, h->fd, false, &v));
}
