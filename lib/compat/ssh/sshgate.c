/* SPDX-License-Identifier: MIT */
/* The SSH gateway: its start, the connections that come, its end. */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/str.h>
#include <compat/ssh/sshgate-priv.h>
#include <host/host.h>
#include <host/runtime/runtime.h>
#include <rpc/service/daemon.h>

/* Of all connections, so many may be of people who are not logged in: one of this. */
#define STRANGERS_PART 2

/* Who was told to go is killed and has nothing to finish: it is soon gone. */
#define LEAVE_MS 10000
#define LOOK_MS 100 /* between looks at the end of the gateway */

static void
name_peer(const struct sockaddr *a, socklen_t len, char *out, size_t size)
{
	char host[48], port[8];

	if (getnameinfo(a, len, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		(void)snprintf(out, size, "%s %s", host, port);
	else
		(void)snprintf(out, size, "unknown");
}

static void
tell_over(struct sb_sshgate_conn *c)
{
	c->over = true;
	(void)!write(c->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* Waits until a connection has ended, at most for LOOK_MS; `mu` is held. */
static void
await_end(struct sb_sshgate *g)
{
	sb_cond_wait_until(&g->cv, &g->mu, sb_deadline_in(LOOK_MS));
}

/* Who waits for a login for the longest time; or NULL. `*leaving`: some are told to go. */
static struct sb_sshgate_conn *
oldest_stranger(const struct sb_sshgate *g, bool *leaving)
{
	struct sb_sshgate_conn *oldest = NULL;

	*leaving = false;
	for (struct sb_sshgate_conn *c = g->conns; c; c = c->next) {
		*leaving |= c->over;
		if (!c->session[0] && !c->over)
			oldest = c;
	}
	return oldest;
}

/*
 * Counts a connection in. False: there are too many. Where too many wait for a login, who waits
 * longest goes, so that silence locks nobody out. Who goes counts until it is gone: the newcomer,
 * and all behind it, wait for that.
 */
static bool
count_in(struct sb_sshgate *g)
{
	unsigned strangers = g->o.max_connections / STRANGERS_PART;
	sb_deadline until = sb_deadline_in(LEAVE_MS);
	bool told = false, room, leaving;

	(void)pthread_mutex_lock(&g->mu);
	while (g->n_strangers >= strangers || g->n_conns >= g->o.max_connections) {
		struct sb_sshgate_conn *oldest = oldest_stranger(g, &leaving);

		if (oldest && !told)
			tell_over(oldest);
		else if (!leaving)
			break;
		told = true;
		if (sb_deadline_passed(until) || sb_cancel_requested(g->stop))
			break;
		await_end(g);
	}
	room = g->n_conns < g->o.max_connections;
	g->n_conns += room;
	g->n_strangers += room;
	(void)pthread_mutex_unlock(&g->mu);
	return room;
}

static void
take_one(struct sb_sshgate *g, int listener)
{
	struct sb_error err = { 0 };
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	int fd = accept4(listener, (struct sockaddr *)&a, &len, SOCK_CLOEXEC);
	char peer[64], local[64];

	if (fd < 0) {
		/* Without descriptors it would come back at once. */
		if (errno == EMFILE || errno == ENFILE)
			(void)usleep(100000);
		return;
	}
	name_peer((struct sockaddr *)&a, len, peer, sizeof peer);
	len = sizeof a;
	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		len = 0;
	name_peer((struct sockaddr *)&a, len, local, sizeof local);
	if (!count_in(g)) {
		sb_log(&g->log, SB_LOG_WARN, "ssh", "%s: refused, too many connections", peer);
		(void)close(fd);
		return;
	}
	if (sb_sshgate_conn_start(g, fd, peer, local, &err) == 0)
		return;
	sb_log(&g->log, SB_LOG_ERROR, "ssh", "%s: %s", peer, err.msg);
	(void)pthread_mutex_lock(&g->mu);
	g->n_conns--;
	g->n_strangers--;
	(void)pthread_mutex_unlock(&g->mu);
}

static void *
accept_thread(void *arg)
{
	struct sb_sshgate *g = arg;
	struct pollfd p[9];

	for (size_t i = 0; i < g->n_listen; i++)
		p[i] = (struct pollfd){ .fd = g->listen[i], .events = POLLIN };
	p[g->n_listen] = (struct pollfd){ .fd = sb_cancel_fd(g->stop), .events = POLLIN };
	while (!sb_cancel_requested(g->stop)) {
		if (poll(p, g->n_listen + 1, -1) < 0)
			continue;
		for (size_t i = 0; i < g->n_listen; i++)
			if (p[i].revents)
				take_one(g, g->listen[i]);
	}
	return NULL;
}

static int
start_thread(struct sb_sshgate *g, struct sb_error *err)
{
	sigset_t all, old;
	int sys;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	sys = pthread_create(&g->thread, NULL, accept_thread, g);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	g->running = sys == 0;
	return sys ? sb_fail(err, SB_E_SYS, "cannot start a thread") : 0;
}

static char *
copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static int
find_programs(struct sb_sshgate *g, const struct sb_host_opts *host, struct sb_error *err)
{
	g->door = sb_runtime_helper_of(host, "sb-ssh");
	g->helper = sb_runtime_helper(host);
	if (!g->door)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this build has no SSH gateway: configure it where libssh is "
			"(Debian: libssh-dev)");
	return g->helper ? 0 : sb_fail(err, SB_E_UNSUPPORTED, "the helper sb-box is not found");
}

static int
start(struct sb_sshgate *g, struct sb_rpc_daemon *d, const struct sb_sshgate_opts *o,
	struct sb_error *err)
{
	int r;

	memcpy(&g->o, o, o->size < sizeof g->o ? o->size : sizeof g->o);
	g->host = sb_rpc_daemon_host(d);
	g->auth = sb_rpc_daemon_auth(d);
	g->access = sb_rpc_daemon_access(d);
	g->log = o->log;
	g->keys = copy(o->authorized_keys);
	g->session_keys = copy(o->session_keys);
	if ((o->authorized_keys && !g->keys) || (o->session_keys && !g->session_keys))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	g->stop = sb_cancel_new(err);
	r = g->stop ? find_programs(g, sb_host_options(g->host), err) : SB_E_NOMEM;
	if (r == 0)
		r = sb_sshgate_key(g, o->host_key, &g->host_key, err);
	if (r == 0)
		r = sb_sshgate_listen(g, o->listen, err);
	return r < 0 ? r : start_thread(g, err);
}

struct sb_sshgate *
sb_sshgate_start(struct sb_rpc_daemon *d, const struct sb_sshgate_opts *o, struct sb_error *err)
{
	struct sb_sshgate *g = calloc(1, sizeof *g);

	if (!g) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&g->mu, NULL);
	sb_cond_init(&g->cv);
	sb_buf_init(&g->host_key, SB_SSHWIRE_SECRET_MAX);
	if (start(g, d, o, err) == 0)
		return g;
	sb_sshgate_free(g);
	return NULL;
}

/* Every connection ends by itself once it is told. */
static void
end_all(struct sb_sshgate *g)
{
	(void)pthread_mutex_lock(&g->mu);
	for (struct sb_sshgate_conn *c = g->conns; c; c = c->next)
		tell_over(c);
	while (g->n_conns > 0)
		(void)pthread_cond_wait(&g->cv, &g->mu);
	(void)pthread_mutex_unlock(&g->mu);
}

void
sb_sshgate_free(struct sb_sshgate *g)
{
	if (!g)
		return;
	if (g->running) {
		sb_cancel_request(g->stop);
		(void)pthread_join(g->thread, NULL);
	}
	for (size_t i = 0; i < g->n_listen; i++)
		(void)close(g->listen[i]);
	end_all(g);
	sb_cancel_free(g->stop);
	if (g->host_key.len > 0)
		explicit_bzero(g->host_key.data, g->host_key.len);
	sb_buf_free(&g->host_key);
	(void)pthread_mutex_destroy(&g->mu);
	(void)pthread_cond_destroy(&g->cv);
	free(g->door);
	free(g->helper);
	free(g->keys);
	free(g->session_keys);
	free(g);
}
