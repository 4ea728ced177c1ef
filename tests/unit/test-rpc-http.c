/* SPDX-License-Identifier: MIT */
/* Plain HTTP on the server's ground: bodies that are read, answers that come in pieces. */
#include "config.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include <rpc/server/http.h>
#include <tests/unit/rpc-toy.h>

static _Atomic int ended_early;

/* Sends back what comes, while it comes. */
static int
echo(struct sb_rpc_call *call, struct sb_error *err)
{
	char piece[10000];
	int64_t n;
	int r = sb_rpc_http_begin(call, 200, "application/x", -1, err);

	while (r == 0 && (n = sb_rpc_http_read(call, piece, sizeof piece, err)) != 0)
		r = n < 0 ? (int)n : sb_rpc_http_write(call, piece, (size_t)n, err);
	return r;
}

static int
count(struct sb_rpc_call *call, struct sb_error *err)
{
	sb_autofree char *piece = malloc(100000);
	unsigned long long all = 0;
	char text[64];
	int64_t n;

	while ((n = sb_rpc_http_read(call, piece, 100000, err)) > 0)
		all += (unsigned long long)n;
	if (n < 0) {
		atomic_fetch_add(&ended_early, 1);
		return (int)n;
	}
	(void)snprintf(text, sizeof text, "%llu %s", all, sb_rpc_http_header(call, "x-Word"));
	sb_rpc_http_add_header(call, "X-Next", "7");
	sb_rpc_http_reply(call, 201, "text/plain", text, strlen(text));
	return 0;
}

static int
whole(struct sb_rpc_call *call, struct sb_error *err)
{
	size_t len;
	const char *body = sb_rpc_http_body(call, &len);

	(void)err;
	sb_rpc_http_reply(call, 200, "text/plain", body, len);
	return 0;
}

/* As many bytes as the target says. */
static int
give(struct sb_rpc_call *call, struct sb_error *err)
{
	long left = strtol(sb_rpc_http_target(call) + 6, NULL, 10);
	char piece[5000];
	int r = sb_rpc_http_begin(call, 206, NULL, left, err);

	memset(piece, 'g', sizeof piece);
	while (r == 0 && left > 0) {
		size_t n = left < 5000 ? (size_t)left : 5000;

		r = sb_rpc_http_write(call, piece, n, err);
		left -= (long)n;
	}
	return r;
}

static int
say_target(struct sb_rpc_call *call, struct sb_error *err)
{
	const char *t = sb_rpc_http_target(call);

	(void)err;
	sb_rpc_http_reply(call, 200, NULL, t, strlen(t));
	return 0;
}

static int
refuse(struct sb_rpc_call *call, struct sb_error *err)
{
	(void)call;
	return sb_fail(err, SB_E_NOTFOUND, "no such thing");
}

static int
break_off(struct sb_rpc_call *call, struct sb_error *err)
{
	int r = sb_rpc_http_begin(call, 200, NULL, -1, err);

	if (r == 0)
		r = sb_rpc_http_write(call, "half", 4, err);
	return r == 0 ? sb_fail(err, SB_E_SYS, "broken") : r;
}

static int
take_over(struct sb_rpc_call *call, int sock, struct sb_error *err)
{
	struct pollfd p = { .fd = sock, .events = POLLIN }; /* which does not block by itself */
	char c;

	(void)call;
	while (poll(&p, 1, 10000) == 1 && read(sock, &c, 1) == 1 && c != '.')
		if (write(sock, &c, 1) != 1)
			return sb_fail_errno(err, "write");
	return 0;
}

static const struct route {
	const char *verb, *path;
	sb_rpc_http_fn run;
	enum sb_rpc_http_body body;
} routes[] = {
	{ "POST", "/echo", echo, SB_RPC_HTTP_STREAM },
	{ "POST", "/count", count, SB_RPC_HTTP_STREAM },
	{ "POST", "/whole", whole, SB_RPC_HTTP_WHOLE },
	{ "GET", "/give/", give, SB_RPC_HTTP_NO_BODY },
	{ "POST", "/refuse", refuse, SB_RPC_HTTP_STREAM },
	{ "GET", "/target", say_target, SB_RPC_HTTP_NO_BODY },
	{ "GET", "/break", break_off, SB_RPC_HTTP_NO_BODY },
};

