/* SPDX-License-Identifier: MIT */
/* A server of answers written by hand (see its header). */
#include "config.h"

#include "tests/lib/httpfix.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/unit.h"

#define CONNS_MAX 256
#define PATHS_MAX 64
#define READ_MAX (64 << 20)

struct httpfix_conn {
	struct httpfix *fix;
	pthread_t thread;
	int fd;
	unsigned number;
	char *in; /* what came and is not used up */
	size_t len, cap;
};

struct httpfix {
	int fd;
	pthread_t thread;
	pthread_mutex_t mu;
	char url[128];
	httpfix_fn fn;
	void *arg;
	struct httpfix_conn *conns[CONNS_MAX];
	unsigned n_conns;
	struct {
		char path[128];
		unsigned n;
	} paths[PATHS_MAX];
	bool stopping;
};

void
httpfix_send(struct httpfix_conn *c, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void
httpfix_sendf(struct httpfix_conn *c, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n > 0)
		httpfix_send(c, text, (size_t)n);
	free(text);
}

void
httpfix_answer(struct httpfix_conn *c, int status, const char *headers, const char *body)
{
	httpfix_sendf(c, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n%s", status,
		headers ? headers : "", strlen(body), body);
}

void
httpfix_wait_gone(struct httpfix_conn *c)
{
	char junk[4096];

	while (recv(c->fd, junk, sizeof junk, 0) > 0)
		;
}

void
httpfix_reset(struct httpfix_conn *c)
{
	struct linger l = { .l_onoff = 1 };

	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
}

/* More bytes into `in`; false at the end. */
static bool
more(struct httpfix_conn *c)
{
	ssize_t n;

	if (c->cap - c->len < 65536) {
		c->cap = c->cap ? 2 * c->cap : 131072;
		c->in = realloc(c->in, c->cap + 1);
	}
	if (!c->in || c->cap > READ_MAX)
		return false;
	n = recv(c->fd, c->in + c->len, c->cap - c->len, 0);
	if (n <= 0)
		return false;
	c->len += (size_t)n;
	c->in[c->len] = '\0';
	return true;
}

static void
used(struct httpfix_conn *c, size_t n)
{
	memmove(c->in, c->in + n, c->len - n + 1);
	c->len -= n;
}

static bool
line(struct httpfix_conn *c, size_t *len)
{
	char *end;

	while (!c->in || !(end = memmem(c->in, c->len, "\r\n", 2)))
		if (!more(c))
			return false;
	*len = (size_t)(end - c->in);
	return true;
}

static bool
chunked(struct httpfix_conn *c, char **body, size_t *body_len)
{
	size_t len, n;

	for (;;) {
		if (!line(c, &len))
			return false;
		n = strtoul(c->in, NULL, 16);
		used(c, len + 2);
		while (c->len < n + 2)
			if (!more(c))
				return false;
		*body = realloc(*body, *body_len + n + 1);
		memcpy(*body + *body_len, c->in, n);
		*body_len += n;
		(*body)[*body_len] = '\0';
		used(c, n + 2);
		if (n == 0)
			return true;
	}
}

static unsigned
count(struct httpfix *f, const char *target, unsigned add)
{
	size_t len = strcspn(target, "?");
	unsigned n = 0;

	(void)pthread_mutex_lock(&f->mu);
	for (size_t i = 0; i < PATHS_MAX; i++)
		if (!*f->paths[i].path ||
			(strncmp(f->paths[i].path, target, len) == 0 && !f->paths[i].path[len])) {
			(void)snprintf(f->paths[i].path, sizeof f->paths[i].path, "%.*s", (int)len,
				target);
			f->paths[i].n += add;
			n = f->paths[i].n;
			break;
		}
	(void)pthread_mutex_unlock(&f->mu);
	return n;
}

unsigned
httpfix_count(struct httpfix *f, const char *path)
{
	return count(f, path, 0);
}

