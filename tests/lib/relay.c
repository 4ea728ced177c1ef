/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536
#define HELD_MAX (32u << 20)

struct chunk {
	struct chunk *next;
	int64_t due;
	size_t len, head;
	unsigned char data[CHUNK];
};

struct way {
	int from, to;
	int64_t cut, stall, corrupt;
	int64_t cut_both; /* in both ways together */
	struct way *other;
	int64_t seen;
	size_t held;
	bool ended, shut;
	struct chunk *first, **last;
	_Atomic uint64_t *count;
};

struct conn {
	struct relay *r;
	int client, server;
	struct conn *next;
	pthread_t thread;
};

struct relay_priv {
	struct relay_opts o;
	int listen_fd;
	int stop_fd;
	pthread_t thread;
	pthread_mutex_t mu;
	struct conn *conns;
	unsigned seed;
	int cuts_left;
};

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* Takes in what has come. False when the connection is to be cut. */
static bool
take(struct way *w, int delay)
{
	struct chunk *c;
	ssize_t n;

	if (w->ended || w->held > HELD_MAX)
		return true;
	c = malloc(sizeof *c);
	if (!c)
		return false;
	n = recv(w->from, c->data, sizeof c->data, MSG_DONTWAIT);
	if (n <= 0) {
		free(c);
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			w->ended = true;
		return true;
	}
	if (w->corrupt >= w->seen && w->corrupt < w->seen + n)
		c->data[w->corrupt - w->seen] ^= 0x10;
	if (w->stall >= 0 && w->seen + n > w->stall) {
		n = w->stall > w->seen ? (ssize_t)(w->stall - w->seen) : 0;
		w->ended = true;
		w->shut = true;
	}
	if ((w->cut >= 0 && w->seen + n >= w->cut) ||
		(w->cut_both && w->seen + w->other->seen + n >= w->cut_both)) {
		free(c);
		return false;
	}
	w->seen += n;
	c->len = (size_t)n;
	c->head = 0;
	c->next = NULL;
	c->due = now_ms() + delay;
	*w->last = c;
	w->last = &c->next;
	w->held += c->len;
	return true;
}

/*
 * Sends what is due; returns milliseconds until more is, -1 for nothing, -2 when the receiver is
 * gone.
 */
static int
give(struct way *w, bool *out_blocked)
{
	*out_blocked = false;
	while (w->first) {
		struct chunk *c = w->first;
		int64_t wait = c->due - now_ms();
		ssize_t n;

		if (wait > 0)
			return (int)wait;
		n = c->len > c->head ? send(w->to, c->data + c->head, c->len - c->head,
					       MSG_DONTWAIT | MSG_NOSIGNAL) :
				       0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			*out_blocked = true;
			return -1;
		}
		if (n < 0)
			return -2;
		c->head += (size_t)n;
		w->held -= (size_t)n;
		atomic_fetch_add(w->count, (uint64_t)n);
		if (c->head == c->len) {
			w->first = c->next;
			if (!w->first)
				w->last = &w->first;
			free(c);
		}
	}
	if (w->ended && !w->shut) {
		w->shut = true;
		(void)shutdown(w->to, SHUT_WR);
	}
	return -1;
}

static void
reset(int fd)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
}

