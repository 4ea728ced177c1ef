/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-net.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <base/cleanup.h>
#include <base/thread.h>

#define ADDRESSES_MAX 16
#define HEAD_START_MS 250

/*
 * A lookup in a thread of its own, because getaddrinfo cannot be interrupted. The waiting side may
 * leave; whoever is last frees it.
 */
struct lookup {
	pthread_mutex_t mu;
	int users;
	char *host;
	char port[12];
	int family;
	int done_fd;
	int result;
	int sys;
	struct addrinfo *list;
};

static void
lookup_leave(struct lookup *l)
{
	int left;

	(void)pthread_mutex_lock(&l->mu);
	left = --l->users;
	(void)pthread_mutex_unlock(&l->mu);
	if (left > 0)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	if (l->done_fd >= 0)
		(void)close(l->done_fd);
	(void)pthread_mutex_destroy(&l->mu);
	free(l->host);
	free(l);
}

static void *
lookup_run(void *arg)
{
	struct lookup *l = arg;
	struct addrinfo hints = { .ai_family = l->family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV };
	uint64_t one = 1;

	l->result = getaddrinfo(l->host, l->port, &hints, &l->list);
	l->sys = errno;
	(void)!write(l->done_fd, &one, sizeof one);
	lookup_leave(l);
	return NULL;
}

static struct lookup *
lookup_new(const char *host, int port, int family, struct sb_error *err)
{
	struct lookup *l = calloc(1, sizeof *l);

	if (!l || !(l->host = strdup(host))) {
		free(l);
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&l->mu, NULL);
	l->users = 1;
	l->family = family;
	(void)snprintf(l->port, sizeof l->port, "%d", port);
	l->done_fd = eventfd(0, EFD_CLOEXEC);
	if (l->done_fd < 0) {
		sb_fail_errno(err, "make an event descriptor");
		lookup_leave(l);
		return NULL;
	}
	return l;
}

static int
lookup_wait(struct lookup *l, const struct sb_cancel *cancel, sb_deadline d, struct sb_error *err)
{
	struct pollfd p[2] = { { .fd = l->done_fd, .events = POLLIN },
		{ .fd = sb_cancel_fd(cancel), .events = POLLIN } };
	uint64_t done;
	int r;

	for (;;) {
		r = poll(p, 2, sb_deadline_poll_ms(d));
		if (r > 0 && p[0].revents && read(l->done_fd, &done, sizeof done) > 0)
			break;
		r = sb_check_alive(cancel, d, "name lookup", err);
		if (r < 0)
			return r;
	}
	if (l->result == EAI_SYSTEM) {
		errno = l->sys;
		sb_fail_errno(err, "name lookup of %s", l->host);
		return sb_wrap(err, SB_E_CONNECT, "cannot connect");
	}
	if (l->result != 0)
		return sb_fail(err, SB_E_CONNECT,
			"the name '%s' cannot be resolved (%s); check its spelling, the network, "
			"or Host in ~/.ssh/config",
			l->host, gai_strerror(l->result));
	return 0;
}

static int
lookup_start(struct lookup *l, struct sb_error *err)
{
	struct addrinfo hints = { .ai_family = l->family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	uint64_t one = 1;
	int r;

	if (getaddrinfo(l->host, l->port, &hints, &l->list) == 0) {
		(void)!write(l->done_fd, &one, sizeof one);
		return 0;
	}
	l->users = 2;
	r = sb_thread_detached(0, lookup_run, l);
	if (r != 0) {
		l->users = 1;
		errno = r;
		return sb_fail_errno(err, "start a thread");
	}
	return 0;
}

/* The attempts under way. */
struct race {
	struct pollfd p[ADDRESSES_MAX + 1]; /* the last used slot is the cancel descriptor */
	size_t n;
	int last_sys;
};

static void
race_add(struct race *race, const struct addrinfo *ai)
{
	int one = 1, tos = IPTOS_THROUGHPUT;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		race->last_sys = errno;
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	if (ai->ai_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS) {
		race->last_sys = errno;
		(void)close(fd);
		return;
	}
	race->p[race->n++] = (struct pollfd){ .fd = fd, .events = POLLOUT };
}

/* The first attempt that succeeded (removed from the race), or -1; failed ones are dropped. */
static int
race_winner(struct race *race)
{
	for (size_t i = 0; i < race->n;) {
		int fd = race->p[i].fd;
		int sys = 0;
		socklen_t len = sizeof sys;

		if (!race->p[i].revents) {
			i++;
			continue;
		}
		race->p[i] = race->p[--race->n];
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &len) == 0 && sys == 0)
			return fd;
		race->last_sys = sys;
		(void)close(fd);
	}
	return -1;
}

static int
race_run(struct race *race, const struct addrinfo *ai, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	size_t started = 0;
	char why[128];

	for (;;) {
		sb_deadline until = d;
		int fd, r;

		if (race->n == 0 && (!ai || started == ADDRESSES_MAX))
			return sb_fail(err, SB_E_CONNECT, "cannot connect: %s; %s",
				strerror_r(race->last_sys, why, sizeof why),
				race->last_sys == ECONNREFUSED ?
					"is sshd running there, and is the port right (-p)?" :
					"check the name, the network and firewalls");
		if (ai && started < ADDRESSES_MAX) {
			race_add(race, ai);
			ai = ai->ai_next;
			started++;
			if (ai)
				until = sb_deadline_min(d, sb_deadline_in(HEAD_START_MS));
		}
		race->p[race->n] = (struct pollfd){ .fd = sb_cancel_fd(cancel), .events = POLLIN };
		if (race->n > 0 || ai)
			(void)poll(race->p, race->n + 1,
				race->n > 0 ? sb_deadline_poll_ms(until) : 0);
		fd = race_winner(race);
		if (fd >= 0)
			return fd;
		r = sb_check_alive(cancel, d, "connect", err);
		if (r == SB_E_TIMEOUT)
			return sb_fail(err, SB_E_TIMEOUT,
				"no answer to the connection attempt; check the address, the port "
				"(-p) and firewalls");
		if (r < 0)
			return r;
	}
}

int
sb_ssh_net_connect(const char *host, int port, int family, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	struct lookup *l = lookup_new(host, port, family, err);
	struct race race = { 0 };
	int r;

	if (!l)
		return SB_E_NOMEM;
	r = lookup_start(l, err);
	if (r >= 0)
		r = lookup_wait(l, cancel, d, err);
	if (r >= 0)
		r = race_run(&race, l->list, cancel, d, err);
	for (size_t i = 0; i < race.n; i++)
		(void)close(race.p[i].fd);
	lookup_leave(l);
	return r;
}
