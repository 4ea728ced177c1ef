/* SPDX-License-Identifier: MIT */
/* One request on one connection, from its options to the end of its answer. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <base/work.h>
#include <cloud/http/rest-priv.h>

#define HEAD_MAX 131072
#define HEADER_MAX 16384
#define ROUND_MS 1000

/* --- what goes out --- */

static bool
one_line(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' && *s != '\t')
			return false;
	return true;
}

static int
add_header(struct sb_rest_try *t, const char *name, const char *value, bool secret,
	struct sb_error *err)
{
	char line[HEADER_MAX];
	struct curl_slist *l;
	int n;

	if (!*name || strpbrk(name, ":; \t") || !one_line(name) || !one_line(value))
		return sb_fail(err, SB_E_INVAL, "%s: header %.40s is more than one line",
			t->client->name, one_line(name) ? name : "");
	/* Without a value it must end with a semicolon, or libcurl leaves it out. */
	n = snprintf(line, sizeof line, *value ? "%s: %s" : "%s;%s", name, value);
	l = (size_t)n < sizeof line ? curl_slist_append(t->headers, line) : NULL;
	explicit_bzero(line, sizeof line);
	if (!l)
		return (size_t)n < sizeof line ?
			sb_fail(err, SB_E_NOMEM, "out of memory") :
			sb_fail(err, SB_E_LIMIT, "%s: header %s is too long", t->client->name,
				name);
	t->headers = l;
	if (secret)
		sb_rest_log_keep(&t->secrets, value);
	return sb_strlist_check(&t->secrets, err);
}

static int
add_bare(struct sb_rest_try *t, const char *line, struct sb_error *err)
{
	struct curl_slist *l = curl_slist_append(t->headers, line);

	if (!l)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	t->headers = l;
	return 0;
}

static bool
named(const struct sb_rest_request *q, const char *name)
{
	for (size_t i = 0; i < q->n_headers; i++)
		if (strcasecmp(q->headers[i].name, name) == 0)
			return true;
	return false;
}

static int
sign(struct sb_rest_try *t, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist more = { 0 };
	int r = t->q->sign(t->n, &more, t->q->sign_arg, err);

	if (r == 0)
		r = sb_strlist_check(&more, err);
	for (size_t i = 0; r == 0 && i < more.n; i++) {
		char *colon = strstr(more.v[i], ": ");

		if (!colon)
			return sb_fail(err, SB_E_INVAL, "%s: a header is \"Name: value\"",
				t->client->name);
		*colon = '\0';
		r = add_header(t, more.v[i], colon + 2, true, err);
		explicit_bzero(colon + 2, strlen(colon + 2));
	}
	return r;
}

static int
make_headers(struct sb_rest_try *t, struct sb_error *err)
{
	const struct sb_rest_request *q = t->q;
	const struct sb_rest *c = t->client;
	int r = add_bare(t, "Expect:", err);

	for (size_t i = 0; r == 0 && i < c->n_headers; i++)
		if (!named(q, c->headers[i].name))
			r = add_header(t, c->headers[i].name, c->headers[i].value,
				c->headers[i].secret, err);
	for (size_t i = 0; r == 0 && i < q->n_headers; i++)
		r = add_header(t, q->headers[i].name, q->headers[i].value,
			q->headers[i].secret ||
				sb_rest_log_secret(q->headers[i].name, strlen(q->headers[i].name)),
			err);
	if (r == 0 && q->sign)
		r = sign(t, err);
	if (r == 0 && q->json)
		r = add_header(t, "Content-Type", "application/json", false, err);
	else if (r == 0 && q->type)
		r = add_header(t, "Content-Type", q->type, false, err);
	else if (r == 0 && !named(q, "Content-Type"))
		r = add_bare(t, "Content-Type:", err);
	return r;
}

/* --- callbacks: what they find wrong stays in t->err --- */

static void
moves(struct sb_rest_try *t)
{
	t->moved_at = sb_now_ms();
}

static int
on_ready(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct sb_rest_try *t = arg;

	(void)ip;
	(void)local_ip;
	(void)port;
	(void)local_port;
	/* libcurl found a kept connection dead and took another: a new try, which it may not make.
	 */
	t->stale = t->sent;
	if (t->stale)
		return CURL_PREREQFUNC_ABORT;
	t->sent = true;
	moves(t);
	return CURL_PREREQFUNC_OK;
}

