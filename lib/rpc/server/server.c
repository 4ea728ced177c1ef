/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rpc/server/server-priv.h>
#include <rpc/server/tls.h>

#define IO_STACK (512 * 1024)
/* Of each connection, for a request's header and a piece of its body; cleared for every request. */
#define CONNECTION_MEMORY (16 * 1024)
/* What older versions lack, nobody who can speak our protocol needs. */
#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Gives a connection its place in the table, takes it back. */
static void
on_connection(void *cls, struct MHD_Connection *mc, void **ctx,
	enum MHD_ConnectionNotificationCode what)
{
	struct sb_rpc_listener *l = cls;
	struct sb_rpc_server *s = l->server;
	const union MHD_ConnectionInfo *info;
	int on = 1, idle = 30, every = 10, count = 3;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*ctx) {
			sb_rpc_watchdog_remove(s->watch, *ctx);
			sb_rpc_metrics_add(s->metrics, SB_RPC_GAUGE_CONNECTIONS, -1);
		}
		*ctx = NULL;
		return;
	}
	info = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info)
		return;
	if (!l->is_unix) {
		/* A peer that vanished without a word must not hold its call for ever. */
		(void)setsockopt(info->connect_fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
		(void)setsockopt(info->connect_fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
		(void)setsockopt(info->connect_fd, IPPROTO_TCP, TCP_KEEPINTVL, &every,
			sizeof every);
		(void)setsockopt(info->connect_fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	}
	*ctx = sb_rpc_watchdog_add(s->watch, l, info->connect_fd);
	if (*ctx) {
		sb_rpc_metrics_add(s->metrics, SB_RPC_GAUGE_CONNECTIONS, 1);
		sb_rpc_metrics_add(s->metrics, SB_RPC_GAUGE_ACCEPTED, 1);
	}
}

static void on_mhd_log(void *cls, const char *fmt, va_list ap) SB_PRINTF(2, 0);

static void
on_mhd_log(void *cls, const char *fmt, va_list ap)
{
	struct sb_rpc_server *s = cls;
	char text[256];

	(void)vsnprintf(text, sizeof text, fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	sb_log(&s->o.log, SB_LOG_DEBUG, "http", "%s", text);
}

static enum MHD_Result
on_accept(void *arg, const struct sockaddr *addr, socklen_t len)
{
	struct sb_rpc_listener *l = arg;

	(void)addr;
	(void)len;
	return atomic_load(&l->server->stopping) ? MHD_NO : MHD_YES;
}

static int
start_daemon(struct sb_rpc_listener *l, const struct sb_rpc_server_opts *o, struct sb_error *err)
{
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
		MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
	sb_auto(sb_buf) struct sb_buf cert = { 0 }, key = { 0 };
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	int r;

	if (!l->is_unix && o->tls_cert) {
		r = sb_rpc_tls_load(o->tls_cert, o->tls_key, &cert, &key, err);
		if (r < 0)
			return r;
		flags |= MHD_USE_TLS;
		tls[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, cert.data };
		tls[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, key.data };
		tls[2] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
			(void *)(uintptr_t)TLS_VERSIONS };
		l->tls = true;
	}
	l->daemon = MHD_start_daemon(flags, 0, on_accept, l, sb_rpc_call_on_request, l,
		MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, l->server, MHD_OPTION_LISTEN_SOCKET, l->fd,
		MHD_OPTION_THREAD_POOL_SIZE, o->io_threads, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)IO_STACK, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_CONNECTION_LIMIT, o->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)((o->idle_ms + 999) / 1000), MHD_OPTION_NOTIFY_COMPLETED,
		sb_rpc_call_on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
		MHD_OPTION_URI_LOG_CALLBACK, sb_rpc_request_target, l, MHD_OPTION_STRICT_FOR_CLIENT,
		1, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!l->daemon)
		return sb_fail(err, SB_E_SYS, "cannot start the HTTP server");
	return 0;
}

static int
check_opts(const struct sb_rpc_server_opts *o, struct sb_error *err)
{
	if (!o->listen || !o->listen[0])
		return sb_fail(err, SB_E_INVAL, "no address to listen on");
	if (!o->tls_cert != !o->tls_key)
		return sb_fail(err, SB_E_INVAL, "a TLS certificate and its key go together");
	if (o->max_calls == 0 || o->max_streams == 0 || o->max_connections == 0 ||
		o->io_threads == 0)
		return sb_fail(err, SB_E_INVAL,
			"limits of calls, streams, connections and threads must not be 0");
	if (o->max_message > INT32_MAX)
		return sb_fail(err, SB_E_INVAL, "max message size must be below 2 GiB");
	return 0;
}

static struct sb_rpc_share *
new_share(const struct sb_rpc_server_opts *o, struct sb_error *err)
{
	size_t bytes = o->max_buffered / 8;
	const struct sb_rpc_share_limit limits[SB_RPC_SHARES] = {
		[SB_RPC_SHARE_CALLS] = { o->max_calls, o->max_calls_each },
		[SB_RPC_SHARE_STREAMS] = { o->max_streams, o->max_streams_each },
		/* The largest message always fits. */
		[SB_RPC_SHARE_BYTES] = { o->max_buffered,
			bytes > 2 * o->max_message ? bytes : 2 * o->max_message },
	};

	return sb_rpc_share_new(limits, err);
}

