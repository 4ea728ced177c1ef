/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_PRIV_H
#define SB_EGRESS_PRIV_H

#include <egress/dns.h>
#include <egress/egress.h>
#include <egress/httpflow.h>
#include <egress/names.h>
#include <egress/ownaddr.h>
#include <egress/source.h>
#include <egress/verdict.h>

/* What the parts of the proxy share. */

#define SB_EGRESS_FIRST_MAX (SB_HTTPHEAD_MAX + 4096) /* of bytes that are held to be judged */
#define SB_EGRESS_CHUNK 65536
#define SB_EGRESS_CHUNK_TIGHT 4096 /* once `max_buffered` is reached */
#define SB_EGRESS_CONTROLS 8

/* How a connection came, which decides what is asked of its first bytes. */
enum sb_egress_way {
	SB_EGRESS_NAMED, /* to the alias of a name: hello and Host must have that name */
	SB_EGRESS_ADDR,  /* to an allowed address: a name that it shows must not be denied */
	SB_EGRESS_SHOWN, /* to an address that only the name it shows can allow */
	SB_EGRESS_PROXY, /* to the proxy port: CONNECT or an absolute URL */
	SB_EGRESS_DNS,   /* to port 53 */
};

/* What happens to the client's bytes. */
enum sb_egress_look {
	SB_EGRESS_LOOK, /* held in `first` until they can be judged */
	SB_EGRESS_PASS, /* handed on as they come */
	SB_EGRESS_FLOW, /* handed on as far as `flow` lets them */
	SB_EGRESS_HELD, /* held until the server has agreed to another protocol */
	SB_EGRESS_STOP, /* none any more */
};

enum sb_egress_step {
	SB_EGRESS_WAITS, /* for the first bytes, to know where to */
	SB_EGRESS_LOOKS_UP,
	SB_EGRESS_CONNECTS,
	SB_EGRESS_RELAYS,
	SB_EGRESS_LAST_WORDS, /* an answer of ours goes out, then the end */
	SB_EGRESS_CLOSED,
};

/* Bytes that one side has sent and the other has not taken yet. */
struct sb_egress_pending {
	uint8_t *p;
	size_t at, len, cap;
};

struct sb_egress_conn {
	struct sb_source client, server; /* client first */
	struct sb_egress *e;
	struct sb_egress_conn *prev, *next;
	enum sb_egress_way way;
	enum sb_egress_step step;
	enum sb_egress_look look;
	struct sb_netaddr dst; /* where the client wanted to go */
	uint16_t port;
	char host[SB_NETNAME_MAX]; /* the name that is to be reached, "" when it is `dst` */
	struct sb_name *name;      /* held */
	struct sb_lookup_wait wait;
	char shown[SB_NETNAME_MAX]; /* the name that its first bytes had, way ADDR */
	bool proxied;               /* came by the proxy port */
	bool tunnel;                /* a CONNECT, whose answer is due */
	bool http;                  /* the client speaks HTTP and understands an answer of ours */
	bool named;                 /* the address came from our lookup of `host` */
	struct sb_netaddr peer;     /* whom we are connected to, or try */
	size_t tried;               /* of the addresses of `name` */
	struct sb_buf first;
	struct sb_httpflow flow;
	struct sb_buf head; /* goes to the server before anything else */
	struct sb_egress_pending up, down;
	bool client_ended, server_ended; /* no more bytes from it */
	bool client_shut, server_shut;   /* no more bytes to it */
	int64_t deadline_ms;
	int64_t connect_by_ms;
	char rule[SB_NETPOLICY_ENTRY_MAX + 8]; /* that allowed it */
	uint8_t status[12];                    /* beginning of the answer, while HELD */
	size_t status_len;
};

struct sb_egress_control {
	struct sb_source src; /* first */
	struct sb_egress *e;
	struct sb_buf in, out;
	size_t policy_left; /* bytes of a policy that still come */
	bool in_policy, events;
	uint64_t seq; /* of the next event */
};

