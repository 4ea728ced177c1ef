/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/websocket.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <gnutls/crypto.h>

#include <base/base64.h>
#include <base/str.h>

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define CLOSE_MS 1000

struct sb_websocket {
	int sock;
	const struct sb_cancel *cancel;
	struct sb_wsframe in;   /* of the one thread that reads */
	struct sb_cancel *left; /* it is to stop */

	pthread_mutex_t mu; /* guards all below, and writing */
	bool closed;
};

bool
sb_websocket_wanted(struct sb_rpc_call *call)
{
	const char *up = sb_rpc_http_header(call, "Upgrade");

	return up && strcasecmp(up, "websocket") == 0;
}

bool
sb_websocket_offered(struct sb_rpc_call *call, const char *prefix, char *out, size_t size)
{
	const char *p = sb_rpc_http_header(call, "Sec-WebSocket-Protocol");

	while (p && *p) {
		size_t len = strcspn(p += strspn(p, " ,\t"), " ,\t");

		if (len >= strlen(prefix) && len < size &&
			strncmp(p, prefix, strlen(prefix)) == 0) {
			memcpy(out, p, len);
			out[len] = '\0';
			return true;
		}
		p += len;
	}
	return false;
}

int
sb_websocket_accept(struct sb_rpc_call *call, const char *protocol, struct sb_error *err)
{
	const char *key = sb_rpc_http_header(call, "Sec-WebSocket-Key"),
		   *version = sb_rpc_http_header(call, "Sec-WebSocket-Version");
	sb_autofree char *text = NULL;
	sb_auto(sb_buf) struct sb_buf raw;
	uint8_t digest[20];
	char accept[32];

	sb_buf_init(&raw, 64);
	if (!key || strlen(key) != 24 || !sb_base64_decode(key, 24, &raw) || raw.len != 16)
		return sb_fail(err, SB_E_INVAL, "Sec-WebSocket-Key is missing or no key");
	if (!version || strcmp(version, "13") != 0)
		return sb_fail(err, SB_E_INVAL, "Sec-WebSocket-Version must be 13");
	text = sb_str_printf("%s%s", key, GUID);
	if (!text || gnutls_hash_fast(GNUTLS_DIG_SHA1, text, strlen(text), digest) != 0 ||
		!sb_base64_encode_padded(digest, sizeof digest, accept, sizeof accept))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_rpc_http_add_header(call, "Upgrade", "websocket");
	sb_rpc_http_add_header(call, "Sec-WebSocket-Accept", accept);
	if (protocol)
		sb_rpc_http_add_header(call, "Sec-WebSocket-Protocol", protocol);
	return 0;
}

