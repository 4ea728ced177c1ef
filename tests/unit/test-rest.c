/* SPDX-License-Identifier: MIT */
/* The HTTP client against a server that answers well, badly, slowly or not at all. */
#include "config.h"

#include "tests/lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/work.h>
#include <cloud/http/rest.h>

#include "tests/lib/tmpdir.h"
#include "tests/unit/rest-toy.h"

static void
takes_an_answer_and_its_headers(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_answer a = { 0 };
	struct sb_error err = { 0 };
	struct sb_rest_header h[] = { { "X-Key", "v w", false }, { "X-Empty", "", false } };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;

	(void)state;
	q.target = "/head?x=%20";
	q.headers = h;
	q.n_headers = 2;
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.tries, 1);
	assert_string_equal(sb_rest_header(&a, "x-one"), "1");
	assert_string_equal(sb_rest_header(&a, "x-two"), "b c");
	assert_null(sb_rest_header(&a, "x-tw"));
	assert_non_null(strstr((char *)a.body.data, "GET /head?x=%20 HTTP/1.1"));
	assert_non_null(strstr((char *)a.body.data, "\r\nX-Key: v w"));
	assert_non_null(strstr((char *)a.body.data, "\r\nX-Empty:"));
	assert_null(strstr((char *)a.body.data, "Expect"));
	sb_rest_answer_free(&a);
}

static void
sends_json_and_keeps_the_connection(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_error err = { 0 };
	json_t *in = json_pack("{s:s, s:i}", "a", "b\xc3\xa4", "n", 7), *back;
	char first[16] = "";

	(void)state;
	q.method = "POST";
	q.target = "/echo";
	q.json = in;
	for (int i = 0; i < 3; i++) {
		struct sb_rest_answer a = { 0 };

		assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
		back = sb_rest_json(&a, "echo", &err);
		assert_non_null(back);
		assert_true(json_equal(in, back));
		json_decref(back);
		if (i == 0)
			(void)snprintf(first, sizeof first, "%s", sb_rest_header(&a, "x-conn"));
		assert_string_equal(sb_rest_header(&a, "x-conn"), first);
		sb_rest_answer_free(&a);
	}
	json_decref(in);
}

static void
errors_have_a_code_and_the_services_words(void **state)
{
	static const struct {
		int status, code;
	} cases[] = { { 400, SB_E_INVAL }, { 401, SB_E_AUTH }, { 403, SB_E_DENIED },
		{ 404, SB_E_NOTFOUND }, { 409, SB_E_CONFLICT }, { 422, SB_E_INVAL },
		{ 429, SB_E_LIMIT }, { 500, SB_E_UNAVAILABLE }, { 503, SB_E_UNAVAILABLE },
		{ 504, SB_E_TIMEOUT }, { 507, SB_E_NOSPACE }, { 418, SB_E_PEER },
		{ 302, SB_E_PEER } };
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	char target[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		(void)snprintf(target, sizeof target, "/status/%d", cases[i].status);
		assert_ok(get(r, target, SB_REST_ONCE, &a, &err), &err);
		assert_fails(sb_rest_check(&a, "it", &err), cases[i].code, &err);
		sb_rest_answer_free(&a);
	}
	assert_ok(get(r, "/nothing", SB_REST_ONCE, &a, &err), &err);
	assert_fails(sb_rest_check(&a, "find it", &err), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg, "find it: HTTP 404: no\\x1b[31m such");
	sb_rest_answer_free(&a);
}

static void
tries_again_only_what_may_be(void **state)
{
	static const struct {
		const char *target;
		enum sb_rest_again again;
		int status;
		unsigned tries;
	} cases[] = {
		{ "/busy-a", SB_REST_ONCE, 429, 1 },
		{ "/busy-b", SB_REST_UNSENT, 200, 3 },
		{ "/busy-after", SB_REST_UNSENT, 200, 3 },
		{ "/busy-date", SB_REST_REPEAT, 200, 2 },
		{ "/busy-long", SB_REST_REPEAT, 429, 1 },
		{ "/ill-a", SB_REST_UNSENT, 502, 1 },
		{ "/ill-b", SB_REST_REPEAT, 200, 3 },
		{ "/always", SB_REST_REPEAT, 500, 5 },
		{ "/bad-once-a", SB_REST_REPEAT, 200, 2 },
	};
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_answer a;
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_ok(get(r, cases[i].target, cases[i].again, &a, &err), &err);
		if (a.status != cases[i].status || a.tries != cases[i].tries)
			fail_msg("%s: status %d after %u tries", cases[i].target, a.status,
				a.tries);
		assert_int_equal(httpfix_count(fix, cases[i].target), cases[i].tries);
		sb_rest_answer_free(&a);
	}
	assert_fails(get(r, "/bad-once-b", SB_REST_UNSENT, &a, &err), SB_E_CLOSED, &err);
	assert_int_equal(httpfix_count(fix, "/bad-once-b"), 1);
}