static int
start_all(struct sb_rpc_server *s, const struct sb_rpc_server_opts *o, struct sb_error *err)
{
	int r = 0;

	s->names = calloc(s->service->n, sizeof *s->names);
	if (!s->names)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; i < s->service->n; i++)
		s->names[i] = s->service->methods[i].name;
	if (!(s->metrics = sb_rpc_metrics_new(s->names, s->service->n, err)) ||
		!(s->calls = sb_rpc_pool_new(o->max_calls, err)) ||
		!(s->streams = sb_rpc_pool_new(o->max_streams, err)) ||
		!(s->share = new_share(o, err)) ||
		!(s->watch = sb_rpc_watchdog_new(s, o->max_connections * SB_RPC_LISTEN_MAX, err)))
		return SB_E_NOMEM;
	for (size_t i = 0; o->listen[i] && r == 0; i++) {
		if (i == SB_RPC_LISTEN_MAX)
			return sb_fail(err, SB_E_INVAL, "more than %d addresses to listen on",
				SB_RPC_LISTEN_MAX);
		s->listeners[i].server = s;
		s->n_listeners = i + 1;
		r = sb_rpc_listen_open(&s->listeners[i], o->listen[i], o, err);
	}
	/* All are bound before the first answers. */
	for (size_t i = 0; i < s->n_listeners && r == 0; i++)
		r = start_daemon(&s->listeners[i], o, err);
	return r;
}

struct sb_rpc_server *
sb_rpc_server_start(const struct sb_rpc_server_opts *opts, const struct sb_rpc_service *service,
	struct sb_error *err)
{
	struct sb_rpc_server *s;

	if (check_opts(opts, err) < 0)
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	s->o = *opts;
	s->o.listen = NULL;
	s->o.tls_cert = s->o.tls_key = NULL;
	s->service = service;
	(void)pthread_mutex_init(&s->login.mu, NULL);
	for (size_t i = 0; i < SB_RPC_LISTEN_MAX; i++)
		s->listeners[i].fd = -1;
	if (start_all(s, opts, err) < 0) {
		sb_rpc_server_free(s);
		return NULL;
	}
	return s;
}

void
sb_rpc_server_check(const struct sb_rpc_server_opts *o, void (*found)(const char *what, void *arg),
	void *arg)
{
	struct sb_error err = { 0 };

	if (check_opts(o, &err) < 0)
		found(err.msg, arg);
	for (size_t i = 0; o->listen && o->listen[i]; i++)
		if (sb_rpc_listen_check(o->listen[i], o, &err) < 0)
			found(err.msg, arg);
	if (o->tls_cert && o->tls_key && sb_rpc_tls_check(o->tls_cert, o->tls_key, &err) < 0)
		found(err.msg, arg);
}

unsigned
sb_rpc_server_port(const struct sb_rpc_server *s, size_t i)
{
	return i < s->n_listeners ? s->listeners[i].port : 0;
}

/* Until the count is 0, the time is over or somebody is in a hurry. */
static void
wait_for_zero(_Atomic unsigned *count, sb_deadline d, const struct sb_cancel *hurry)
{
	struct timespec nap = { .tv_nsec = 2000000 };

	while (atomic_load(count) > 0 && !sb_deadline_passed(d) && !sb_cancel_requested(hurry))
		(void)nanosleep(&nap, NULL);
}

void
sb_rpc_server_stop(struct sb_rpc_server *s, int64_t grace_ms, const struct sb_cancel *hurry)
{
	sb_deadline d = grace_ms > 0 ? sb_deadline_in(grace_ms) : sb_now_ms();

	if (atomic_exchange(&s->stopping, true))
		return;
	/*
	 * MHD_quiesce_daemon is not for epoll: it and the daemon's thread both take the listening
	 * socket out of the set, and who comes second aborts the process. New connections are
	 * closed by on_accept instead.
	 */
	for (size_t i = 0; i < s->n_listeners; i++)
		sb_rpc_listen_hide(&s->listeners[i]);
	if (s->watch) {
		sb_rpc_watchdog_abort(s->watch, true, SB_E_SHUTTING_DOWN);
		wait_for_zero(&s->running, d, hurry);
		sb_rpc_watchdog_abort(s->watch, false, SB_E_SHUTTING_DOWN);
		wait_for_zero(&s->running, SB_NEVER, NULL);
		wait_for_zero(&s->live, sb_deadline_in(1000), NULL);
	}
	for (size_t i = 0; i < s->n_listeners; i++) {
		if (s->listeners[i].daemon) {
			MHD_stop_daemon(s->listeners[i].daemon);
			s->listeners[i].daemon = NULL;
			s->listeners[i].fd = -1; /* closed with it */
		}
		sb_rpc_listen_close(&s->listeners[i]);
	}
}

void
sb_rpc_server_free(struct sb_rpc_server *s)
{
	if (!s)
		return;
	sb_rpc_server_stop(s, 0, NULL);
	sb_rpc_pool_free(s->calls);
	sb_rpc_pool_free(s->streams);
	sb_rpc_share_free(s->share);
	sb_rpc_watchdog_free(s->watch);
	sb_rpc_metrics_free(s->metrics);
	(void)pthread_mutex_destroy(&s->login.mu);
	free(s->names);
	free(s);
}