static size_t
on_read(char *buf, size_t one, size_t n, void *arg)
{
	struct sb_rest_try *t = arg;
	struct pollfd p = { .fd = t->q->read_fd, .events = POLLIN };
	ssize_t got;

	if (p.fd >= 0 && poll(&p, 1, 0) == 0) {
		t->waiting = true;
		return CURL_READFUNC_PAUSE;
	}
	t->read_begun = true;
	got = t->q->read(buf, one * n, t->q->read_arg, &t->err);
	moves(t);
	if (got >= 0)
		return (size_t)got;
	t->err.code = t->err.code < 0 ? t->err.code : (int)got;
	return CURL_READFUNC_ABORT;
}

static int
take_header(struct sb_rest_try *t, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *value = colon + 1;
	size_t name = colon ? (size_t)(colon - line) : 0;
	struct sb_strlist *to = &t->a->headers;
	char *text;

	if (name == 0)
		return 0;
	while (value < line + len && (*value == ' ' || *value == '\t'))
		value++;
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (value > line + len)
		value = line + len;
	sb_strlist_addf(to, "%.*s: %.*s", (int)name, line, (int)(line + len - value), value);
	if (sb_strlist_check(to, &t->err) < 0)
		return t->err.code;
	text = to->v[to->n - 1];
	for (size_t i = 0; i < name; i++)
		text[i] = (char)tolower((unsigned char)text[i]);
	return 0;
}

static bool
good(const struct sb_rest_try *t)
{
	return t->a->status >= 200 && t->a->status <= 299;
}

static size_t
on_head(char *data, size_t one, size_t n, void *arg)
{
	struct sb_rest_try *t = arg;
	size_t len = one * n;
	long status = 0;

	moves(t);
	t->head_len += len;
	if (t->head_len > HEAD_MAX) {
		(void)sb_fail(&t->err, SB_E_LIMIT, "%s: the header of the answer is too long",
			t->client->name);
		return 0;
	}
	while (len > 0 && (data[len - 1] == '\n' || data[len - 1] == '\r'))
		len--;
	if (t->in_body)
		return take_header(t, data, len) < 0 ? 0 : n; /* a trailer */
	if (len > 5 && memcmp(data, "HTTP/", 5) == 0) {
		sb_strlist_free(&t->a->headers);
		return n;
	}
	if (len > 0)
		return take_header(t, data, len) < 0 ? 0 : n;
	(void)curl_easy_getinfo(t->h->easy, CURLINFO_RESPONSE_CODE, &status);
	t->a->status = (int)status;
	t->in_body = status >= 200;
	if (t->q->head && good(t)) {
		int r = t->q->head(t->a, t->q->write_arg, &t->err);

		moves(t);
		if (r < 0) {
			t->err.code = t->err.code < 0 ? t->err.code : r;
			return 0;
		}
	}
	return n;
}

static size_t
on_data(char *data, size_t one, size_t n, void *arg)
{
	struct sb_rest_try *t = arg;
	struct sb_buf *b = &t->a->body;
	size_t room;
	int r = 0;

	(void)one;
	moves(t);
	if (good(t) && t->q->write) {
		t->handed_on = t->handed_on || n > 0;
		r = t->q->write(data, n, t->q->write_arg, &t->err);
		moves(t);
	} else if (good(t)) {
		sb_buf_add(b, data, n);
		r = sb_buf_check(b, "answer", &t->err);
		if (r == SB_E_FULL)
			r = sb_fail(&t->err, SB_E_LIMIT, "%s: the answer is longer than %zu bytes",
				t->client->name, b->max);
	} else {
		room = b->max - b->len;
		t->a->cut = t->a->cut || n > room;
		sb_buf_add(b, data, n < room ? n : room);
		r = sb_buf_check(b, "answer", &t->err);
	}
	if (r >= 0)
		return n;
	t->err.code = t->err.code < 0 ? t->err.code : r;
	return 0;
}

/* --- options --- */

