/* SPDX-License-Identifier: MIT */
/* Cancel tokens: one thread asks, many hear of it (declared in sb/cancel.h). */
#include "config.h"

#include <sb/cancel.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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
