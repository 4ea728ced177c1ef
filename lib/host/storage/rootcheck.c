/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/rootcheck.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>

int
sb_rootcheck(const char *dir, const struct sb_log *log, struct sb_error *err)
{
	sb_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "sessions root %s", dir);
	if ((st.st_mode & 0077) == 0)
		return 0;
	if (fchmod(fd, 0700) < 0)
		return sb_fail(err, SB_E_DENIED,
			"sessions root %s is open to other users (mode %o) and not ours to close: "
			"chmod 700 it",
			dir, (unsigned)st.st_mode & 07777);
	sb_log(log, SB_LOG_WARN, "storage",
		"sessions root %s was open to other users (mode %o): closed to 0700", dir,
		(unsigned)st.st_mode & 07777);
	return 0;
}
