/* SPDX-License-Identifier: MIT */
/* Takes a connection over from HTTP for a method that speaks its own protocol from there on. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <rpc/protocol/attach-frame.h>
#include <rpc/server/server-priv.h>

#define DRAIN_MS 2000 /* for a client to close after the last frame */

/*
 * A call that takes its connection over. The request is a GET with its message in the query, as
 * Connect has it for unary methods, and "Upgrade: sb-attach"; after the 101 both sides speak frames
 * (rpc/protocol/attach-frame.h). Errors of the request itself are ordinary answers, later ones are
 * the last frame.
 */
struct upgraded {
	struct sb_rpc_call *call;
	struct MHD_UpgradeResponseHandle *handle;
	int sock;
};

static void
say_failure(struct upgraded *u)
{
	sb_auto(sb_buf) struct sb_buf out;
	json_t *obj = sb_rpc_failure_json(&u->call->failure);
	char *text = obj ? json_dumps(obj, JSON_COMPACT) : NULL;
	struct pollfd p = { .fd = u->sock, .events = POLLOUT };

	sb_buf_init(&out, SB_RPC_ATTACH_FRAME_MAX + 64);
	if (text && strlen(text) <= SB_RPC_ATTACH_FRAME_MAX)
		sb_rpc_attach_frame_put(&out, SB_RPC_ATTACH_FRAME_ERROR, text, strlen(text));
	/* Short enough for any socket's buffer, unless nobody reads. */
	if (poll(&p, 1, 1000) == 1)
		(void)send(u->sock, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	json_decref(obj);
}

/*
 * Reads and drops what the client still sends until it has closed: to close over unread bytes
 * resets the connection, and a reset can take the last frame with it.
 */
static void
drain(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	sb_deadline d = sb_deadline_in(DRAIN_MS);
	char chunk[4096];
	ssize_t n;

	(void)shutdown(sock, SHUT_WR);
	do {
		(void)poll(&p, 1, sb_deadline_poll_ms(d));
		n = recv(sock, chunk, sizeof chunk, MSG_DONTWAIT);
	} while ((n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) &&
		!sb_deadline_passed(d));
}

static void
finish(struct upgraded *u)
{
	struct sb_rpc_call *c = u->call;
	struct sb_rpc_server *s = c->server;

	sb_rpc_call_count_end(c);
	sb_rpc_watchdog_call(s->watch, c->conn, NULL);
	(void)pthread_mutex_lock(&c->mu);
	c->finished = true;
	(void)pthread_mutex_unlock(&c->mu);
	drain(u->sock);
	(void)MHD_upgrade_action(u->handle, MHD_UPGRADE_ACTION_CLOSE);
	free(u);
	sb_rpc_call_unref(c);
	atomic_fetch_sub(&s->running, 1);
}

static void
work(void *arg)
{
	struct upgraded *u = arg;
	struct sb_rpc_call *c = u->call;
	struct sb_error err = { 0 };
	int r = c->http ? c->http->plan.upgrade(c, u->sock, &err) :
			  c->method->upgrade(c, c->message, u->sock, &err);

	json_decref(c->message);
	c->message = NULL;
	if (r < 0) {
		err.code = err.code < 0 ? err.code : r;
		sb_rpc_call_fail(c, &err);
		if (!c->http)
			say_failure(u);
	}
	finish(u);
}

static void
on_upgrade(void *cls, struct MHD_Connection *mc, void *con_cls, const char *extra,
	size_t extra_size, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	struct sb_rpc_call *c = cls;
	struct upgraded *u = calloc(1, sizeof *u);
	struct sb_error err = { 0 };

	(void)mc;
	(void)con_cls;
	(void)extra;
	if (!u) {
		(void)MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
		sb_rpc_call_unref(c);
		atomic_fetch_sub(&c->server->running, 1);
		return;
	}
	*u = (struct upgraded){ c, urh, sock };
	sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_CALL, c->deadline);
	/* A client waits for the 101 before it speaks. */
	if (extra_size > 0)
		(void)sb_fail(&err, SB_E_PROTO, "frames before the answer");
	else if (sb_rpc_pool_run(c->server->streams, work, u, &err) == 0)
		return;
	sb_rpc_call_fail(c, &err);
	if (!c->http)
		say_failure(u);
	finish(u);
}

bool
sb_rpc_upgrade_wanted(struct sb_rpc_call *c)
{
	const char *up = MHD_lookup_connection_value(c->mc, MHD_HEADER_KIND, "Upgrade");

	return up && strcasecmp(up, SB_RPC_ATTACH_FRAME_PROTOCOL) == 0;
}

enum MHD_Result
sb_rpc_upgrade_start(struct sb_rpc_call *c)
{
	if (!c->http && !(c->message = sb_rpc_request_message(c)))
		return MHD_NO;
	c->response = MHD_create_response_for_upgrade(on_upgrade, c);
	if (!c->response) {
		sb_rpc_failure_set(&c->failure, SB_RPC_RESOURCE_EXHAUSTED, "out of memory");
		return MHD_NO;
	}
	if (c->http)
		sb_rpc_http_put_headers(c, c->response, NULL);
	else
		(void)MHD_add_response_header(c->response, "Upgrade", SB_RPC_ATTACH_FRAME_PROTOCOL);
	c->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	atomic_fetch_add(&c->refs, 1);
	sb_rpc_watchdog_call(c->server->watch, c->conn, c);
	sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_CALL, c->deadline);
	return MHD_YES;
}
