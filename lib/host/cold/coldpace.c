/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldpace.h>

#include <time.h>

#define SLICE_MS 20

void
sb_coldpace_init(struct sb_coldpace *p, uint64_t rate, unsigned slots)
{
	*p = (struct sb_coldpace){ .rate = rate, .slots = slots };
	(void)pthread_mutex_init(&p->mu, NULL);
}

void
sb_coldpace_free(struct sb_coldpace *p)
{
	(void)pthread_mutex_destroy(&p->mu);
}

static int64_t
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int
alive(const struct sb_host_call *call, struct sb_error *err)
{
	return call ? sb_check_alive(call->cancel, call->deadline, "transfer", err) : 0;
}

static void
doze(void)
{
	const struct timespec ts = { .tv_nsec = SLICE_MS * 1000000 };

	(void)nanosleep(&ts, NULL);
}

int
sb_coldpace_take(struct sb_coldpace *p, uint64_t bytes, const struct sb_host_call *call,
	struct sb_error *err)
{
	int64_t until;
	int r = alive(call, err);

	if (r < 0 || !p || p->rate == 0)
		return r;
	(void)pthread_mutex_lock(&p->mu);
	if (p->due_us < now_us())
		p->due_us = now_us();
	p->due_us += (int64_t)(bytes * 1000000 / p->rate);
	until = p->due_us;
	(void)pthread_mutex_unlock(&p->mu);
	while (r == 0 && now_us() < until) {
		doze();
		r = alive(call, err);
	}
	return r;
}

int
sb_coldpace_enter(struct sb_coldpace *p, const struct sb_host_call *call, struct sb_error *err)
{
	int r = 0;

	for (;;) {
		bool in;

		(void)pthread_mutex_lock(&p->mu);
		in = p->slots == 0 || p->running < p->slots;
		p->running += in;
		(void)pthread_mutex_unlock(&p->mu);
		if (in)
			return 0;
		r = alive(call, err);
		if (r < 0)
			return r;
		doze();
	}
}

void
sb_coldpace_leave(struct sb_coldpace *p)
{
	(void)pthread_mutex_lock(&p->mu);
	p->running--;
	(void)pthread_mutex_unlock(&p->mu);
}