static void
a_dead_connection_is_no_second_request(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_answer a;
	struct sb_error err = { 0 };

	(void)state;
	/* The first leaves a connection, on which the server then hangs up without an answer. */
	assert_ok(get(r, "/echo", SB_REST_ONCE, &a, &err), &err);
	sb_rest_answer_free(&a);
	assert_fails(get(r, "/bad-reset-a", SB_REST_ONCE, &a, &err), SB_E_CLOSED, &err);
	assert_int_equal(httpfix_count(fix, "/bad-reset-a"), 1);
	assert_ok(get(r, "/echo", SB_REST_ONCE, &a, &err), &err);
	sb_rest_answer_free(&a);
	assert_fails(get(r, "/bad-once-c", SB_REST_UNSENT, &a, &err), SB_E_CLOSED, &err);
	assert_int_equal(httpfix_count(fix, "/bad-once-c"), 1);
}

static void
broken_answers_are_errors(void **state)
{
	static const struct {
		const char *target;
		int code;
	} cases[] = { { "/bad-cut", SB_E_CLOSED }, { "/bad-reset", SB_E_CLOSED },
		{ "/bad-words", SB_E_PROTO }, { "/bad-head", SB_E_LIMIT },
		{ "/bad-long", SB_E_LIMIT } };
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	struct sb_rest *r;

	(void)state;
	o.base = httpfix_url(fix);
	o.max_body = 100000;
	o.pause_ms = 1;
	r = sb_rest_new(&o, &err);
	assert_non_null(r);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (get(r, cases[i].target, SB_REST_ONCE, &a, &err) != cases[i].code)
			fail_msg("%s: %s", cases[i].target, err.msg);
	assert_ok(get(r, "/bad-long-error", SB_REST_ONCE, &a, &err), &err);
	assert_true(a.cut);
	assert_int_equal(a.body.len, 100000);
	sb_rest_answer_free(&a);
	sb_rest_free(r);
}

static void *
cancel_soon(void *arg)
{
	struct timespec t = { .tv_nsec = 50000000 };

	(void)nanosleep(&t, NULL);
	sb_cancel_request(arg);
	return NULL;
}

/* Each ends long before the minute that the client would wait, and the server sees it go. */
static void
nothing_waits_for_ever(void **state)
{
	static const char *const targets[] = { "/bad-silent", "/bad-slow" };
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_wait w = SB_REST_WAIT_INIT;
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	char byte;

	(void)state;
	q.again = SB_REST_REPEAT;
	for (size_t i = 0; i < 2; i++) {
		struct sb_cancel *c = sb_cancel_new(&err);
		const struct sb_cancel *before;
		pthread_t t;

		q.target = targets[i];
		w = (struct sb_rest_wait)SB_REST_WAIT_INIT;
		w.deadline = sb_deadline_in(50);
		assert_fails(sb_rest_call(r, &q, &w, &a, &err), SB_E_TIMEOUT, &err);
		assert_int_equal(read(ended_fd[0], &byte, 1), 1);
		w.deadline = SB_NEVER;
		w.cancel = c;
		assert_int_equal(pthread_create(&t, NULL, cancel_soon, c), 0);
		assert_fails(sb_rest_call(r, &q, &w, &a, &err), SB_E_CANCELED, &err);
		(void)pthread_join(t, NULL);
		assert_int_equal(read(ended_fd[0], &byte, 1), 1);
		sb_cancel_free(c);
		/* That of the thread's work. */
		c = sb_cancel_new(&err);
		before = sb_work_under(c);
		assert_int_equal(pthread_create(&t, NULL, cancel_soon, c), 0);
		assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_CANCELED, &err);
		(void)sb_work_under(before);
		(void)pthread_join(t, NULL);
		assert_int_equal(read(ended_fd[0], &byte, 1), 1);
		sb_cancel_free(c);
		/* No byte for too long; it is tried again. */
		q.stall_ms = 20;
		assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_TIMEOUT, &err);
		q.stall_ms = 0;
		for (int n = 0; n < 5; n++)
			assert_int_equal(read(ended_fd[0], &byte, 1), 1);
	}
}