static void
set_body(struct sb_rest_try *t)
{
	const struct sb_rest_request *q = t->q;
	bool wants_body = strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0 ||
		strcmp(q->method, "PATCH") == 0;
	CURL *e = t->h->easy;

	if (q->read) {
		(void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE,
			q->chunked ? (curl_off_t)-1 : (curl_off_t)q->body_len);
		(void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
		(void)curl_easy_setopt(e, CURLOPT_READDATA, t);
	} else if (t->body || wants_body) {
		(void)curl_easy_setopt(e, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
		(void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, t->body ? t->body : "");
	} else if (strcmp(q->method, "HEAD") == 0) {
		(void)curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	}
	(void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
}

static void
set_way(struct sb_rest_try *t)
{
	const struct sb_rest *c = t->client;
	CURL *e = t->h->easy;

	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A resolver that hangs does not hold up a cancel. */
	(void)curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
#endif
	if (c->proxy)
		(void)curl_easy_setopt(e, CURLOPT_PROXY, c->proxy);
	if (c->socket)
		(void)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->socket);
	if (c->ca_file) {
		(void)curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
		(void)curl_easy_setopt(e, CURLOPT_PROXY_CAINFO, c->ca_file);
	} else if (c->ca_dir) {
		(void)curl_easy_setopt(e, CURLOPT_CAPATH, c->ca_dir);
		(void)curl_easy_setopt(e, CURLOPT_PROXY_CAPATH, c->ca_dir);
	}
	if (c->cert_file) {
		(void)curl_easy_setopt(e, CURLOPT_SSLCERT, c->cert_file);
		(void)curl_easy_setopt(e, CURLOPT_SSLKEY, c->key_file);
	}
	(void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
		(long)(t->q->connect_ms > 0 ? t->q->connect_ms : c->o.connect_ms));
}

static void
set_options(struct sb_rest_try *t, const char *url)
{
	CURL *e = t->h->easy;

	curl_easy_reset(e);
	(void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->curl_msg);
	(void)curl_easy_setopt(e, CURLOPT_URL, url);
	(void)curl_easy_setopt(e, CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
	set_way(t);
	set_body(t);
	(void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
	if (t->q->gunzip)
		(void)curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	(void)curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_ready);
	(void)curl_easy_setopt(e, CURLOPT_PREREQDATA, t);
	(void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	(void)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	(void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
	(void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
}

/* --- the transfer --- */

static int
transport_error(const struct sb_rest_try *t, CURLcode rc, struct sb_error *err)
{
	const char *why = t->curl_msg[0] ? t->curl_msg : curl_easy_strerror(rc);
	int code = SB_E_CLOSED;
	long sys = 0;

	/* libcurl speaks of a host and a port also where there is only a socket. */
	if (t->client->socket && rc == CURLE_COULDNT_CONNECT) {
		(void)curl_easy_getinfo(t->h->easy, CURLINFO_OS_ERRNO, &sys);
		errno = (int)sys;
		(void)sb_fail_errno(err, "connect to %s", t->client->name);
		err->code = SB_E_CONNECT;
		return SB_E_CONNECT;
	}
	if (t->stale)
		return sb_fail(err, SB_E_CLOSED, "%s: connection closed before an answer came",
			t->client->name);
	switch (rc) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_SSL_CONNECT_ERROR: code = SB_E_CONNECT; break;
	case CURLE_OPERATION_TIMEDOUT: code = t->sent ? SB_E_TIMEOUT : SB_E_CONNECT; break;
	case CURLE_OUT_OF_MEMORY: code = SB_E_NOMEM; break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE: code = SB_E_HOSTKEY; break;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_HTTP2:
	case CURLE_BAD_CONTENT_ENCODING: code = SB_E_PROTO; break;
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR: code = SB_E_CONNECT; break;
	default: break;
	}
	/* Whoever hears of no connection may take it that nothing went out. */
	if (code == SB_E_CONNECT && t->sent)
		code = SB_E_CLOSED;
	return sb_fail(err, code, "%s: %s", t->client->name, why);
}

/* Counts what moved; SB_E_TIMEOUT when nothing has for too long. `*left` is lowered. */
static int
check_stall(struct sb_rest_try *t, int *left, struct sb_error *err)
{
	int64_t limit = t->q->stall_ms ? t->q->stall_ms : t->client->o.stall_ms, quiet;
	curl_off_t up = 0, down = 0;

	(void)curl_easy_getinfo(t->h->easy, CURLINFO_SIZE_UPLOAD_T, &up);
	(void)curl_easy_getinfo(t->h->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	if (up + down != t->moved) {
		t->moved = up + down;
		moves(t);
	}
	/* Who waits for the caller's bytes does not stall. */
	if (limit <= 0 || !t->sent || t->waiting)
		return 0;
	quiet = sb_now_ms() - t->moved_at;
	if (quiet >= limit)
		return sb_fail(err, SB_E_TIMEOUT, "%s: no byte moved for %lld ms", t->client->name,
			(long long)limit);
	if (limit - quiet < *left)
		*left = (int)(limit - quiet);
	return 0;
}

/* Waits for the connection, a token, or bytes of the caller. */
static int
wait_round(struct sb_rest_try *t, const struct sb_rest_wait *w, struct sb_error *err)
{
	struct curl_waitfd extra[3];
	unsigned n = 0;
	int left = sb_deadline_poll_ms(w->deadline), r;
	int fds[2] = { sb_cancel_fd(w->cancel), sb_cancel_fd(sb_rest_again_token()) };

	if (left < 0 || left > ROUND_MS)
		left = ROUND_MS;
	r = check_stall(t, &left, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			extra[n++] =
				(struct curl_waitfd){ .fd = fds[i], .events = CURL_WAIT_POLLIN };
	if (t->waiting)
		extra[n++] =
			(struct curl_waitfd){ .fd = t->q->read_fd, .events = CURL_WAIT_POLLIN };
	(void)curl_multi_poll(t->h->multi, extra, n, left, NULL);
	if (t->waiting) {
		struct pollfd p = { .fd = t->q->read_fd, .events = POLLIN };

		if (poll(&p, 1, 0) != 0) {
			t->waiting = false;
			moves(t);
			(void)curl_easy_pause(t->h->easy, CURLPAUSE_CONT);
		}
	}
	return 0;
}

static int
drive(struct sb_rest_try *t, const struct sb_rest_wait *w, struct sb_error *err)
{
	int running = 1, left, r;
	CURLMsg *msg;

	for (;;) {
		r = sb_check_alive(w->cancel, w->deadline, t->client->name, err);
		if (r == 0)
			r = sb_work_alive(err);
		if (r < 0)
			return r;
		if (curl_multi_perform(t->h->multi, &running) != CURLM_OK)
			return sb_fail(err, SB_E_SYS, "%s: transfer failed", t->client->name);
		if (running == 0)
			break;
		r = wait_round(t, w, err);
		if (r < 0)
			return r;
	}
	while ((msg = curl_multi_info_read(t->h->multi, &left)) != NULL) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		if (t->err.code < 0) {
			*err = t->err;
			return err->code;
		}
		if (msg->data.result != CURLE_OK)
			return transport_error(t, msg->data.result, err);
	}
	return 0;
}

static int
transfer(struct sb_rest_try *t, const struct sb_rest_wait *w, struct sb_error *err)
{
	sb_autofree char *url = sb_str_printf("%s%s", t->client->base, t->q->target);
	long status = 0;
	int r;

	if (!url)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	set_options(t, url);
	if (curl_multi_add_handle(t->h->multi, t->h->easy) != CURLM_OK)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_rest_log_sent(t);
	moves(t);
	r = drive(t, w, err);
	(void)curl_easy_getinfo(t->h->easy, CURLINFO_RESPONSE_CODE, &status);
	t->a->status = (int)status;
	(void)curl_multi_remove_handle(t->h->multi, t->h->easy);
	if (r == 0 && !good(t))
		sb_rest_log_redact(&t->secrets, (char *)t->a->body.data, t->a->body.len);
	return r;
}

int
sb_rest_try_run(struct sb_rest_try *t, const struct sb_rest_wait *w, struct sb_error *err)
{
	const struct sb_rest_request *q = t->q;
	char *text = NULL;
	int r;

	sb_buf_init(&t->a->body, q->max_body ? q->max_body : t->client->o.max_body);
	if (q->json) {
		text = json_dumps(q->json, JSON_COMPACT);
		if (!text)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		t->body = text;
		t->body_len = strlen(text);
	} else if (!q->read) {
		t->body = q->body;
		t->body_len = q->body_len;
	}
	r = make_headers(t, err);
	/* What the caller made wrong, nobody tries again. */
	if (r < 0)
		t->err = *err;
	else
		r = transfer(t, w, err);
	if (text)
		explicit_bzero(text, t->body_len);
	free(text);
	t->body = NULL;
	return r;
}

void
sb_rest_try_end(struct sb_rest_try *t)
{
	for (struct curl_slist *l = t->headers; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	for (size_t i = 0; i < t->secrets.n; i++)
		explicit_bzero(t->secrets.v[i], strlen(t->secrets.v[i]));
	sb_strlist_free(&t->secrets);
}