struct sb_egress {
	struct sb_egress_opts o;
	char *session, *hosts;
	int ep;
	struct sb_source tcp4, tcp6, udp4, udp6, packets, listen, watch, cancel;
	struct sb_lookups *lookups;
	struct sb_names *names;
	struct sb_verdicts *verdicts;
	struct sb_ownaddr own;
	struct sb_netpolicy *policy;
	struct sb_egress_conn *conns, *dead; /* dead ones are freed after a round of events */
	size_t n_conns, n_dns;
	struct sb_egress_control control[SB_EGRESS_CONTROLS];
	struct sb_egress_asker *askers; /* DNS questions under way */
	size_t n_askers;
	size_t buffered;
	uint64_t opened, refused;
	bool quit, accept_paused, seen_control;
	int64_t due_ms; /* when the first deadline of a connection may pass */
	uint8_t chunk[SB_EGRESS_CHUNK];
};

/* egress.c */
void sb_egress_note(struct sb_egress *e, const struct sb_verdict *v);
/* Decides for an address; `named` as in sb_netpolicy_addr. */
bool sb_egress_addr_allowed(struct sb_egress *e, const struct sb_netaddr *a, uint16_t port,
	bool named, struct sb_netverdict *out);
/* What a lookup of the name gave. */
void sb_egress_name_set(struct sb_egress *e, struct sb_name *n, const struct sb_lookup_answer *a);
/* The new policy, owned from now on. How many connections it cut. */
size_t sb_egress_swap(struct sb_egress *e, struct sb_netpolicy *p);

/* egress-conn.c */
void sb_egress_conn_accepted(struct sb_egress *e, int fd);
/* Closes both sides; `reset`: so that they notice at once. */
void sb_egress_conn_close(struct sb_egress_conn *c, bool reset);
void sb_egress_conn_deadline(struct sb_egress_conn *c, int64_t ms_from_now);
/* The deadline has passed. */
void sb_egress_conn_overdue(struct sb_egress_conn *c);
/* The server's descriptor is ready while it is being connected. */
void sb_egress_conn_connected(struct sb_egress_conn *c);
void sb_egress_conn_free(struct sb_egress_conn *c);
/* Notes the denial and closes; in HTTP with an answer that says why. */
void sb_egress_conn_refuse(struct sb_egress_conn *c, const char *rule);
void sb_egress_conn_fail(struct sb_egress_conn *c, const char *why);
/* Goes on to `host` (a name), or to `dst`. */
void sb_egress_conn_go(struct sb_egress_conn *c);
/* Whether the policy still has it. */
bool sb_egress_conn_allowed(struct sb_egress_conn *c, struct sb_netverdict *out);
/* An HTTP answer of ours, then the end. */
void sb_egress_conn_answer(struct sb_egress_conn *c, const char *status, const char *text);

/* egress-look.c: judges `first`; the connection may be closed afterwards. */
void sb_egress_look(struct sb_egress_conn *c);
/* Bytes of the client that come after the judgement. */
void sb_egress_look_feed(struct sb_egress_conn *c, const uint8_t *data, size_t len);
/* The first bytes of the server while the client's are HELD. */
void sb_egress_look_status(struct sb_egress_conn *c, const uint8_t *data, size_t len);

/* egress-relay.c */
void sb_egress_relay_client(struct sb_source *s, uint32_t events);
void sb_egress_relay_server(struct sb_source *s, uint32_t events);
/* Asks epoll for what the connection needs now, and closes it when it is done. */
void sb_egress_relay_update(struct sb_egress_conn *c);
/* Sends what is pending, as far as it goes. -1: that side is gone. */
int sb_egress_relay_flush(struct sb_egress_conn *c, struct sb_egress_pending *p, int fd);
/* Takes the bytes over, behind what is pending. -1: no memory. */
int sb_egress_relay_add(struct sb_egress_conn *c, struct sb_egress_pending *p, const void *data,
	size_t len);
void sb_egress_relay_drop(struct sb_egress_conn *c, struct sb_egress_pending *p);

/* egress-dns.c */
void sb_egress_dns_udp(struct sb_source *s, uint32_t events);
/* Answers what is in `first` of a TCP connection to port 53. */
void sb_egress_dns_tcp(struct sb_egress_conn *c);
void sb_egress_dns_forget(struct sb_egress *e, struct sb_egress_conn *c);
void sb_egress_dns_close(struct sb_egress *e);

/* egress-control.c */
void sb_egress_control_accept(struct sb_source *s, uint32_t events);
void sb_egress_control_pump(struct sb_egress *e);
void sb_egress_control_close(struct sb_egress *e);
bool sb_egress_control_present(const struct sb_egress *e);

/* egress-packet.c */
void sb_egress_packet_ready(struct sb_source *s, uint32_t events);

#endif
