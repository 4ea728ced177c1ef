/* SPDX-License-Identifier: MIT */
/* Tells the log who failed to log in, without letting them fill it. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <rpc/server/server-priv.h>

#define BURST 20      /* lines at once ... */
#define EVERY_MS 5000 /* ... and then one in this time */
#define PEER_MAX 96

/* Who is at the other end: an address, or the process of a unix socket. */
static void
peer_text(const struct sb_rpc_conn *c, char out[PEER_MAX])
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { 0 };
	socklen_t len = sizeof a;
	char host[INET6_ADDRSTRLEN] = "";
	struct ucred who;
	socklen_t who_len = sizeof who;

	(void)snprintf(out, PEER_MAX, "somewhere");
	if (c->listener->is_unix) {
		if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) == 0)
			(void)snprintf(out, PEER_MAX, "user %u, process %d", (unsigned)who.uid,
				(int)who.pid);
		return;
	}
	if (getpeername(c->fd, &a.any, &len) < 0)
		return;
	if (a.any.sa_family == AF_INET && inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host))
		(void)snprintf(out, PEER_MAX, "%s port %u", host, ntohs(a.v4.sin_port));
	else if (a.any.sa_family == AF_INET6 &&
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof host))
		(void)snprintf(out, PEER_MAX, "%s port %u", host, ntohs(a.v6.sin6_port));
}

void
sb_rpc_login_failed(struct sb_rpc_server *s, const struct sb_rpc_conn *c, const char *why)
{
	struct sb_rpc_login *l = &s->login;
	int64_t now = sb_now_ms();
	uint64_t skipped = 0;
	char peer[PEER_MAX];
	bool say;

	(void)pthread_mutex_lock(&l->mu);
	if (l->at_ms == 0) {
		l->at_ms = now;
		l->left = BURST;
	}
	for (; now - l->at_ms >= EVERY_MS && l->left < BURST; l->at_ms += EVERY_MS)
		l->left++;
	if (l->left == BURST)
		l->at_ms = now;
	say = l->left > 0;
	if (say) {
		l->left--;
		skipped = l->skipped;
		l->skipped = 0;
	} else {
		l->skipped++;
	}
	(void)pthread_mutex_unlock(&l->mu);
	if (!say)
		return;
	peer_text(c, peer);
	if (skipped)
		sb_log(&s->o.log, SB_LOG_WARN, "rpc", "%llu more failed logins were not logged",
			(unsigned long long)skipped);
	sb_log(&s->o.log, SB_LOG_INFO, "rpc", "failed login from %s: %s", peer, why);
}
