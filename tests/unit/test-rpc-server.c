/* SPDX-License-Identifier: MIT */
/* The RPC server over real sockets: calls, streams, limits, tokens, slow and vanished clients. */
#include "config.h"

#include <pthread.h>
#include <sys/stat.h>

#include <rpc/protocol/envelope.h>
#include <rpc/protocol/gzip.h>
#include <tests/unit/rpc-toy.h>

#define POST(method, headers, body) \
	"POST /toy.v1.Toy/" method " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" headers \
	"\r\n" body

static void
expect(const struct rig *r, const char *request, const char *first, const char *part)
{
	sb_autofree char *got = rig_text(r, request);

	assert_has(got, first);
	assert_has(got, part);
}

static void
call_ok(struct sb_rpc_client *c, const char *method, const char *json, const char *part)
{
	struct sb_error err = { 0 };
	sb_autofree char *out = NULL;
	size_t len;

	assert_ok(sb_rpc_client_call(c, method, json, NULL, &out, &len, &err), &err);
	assert_has(out, part);
}

static void
call_fails(struct sb_rpc_client *c, const char *method, const char *json, int code)
{
	struct sb_error err = { 0 };
	sb_autofree char *out = NULL;
	size_t len;

	assert_fails(sb_rpc_client_call(c, method, json, NULL, &out, &len, &err), code, &err);
}

static void
unary_calls_work_on_both_sockets(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_rpc_client *tcp = rig_client(r->url, TOY_ADMIN, NULL);

	(void)state;
	for (int i = 0; i < 20; i++) {
		call_ok(r->client, "Echo", "{\"Text\":\"hi\"}",
			"\"Text\":\"hi\",\"Who\":\"socket\"");
		call_ok(tcp, "Echo", "{\"text\":\"hi\"}", "\"Text\":\"hi\",\"Who\":\"ops\"");
		call_ok(tcp, "Fast", NULL, "\"Text\":\"\"");
	}
	sb_rpc_client_free(tcp);
	rig_free(r);
}

static void
an_inline_method_can_ask_for_a_thread(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	for (int i = 0; i < 3; i++) {
		call_ok(r->client, "Maybe", "{}", "{\"Inline\":true}");
		call_ok(r->client, "Maybe", "{\"Later\":1}", "{\"Inline\":false}");
	}
	rig_free(r);
}

