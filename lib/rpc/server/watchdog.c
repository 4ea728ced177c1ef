/* SPDX-License-Identifier: MIT */
/*
 * One thread that sees to what MHD does not: a client that hangs up while its call runs, deadlines
 * of calls, and clients that are too slow with a header or a body. Time limits other than deadlines
 * are coarse.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rpc/server/server-priv.h>

#define TICK_MS 500
#define WAKE UINT64_MAX

struct slot {
	struct sb_rpc_conn *conn;
	uint32_t generation;
};

struct sb_rpc_watchdog {
	struct sb_rpc_server *server;
	int epoll;
	int wake;
	pthread_t thread;
	_Atomic int64_t next; /* when the thread will look at the clock again */
	pthread_mutex_t mu;
	struct slot *slots;
	size_t n, used;
	bool stopping;
};

static uint64_t
slot_tag(const struct sb_rpc_conn *c)
{
	return (uint64_t)c->generation << 32 | (uint32_t)c->slot;
}

/* With `mu` held. Neither pointer may be used after it is given up. */
static void
hang_up(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c)
{
	(void)pthread_mutex_lock(&c->mu);
	c->hung_up = true;
	if (c->call) {
		sb_rpc_metrics_add(w->server->metrics, SB_RPC_GAUGE_DISCONNECTS, 1);
		sb_rpc_call_abort(c->call, SB_E_CANCELED, true);
	}
	(void)pthread_mutex_unlock(&c->mu);
}

/* With `mu` held: what happens to a connection whose time is over. */
static void
expire(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c)
{
	atomic_store(&c->due, SB_NEVER);
	if (atomic_load(&c->phase) == SB_RPC_PHASE_CALL) {
		(void)pthread_mutex_lock(&c->mu);
		if (c->call)
			sb_rpc_call_abort(c->call, SB_E_TIMEOUT, false);
		(void)pthread_mutex_unlock(&c->mu);
		return;
	}
	if (atomic_load(&c->phase) != SB_RPC_PHASE_IDLE)
		sb_rpc_metrics_add(w->server->metrics, SB_RPC_GAUGE_TIMED_OUT, 1);
	/*
	 * MHD sees the end and closes it; it cannot have closed it yet, for then it would not be
	 * here.
	 */
	(void)shutdown(c->fd, SHUT_RDWR);
}

/* With `mu` held: ends what is due, gives the next moment to look. */
static int64_t
sweep(struct sb_rpc_watchdog *w)
{
	int64_t now = sb_now_ms();
	int64_t next = w->used > 0 ? now + TICK_MS : SB_NEVER;

	for (size_t i = 0; i < w->n; i++) {
		struct sb_rpc_conn *c = w->slots[i].conn;
		int64_t due;

		if (!c)
			continue;
		due = atomic_load(&c->due);
		if (due <= now)
			expire(w, c);
		else if (due < next)
			next = due;
	}
	return next;
}

static void
handle_event(struct sb_rpc_watchdog *w, uint64_t tag)
{
	size_t i = (uint32_t)tag;
	uint64_t count;

	if (tag == WAKE) {
		(void)!read(w->wake, &count, sizeof count);
		return;
	}
	if (i < w->n && w->slots[i].conn && w->slots[i].generation == tag >> 32)
		hang_up(w, w->slots[i].conn);
}

static void *
watch_thread(void *arg)
{
	struct sb_rpc_watchdog *w = arg;
	struct epoll_event ev[64];
	bool stop = false;

	while (!stop) {
		int n = epoll_wait(w->epoll, ev, 64, sb_deadline_poll_ms(atomic_load(&w->next)));

		(void)pthread_mutex_lock(&w->mu);
		for (int i = 0; i < n; i++)
			handle_event(w, ev[i].data.u64);
		/*
		 * While we look, every new deadline wakes us again: it may belong to one we have
		 * passed.
		 */
		atomic_store(&w->next, SB_NEVER);
		atomic_store(&w->next, sweep(w));
		stop = w->stopping;
		(void)pthread_mutex_unlock(&w->mu);
	}
	return NULL;
}

static void
wake(struct sb_rpc_watchdog *w)
{
	uint64_t one = 1;

	(void)!write(w->wake, &one, sizeof one);
}

static int
start_thread(struct sb_rpc_watchdog *w, struct sb_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = WAKE };
	sigset_t all, old;
	int r;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll < 0 || w->wake < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &ev) < 0)
		return sb_fail_errno(err, "epoll");
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, NULL, watch_thread, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0) {
		errno = r;
		return sb_fail_errno(err, "start a thread");
	}
	return 0;
}

static void
release(struct sb_rpc_watchdog *w)
{
	if (w->epoll >= 0)
		(void)close(w->epoll);
	if (w->wake >= 0)
		(void)close(w->wake);
	(void)pthread_mutex_destroy(&w->mu);
	free(w->slots);
	free(w);
}

