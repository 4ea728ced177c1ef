/* SPDX-License-Identifier: MIT */
/* Connections that stay open for many syncs and commands, and the agents that wait on them. */
#include "config.h"

#include <sbsync/conn.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/strlist.h>
#include <sync/remote/shadow.h>
#include <sync/remote/conn.h>
#include <sync/remote/deploy.h>
#include <sync/wire/limit.h>
#include <sync/remote/remote.h>
#include <sync/ssh/ssh.h>

/*
 * The remote of a connection while it stands. Links and commands that use it keep it when the
 * connection gets another one.
 */
struct sb_conn_live {
	struct sb_remote *remote;
	unsigned users;
};

struct sb_conn {
	struct sb_endpoint to;
	bool keep;
	struct sb_recall *recall;
	char name[400];
	/* The route, copied. */
	struct sb_strlist agent;
	char *rsh, *identity, *ssh_config, *known_hosts;
	int port, stall_ms;
	uint64_t bwlimit;
	bool accept_new, token_login, ask_password, never_ask;
	struct sb_log log;

	pthread_mutex_t opening; /* held while a remote is opened, before `mu` */
	pthread_mutex_t mu;      /* guards what follows */
	struct sb_conn_live *live;
	struct sb_link *idle; /* greeted, its agent waits */
	unsigned users;       /* links and commands in use */
	uint64_t up, down;    /* of remotes that are gone */
};

struct sb_conn_exec {
	struct sb_conn *conn;
	struct sb_conn_live *live;
	struct sb_transport *t;
};

static bool
copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static bool
copy_endpoint(struct sb_endpoint *to, const struct sb_endpoint *from)
{
	to->kind = from->kind;
	to->port = from->port;
	return copy(&to->user, from->user) && copy(&to->host, from->host) &&
		copy(&to->path, from->path);
}

struct sb_conn *
sb_conn_new(const struct sb_endpoint *to, const struct sb_sync_opts *o, bool keep,
	struct sb_error *err)
{
	struct sb_conn *c = calloc(1, sizeof *c);
	int r = 0;

