/* SPDX-License-Identifier: MIT */
/* SFTP: what is done to paths, and the extensions of OpenSSH. */
#include "config.h"

#include <compat/ssh/sftp-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void
stat_path(struct sb_sftp *s, struct sb_sftp_ask *a, int flags, struct sb_buf *out)
{
	char path[PATH_MAX];
	struct stat st;
	size_t at;

	if (!sb_sftp_path(s, a, path)) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	if (fstatat(AT_FDCWD, path, &st, flags) < 0) {
		sb_sftp_answer(out, a, errno);
		return;
	}
	at = sb_sftp_begin(out, a, SFTP_ATTRS);
	sb_sftp_put_attrs(out, &st);
	sb_sftp_end(out, at);
}

void
sb_sftp_more_stat(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	stat_path(s, a, 0, out);
}

void
sb_sftp_more_lstat(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	stat_path(s, a, AT_SYMLINK_NOFOLLOW, out);
}

static void
set_path(struct sb_sftp *s, struct sb_sftp_ask *a, bool nofollow, struct sb_buf *out)
{
	struct sb_sftp_attrs v;
	char path[PATH_MAX];

	(void)sb_sftp_path(s, a, path);
	sb_sftp_read_attrs(a, &v);
	sb_sftp_answer(out, a, a->bad ? EBADMSG : sb_sftp_apply(path, -1, nofollow, &v));
}

void
sb_sftp_more_setstat(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	set_path(s, a, false, out);
}

void
sb_sftp_more_remove(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char path[PATH_MAX];

	sb_sftp_answer(out, a, !sb_sftp_path(s, a, path) ? EBADMSG : unlink(path) < 0 ? errno : 0);
}

void
sb_sftp_more_mkdir(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	struct sb_sftp_attrs v;
	char path[PATH_MAX];

	(void)sb_sftp_path(s, a, path);
	sb_sftp_read_attrs(a, &v);
	sb_sftp_answer(out, a,
		a->bad                                                        ? EBADMSG :
			mkdir(path, v.mode_given ? v.mode & 01777 : 0777) < 0 ? errno :
										0);
}

void
sb_sftp_more_rmdir(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char path[PATH_MAX];

	sb_sftp_answer(out, a, !sb_sftp_path(s, a, path) ? EBADMSG : rmdir(path) < 0 ? errno : 0);
}

/* As version 3 wants it: what is there is not replaced. */
static int
move(const char *from, const char *to)
{
	struct stat st;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* A file system that does not know how: nobody guards the moment in between. */
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	if (lstat(to, &st) == 0)
		return EEXIST;
	return rename(from, to) < 0 ? errno : 0;
}

void
sb_sftp_more_rename(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char from[PATH_MAX], to[PATH_MAX];
	bool ok = sb_sftp_path(s, a, from) && sb_sftp_path(s, a, to);

	sb_sftp_answer(out, a, ok ? move(from, to) : EBADMSG);
}

/* OpenSSH, and so everybody, has the target first. It is a text, not a path. */
void
sb_sftp_more_symlink(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char target[PATH_MAX], path[PATH_MAX];
	size_t len;
	const uint8_t *p = sb_sftp_bytes(a, &len);

	if (!p || len >= sizeof target || memchr(p, '\0', len) || !sb_sftp_path(s, a, path)) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	memcpy(target, p, len);
	target[len] = '\0';
	sb_sftp_answer(out, a, symlink(target, path) < 0 ? errno : 0);
}

static void
posix_rename(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char from[PATH_MAX], to[PATH_MAX];
	bool ok = sb_sftp_path(s, a, from) && sb_sftp_path(s, a, to);

	sb_sftp_answer(out, a, !ok ? EBADMSG : rename(from, to) < 0 ? errno : 0);
}

static void
hardlink(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char from[PATH_MAX], to[PATH_MAX];
	bool ok = sb_sftp_path(s, a, from) && sb_sftp_path(s, a, to);

	sb_sftp_answer(out, a, !ok ? EBADMSG : link(from, to) < 0 ? errno : 0);
}

static void
sync_file(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);

	sb_sftp_answer(out, a, !h ? EBADF : fsync(h->fd) < 0 ? errno : 0);
}

static void
set_link(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	set_path(s, a, true, out);
}

static void
put_space(struct sb_sftp_ask *a, const struct statvfs *v, struct sb_buf *out)
{
	const uint64_t numbers[] = { v->f_bsize, v->f_frsize, v->f_blocks, v->f_bfree, v->f_bavail,
		v->f_files, v->f_ffree, v->f_favail, v->f_fsid,
		(v->f_flag & ST_RDONLY ? 1 : 0) | (v->f_flag & ST_NOSUID ? 2 : 0), v->f_namemax };
	size_t at = sb_sftp_begin(out, a, SFTP_EXTENDED_REPLY);

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sb_sftp_put_u64(out, numbers[i]);
	sb_sftp_end(out, at);
}

static void
space(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char path[PATH_MAX];
	struct statvfs v;

	if (!sb_sftp_path(s, a, path))
		sb_sftp_answer(out, a, EBADMSG);
	else if (statvfs(path, &v) < 0)
		sb_sftp_answer(out, a, errno);
	else
		put_space(a, &v, out);
}

static void
space_of(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	const struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	struct statvfs v;

	if (!h || fstatvfs(h->fd, &v) < 0)
		sb_sftp_answer(out, a, h ? errno : EBADF);
	else
		put_space(a, &v, out);
}

static void
limits(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	size_t at = sb_sftp_begin(out, a, SFTP_EXTENDED_REPLY);

	(void)s;
	sb_sftp_put_u64(out, SB_SFTP_PACKET_MAX);
	sb_sftp_put_u64(out, SB_SFTP_DATA_MAX);
	sb_sftp_put_u64(out, SB_SFTP_DATA_MAX);
	sb_sftp_put_u64(out, SB_SFTP_HANDLES_MAX);
	sb_sftp_end(out, at);
}

void
sb_sftp_more_extended(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	static const struct {
		const char *name;
		sb_sftp_fn *run;
	} known[] = { { "posix-rename@openssh.com", posix_rename },
		{ "hardlink@openssh.com", hardlink }, { "fsync@openssh.com", sync_file },
		{ "lsetstat@openssh.com", set_link }, { "statvfs@openssh.com", space },
		{ "fstatvfs@openssh.com", space_of }, { "limits@openssh.com", limits } };
	size_t len;
	const uint8_t *p = sb_sftp_bytes(a, &len);

	for (size_t i = 0; p && i < sizeof known / sizeof known[0]; i++)
		if (strlen(known[i].name) == len && memcmp(p, known[i].name, len) == 0) {
			known[i].run(s, a, out);
			return;
		}
	sb_sftp_answer(out, a, p ? ENOSYS : EBADMSG);
}
