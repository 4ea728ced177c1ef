/* SPDX-License-Identifier: MIT */
/* The HTTP client with bodies that come and go in pieces, and many threads at once. */
#include "config.h"

#include "tests/lib/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cloud/http/rest.h>

#include "tests/unit/rest-toy.h"

struct pattern {
	size_t at, size, fail_at;
	unsigned rewinds;
	bool wrong;
	int fd;
};

static ssize_t
read_pattern(void *buf, size_t len, void *arg, struct sb_error *err)
{
	struct pattern *p = arg;
	size_t n = p->size - p->at < len ? p->size - p->at : len;

	if (p->fail_at && p->at >= p->fail_at)
		return sb_fail(err, SB_E_CORRUPT, "the source is damaged");
	for (size_t i = 0; i < n; i++)
		((char *)buf)[i] = (char)((p->at + i) * 7 % 251);
	p->at += n;
	return (ssize_t)n;
}

static int
rewind_pattern(void *arg, struct sb_error *err)
{
	struct pattern *p = arg;

	(void)err;
	p->at = 0;
	p->rewinds++;
	return 0;
}

static int
write_pattern(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct pattern *p = arg;

	for (size_t i = 0; i < len; i++)
		p->wrong = p->wrong || ((const char *)data)[i] != (char)((p->at + i) * 7 % 251);
	p->at += len;
	if (p->fail_at && p->at >= p->fail_at)
		return sb_fail(err, SB_E_CORRUPT, "enough");
	return 0;
}

static void
streams_both_ways(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_error err = { 0 };

	(void)state;
	q.method = "PUT";
	q.target = "/echo";
	q.read = read_pattern;
	q.write = write_pattern;
	for (int i = 0; i < 4; i++) {
		struct pattern in = { .size = i / 2 ? 5000000 : 0 }, out = { 0 };
		struct sb_rest_answer a = { 0 };

		q.chunked = i % 2;
		q.body_len = in.size;
		q.read_arg = &in;
		q.write_arg = &out;
		assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
		assert_int_equal(out.at, in.size);
		assert_false(out.wrong);
		sb_rest_answer_free(&a);
	}
}

static void
what_a_callback_says_ends_the_call(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct pattern in = { .size = 1000000, .fail_at = 300000 }, out = { .fail_at = 1000 };
	struct sb_rest_answer a = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	q.method = "PUT";
	q.target = "/echo";
	q.read = read_pattern;
	q.rewind = rewind_pattern;
	q.read_arg = &in;
	q.chunked = true;
	q.again = SB_REST_REPEAT;
	assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_CORRUPT, &err);
	assert_string_equal(err.msg, "the source is damaged");
	assert_int_equal(in.rewinds, 0);
	in = (struct pattern){ .size = 1000000 };
	q.write = write_pattern;
	q.write_arg = &out;
	assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_CORRUPT, &err);
	assert_string_equal(err.msg, "enough");
	assert_int_equal(in.rewinds, 0);
}

static void
a_stream_goes_out_again_only_rewound(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct pattern in = { .size = 300000 };
	struct sb_rest_answer a = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	q.method = "PUT";
	q.target = "/ill-stream-a";
	q.read = read_pattern;
	q.read_arg = &in;
	q.body_len = in.size;
	q.again = SB_REST_REPEAT;
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	assert_int_equal(a.status, 502);
	sb_rest_answer_free(&a);
	in.at = 0;
	q.target = "/ill-stream-b";
	q.rewind = rewind_pattern;
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	assert_int_equal(a.status, 200);
	assert_int_equal(in.rewinds, 2);
	sb_rest_answer_free(&a);
	/* What was handed on is not handed on twice. */
	q = (struct sb_rest_request)SB_REST_REQUEST_INIT;
	in = (struct pattern){ 0 };
	q.target = "/bad-cut-stream";
	q.again = SB_REST_REPEAT;
	q.write = write_pattern;
	q.write_arg = &in;
	assert_fails(sb_rest_call(r, &q, NULL, &a, &err), SB_E_CLOSED, &err);
	assert_int_equal(httpfix_count(fix, "/bad-cut-stream"), 1);
}

/* Answers come while the caller has nothing to send. */
static ssize_t
read_fd(void *buf, size_t len, void *arg, struct sb_error *err)
{
	ssize_t n = read(((struct pattern *)arg)->fd, buf, len);

	return n < 0 ? sb_fail_errno(err, "read") : n;
}

static bool
duplex(struct httpfix_conn *c, const struct httpfix_request *q, void *arg)
{
	int *feed = arg;

	/* The request is complete when this runs, so its end came through the pipe. */
	(void)feed;
	httpfix_answer(c, 200, NULL, q->body);
	return true;
}

static void *
feed_slowly(void *arg)
{
	struct timespec t = { .tv_nsec = 20000000 };

	for (int i = 0; i < 5; i++) {
		(void)nanosleep(&t, NULL);
		(void)!write(*(int *)arg, "drop ", 5);
	}
	(void)close(*(int *)arg);
	return NULL;
}

static void
a_body_may_come_from_a_pipe(void **state)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct httpfix *f = httpfix_start(NULL, duplex, NULL);
	struct pattern p = { 0 };
	struct sb_rest_answer a = { 0 };
	struct sb_error err = { 0 };
	struct sb_rest *r;
	pthread_t t;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	o.base = httpfix_url(f);
	o.stall_ms = 5000;
	r = sb_rest_new(&o, &err);
	p.fd = fds[0];
	q.method = "POST";
	q.read = read_fd;
	q.read_arg = &p;
	q.read_fd = fds[0];
	q.chunked = true;
	assert_int_equal(pthread_create(&t, NULL, feed_slowly, &fds[1]), 0);
	assert_ok(sb_rest_call(r, &q, NULL, &a, &err), &err);
	(void)pthread_join(t, NULL);
	assert_string_equal((char *)a.body.data, "drop drop drop drop drop ");
	sb_rest_answer_free(&a);
	sb_rest_free(r);
	httpfix_stop(f);
	(void)close(fds[0]);
}

/* --- many at once --- */

static void *
ask_often(void *arg)
{
	struct sb_rest *r = arg;
	intptr_t bad = 0;

	for (int i = 0; i < 50; i++) {
		struct pattern in = { .size = 2000 }, out = { 0 };
		struct sb_rest_request q = SB_REST_REQUEST_INIT;
		struct sb_rest_answer a = { 0 };

		q.method = "POST";
		q.target = "/echo-many";
		q.read = read_pattern;
		q.read_arg = &in;
		q.body_len = in.size;
		q.write = write_pattern;
		q.write_arg = &out;
		bad += sb_rest_call(r, &q, NULL, &a, NULL) < 0 || out.wrong || out.at != 2000;
		sb_rest_answer_free(&a);
	}
	return (void *)bad;
}

static void
many_threads_share_a_client(void **state)
{
	sb_auto(sb_rest) struct sb_rest *r = client();
	pthread_t t[8];
	void *bad;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_often, r), 0);
	for (int i = 0; i < 8; i++) {
		(void)pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(httpfix_count(fix, "/echo-many"), 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_both_ways),
		cmocka_unit_test(what_a_callback_says_ends_the_call),
		cmocka_unit_test(a_stream_goes_out_again_only_rewound),
		cmocka_unit_test(a_body_may_come_from_a_pipe),
		cmocka_unit_test(many_threads_share_a_client),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