static int
sooner(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Until both ways are done, one is cut, or the relay stops. True: cut. */
static bool
shuttle(struct relay_priv *p, struct way *up, struct way *down)
{
	for (;;) {
		struct pollfd f[3] = { { .fd = up->from }, { .fd = down->from },
			{ .fd = p->stop_fd, .events = POLLIN } };
		bool up_blocked, down_blocked;
		int a = give(up, &up_blocked), b = give(down, &down_blocked);

		if (a == -2 || b == -2)
			return false;
		/* A stalled way never ends by itself. */
		if (up->shut && down->shut && up->stall < 0 && down->stall < 0)
			return false;
		if (!up->ended && up->held <= HELD_MAX)
			f[0].events |= POLLIN;
		if (down_blocked)
			f[0].events |= POLLOUT;
		if (!down->ended && down->held <= HELD_MAX)
			f[1].events |= POLLIN;
		if (up_blocked)
			f[1].events |= POLLOUT;
		for (int i = 0; i < 2; i++)
			if (!f[i].events)
				f[i].fd = -1;
		(void)poll(f, 3, sooner(a, b));
		if (f[2].revents)
			return false;
		if (!take(up, p->o.delay_ms) || !take(down, p->o.delay_ms))
			return true;
	}
}

static void
way_init(struct way *w, int from, int to, int64_t cut, int64_t stall, int64_t corrupt,
	_Atomic uint64_t *count)
{
	*w = (struct way){ .from = from, .to = to, .cut = cut, .stall = stall, .corrupt = corrupt };
	w->last = &w->first;
	w->count = count;
}

static void
way_free(struct way *w)
{
	while (w->first) {
		struct chunk *c = w->first;

		w->first = c->next;
		free(c);
	}
}

static void *
serve(void *arg)
{
	struct conn *c = arg;
	struct relay_priv *p = c->r->priv;
	struct way up, down;
	bool random_cut;

	way_init(&up, c->client, c->server, p->o.cut_up, p->o.stall_up, p->o.corrupt_up,
		&c->r->bytes_up);
	way_init(&down, c->server, c->client, p->o.cut_down, p->o.stall_down, p->o.corrupt_down,
		&c->r->bytes_down);
	(void)pthread_mutex_lock(&p->mu);
	random_cut = p->cuts_left > 0;
	if (random_cut) {
		p->seed = p->seed * 1103515245u + 12345u;
		up.cut_both = down.cut_both = (int64_t)(p->seed >> 1) % p->o.cut_max + 1;
		up.other = &down;
		down.other = &up;
	}
	(void)pthread_mutex_unlock(&p->mu);
	if (p->o.delay_ms > 0) {
		struct pollfd f = { .fd = p->stop_fd, .events = POLLIN };

		(void)poll(&f, 1, 2 * p->o.delay_ms);
	}
	if (shuttle(p, &up, &down)) {
		reset(c->client);
		reset(c->server);
		(void)pthread_mutex_lock(&p->mu);
		p->cuts_left -= random_cut;
		(void)pthread_mutex_unlock(&p->mu);
		atomic_fetch_add(&c->r->cuts_done, 1);
	}
	way_free(&up);
	way_free(&down);
	(void)close(c->client);
	(void)close(c->server);
	return NULL;
}

static int
dial(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void
accept_one(struct relay *r)
{
	struct relay_priv *p = r->priv;
	struct conn *c = calloc(1, sizeof *c);
	int one = 1;

	if (!c)
		return;
	c->r = r;
	c->client = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	c->server = c->client >= 0 ? dial(p->o.to_port) : -1;
	if (c->server < 0) {
		if (c->client >= 0)
			(void)close(c->client);
		free(c);
		return;
	}
	(void)setsockopt(c->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(c->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	atomic_fetch_add(&r->connections, 1);
	if (pthread_create(&c->thread, NULL, serve, c) != 0) {
		(void)close(c->client);
		(void)close(c->server);
		free(c);
		return;
	}
	c->next = p->conns;
	p->conns = c;
}

static void *
listen_loop(void *arg)
{
	struct relay *r = arg;
	struct relay_priv *p = r->priv;

	for (;;) {
		struct pollfd f[2] = { { .fd = p->listen_fd, .events = POLLIN },
			{ .fd = p->stop_fd, .events = POLLIN } };

		(void)poll(f, 2, -1);
		if (f[1].revents)
			return NULL;
		if (f[0].revents)
			accept_one(r);
	}
}

struct relay *
relay_start(const struct relay_opts *opts)
{
	struct relay *r = calloc(1, sizeof *r);
	struct relay_priv *p = calloc(1, sizeof *p);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;

	if (!r || !p) {
		free(r);
		free(p);
		return NULL;
	}
	r->priv = p;
	p->o = *opts;
	p->seed = opts->seed;
	p->cuts_left = opts->cuts;
	(void)pthread_mutex_init(&p->mu, NULL);
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(p->listen_fd, (struct sockaddr *)&a, sizeof a) < 0 ||
		listen(p->listen_fd, 16) < 0 ||
		getsockname(p->listen_fd, (struct sockaddr *)&a, &len) < 0 ||
		pthread_create(&p->thread, NULL, listen_loop, r) != 0) {
		(void)close(p->listen_fd);
		(void)close(p->stop_fd);
		free(p);
		free(r);
		return NULL;
	}
	r->port = ntohs(a.sin_port);
	return r;
}

void
relay_stop(struct relay *r)
{
	struct relay_priv *p;
	uint64_t one = 1;

	if (!r)
		return;
	p = r->priv;
	(void)!write(p->stop_fd, &one, sizeof one);
	(void)pthread_join(p->thread, NULL);
	while (p->conns) {
		struct conn *c = p->conns;

		p->conns = c->next;
		(void)pthread_join(c->thread, NULL);
		free(c);
	}
	(void)close(p->listen_fd);
	(void)close(p->stop_fd);
	(void)pthread_mutex_destroy(&p->mu);
	free(p);
	free(r);
}
