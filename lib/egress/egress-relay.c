/* SPDX-License-Identifier: MIT */
/* The bytes of a connection, both ways: what one side has sent waits until the other takes it. */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FINISHED_MS 10000 /* for the client of a request that is answered */

void
sb_egress_relay_drop(struct sb_egress_conn *c, struct sb_egress_pending *p)
{
	c->e->buffered -= p->cap;
	free(p->p);
	*p = (struct sb_egress_pending){ 0 };
}

int
sb_egress_relay_add(struct sb_egress_conn *c, struct sb_egress_pending *p, const void *data,
	size_t len)
{
	size_t have = p->len - p->at;
	uint8_t *n = malloc(have + len);

	if (!n)
		return -1;
	if (have > 0)
		memcpy(n, p->p + p->at, have);
	memcpy(n + have, data, len);
	sb_egress_relay_drop(c, p);
	*p = (struct sb_egress_pending){ .p = n, .len = have + len, .cap = have + len };
	c->e->buffered += p->cap;
	return 0;
}

int
sb_egress_relay_flush(struct sb_egress_conn *c, struct sb_egress_pending *p, int fd)
{
	while (p->at < p->len) {
		ssize_t n = send(fd, p->p + p->at, p->len - p->at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		p->at += (size_t)n;
	}
	sb_egress_relay_drop(c, p);
	return 0;
}

/* Hands an end on, once everything before it is through. */
static void
hand_on_ends(struct sb_egress_conn *c)
{
	bool judged = c->look != SB_EGRESS_LOOK && c->look != SB_EGRESS_HELD;

	if (c->step == SB_EGRESS_RELAYS && c->client_ended && judged && c->up.len == 0 &&
		!c->server_shut) {
		(void)shutdown(c->server.fd, SHUT_WR);
		c->server_shut = true;
	}
	if (c->server_ended && c->down.len == 0 && !c->client_shut) {
		(void)shutdown(c->client.fd, SHUT_WR);
		c->client_shut = true;
		if (c->look == SB_EGRESS_STOP && c->step == SB_EGRESS_RELAYS)
			sb_egress_conn_deadline(c, FINISHED_MS);
	}
}

static bool
wants_client(const struct sb_egress_conn *c)
{
	if (c->client_ended)
		return false;
	if (c->look == SB_EGRESS_LOOK || c->look == SB_EGRESS_HELD)
		return true;
	return c->up.len == 0 && (c->step == SB_EGRESS_RELAYS || c->step == SB_EGRESS_LAST_WORDS);
}

/* A side of which nothing is wanted is left out: its hang-up would be reported for ever. */
static void
want(struct sb_egress_conn *c, struct sb_source *s, uint32_t mask)
{
	if (mask == 0)
		sb_source_leave(s, c->e->ep);
	else if (sb_source_want(s, c->e->ep, mask) < 0)
		sb_egress_conn_close(c, true);
}

void
sb_egress_relay_update(struct sb_egress_conn *c)
{
	uint32_t mask;

	if (c->step == SB_EGRESS_CLOSED)
		return;
	if ((c->down.len > 0 && sb_egress_relay_flush(c, &c->down, c->client.fd) < 0) ||
		(c->up.len > 0 && c->step == SB_EGRESS_RELAYS &&
			sb_egress_relay_flush(c, &c->up, c->server.fd) < 0)) {
		sb_egress_conn_close(c, true);
		return;
	}
	hand_on_ends(c);
	if (c->client_ended && c->client_shut && (c->server_shut || c->step != SB_EGRESS_RELAYS)) {
		sb_egress_conn_close(c, false);
		return;
	}
	mask = (wants_client(c) ? EPOLLIN : 0) | (c->down.len > 0 ? EPOLLOUT : 0);
	want(c, &c->client, mask);
	if (c->step != SB_EGRESS_RELAYS)
		return;
	mask = (!c->server_ended && c->down.len == 0 ? EPOLLIN : 0) |
		(c->up.len > 0 ? EPOLLOUT : 0);
	want(c, &c->server, mask);
}

/* The time that a connection may be silent begins anew. */
static void
touch(struct sb_egress_conn *c)
{
	const struct sb_egress_opts *o = &c->e->o;

	if (c->step != SB_EGRESS_RELAYS)
		return;
	if (c->look == SB_EGRESS_LOOK && c->first.len > 0)
		return;
	if (c->look == SB_EGRESS_STOP && c->server_ended)
		return;
	sb_egress_conn_deadline(c, c->client_ended || c->server_ended ? o->half_ms : o->idle_ms);
}

static ssize_t
take(struct sb_egress_conn *c, int fd)
{
	struct sb_egress *e = c->e;
	size_t size = e->buffered < e->o.max_buffered ? sizeof e->chunk : SB_EGRESS_CHUNK_TIGHT;
	ssize_t n;

	do
		n = recv(fd, e->chunk, size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n;
}

static void
got_bytes(struct sb_egress_conn *c, size_t n)
{
	bool first = c->look == SB_EGRESS_LOOK && c->first.len == 0;

	sb_egress_look_feed(c, c->e->chunk, n);
	if (c->step == SB_EGRESS_CLOSED || c->look != SB_EGRESS_LOOK)
		return;
	/* From the first byte on, the rest of them has its time. */
	if (first && c->step == SB_EGRESS_RELAYS)
		sb_egress_conn_deadline(c, c->e->o.hello_ms);
	if (c->way == SB_EGRESS_DNS)
		sb_egress_dns_tcp(c);
	else
		sb_egress_look(c);
}

void
sb_egress_relay_client(struct sb_source *s, uint32_t events)
{
	struct sb_egress_conn *c = (struct sb_egress_conn *)s;

	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && (s->mask & EPOLLIN)) {
		ssize_t n = take(c, s->fd);

		if (n < 0 && errno != EAGAIN) {
			sb_egress_conn_close(c, true);
			return;
		}
		if (n == 0) {
			c->client_ended = true;
			if (c->look == SB_EGRESS_LOOK && c->way == SB_EGRESS_DNS)
				sb_egress_conn_close(c, false);
			else if (c->look == SB_EGRESS_LOOK)
				sb_egress_look(c);
		} else if (n > 0) {
			got_bytes(c, (size_t)n);
		}
		if (c->step != SB_EGRESS_CLOSED)
			touch(c);
	}
	sb_egress_relay_update(c);
}

void
sb_egress_relay_server(struct sb_source *s, uint32_t events)
{
	struct sb_egress_conn *c = (struct sb_egress_conn *)(void *)((char *)s -
		offsetof(struct sb_egress_conn, server));
	ssize_t n;

	if (c->step == SB_EGRESS_CONNECTS) {
		sb_egress_conn_connected(c);
		return;
	}
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && (s->mask & EPOLLIN)) {
		n = take(c, s->fd);
		if (n < 0 && errno != EAGAIN) {
			sb_egress_conn_close(c, true);
			return;
		}
		if (n == 0)
			c->server_ended = true;
		if (n > 0 && sb_egress_relay_add(c, &c->down, c->e->chunk, (size_t)n) < 0) {
			sb_egress_conn_close(c, true);
			return;
		}
		if (n > 0 && c->look == SB_EGRESS_HELD)
			sb_egress_look_status(c, c->e->chunk, (size_t)n);
		if (c->step != SB_EGRESS_CLOSED)
			touch(c);
	}
	sb_egress_relay_update(c);
}
