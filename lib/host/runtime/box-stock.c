/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/box-stock.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/spawn.h>
#include <base/strlist.h>
#include <host/runtime/box.h>

#define STOCK 2
#define READY_MS 20000
#define GONE_MS 10000

struct spare {
	struct sb_cgroup group;
	struct sb_child forker;
	int control;
};

struct sb_box_stock {
	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	pthread_t thread;
	bool stop, failed;
	struct spare v[STOCK];
	size_t n;
};

static void
spare_end(struct spare *s)
{
	if (s->control >= 0)
		(void)close(s->control);
	(void)sb_cgroup_remove(&s->group, sb_deadline_in(GONE_MS));
	sb_child_stop(&s->forker, 0);
	sb_cgroup_clear(&s->group);
}

static int
start_forker(struct sb_box_runtime *b, struct spare *s, struct sb_error *err)
{
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_autoclose int theirs = -1;
	struct pollfd p = { .events = POLLIN };
	int pair[2], r;
	char c;

	sb_strlist_add_all(&l, (const char *[]){ b->helper, "forker", NULL });
	for (int i = 0; i < SB_CGROUP_KINDS; i++)
		if (s->group.dir[i])
			sb_strlist_add_all(&l, (const char *[]){ "-g", s->group.dir[i], NULL });
	r = sb_strlist_check(&l, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sb_fail_errno(err, "socketpair");
	p.fd = s->control = pair[0];
	theirs = pair[1];
	o.io[0] = SB_SPAWN_FD;
	o.fds[0] = theirs;
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	r = sb_spawn((const char *const *)l.v, &o, &s->forker, err);
	if (r < 0)
		return r;
	(void)close(sb_steal_fd(&theirs));
	return poll(&p, 1, READY_MS) == 1 && recv(s->control, &c, 1, 0) == 1 ?
		0 :
		sb_fail(err, SB_E_RUNTIME, "the forker does not begin");
}

static int
make_spare(struct sb_box_runtime *b, unsigned long long number, struct spare *out,
	struct sb_error *err)
{
	const struct sb_cgroup_limits l = sb_box_limits(b);
	char name[96];
	int r;

	*out = (struct spare){ .forker = SB_CHILD_INIT, .control = -1 };
	(void)snprintf(name, sizeof name, "sb-%s-%s-spare-%llu", b->rt.ops->name, b->key, number);
	r = sb_cgroup_make(&b->groups, name, &l, &out->group, err);
	if (r == 0)
		r = start_forker(b, out, err);
	if (r < 0)
		spare_end(out);
	return r;
}

/*
 * The forkers' parent, and so the parent of all that they start: it lives as long as the runtime,
 * because the kernel ends what is tied to a host when the very thread that started it ends.
 */
static void *
keep_stock(void *arg)
{
	struct sb_box_runtime *b = arg;
	struct sb_box_stock *k = b->stock;
	unsigned long long number = 0;

	(void)pthread_mutex_lock(&k->mu);
	while (!k->stop) {
		struct sb_error why = { 0 };
		struct spare s;
		int r;

		if (k->n == STOCK || k->failed) {
			(void)pthread_cond_wait(&k->cv, &k->mu);
			continue;
		}
		(void)pthread_mutex_unlock(&k->mu);
		r = make_spare(b, ++number, &s, &why);
		(void)pthread_mutex_lock(&k->mu);
		if (r == 0) {
			k->v[k->n++] = s;
		} else {
			k->failed = true;
			sb_log(&b->o->log, SB_LOG_WARN, "runtime",
				"%s: first commands take longer: %s", b->rt.ops->name, why.msg);
		}
	}
	while (k->n > 0)
		spare_end(&k->v[--k->n]);
	(void)pthread_mutex_unlock(&k->mu);
	return NULL;
}

/* With the runtime's `mu` held. */
static struct sb_box_stock *
begin(struct sb_box_runtime *b)
{
	struct sb_box_stock *k = calloc(1, sizeof *k);
	sigset_t all, old;
	bool failed;

	if (!k)
		return NULL;
	(void)pthread_mutex_init(&k->mu, NULL);
	(void)pthread_cond_init(&k->cv, NULL);
	b->stock = k;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	failed = pthread_create(&k->thread, NULL, keep_stock, b) != 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed) {
		b->stock = NULL;
		(void)pthread_cond_destroy(&k->cv);
		(void)pthread_mutex_destroy(&k->mu);
		free(k);
	}
	return b->stock;
}

bool
sb_box_stock_take(struct sb_box_runtime *b, struct sb_box *box)
{
	struct sb_box_stock *k;
	struct spare s;
	bool have = false;

	/* A group that is at work is not moved to another name. */
	if (b->groups.v2 || !b->groups.dir[SB_CGROUP_FREEZER] || geteuid() != 0)
		return false;
	(void)pthread_mutex_lock(&b->mu);
	k = b->stock ? b->stock : begin(b);
	(void)pthread_mutex_unlock(&b->mu);
	if (!k)
		return false;
	(void)pthread_mutex_lock(&k->mu);
	if (k->n > 0) {
		s = k->v[--k->n];
		have = true;
	}
	k->failed = false;
	(void)pthread_cond_signal(&k->cv);
	(void)pthread_mutex_unlock(&k->mu);
	if (!have)
		return false;
	if (sb_child_ended(&s.forker) || !sb_cgroup_rename(&s.group, box->name)) {
		spare_end(&s);
		return false;
	}
	box->group = s.group;
	box->forker = s.forker;
	box->forker_control = s.control;
	return true;
}

void
sb_box_stock_end_forker(struct sb_box *box)
{
	if (box->forker_control >= 0)
		(void)close(box->forker_control);
	box->forker_control = -1;
	sb_child_stop(&box->forker, 0);
	box->forker = (struct sb_child)SB_CHILD_INIT;
}

void
sb_box_stock_stop(struct sb_box_runtime *b)
{
	struct sb_box_stock *k = b->stock;

	if (!k)
		return;
	(void)pthread_mutex_lock(&k->mu);
	k->stop = true;
	(void)pthread_cond_signal(&k->cv);
	(void)pthread_mutex_unlock(&k->mu);
	(void)pthread_join(k->thread, NULL);
	(void)pthread_cond_destroy(&k->cv);
	(void)pthread_mutex_destroy(&k->mu);
	free(k);
	b->stock = NULL;
}