/* Reads one request and answers it; false when the connection is over. */
static bool
serve(struct httpfix_conn *c)
{
	char method[32] = "", target[4096] = "", *head, *end, *body = NULL, *field;
	size_t len = 0;
	bool go_on;

	while (!c->in || !(end = memmem(c->in, c->len, "\r\n\r\n", 4)))
		if (!more(c))
			return false;
	head = strndup(c->in, (size_t)(end - c->in));
	used(c, (size_t)(end - c->in) + 4);
	go_on = sscanf(head, "%31s %4095s", method, target) == 2;
	if (go_on && strcasestr(head, "\r\ntransfer-encoding: chunked")) {
		go_on = chunked(c, &body, &len);
	} else if (go_on && (field = strcasestr(head, "\r\ncontent-length:")) != NULL) {
		len = strtoul(field + strlen("\r\ncontent-length:"), NULL, 10);
		while (go_on && c->len < len)
			go_on = more(c);
		if (go_on) {
			body = strndup("", 0);
			body = realloc(body, len + 1);
			memcpy(body, c->in, len);
			body[len] = '\0';
			used(c, len);
		}
	}
	if (go_on) {
		struct httpfix_request q = { method, target, head, body ? body : "", len, c->number,
			count(c->fix, target, 1) };

		go_on = c->fix->fn(c, &q, c->fix->arg);
	}
	free(head);
	free(body);
	return go_on;
}

static void *
on_conn(void *arg)
{
	struct httpfix_conn *c = arg;

	while (serve(c))
		;
	(void)pthread_mutex_lock(&c->fix->mu);
	(void)close(c->fd);
	c->fd = -1;
	(void)pthread_mutex_unlock(&c->fix->mu);
	return NULL;
}

static void *
on_listen(void *arg)
{
	struct httpfix *f = arg;

	for (;;) {
		int fd = accept(f->fd, NULL, NULL), one = 1;
		struct httpfix_conn *c;

		(void)pthread_mutex_lock(&f->mu);
		if (fd < 0 || f->stopping || f->n_conns == CONNS_MAX) {
			if (fd >= 0)
				(void)close(fd);
			(void)pthread_mutex_unlock(&f->mu);
			return NULL;
		}
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		c = calloc(1, sizeof *c);
		c->fix = f;
		c->fd = fd;
		c->number = f->n_conns + 1;
		f->conns[f->n_conns++] = c;
		(void)pthread_create(&c->thread, NULL, on_conn, c);
		(void)pthread_mutex_unlock(&f->mu);
	}
}

struct httpfix *
httpfix_start(const char *path, httpfix_fn fn, void *arg)
{
	struct httpfix *f = calloc(1, sizeof *f);
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof in;

	assert_non_null(f);
	f->fn = fn;
	f->arg = arg;
	(void)pthread_mutex_init(&f->mu, NULL);
	f->fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (path) {
		(void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
		assert_int_equal(bind(f->fd, (struct sockaddr *)&un, sizeof un), 0);
		(void)snprintf(f->url, sizeof f->url, "unix:%.100s", path);
	} else {
		assert_int_equal(bind(f->fd, (struct sockaddr *)&in, sizeof in), 0);
		assert_int_equal(getsockname(f->fd, (struct sockaddr *)&in, &len), 0);
		(void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u", ntohs(in.sin_port));
	}
	assert_int_equal(listen(f->fd, 128), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, on_listen, f), 0);
	return f;
}

const char *
httpfix_url(const struct httpfix *f)
{
	return f->url;
}

void
httpfix_stop(struct httpfix *f)
{
	(void)pthread_mutex_lock(&f->mu);
	f->stopping = true;
	(void)shutdown(f->fd, SHUT_RDWR);
	for (unsigned i = 0; i < f->n_conns; i++)
		if (f->conns[i]->fd >= 0)
			(void)shutdown(f->conns[i]->fd, SHUT_RDWR);
	(void)pthread_mutex_unlock(&f->mu);
	(void)pthread_join(f->thread, NULL);
	for (unsigned i = 0; i < f->n_conns; i++) {
		(void)pthread_join(f->conns[i]->thread, NULL);
		free(f->conns[i]->in);
		free(f->conns[i]);
	}
	(void)close(f->fd);
	(void)pthread_mutex_destroy(&f->mu);
	free(f);
}
