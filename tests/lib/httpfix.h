/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_HTTPFIX_H
#define SB_TESTS_HTTPFIX_H

#include <stdbool.h>
#include <stddef.h>

/*
 * An HTTP server on loopback whose answers are written by hand: it reads requests, the test sends
 * bytes. A thread for each connection.
 */
struct httpfix;

struct httpfix_request {
	const char *method, *target;
	const char *head; /* the request line and all headers */
	const char *body; /* of chunked ones, put together */
	size_t body_len;
	unsigned conn; /* which connection, from 1 */
	unsigned n;    /* which request of this target's path, from 1, over all connections */
};

struct httpfix_conn;
/* Answers; false closes the connection. Runs on the thread of the connection. */
typedef bool (*httpfix_fn)(struct httpfix_conn *c, const struct httpfix_request *q, void *arg);

/* `socket`: a path for a unix socket, or NULL for TCP. Fails the test when it cannot. */
struct httpfix *httpfix_start(const char *socket, httpfix_fn fn, void *arg);
/* Closes every connection and joins the threads. */
void httpfix_stop(struct httpfix *f);
const char *httpfix_url(const struct httpfix *f); /* "http://127.0.0.1:PORT" */
unsigned httpfix_count(struct httpfix *f, const char *path);

void httpfix_send(struct httpfix_conn *c, const char *text, size_t len);
void httpfix_sendf(struct httpfix_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A whole answer with a length. */
void httpfix_answer(struct httpfix_conn *c, int status, const char *headers, const char *body);
/* Until the client has gone. */
void httpfix_wait_gone(struct httpfix_conn *c);
/* Goes away with a reset. */
void httpfix_reset(struct httpfix_conn *c);

#endif
