/* SPDX-License-Identifier: MIT */
/* A Connect client over libcurl: unary calls and streams (declared in sb/rpc.h). */
#include "config.h"

#include <sb/rpc.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <jansson.h>

#include <base/buf.h>
#include <base/str.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/gzip.h>

struct sb_rpc_client {
	CURLM *multi;
	CURL *easy;
	char *socket; /* of "unix:" */
	char *base;   /* URL up to and with the service and a slash */
	char *shown;  /* the address, for messages */
	char *token;
	char *ca_file;
	int64_t connect_ms;
	size_t max_message;
	char curl_msg[CURL_ERROR_SIZE];
};

/* One call under way. */
struct transfer {
	struct sb_rpc_client *client;
	struct sb_buf in; /* what came and is not used up */
	bool streaming;
	bool ok_stream; /* the answer really is a stream */
	bool ended;     /* the end-of-stream message came */
	sb_rpc_message_fn fn;
	void *arg;
	struct sb_error err; /* what the write callback found */
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void
init_curl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void
sb_rpc_client_free(struct sb_rpc_client *c)
{
	if (!c)
		return;
	if (c->easy)
		curl_easy_cleanup(c->easy);
	if (c->multi)
		(void)curl_multi_cleanup(c->multi);
	free(c->socket);
	free(c->base);
	free(c->shown);
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->ca_file);
	free(c);
}

static int
set_address(struct sb_rpc_client *c, const char *address, const char *service, struct sb_error *err)
{
	const char *path = sb_str_starts(address, "unix:") ? address + 5 : address;

	if (sb_str_starts(address, "http://") || sb_str_starts(address, "https://")) {
		size_t n = strlen(address);

		while (n > 0 && address[n - 1] == '/')
			n--;
		c->base = sb_str_printf("%.*s/%s/", (int)n, address, service);
	} else if (path != address || (strchr(address, '/') && !strstr(address, "://"))) {
		c->socket = strdup(path);
		c->base = sb_str_printf("http://localhost/%s/", service);
		if (!c->socket)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
	} else {
		return sb_fail(err, SB_E_INVAL,
			"address %s must be unix:PATH, http://HOST:PORT or https://HOST:PORT",
			address);
	}
	c->shown = strdup(address);
	return c->base && c->shown ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

struct sb_rpc_client *
sb_rpc_client_new(const struct sb_rpc_client_opts *o, struct sb_error *err)
{
	struct sb_rpc_client *c = calloc(1, sizeof *c);

	(void)pthread_once(&curl_once, init_curl);
	if (!c) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	c->connect_ms = o->connect_ms;
	c->max_message = o->max_message;
	if (set_address(c, o->address, o->service, err) < 0) {
		sb_rpc_client_free(c);
		return NULL;
	}
	c->multi = curl_multi_init();
	c->easy = curl_easy_init();
	c->token = o->token ? strdup(o->token) : NULL;
	c->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
	if (!c->multi || !c->easy || (o->token && !c->token) || (o->ca_file && !c->ca_file)) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		sb_rpc_client_free(c);
		return NULL;
	}
	return c;
}

/* Hands a message of the stream on, or takes the one that ends it. */
static int
take_message(struct transfer *t, uint8_t flags, const uint8_t *msg, size_t len)
{
	sb_auto(sb_buf) struct sb_buf plain;
	json_t *end, *error;

	sb_buf_init(&plain, t->client->max_message);
	if ((flags & SB_RPC_FLAG_COMPRESSED) && len > 0) {
		if (sb_rpc_gzip_inflate(msg, len, &plain, &t->err) < 0)
			return t->err.code;
	} else {
		sb_buf_add(&plain, msg, len);
		if (sb_buf_check(&plain, "message", &t->err) < 0)
			return t->err.code;
	}
	if (!(flags & SB_RPC_FLAG_END))
		return t->fn((const char *)plain.data, plain.len, t->arg, &t->err);
	t->ended = true;
	end = json_loadb((const char *)plain.data, plain.len, 0, NULL);
	if (!json_is_object(end))
		(void)sb_fail(&t->err, SB_E_PROTO, "the end of the stream is not a JSON object");
	else if ((error = json_object_get(end, "error")) != NULL)
		(void)sb_rpc_failure_parse(error, 200, &t->err);
	json_decref(end);
	return t->err.code;
}

