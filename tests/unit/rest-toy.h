/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_REST_TOY_H
#define SB_TESTS_REST_TOY_H

/* A server for the tests of the HTTP client: what it answers is said by the target. */
#include "tests/lib/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cloud/http/rest.h>

#include "tests/lib/httpfix.h"

#define SECRET "canary-d41d8cd98f"

static struct httpfix *fix;
static int ended_fd[2]; /* a byte for each client that went away while it was waited for */

static inline bool
starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Those that fail at first. */
static inline bool
answer_in_time(struct httpfix_conn *c, const struct httpfix_request *q)
{
	char when[64];
	time_t t = time(NULL) - 100;

	if (starts(q->target, "/busy-date")) {
		(void)strftime(when, sizeof when, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&t));
		httpfix_sendf(c, "HTTP/1.1 %d X\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
			q->n < 2 ? 503 : 200, when);
	} else if (starts(q->target, "/busy-long")) {
		httpfix_answer(c, 429, "Retry-After: 86400\r\n", "{\"message\":\"later\"}");
	} else if (starts(q->target, "/busy-after")) {
		httpfix_answer(c, q->n < 3 ? 429 : 200, "Retry-After: 0\r\n", "after");
	} else if (starts(q->target, "/busy")) {
		httpfix_answer(c, q->n < 3 ? 429 : 200, NULL, "plain");
	} else if (starts(q->target, "/ill")) {
		httpfix_answer(c, q->n < 3 ? 502 : 200, NULL, "well");
	} else {
		httpfix_answer(c, 500, NULL, "{\"error\":{\"message\":\"always\"}}");
	}
	return true;
}

static inline bool
answer_badly(struct httpfix_conn *c, const struct httpfix_request *q)
{
	if (starts(q->target, "/bad-cut")) {
		httpfix_sendf(c, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf");
	} else if (starts(q->target, "/bad-once")) {
		if (q->n >= 2)
			httpfix_answer(c, 200, NULL, "second");
		return q->n >= 2;
	} else if (starts(q->target, "/bad-reset")) {
		httpfix_reset(c);
	} else if (starts(q->target, "/bad-words")) {
		httpfix_sendf(c, "HELLO\r\n\r\n");
	} else if (starts(q->target, "/bad-head")) {
		httpfix_sendf(c, "HTTP/1.1 200 X\r\n");
		for (int i = 0; i < 9000; i++)
			httpfix_sendf(c, "X-Much-%d: aaaaaaaaaaaaaaaa\r\n", i);
	} else if (starts(q->target, "/bad-silent")) {
		httpfix_wait_gone(c);
		(void)!write(ended_fd[1], "x", 1);
	} else if (starts(q->target, "/bad-slow")) {
		httpfix_sendf(c, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nsome");
		httpfix_wait_gone(c);
		(void)!write(ended_fd[1], "x", 1);
	} else { /* more than anybody wants */
		httpfix_sendf(c, "HTTP/1.1 %d X\r\nConnection: close\r\n\r\n",
			starts(q->target, "/bad-long-error") ? 400 : 200);
		for (int i = 0; i < 1000; i++)
			httpfix_sendf(c, "%01000d", i);
	}
	return false;
}

static inline bool
answer(struct httpfix_conn *c, const struct httpfix_request *q, void *arg)
{
	(void)arg;
	if (starts(q->target, "/bad"))
		return answer_badly(c, q);
	if (starts(q->target, "/busy") || starts(q->target, "/ill") || starts(q->target, "/always"))
		return answer_in_time(c, q);
	if (starts(q->target, "http://")) { /* a proxy is asked like this */
		httpfix_answer(c, 200, NULL, "by proxy");
	} else if (starts(q->target, "/head")) {
		httpfix_answer(c, 200, "X-One: 1\r\nX-Two:  b c \r\nSet-Cookie: a=" SECRET "\r\n",
			q->head);
	} else if (starts(q->target, "/echo")) {
		httpfix_sendf(c, "HTTP/1.1 200 X\r\nContent-Length: %zu\r\nX-Conn: %u\r\n\r\n",
			q->body_len, q->conn);
		httpfix_send(c, q->body, q->body_len);
	} else if (starts(q->target, "/status/")) {
		httpfix_answer(c, (int)strtol(q->target + 8, NULL, 10), NULL, q->body);
	} else {
		httpfix_answer(c, 404, NULL, "{\"code\":404,\"message\":\"no\\u001b[31m such\"}");
	}
	return true;
}

static inline int
set_up(void **state)
{
	(void)state;
	(void)unsetenv("http_proxy");
	(void)unsetenv("all_proxy");
	if (pipe(ended_fd) < 0)
		return -1;
	fix = httpfix_start(NULL, answer, NULL);
	return 0;
}

static inline int
tear_down(void **state)
{
	(void)state;
	httpfix_stop(fix);
	(void)close(ended_fd[0]);
	(void)close(ended_fd[1]);
	return 0;
}

static inline struct sb_rest *
client(void)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_rest *r;

	o.base = httpfix_url(fix);
	o.pause_ms = 1;
	o.pause_max_ms = 4;
	r = sb_rest_new(&o, &err);
	assert_non_null(r);
	return r;
}

static inline int
get(struct sb_rest *r, const char *target, enum sb_rest_again again, struct sb_rest_answer *a,
	struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;

	q.target = target;
	q.again = again;
	*a = (struct sb_rest_answer){ 0 };
	return sb_rest_call(r, &q, NULL, a, err);
}

#endif