static void
a_cancel_ends_the_pause_between_tries(void **state)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_wait w = SB_REST_WAIT_INIT;
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	struct sb_cancel *c = sb_cancel_new(&err);
	struct sb_rest *r;
	pthread_t t;

	(void)state;
	o.base = httpfix_url(fix);
	o.pause_ms = o.pause_max_ms = 3600000;
	r = sb_rest_new(&o, &err);
	q.target = "/always";
	q.again = SB_REST_REPEAT;
	w.cancel = c;
	assert_int_equal(pthread_create(&t, NULL, cancel_soon, c), 0);
	assert_fails(sb_rest_call(r, &q, &w, &a, &err), SB_E_CANCELED, &err);
	(void)pthread_join(t, NULL);
	/* A deadline before the next try: the answer there is. */
	w.cancel = NULL;
	w.deadline = sb_deadline_in(600000);
	assert_ok(sb_rest_call(r, &q, &w, &a, &err), &err);
	assert_int_equal(a.status, 500);
	assert_int_equal(a.tries, 1);
	sb_rest_answer_free(&a);
	sb_rest_free(r);
	sb_cancel_free(c);
}

/* --- proxies, sockets, addresses --- */

static void
goes_through_the_proxy_of_the_environment(void **state)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	struct sb_rest *r;

	(void)state;
	(void)setenv("http_proxy", httpfix_url(fix), 1);
	o.base = "http://service.invalid/v1/";
	r = sb_rest_new(&o, &err);
	assert_ok(get(r, "/x", SB_REST_ONCE, &a, &err), &err);
	assert_string_equal((char *)a.body.data, "by proxy");
	assert_int_equal(httpfix_count(fix, "http://service.invalid/v1/x"), 1);
	sb_rest_answer_free(&a);
	(void)setenv("no_proxy", "service.invalid", 1);
	assert_fails(get(r, "/x", SB_REST_ONCE, &a, &err), SB_E_CONNECT, &err);
	(void)unsetenv("no_proxy");
	sb_rest_free(r);
	o.proxy = "";
	r = sb_rest_new(&o, &err);
	assert_fails(get(r, "/x", SB_REST_ONCE, &a, &err), SB_E_CONNECT, &err);
	sb_rest_free(r);
	(void)unsetenv("http_proxy");
	o.proxy = httpfix_url(fix);
	r = sb_rest_new(&o, &err);
	assert_ok(get(r, "/x", SB_REST_ONCE, &a, &err), &err);
	sb_rest_answer_free(&a);
	sb_rest_free(r);
}

static void
speaks_through_a_unix_socket(void **state)
{
	struct tmpdir tmp;
	char path[300], url[320];
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_answer a;
	struct sb_error err = { 0 };
	struct httpfix *f;
	struct sb_rest *r;

	(void)state;
	tmpdir_make(&tmp);
	(void)snprintf(path, sizeof path, "%s/s", tmp.path);
	(void)snprintf(url, sizeof url, "unix:%s", path);
	o.base = url;
	r = sb_rest_new(&o, &err);
	assert_fails(get(r, "/head", SB_REST_ONCE, &a, &err), SB_E_CONNECT, &err);
	assert_int_equal(err.sys, ENOENT);
	f = httpfix_start(path, answer, NULL);
	assert_ok(get(r, "/head", SB_REST_ONCE, &a, &err), &err);
	assert_int_equal(a.status, 200);
	sb_rest_answer_free(&a);
	sb_rest_free(r);
	httpfix_stop(f);
	tmpdir_remove(&tmp);
}

