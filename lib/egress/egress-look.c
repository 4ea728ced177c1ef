/* SPDX-License-Identifier: MIT */
/* What the first bytes of a client say, and whether that is what it may have. */
#include "config.h"

#include <egress/egress-priv.h>

#include <stdio.h>
#include <string.h>

#include <egress/tlshello.h>

static void
refuse_name(struct sb_egress_conn *c, const char *what, const char *name)
{
	char rule[SB_NETPOLICY_ENTRY_MAX];

	(void)snprintf(rule, sizeof rule, "%s %.250s", what, name);
	sb_egress_conn_refuse(c, rule);
}

/* The judged bytes go on; what they are followed by is treated as `look` says. */
static void
let_go(struct sb_egress_conn *c, enum sb_egress_look look)
{
	struct sb_buf held = c->first;

	sb_buf_init(&c->first, SB_EGRESS_FIRST_MAX);
	c->look = look;
	if (c->step == SB_EGRESS_RELAYS)
		sb_egress_conn_deadline(c, c->e->o.idle_ms);
	if (c->head.len > 0 && sb_egress_relay_add(c, &c->up, c->head.data, c->head.len) < 0)
		sb_egress_conn_close(c, true);
	sb_buf_free(&c->head);
	sb_buf_init(&c->head, 2 * SB_EGRESS_FIRST_MAX);
	if (c->step != SB_EGRESS_CLOSED && held.len > 0)
		sb_egress_look_feed(c, held.data, held.len);
	sb_buf_free(&held);
	if (c->step != SB_EGRESS_CLOSED)
		sb_egress_relay_update(c);
}

void
sb_egress_look_feed(struct sb_egress_conn *c, const uint8_t *data, size_t len)
{
	size_t n = len;

	if (c->look == SB_EGRESS_LOOK || c->look == SB_EGRESS_HELD) {
		sb_buf_add(&c->first, data, len);
		if (c->first.failed)
			sb_egress_conn_refuse(c, "too many bytes before an answer");
		return;
	}
	if (c->look == SB_EGRESS_STOP)
		return;
	if (c->look == SB_EGRESS_FLOW)
		n = sb_httpflow_pass(&c->flow, data, len);
	if (n > 0 && sb_egress_relay_add(c, &c->up, data, n) < 0) {
		sb_egress_conn_close(c, true);
		return;
	}
	if (c->look != SB_EGRESS_FLOW)
		return;
	if (c->flow.step == SB_HTTPFLOW_BAD)
		sb_egress_conn_refuse(c, "the body of the request is broken");
	else if (c->flow.step == SB_HTTPFLOW_END)
		c->look = SB_EGRESS_STOP;
}

void
sb_egress_look_status(struct sb_egress_conn *c, const uint8_t *data, size_t len)
{
	size_t n = sizeof c->status - c->status_len;

	n = n < len ? n : len;
	memcpy(c->status + c->status_len, data, n);
	c->status_len += n;
	if (c->status_len < sizeof c->status)
		return;
	let_go(c, memcmp(c->status, "HTTP/1.1 101", 12) == 0 ? SB_EGRESS_PASS : SB_EGRESS_STOP);
}

/* A name that only now is known takes the connection to where it is allowed to lead. */
static void
go_by_name(struct sb_egress_conn *c, const char *name)
{
	(void)memccpy(c->host, name, '\0', sizeof c->host - 1);
	sb_egress_conn_go(c);
}

/* True when the name is one the connection may show. */
static bool
judge_name(struct sb_egress_conn *c, const char *what, const char *name)
{
	struct sb_netverdict v;

	if (c->way == SB_EGRESS_NAMED && strcmp(name, c->host) != 0) {
		refuse_name(c, what, name);
		return false;
	}
	if (c->way == SB_EGRESS_ADDR) {
		(void)memccpy(c->shown, name, '\0', sizeof c->shown - 1);
		if (sb_netpolicy_denies_name(c->e->policy, name, c->port, &v)) {
			sb_egress_conn_refuse(c, v.rule);
			return false;
		}
	}
	return true;
}

static void
judge_hello(struct sb_egress_conn *c, const char *sni)
{
	if (!*sni && c->way != SB_EGRESS_ADDR) {
		sb_egress_conn_refuse(c, "TLS without SNI");
		return;
	}
	if (*sni && !judge_name(c, "SNI mismatch:", sni))
		return;
	if (c->way == SB_EGRESS_SHOWN && c->step == SB_EGRESS_WAITS)
		go_by_name(c, sni);
	if (c->step != SB_EGRESS_CLOSED)
		let_go(c, SB_EGRESS_PASS);
}

/* What of a request's head does not fit; NULL: nothing. */
static const char *
misfit(const struct sb_egress_conn *c, const struct sb_httphead *h)
{
	if (h->target == SB_HTTPHEAD_CONNECT)
		return "CONNECT to what is no proxy";
	if (!h->has_host)
		return "HTTP without Host";
	if (h->host.port && h->host.port != c->port)
		return "Host mismatch: another port";
	if (h->target == SB_HTTPHEAD_ABSOLUTE &&
		!sb_httphead_same_peer(&h->target_peer, &h->host, c->port))
		return "Host mismatch: not the URL's";
	if (!h->host.name[0] && c->way != SB_EGRESS_ADDR)
		return "Host mismatch: an address";
	return NULL;
}

