/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/limit.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *
watch(void *arg)
{
	struct sb_limit *l = arg;
	struct pollfd p[2] = { { .fd = l->stop_fd, .events = POLLIN },
		{ .fd = sb_cancel_fd(l->from), .events = POLLIN } };

	for (;;) {
		int n = poll(p, 2, sb_deadline_poll_ms(l->deadline));

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && p[0].revents)
			return NULL;
		if (n > 0 && p[1].revents)
			break;
		if (sb_deadline_passed(l->deadline)) {
			l->passed = true;
			break;
		}
	}
	sb_cancel_request(l->own);
	return NULL;
}

int
sb_limit_start(struct sb_limit *l, const struct sb_cancel *from, int64_t ms, struct sb_error *err)
{
	int r;

	memset(l, 0, sizeof *l);
	l->from = from;
	l->ms = ms;
	l->deadline = sb_deadline_in(ms);
	l->stop_fd = -1;
	if (ms <= 0)
		return 0;
	l->own = sb_cancel_new(err);
	if (!l->own)
		return err ? err->code : SB_E_NOMEM;
	l->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = l->stop_fd < 0 ? errno : pthread_create(&l->thread, NULL, watch, l);
	if (r == 0)
		return 0;
	errno = r;
	r = sb_fail_errno(err, "watch the time limit");
	if (l->stop_fd >= 0)
		(void)close(l->stop_fd);
	sb_cancel_free(l->own);
	l->own = NULL;
	return r;
}

const struct sb_cancel *
sb_limit_cancel(const struct sb_limit *l)
{
	return l->own ? l->own : l->from;
}

int
sb_limit_end(struct sb_limit *l, int code, struct sb_error *err)
{
	static const uint64_t one = 1;

	if (l->own) {
		(void)!write(l->stop_fd, &one, sizeof one);
		(void)pthread_join(l->thread, NULL);
		(void)close(l->stop_fd);
		sb_cancel_free(l->own);
		l->own = NULL;
	}
	/* A connection that was given up shows as closed, too. */
	if (code != SB_E_CANCELED && code != SB_E_CLOSED && code != SB_E_TIMEOUT)
		return code;
	if (l->passed)
		return sb_fail(err, SB_E_TIMEOUT,
			"not done within %lld s (--timeout); run it again to go on",
			(long long)(l->ms + 999) / 1000);
	if (sb_cancel_requested(l->from))
		return sb_fail(err, SB_E_CANCELED, "canceled");
	return code;
}