static void
errors_have_the_protocols_shape(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	call_fails(r->client, "Fail", NULL, SB_E_SESSION_PAUSED);
	expect(r, POST("Fail", "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"),
		"HTTP/1.1 400 ",
		"{\"code\":\"failed_precondition\",\"message\":\"sandbox: session is paused: "
		"x\xef\xbf\xbd\","
		"\"details\":[{\"type\":\"rpc.v1.ErrorInfo\"");
	expect(r,
		POST("Echo", "Content-Type: application/json\r\nContent-Length: 10\r\n",
			"{\"Text\":1}"),
		"HTTP/1.1 400 ", "\"Field\":\"Text\"");
	expect(r, POST("Nope", "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"),
		"HTTP/1.1 404 ", "\"code\":\"unimplemented\"");
	expect(r,
		"POST /other/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
		"0\r\n\r\n",
		"HTTP/1.1 404 ", "\"code\":\"unimplemented\"");
	expect(r, POST("Echo", "Content-Type: application/proto\r\nContent-Length: 2\r\n", "{}"),
		"HTTP/1.1 415 ", "Accept-Post: application/json");
	expect(r, POST("Count", "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"),
		"HTTP/1.1 415 ", "Accept-Post: application/connect+json");
	expect(r, "DELETE /toy.v1.Toy/Echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 405 ", "Allow: GET, POST");
	expect(r, "GET /toy.v1.Toy/Wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 405 ", "Allow: POST");
	expect(r,
		POST("Echo",
			"Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n"
			"Content-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 400 ", "connect-protocol-version must be 1");
	expect(r,
		POST("Echo",
			"Content-Type: application/json\r\nConnect-Timeout-Ms: soon\r\n"
			"Content-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 400 ", "connect-timeout-ms");
	expect(r,
		POST("Echo",
			"Content-Type: application/json\r\nContent-Encoding: br\r\n"
			"Content-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 501 ", "gzip, identity");
	expect(r,
		POST("Echo",
			"Content-Type: application/json\r\nX-Api-Version: v0\r\n"
			"Content-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 400 ", "\"failed_precondition\"");
	expect(r,
		POST("Echo",
			"Content-Type: application/json; charset=utf-8\r\nX-Api-Version: v1\r\n"
			"Connect-Protocol-Version: 1\r\nContent-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 200 ", "X-Api-Version: v1");
	rig_free(r);
}

static void
get_works_for_what_only_reads(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
#define GET(query) "GET /toy.v1.Toy/Echo?" query " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	expect(r, GET("connect=v1&encoding=json&message=%7B%22Text%22%3A%22got%22%7D"),
		"HTTP/1.1 200 ", "\"Text\":\"got\"");
	expect(r, GET("encoding=json&base64=1&message=eyJUZXh0IjoiYjY0In0"), "HTTP/1.1 200 ",
		"\"Text\":\"b64\"");
	expect(r, GET("encoding=json&base64=1&message=%21"), "HTTP/1.1 400 ", "not base64");
	expect(r, GET("encoding=proto&message="), "HTTP/1.1 400 ", "encoding must be json");
	expect(r, GET("encoding=json"), "HTTP/1.1 400 ", "message is required");
	expect(r, GET("connect=v2&encoding=json&message=%7B%7D"), "HTTP/1.1 400 ",
		"connect must be v1");
	expect(r, GET("encoding=json&message=%7B%22Text%22%3A%22a%00b%22%7D"), "HTTP/1.1 400 ",
		"not JSON");
	rig_free(r);
}

static void
gzip_is_taken_and_given(void **state)
{
	struct rig *r = rig_new(NULL);
	sb_auto(sb_buf) struct sb_buf packed, request;
	sb_autofree char *got = NULL;

	(void)state;
	call_ok(r->client, "Big", NULL, "aaaa");
	expect(r,
		POST("Big",
			"Content-Type: application/json\r\nAccept-Encoding: br, gzip\r\n"
			"Content-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 200 ", "Content-Encoding: gzip");
	got = rig_text(r,
		POST("Big",
			"Content-Type: application/json\r\nAccept-Encoding: gzip;q=0\r\n"
			"Content-Length: 2\r\n",
			"{}"));
	assert_null(strstr(got, "Content-Encoding"));
	free(got);
	sb_buf_init(&packed, 1000);
	sb_buf_init(&request, 2000);
	assert_int_equal(sb_rpc_gzip_deflate("{\"Text\":\"zipped\"}", 17, &packed, NULL), 0);
	sb_buf_addf(&request,
		POST("Echo",
			"Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
			"Content-Length: %zu\r\n",
			""),
		packed.len);
	sb_buf_add(&request, packed.data, packed.len);
	got = rig_raw(r, request.data, request.len);
	assert_has(got, "\"Text\":\"zipped\"");
	rig_free(r);
}

static void
small_limits(struct sb_rpc_server_opts *o)
{
	o->max_message = 1000;
	o->header_ms = 300;
	o->body_ms = 300;
	o->idle_ms = 1000;
	o->max_calls = 4;
	o->max_streams = 2;
}

static void
large_bodies_are_refused(void **state)
{
	struct rig *r = rig_new(small_limits);
	sb_auto(sb_buf) struct sb_buf packed, request;
	sb_autofree char *got = NULL;
	static char zeros[100000];

	(void)state;
	expect(r, POST("Echo", "Content-Type: application/json\r\nContent-Length: 5000\r\n", ""),
		"HTTP/1.1 413 ", "\"resource_exhausted\"");
	/* Without a length it is noticed when it has come. */
	sb_buf_init(&request, 10000);
	sb_buf_add_str(&request,
		POST("Echo", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
			"5dc\r\n"));
	for (int i = 0; i < 1500; i++)
		sb_buf_add_char(&request, ' ');
	sb_buf_add_str(&request, "\r\n0\r\n\r\n");
	got = rig_raw(r, request.data, request.len);
	assert_has(got, "HTTP/1.1 413 ");
	free(got);
	/* And what only unpacks to too much. */
	sb_buf_init(&packed, 10000);
	packed.max = sizeof zeros + 1000;
	assert_int_equal(sb_rpc_gzip_deflate(zeros, sizeof zeros, &packed, NULL), 0);
	sb_buf_reset(&request);
	sb_buf_addf(&request,
		POST("Echo",
			"Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
			"Content-Length: %zu\r\n",
			""),
		packed.len);
	sb_buf_add(&request, packed.data, packed.len);
	got = rig_raw(r, request.data, request.len);
	assert_has(got, "\"resource_exhausted\"");
	rig_free(r);
}

static void
slow_clients_are_let_go_and_block_nobody(void **state)
{
	struct rig *r = rig_new(small_limits);
	int slow[40];
	char byte;

	(void)state;
	for (size_t i = 0; i < 40; i++) {
		const char *text = i % 2 ?
			"POST /toy.v1.Toy/Echo HT" :
			POST("Echo", "Content-Type: application/json\r\nContent-Length: 100\r\n",
				"{");

		slow[i] = rig_connect(r);
		assert_int_equal(send(slow[i], text, strlen(text), MSG_NOSIGNAL),
			(ssize_t)strlen(text));
		call_ok(r->client, "Echo", "{\"Text\":\"hi\"}", "hi");
	}
	for (size_t i = 0; i < 40; i++) {
		struct pollfd p = { .fd = slow[i], .events = POLLIN };

		assert_int_equal(poll(&p, 1, 8000), 1);
		assert_true(read(slow[i], &byte, 1) <= 0);
		(void)close(slow[i]);
	}
	rig_free(r);
}

struct waiter {
	struct rig *rig;
	const char *method;
	struct sb_rpc_wait wait;
	struct sb_error err;
	int r;
	pthread_t thread;
};

static int
ignore_message(const char *json, size_t len, void *arg, struct sb_error *err)
{
	(void)json;
	(void)len;
	(void)arg;
	(void)err;
	return 0;
}

static void *
wait_thread(void *arg)
{
	struct waiter *w = arg;
	struct sb_rpc_client *c = rig_client(w->rig->socket, NULL, NULL);
	char *out = NULL;
	size_t len;

	if (strcmp(w->method, "Tail") == 0)
		w->r = sb_rpc_client_stream(c, w->method, NULL, &w->wait, ignore_message, NULL,
			&w->err);
	else
		w->r = sb_rpc_client_call(c, w->method, NULL, &w->wait, &out, &len, &w->err);
	free(out);
	sb_rpc_client_free(c);
	return NULL;
}

static void
start_waiter(struct waiter *w, struct rig *r, const char *method, const struct sb_cancel *cancel,
	sb_deadline d)
{
	*w = (struct waiter){ .rig = r, .method = method, .wait = { cancel, d } };
	assert_int_equal(pthread_create(&w->thread, NULL, wait_thread, w), 0);
}

static void
a_client_that_leaves_cancels_its_call(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_error err = { 0 };
	struct sb_cancel *cancel = sb_cancel_new(&err);
	struct waiter w;

	(void)state;
	start_waiter(&w, r, "Wait", cancel, SB_NEVER);
	rig_until(&r->toy.waiting, 1);
	call_ok(r->client, "Echo", "{\"Text\":\"hi\"}", "hi");
	sb_cancel_request(cancel);
	(void)pthread_join(w.thread, NULL);
	assert_int_equal(w.r, SB_E_CANCELED);
	rig_until(&r->toy.canceled, 1);
	rig_until(&r->toy.waiting, 0);
	sb_cancel_free(cancel);
	rig_free(r);
}

static void
the_deadline_reaches_the_handler(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	expect(r,
		POST("Wait",
			"Content-Type: application/json\r\nConnect-Timeout-Ms: "
			"50\r\nContent-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 504 ", "\"deadline_exceeded\"");
	assert_int_equal(atomic_load(&r->toy.canceled), 1);
	expect(r,
		POST("Wait",
			"Content-Type: application/json\r\nConnect-Timeout-Ms: "
			"0\r\nContent-Length: 2\r\n",
			"{}"),
		"HTTP/1.1 504 ", "\"deadline_exceeded\"");
	rig_free(r);
}

static void
calls_over_the_cap_are_refused_at_once(void **state)
{
	struct rig *r = rig_new(small_limits);
	struct sb_error err = { 0 };
	struct sb_cancel *cancel = sb_cancel_new(&err);
	struct waiter w[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		start_waiter(&w[i], r, "Wait", cancel, SB_NEVER);
	rig_until(&r->toy.waiting, 4);
	call_fails(r->client, "Echo", NULL, SB_E_LIMIT);
	/* What needs no thread still answers. */
	call_ok(r->client, "Fast", NULL, "Text");
	sb_cancel_request(cancel);
	for (size_t i = 0; i < 4; i++)
		(void)pthread_join(w[i].thread, NULL);
	rig_until(&r->toy.waiting, 0);
	for (int i = 0; i < 4000; i++) {
		sb_autofree char *out = NULL;
		size_t len;

		if (sb_rpc_client_call(r->client, "Echo", NULL, NULL, &out, &len, &err) == 0)
			break;
		(void)poll(NULL, 0, 2);
	}
	call_ok(r->client, "Echo", NULL, "Text");
	sb_cancel_free(cancel);
	rig_free(r);
}

struct got {
	int n, stop_at;
	size_t bytes;
};

static int
on_message(const char *json, size_t len, void *arg, struct sb_error *err)
{
	struct got *g = arg;
	char want[32];

	(void)snprintf(want, sizeof want, "{\"I\":%d,", g->n);
	if (strncmp(json, want, strlen(want)) != 0)
		return sb_fail(err, SB_E_PROTO, "got %.20s, want %s", json, want);
	g->n++;
	g->bytes += len;
	return g->stop_at && g->n == g->stop_at ? sb_fail(err, SB_E_BRAKE, "enough") : 0;
}

static void
streams_arrive_whole_and_in_order(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_error err = { 0 };
	struct got g = { 0 };

	(void)state;
	assert_ok(sb_rpc_client_stream(r->client, "Count", "{\"N\":2000,\"Size\":3000}", NULL,
			  on_message, &g, &err),
		&err);
	assert_int_equal(g.n, 2000);
	assert_true(g.bytes > 6000000);
	g = (struct got){ 0 };
	assert_fails(sb_rpc_client_stream(r->client, "Count", "{\"N\":3,\"Fail\":true}", NULL,
			     on_message, &g, &err),
		SB_E_POOL_FULL, &err);
	assert_string_equal(err.msg, "counted enough");
	assert_int_equal(g.n, 3);
	assert_fails(sb_rpc_client_stream(r->client, "Nope", NULL, NULL, on_message, &g, &err),
		SB_E_UNSUPPORTED, &err);
	rig_free(r);
}

static void
a_stream_that_the_client_leaves_ends(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_error err = { 0 };
	struct got g = { .stop_at = 5 };
	int fd = rig_connect(r);
	static const char flood[] =
		"POST /toy.v1.Toy/Flood HTTP/1.1\r\nHost: x\r\n"
		"Content-Type: application/connect+json\r\nContent-Length: 7\r\n\r\n\0\0\0\0\2{}";
	int before;

	(void)state;
	assert_fails(sb_rpc_client_stream(r->client, "Count", "{\"N\":1000000}", NULL, on_message,
			     &g, &err),
		SB_E_BRAKE, &err);
	assert_int_equal(g.n, 5);

	/* One that does not read gets no more than the bound; others go on; leaving ends it. */
	assert_int_equal(send(fd, flood, sizeof flood - 1, 0), (ssize_t)sizeof flood - 1);
	rig_until(&r->toy.waiting, 1);
	do {
		before = atomic_load(&r->toy.sent);
		for (int i = 0; i < 20; i++)
			call_ok(r->client, "Echo", "{\"Text\":\"hi\"}", "hi");
	} while (before != atomic_load(&r->toy.sent));
	assert_true(before < 1000);
	(void)close(fd);
	rig_until(&r->toy.canceled, 1);
	rig_until(&r->toy.waiting, 0);
	rig_free(r);
}

static void
an_error_before_a_stream_is_its_end(void **state)
{
	struct rig *r = rig_new(NULL);
	static const char two[] =
		POST("Count", "Content-Type: application/connect+json\r\nContent-Length: 14\r\n",
			"\0\0\0\0\2{}\0\0\0\0\2{}");
	sb_autofree char *got = rig_raw(r, two, sizeof two - 1);
	const char *part;

	(void)state;
	assert_has(got, "HTTP/1.1 200 ");
	part = strstr(got, "\r\n\r\n");
	assert_non_null(part);
	/* Chunk size, then the envelope with the end flag. */
	part = strstr(part + 4, "\r\n");
	assert_non_null(part);
	assert_int_equal(part[2], SB_RPC_FLAG_END);
	assert_has(part + 7, "{\"error\":{\"code\":\"invalid_argument\"");
	rig_free(r);
}

static void
tcp_needs_a_token_and_roles_hold(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_rpc_client *none = rig_client(r->url, NULL, NULL);
	struct sb_rpc_client *wrong = rig_client(r->url, "wrong-token-0123456789", NULL);
	struct sb_rpc_client *agent = rig_client(r->url, TOY_AGENT, NULL);
	struct sb_rpc_client *monitor = rig_client(r->url, TOY_MONITOR, NULL);

	(void)state;
	call_fails(none, "Echo", NULL, SB_E_AUTH);
	call_fails(wrong, "Echo", NULL, SB_E_AUTH);
	call_ok(agent, "Echo", "{\"SessionID\":\"s1\"}", "agent");
	call_fails(agent, "Echo", "{\"SessionID\":\"s2\"}", SB_E_DENIED);
	call_fails(agent, "Echo", "{\"SessionID\":\"s2\",\"session_id\":\"s1\"}", SB_E_DENIED);
	call_fails(agent, "Echo", "{}", SB_E_INVAL);
	call_fails(agent, "Nap", "{\"SessionID\":\"s1\"}", SB_E_DENIED);
	call_ok(monitor, "Fast", NULL, "prom");
	call_fails(monitor, "Echo", "{\"SessionID\":\"s1\"}", SB_E_DENIED);
	sb_rpc_client_free(none);
	sb_rpc_client_free(wrong);
	sb_rpc_client_free(agent);
	sb_rpc_client_free(monitor);
	rig_free(r);
}

static void
want_token(struct sb_rpc_server_opts *o)
{
	o->socket_auth = true;
	o->socket_mode = 0660;
}

static void
a_unix_socket_may_want_one_too(void **state)
{
	struct rig *r = rig_new(want_token);
	struct sb_rpc_client *c = rig_client(r->socket, TOY_ADMIN, NULL);
	struct stat st;

	(void)state;
	call_fails(r->client, "Echo", NULL, SB_E_AUTH);
	call_ok(c, "Echo", NULL, "ops");
	assert_int_equal(stat(r->socket, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	sb_rpc_client_free(c);
	rig_free(r);
}

static void
plain_pages_are_there(void **state)
{
	struct rig *r = rig_new(want_token);

	(void)state;
#define PAGE(path, headers) \
	"GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" headers "\r\n"
	expect(r, PAGE("/health", ""), "HTTP/1.1 200 ", "\r\n\r\nok\n");
	expect(r, PAGE("/metrics", ""), "HTTP/1.1 401 ", "WWW-Authenticate: Bearer");
	expect(r, PAGE("/metrics", "Authorization: Bearer " TOY_AGENT "\r\n"), "HTTP/1.1 403 ",
		"metrics");
	expect(r, PAGE("/metrics", "Authorization: Bearer " TOY_MONITOR "\r\n"), "HTTP/1.1 200 ",
		"toy_number 42\n");
	expect(r, PAGE("/metrics", "Authorization: Bearer " TOY_MONITOR "\r\n"),
		"sbhostd_rpc_duration_seconds_bucket{method=\"Echo\",le=\"+Inf\"} 0",
		"sbhostd_rpc_requests_total{method=\"\",code=\"unauthenticated\"} 1");
	expect(r,
		"POST /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
		"0\r\n\r\n",
		"HTTP/1.1 405 ", "Allow: GET, HEAD");
	rig_free(r);
}

static void
stopping_lets_calls_end_and_ends_streams(void **state)
{
	struct rig *r = rig_new(NULL);
	struct waiter nap, endless, tail;
	struct stat st;

	(void)state;
	start_waiter(&nap, r, "Nap", NULL, SB_NEVER);
	start_waiter(&endless, r, "Wait", NULL, SB_NEVER);
	start_waiter(&tail, r, "Tail", NULL, SB_NEVER);
	rig_until(&r->toy.waiting, 3);
	sb_rpc_server_stop(r->server, 600, NULL);
	assert_int_equal(atomic_load(&r->toy.waiting), 0);
	(void)pthread_join(nap.thread, NULL);
	(void)pthread_join(endless.thread, NULL);
	(void)pthread_join(tail.thread, NULL);
	assert_ok(nap.r, &nap.err);
	assert_fails(endless.r, SB_E_SHUTTING_DOWN, &endless.err);
	assert_fails(tail.r, SB_E_SHUTTING_DOWN, &tail.err);
	assert_int_equal(stat(r->socket, &st), -1);
	rig_free(r);
}

static void
sockets_are_private_and_not_taken_over(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sb_rpc_server_opts o = r->opts;
	struct sb_error err = { 0 };
	const char *listen[] = { r->socket, NULL };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct sb_rpc_server *s;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(r->socket, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	o.listen = listen;
	assert_null(sb_rpc_server_start(&o, &r->service, &err));
	assert_int_equal(err.code, SB_E_EXISTS);
	call_ok(r->client, "Echo", NULL, "Text");
	sb_rpc_server_stop(r->server, 0, NULL);

	/* What a dead server left is replaced, a file is not. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(strlen(r->socket) < sizeof a.sun_path);
	memcpy(a.sun_path, r->socket, strlen(r->socket) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
	(void)close(fd);
	s = sb_rpc_server_start(&o, &r->service, &err);
	if (!s)
		fail_msg("%s", err.msg);
	sb_rpc_server_free(s);
	tmpdir_file(&r->dir, "s", "data");
	assert_null(sb_rpc_server_start(&o, &r->service, &err));
	assert_int_equal(err.code, SB_E_EXISTS);

	listen[0] = "127.0.0.1:0";
	o.auth = NULL;
	assert_null(sb_rpc_server_start(&o, &r->service, &err));
	assert_has(err.msg, "needs a token");
	listen[0] = "nonsense";
	o.auth = r->auth;
	assert_null(sb_rpc_server_start(&o, &r->service, &err));
	assert_int_equal(err.code, SB_E_INVAL);
	rig_free(r);
}

static void
a_client_says_what_is_wrong(void **state)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_rpc_client *c = rig_client("/nonexistent/socket", NULL, NULL);

	(void)state;
	call_fails(c, "Echo", NULL, SB_E_CONNECT);
	sb_rpc_client_free(c);
	o.address = "localhost";
	assert_null(sb_rpc_client_new(&o, &err));
	assert_int_equal(err.code, SB_E_INVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unary_calls_work_on_both_sockets),
		cmocka_unit_test(an_inline_method_can_ask_for_a_thread),
		cmocka_unit_test(errors_have_the_protocols_shape),
		cmocka_unit_test(get_works_for_what_only_reads),
		cmocka_unit_test(gzip_is_taken_and_given),
		cmocka_unit_test(large_bodies_are_refused),
		cmocka_unit_test(slow_clients_are_let_go_and_block_nobody),
		cmocka_unit_test(a_client_that_leaves_cancels_its_call),
		cmocka_unit_test(the_deadline_reaches_the_handler),
		cmocka_unit_test(calls_over_the_cap_are_refused_at_once),
		cmocka_unit_test(streams_arrive_whole_and_in_order),
		cmocka_unit_test(a_stream_that_the_client_leaves_ends),
		cmocka_unit_test(an_error_before_a_stream_is_its_end),
		cmocka_unit_test(tcp_needs_a_token_and_roles_hold),
		cmocka_unit_test(a_unix_socket_may_want_one_too),
		cmocka_unit_test(plain_pages_are_there),
		cmocka_unit_test(stopping_lets_calls_end_and_ends_streams),
		cmocka_unit_test(sockets_are_private_and_not_taken_over),
		cmocka_unit_test(a_client_says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
