/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/textfile.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <sb/log.h>

/* Which lines of a stream are wanted, and where it is. */
struct lines {
	uint64_t skip; /* lines still to pass over */
	uint64_t left; /* lines still to take */
};

/* Takes the wanted part of a block. True when no more is wanted. */
static bool
take(struct lines *l, const char *p, size_t len, struct sb_buf *out)
{
	const char *end = p + len, *from;

	while (l->skip && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		p = nl ? nl + 1 : end;
		l->skip -= nl ? 1 : 0;
	}
	from = p;
	while (l->left && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		p = nl ? nl + 1 : end;
		l->left -= nl ? 1 : 0;
	}
	sb_buf_add(out, from, (size_t)(p - from));
	return !l->left;
}

static int
copy_lines(int fd, const char *shown, struct lines *l, struct sb_buf *out, struct sb_error *err)
{
	char block[65536];
	size_t before = out->len;

	for (;;) {
		ssize_t n = read(fd, block, sizeof block);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read %s", shown);
		if (n == 0 || take(l, block, (size_t)n, out))
			break;
		if (out->len - before > SB_TEXTFILE_MAX)
			break;
	}
	if (out->len - before > SB_TEXTFILE_MAX || out->failed == SB_E_FULL)
		return sb_fail(err, SB_E_LIMIT, "%s: more than %u MiB; ask for some of its lines",
			shown, SB_TEXTFILE_MAX >> 20);
	return sb_buf_check(out, shown, err);
}

int
sb_textfile_read(const struct sb_roots *roots, const char *path, uint32_t line, uint32_t limit,
	struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	struct lines l = { .skip = line ? line - 1 : 0, .left = limit ? limit : UINT64_MAX };
	sb_autoclose int fd = -1;
	char shown[300];
	struct stat st;
	int r = sb_roots_resolve(roots, path, &at, err);

	if (r < 0)
		return r;
	(void)sb_escape(at.path, strlen(at.path), shown, sizeof shown);
	/* Not blocking: a fifo in the way must not hold us up. */
	fd = sb_path_open(at.fd, at.rel, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return sb_fail_errno(err, "%s", shown);
	if (!S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is %s, not a file", shown,
			S_ISDIR(st.st_mode) ? "a directory" : "something special");
	return copy_lines(fd, shown, &l, out, err);
}

/* Makes the directory that is to hold `rel`. */
static int
make_parent(const struct sb_roots_resolved *at, struct sb_error *err)
{
	const char *slash = strrchr(at->rel, '/');
	sb_autofree char *parent = NULL;

	if (!slash)
		return 0;
	parent = strndup(at->rel, (size_t)(slash - at->rel));
	if (!parent)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return sb_path_mkdirs(at->fd, parent, 0755, err);
}

int
sb_textfile_write(const struct sb_roots *roots, const char *path, const void *text, size_t len,
	struct sb_error *err)
{
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	struct stat st = { .st_mode = S_IFREG | 0600 };
	sb_autoclose int dir = -1;
	const char *leaf;
	bool is_new;
	int r = sb_roots_resolve(roots, path, &at, err);

	if (r < 0)
		return r;
	if (len > SB_TEXTFILE_MAX)
		return sb_fail(err, SB_E_LIMIT, "a text of %zu bytes is more than %u MiB", len,
			SB_TEXTFILE_MAX >> 20);
	r = make_parent(&at, err);
	if (r < 0)
		return r;
	dir = sb_path_open_parent(at.fd, at.rel, &leaf, err);
	if (dir < 0)
		return dir;
	is_new = fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0;
	if (is_new && errno != ENOENT)
		return sb_fail_errno(err, "write a file");
	if (!S_ISREG(st.st_mode)) {
		char shown[300];

		return sb_fail(err, S_ISLNK(st.st_mode) ? SB_E_ESCAPE : SB_E_INVAL,
			"%s is %s, not a file",
			sb_escape(at.path, strlen(at.path), shown, sizeof shown),
			S_ISDIR(st.st_mode)         ? "a directory" :
				S_ISLNK(st.st_mode) ? "a symlink now" :
						      "something special");
	}
	r = sb_file_replace(dir, leaf, text, len, st.st_mode & 07777, err);
	/* Root leaves the file with whom it belonged to. */
	if (r == 0 && !is_new && geteuid() == 0 && (st.st_uid != 0 || st.st_gid != getegid()) &&
		fchownat(dir, leaf, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "keep the owner of a file");
	return r;
}
