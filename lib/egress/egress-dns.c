/* SPDX-License-Identifier: MIT */
/* Questions of the session for names, by UDP and TCP: answered here, never passed on. */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ASKERS_MAX 128
#define ANSWER_TTL 30
#define PER_ROUND 64

/* A question whose name is being looked up. */
struct sb_egress_asker {
	struct sb_lookup_wait wait;
	struct sb_egress *e;
	struct sb_egress_asker *next;
	struct sb_dns_query q;
	struct sb_name *name;
	struct sb_egress_conn *conn; /* TCP */
	int fd;                      /* UDP */
	struct sockaddr_storage from;
	socklen_t from_len;
	struct sb_netaddr to; /* what the client believes we are */
};

/* The answer comes from the address that was asked. */
static void
send_udp(int fd, const struct sockaddr_storage *to, socklen_t to_len, const struct sb_netaddr *self,
	const uint8_t *data, size_t len)
{
	struct iovec iov = { (void *)data, len };
	union {
		char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} u;
	struct msghdr m = { .msg_name = (void *)to,
		.msg_namelen = to_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = u.room };
	struct in_pktinfo v4 = { 0 };
	struct in6_pktinfo v6 = { 0 };
	bool is4 = to->ss_family == AF_INET;
	struct cmsghdr *c;

	memset(&u, 0, sizeof u);
	memcpy(&v4.ipi_spec_dst, self->b, 4);
	memcpy(&v6.ipi6_addr, self->b, 16);
	m.msg_controllen = is4 ? CMSG_SPACE(sizeof v4) : CMSG_SPACE(sizeof v6);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = is4 ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = is4 ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = is4 ? CMSG_LEN(sizeof v4) : CMSG_LEN(sizeof v6);
	memcpy(CMSG_DATA(c), is4 ? (void *)&v4 : (void *)&v6, is4 ? sizeof v4 : sizeof v6);
	/* Full or gone: a client of UDP asks again. */
	(void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
reply(struct sb_egress_asker *a, int rcode, const struct sb_netaddr *addr)
{
	uint8_t buf[SB_DNS_REPLY + 2];
	size_t n = sb_dns_write_answer(&a->q, rcode, addr, ANSWER_TTL, buf + 2);

	if (!a->conn) {
		send_udp(a->fd, &a->from, a->from_len, &a->to, buf + 2, n);
		return;
	}
	buf[0] = (uint8_t)(n >> 8);
	buf[1] = (uint8_t)n;
	sb_egress_conn_deadline(a->conn, a->e->o.hello_ms);
	if (sb_egress_relay_add(a->conn, &a->conn->down, buf, n + 2) < 0)
		sb_egress_conn_close(a->conn, true);
	else
		sb_egress_relay_update(a->conn);
}

static void
asker_end(struct sb_egress_asker *a)
{
	struct sb_egress_asker **p = &a->e->askers;

	while (*p != a)
		p = &(*p)->next;
	*p = a->next;
	a->e->n_askers--;
	if (a->name)
		a->name->users--;
	sb_lookup_cancel(&a->wait);
	free(a);
}

static void
looked_up(struct sb_lookup_wait *w, const struct sb_lookup_answer *ans)
{
	struct sb_egress_asker *a = (struct sb_egress_asker *)w;
	struct sb_egress_conn *conn = a->conn;

	sb_egress_name_set(a->e, a->name, ans);
	if (ans->n > 0)
		reply(a, SB_DNS_OK, &a->name->alias);
	else
		reply(a, ans->nonexistent ? SB_DNS_NXDOMAIN : SB_DNS_SERVFAIL, NULL);
	if (ans->n == 0)
		sb_egress_note(a->e,
			&(struct sb_verdict){ .kind = "dns",
				.name = a->q.name,
				.verdict = "error",
				.rule = ans->why });
	asker_end(a);
	/* The next question of the same connection. */
	if (conn && conn->step != SB_EGRESS_CLOSED)
		sb_egress_dns_tcp(conn);
}

static void
note_refusal(struct sb_egress_asker *a, const char *rule)
{
	a->e->refused++;
	sb_egress_note(a->e,
		&(struct sb_verdict){ .kind = "dns",
			.name = a->q.name,
			.verdict = "deny",
			.rule = rule });
}

/* A question for an address: by a lookup, unless we have it already. True: `a` waits. */
static bool
ask(struct sb_egress_asker *model, const char *rule)
{
	struct sb_egress *e = model->e;
	bool known = sb_names_find(e->names, model->q.name) != NULL;
	struct sb_name *n = sb_names_get(e->names, model->q.name, sb_now_ms());
	struct sb_egress_asker *a;

	if (n && !known)
		sb_egress_note(e,
			&(struct sb_verdict){ .kind = "dns",
				.name = n->name,
				.verdict = "allow",
				.rule = rule });
	if (n && n->n > 0 && sb_now_ms() < n->expires_ms) {
		reply(model, SB_DNS_OK, &n->alias);
		return false;
	}
	a = n && e->n_askers < ASKERS_MAX ? malloc(sizeof *a) : NULL;
	if (!a) {
		reply(model, SB_DNS_SERVFAIL, NULL);
		return false;
	}
	*a = *model;
	a->wait = (struct sb_lookup_wait){ .done = looked_up };
	a->name = n;
	n->users++;
	a->next = e->askers;
	e->askers = a;
	e->n_askers++;
	if (sb_lookup_start(e->lookups, n->name, &a->wait, NULL) == 0)
		return true;
	reply(model, SB_DNS_SERVFAIL, NULL);
	asker_end(a);
	return false;
}

/* Answers the message, or sees to it. True: the answer comes later. */
static bool
answer(struct sb_egress_asker *a, const uint8_t *data, size_t len)
{
	struct sb_netverdict v;
	int rcode;

	if (!sb_dns_read_query(data, len, &a->q, &rcode))
		return false;
	if (rcode != SB_DNS_OK) {
		reply(a, rcode, NULL);
	} else if (!a->q.name[0] || a->q.class != 1) {
		note_refusal(a, "no name of a host");
		reply(a, SB_DNS_REFUSED, NULL);
	} else if (!sb_netpolicy_name(a->e->policy, a->q.name, 0, &v)) {
		note_refusal(a, v.rule);
		reply(a, SB_DNS_NXDOMAIN, NULL);
	} else if (a->q.type != SB_DNS_A) {
		/* There is such a name, as far as we tell, but nothing else is told of it. */
		reply(a, SB_DNS_OK, NULL);
	} else {
		return ask(a, v.rule);
	}
	return false;
}

static void
own_address(const struct msghdr *m, struct sb_netaddr *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		struct in_pktinfo v4;
		struct in6_pktinfo v6;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(c), sizeof v4);
			out->family = 4;
			memcpy(out->b, &v4.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(c), sizeof v6);
			out->family = 6;
			memcpy(out->b, &v6.ipi6_addr, 16);
		}
	}
}

