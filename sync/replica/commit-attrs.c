/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/commit-attrs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/cleanup.h>

#define ACL "system.posix_acl_access"
#define NAMES_MAX 65536u /* what Linux allows a list of names, and a value */

/* 1 when an access control list was among them. */
static int
copy_attrs(int from, int to)
{
	sb_autofree char *names = NULL, *value = NULL;
	ssize_t len = flistxattr(from, NULL, 0);
	int acl = 0;

	if (len <= 0)
		return 0;
	names = malloc(NAMES_MAX);
	value = malloc(NAMES_MAX);
	len = names && value ? flistxattr(from, names, NAMES_MAX) : -1;
	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(names + i) + 1) {
		const char *name = names + i;
		ssize_t n;

		if (strncmp(name, "user.", 5) != 0 && strcmp(name, ACL) != 0)
			continue;
		n = fgetxattr(from, name, value, NAMES_MAX);
		if (n >= 0 && fsetxattr(to, name, value, (size_t)n, 0) == 0)
			acl |= strcmp(name, ACL) == 0;
	}
	return acl;
}

void
sb_commit_attrs_keep(int newfd, const char *staged, int fd, const char *leaf, uint16_t mode)
{
	sb_autoclose int from =
		openat(fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME);
	sb_autoclose int to = -1;
	struct stat old, now;
	bool again;

	if (from < 0 && errno == EPERM)
		from = openat(fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	to = from < 0 ? -1 : openat(newfd, staged, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (to < 0 || fstat(from, &old) < 0 || fstat(to, &now) < 0 || !S_ISREG(old.st_mode) ||
		!S_ISREG(now.st_mode))
		return;
	again = old.st_uid != now.st_uid || old.st_gid != now.st_gid;
	if (again && fchown(to, old.st_uid, old.st_gid) < 0)
		/* Only root gives files away; a group of ours may still be kept. */
		(void)!fchown(to, (uid_t)-1, old.st_gid);
	again |= copy_attrs(from, to) != 0;
	if (again)
		(void)fchmod(to, mode);
}
