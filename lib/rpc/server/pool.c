/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/pool.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <base/cond.h>
#include <base/thread.h>

#define STACK_SIZE (1024 * 1024)
#define IDLE_MS 5000

struct task {
	sb_rpc_task_fn fn;
	void *arg;
};

struct sb_rpc_pool {
	unsigned max;
	pthread_mutex_t mu;
	pthread_cond_t work;
	pthread_cond_t gone;
	struct task *ring; /* `max` entries */
	unsigned head, queued;
	unsigned threads, idle;
	unsigned busy; /* tasks that count: queued, or run and not settled */
	bool stopping;
};

/* The task of this thread, if it is one of a pool. */
struct current {
	struct sb_rpc_pool *pool;
	bool settled;
};
static _Thread_local struct current *current;

struct sb_rpc_pool *
sb_rpc_pool_new(unsigned max, struct sb_error *err)
{
	struct sb_rpc_pool *p = calloc(1, sizeof *p);

	if (p)
		p->ring = calloc(max, sizeof *p->ring);
	if (!p || !p->ring) {
		free(p);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	p->max = max;
	(void)pthread_mutex_init(&p->mu, NULL);
	sb_cond_init(&p->work);
	(void)pthread_cond_init(&p->gone, NULL);
	return p;
}

/* With `mu` held: waits for a task. False: nothing came for a while, or the pool ends. */
static bool
wait_for_work(struct sb_rpc_pool *p)
{
	sb_deadline until = sb_deadline_in(IDLE_MS);

	p->idle++;
	while (p->queued == 0 && !p->stopping && !sb_deadline_passed(until))
		sb_cond_wait_until(&p->work, &p->mu, until);
	p->idle--;
	return p->queued > 0;
}

static void *
worker(void *arg)
{
	struct sb_rpc_pool *p = arg;
	struct current me = { .pool = p };

	current = &me;
	(void)pthread_mutex_lock(&p->mu);
	while (p->queued > 0 || wait_for_work(p)) {
		struct task t = p->ring[p->head];

		p->head = (p->head + 1) % p->max;
		p->queued--;
		(void)pthread_mutex_unlock(&p->mu);
		me.settled = false;
		t.fn(t.arg);
		sb_rpc_pool_settle();
		(void)pthread_mutex_lock(&p->mu);
	}
	p->threads--;
	(void)pthread_cond_broadcast(&p->gone);
	(void)pthread_mutex_unlock(&p->mu);
	return NULL;
}

/* With `mu` held. */
static int
add_thread(struct sb_rpc_pool *p, struct sb_error *err)
{
	if (sb_thread_detached(STACK_SIZE, worker, p) != 0)
		return sb_fail(err, SB_E_LIMIT, "cannot start a thread");
	p->threads++;
	return 0;
}

int
sb_rpc_pool_run(struct sb_rpc_pool *p, sb_rpc_task_fn fn, void *arg, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&p->mu);
	/* Threads whose task has settled are about to be idle: there may be as many again. */
	if (p->busy >= p->max || (p->queued >= p->idle && p->threads >= 2 * p->max))
		r = sb_fail(err, SB_E_LIMIT, "%u calls are running already", p->max);
	else if (p->queued >= p->idle)
		r = add_thread(p, err);
	if (r == 0) {
		p->busy++;
		p->ring[(p->head + p->queued++) % p->max] = (struct task){ fn, arg };
		(void)pthread_cond_signal(&p->work);
	}
	(void)pthread_mutex_unlock(&p->mu);
	return r;
}

void
sb_rpc_pool_settle(void)
{
	if (!current || current->settled)
		return;
	current->settled = true;
	(void)pthread_mutex_lock(&current->pool->mu);
	current->pool->busy--;
	(void)pthread_mutex_unlock(&current->pool->mu);
}

void
sb_rpc_pool_free(struct sb_rpc_pool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->mu);
	p->stopping = true;
	(void)pthread_cond_broadcast(&p->work);
	while (p->threads > 0)
		(void)pthread_cond_wait(&p->gone, &p->mu);
	(void)pthread_mutex_unlock(&p->mu);
	(void)pthread_cond_destroy(&p->work);
	(void)pthread_cond_destroy(&p->gone);
	(void)pthread_mutex_destroy(&p->mu);
	free(p->ring);
	free(p);
}
