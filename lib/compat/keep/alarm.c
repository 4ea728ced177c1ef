/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/keep/alarm.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct sb_alarm {
	int64_t (*round)(void *arg);
	void *arg;
	pthread_t thread;
	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	bool stop, woken;
};

static void *
keep(void *arg)
{
	struct sb_alarm *a = arg;

	(void)pthread_mutex_lock(&a->mu);
	while (!a->stop) {
		struct timespec ts;
		int64_t next;

		a->woken = false;
		(void)pthread_mutex_unlock(&a->mu);
		next = a->round(a->arg);
		(void)pthread_mutex_lock(&a->mu);
		ts = (struct timespec){ .tv_sec = next / 1000000000, .tv_nsec = next % 1000000000 };
		if (!a->stop && !a->woken)
			(void)pthread_cond_timedwait(&a->cv, &a->mu, &ts);
	}
	(void)pthread_mutex_unlock(&a->mu);
	return NULL;
}

struct sb_alarm *
sb_alarm_start(int64_t (*round)(void *arg), void *arg, struct sb_error *err)
{
	struct sb_alarm *a = calloc(1, sizeof *a);

	if (!a) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	a->round = round;
	a->arg = arg;
	(void)pthread_mutex_init(&a->mu, NULL);
	(void)pthread_cond_init(&a->cv, NULL);
	if (pthread_create(&a->thread, NULL, keep, a) != 0) {
		(void)pthread_mutex_destroy(&a->mu);
		(void)pthread_cond_destroy(&a->cv);
		free(a);
		(void)sb_fail(err, SB_E_SYS, "cannot start a thread");
		return NULL;
	}
	return a;
}

void
sb_alarm_wake(struct sb_alarm *a)
{
	if (!a)
		return;
	(void)pthread_mutex_lock(&a->mu);
	a->woken = true;
	(void)pthread_cond_broadcast(&a->cv);
	(void)pthread_mutex_unlock(&a->mu);
}

void
sb_alarm_stop(struct sb_alarm *a)
{
	if (!a)
		return;
	(void)pthread_mutex_lock(&a->mu);
	a->stop = true;
	(void)pthread_cond_broadcast(&a->cv);
	(void)pthread_mutex_unlock(&a->mu);
	(void)pthread_join(a->thread, NULL);
	(void)pthread_mutex_destroy(&a->mu);
	(void)pthread_cond_destroy(&a->cv);
	free(a);
}