static int
open_request(struct sb_rpc_call *call, struct sb_rpc_http_plan *plan, struct sb_error *err)
{
	const char *target = sb_rpc_http_target(call), *key = sb_rpc_http_header(call, "X-Key");

	plan->who = (struct sb_rpc_who){ .role = SB_RPC_ROLE_ADMIN, .name = "me" };
	if (!key || strcmp(key, "k") != 0)
		return sb_fail(err, SB_E_AUTH, "no key");
	if (strcmp(target, "/over") == 0) {
		sb_rpc_http_add_header(call, "Upgrade", "own");
		plan->upgrade = take_over;
		return 0;
	}
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
		if (strcmp(routes[i].verb, sb_rpc_http_verb(call)) == 0 &&
			strncmp(target, routes[i].path, strlen(routes[i].path)) == 0) {
			plan->run = routes[i].run;
			plan->body = routes[i].body;
			plan->max_body = 1000;
			plan->stream = routes[i].run == echo;
			return 0;
		}
	return sb_fail(err, SB_E_NOTFOUND, "no such route");
}

static void
fail_request(struct sb_rpc_call *call, const struct sb_rpc_failure *f)
{
	char text[600];

	(void)snprintf(text, sizeof text, "{\"oops\":\"%s\"}", f->msg);
	sb_rpc_http_reply(call, f->http ? f->http : sb_rpc_code_http(f->code), "application/json",
		text, strlen(text));
}

static const struct sb_rpc_http http = { open_request, fail_request };
static const struct sb_rpc_service service = { .name = "plain", .http = &http };

static struct rig *
plain(void)
{
	struct rig *r = calloc(1, sizeof *r);
	struct sb_error err = { 0 };
	const char *listen[2] = { NULL, NULL };

	tmpdir_make(&r->dir);
	(void)snprintf(r->socket, sizeof r->socket, "%s/s", r->dir.path);
	r->opts = (struct sb_rpc_server_opts)SB_RPC_SERVER_OPTS_INIT;
	listen[0] = r->socket;
	r->opts.listen = listen;
	r->server = sb_rpc_server_start(&r->opts, &service, &err);
	if (!r->server)
		fail_msg("server: %s", err.msg);
	return r;
}

#define HEAD(verb, target, more) \
	verb " " target " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Key: k\r\n" more "\r\n"

static void
expect(const struct rig *r, const char *request, const char *first, const char *part)
{
	sb_autofree char *got = rig_text(r, request);

	if (strncmp(got, first, strlen(first)) != 0)
		fail_msg("\"%s\" does not begin \"%s\"", first, got);
	assert_has(got, part);
}

static void
bodies_are_read_as_they_come(void **state)
{
	struct rig *r = plain();
	struct sb_buf b;

	(void)state;
	expect(r, HEAD("POST", "/count", "x-word: w\r\nContent-Length: 5\r\n") "hello",
		"HTTP/1.1 201 ", "\r\n\r\n5 w");
	expect(r,
		HEAD("POST", "/count", "x-word: w\r\nTransfer-Encoding: chunked\r\n") "3\r\nabc\r\n"
										      "1\r\nd\r\n"
										      "0\r\n\r\n",
		"HTTP/1.1 201 ", "X-Next: 7");
	/* Much more than any buffer on the way. */
	sb_buf_init(&b, 64 << 20);
	sb_buf_add_str(&b, HEAD("POST", "/count", "X-Word: v\r\nContent-Length: 20000000\r\n"));
	memset(sb_buf_reserve(&b, 20000000), 'x', 20000000);
	sb_buf_grow(&b, 20000000);
	{
		sb_autofree char *got = rig_raw(r, b.data, b.len);

		assert_has(got, "\r\n\r\n20000000 v");
	}
	sb_buf_free(&b);
	rig_free(r);
}

static void
an_answer_may_begin_before_the_body_ends(void **state)
{
	struct rig *r = plain();

	(void)state;
	expect(r, HEAD("POST", "/echo", "Content-Length: 5\r\n") "hello", "HTTP/1.1 200 ", "hello");
	rig_free(r);
}