/* Puts the head, which is the first part of `first`, on its way to the server. */
static void
take_head(struct sb_egress_conn *c, const struct sb_httphead *h)
{
	sb_httphead_write(h, c->first.data, &c->head);
	sb_buf_consume(&c->first, h->len);
	sb_httpflow_init(&c->flow, h);
}

static enum sb_egress_look
look_after(const struct sb_egress_conn *c, const struct sb_httphead *h)
{
	if (h->upgrade)
		return SB_EGRESS_HELD;
	return c->flow.step == SB_HTTPFLOW_END ? SB_EGRESS_STOP : SB_EGRESS_FLOW;
}

static void
judge_request(struct sb_egress_conn *c, const struct sb_httphead *h)
{
	const char *wrong = misfit(c, h);

	c->http = true;
	if (wrong) {
		sb_egress_conn_refuse(c, wrong);
		return;
	}
	if (h->host.name[0] && !judge_name(c, "Host mismatch:", h->host.name))
		return;
	take_head(c, h);
	if (c->way == SB_EGRESS_SHOWN && c->step == SB_EGRESS_WAITS)
		go_by_name(c, h->host.name);
	if (c->step != SB_EGRESS_CLOSED && c->step != SB_EGRESS_LAST_WORDS)
		let_go(c, look_after(c, h));
}

static void
aim(struct sb_egress_conn *c, const struct sb_httphead_peer *p)
{
	c->port = p->port ? p->port : 80;
	c->dst = p->addr;
	c->host[0] = '\0';
	(void)memccpy(c->host, p->name, '\0', sizeof c->host - 1);
	c->way = p->name[0] ? SB_EGRESS_NAMED : SB_EGRESS_ADDR;
}

static void
judge_proxy(struct sb_egress_conn *c, const struct sb_httphead *h)
{
	if (h->target == SB_HTTPHEAD_ORIGIN) {
		sb_egress_conn_answer(c, "400 Bad Request",
			"this is a proxy: use CONNECT or a URL");
		return;
	}
	aim(c, &h->target_peer);
	if (h->target == SB_HTTPHEAD_CONNECT) {
		sb_buf_consume(&c->first, h->len);
		c->tunnel = true;
		/* What is said in the tunnel is judged like what comes without a proxy. */
		if (c->way == SB_EGRESS_ADDR && !sb_netpolicy_has_denied_names(c->e->policy))
			c->look = SB_EGRESS_PASS;
		sb_egress_conn_go(c);
		if (c->step == SB_EGRESS_CLOSED || c->step == SB_EGRESS_LAST_WORDS)
			return;
		if (c->look == SB_EGRESS_PASS)
			let_go(c, SB_EGRESS_PASS);
		else if (c->first.len > 0)
			sb_egress_look(c);
		return;
	}
	if (h->has_host && !sb_httphead_same_peer(&h->target_peer, &h->host, 80)) {
		sb_egress_conn_refuse(c, "Host mismatch: not the URL's");
		return;
	}
	take_head(c, h);
	sb_egress_conn_go(c);
	if (c->step != SB_EGRESS_CLOSED && c->step != SB_EGRESS_LAST_WORDS)
		let_go(c, look_after(c, h));
}

/* Whether it must be refused for want of bytes: no more will come. */
static void
not_yet(struct sb_egress_conn *c)
{
	if (c->client_ended)
		sb_egress_conn_refuse(c, "ended in the middle of its first bytes");
	else
		sb_egress_relay_update(c);
}

static void
look_at_http(struct sb_egress_conn *c)
{
	struct sb_httphead h;

	switch (sb_httphead_read(c->first.data, c->first.len, &h)) {
	case SB_HTTPHEAD_MORE: not_yet(c); break;
	case SB_HTTPHEAD_DONE:
		if (c->way == SB_EGRESS_PROXY)
			judge_proxy(c, &h);
		else
			judge_request(c, &h);
		break;
	case SB_HTTPHEAD_OTHER:
		if (c->way == SB_EGRESS_PROXY)
			sb_egress_conn_answer(c, "400 Bad Request", "not HTTP");
		else if (c->way == SB_EGRESS_SHOWN)
			sb_egress_conn_refuse(c, "an address, and no name shown");
		else
			let_go(c, SB_EGRESS_PASS);
		break;
	case SB_HTTPHEAD_BAD:
		c->http = c->http || c->way != SB_EGRESS_SHOWN;
		sb_egress_conn_refuse(c, h.why);
		break;
	}
}

void
sb_egress_look(struct sb_egress_conn *c)
{
	char sni[SB_NETNAME_MAX] = "";

	if (c->first.len == 0) {
		/* Nothing came and nothing will: there is nothing to judge. */
		if (c->client_ended && c->step == SB_EGRESS_WAITS)
			sb_egress_conn_close(c, false);
		else if (c->client_ended)
			let_go(c, SB_EGRESS_PASS);
		return;
	}
	if (c->way == SB_EGRESS_PROXY) {
		look_at_http(c);
		return;
	}
	switch (sb_tlshello_read(c->first.data, c->first.len, sni)) {
	case SB_TLSHELLO_MORE: not_yet(c); break;
	case SB_TLSHELLO_DONE: judge_hello(c, sni); break;
	case SB_TLSHELLO_OTHER: look_at_http(c); break;
	case SB_TLSHELLO_BAD: sb_egress_conn_refuse(c, "a TLS hello that cannot be read"); break;
	}
}