static int
take_stream(struct transfer *t)
{
	size_t used = 0, len = 0;
	const uint8_t *msg = NULL;
	uint8_t flags = 0;
	int r;

	while ((r = sb_rpc_envelope_next(t->in.data + used, t->in.len - used,
			t->client->max_message, &flags, &msg, &len, &t->err)) > 0) {
		if (t->ended)
			return sb_fail(&t->err, SB_E_PROTO, "message behind the end of the stream");
		r = take_message(t, flags, msg, len);
		if (r < 0)
			break;
		used += SB_RPC_ENVELOPE_SIZE + len;
	}
	sb_buf_consume(&t->in, used);
	if (r < 0 && t->err.code == 0)
		t->err.code = r;
	return r;
}

static size_t
on_data(char *data, size_t one, size_t n, void *arg)
{
	struct transfer *t = arg;
	long status = 0;

	(void)one;
	sb_buf_add(&t->in, data, n);
	if (sb_buf_check(&t->in, "answer", &t->err) < 0)
		return 0;
	if (t->streaming && !t->ok_stream) {
		const char *type = NULL;

		(void)curl_easy_getinfo(t->client->easy, CURLINFO_RESPONSE_CODE, &status);
		(void)curl_easy_getinfo(t->client->easy, CURLINFO_CONTENT_TYPE, &type);
		t->ok_stream =
			status == 200 && type && strcmp(type, "application/connect+json") == 0;
	}
	if (t->ok_stream && take_stream(t) < 0)
		return 0;
	return n;
}

static int
transport_error(struct sb_rpc_client *c, CURLcode rc, struct sb_error *err)
{
	const char *why = c->curl_msg[0] ? c->curl_msg : curl_easy_strerror(rc);
	int code = SB_E_CLOSED;
	long sys = 0;

	/* libcurl speaks of a host and a port also where there is only a socket. */
	if (c->socket && rc == CURLE_COULDNT_CONNECT) {
		(void)curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &sys);
		errno = (int)sys;
		(void)sb_fail_errno(err, "connect to %s", c->shown);
		if (err)
			err->code = SB_E_CONNECT;
		return SB_E_CONNECT;
	}

	switch (rc) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY: code = SB_E_CONNECT; break;
	case CURLE_OPERATION_TIMEDOUT: code = SB_E_TIMEOUT; break;
	case CURLE_OUT_OF_MEMORY: code = SB_E_NOMEM; break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE: code = SB_E_HOSTKEY; break;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING: code = SB_E_PROTO; break;
	default: break;
	}
	return sb_fail(err, code, "%s: %s", c->shown, why);
}

/* Drives the transfer to its end, its cancel or its deadline. */
static int
drive(struct sb_rpc_client *c, struct transfer *t, const struct sb_rpc_wait *w,
	struct sb_error *err)
{
	const struct sb_cancel *cancel = w ? w->cancel : NULL;
	sb_deadline d = w ? w->deadline : SB_NEVER;
	struct curl_waitfd extra = { .fd = sb_cancel_fd(cancel), .events = CURL_WAIT_POLLIN };
	int running = 1, left;
	CURLMsg *msg;
	int r;

	for (;;) {
		r = sb_check_alive(cancel, d, c->shown, err);
		if (r < 0)
			return r;
		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			return sb_fail(err, SB_E_SYS, "%s: transfer failed", c->shown);
		if (running == 0)
			break;
		left = sb_deadline_poll_ms(d);
		(void)curl_multi_poll(c->multi, &extra, extra.fd >= 0 ? 1 : 0,
			left < 0 || left > 1000 ? 1000 : left, NULL);
	}
	while ((msg = curl_multi_info_read(c->multi, &left)) != NULL) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		if (t->err.code < 0) {
			if (err)
				*err = t->err;
			return t->err.code;
		}
		if (msg->data.result != CURLE_OK)
			return transport_error(c, msg->data.result, err);
	}
	return 0;
}

/* Appends and frees the list on failure; `*failed` sticks. */
static struct curl_slist *add_header(struct curl_slist *l, bool *failed, const char *fmt, ...)
	SB_PRINTF(3, 4);

static struct curl_slist *
add_header(struct curl_slist *l, bool *failed, const char *fmt, ...)
{
	char text[4200];
	struct curl_slist *next;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	next = n < 0 || (size_t)n >= sizeof text ? NULL : curl_slist_append(l, text);
	explicit_bzero(text, sizeof text);
	*failed = *failed || !next;
	return next ? next : l;
}

