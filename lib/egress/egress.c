/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 128
#define ACCEPT_PER_ROUND 64
#define OTHER_FDS 256 /* beside those of connections: lookups, listeners, control */
#define RETRY_MS 1500
#define CACHE_MAX_MS 300000

void
sb_egress_note(struct sb_egress *e, const struct sb_verdict *v)
{
	sb_verdict_note(e->verdicts, v, sb_now_ms());
}

bool
sb_egress_addr_allowed(struct sb_egress *e, const struct sb_netaddr *a, uint16_t port, bool named,
	struct sb_netverdict *out)
{
	return sb_netpolicy_addr(e->policy, a, port, named, sb_ownaddr_has(&e->own, a, sb_now_ms()),
		out);
}

void
sb_egress_name_set(struct sb_egress *e, struct sb_name *n, const struct sb_lookup_answer *a)
{
	int64_t ms = (int64_t)a->ttl * 1000;

	if (ms < e->o.cache_min_ms)
		ms = e->o.cache_min_ms;
	if (ms > CACHE_MAX_MS)
		ms = CACHE_MAX_MS;
	n->n = a->n;
	memcpy(n->v, a->v, a->n * sizeof a->v[0]);
	n->expires_ms = sb_now_ms() + ms;
}

size_t
sb_egress_swap(struct sb_egress *e, struct sb_netpolicy *p)
{
	size_t cut = 0;

	sb_netpolicy_free(e->policy);
	e->policy = p;
	for (struct sb_egress_conn *c = e->conns, *next; c; c = next) {
		struct sb_netverdict v;

		next = c->next;
		if (sb_egress_conn_allowed(c, &v))
			continue;
		cut++;
		sb_egress_note(e,
			&(struct sb_verdict){ .kind = "tcp",
				.name = c->host[0] ? c->host : c->shown,
				.addr = c->peer.family ? &c->peer : NULL,
				.port = c->port,
				.verdict = "cut",
				.rule = v.rule });
		sb_egress_conn_close(c, true);
	}
	return cut;
}

static void
pause_accept(struct sb_egress *e, bool pause)
{
	struct sb_source *s[] = { &e->tcp4, &e->tcp6 };

	for (size_t i = 0; i < 2; i++)
		if (s[i]->fd >= 0 && pause)
			sb_source_leave(s[i], e->ep);
		else if (s[i]->fd >= 0)
			(void)sb_source_want(s[i], e->ep, EPOLLIN);
	e->accept_paused = pause;
}

static void
accept_ready(struct sb_source *s, uint32_t events)
{
	struct sb_egress *e = s->owner;

	(void)events;
	for (int i = 0; i < ACCEPT_PER_ROUND; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* No descriptors or no memory: until something is closed. */
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				pause_accept(e, true);
			return;
		}
		if (e->n_conns >= e->o.max_connections) {
			const struct linger l = { .l_onoff = 1 };

			e->refused++;
			sb_egress_note(e,
				&(struct sb_verdict){ .kind = "tcp",
					.verdict = "deny",
					.rule = "too many connections" });
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
			(void)close(fd);
			continue;
		}
		sb_egress_conn_accepted(e, fd);
	}
}

static void
quit_ready(struct sb_source *s, uint32_t events)
{
	struct sb_egress *e = s->owner;

	(void)events;
	e->quit = true;
}

/* --- life --- */

static int
add_source(struct sb_egress *e, struct sb_source *s, int fd,
	void (*ready)(struct sb_source *s, uint32_t events), struct sb_error *err)
{
	*s = (struct sb_source){ .fd = fd, .ready = ready, .owner = e };
	if (fd < 0)
		return 0;
	return sb_source_want(s, e->ep, EPOLLIN) < 0 ? sb_fail_errno(err, "epoll") : 0;
}

static void
limit_connections(struct sb_egress *e)
{
	struct rlimit l;
	size_t can;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	can = l.rlim_cur > OTHER_FDS + 2 ? (size_t)(l.rlim_cur - OTHER_FDS) / 2 : 1;
	if (e->o.max_connections > can)
		e->o.max_connections = can;
}

static int
set_up(struct sb_egress *e, struct sb_error *err)
{
	const struct sb_gate *g = &e->o.gate;
	struct sb_lookup_opts l = { .n_servers = e->o.n_servers,
		.hosts = e->hosts,
		.total_ms = e->o.lookup_ms,
		.retry_ms = RETRY_MS };
	int r;

	e->ep = epoll_create1(EPOLL_CLOEXEC);
	if (e->ep < 0)
		return sb_fail_errno(err, "epoll");
	l.epoll = e->ep;
	memcpy(l.servers, e->o.servers, sizeof l.servers);
	e->lookups = sb_lookup_open(&l, err);
	e->names = sb_names_new();
	e->verdicts = sb_verdict_open(e->session);
	if (!e->lookups || !e->names || !e->verdicts)
		return sb_fail(err, SB_E_NOMEM, "egress");
	limit_connections(e);
	r = add_source(e, &e->tcp4, g->tcp4, accept_ready, err);
	if (r == 0)
		r = add_source(e, &e->tcp6, g->tcp6, accept_ready, err);
	if (r == 0)
		r = add_source(e, &e->udp4, g->udp4, sb_egress_dns_udp, err);
	if (r == 0)
		r = add_source(e, &e->udp6, g->udp6, sb_egress_dns_udp, err);
	if (r == 0)
		r = add_source(e, &e->packets, g->packets, sb_egress_packet_ready, err);
	if (r == 0)
		r = add_source(e, &e->listen, e->o.control, sb_egress_control_accept, err);
	e->watch.ready = quit_ready;
	e->watch.owner = e;
	return r;
}

