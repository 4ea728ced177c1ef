/* SPDX-License-Identifier: MIT */
/*
 * The programs of an SSH connection. Each runs by sb_host_attach, with pipes or sockets whose other
 * ends the door gets: what goes through them never passes here.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/str.h>
#include <base/thread.h>
#include <compat/ssh/sshgate-priv.h>
#include <host/host.h>
#include <host/runtime/box.h>
#include <host/runtime/runtime.h>

#define STACK (256u << 10)
/* What nobody listens to any more may take so long to end by itself. */
#define MOMENT_MS 3000

static void
close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

static void
job_free(struct sb_sshgate_job *j)
{
	close_all(j->fds, 3);
	sb_strlist_free(&j->argv);
	sb_strlist_free(&j->env);
	sb_cancel_free(j->cancel);
	free(j);
}

static struct sb_sshgate_job *
job_new(struct sb_sshgate_conn *c, uint32_t id, struct sb_error *err)
{
	struct sb_sshgate_job *j = calloc(1, sizeof *j);

	if (!j) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	*j = (struct sb_sshgate_job){ .conn = c,
		.id = id,
		.fds = { -1, -1, -1 },
		.end_at = SB_NEVER };
	j->cancel = sb_cancel_new(err);
	if (j->cancel)
		return j;
	free(j);
	return NULL;
}

/* The program has its own by now. */
static void
started(void *arg)
{
	struct sb_sshgate_job *j = arg;

	close_all(j->fds, 3);
	(void)pthread_mutex_lock(&j->conn->mu);
	j->runs = true;
	if (j->early)
		(void)sb_host_attach_signal(j->conn->gate->host, j->conn->session, j->number,
			j->early, NULL);
	(void)pthread_mutex_unlock(&j->conn->mu);
}

static void *
job_thread(void *arg)
{
	struct sb_sshgate_job *j = arg;
	struct sb_sshgate_conn *c = j->conn;
	struct sb_host_attach a = SB_HOST_ATTACH_INIT;
	const struct sb_host_call call = { .cancel = j->cancel, .deadline = SB_NEVER };
	struct sb_sshwire_frame f = { .what = SB_SSHWIRE_EXIT, .id = j->id };
	struct sb_error err = { 0 };
	int code = 255;

	a.session = c->session;
	a.argv = (const char *const *)j->argv.v;
	a.env = (const char *const *)j->env.v;
	memcpy(a.fds, j->fds, sizeof a.fds);
	a.started = started;
	a.arg = j;
	a.leave = true;
	a.number = &j->number;
	if (sb_host_attach(c->gate->host, &a, &call, &code, &err) < 0) {
		f.a = (const uint8_t *)err.msg;
		f.a_len = strlen(err.msg);
	}
	f.x = (uint32_t)(code & 255);
	close_all(j->fds, 3);
	(void)pthread_mutex_lock(&c->mu);
	/* Once the door has heard of it, it may give the number to another. */
	j->done = true;
	/* A door that does not even read this is cut off. */
	if (sb_sshwire_send(c->link, &f, NULL, 0, NULL) == SB_E_LIMIT)
		(void)shutdown(c->link, SHUT_RDWR);
	(void)pthread_cond_broadcast(&c->cv);
	(void)pthread_mutex_unlock(&c->mu);
	return NULL;
}

/* Takes `j`; hands `theirs` to the door. */
static int
launch(struct sb_sshgate_job *j, int *theirs, size_t n, struct sb_error *err)
{
	struct sb_sshgate_conn *c = j->conn;
	int r;

	if (sb_thread_detached(STACK, job_thread, j) != 0) {
		job_free(j);
		close_all(theirs, n);
		return sb_sshgate_answer(c, false, "the host has no room for it", NULL, 0, err);
	}
	j->next = c->jobs;
	c->jobs = j;
	c->n_jobs++;
	r = sb_sshgate_answer(c, true, NULL, theirs, n, err);
	close_all(theirs, n);
	return r;
}

/* A socket for input and output, a second one for errors or control. */
static int
open_sockets(struct sb_sshgate_job *j, int theirs[3], struct sb_error *err)
{
	int a[2], b[2] = { -1, -1 };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) < 0)
		return sb_fail_errno(err, "socketpair");
	j->fds[0] = a[1];
	theirs[0] = a[0];
	j->fds[1] = dup(a[1]);
	theirs[1] = dup(a[0]);
	if (j->fds[1] < 0 || theirs[1] < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) < 0)
		return sb_fail_errno(err, "socketpair");
	j->fds[2] = b[1];
	theirs[2] = b[0];
	return 0;
}

