/* SPDX-License-Identifier: MIT */
/*
 * The client's half of Attach: a command in a session, its three streams over an upgraded
 * connection as frames (rpc/protocol/attach-frame.h). sb_rpc_attach of sb/rpc.h.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/str.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/attach-frame.h>
#include <sb/rpc.h>

#define HEAD_MAX 16384
#define CHUNK 32768
#define HIGH (4 * SB_RPC_ATTACH_FRAME_MAX)

struct attach {
	const struct sb_rpc_client_opts *o;
	CURL *easy;
	curl_socket_t sock;
	int fds[3]; /* stdin, stdout, stderr of the caller; stdin -1 once it ended or nobody takes
		       it */
	bool over;  /* the last frame has come */
	int code;
	struct sb_buf in, out;
};

/* Connects and gives what to ask for: the path of the URL. */
static int
open_connection(struct attach *a, char **host, struct sb_error *err)
{
	const char *address = a->o->address;
	const char *path = sb_str_starts(address, "unix:") ? address + 5 : address;
	bool http = sb_str_starts(address, "http://") || sb_str_starts(address, "https://");
	char msg[CURL_ERROR_SIZE] = "";
	CURLcode rc;

	if (!http && path == address && !strchr(address, '/'))
		return sb_fail(err, SB_E_INVAL,
			"address %s must be unix:PATH, http://HOST:PORT or https://HOST:PORT",
			address);
	a->easy = curl_easy_init();
	*host = http ? strndup(strstr(address, "//") + 2, strcspn(strstr(address, "//") + 2, "/")) :
		       strdup("localhost");
	if (!a->easy || !*host)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	(void)curl_easy_setopt(a->easy, CURLOPT_ERRORBUFFER, msg);
	(void)curl_easy_setopt(a->easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(a->easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(a->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(a->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(a->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(a->easy, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(a->easy, CURLOPT_URL, http ? address : "http://localhost/");
	if (!http)
		(void)curl_easy_setopt(a->easy, CURLOPT_UNIX_SOCKET_PATH, path);
	if (a->o->ca_file)
		(void)curl_easy_setopt(a->easy, CURLOPT_CAINFO, a->o->ca_file);
	(void)curl_easy_setopt(a->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)a->o->connect_ms);
	rc = curl_easy_perform(a->easy);
	(void)curl_easy_setopt(a->easy, CURLOPT_ERRORBUFFER, NULL);
	if (rc == CURLE_OK)
		rc = curl_easy_getinfo(a->easy, CURLINFO_ACTIVESOCKET, &a->sock);
	if (rc != CURLE_OK || a->sock == CURL_SOCKET_BAD)
		return sb_fail(err, SB_E_CONNECT, "%s: %s", address,
			*msg ? msg : curl_easy_strerror(rc));
	return 0;
}

/*
 * Sends what waits, as much as goes. A host that is done closes while we still send: what counts is
 * what it said before.
 */
static void
send_some(struct attach *a)
{
	size_t n = 0;
	CURLcode rc =
		a->out.len > 0 ? curl_easy_send(a->easy, a->out.data, a->out.len, &n) : CURLE_OK;

	if (rc != CURLE_OK && rc != CURLE_AGAIN) {
		a->fds[0] = -1;
		n = a->out.len;
		explicit_bzero(a->out.data, n);
	}
	sb_buf_consume(&a->out, n);
}

/* Reads what is there; `*end` when the host closed, be it by a reset. */
static int
recv_some(struct attach *a, bool *end, struct sb_error *err)
{
	char chunk[CHUNK];
	size_t n = 0;
	CURLcode rc;

	*end = false;
	while (a->in.len < HIGH) {
		rc = curl_easy_recv(a->easy, chunk, sizeof chunk, &n);
		if (rc == CURLE_AGAIN)
			break;
		if (rc != CURLE_OK || n == 0) {
			*end = true;
			break;
		}
		sb_buf_add(&a->in, chunk, n);
	}
	return sb_buf_check(&a->in, "answer", err);
}

/* One round of waiting and moving bytes to and from the host. */
static int
turn(struct attach *a, bool read_stdin, const struct sb_rpc_wait *w, bool *end,
	struct sb_error *err)
{
	const struct sb_cancel *cancel = w ? w->cancel : NULL;
	sb_deadline d = w ? w->deadline : SB_NEVER;
	struct pollfd p[] = {
		{ .fd = a->sock, .events = (short)(POLLIN | (a->out.len ? POLLOUT : 0)) },
		{ .fd = read_stdin && a->out.len < HIGH ? a->fds[0] : -1, .events = POLLIN },
		{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
	};
	size_t before = a->in.len;
	char chunk[CHUNK];
	ssize_t n;
	int r = sb_check_alive(cancel, d, a->o->address, err);

	if (r < 0)
		return r;
	/* TLS may hold bytes that the socket does not show. */
	r = recv_some(a, end, err);
	if (r < 0 || a->in.len > before || *end)
		return r;
	if (poll(p, 3, sb_deadline_poll_ms(d)) < 0 && errno != EINTR)
		return sb_fail_errno(err, "poll");
	if (p[1].revents) {
		n = read(a->fds[0], chunk, sizeof chunk);
		if (n > 0) {
			sb_rpc_attach_frame_put(&a->out, SB_RPC_ATTACH_FRAME_DATA, chunk,
				(size_t)n);
		} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
			sb_rpc_attach_frame_put(&a->out, SB_RPC_ATTACH_FRAME_EOF, NULL, 0);
			a->fds[0] = -1;
		}
	}
	send_some(a);
	return recv_some(a, end, err);
}

static int
write_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return -1;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int
failure(const void *text, size_t len, int http, struct sb_error *err)
{
	json_t *o = json_loadb(text, len, 0, NULL);
	int r = sb_rpc_failure_parse(o, http, err);

	json_decref(o);
	return r;
}

static int
take_frames(struct attach *a, struct sb_error *err)
{
	enum sb_rpc_attach_frame what;
	const uint8_t *data;
	size_t len;
	int r;

	while ((r = sb_rpc_attach_frame_next(&a->in, &what, &data, &len, err)) == 1) {
		if (what == SB_RPC_ATTACH_FRAME_ERROR)
			return failure(data, len, 0, err);
		if (what == SB_RPC_ATTACH_FRAME_EXIT && len == 4) {
			a->code = data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3];
			a->over = true;
			return 0;
		}
		if (what > SB_RPC_ATTACH_FRAME_STDERR)
			return sb_fail(err, SB_E_PROTO, "%s: frame of kind %d", a->o->address,
				(int)what);
		if (write_all(a->fds[what == SB_RPC_ATTACH_FRAME_DATA ? 1 : 2], data, len) < 0)
			return sb_fail_errno(err, "write");
		sb_buf_consume(&a->in, SB_RPC_ENVELOPE_SIZE + len);
	}
	return r;
}

/* The request line and header. */
static int
ask(struct attach *a, const char *host, const char *json, struct sb_error *err)
{
	char *query = curl_easy_escape(a->easy, json, 0);

	if (!query)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_buf_addf(&a->out,
		"GET /%s/Attach?connect=v1&encoding=json&message=%s HTTP/1.1\r\nHost: %s\r\n",
		a->o->service, query, host);
	sb_buf_addf(&a->out,
		"Connection: Upgrade\r\nUpgrade: %s\r\nConnect-Protocol-Version: 1\r\n",
		SB_RPC_ATTACH_FRAME_PROTOCOL);
	if (a->o->token)
		sb_buf_addf(&a->out, "Authorization: Bearer %s\r\n", a->o->token);
	sb_buf_add_str(&a->out, "\r\n");
	curl_free(query);
	return sb_buf_check(&a->out, "request", err);
}

/* The answer to it: the way is free, or why not. */
static int
answer(struct attach *a, const struct sb_rpc_wait *w, struct sb_error *err)
{
	const char *body;
	bool end = false;
	int status = 0;
	int r = 0;

	while (r == 0 && !(a->in.len && strstr((const char *)a->in.data, "\r\n\r\n")) && !end &&
		a->in.len < HEAD_MAX)
		r = turn(a, false, w, &end, err);
	if (r < 0)
		return r;
	if (end && a->in.len == 0)
		return sb_fail(err, SB_E_CLOSED, "%s: the connection ended before the answer",
			a->o->address);
	body = a->in.len ? strstr((const char *)a->in.data, "\r\n\r\n") : NULL;
	if (!body || sscanf((const char *)a->in.data, "HTTP/1.1 %d", &status) != 1)
		return sb_fail(err, end ? SB_E_CLOSED : SB_E_PROTO,
			"%s: not the answer of a sandbox host", a->o->address);
	body += 4;
	if (status == 101) {
		sb_buf_consume(&a->in, (size_t)(body - (const char *)a->in.data));
		return 0;
	}
	/* An error ends with the connection or after its few bytes. */
	while (r == 0 && !end && !strchr(strstr((const char *)a->in.data, "\r\n\r\n"), '}'))
		r = turn(a, false, w, &end, err);
	body = strstr((const char *)a->in.data, "\r\n\r\n") + 4;
	return r < 0 ? r : failure(body, strlen(body), status, err);
}

int
sb_rpc_attach(const struct sb_rpc_client_opts *o, const char *json, const int fds[3],
	const struct sb_rpc_wait *w, int *out_code, struct sb_error *err)
{
	struct attach a = { .o = o, .sock = CURL_SOCKET_BAD, .fds = { fds[0], fds[1], fds[2] } };
	sb_autofree char *host = NULL;
	struct sb_error why = { 0 };
	bool end = false;
	int r;

	sb_buf_init(&a.in, 2 * HIGH);
	sb_buf_init(&a.out, 2 * HIGH);
	r = open_connection(&a, &host, &why);
	if (r == 0)
		r = ask(&a, host, json, &why);
	if (r == 0)
		r = answer(&a, w, &why);
	while (r == 0 && !a.over) {
		r = take_frames(&a, &why);
		if (r == 0 && !a.over && end)
			r = sb_fail(&why, SB_E_CLOSED,
				"%s: the connection ended before the command", o->address);
		if (r == 0 && !a.over)
			r = turn(&a, true, w, &end, &why);
	}
	if (a.easy)
		curl_easy_cleanup(a.easy);
	if (a.out.len)
		explicit_bzero(a.out.data, a.out.len);
	sb_buf_free(&a.in);
	sb_buf_free(&a.out);
	if (r == 0)
		*out_code = a.code;
	else if (err)
		*err = why;
	return r;
}