	if (!c) {
		sb_fail(err, SB_E_NOMEM, "connection: out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&c->opening, NULL);
	(void)pthread_mutex_init(&c->mu, NULL);
	c->keep = keep;
	c->recall = keep ? sb_recall_new() : NULL; /* done without, without memory */
	c->port = o->port;
	c->stall_ms = o->stall_ms;
	c->bwlimit = o->bwlimit;
	c->accept_new = o->accept_new_host_key;
	c->token_login = o->token_login;
	c->ask_password = o->ask_password;
	c->never_ask = o->never_ask;
	c->log = o->log;
	sb_strlist_add_all(&c->agent, o->agent);
	r = sb_strlist_check(&c->agent, err);
	if (r == 0 &&
		(!copy_endpoint(&c->to, to) || !copy(&c->rsh, o->rsh) ||
			!copy(&c->identity, o->identity) || !copy(&c->ssh_config, o->ssh_config) ||
			!copy(&c->known_hosts, o->known_hosts)))
		r = sb_fail(err, SB_E_NOMEM, "connection: out of memory");
	if (r < 0) {
		sb_conn_free(c);
		return NULL;
	}
	(void)snprintf(c->name, sizeof c->name, "%.32s%s%.255s", to->user ? to->user : "",
		to->user ? "@" : "", to->host ? to->host : "this machine");
	return c;
}

bool
sb_conn_keeps(const struct sb_conn *c)
{
	return c->keep;
}

struct sb_recall *
sb_conn_recall(struct sb_conn *c)
{
	return c->recall;
}

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool
sb_conn_serves(const struct sb_conn *c, const struct sb_endpoint *e)
{
	return c->to.kind == e->kind && same_text(c->to.user, e->user) &&
		same_text(c->to.host, e->host) &&
		(!e->port || !c->to.port || e->port == c->to.port);
}

/* With `mu` held. The last user closes it. */
static void
live_release(struct sb_conn *c, struct sb_conn_live *l)
{
	uint64_t up, down;

	if (!l || --l->users)
		return;
	sb_remote_wire_bytes(l->remote, &up, &down);
	c->up += up;
	c->down += down;
	sb_remote_free(l->remote);
	free(l);
}

static void
link_drop(struct sb_conn *c, struct sb_link *l)
{
	struct sb_conn_live *live;

	if (!l)
		return;
	live = l->live;
	sb_link_free(l);
	(void)pthread_mutex_lock(&c->mu);
	live_release(c, live);
	(void)pthread_mutex_unlock(&c->mu);
}

void
sb_conn_free(struct sb_conn *c)
{
	if (!c)
		return;
	assert(!c->users);
	if (c->idle) {
		(void)sb_link_close(c->idle, NULL);
		link_drop(c, c->idle);
	}
	live_release(c, c->live);
	sb_endpoint_free(&c->to);
	sb_strlist_free(&c->agent);
	sb_recall_free(c->recall);
	free(c->rsh);
	free(c->identity);
	free(c->ssh_config);
	free(c->known_hosts);
	(void)pthread_mutex_destroy(&c->mu);
	(void)pthread_mutex_destroy(&c->opening);
	free(c);
}

static struct sb_remote *
open_remote(struct sb_conn *c, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_remote_opts ro = SB_REMOTE_OPTS_INIT;
	const char *identity = c->identity;

	ro.to = &c->to;
	ro.port = c->port;
	ro.rsh = c->rsh;
	ro.config_file = c->ssh_config;
	ro.identities = &identity;
	ro.n_identities = identity ? 1 : 0;
	ro.known_hosts = c->known_hosts;
	ro.accept_new_host_key = c->accept_new;
	ro.use_none = c->token_login;
	ro.use_password = c->ask_password;
	ro.ask = c->never_ask ? NULL : sb_ssh_ask_tty;
	ro.ask_arg = (void *)(uintptr_t)cancel;
	ro.stall_ms = c->stall_ms;
	ro.bwlimit = c->bwlimit;
	ro.cancel = cancel;
	ro.cancel_connect_only = true;
	ro.log = c->log;
	return sb_remote_open(&ro, SB_NEVER, err);
}

/* A way to use: the one there is while it works, else a new one. */
static struct sb_conn_live *
live_get(struct sb_conn *c, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_conn_live *l;

	(void)pthread_mutex_lock(&c->opening);
	(void)pthread_mutex_lock(&c->mu);
	if (c->live && sb_remote_check(c->live->remote, NULL) < 0) {
		live_release(c, c->live);
		c->live = NULL;
	}
	if (!c->live) {
		(void)pthread_mutex_unlock(&c->mu);
		l = calloc(1, sizeof *l);
		if (!l)
			sb_fail(err, SB_E_NOMEM, "connection: out of memory");
		else
			l->remote = open_remote(c, cancel, err);
		if (!l || !l->remote) {
			free(l);
			(void)pthread_mutex_unlock(&c->opening);
			return NULL;
		}
		(void)pthread_mutex_lock(&c->mu);
		l->users = 1;
		c->live = l;
		(void)snprintf(c->name, sizeof c->name, "%s", sb_remote_name(l->remote));
	}
	l = c->live;
	l->users++;
	(void)pthread_mutex_unlock(&c->mu);
	(void)pthread_mutex_unlock(&c->opening);
	return l;
}

struct sb_conn *
sb_conn_open(const char *endpoint, const struct sb_sync_opts *opts, struct sb_error *err)
{
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	struct sb_error own = { 0 };
	struct sb_conn_live *l;
	struct sb_limit limit;
	struct sb_conn *c;
	int r = 0;

	if (!err)
		err = &own;
	if (sb_endpoint_parse(endpoint, &e, err) < 0 ||
		sb_limit_start(&limit, opts->cancel, opts->timeout_ms, err) < 0)
		return NULL;
	c = sb_conn_new(&e, opts, true, err);
	if (c && e.kind != SB_ENDPOINT_LOCAL) {
		l = live_get(c, sb_limit_cancel(&limit), err);
		r = l ? 0 : err->code;
		(void)pthread_mutex_lock(&c->mu);
		live_release(c, l);
		(void)pthread_mutex_unlock(&c->mu);
	}
	(void)sb_limit_end(&limit, r, err);
	if (r == 0)
		return c;
	sb_conn_free(c);
	return NULL;
}

int
sb_conn_check(struct sb_conn *c, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->mu);
	if (c->to.kind != SB_ENDPOINT_LOCAL)
		r = c->live ? sb_remote_check(c->live->remote, err) :
			      sb_fail(err, SB_E_CLOSED, "%s: not connected", c->name);
	(void)pthread_mutex_unlock(&c->mu);
	return r;
}

const char *
sb_conn_name(const struct sb_conn *c)
{
	return c->name;
}

void
sb_conn_wire_bytes(struct sb_conn *c, uint64_t *up, uint64_t *down)
{
	*up = *down = 0;
	(void)pthread_mutex_lock(&c->mu);
	if (c->live)
		sb_remote_wire_bytes(c->live->remote, up, down);
	*up += c->up;
	*down += c->down;
	(void)pthread_mutex_unlock(&c->mu);
}

static struct sb_transport *
start_child(struct sb_conn *c, struct sb_error *err)
{
	static const char *const own[] = { "/proc/self/exe", "agent", NULL };
	const char *const *argv = own;
	const char *words[16] = { NULL };

	if (c->agent.n) {
		for (size_t i = 0; i < c->agent.n && i < 15; i++)
			words[i] = c->agent.v[i];
		argv = words;
	}
	return sb_transport_child(argv, err);
}

/*
 * The first flush of the link: the agent is started, or brought there, with these bytes behind the
 * command.
 */
static int
start_remote(const void *first, size_t len, struct sb_transport **out, void *arg,
	struct sb_error *err)
{
	static const char *const argv[] = { "agent", NULL };
	struct sb_deploy_opts po = SB_DEPLOY_OPTS_INIT;
	struct sb_link *l = arg;
	int r;

