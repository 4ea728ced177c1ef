/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sb/cancel.h>

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct sb_cancel {
	atomic_bool requested;
	int fd;
};

struct sb_cancel *
sb_cancel_new(struct sb_error *err)
{
	struct sb_cancel *c = calloc(1, sizeof *c);

	if (!c) {
		(void)sb_fail(err, SB_E_NOMEM, "cancel token: out of memory");
		return NULL;
	}
	atomic_init(&c->requested, false);
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0) {
		(void)sb_fail_errno(err, "eventfd");
		free(c);
		return NULL;
	}
	return c;
}

void
sb_cancel_free(struct sb_cancel *c)
{
	if (!c)
		return;
	(void)close(c->fd);
	free(c);
}

void
sb_cancel_request(struct sb_cancel *c)
{
	static const uint64_t one = 1;
	int sys = errno;
	ssize_t n;

	/* The flag first: whoever wakes up from the descriptor sees it. */
	atomic_store(&c->requested, true);
	do
		n = write(c->fd, &one, sizeof one);
	while (n < 0 && errno == EINTR);
	errno = sys;
}

bool
sb_cancel_requested(const struct sb_cancel *c)
{
	return c && atomic_load(&c->requested);
}

int
sb_cancel_fd(const struct sb_cancel *c)
{
	return c ? c->fd : -1;
}

int64_t
sb_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

sb_deadline
sb_deadline_in(int64_t ms)
{
	sb_deadline d;

	if (ms <= 0 || __builtin_add_overflow(sb_now_ms(), ms, &d))
		return SB_NEVER;
	return d;
}

int
sb_deadline_poll_ms(sb_deadline d)
{
	int64_t now;

	if (d == SB_NEVER)
		return -1;
	now = sb_now_ms();
	if (d <= now)
		return 0;
	return d > now + INT_MAX ? INT_MAX : (int)(d - now);
}

bool
sb_deadline_passed(sb_deadline d)
{
	return d != SB_NEVER && sb_now_ms() >= d;
}

sb_deadline
sb_deadline_min(sb_deadline a, sb_deadline b)
{
	return a < b ? a : b;
}

int
sb_check_alive(const struct sb_cancel *c, sb_deadline d, const char *what, struct sb_error *err)
{
	if (sb_cancel_requested(c))
		return sb_fail(err, SB_E_CANCELED, "%s: canceled", what);
	if (sb_deadline_passed(d))
		return sb_fail(err, SB_E_TIMEOUT, "%s: deadline passed", what);
	return 0;
}
