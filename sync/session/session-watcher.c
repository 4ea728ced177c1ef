/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-watcher.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <sync/session/session-store.h>

#define WATCHER_NAME "watcher"

/* The number is believed while its process holds the lock, so that none can be left behind. */
static int
open_record(const struct sb_session *s, const char *state_dir, const char *name, int flags,
	struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autoclose int fd = dir ? sb_session_open_dir(dir, s->name, false, err) : -1;
	int record;

	if (fd < 0)
		return err && err->code ? err->code : SB_E_SYS;
	record = openat(fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return record < 0 ? sb_fail_errno(err, "watcher of session '%s'", s->name) : record;
}

static int64_t
pid_in(int fd)
{
	char text[32] = "";
	int64_t pid = 0;

	if (pread(fd, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%" SCNd64, &pid) != 1)
		return 0;
	return pid;
}

int
sb_session_watcher_enter(const struct sb_session *s, const char *state_dir, struct sb_error *err)
{
	sb_autoclose int fd = open_record(s, state_dir, WATCHER_NAME, O_RDWR | O_CREAT, err);
	char text[32];
	int n;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno != EWOULDBLOCK ?
			sb_fail_errno(err, "watcher of session '%s'", s->name) :
			sb_fail(err, SB_E_LOCKED,
				"process %" PRId64 " watches session '%s' already; 'kill %" PRId64
				"' ends it",
				pid_in(fd), s->name, pid_in(fd));
	n = snprintf(text, sizeof text, "%lld\n", (long long)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return sb_fail_errno(err, "watcher of session '%s'", s->name);
	n = fd;
	fd = -1;
	return n;
}

int64_t
sb_session_watcher(const struct sb_session *s, const char *state_dir)
{
	sb_autoclose int fd = open_record(s, state_dir, WATCHER_NAME, O_RDONLY, NULL);

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return pid_in(fd);
}

int
sb_session_watch_log_fd(const struct sb_session *s, const char *state_dir, struct sb_error *err)
{
	return open_record(s, state_dir, "watch.log", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, err);
}
