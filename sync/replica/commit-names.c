/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/commit-names.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>

/* chmod of a directory; what has become a symlink meanwhile is not followed. */
static void
chmod_dir(int fd, const char *name, mode_t mode)
{
	sb_autoclose int f = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char proc[32];

	if (f < 0)
		return;
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", f);
	(void)chmod(proc, mode);
}

/*
 * renameat2. Where the file system does not know RENAME_NOREPLACE, a link of the new name fails
 * when that exists; what cannot be linked is looked at first.
 */
static int
rename_by_flags(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct stat st;

	if (renameat2(fromfd, from, tofd, to, flags) == 0)
		return 0;
	if (flags != RENAME_NOREPLACE ||
		(errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
		return -1;
	if (fstatat(fromfd, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISREG(st.st_mode)) {
		if (linkat(fromfd, from, tofd, to, 0) == 0)
			return unlinkat(fromfd, from, 0);
		if (errno == EEXIST)
			return -1;
	}
	if (fstatat(tofd, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(fromfd, from, tofd, to);
}

int
sb_commit_names_rename(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct stat st;

	if (rename_by_flags(fromfd, from, tofd, to, flags) == 0)
		return 0;
	if (errno != EACCES)
		return -1;
	if (fstat(fromfd, &st) == 0)
		(void)fchmod(fromfd, (st.st_mode & 07777) | 0700);
	if (fstat(tofd, &st) == 0)
		(void)fchmod(tofd, (st.st_mode & 07777) | 0700);
	if (fstatat(fromfd, from, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		chmod_dir(fromfd, from, (st.st_mode & 07777) | 0700);
	errno = EACCES;
	return rename_by_flags(fromfd, from, tofd, to, flags);
}

int
sb_commit_names_unlink(int fd, const char *name, int flags)
{
	struct stat st;

	if (unlinkat(fd, name, flags) == 0)
		return 0;
	if (errno != EACCES || fstat(fd, &st) < 0 || fchmod(fd, (st.st_mode & 07777) | 0700) < 0)
		return -1;
	return unlinkat(fd, name, flags);
}