static bool
one_datagram(struct sb_egress *e, int fd)
{
	struct sb_egress_asker a = { .e = e, .fd = fd };
	uint8_t buf[SB_DNS_MAX];
	struct iovec iov = { buf, sizeof buf };
	union {
		char room[256];
		struct cmsghdr align;
	} u;
	struct msghdr m = { .msg_name = &a.from,
		.msg_namelen = sizeof a.from,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = u.room,
		.msg_controllen = sizeof u.room };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR;
	a.from_len = m.msg_namelen;
	own_address(&m, &a.to);
	if (a.to.family)
		(void)answer(&a, buf, (size_t)n);
	return true;
}

void
sb_egress_dns_udp(struct sb_source *s, uint32_t events)
{
	struct sb_egress *e = s->owner;

	(void)events;
	for (int i = 0; i < PER_ROUND && one_datagram(e, s->fd); i++)
		;
}

static bool
is_asking(const struct sb_egress *e, const struct sb_egress_conn *c)
{
	for (const struct sb_egress_asker *a = e->askers; a; a = a->next)
		if (a->conn == c)
			return true;
	return false;
}

void
sb_egress_dns_tcp(struct sb_egress_conn *c)
{
	while (c->step != SB_EGRESS_CLOSED && c->first.len >= 2 && !is_asking(c->e, c)) {
		size_t n = (size_t)c->first.data[0] << 8 | c->first.data[1];
		struct sb_egress_asker a = { .e = c->e, .fd = -1, .conn = c };
		uint8_t buf[SB_DNS_MAX];

		if (n > sizeof buf) {
			sb_egress_conn_close(c, true);
			return;
		}
		if (c->first.len < n + 2)
			return;
		memcpy(buf, c->first.data + 2, n);
		sb_buf_consume(&c->first, n + 2);
		(void)answer(&a, buf, n);
	}
}

void
sb_egress_dns_forget(struct sb_egress *e, struct sb_egress_conn *c)
{
	for (struct sb_egress_asker *a = e->askers, *next; a; a = next) {
		next = a->next;
		if (a->conn == c)
			asker_end(a);
	}
}

void
sb_egress_dns_close(struct sb_egress *e)
{
	while (e->askers)
		asker_end(e->askers);
}