static int
open_pipes(struct sb_sshgate_job *j, int theirs[3], uid_t owner, struct sb_error *err)
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			return sb_fail_errno(err, "pipe");
		j->fds[i] = p[i == 0 ? 0 : 1];
		theirs[i] = p[i == 0 ? 1 : 0];
		/* So that the program may open it by name, too (/dev/stderr). */
		if (owner)
			(void)fchown(j->fds[i], owner, owner);
	}
	return 0;
}

/* Which of them the client may set: LANG, LC_*, what git and terminals say. */
static bool
may_set(const char *e)
{
	static const char *const names[] = { "TERM=", "COLORTERM=", "LANG=", "LC_",
		"TZ=", "GIT_PROTOCOL=", "SSH_AUTH_SOCK=/tmp/" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (sb_str_starts(e, names[i]))
			return true;
	return false;
}

static void
take_env(struct sb_sshgate_job *j, const struct sb_sshwire_frame *f)
{
	const char *p = (const char *)f->b, *end = p + f->b_len;

	for (; p < end; p += strlen(p) + 1)
		if (may_set(p) && strchr(p, '='))
			sb_strlist_add(&j->env, p);
	sb_strlist_addf(&j->env, "SSH_CONNECTION=%s %s", j->conn->peer, j->conn->local);
}

static void
make_argv(struct sb_sshgate_job *j, const char *helper, const struct sb_sshwire_frame *f)
{
	sb_autofree char *command = sb_sshwire_text(f->a, f->a_len);

	sb_strlist_add(&j->argv, helper);
	switch ((enum sb_sshwire_kind)f->kind) {
	case SB_SSHWIRE_SFTP: sb_strlist_add(&j->argv, "sftp"); return;
	case SB_SSHWIRE_AGENT: sb_strlist_add(&j->argv, "agent"); return;
	default: sb_strlist_add(&j->argv, "shell");
	}
	if (f->x) {
		sb_strlist_add(&j->argv, "-t");
		sb_strlist_addf(&j->argv, "%ux%u", f->x, f->y);
	}
	if (f->kind == SB_SSHWIRE_EXEC) {
		sb_strlist_add(&j->argv, "-c");
		sb_strlist_add(&j->argv, command);
	}
}

/* What the session is, for what is started in it. */
struct place {
	const char *helper;
	uid_t owner;
	bool own_network;
};

static int
look(struct sb_sshgate_conn *c, struct place *out, struct sb_error *err)
{
	struct sb_host_session s;
	int r = sb_host_session_get(c->gate->host, c->session, false, &s, err);

	if (r < 0)
		return r;
	*out = (struct place){ c->gate->helper, 0, false };
	if (s.runtime != SB_HOST_RUNTIME_NONE) {
		out->helper = SB_BOX_HELPER;
		out->owner = sb_runtime_owner(sb_host_options(c->gate->host), s.mountpoint);
		out->own_network =
			s.network != SB_HOST_NET_HOST && s.network != SB_HOST_NET_SANDBOX;
	}
	if (strcmp(s.nonce, c->nonce) != 0)
		r = sb_fail(err, SB_E_SESSION_NOT_FOUND, "that session is gone");
	else if (s.state != SB_HOST_ACTIVE)
		r = sb_fail(err, SB_E_SESSION_PAUSED, "session %s is %s", s.id,
			sb_host_state_name(s.state));
	sb_host_session_clear(&s);
	return r;
}

static bool
taken(const struct sb_sshgate_conn *c, uint32_t id)
{
	for (const struct sb_sshgate_job *j = c->jobs; j; j = j->next)
		if (j->id == id)
			return true;
	return false;
}

/* Looks whether one more may begin; NULL: it was answered no (0), or an error of the door's. */
static struct sb_sshgate_job *
begin(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f, struct place *where, int *out,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct sb_sshgate_job *j = NULL;

	*out = 0;
	sb_sshgate_job_tidy(c);
	if (taken(c, f->id)) {
		*out = sb_fail(err, SB_E_PROTO, "program %u is there already", f->id);
		return NULL;
	}
	/* Those that end take a moment, and each channel may have an agent's listener. */
	if (c->n_jobs >= 2 * c->gate->o.max_channels)
		(void)sb_fail(&why, SB_E_LIMIT, "too many programs at a time");
	else if (look(c, where, &why) == 0)
		j = job_new(c, f->id, &why);
	if (!j)
		*out = sb_sshgate_answer(c, false, why.msg, NULL, 0, err);
	return j;
}

int
sb_sshgate_job_start(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f,
	struct sb_error *err)
{
	int theirs[3] = { -1, -1, -1 }, r;
	struct sb_error why = { 0 };
	struct place where;
	struct sb_sshgate_job *j = begin(c, f, &where, &r, err);

	if (!j)
		return r;
	j->terminal = f->x > 0;
	make_argv(j, where.helper, f);
	take_env(j, f);
	r = f->x > 0 || f->kind == SB_SSHWIRE_SFTP || f->kind == SB_SSHWIRE_AGENT ?
		open_sockets(j, theirs, &why) :
		open_pipes(j, theirs, where.owner, &why);
	if (r == 0)
		r = sb_strlist_check(&j->argv, &why);
	if (r == 0)
		r = sb_strlist_check(&j->env, &why);
	if (r == 0)
		return launch(j, theirs, 3, err);
	job_free(j);
	close_all(theirs, 3);
	return sb_sshgate_answer(c, false, why.msg, NULL, 0, err);
}

/* Its own loopback addresses, by the names that they have everywhere. */
static bool
is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
		strcmp(host, "::1") == 0 || strcmp(host, "0.0.0.0") == 0;
}