	po.argv = argv;
	po.cancel = l->o->cancel;
	po.log = l->o->log;
	po.first = first;
	po.first_len = len;
	r = sb_deploy_open(l->live->remote, &po, NULL, &l->t, err);
	*out = l->t;
	return r;
}

static void
wire_opts(const struct sb_conn_live *live, const struct sb_sync_opts *o, struct sb_wire_opts *wo)
{
	*wo = (struct sb_wire_opts)SB_WIRE_OPTS_INIT;
	wo->cancel = o->cancel;
	wo->stall_ms = o->stall_ms;
	/* With libssh2 the connection itself is slowed down, both ways. */
	wo->bwlimit = live && !sb_remote_is_program(live->remote) ? 0 : o->bwlimit;
}

/* No agent can run there: one in this process serves what is brought here, and that is said. */
static int
start_shadow(struct sb_link *l, struct sb_error *err)
{
	struct sb_wire_opts wo;

	sb_log(&l->o->log, SB_LOG_INFO, "connect",
		"%s; going on without an agent there, with sh, find and tar", err->msg);
	memset(err, 0, sizeof *err);
	l->shadow = sb_shadow_new(l->live->remote, l->o, err);
	if (!l->shadow)
		return err->code;
	l->t = sb_transport_thread(l->o->state_dir, &l->o->log, err);
	if (!l->t)
		return err->code;
	wire_opts(NULL, l->o, &wo);
	wo.bwlimit = 0;
	return sb_link_greet(l, &wo, err);
}

static struct sb_link *
start_agent(struct sb_conn *c, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_conn_live *live = NULL;
	struct sb_transport *t = NULL;
	struct sb_link *l = NULL;
	struct sb_wire_opts wo;

	if (c->to.kind == SB_ENDPOINT_LOCAL) {
		t = start_child(c, err);
		if (!t)
			return NULL;
	} else {
		live = live_get(c, o->cancel, err);
		if (!live)
			return NULL;
	}
	wire_opts(live, o, &wo);
	wo.start = start_remote;
	l = sb_link_new(t, &wo, err);
	if (l) {
		l->conn = c;
		l->live = live;
		l->o = o;
		l->fall_back = live ? start_shadow : NULL;
		return l;
	}
	(void)pthread_mutex_lock(&c->mu);
	live_release(c, live);
	(void)pthread_mutex_unlock(&c->mu);
	return NULL;
}

struct sb_link *
sb_conn_take(struct sb_conn *c, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct sb_link *l;

	(void)pthread_mutex_lock(&c->mu);
	l = c->idle;
	c->idle = NULL;
	c->users++;
	(void)pthread_mutex_unlock(&c->mu);
	if (l && sb_wire_idle(l->w, &why) < 0) {
		sb_log(&o->log, SB_LOG_INFO, "connect", "%s: the agent that waited is gone: %s",
			c->name, why.msg);
		link_drop(c, l);
		l = NULL;
	}
	if (l) {
		sb_wire_renew(l->w, o->cancel, o->stall_ms,
			l->live && !sb_remote_is_program(l->live->remote) ? 0 : o->bwlimit);
		sb_conn_link_bytes(l, &l->up, &l->down);
		l->turns = sb_wire_turns(l->w);
		if (l->shadow)
			sb_shadow_renew(l->shadow, o);
		return l;
	}
	l = start_agent(c, o, err);
	if (l)
		return l;
	(void)pthread_mutex_lock(&c->mu);
	c->users--;
	(void)pthread_mutex_unlock(&c->mu);
	return NULL;
}

void
sb_conn_give(struct sb_link *l, bool reuse)
{
	struct sb_conn *c = l->conn;

	(void)pthread_mutex_lock(&c->mu);
	c->users--;
	if (reuse && c->keep && !c->idle) {
		l->o = NULL;
		sb_wire_renew(l->w, NULL, c->stall_ms, 0);
		if (l->shadow)
			sb_shadow_renew(l->shadow, NULL);
		c->idle = l;
		l = NULL;
	}
	(void)pthread_mutex_unlock(&c->mu);
	link_drop(c, l);
}

bool
sb_conn_lost(const struct sb_link *l, int code)
{
	if (l->lost || !l->live)
		return l->lost;
	/*
	 * Without an agent there the link itself never breaks; the ssh program shows only in what
	 * its commands returned.
	 */
	return sb_remote_check(l->live->remote, NULL) < 0 || (l->shadow && code == SB_E_CLOSED);
}

void
sb_conn_link_bytes(const struct sb_link *l, uint64_t *up, uint64_t *down)
{
	*up = *down = 0;
	if (l->live)
		sb_remote_wire_bytes(l->live->remote, up, down);
	/* Without a socket of ours to count at: what goes to the agent and comes from it. */
	if (!*up)
		sb_wire_counts(l->w, up, down);
}

static struct sb_conn_exec *
exec_new(struct sb_conn *c, struct sb_error *err)
{
	struct sb_conn_exec *x = calloc(1, sizeof *x);

	if (!x) {
		sb_fail(err, SB_E_NOMEM, "command: out of memory");
		return NULL;
	}
	x->conn = c;
	(void)pthread_mutex_lock(&c->mu);
	c->users++;
	(void)pthread_mutex_unlock(&c->mu);
	return x;
}

struct sb_conn_exec *
sb_conn_exec_agent(struct sb_conn *c, const char *verb, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	const char *const argv[] = { verb, NULL };
	struct sb_deploy_opts po = SB_DEPLOY_OPTS_INIT;
	struct sb_conn_exec *x = NULL;
	struct sb_limit limit;
	struct sb_error own = { 0 };
	int r;

	err = err ? err : &own;
	if (c->to.kind == SB_ENDPOINT_LOCAL) {
		sb_fail(err, SB_E_UNSUPPORTED, "%s: no agent is sent to the machine we are on",
			c->name);
		return NULL;
	}
	r = sb_check_alive(cancel, d, "start the agent", err);
	if (r < 0 || sb_limit_start(&limit, cancel, d == SB_NEVER ? 0 : d - sb_now_ms(), err) < 0)
		return NULL;
	x = exec_new(c, err);
	if (x)
		x->live = live_get(c, sb_limit_cancel(&limit), err);
	if (x && x->live) {
		po.argv = argv;
		po.split = true;
		po.cancel = sb_limit_cancel(&limit);
		po.log = c->log;
		(void)sb_deploy_open(x->live->remote, &po, NULL, &x->t, err);
	}
	(void)sb_limit_end(&limit, x && x->t ? 0 : err->code, err);
	if (x && x->t)
		return x;
	sb_conn_exec_free(x);
	return NULL;
}

struct sb_conn_exec *
sb_conn_exec(struct sb_conn *c, const char *command, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	struct sb_conn_exec *x = exec_new(c, err);

	if (!x)
		return NULL;
	if (c->to.kind == SB_ENDPOINT_LOCAL) {
		x->t = sb_transport_child_split(argv, err);
	} else {
		x->live = live_get(c, cancel, err);
		if (x->live)
			x->t = sb_remote_exec_split(x->live->remote, command, err);
	}
	if (x->t)
		return x;
	sb_conn_exec_free(x);
	return NULL;
}

int
sb_conn_exec_in(const struct sb_conn_exec *x)
{
	return x->t->wfd;
}

int
sb_conn_exec_out(const struct sb_conn_exec *x)
{
	return x->t->rfd;
}

int
sb_conn_exec_err(const struct sb_conn_exec *x)
{
	return x->t->efd;
}

int
sb_conn_exec_close_in(struct sb_conn_exec *x, struct sb_error *err)
{
	return x->t->ops->close_write(x->t, err);
}

int
sb_conn_exec_wait(struct sb_conn_exec *x, sb_deadline d, struct sb_conn_exit *out,
	struct sb_error *err)
{
	struct sb_exit e = { 0 };
	int r = x->t->ops->wait(x->t, d, &e, err);

	out->known = r == 0 && e.known;
	out->code = e.code;
	return r;
}

void
sb_conn_exec_cancel(struct sb_conn_exec *x)
{
	x->t->ops->cancel(x->t);
}

void
sb_conn_exec_free(struct sb_conn_exec *x)
{
	struct sb_conn *c;

	if (!x)
		return;
	c = x->conn;
	sb_transport_free(x->t);
	(void)pthread_mutex_lock(&c->mu);
	live_release(c, x->live);
	c->users--;
	(void)pthread_mutex_unlock(&c->mu);
	free(x);
}

bool
sb_conn_asks(void)
{
	return sb_ssh_tty_busy();
}
