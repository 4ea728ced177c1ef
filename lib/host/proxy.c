/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/proxy.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/thread.h>
#include <host/porthead.h>

#define CHUNK (32 * 1024)
#define STACK_SIZE (256 * 1024)
#define DIAL_MS 5000
#define HEAD_MS 10000 /* for a client to show its token */
#define BACKLOG 64
/* A pause when descriptors or threads have run out. */
#define BREATH_MS 50

struct sb_proxy {
	atomic_uint refs;
	atomic_uint connections;
	int listener;
	int stop; /* an eventfd, readable for ever once the proxy stops */
	unsigned port;
	char *path; /* of a unix socket, or NULL */
	struct sb_proxy_target to;
};

static void
unref(struct sb_proxy *p)
{
	if (atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	if (p->listener >= 0)
		(void)close(p->listener);
	if (p->stop >= 0)
		(void)close(p->stop);
	if (p->to.release)
		p->to.release(p->to.arg);
	free(p->path);
	free(p);
}

/* One direction of a connection. */
struct flow {
	int from, to;
	size_t off, len;
	bool eof;  /* nothing more to read */
	bool done; /* and all was written and said */
	char buf[CHUNK];
};

/* False: the connection is broken. */
static bool
flow_read(struct flow *f)
{
	ssize_t n = recv(f->from, f->buf, sizeof f->buf, MSG_DONTWAIT);

	if (n > 0) {
		f->off = 0;
		f->len = (size_t)n;
	}
	f->eof = n == 0;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool
flow_write(struct flow *f)
{
	ssize_t n = send(f->to, f->buf + f->off, f->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0) {
		f->off += (size_t)n;
		f->len -= (size_t)n;
	}
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Reads when empty, writes when not, and hands the end on. */
static bool
flow_move(struct flow *f, short from, short to)
{
	if (f->done)
		return true;
	if (f->len == 0 && !f->eof && (from & (POLLIN | POLLHUP | POLLERR)) && !flow_read(f))
		return false;
	if (f->len > 0 && ((to & (POLLOUT | POLLERR)) || f->off == 0) && !flow_write(f))
		return false;
	if (f->eof && f->len == 0) {
		(void)shutdown(f->to, SHUT_WR);
		f->done = true;
	}
	return true;
}

static short
wants(const struct flow *in, const struct flow *out)
{
	short ev = 0;

	if (!in->done && in->len == 0 && !in->eof)
		ev |= POLLIN;
	if (!out->done && out->len > 0)
		ev |= POLLOUT;
	return ev;
}

static void
relay(const struct sb_proxy *p, int client, int server)
{
	struct flow *f = calloc(2, sizeof *f);

	if (!f)
		return;
	f[0] = (struct flow){ .from = client, .to = server };
	f[1] = (struct flow){ .from = server, .to = client };
	while (!f[0].done || !f[1].done) {
		struct pollfd fds[] = {
			{ .fd = client, .events = wants(&f[0], &f[1]) },
			{ .fd = server, .events = wants(&f[1], &f[0]) },
			{ .fd = p->stop, .events = POLLIN },
		};

		/* A side that nothing is wanted of would report its hang-up again and again. */
		for (int i = 0; i < 2; i++)
			if (!fds[i].events)
				fds[i].fd = -1;
		if ((poll(fds, 3, -1) < 0 && errno != EINTR) || fds[2].revents)
			break;
		if (!flow_move(&f[0], fds[0].revents, fds[1].revents) ||
			!flow_move(&f[1], fds[1].revents, fds[0].revents))
			break;
	}
	free(f);
}

struct conn {
	struct sb_proxy *p;
	int fd;
};

/* Takes the head off the connection and answers it: may this client go on? */
static bool
admitted(const struct sb_proxy *p, int fd)
{
	static const char no[] = "HTTP/1.1 407 Proxy Authentication Required\r\n"
				 "Proxy-Authenticate: Bearer\r\nConnection: close\r\n"
				 "Content-Length: 0\r\n\r\n";
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char head[SB_PORTHEAD_MAX], authorization[SB_PORTHEAD_MAX];
	sb_deadline d = sb_deadline_in(HEAD_MS);
	size_t len = 0, used = 0;
	int r = 0;

	while (r == 0) {
		struct pollfd fds[] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = p->stop, .events = POLLIN },
		};
		ssize_t n;

		if (sb_deadline_passed(d) ||
			(poll(fds, 2, sb_deadline_poll_ms(d)) < 0 && errno != EINTR) ||
			fds[1].revents)
			return false;
		if (!fds[0].revents)
			continue;
		/* What is behind the head is the process's: look first, take only the head. */
		n = recv(fd, head + len, sizeof head - len, MSG_DONTWAIT | MSG_PEEK);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return false;
		r = sb_porthead_read(head, len + (size_t)n, &used, authorization);
		n = recv(fd, head + len, r > 0 ? used - len : (size_t)n, MSG_DONTWAIT);
		if (n <= 0)
			return false;
		len += (size_t)n;
	}
	if (r > 0 && p->to.admit(p->to.arg, authorization))
		return send(fd, yes, sizeof yes - 1, MSG_NOSIGNAL) == sizeof yes - 1;
	(void)send(fd, no, sizeof no - 1, MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	return false;
}

static void *
serve(void *arg)
{
	struct conn *c = arg;
	struct sb_proxy *p = c->p;
	int on = 1;
	int server = -1;

	(void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if ((!p->to.admit || admitted(p, c->fd)) &&
		p->to.dial(p->to.arg, sb_deadline_in(DIAL_MS), &server, NULL) == 0) {
		(void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		relay(p, c->fd, server);
		(void)close(server);
	}
	(void)close(c->fd);
	free(c);
	atomic_fetch_sub(&p->connections, 1);
	unref(p);
	return NULL;
}

/* Takes `fd`. False: it could not be served. */
static bool
begin(struct sb_proxy *p, int fd)
{
	struct conn *c = NULL;

	if (atomic_fetch_add(&p->connections, 1) < SB_PROXY_CONNECTIONS_MAX)
		c = malloc(sizeof *c);
	if (c) {
		*c = (struct conn){ p, fd };
		atomic_fetch_add(&p->refs, 1);
		if (sb_thread_detached(STACK_SIZE, serve, c) == 0)
			return true;
		atomic_fetch_sub(&p->refs, 1);
		free(c);
	}
	atomic_fetch_sub(&p->connections, 1);
	(void)close(fd);
	return false;
}

static void *
accept_loop(void *arg)
{
	struct sb_proxy *p = arg;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = p->listener, .events = POLLIN },
			{ .fd = p->stop, .events = POLLIN },
		};
		int fd;

		if ((poll(fds, 2, -1) < 0 && errno != EINTR) || fds[1].revents)
			break;
		if (!fds[0].revents)
			continue;
		fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if ((fd >= 0 && begin(p, fd)) ||
			(fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)))
			continue;
		if (poll(&fds[1], 1, BREATH_MS) > 0)
			break;
	}
	(void)close(p->listener);
	p->listener = -1;
	unref(p);
	return NULL;
}

