/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/owndir.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>

int
sb_owndir_check(int fd, const char *path, struct sb_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sb_fail_errno(err, "look at %s", path);
	if (st.st_uid != geteuid())
		return sb_fail(err, SB_E_DENIED,
			"%.200s belongs to user %u, and what it says is not believed: make it "
			"yours (chown -R %u %.200s) or set SBSYNC_STATE_DIR to a directory of your "
			"own",
			path, (unsigned)st.st_uid, (unsigned)geteuid(), path);
	if (st.st_mode & 022)
		return sb_fail(err, SB_E_DENIED,
			"%.200s can be written by others, and what it says is not believed: look "
			"at "
			"what is in it, then chmod 700 %.200s",
			path, path);
	return 0;
}

static int
not_opened(const char *path, struct sb_error *err)
{
	if (errno == ENOENT)
		return sb_fail(err, SB_E_NOTFOUND, "%s is not there", path);
	if (errno == ELOOP || errno == ENOTDIR) {
		struct stat st;

		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			return sb_fail(err, SB_E_DENIED,
				"%.200s is a symbolic link, which others may turn elsewhere: "
				"remove "
				"it (rm %.200s) or set SBSYNC_STATE_DIR to where it leads",
				path, path);
		errno = ENOTDIR;
	}
	return sb_fail_errno(err, "open %s", path);
}

/* Our own directories within the first one are closed to others; the first may be anybody's. */
static int
enter(int at, const char *name, const char *path, bool inner, struct sb_error *err)
{
	sb_autoclose int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0)
		return not_opened(path, err);
	r = sb_owndir_check(fd, path, err);
	if (r < 0)
		return r;
	if (inner && fstat(fd, &st) == 0 && (st.st_mode & 077))
		(void)fchmod(fd, 0700);
	return sb_steal_fd(&fd);
}

int
sb_owndir_open(const char *top, const char *rel, bool create, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf path = { 0 };
	size_t len = strlen(top);
	int fd, r = 0;

	/* A slash behind a link would follow it. */
	while (len > 1 && top[len - 1] == '/')
		len--;
	sb_buf_init(&path, 1u << 20);
	sb_buf_add(&path, top, len);
	r = sb_buf_check(&path, "path", err);
	if (r == 0 && create)
		r = sb_file_mkdirs((char *)path.data, 0700, err);
	if (r < 0)
		return r;
	fd = enter(AT_FDCWD, (char *)path.data, (char *)path.data, false, err);
	while (fd >= 0 && *rel) {
		sb_autoclose int at = fd;
		sb_autofree char *name = strndup(rel, strcspn(rel, "/"));

		sb_buf_addf(&path, "/%s", name ? name : "");
		r = name ? sb_buf_check(&path, "path", err) :
			   sb_fail(err, SB_E_NOMEM, "state directory: out of memory");
		if (r == 0 && create && mkdirat(at, name, 0700) < 0 && errno != EEXIST)
			r = sb_fail_errno(err, "make %s", (char *)path.data);
		fd = r < 0 ? r : enter(at, name, (char *)path.data, true, err);
		rel += strcspn(rel, "/");
		rel += *rel == '/';
	}
	return fd;
}
