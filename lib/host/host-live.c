/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-live.h>

#include <host/host-priv.h>

/* Whether anything may be running in it. */
static bool
runs(struct sb_hsess *s)
{
	bool ran;

	(void)pthread_mutex_lock(&s->mu);
	ran = s->ran;
	(void)pthread_mutex_unlock(&s->mu);
	return ran || (s->rt->ops->holds && s->rt->ops->holds(s->rt, s->id));
}

static int
freeze(void *arg, bool on, struct sb_error *err)
{
	struct sb_host_live *l = arg;
	const struct sb_runtime_ops *ops = l->s->rt->ops;
	char mark[SB_HOST_PROC_MARK_MAX];
	bool paused;

	(void)pthread_mutex_lock(&l->s->mu);
	paused = l->s->state == SB_HOST_PAUSED;
	(void)pthread_mutex_unlock(&l->s->mu);
	/* It stands still already, and stays so. */
	if (paused || !runs(l->s))
		return 0;
	(void)sb_host_proc_mark(l->h, l->s, NULL, 0, mark);
	return (ops->still ? ops->still : ops->freeze)(l->s->rt, l->s->id, mark, on, err);
}

static int
detach(void *arg, bool force, struct sb_error *err)
{
	struct sb_host_live *l = arg;
	const struct sb_runtime_ops *ops = l->s->rt->ops;
	int r = ops->detach ? ops->detach(l->s->rt, l->s->id, force, err) : 0;

	if (r != SB_E_UNSUPPORTED)
		return r;
	/* It keeps what it has for as long as it lives. */
	if (!force)
		return 1;
	sb_host_proc_kill_all(l->h, l->s, 0);
	l->restarted = true;
	return 0;
}

static int
attach(void *arg, const char *path, struct sb_error *err)
{
	struct sb_host_live *l = arg;
	const struct sb_runtime_ops *ops = l->s->rt->ops;
	struct sb_error why = { 0 };

	sb_filepool_renew(&l->s->files);
	if (!ops->attach || l->restarted || ops->attach(l->s->rt, l->s->id, path, &why) == 0)
		return 0;
	(void)err;
	/* A box without a workspace is of no use; its successor gets the one that is there now. */
	sb_log(&l->h->o.log, SB_LOG_WARN, "runtime", "session %s: its box is restarted: %s",
		l->s->id, why.msg);
	sb_host_proc_kill_all(l->h, l->s, 0);
	l->restarted = true;
	return 0;
}

void
sb_host_live_begin(struct sb_host *h, struct sb_hsess *s, struct sb_host_live *out)
{
	*out = (struct sb_host_live){ .h = h,
		.s = s,
		.ops = { .freeze = freeze, .detach = detach, .attach = attach } };
	out->ops.arg = out;
	(void)pthread_rwlock_wrlock(&s->place);
}

void
sb_host_live_end(struct sb_host_live *l)
{
	(void)pthread_rwlock_unlock(&l->s->place);
}