static int
bind_one(struct sb_proxy *p, const struct addrinfo *a)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof name;
	int on = 1;

	p->listener = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0)
		return -1;
	(void)setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(p->listener, a->ai_addr, a->ai_addrlen) < 0 || listen(p->listener, BACKLOG) < 0 ||
		getsockname(p->listener, (struct sockaddr *)&name, &len) < 0) {
		int sys = errno;

		(void)close(p->listener);
		p->listener = -1;
		errno = sys;
		return -1;
	}
	p->port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port :
						     ((struct sockaddr_in *)&name)->sin_port);
	return 0;
}

static int
listen_on(struct sb_proxy *p, const char *host, unsigned port, struct sb_error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char service[8];
	int r;

	(void)snprintf(service, sizeof service, "%u", port & 0xffff);
	r = getaddrinfo(host, service, &hints, &list);
	if (r != 0)
		return sb_fail(err, SB_E_INVAL, "address for ports %s: %s", host, gai_strerror(r));
	for (const struct addrinfo *a = list; a && p->listener < 0; a = a->ai_next)
		(void)bind_one(p, a);
	r = p->listener < 0 ? sb_fail_errno(err, "listen on %s port %u", host, port) : 0;
	freeaddrinfo(list);
	return r;
}

static int
listen_at(struct sb_proxy *p, const char *path, struct sb_error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(path) >= sizeof addr.sun_path)
		return sb_fail(err, SB_E_INVAL, "socket %s: longer than %zu bytes", path,
			sizeof addr.sun_path - 1);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	p->path = strdup(path);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The mode of the descriptor is that of the name: it is never open wider. */
	if (!p->path || p->listener < 0 || fchmod(p->listener, 0600) < 0 ||
		bind(p->listener, (const struct sockaddr *)&addr, sizeof addr) < 0 ||
		listen(p->listener, BACKLOG) < 0)
		return sb_fail_errno(err, "listen on %s", path);
	return 0;
}

/* On `path`, or else on `host` and `port`. */
static struct sb_proxy *
open_proxy(const char *path, const char *host, unsigned port, const struct sb_proxy_target *to,
	struct sb_error *err)
{
	struct sb_proxy *p = calloc(1, sizeof *p);
	int r = 0;

	if (!p) {
		(void)sb_fail(err, SB_E_NOMEM, "proxy");
		return NULL;
	}
	/* One for the caller, one for the thread that accepts. */
	atomic_init(&p->refs, 2);
	p->listener = -1;
	p->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->stop < 0)
		r = sb_fail_errno(err, "eventfd");
	if (r == 0)
		r = path ? listen_at(p, path, err) : listen_on(p, host, port, err);
	if (r == 0) {
		p->to = *to;
		if (sb_thread_detached(STACK_SIZE, accept_loop, p) != 0)
			r = sb_fail(err, SB_E_LIMIT, "proxy: cannot start a thread");
	}
	if (r < 0) {
		p->to.release = NULL;
		atomic_store(&p->refs, 1);
		unref(p);
		return NULL;
	}
	return p;
}

struct sb_proxy *
sb_proxy_open(const char *host, unsigned port, const struct sb_proxy_target *to,
	struct sb_error *err)
{
	return open_proxy(NULL, host, port, to, err);
}

struct sb_proxy *
sb_proxy_open_unix(const char *path, const struct sb_proxy_target *to, struct sb_error *err)
{
	return open_proxy(path, NULL, 0, to, err);
}

unsigned
sb_proxy_port(const struct sb_proxy *p)
{
	return p->port;
}

void
sb_proxy_stop(struct sb_proxy *p)
{
	const uint64_t one = 1;

	if (!p)
		return;
	/* Now, not when the thread comes to it: the next one may listen there by then. */
	if (p->path)
		(void)unlink(p->path);
	(void)!write(p->stop, &one, sizeof one);
	unref(p);
}
