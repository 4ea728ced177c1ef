/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/egress-pump.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/buf.h>

#define LINE_MAX_BYTES 8192
#define EVENTS 64

struct feed {
	struct feed *next;
	int fd;
	struct sb_buf line;
	char session[];
};

struct sb_egress_pump {
	sb_egress_pump_fn fn;
	void *arg;
	int ep, stop;
	pthread_t thread;
	pthread_mutex_t mu; /* guards the list; a feed is freed by the thread alone */
	struct feed *first;
};

static void
drop(struct sb_egress_pump *p, struct feed *f)
{
	struct feed **at = &p->first;

	(void)pthread_mutex_lock(&p->mu);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	(void)pthread_mutex_unlock(&p->mu);
	/* A child that is about to execute something may hold it open still: closing is not enough.
	 */
	(void)epoll_ctl(p->ep, EPOLL_CTL_DEL, f->fd, NULL);
	(void)close(f->fd);
	sb_buf_free(&f->line);
	free(f);
}

/* False at the end of it. */
static bool
read_some(struct sb_egress_pump *p, struct feed *f)
{
	char buf[4096], *nl;
	ssize_t n = recv(f->fd, buf, sizeof buf, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	sb_buf_add(&f->line, buf, (size_t)n);
	while (f->line.len > 0 && (nl = memchr(f->line.data, '\n', f->line.len))) {
		*nl = '\0';
		p->fn(f->session, (const char *)f->line.data, p->arg);
		sb_buf_consume(&f->line, (size_t)(nl - (char *)f->line.data) + 1);
	}
	return n > 0 && !f->line.failed;
}

static void *
run(void *arg)
{
	struct sb_egress_pump *p = arg;
	struct epoll_event ev[EVENTS];

	for (;;) {
		int n = epoll_wait(p->ep, ev, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return NULL;
		for (int i = 0; i < n; i++) {
			struct feed *f = ev[i].data.ptr;

			if (!f)
				return NULL;
			if (!read_some(p, f))
				drop(p, f);
		}
	}
}

static void
pump_free(struct sb_egress_pump *p)
{
	while (p->first)
		drop(p, p->first);
	if (p->ep >= 0)
		(void)close(p->ep);
	if (p->stop >= 0)
		(void)close(p->stop);
	(void)pthread_mutex_destroy(&p->mu);
	free(p);
}

struct sb_egress_pump *
sb_egress_pump_open(sb_egress_pump_fn fn, void *arg, struct sb_error *err)
{
	struct sb_egress_pump *p = calloc(1, sizeof *p);
	struct epoll_event stop = { .events = EPOLLIN };

	if (!p) {
		(void)sb_fail(err, SB_E_NOMEM, "events of the network");
		return NULL;
	}
	p->fn = fn;
	p->arg = arg;
	(void)pthread_mutex_init(&p->mu, NULL);
	p->ep = epoll_create1(EPOLL_CLOEXEC);
	p->stop = eventfd(0, EFD_CLOEXEC);
	if (p->ep < 0 || p->stop < 0 || epoll_ctl(p->ep, EPOLL_CTL_ADD, p->stop, &stop) < 0 ||
		pthread_create(&p->thread, NULL, run, p) != 0) {
		(void)sb_fail(err, SB_E_SYS, "events of the network: no thread");
		pump_free(p);
		return NULL;
	}
	return p;
}

void
sb_egress_pump_close(struct sb_egress_pump *p)
{
	const uint64_t one = 1;

	if (!p)
		return;
	while (write(p->stop, &one, sizeof one) < 0 && errno == EINTR)
		;
	(void)pthread_join(p->thread, NULL);
	pump_free(p);
}

int
sb_egress_pump_add(struct sb_egress_pump *p, const char *session, int fd, struct sb_error *err)
{
	struct feed *f = calloc(1, sizeof *f + strlen(session) + 1);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = f };

	if (!f) {
		(void)close(fd);
		return sb_fail(err, SB_E_NOMEM, "events of the network");
	}
	f->fd = fd;
	memcpy(f->session, session, strlen(session) + 1);
	sb_buf_init(&f->line, LINE_MAX_BYTES);
	(void)pthread_mutex_lock(&p->mu);
	f->next = p->first;
	p->first = f;
	(void)pthread_mutex_unlock(&p->mu);
	if (epoll_ctl(p->ep, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	(void)sb_fail_errno(err, "events of the network");
	drop(p, f);
	return SB_E_SYS;
}