int
sb_sshgate_job_dial(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f,
	struct sb_error *err)
{
	sb_autofree char *host = sb_sshwire_text(f->a, f->a_len);
	int theirs[3] = { -1, -1, -1 }, r;
	struct sb_error why = { 0 };
	struct place where;
	struct sb_sshgate_job *j = begin(c, f, &where, &r, err);

	if (!j)
		return r;
	if (!host || !is_loopback(host))
		r = sb_fail(&why, SB_E_DENIED, "only ports of the session itself, at localhost");
	else if (!where.own_network)
		r = sb_fail(&why, SB_E_UNSUPPORTED, "session %s has no network of its own",
			c->session);
	else
		r = open_sockets(j, theirs, &why);
	sb_strlist_add(&j->argv, where.helper);
	sb_strlist_add(&j->argv, "dial");
	sb_strlist_addf(&j->argv, "%u", f->x);
	if (r == 0)
		r = sb_strlist_check(&j->argv, &why);
	if (r == 0)
		return launch(j, theirs, 1, err);
	job_free(j);
	close_all(theirs, 3);
	return sb_sshgate_answer(c, false, why.msg, NULL, 0, err);
}

/* One that ended hears nothing; one that is being started hears it then. */
static void
tell(struct sb_sshgate_job *j, int sig)
{
	struct sb_sshgate_conn *c = j->conn;
	bool runs;

	(void)pthread_mutex_lock(&c->mu);
	runs = j->runs && !j->done;
	if (!j->runs)
		j->early = sig;
	(void)pthread_mutex_unlock(&c->mu);
	if (runs)
		(void)sb_host_attach_signal(c->gate->host, c->session, j->number, sig, NULL);
}

int
sb_sshgate_job_signal(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f)
{
	for (struct sb_sshgate_job *j = c->jobs; j; j = j->next)
		if (j->id == f->id && f->x > 0)
			tell(j, (int)f->x);
	return 0;
}

/*
 * As with any SSH server: what has a terminal loses it (its helper sees the socket close); the rest
 * gets SIGHUP, so that what shall go on (nohup) does.
 */
void
sb_sshgate_job_leave(struct sb_sshgate_job *j)
{
	if (j->end_at != SB_NEVER)
		return;
	j->end_at = sb_deadline_in(MOMENT_MS);
	if (!j->terminal)
		tell(j, SIGHUP);
}

void
sb_sshgate_job_tidy(struct sb_sshgate_conn *c)
{
	for (struct sb_sshgate_job **p = &c->jobs; *p;) {
		struct sb_sshgate_job *j = *p;
		bool done;

		(void)pthread_mutex_lock(&c->mu);
		done = j->done;
		(void)pthread_mutex_unlock(&c->mu);
		if (!done) {
			if (sb_deadline_passed(j->end_at))
				sb_cancel_request(j->cancel);
			p = &j->next;
			continue;
		}
		*p = j->next;
		c->n_jobs--;
		job_free(j);
	}
}

/* Waits until one more is done, at most until `d`. */
static void
await_one(struct sb_sshgate_conn *c, sb_deadline d)
{
	bool any = false;

	(void)pthread_mutex_lock(&c->mu);
	for (const struct sb_sshgate_job *j = c->jobs; j; j = j->next)
		any |= j->done;
	if (!any)
		sb_cond_wait_until(&c->cv, &c->mu, d);
	(void)pthread_mutex_unlock(&c->mu);
}

void
sb_sshgate_job_end(struct sb_sshgate_conn *c)
{
	for (struct sb_sshgate_job *j = c->jobs; j; j = j->next)
		sb_sshgate_job_leave(j);
	for (;;) {
		sb_sshgate_job_tidy(c);
		if (!c->jobs)
			return;
		await_one(c, sb_deadline_in(MOMENT_MS / 6));
	}
}