static struct curl_slist *
headers_for(const struct sb_rpc_client *c, bool streaming, sb_deadline d, bool *failed)
{
	struct curl_slist *l = NULL;

	l = add_header(l, failed, "Content-Type: application/%sjson", streaming ? "connect+" : "");
	l = add_header(l, failed, "Connect-Protocol-Version: 1");
	l = add_header(l, failed, "Expect:");
	if (streaming)
		l = add_header(l, failed, "Connect-Accept-Encoding: gzip");
	if (c->token)
		l = add_header(l, failed, "Authorization: Bearer %s", c->token);
	if (d != SB_NEVER) {
		int64_t left = d - sb_now_ms();

		l = add_header(l, failed, "Connect-Timeout-Ms: %lld",
			(long long)(left < 1              ? 1 :
					left > 9999999999 ? 9999999999 :
							    left));
	}
	return l;
}

static void
set_options(struct sb_rpc_client *c, struct transfer *t, const char *url,
	const struct curl_slist *headers, const void *body, size_t len)
{
	CURL *e = c->easy;

	curl_easy_reset(e);
	c->curl_msg[0] = '\0';
	(void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->curl_msg);
	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(e, CURLOPT_URL, url);
	/* An environment proxy is not for a host on this machine or in this fleet. */
	(void)curl_easy_setopt(e, CURLOPT_PROXY, "");
	if (c->socket)
		(void)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->socket);
	if (c->ca_file)
		(void)curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
	(void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms);
	(void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(e, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	(void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, body);
	if (!t->streaming)
		(void)curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	(void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
	(void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
}

static int
perform(struct sb_rpc_client *c, struct transfer *t, const char *method, const void *body,
	size_t len, const struct sb_rpc_wait *w, long *status, struct sb_error *err)
{
	sb_autofree char *url = sb_str_printf("%s%s", c->base, method);
	bool failed = false;
	struct curl_slist *headers =
		headers_for(c, t->streaming, w ? w->deadline : SB_NEVER, &failed);
	int r;

	if (!url || failed) {
		curl_slist_free_all(headers);
		return sb_fail(err, url ? SB_E_INVAL : SB_E_NOMEM,
			url ? "token is too long" : "out of memory");
	}
	sb_buf_init(&t->in, c->max_message + SB_RPC_ENVELOPE_SIZE + CURL_MAX_WRITE_SIZE);
	set_options(c, t, url, headers, body, len);
	(void)curl_multi_add_handle(c->multi, c->easy);
	r = drive(c, t, w, err);
	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, status);
	(void)curl_multi_remove_handle(c->multi, c->easy);
	curl_slist_free_all(headers);
	return r;
}

/* The error in an answer that is not a success. */
static int
answer_error(const struct transfer *t, long status, struct sb_error *err)
{
	json_t *obj = json_loadb((const char *)t->in.data, t->in.len, 0, NULL);
	int r = sb_rpc_failure_parse(json_is_object(obj) ? obj : NULL, (int)status, err);

	json_decref(obj);
	return r;
}

int
sb_rpc_client_call(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, char **out, size_t *out_len, struct sb_error *err)
{
	struct transfer t = { .client = c };
	long status = 0;
	int r;

	if (!json)
		json = "{}";
	r = perform(c, &t, method, json, strlen(json), wait, &status, err);
	if (r == 0 && status != 200)
		r = answer_error(&t, status, err);
	if (r == 0) {
		*out = (char *)sb_buf_detach(&t.in, out_len);
		if (!*out)
			r = sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	sb_buf_free(&t.in);
	return r;
}

int
sb_rpc_client_stream(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, sb_rpc_message_fn fn, void *arg, struct sb_error *err)
{
	struct transfer t = { .client = c, .streaming = true, .fn = fn, .arg = arg };
	sb_auto(sb_buf) struct sb_buf body;
	uint8_t head[SB_RPC_ENVELOPE_SIZE];
	long status = 0;
	int r;

	if (!json)
		json = "{}";
	sb_buf_init(&body, c->max_message + sizeof head);
	sb_rpc_envelope_head(head, 0, (uint32_t)strlen(json));
	sb_buf_add(&body, head, sizeof head);
	sb_buf_add_str(&body, json);
	r = sb_buf_check(&body, "request", err);
	if (r == 0)
		r = perform(c, &t, method, body.data, body.len, wait, &status, err);
	if (r == 0 && !t.ok_stream)
		r = status == 200 ?
			sb_fail(err, SB_E_PROTO, "%s: the answer is not a stream", c->shown) :
			answer_error(&t, status, err);
	if (r == 0 && !t.ended)
		r = sb_fail(err, SB_E_CLOSED, "%s: the stream was cut off", c->shown);
	sb_buf_free(&t.in);
	return r;
}
