/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/claim.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <sb/cancel.h>

/* A child of a killed host may hold the lock until it comes to its exec. */
#define WAIT_MS 2000

int
sb_claim_lock(const char *root, struct sb_error *err)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	sb_autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_deadline d = sb_deadline_in(WAIT_MS);

	if (fd < 0)
		return sb_fail_errno(err, "open the sessions' directory %s", root);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return sb_fail_errno(err, "lock %s", root);
		if (sb_deadline_passed(d))
			return sb_fail(err, SB_E_LOCKED,
				"another host has the sessions in %s: stop it first, or give this "
				"one a place of its own",
				root);
		(void)nanosleep(&pause, NULL);
	}
	return sb_steal_fd(&fd);
}
