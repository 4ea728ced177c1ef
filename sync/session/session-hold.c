/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-hold.h>

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <sync/session/session-store.h>

void
sb_session_let_go(struct sb_session_held *h)
{
	sb_file_unlock(h->lockfd);
	if (h->dirfd >= 0)
		(void)close(h->dirfd);
	h->dirfd = h->lockfd = -1;
}

int
sb_session_hold(const char *state_dir, const char *name, bool create, struct sb_session_held *h,
	struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	int r;

	h->dirfd = h->lockfd = -1;
	if (!dir)
		return err ? err->code : SB_E_NOMEM;
	h->dirfd = sb_session_open_dir(dir, name, create, err);
	if (h->dirfd < 0)
		return h->dirfd;
	h->lockfd = openat(h->dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = h->lockfd < 0 ? sb_fail_errno(err, "lock of session '%s'", name) :
			    sb_file_lock(h->lockfd, 0, err);
	if (r == SB_E_LOCKED)
		sb_fail(err, r, "another process works on session '%s': wait for it or stop it",
			name);
	if (r == 0)
		r = sb_session_upgrade(h->dirfd, name, err);
	if (r < 0)
		sb_session_let_go(h);
	return r;
}

uint64_t
sb_session_stamp(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