struct sb_egress *
sb_egress_new(const struct sb_egress_opts *o, struct sb_error *err)
{
	struct sb_egress *e = calloc(1, sizeof *e);

	if (!e) {
		struct sb_gate g = o->gate;

		sb_gate_close(&g);
		if (o->control >= 0)
			(void)close(o->control);
		sb_netpolicy_free(o->policy);
		(void)sb_fail(err, SB_E_NOMEM, "egress");
		return NULL;
	}
	e->o = *o;
	e->policy = o->policy;
	e->ep = -1;
	e->due_ms = SB_NEVER;
	e->watch.fd = e->cancel.fd = -1;
	for (size_t i = 0; i < SB_EGRESS_CONTROLS; i++)
		e->control[i].src.fd = -1;
	e->session = strdup(o->session ? o->session : "");
	e->hosts = o->hosts ? strdup(o->hosts) : NULL;
	if (!e->session || (o->hosts && !e->hosts) || set_up(e, err) < 0) {
		sb_egress_free(e);
		return NULL;
	}
	return e;
}

static void
bury(struct sb_egress *e)
{
	bool some = e->dead != NULL;

	while (e->dead) {
		struct sb_egress_conn *c = e->dead;

		e->dead = c->next;
		sb_egress_conn_free(c);
	}
	if (some && e->accept_paused)
		pause_accept(e, false);
}

void
sb_egress_free(struct sb_egress *e)
{
	if (!e)
		return;
	if (e->verdicts && e->lookups)
		sb_egress_control_close(e);
	while (e->conns)
		sb_egress_conn_close(e->conns, true);
	sb_egress_dns_close(e);
	bury(e);
	sb_lookup_close(e->lookups);
	sb_names_free(e->names);
	sb_verdict_close(e->verdicts);
	sb_ownaddr_free(&e->own);
	sb_netpolicy_free(e->policy);
	sb_gate_close(&e->o.gate);
	sb_source_close(&e->watch);
	if (e->o.control >= 0)
		(void)close(e->o.control);
	if (e->ep >= 0)
		(void)close(e->ep);
	free(e->session);
	free(e->hosts);
	free(e);
}

/* Ends what has taken too long, and finds the next that may. */
static void
check_deadlines(struct sb_egress *e, int64_t now)
{
	if (now < e->due_ms)
		return;
	e->due_ms = SB_NEVER;
	for (struct sb_egress_conn *c = e->conns, *next; c; c = next) {
		next = c->next;
		if (now >= c->deadline_ms)
			sb_egress_conn_overdue(c);
		if (c->step != SB_EGRESS_CLOSED && c->deadline_ms < e->due_ms)
			e->due_ms = c->deadline_ms;
	}
}

static int
one_round(struct sb_egress *e, struct sb_error *err)
{
	struct epoll_event ev[EVENTS];
	sb_deadline due = sb_deadline_min(e->due_ms, sb_lookup_due(e->lookups));
	int n = epoll_wait(e->ep, ev, EVENTS, sb_deadline_poll_ms(due));

	if (n < 0 && errno != EINTR)
		return sb_fail_errno(err, "epoll");
	for (int i = 0; i < n; i++) {
		struct sb_source *s = ev[i].data.ptr;

		/* Closed by what came before it in this round. */
		if (s->fd >= 0 && s->in)
			s->ready(s, ev[i].events);
	}
	check_deadlines(e, sb_now_ms());
	sb_lookup_tick(e->lookups, sb_now_ms());
	sb_egress_control_pump(e);
	bury(e);
	return 0;
}

int
sb_egress_run(struct sb_egress *e, const struct sb_cancel *cancel, struct sb_error *err)
{
	int r = add_source(e, &e->cancel, sb_cancel_fd(cancel), quit_ready, err);

	while (r == 0 && !e->quit) {
		r = one_round(e, err);
		/* Nobody who started us, and no session yet: nobody needs us. */
		if (e->watch.fd < 0 && e->seen_control && !e->o.unwatched &&
			!sb_egress_control_present(e))
			break;
	}
	if (e->cancel.fd >= 0)
		sb_source_leave(&e->cancel, e->ep);
	return r;
}
