/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "flush-early.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ll
#define PAUSE_NS (NS / 2)

struct sb_flush_early {
	pthread_t thread;
	pthread_mutex_t mu;
	pthread_cond_t cond;
	bool stop;
	int fd;
};

static int64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* False when it is time to end. */
static bool
wait_ns(struct sb_flush_early *f, int64_t ns)
{
	int64_t end = now_ns() + ns;
	struct timespec t = { .tv_sec = end / NS, .tv_nsec = end % NS };
	bool go;

	(void)pthread_mutex_lock(&f->mu);
	while (!f->stop && pthread_cond_timedwait(&f->cond, &f->mu, &t) != ETIMEDOUT)
		;
	go = !f->stop;
	(void)pthread_mutex_unlock(&f->mu);
	return go;
}

static void *
run(void *arg)
{
	struct sb_flush_early *f = arg;
	int64_t pause = PAUSE_NS;

	/* A disk that is slow, or that others need, is left alone as long as it was used. */
	while (wait_ns(f, pause)) {
		int64_t begin = now_ns(), took;

		if (syncfs(f->fd) < 0)
			break;
		took = now_ns() - begin;
		pause = took > PAUSE_NS ? took : PAUSE_NS;
	}
	return NULL;
}

struct sb_flush_early *
sb_flush_early_start(int dirfd)
{
	struct sb_flush_early *f = calloc(1, sizeof *f);
	pthread_condattr_t a;

	if (!f)
		return NULL;
	f->fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)pthread_mutex_init(&f->mu, NULL);
	(void)pthread_condattr_init(&a);
	(void)pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&f->cond, &a);
	(void)pthread_condattr_destroy(&a);
	if (f->fd >= 0 && pthread_create(&f->thread, NULL, run, f) == 0)
		return f;
	if (f->fd >= 0)
		(void)close(f->fd);
	(void)pthread_cond_destroy(&f->cond);
	(void)pthread_mutex_destroy(&f->mu);
	free(f);
	return NULL;
}

void
sb_flush_early_stop(struct sb_flush_early *f)
{
	if (!f)
		return;
	(void)pthread_mutex_lock(&f->mu);
	f->stop = true;
	(void)pthread_cond_signal(&f->cond);
	(void)pthread_mutex_unlock(&f->mu);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->fd);
	(void)pthread_cond_destroy(&f->cond);
	(void)pthread_mutex_destroy(&f->mu);
	free(f);
}
