/* SPDX-License-Identifier: MIT */
/* Reads the logs of a process for a caller, and waits for more of them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/proc.h>
#include <host/proc.h>

/* A change that inotify did not tell (the file system may not) is seen after this. */
#define LOOK_MS 500

/* Bytes from `*offset` on; what was given back to the disk is jumped over. */
static int64_t
read_some(int fd, uint64_t *offset, void *data, size_t size, struct sb_error *err)
{
	off_t at = lseek(fd, (off_t)*offset, SEEK_DATA);
	ssize_t n;

	if (at < 0)
		return errno == ENXIO ? 0 : sb_fail_errno(err, "read the log");
	n = pread(fd, data, size, at);
	if (n < 0)
		return sb_fail_errno(err, "read the log");
	*offset = (uint64_t)at + (uint64_t)n;
	return n;
}

/* Until the file grew, the process ended or the call is over. */
static int
wait_more(const struct sb_host_proc *p, int notify, const struct sb_host_call *call,
	struct sb_error *err)
{
	const struct sb_cancel *cancel = call ? call->cancel : NULL;
	sb_deadline d = call ? call->deadline : SB_NEVER;
	struct pollfd fds[] = {
		{ .fd = notify, .events = POLLIN },
		{ .fd = p->pidfd, .events = POLLIN },
		{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
	};
	int ms = sb_deadline_poll_ms(d);
	char events[4096];
	int r = sb_check_alive(cancel, d, "log", err);

	if (r < 0)
		return r;
	(void)poll(fds, 3, ms < 0 || ms > LOOK_MS ? LOOK_MS : ms);
	if (fds[0].revents)
		(void)!read(notify, events, sizeof events);
	return 0;
}

static int64_t
follow_log(struct sb_hsess *s, const struct sb_host_proc *p, int which, uint64_t *offset,
	void *data, size_t size, bool follow, const struct sb_host_call *call, struct sb_error *err)
{
	sb_autoclose int fd = open(p->log[which], O_RDONLY | O_CLOEXEC);
	sb_autoclose int notify = follow ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open the log");
	if (notify >= 0)
		(void)inotify_add_watch(notify, p->log[which], IN_MODIFY);
	for (;;) {
		bool over;
		int64_t n;
		int r;

		(void)pthread_mutex_lock(&s->mu);
		over = !sb_host_proc_running(p) || s->gone;
		(void)pthread_mutex_unlock(&s->mu);
		n = read_some(fd, offset, data, size, err);
		if (n != 0 || over || !follow)
			return n;
		r = wait_more(p, notify, call, err);
		if (r < 0)
			return r;
	}
}

int64_t
sb_host_process_logs(struct sb_host *h, const char *id, const char *process, int which,
	uint64_t *offset, void *data, size_t size, bool follow, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	sb_auto(sb_host_proc) struct sb_host_proc *p = NULL;
	struct sb_error why = { 0 };
	int64_t r;

	if (which != 0 && which != 1)
		return sb_fail(err, SB_E_INVAL, "log %d: 0 is stdout, 1 is stderr", which);
	if (*offset > INT64_MAX)
		return sb_fail(err, SB_E_INVAL, "log offset %llu is too large",
			(unsigned long long)*offset);
	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	p = s ? sb_host_proc_find(s, process, &why) : NULL;
	r = p ? follow_log(s, p, which, offset, data, size, follow, call, &why) : why.code;
	sb_host_call_end(h);
	if (r < 0 && err)
		*err = why;
	return r;
}
