/* SPDX-License-Identifier: MIT */
/* One SSH connection as the gateway sees it: its door, what the door asks, its end. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/child.h>
#include <base/cond.h>
#include <base/spawn.h>
#include <base/thread.h>
#include <compat/ssh/sshgate-priv.h>

#define STACK (256u << 10)
#define TICK_MS 1000
/* Keys that are offered and passwords that are tried. */
#define TRIES_MAX 20
#define LINK_BYTES (512 << 10)

int
sb_sshgate_answer(struct sb_sshgate_conn *c, bool yes, const char *why, const int *fds,
	size_t n_fds, struct sb_error *err)
{
	const struct sb_sshwire_frame f = { .what = SB_SSHWIRE_ANSWER,
		.x = yes,
		.a = (const uint8_t *)why,
		.a_len = why ? strlen(why) : 0 };

	return sb_sshwire_send(c->link, &f, fds, n_fds, err);
}

/* The first login: it counts from now on for its session. False: that has enough. */
static bool
count_login(struct sb_sshgate_conn *c)
{
	struct sb_sshgate *g = c->gate;
	unsigned n = 0;

	(void)pthread_mutex_lock(&g->mu);
	for (const struct sb_sshgate_conn *o = g->conns; o; o = o->next)
		n += strcmp(o->session, c->session) == 0;
	g->n_strangers--;
	(void)pthread_mutex_unlock(&g->mu);
	return n <= g->o.max_each;
}

static int
login(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f, struct sb_error *err)
{
	static const char *const ways[] = { "", "token", "password", "key offered", "key" };
	struct sb_error why = { 0 };
	int r;

	if (c->way != SB_SSHGATE_NOBODY)
		return sb_fail(err, SB_E_PROTO, "a second login");
	if (++c->tries > TRIES_MAX)
		return sb_fail(err, SB_E_AUTH, "too many logins that failed");
	r = sb_sshgate_login(c, f, &why);
	if (r < 0 && r != SB_E_AUTH)
		sb_log(&c->gate->log, SB_LOG_ERROR, "ssh", "%s: %s", c->peer, why.msg);
	if (c->way != SB_SSHGATE_NOBODY) {
		if (!count_login(c))
			return sb_fail(err, SB_E_LIMIT, "session %s has %u SSH connections already",
				c->session, c->gate->o.max_each);
		c->login_by = SB_NEVER;
		sb_log(&c->gate->log, SB_LOG_INFO, "ssh", "%s: session %s by %s", c->peer,
			c->session, ways[f->kind]);
	}
	return sb_sshgate_answer(c, r == 0, NULL, NULL, 0, err);
}

static int
handle(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f, struct sb_error *err)
{
	struct sb_sshgate_job *j = c->jobs;

	if (f->what == SB_SSHWIRE_LOGIN)
		return login(c, f, err);
	if (c->way == SB_SSHGATE_NOBODY)
		return sb_fail(err, SB_E_PROTO, "frame %u before the login", f->what);
	switch (f->what) {
	case SB_SSHWIRE_START: return sb_sshgate_job_start(c, f, err);
	case SB_SSHWIRE_DIAL: return sb_sshgate_job_dial(c, f, err);
	case SB_SSHWIRE_SIGNAL: return sb_sshgate_job_signal(c, f);
	case SB_SSHWIRE_CLOSE:
		while (j && j->id != f->id)
			j = j->next;
		if (j)
			sb_sshgate_job_leave(j);
		return 0;
	default: return sb_fail(err, SB_E_PROTO, "frame %u is not for the gateway", f->what);
	}
}

static int
tick(struct sb_sshgate_conn *c, struct sb_error *err)
{
	bool over;

	sb_sshgate_job_tidy(c);
	(void)pthread_mutex_lock(&c->gate->mu);
	over = c->over;
	(void)pthread_mutex_unlock(&c->gate->mu);
	if (over)
		return sb_fail(err, SB_E_CANCELED, "the host needs the room");
	if (sb_deadline_passed(c->login_by))
		return sb_fail(err, SB_E_TIMEOUT, "no login in time");
	if (c->way != SB_SSHGATE_NOBODY && sb_sshgate_login_again(c, NULL) < 0)
		return sb_fail(err, SB_E_AUTH, "it may not be in session %s any more", c->session);
	return 0;
}

