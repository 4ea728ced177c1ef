/* SPDX-License-Identifier: MIT */
/* Opens the addresses that the server listens on: unix sockets, TCP, TLS. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <rpc/server/server-priv.h>

#define BACKLOG 511

/* Something answers on the socket at `addr`. */
static bool
is_alive(const struct sockaddr_un *addr)
{
	sb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 &&
		(connect(fd, (const struct sockaddr *)addr, sizeof *addr) == 0 || errno == EAGAIN);
}

/* A socket that a dead server left behind is in the way; anything else is not ours to remove. */
static int
clear_path(const struct sockaddr_un *addr, struct sb_error *err)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", addr->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return sb_fail(err, SB_E_EXISTS, "%s exists and is not a socket", addr->sun_path);
	if (is_alive(addr))
		return sb_fail(err, SB_E_EXISTS, "another server listens on %s", addr->sun_path);
	if (unlink(addr->sun_path) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "remove %s", addr->sun_path);
	return 0;
}

static int
open_unix(struct sb_rpc_listener *l, const char *path, const struct sb_rpc_server_opts *o,
	struct sb_error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r;

	if (strlen(path) >= sizeof addr.sun_path)
		return sb_fail(err, SB_E_INVAL, "socket path %s is longer than %zu bytes", path,
			sizeof addr.sun_path - 1);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	r = clear_path(&addr, err);
	if (r < 0)
		return r;
	l->is_unix = true;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return sb_fail_errno(err, "socket");
	/*
	 * The mode of the descriptor bounds the mode of the name, so that it is never open wider.
	 */
	if (fchmod(l->fd, o->socket_mode) < 0 ||
		bind(l->fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
		return sb_fail_errno(err, "bind %s", path);
	l->path = strdup(path);
	if (!l->path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (o->socket_gid != (gid_t)-1 && lchown(path, (uid_t)-1, o->socket_gid) < 0)
		return sb_fail_errno(err, "chown %s", path);
	if (chmod(path, o->socket_mode) < 0)
		return sb_fail_errno(err, "chmod %s", path);
	if (listen(l->fd, BACKLOG) < 0)
		return sb_fail_errno(err, "listen on %s", path);
	return 0;
}

static int
bind_one(struct sb_rpc_listener *l, const struct addrinfo *ai)
{
	int on = 1, off = 0;

	l->fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		ai->ai_protocol);
	if (l->fd < 0)
		return -1;
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (ai->ai_family == AF_INET6)
		(void)setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(l->fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(l->fd, BACKLOG) == 0)
		return 0;
	(void)close(l->fd);
	l->fd = -1;
	return -1;
}

static unsigned
bound_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { 0 };
	socklen_t len = sizeof a;

	if (getsockname(fd, &a.any, &len) < 0)
		return 0;
	return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

static bool
is_loopback(const struct addrinfo *ai)
{
	union {
		const struct sockaddr *any;
		const struct sockaddr_in *v4;
		const struct sockaddr_in6 *v6;
	} a = { .any = ai->ai_addr };

	if (ai->ai_family == AF_INET)
		return ntohl(a.v4->sin_addr.s_addr) >> 24 == 127;
	return ai->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6->sin6_addr);
}

/* "HOST:PORT", "[V6]:PORT" or ":PORT" (every address) as addresses; freed by the caller. */
static int
resolve(const char *where, struct addrinfo **out, struct sb_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_ADDRCONFIG };
	sb_autofree char *host = strdup(where);
	char *colon = host ? strrchr(host, ':') : NULL;
	const char *name = host;
	int64_t port;
	int r;

	if (!host)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!colon || !sb_str_to_i64(colon + 1, 0, 65535, &port))
		return sb_fail(err, SB_E_INVAL,
			"listen address %s must be HOST:PORT, :PORT or unix:PATH", where);
	*colon = '\0';
	if (host[0] == '[' && colon > host + 1 && colon[-1] == ']') {
		colon[-1] = '\0';
		name = host + 1;
	}
	r = getaddrinfo(name[0] ? name : NULL, colon + 1, &hints, out);
	if (r != 0)
		return sb_fail(err, SB_E_INVAL, "listen address %s: %s", where, gai_strerror(r));
	return 0;
}

static int
check_tcp(const char *where, const struct addrinfo *list, const struct sb_rpc_server_opts *o,
	struct sb_error *err)
{
	if (!o->auth || sb_rpc_auth_count(o->auth) == 0)
		return sb_fail(err, SB_E_INVAL,
			"listening on %s needs a token: give one, or listen on a unix socket",
			where);
	for (const struct addrinfo *ai = list; ai && !o->tls_cert && !o->plain_tcp;
		ai = ai->ai_next)
		if (!is_loopback(ai))
			return sb_fail(err, SB_E_INVAL,
				"listening on %s without TLS shows tokens to the network: give a "
				"certificate and key, or allow plain TCP",
				where);
	return 0;
}

static bool
is_unix(const char *where)
{
	return sb_str_starts(where, "unix:") || strchr(where, '/');
}

int
sb_rpc_listen_check(const char *where, const struct sb_rpc_server_opts *o, struct sb_error *err)
{
	struct addrinfo *list = NULL;
	int r;

	if (is_unix(where))
		return 0;
	r = resolve(where, &list, err);
	if (r == 0)
		r = check_tcp(where, list, o, err);
	if (list)
		freeaddrinfo(list);
	return r;
}

static int
open_tcp(struct sb_rpc_listener *l, const char *where, const struct sb_rpc_server_opts *o,
	struct sb_error *err)
{
	struct addrinfo *list = NULL;
	int r = resolve(where, &list, err);

	if (r == 0)
		r = check_tcp(where, list, o, err);
	if (r < 0) {
		if (list)
			freeaddrinfo(list);
		return r;
	}
	errno = EADDRNOTAVAIL;
	for (struct addrinfo *ai = list; ai && l->fd < 0; ai = ai->ai_next)
		(void)bind_one(l, ai);
	freeaddrinfo(list);
	if (l->fd < 0)
		return sb_fail_errno(err, "listen on %s", where);
	l->port = bound_port(l->fd);
	return 0;
}

int
sb_rpc_listen_open(struct sb_rpc_listener *l, const char *where, const struct sb_rpc_server_opts *o,
	struct sb_error *err)
{
	l->fd = -1;
	if (is_unix(where))
		return open_unix(l, sb_str_starts(where, "unix:") ? where + 5 : where, o, err);
	return open_tcp(l, where, o, err);
}

void
sb_rpc_listen_hide(struct sb_rpc_listener *l)
{
	if (l->path)
		(void)unlink(l->path);
	free(l->path);
	l->path = NULL;
}

void
sb_rpc_listen_close(struct sb_rpc_listener *l)
{
	sb_rpc_listen_hide(l);
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}