static void
whole_bodies_have_a_limit(void **state)
{
	struct rig *r = plain();
	char big[1200] = { 0 };
	sb_autofree char *text = NULL;

	(void)state;
	expect(r, HEAD("POST", "/whole", "Content-Length: 4\r\n") "body", "HTTP/1.1 200 ",
		"\r\n\r\nbody");
	expect(r, HEAD("POST", "/whole", "Content-Length: 1001\r\n"), "HTTP/1.1 413 ", "oops");
	memset(big, 'b', 1001);
	assert_true(asprintf(&text,
			    HEAD("POST", "/whole", "Transfer-Encoding: chunked\r\n") "3e9\r\n%s\r\n"
										     "0\r\n\r\n",
			    big) > 0);
	expect(r, text, "HTTP/1.1 413 ", "oops");
	rig_free(r);
}

static void
answers_have_the_length_they_say(void **state)
{
	struct rig *r = plain();

	(void)state;
	expect(r, HEAD("GET", "/give/12345", ""), "HTTP/1.1 206 ", "Content-Length: 12345\r\n");
	expect(r, HEAD("GET", "/give/0", ""), "HTTP/1.1 206 ", "Content-Length: 0\r\n");
	/* A query comes as it was sent. */
	expect(r, HEAD("GET", "/target?a=b%2520c&d", ""), "HTTP/1.1 200 ",
		"\r\n\r\n/target?a=b%2520c&d");
	for (int i = 0; i < 3; i++) {
		sb_autofree char *got = rig_text(r, HEAD("GET", "/give/3000000", ""));

		assert_int_equal(strlen(strstr(got, "\r\n\r\n") + 4), 3000000);
	}
	rig_free(r);
}

static void
failures_are_told_in_the_services_words(void **state)
{
	struct rig *r = plain();
	sb_autofree char *got = NULL;

	(void)state;
	expect(r, HEAD("POST", "/refuse", "Content-Length: 3\r\n") "abc", "HTTP/1.1 404 ",
		"{\"oops\":\"no such thing\"}");
	expect(r, HEAD("GET", "/nowhere", ""), "HTTP/1.1 404 ", "{\"oops\":\"no such route\"}");
	expect(r, "GET /give/1 HTTP/1.1\r\nHost: x\r\nX-Key: wrong\r\n\r\n", "HTTP/1.1 401 ",
		"{\"oops\":");
	/* An answer that breaks off does not look like a whole one. */
	got = rig_text(r, HEAD("GET", "/break", ""));
	assert_has(got, "half");
	assert_null(strstr(got, "\r\n0\r\n"));
	rig_free(r);
}

static void
who_hangs_up_ends_the_reading(void **state)
{
	static const char part[] = HEAD("POST", "/count", "Content-Length: 500\r\n") "abc";
	struct rig *r = plain();
	int fd = rig_connect(r);

	(void)state;
	atomic_store(&ended_early, 0);
	assert_int_equal(send(fd, part, sizeof part - 1, MSG_NOSIGNAL), sizeof part - 1);
	(void)poll(NULL, 0, 20);
	(void)close(fd);
	rig_until(&ended_early, 1);
	rig_free(r);
}

static void
a_connection_can_be_taken_over(void **state)
{
	static const char ask[] = "GET /over HTTP/1.1\r\nHost: x\r\nX-Key: k\r\n"
				  "Connection: Upgrade\r\nUpgrade: own\r\n\r\n";
	struct rig *r = plain();
	int fd = rig_connect(r);
	char got[1000] = { 0 };
	size_t n = 0;

	(void)state;
	assert_int_equal(send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL), sizeof ask - 1);
	while (!strstr(got, "\r\n\r\n") && read(fd, got + n, 1) == 1)
		n++;
	assert_has(got, "HTTP/1.1 101 ");
	assert_int_equal(write(fd, "ab.", 3), 3);
	assert_int_equal(read(fd, got, 1), 1);
	assert_int_equal(got[0], 'a');
	while (read(fd, got, sizeof got) > 0)
		;
	(void)close(fd);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_read_as_they_come),
		cmocka_unit_test(an_answer_may_begin_before_the_body_ends),
		cmocka_unit_test(whole_bodies_have_a_limit),
		cmocka_unit_test(answers_have_the_length_they_say),
		cmocka_unit_test(failures_are_told_in_the_services_words),
		cmocka_unit_test(who_hangs_up_ends_the_reading),
		cmocka_unit_test(a_connection_can_be_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