struct sb_rpc_watchdog *
sb_rpc_watchdog_new(struct sb_rpc_server *s, unsigned max, struct sb_error *err)
{
	struct sb_rpc_watchdog *w = calloc(1, sizeof *w);

	if (!w) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	w->server = s;
	w->epoll = w->wake = -1;
	w->n = max;
	atomic_store(&w->next, SB_NEVER);
	(void)pthread_mutex_init(&w->mu, NULL);
	w->slots = calloc(max, sizeof *w->slots);
	if (!w->slots)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!w->slots || start_thread(w, err) < 0) {
		release(w);
		return NULL;
	}
	return w;
}

void
sb_rpc_watchdog_free(struct sb_rpc_watchdog *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->mu);
	w->stopping = true;
	(void)pthread_mutex_unlock(&w->mu);
	wake(w);
	(void)pthread_join(w->thread, NULL);
	release(w);
}

/*
 * With `mu` held: when few places are left, whoever waits longest without a request makes room, so
 * that one who has something to say is heard however many connections somebody else opens.
 */
static void
make_room(struct sb_rpc_watchdog *w, const struct sb_rpc_conn *fresh)
{
	const struct sb_rpc_listener *l = fresh->listener;
	unsigned max = w->server->o.max_connections;
	struct sb_rpc_conn *oldest = NULL;

	if (l->conns <= max - max / 8)
		return;
	for (size_t i = 0; i < w->n; i++) {
		struct sb_rpc_conn *c = w->slots[i].conn;
		int phase;

		if (!c || c == fresh || c->listener != l || atomic_load(&c->due) == SB_NEVER)
			continue;
		phase = atomic_load(&c->phase);
		if ((phase == SB_RPC_PHASE_IDLE || phase == SB_RPC_PHASE_HEADER) &&
			(!oldest || atomic_load(&c->since) < atomic_load(&oldest->since)))
			oldest = c;
	}
	if (!oldest)
		return;
	atomic_store(&oldest->due, SB_NEVER);
	sb_rpc_metrics_add(w->server->metrics, SB_RPC_GAUGE_TIMED_OUT, 1);
	(void)shutdown(oldest->fd, SHUT_RDWR);
}

struct sb_rpc_conn *
sb_rpc_watchdog_add(struct sb_rpc_watchdog *w, struct sb_rpc_listener *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLET };
	struct sb_rpc_conn *c = calloc(1, sizeof *c);
	size_t i = 0;

	if (!c)
		return NULL;
	c->listener = l;
	c->fd = fd;
	(void)pthread_mutex_init(&c->mu, NULL);
	atomic_store(&c->since, sb_now_ms());
	atomic_store(&c->phase, SB_RPC_PHASE_HEADER);
	atomic_store(&c->due, sb_deadline_in(w->server->o.header_ms));
	(void)pthread_mutex_lock(&w->mu);
	while (i < w->n && w->slots[i].conn)
		i++;
	if (i < w->n) {
		c->slot = i;
		c->generation = ++w->slots[i].generation;
		w->slots[i].conn = c;
		w->used++;
		l->conns++;
		make_room(w, c);
		ev.data.u64 = slot_tag(c);
		(void)epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev);
	}
	(void)pthread_mutex_unlock(&w->mu);
	if (i == w->n) {
		(void)pthread_mutex_destroy(&c->mu);
		free(c);
		return NULL;
	}
	if (atomic_load(&w->next) == SB_NEVER)
		wake(w);
	return c;
}

void
sb_rpc_watchdog_remove(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c)
{
	(void)pthread_mutex_lock(&w->mu);
	(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	w->slots[c->slot].conn = NULL;
	w->used--;
	c->listener->conns--;
	(void)pthread_mutex_unlock(&w->mu);
	(void)pthread_mutex_destroy(&c->mu);
	free(c->raw);
	free(c);
}

void
sb_rpc_watchdog_phase(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c, enum sb_rpc_phase p,
	sb_deadline due)
{
	atomic_store(&c->since, sb_now_ms());
	atomic_store(&c->phase, p);
	atomic_store(&c->due, due);
	if (p == SB_RPC_PHASE_CALL && due < atomic_load(&w->next))
		wake(w);
}

void
sb_rpc_watchdog_call(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c, struct sb_rpc_call *call)
{
	bool gone;

	(void)w;
	(void)pthread_mutex_lock(&c->mu);
	c->call = call;
	gone = c->hung_up;
	if (call && gone)
		sb_rpc_call_abort(call, SB_E_CANCELED, true);
	(void)pthread_mutex_unlock(&c->mu);
}

void
sb_rpc_watchdog_abort(struct sb_rpc_watchdog *w, bool endless_only, int why)
{
	(void)pthread_mutex_lock(&w->mu);
	for (size_t i = 0; i < w->n; i++) {
		struct sb_rpc_conn *c = w->slots[i].conn;

		if (!c)
			continue;
		(void)pthread_mutex_lock(&c->mu);
		if (c->call &&
			(!endless_only || (c->call->http && c->call->http->plan.endless) ||
				(c->call->method && (c->call->method->flags & SB_RPC_ENDLESS))))
			sb_rpc_call_abort(c->call, why, false);
		(void)pthread_mutex_unlock(&c->mu);
	}
	(void)pthread_mutex_unlock(&w->mu);
}