static int
serve(struct sb_sshgate_conn *c, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf room;
	sb_deadline next = sb_deadline_in(TICK_MS);
	int r = 0;

	sb_buf_init(&room, SB_SSHWIRE_MAX + 1);
	while (r == 0) {
		struct pollfd p[2] = { { .fd = c->link, .events = POLLIN },
			{ .fd = c->wake, .events = POLLIN } };
		struct sb_sshwire_frame f;

		if (poll(p, 2, sb_deadline_poll_ms(next)) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (p[0].revents) {
			r = sb_sshwire_receive(c->link, &room, &f, NULL, NULL, err);
			if (r == 0)
				r = handle(c, &f, err);
			explicit_bzero(room.data, room.len);
		}
		if (r == 0 && (p[1].revents || sb_deadline_passed(next))) {
			uint64_t n;

			if (p[1].revents)
				(void)!read(c->wake, &n, sizeof n);
			r = tick(c, err);
			next = sb_deadline_in(TICK_MS);
		}
	}
	return r;
}

static int
start_door(struct sb_sshgate_conn *c, struct sb_child *door, struct sb_error *err)
{
	const char *const argv[] = { c->gate->door, "serve", NULL };
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_sshwire_frame config = { .what = SB_SSHWIRE_CONFIG,
		.kind = c->gate->o.max_channels,
		.x = (uint32_t)c->gate->o.idle_s,
		.a = c->gate->host_key.data,
		.a_len = c->gate->host_key.len };
	int pair[2], size = LINK_BYTES, r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return sb_fail_errno(err, "socketpair");
	c->link = pair[0];
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	o.io[0] = o.io[1] = SB_SPAWN_FD;
	o.io[2] = SB_SPAWN_INHERIT;
	o.fds[0] = pair[1];
	o.fds[1] = c->sock;
	o.env = env;
	o.cwd = "/";
	o.search_path = false;
	o.die_with_parent = true;
	r = sb_spawn(argv, &o, door, err);
	(void)close(pair[1]);
	(void)close(c->sock);
	c->sock = -1;
	return r < 0 ? r : sb_sshwire_send(c->link, &config, NULL, 0, err);
}

static void
conn_free(struct sb_sshgate_conn *c)
{
	struct sb_sshgate *g = c->gate;

	(void)pthread_mutex_lock(&g->mu);
	for (struct sb_sshgate_conn **p = &g->conns; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	g->n_conns--;
	g->n_strangers -= c->way == SB_SSHGATE_NOBODY;
	(void)pthread_cond_broadcast(&g->cv);
	(void)pthread_mutex_unlock(&g->mu);
	if (c->sock >= 0)
		(void)close(c->sock);
	if (c->link >= 0)
		(void)close(c->link);
	(void)close(c->wake);
	if (c->credential)
		explicit_bzero(c->credential, strlen(c->credential));
	free(c->credential);
	(void)pthread_mutex_destroy(&c->mu);
	(void)pthread_cond_destroy(&c->cv);
	free(c);
}

static void *
conn_thread(void *arg)
{
	struct sb_sshgate_conn *c = arg;
	struct sb_child door = SB_CHILD_INIT;
	struct sb_error err = { 0 };
	int r = start_door(c, &door, &err);

	if (r == 0)
		r = serve(c, &err);
	sb_child_stop(&door, 0);
	sb_sshgate_job_end(c);
	sb_log(&c->gate->log, r == SB_E_CLOSED ? SB_LOG_DEBUG : SB_LOG_WARN, "ssh",
		"%s: connection over: %s", c->peer, err.msg);
	conn_free(c);
	return NULL;
}

int
sb_sshgate_conn_start(struct sb_sshgate *g, int sock, const char *peer, const char *local,
	struct sb_error *err)
{
	struct sb_sshgate_conn *c = calloc(1, sizeof *c);
	int wake = c ? eventfd(0, EFD_CLOEXEC) : -1;

	if (wake < 0) {
		free(c);
		(void)close(sock);
		return sb_fail(err, SB_E_LIMIT, "no room for a connection");
	}
	*c = (struct sb_sshgate_conn){ .gate = g,
		.sock = sock,
		.link = -1,
		.wake = wake,
		.login_by = sb_deadline_in(g->o.login_ms) };
	(void)snprintf(c->peer, sizeof c->peer, "%s", peer);
	(void)snprintf(c->local, sizeof c->local, "%s", local);
	(void)pthread_mutex_init(&c->mu, NULL);
	sb_cond_init(&c->cv);
	(void)pthread_mutex_lock(&g->mu);
	c->next = g->conns;
	g->conns = c;
	(void)pthread_mutex_unlock(&g->mu);
	if (sb_thread_detached(STACK, conn_thread, c) == 0)
		return 0;
	(void)pthread_mutex_lock(&g->mu);
	g->conns = c->next;
	(void)pthread_mutex_unlock(&g->mu);
	(void)close(c->sock);
	(void)close(c->wake);
	free(c);
	return sb_fail(err, SB_E_LIMIT, "cannot start a thread");
}