struct sb_websocket *
sb_websocket_new(int sock, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_websocket *w = calloc(1, sizeof *w);

	if (!w || !(w->left = sb_cancel_new(err))) {
		free(w);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	w->sock = sock;
	w->cancel = cancel;
	sb_wsframe_init(&w->in, SB_WEBSOCKET_MAX);
	(void)pthread_mutex_init(&w->mu, NULL);
	return w;
}

void
sb_websocket_free(struct sb_websocket *w)
{
	if (!w)
		return;
	sb_wsframe_free(&w->in);
	sb_cancel_free(w->left);
	(void)pthread_mutex_destroy(&w->mu);
	free(w);
}

/* Waits for the socket. 1: it is ready; 0: the time is over. */
static int
wait_for(struct sb_websocket *w, short events, sb_deadline d, struct sb_error *err)
{
	/* Who sends is not stopped by a leave. */
	struct pollfd p[3] = { { .fd = w->sock, .events = events },
		{ .fd = sb_cancel_fd(w->cancel), .events = POLLIN },
		{ .fd = events == POLLIN ? sb_cancel_fd(w->left) : -1, .events = POLLIN } };
	int n;

	do
		n = poll(p, 3, sb_deadline_poll_ms(d));
	while (n < 0 && errno == EINTR);
	if (sb_cancel_requested(w->cancel))
		return sb_fail(err, SB_E_CANCELED, "canceled");
	if (events == POLLIN && sb_cancel_requested(w->left))
		return sb_fail(err, SB_E_CLOSED, "left");
	return p[0].revents != 0;
}

void
sb_websocket_leave(struct sb_websocket *w)
{
	sb_cancel_request(w->left);
}

/* With `mu` held. */
static int
put(struct sb_websocket *w, enum sb_wsframe_kind kind, const void *data, size_t len, int64_t ms,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf out;
	sb_deadline d = sb_deadline_in(ms);
	size_t at = 0;
	int r;

	sb_buf_init(&out, len + 16);
	sb_wsframe_put(&out, kind, data, len);
	r = sb_buf_check(&out, "message", err);
	while (r == 0 && at < out.len) {
		ssize_t n = send(w->sock, out.data + at, out.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			at += (size_t)n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			r = sb_fail(err, SB_E_CLOSED, "the client went away");
		} else {
			r = wait_for(w, POLLOUT, d, err);
			r = r < 0 ? r :
				r ? 0 :
				    sb_fail(err, SB_E_TIMEOUT, "the client takes nothing");
		}
	}
	/* Half a frame cannot be taken back. */
	if (r < 0)
		w->closed = true;
	return r;
}

int
sb_websocket_send(struct sb_websocket *w, enum sb_wsframe_kind kind, const void *data, size_t len,
	int64_t ms, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&w->mu);
	r = w->closed ? sb_fail(err, SB_E_CLOSED, "the connection is closed") :
			put(w, kind, data, len, ms, err);
	(void)pthread_mutex_unlock(&w->mu);
	return r;
}

void
sb_websocket_close(struct sb_websocket *w, int code, const char *reason)
{
	char text[125] = { (char)(code >> 8), (char)code };
	size_t len = strlen(reason);

	len = len < 120 ? len : 120;
	memcpy(text + 2, reason, len);
	(void)pthread_mutex_lock(&w->mu);
	if (!w->closed)
		(void)put(w, SB_WSFRAME_CLOSE, text, len + 2, CLOSE_MS, NULL);
	w->closed = true;
	(void)pthread_mutex_unlock(&w->mu);
}

/* One read of what came. */
static int
fill(struct sb_websocket *w, struct sb_error *err)
{
	uint8_t piece[16384];
	ssize_t n = recv(w->sock, piece, sizeof piece, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return sb_fail(err, SB_E_CLOSED, "the client went away");
	if (n > 0)
		sb_wsframe_add(&w->in, piece, (size_t)n);
	return 0;
}

int
sb_websocket_next(struct sb_websocket *w, int64_t wait_ms, enum sb_wsframe_kind *kind,
	const uint8_t **data, size_t *len, struct sb_error *err)
{
	sb_deadline d = wait_ms < 0 ? SB_NEVER : sb_now_ms() + wait_ms;

	for (;;) {
		int r = sb_wsframe_next(&w->in, kind, data, len, err);

		if (r == SB_E_PROTO)
			sb_websocket_close(w, w->in.bad, "");
		if (r < 0)
			return r;
		if (r == 1 && *kind == SB_WSFRAME_CLOSE) {
			sb_websocket_close(w, 1000, "");
			return sb_fail(err, SB_E_CLOSED, "the client said good-bye");
		}
		if (r == 1 && *kind == SB_WSFRAME_PING)
			r = sb_websocket_send(w, SB_WSFRAME_PONG, *data, *len, SB_WEBSOCKET_SEND_MS,
				err);
		else if (r == 1 && *kind != SB_WSFRAME_PONG)
			return 1;
		else if (r == 0) {
			r = wait_for(w, POLLIN, d, err);
			if (r <= 0)
				return r;
			r = fill(w, err);
		}
		if (r < 0)
			return r;
	}
}
