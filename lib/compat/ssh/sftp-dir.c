/* SPDX-License-Identifier: MIT */
/* SFTP: directories, and what paths are. */
#include "config.h"

#include <compat/ssh/sftp-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100

void
sb_sftp_dir_open(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	struct sb_sftp_handle *h;
	char path[PATH_MAX];
	DIR *d;

	if (!sb_sftp_path(s, a, path)) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	d = opendir(path);
	if (!d) {
		sb_sftp_answer(out, a, errno);
		return;
	}
	h = sb_sftp_handle_new(s);
	if (!h) {
		(void)closedir(d);
		sb_sftp_answer(out, a, EMFILE);
		return;
	}
	h->dir = d;
	h->fd = dirfd(d);
	sb_sftp_answer_handle(s, out, a, h);
}

/* As ls -l has it, which some clients show. */
static void
long_name(const struct stat *st, const char *name, char *out, size_t size)
{
	static const char kinds[] = "?pc?d?b?-?l?s???";
	char when[32] = "", mode[11];
	struct tm tm;

	mode[0] = kinds[(st->st_mode >> 12) & 15];
	for (int i = 0; i < 9; i++)
		mode[1 + i] = st->st_mode & (0400u >> i) ? "rwx"[i % 3] : '-';
	mode[10] = '\0';
	if (gmtime_r(&st->st_mtime, &tm))
		(void)strftime(when, sizeof when, "%b %e %Y", &tm);
	(void)snprintf(out, size, "%s %4lu %-8u %-8u %8lld %s %s", mode,
		(unsigned long)st->st_nlink, st->st_uid, st->st_gid, (long long)st->st_size, when,
		name);
}

void
sb_sftp_dir_read(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	struct sb_sftp_handle *h = sb_sftp_handle_of(s, a);
	size_t at, count_at;
	uint32_t n = 0;

	if (!h || !h->dir) {
		sb_sftp_answer(out, a, EBADF);
		return;
	}
	at = sb_sftp_begin(out, a, SFTP_NAME);
	count_at = out->len;
	sb_sftp_put_u32(out, 0);
	while (n < BATCH) {
		const struct dirent *e = readdir(h->dir);
		char line[512];
		struct stat st;

		if (!e)
			break;
		if (fstatat(h->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		long_name(&st, e->d_name, line, sizeof line);
		sb_sftp_put_bytes(out, e->d_name, strlen(e->d_name));
		sb_sftp_put_bytes(out, line, strlen(line));
		sb_sftp_put_attrs(out, &st);
		n++;
	}
	if (n == 0) {
		out->len = at;
		sb_sftp_answer_end(out, a);
		return;
	}
	if (out->failed)
		return;
	out->data[count_at + 3] = (uint8_t)n;
	sb_sftp_end(out, at);
}

static void
answer_name(struct sb_buf *out, const struct sb_sftp_ask *a, const char *name)
{
	size_t at = sb_sftp_begin(out, a, SFTP_NAME);

	sb_sftp_put_u32(out, 1);
	sb_sftp_put_bytes(out, name, strlen(name));
	sb_sftp_put_bytes(out, name, strlen(name));
	sb_sftp_put_u32(out, 0);
	sb_sftp_end(out, at);
}

/* Takes "." and ".." out by the words alone: the path need not be there. `p` is absolute. */
static void
tidy(char *p)
{
	char *to = p, *from = p;

	while (*from) {
		size_t len;

		while (*from == '/')
			from++;
		len = strcspn(from, "/");
		if (len == 2 && from[0] == '.' && from[1] == '.') {
			while (to > p && *--to != '/')
				;
		} else if (len > 0 && !(len == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len;
	}
	if (to == p)
		*to++ = '/';
	*to = '\0';
}

void
sb_sftp_dir_realpath(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char path[PATH_MAX], real[PATH_MAX];

	if (!sb_sftp_path(s, a, path)) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	if (realpath(path, real)) {
		answer_name(out, a, real);
		return;
	}
	tidy(path);
	answer_name(out, a, path);
}

void
sb_sftp_dir_readlink(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n;

	if (!sb_sftp_path(s, a, path)) {
		sb_sftp_answer(out, a, EBADMSG);
		return;
	}
	n = readlink(path, target, sizeof target - 1);
	if (n < 0) {
		sb_sftp_answer(out, a, errno);
		return;
	}
	target[n] = '\0';
	answer_name(out, a, target);
}
