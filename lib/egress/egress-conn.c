/* SPDX-License-Identifier: MIT */
/* One connection of the proxy, from its acceptance until the other side is reached. */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ONE_ADDRESS_MS 4000 /* before the next address of a name is tried */
#define LAST_WORDS_MS 2000
#define DNS_CONNECTIONS 64
#define KEEPALIVE_S 60

void
sb_egress_conn_deadline(struct sb_egress_conn *c, int64_t ms)
{
	c->deadline_ms = sb_now_ms() + ms;
	if (c->deadline_ms < c->e->due_ms)
		c->e->due_ms = c->deadline_ms;
}

static void
note(struct sb_egress_conn *c, const char *verdict, const char *rule)
{
	const char *name = c->host[0] ? c->host : c->shown;
	const struct sb_netaddr *a = c->peer.family ? &c->peer : &c->dst;

	sb_egress_note(c->e,
		&(struct sb_verdict){ .kind = c->proxied ? "proxy" : "tcp",
			.name = name,
			.addr = sb_names_is_alias(a) ? NULL : a,
			.port = c->port,
			.verdict = verdict,
			.rule = rule });
}

static void
set_int(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof value);
}

/* A peer that is gone without a word is noticed in some minutes. */
static void
set_options(int fd)
{
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

static void
close_source(struct sb_source *s, int ep, bool reset)
{
	const struct linger l = { .l_onoff = 1 };

	if (s->fd < 0)
		return;
	if (reset)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	sb_source_leave(s, ep);
	sb_source_close(s);
}

static void
release_name(struct sb_egress_conn *c)
{
	if (c->name)
		c->name->users--;
	c->name = NULL;
	sb_lookup_cancel(&c->wait);
}

void
sb_egress_conn_close(struct sb_egress_conn *c, bool reset)
{
	struct sb_egress *e = c->e;

	if (c->step == SB_EGRESS_CLOSED)
		return;
	if (c->way == SB_EGRESS_DNS) {
		e->n_dns--;
		sb_egress_dns_forget(e, c);
	}
	c->step = SB_EGRESS_CLOSED;
	close_source(&c->client, e->ep, reset);
	close_source(&c->server, e->ep, reset);
	release_name(c);
	sb_egress_relay_drop(c, &c->up);
	sb_egress_relay_drop(c, &c->down);
	sb_buf_free(&c->first);
	sb_buf_free(&c->head);
	*(c->prev ? &c->prev->next : &e->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	e->n_conns--;
	c->next = e->dead;
	e->dead = c;
}

void
sb_egress_conn_free(struct sb_egress_conn *c)
{
	free(c);
}

void
sb_egress_conn_answer(struct sb_egress_conn *c, const char *status, const char *text)
{
	char buf[1200];
	int n = snprintf(buf, sizeof buf,
		"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%s\n",
		status, strlen(text) + 1, text);

	close_source(&c->server, c->e->ep, true);
	release_name(c);
	sb_egress_relay_drop(c, &c->up);
	sb_buf_reset(&c->first);
	c->step = SB_EGRESS_LAST_WORDS;
	c->look = SB_EGRESS_STOP;
	c->server_ended = true;
	sb_egress_conn_deadline(c, LAST_WORDS_MS);
	if (n < 0 || (size_t)n >= sizeof buf ||
		sb_egress_relay_add(c, &c->down, buf, (size_t)n) < 0)
		sb_egress_conn_close(c, true);
	else
		sb_egress_relay_update(c);
}

/* Only one who waits for an answer to a request can be told why, and only once. */
static bool
can_answer(const struct sb_egress_conn *c)
{
	return c->http && c->step != SB_EGRESS_LAST_WORDS &&
		(c->step != SB_EGRESS_RELAYS || c->look == SB_EGRESS_LOOK);
}

void
sb_egress_conn_refuse(struct sb_egress_conn *c, const char *rule)
{
	char text[700];

	c->e->refused++;
	note(c, "deny", rule);
	(void)snprintf(text, sizeof text, "sandbox network policy: %.200s:%u refused (%.300s)",
		c->host[0]          ? c->host :
			c->shown[0] ? c->shown :
				      "this address",
		c->port, rule);
	if (can_answer(c))
		sb_egress_conn_answer(c, "403 Forbidden", text);
	else
		sb_egress_conn_close(c, true);
}

void
sb_egress_conn_fail(struct sb_egress_conn *c, const char *why)
{
	char text[700];

	note(c, "error", why);
	(void)snprintf(text, sizeof text, "sandbox network: %.200s:%u: %.300s",
		c->host[0] ? c->host : "this address", c->port, why);
	if (can_answer(c))
		sb_egress_conn_answer(c, "502 Bad Gateway", text);
	else
		sb_egress_conn_close(c, true);
}

/* --- to the other side --- */

static int
dial(struct sb_egress_conn *c)
{
	struct sockaddr_storage ss;
	socklen_t len = sb_netaddr_to_sockaddr(&c->peer, c->port, &ss);
	int64_t left = c->connect_by_ms - sb_now_ms();

	close_source(&c->server, c->e->ep, true);
	c->server.fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->server.fd < 0)
		return -1;
	set_options(c->server.fd);
	if (connect(c->server.fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return -1;
	c->step = SB_EGRESS_CONNECTS;
	sb_egress_conn_deadline(c, left < ONE_ADDRESS_MS ? left : ONE_ADDRESS_MS);
	return sb_source_want(&c->server, c->e->ep, EPOLLOUT);
}

/* The next address to try into `peer`; false: there is none left. */
static bool
next_address(struct sb_egress_conn *c)
{
	const struct sb_name *n = c->name;

	if (!c->host[0] || c->way == SB_EGRESS_SHOWN) {
		bool found = !c->host[0];

		/* An address that the client chose must be one that the name has. */
		for (size_t i = 0; n && i < n->n && !found; i++)
			found = sb_netaddr_equal(&n->v[i], &c->dst);
		c->peer = c->dst;
		return c->tried++ == 0 && found;
	}
	if (c->tried >= n->n)
		return false;
	c->peer = n->v[c->tried++];
	return true;
}

static void
connect_next(struct sb_egress_conn *c, int sys)
{
	struct sb_netverdict v = { .allow = true };
	bool refused = false, some = sys != 0;
	char rule[sizeof v.rule] = "";

	while (sb_now_ms() < c->connect_by_ms && next_address(c)) {
		if (!sb_egress_addr_allowed(c->e, &c->peer, c->port, c->named, &v)) {
			/* The first refusal is told, should nothing else be left. */
			if (!refused)
				(void)snprintf(rule, sizeof rule, "%s", v.rule);
			refused = true;
			continue;
		}
		if (!c->named)
			(void)snprintf(c->rule, sizeof c->rule, "%s", v.rule);
		if (dial(c) == 0)
			return;
		sys = errno;
		some = true;
	}
	if (refused && !some)
		sb_egress_conn_refuse(c, rule);
	else if (c->way == SB_EGRESS_SHOWN && !some)
		sb_egress_conn_refuse(c, "the name has another address");
	else
		sb_egress_conn_fail(c, sys ? strerror(sys) : "no address answers in time");
}

static void
looked_up(struct sb_lookup_wait *w, const struct sb_lookup_answer *a)
{
	struct sb_egress_conn *c = (struct sb_egress_conn *)(void *)((char *)w -
		offsetof(struct sb_egress_conn, wait));

	sb_egress_name_set(c->e, c->name, a);
	if (a->n == 0) {
		sb_egress_conn_fail(c, a->why);
		return;
	}
	c->connect_by_ms = sb_now_ms() + c->e->o.connect_ms;
	connect_next(c, 0);
}

void
sb_egress_conn_go(struct sb_egress_conn *c)
{
	struct sb_egress *e = c->e;
	struct sb_netverdict v;
	struct sb_error err = { 0 };

	c->tried = 0;
	c->connect_by_ms = sb_now_ms() + e->o.connect_ms;
	c->named = c->host[0] != '\0';
	if (!c->named) {
		connect_next(c, 0);
		return;
	}
	if (!sb_netpolicy_name(e->policy, c->host, c->port, &v)) {
		sb_egress_conn_refuse(c, v.rule);
		return;
	}
	(void)snprintf(c->rule, sizeof c->rule, "%s", v.rule);
	release_name(c);
	c->name = sb_names_get(e->names, c->host, sb_now_ms());
	if (!c->name) {
		sb_egress_conn_fail(c, "too many names are in use");
		return;
	}
	c->name->users++;
	if (c->name->n > 0 && sb_now_ms() < c->name->expires_ms) {
		connect_next(c, 0);
		return;
	}
	c->step = SB_EGRESS_LOOKS_UP;
	sb_egress_conn_deadline(c, e->o.lookup_ms + e->o.connect_ms);
	if (sb_lookup_start(e->lookups, c->host, &c->wait, &err) < 0)
		sb_egress_conn_fail(c, err.msg);
}

void
sb_egress_conn_connected(struct sb_egress_conn *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	socklen_t len = sizeof(int);
	int sys = 0;

	if (getsockopt(c->server.fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0 || sys != 0) {
		connect_next(c, sys ? sys : errno);
		return;
	}
	c->e->opened++;
	note(c, "allow", c->rule);
	c->step = SB_EGRESS_RELAYS;
	sb_egress_conn_deadline(c,
		c->look == SB_EGRESS_LOOK && c->first.len > 0 ? c->e->o.hello_ms : c->e->o.idle_ms);
	if (c->tunnel &&
		sb_egress_relay_add(c, &c->down, established, sizeof established - 1) < 0) {
		sb_egress_conn_close(c, true);
		return;
	}
	/* From here on the client hears what it thinks is the other side. */
	if (c->tunnel)
		c->http = false;
	c->tunnel = false;
	sb_egress_relay_update(c);
}

void
sb_egress_conn_overdue(struct sb_egress_conn *c)
{
	if (c->step == SB_EGRESS_CONNECTS)
		connect_next(c, ETIMEDOUT);
	else if (c->step == SB_EGRESS_WAITS ||
		(c->step == SB_EGRESS_RELAYS && c->look == SB_EGRESS_LOOK))
		sb_egress_conn_refuse(c, "the first bytes did not come in time");
	else if (c->step == SB_EGRESS_LOOKS_UP)
		sb_egress_conn_fail(c, "the lookup took too long");
	else
		sb_egress_conn_close(c, c->step != SB_EGRESS_LAST_WORDS);
}

bool
sb_egress_conn_allowed(struct sb_egress_conn *c, struct sb_netverdict *out)
{
	struct sb_egress *e = c->e;

	if (c->way == SB_EGRESS_DNS || c->step == SB_EGRESS_WAITS ||
		c->step == SB_EGRESS_LAST_WORDS)
		return true;
	if (c->host[0] && !sb_netpolicy_name(e->policy, c->host, c->port, out))
		return false;
	if (c->shown[0] && sb_netpolicy_denies_name(e->policy, c->shown, c->port, out))
		return false;
	return c->step == SB_EGRESS_LOOKS_UP ||
		sb_egress_addr_allowed(e, &c->peer, c->port, c->named, out);
}

/* --- acceptance --- */

/* Where the client wants to go decides how it is treated. */
static void
begin(struct sb_egress_conn *c)
{
	struct sb_egress *e = c->e;
	struct sb_netaddr gate4, gate6;
	struct sb_netverdict v;
	struct sb_name *n;

	(void)sb_netaddr_parse(SB_GATE_OUTSIDE4, strlen(SB_GATE_OUTSIDE4), &gate4);
	(void)sb_netaddr_parse(SB_GATE_OUTSIDE6, strlen(SB_GATE_OUTSIDE6), &gate6);
	sb_egress_conn_deadline(c, e->o.hello_ms);
	if (c->port == SB_GATE_PROXY_PORT &&
		(sb_netaddr_equal(&c->dst, &gate4) || sb_netaddr_equal(&c->dst, &gate6))) {
		c->way = SB_EGRESS_PROXY;
		c->http = c->proxied = true;
	} else if (c->port == 53 && e->n_dns < DNS_CONNECTIONS) {
		c->way = SB_EGRESS_DNS;
		e->n_dns++;
	} else if (sb_names_is_alias(&c->dst)) {
		n = sb_names_by_alias(e->names, &c->dst);
		c->way = SB_EGRESS_NAMED;
		if (!n) {
			sb_egress_conn_refuse(c, "the address stands for no name");
			return;
		}
		(void)memccpy(c->host, n->name, '\0', sizeof c->host - 1);
		sb_egress_conn_go(c);
		return;
	} else if (sb_egress_addr_allowed(e, &c->dst, c->port, false, &v)) {
		c->way = SB_EGRESS_ADDR;
		if (!sb_netpolicy_has_denied_names(e->policy))
			c->look = SB_EGRESS_PASS;
		sb_egress_conn_go(c);
		return;
	} else if (sb_netpolicy_has_allowed_names(e->policy) &&
		sb_egress_addr_allowed(e, &c->dst, c->port, true, &(struct sb_netverdict){ 0 })) {
		c->way = SB_EGRESS_SHOWN;
	} else {
		sb_egress_conn_refuse(c, v.rule);
		return;
	}
	sb_egress_relay_update(c);
}

void
sb_egress_conn_accepted(struct sb_egress *e, int fd)
{
	struct sb_egress_conn *c = calloc(1, sizeof *c);
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;

	if (!c || getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
		!sb_netaddr_from_sockaddr((struct sockaddr *)&ss, &c->dst, &c->port)) {
		(void)close(fd);
		free(c);
		return;
	}
	set_options(fd);
	c->e = e;
	c->client = (struct sb_source){ .fd = fd, .ready = sb_egress_relay_client };
	c->server = (struct sb_source){ .fd = -1, .ready = sb_egress_relay_server };
	c->way = SB_EGRESS_ADDR;
	c->wait.done = looked_up;
	sb_buf_init(&c->first, SB_EGRESS_FIRST_MAX);
	sb_buf_init(&c->head, 2 * SB_EGRESS_FIRST_MAX);
	c->next = e->conns;
	if (c->next)
		c->next->prev = c;
	e->conns = c;
	e->n_conns++;
	begin(c);
}