static void
refuses_what_it_cannot_send(void **state)
{
	static const char *const bases[] = { "ftp://x", "x", "http://", "http:///x",
		"https://me:pw@h", "http://h/?q", "http://h/#f", "http://h /", "unix:x" };
	static const char *const targets[] = { "x", "/a b", "/a\r\nX: y", "/a#b" };
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_header h = { "X", "a\r\nY: b", false };
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_answer a;
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
		o.base = bases[i];
		if (sb_rest_new(&o, &err))
			fail_msg("%s was taken", bases[i]);
		assert_int_equal(err.code, SB_E_INVAL);
		assert_null(strstr(err.msg, "pw"));
	}
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		assert_fails(get(r, targets[i], SB_REST_ONCE, &a, &err), SB_E_INVAL, &err);
	q.target = "/head";
	q.headers = &h;
	q.n_headers = 1;
	assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_INVAL, &err);
	h = (struct sb_rest_header){ "X Y", "a", false };
	assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_INVAL, &err);
}

static void
parts_of_a_target_are_escaped(void **state)
{
	sb_auto(sb_buf) struct sb_buf b;

	(void)state;
	sb_buf_init(&b, 1000);
	sb_rest_add_segment(&b, "a/b ?");
	sb_rest_add_segment(&b, "\xc3\xa4-._~");
	sb_rest_add_query(&b, "k=", "1&2");
	sb_rest_add_query(&b, "l", "%");
	assert_string_equal((char *)b.data, "/a%2Fb%20%3F/%C3%A4-._~?k%3D=1%262&l=%25");
}

/* --- secrets --- */

struct seen {
	char text[65536];
	size_t len;
};

static void
note(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	struct seen *s = arg;

	(void)level;
	(void)component;
	s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%s\n", text);
	assert_true(s->len < sizeof s->text);
}

static int
sign_it(unsigned n, struct sb_strlist *out, void *arg, struct sb_error *err)
{
	(void)arg;
	sb_strlist_addf(out, "X-Mark: %s-%u", SECRET, n);
	return sb_strlist_check(out, err);
}

static void
no_secret_reaches_a_log_or_a_message(void **state)
{
	static struct seen seen;
	struct sb_rest_header of_all[] = { { "Authorization", "Bearer " SECRET, false },
		{ "X-Plain", "plain-to-see", false } };
	struct sb_rest_header own = { "X-Odd", SECRET "odd", true };
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_answer a = { 0 };
	struct sb_error err = { 0 };
	json_t *in = json_pack("{s:s}", "message", "key " SECRET " is wrong");
	struct sb_rest *r;

	(void)state;
	o.base = httpfix_url(fix);
	o.headers = of_all;
	o.n_headers = 2;
	o.log = (struct sb_log){ .fn = note, .arg = &seen, .level = SB_LOG_TRACE };
	r = sb_rest_new(&o, &err);
	q.method = "POST";
	q.target = "/head?sig=" SECRET;
	q.headers = &own;
	q.n_headers = 1;
	q.sign = sign_it;
	q.json = in;
	q.secret = true;
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	assert_non_null(strstr((char *)a.body.data, "Authorization: Bearer " SECRET));
	assert_non_null(strstr((char *)a.body.data, "X-Mark: " SECRET "-1"));
	sb_rest_answer_free(&a);
	/* The service says it back. */
	q.target = "/status/401";
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	assert_fails(sb_rest_check(&a, "login", &err), SB_E_AUTH, &err);
	assert_string_equal(err.msg, "login: HTTP 401: key ***************** is wrong");
	sb_rest_answer_free(&a);
	assert_non_null(strstr(seen.text, "plain-to-see"));
	assert_non_null(strstr(seen.text, "/head: 200"));
	if (strstr(seen.text, SECRET))
		fail_msg("the log has the secret: %s", seen.text);
	json_decref(in);
	sb_rest_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_an_answer_and_its_headers),
		cmocka_unit_test(sends_json_and_keeps_the_connection),
		cmocka_unit_test(errors_have_a_code_and_the_services_words),
		cmocka_unit_test(tries_again_only_what_may_be),
		cmocka_unit_test(a_dead_connection_is_no_second_request),
		cmocka_unit_test(broken_answers_are_errors),
		cmocka_unit_test(nothing_waits_for_ever),
		cmocka_unit_test(a_cancel_ends_the_pause_between_tries),
		cmocka_unit_test(goes_through_the_proxy_of_the_environment),
		cmocka_unit_test(speaks_through_a_unix_socket),
		cmocka_unit_test(refuses_what_it_cannot_send),
		cmocka_unit_test(parts_of_a_target_are_escaped),
		cmocka_unit_test(no_secret_reaches_a_log_or_a_message),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
