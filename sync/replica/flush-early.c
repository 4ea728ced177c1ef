/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/flush-early.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sb/cancel.h>

#define PAUSE_MS 500

struct sb_flush_early {
	pthread_t thread;
	struct sb_cancel *stop;
	int fd;
};

static void *
run(void *arg)
{
	struct sb_flush_early *f = arg;
	struct pollfd p = { .fd = sb_cancel_fd(f->stop), .events = POLLIN };
	int64_t took = 0;

	/* A disk that is slow, or that others need, is left alone as long as it was used. */
	while (!sb_cancel_requested(f->stop)) {
		sb_deadline next = sb_deadline_in(took > PAUSE_MS ? took : PAUSE_MS);
		int64_t begin;

		while (!sb_cancel_requested(f->stop) && !sb_deadline_passed(next))
			(void)poll(&p, 1, sb_deadline_poll_ms(next));
		begin = sb_now_ms();
		if (sb_cancel_requested(f->stop) || syncfs(f->fd) < 0)
			break;
		took = sb_now_ms() - begin;
	}
	return NULL;
}

static void
release(struct sb_flush_early *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	sb_cancel_free(f->stop);
	free(f);
}

struct sb_flush_early *
sb_flush_early_start(int dirfd)
{
	struct sb_flush_early *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->stop = sb_cancel_new(NULL);
	f->fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->stop && f->fd >= 0 && pthread_create(&f->thread, NULL, run, f) == 0)
		return f;
	release(f);
	return NULL;
}

void
sb_flush_early_stop(struct sb_flush_early *f)
{
	if (!f)
		return;
	sb_cancel_request(f->stop);
	(void)pthread_join(f->thread, NULL);
	release(f);
}
