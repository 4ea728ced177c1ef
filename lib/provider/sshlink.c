/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/sshlink.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <provider/launchers.h>
#include <provider/toolset.h>
#include <tool/far.h>
#include <tool/message.h>

#define CONNECT_MS 60000
#define ANSWER_MS 60000
#define SIGNAL_MS 5000
#define LOCK_MS 20
#define TEXTS_MAX 65536

/* The agent of the tools while it runs; those who ask keep it. */
struct line {
	struct sb_conn_exec *x;
	struct sb_far *far;
	bool rooted; /* it knows the roots */
	unsigned users;
};

struct sb_sshlink {
	_Atomic unsigned refs;
	struct sb_strlist options;
	char *state_dir;
	struct sb_strlist roots; /* empty: not told yet */
	struct sb_log log;

	pthread_mutex_t opening; /* held while something is made, before `mu` */
	pthread_mutex_t mu;
	struct sb_conn *conn;
	struct line *line;
};

struct sb_sshlink *
sb_sshlink_new(const char *const *options, const char *state_dir, struct sb_error *err)
{
	struct sb_sshlink *b = calloc(1, sizeof *b);
	int r = b ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r < 0)
		return NULL;
	b->refs = 1;
	(void)pthread_mutex_init(&b->opening, NULL);
	(void)pthread_mutex_init(&b->mu, NULL);
	sb_strlist_add_all(&b->options, options);
	r = sb_strlist_check(&b->options, err);
	b->state_dir = state_dir ? strdup(state_dir) : NULL;
	if (r == 0 && state_dir && !b->state_dir)
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r < 0) {
		sb_sshlink_unref(b);
		return NULL;
	}
	return b;
}

struct sb_sshlink *
sb_sshlink_ref(struct sb_sshlink *b)
{
	b->refs++;
	return b;
}

static void
line_end(struct line *l)
{
	sb_far_free(l->far);
	sb_conn_exec_free(l->x);
	free(l);
}

static void
line_give(struct sb_sshlink *b, struct line *l)
{
	bool last;

	(void)pthread_mutex_lock(&b->mu);
	last = --l->users == 0;
	(void)pthread_mutex_unlock(&b->mu);
	if (last)
		line_end(l);
}

void
sb_sshlink_unref(struct sb_sshlink *b)
{
	if (!b || --b->refs)
		return;
	if (b->line)
		line_end(b->line);
	sb_conn_free(b->conn);
	sb_strlist_free(&b->options);
	sb_strlist_free(&b->roots);
	free(b->state_dir);
	(void)pthread_mutex_destroy(&b->mu);
	(void)pthread_mutex_destroy(&b->opening);
	free(b);
}

int
sb_sshlink_roots(struct sb_sshlink *b, const char *root, const char *const *dirs,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist roots = { 0 };
	int r;

	sb_strlist_add(&roots, root);
	sb_strlist_add_all(&roots, dirs);
	r = sb_strlist_check(&roots, err);
	(void)pthread_mutex_lock(&b->mu);
	if (r == 0 && !b->roots.n) {
		b->roots = roots;
		roots = (struct sb_strlist){ 0 };
	}
	(void)pthread_mutex_unlock(&b->mu);
	return r;
}

/* Locks `opening`, as long as the call allows: whoever holds it may be connecting. */
static int
lock_opening(struct sb_sshlink *b, const struct sb_call *call, struct sb_error *err)
{
	while (pthread_mutex_trylock(&b->opening) != 0) {
		int r = sb_call_check(call, "connect", err);

		if (r < 0)
			return r;
		(void)poll(NULL, 0, LOCK_MS);
	}
	return 0;
}

/* With `opening` held. */
static struct sb_conn *
conn_open(struct sb_sshlink *b, const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, CONNECT_MS);
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	sb_autofree char *to = NULL;

	if (b->conn)
		return b->conn;
	if (sb_sshlink_sync_opts(sb_strlist_borrow(&b->options), &o, err) < 0)
		return NULL;
	to = sb_sshlink_endpoint(sb_strlist_borrow(&b->options), "/", err);
	if (!to)
		return NULL;
	o.state_dir = b->state_dir;
	o.cancel = within.cancel;
	o.timeout_ms = within.deadline - sb_now_ms();
	o.timeout_ms = o.timeout_ms < 1 ? 1 : o.timeout_ms;
	b->conn = sb_conn_open(to, &o, err);
	return b->conn;
}

struct sb_conn *
sb_sshlink_conn(struct sb_sshlink *b, const struct sb_call *call, struct sb_error *err)
{
	struct sb_conn *c;

	if (lock_opening(b, call, err) < 0)
		return NULL;
	c = conn_open(b, call, err);
	(void)pthread_mutex_unlock(&b->opening);
	return c;
}

static int
tell_roots(struct sb_sshlink *b, struct line *l, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_call within = sb_call_within(call, ANSWER_MS);
	int r;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_texts(&args, sb_strlist_borrow(&b->roots));
	r = sb_far_ask(l->far, SB_SERVE_ROOTS, &args, within.cancel, within.deadline, &reply, err);
	l->rooted = r == 0;
	return r;
}

/* With `opening` held. */
static struct line *
line_open(struct sb_sshlink *b, const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, CONNECT_MS);
	struct sb_conn *c = conn_open(b, call, err);
	struct line *l = c ? calloc(1, sizeof *l) : NULL;

	if (!l) {
		if (c)
			sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	l->users = 1;
	l->x = sb_conn_exec_agent(c, "tools", within.cancel, within.deadline, err);
	if (l->x)
		l->far = sb_far_new(sb_conn_exec_out(l->x), sb_conn_exec_in(l->x), err);
	if (l->far)
		return l;
	sb_conn_exec_free(l->x);
	free(l);
	return NULL;
}

/* The open line if it works, else a new one; `fresh` (may be NULL) says which. */
static struct line *
line_take(struct sb_sshlink *b, bool rooted, const struct sb_call *call, bool *fresh,
	struct sb_error *err)
{
	struct line *l, *old = NULL;
	int r = 0;

	if (lock_opening(b, call, err) < 0)
		return NULL;
	(void)pthread_mutex_lock(&b->mu);
	if (b->line && sb_far_check(b->line->far, NULL) < 0) {
		old = b->line;
		b->line = NULL;
	}
	l = b->line;
	(void)pthread_mutex_unlock(&b->mu);
	if (old)
		line_give(b, old);
	if (fresh)
		*fresh = !l;
	if (!l)
		l = line_open(b, call, err);
	if (l && rooted && !l->rooted)
		r = tell_roots(b, l, call, err);
	(void)pthread_mutex_lock(&b->mu);
	if (l) {
		b->line = l;
		l->users += r == 0;
	}
	(void)pthread_mutex_unlock(&b->mu);
	(void)pthread_mutex_unlock(&b->opening);
	return r == 0 ? l : NULL;
}

/*
 * One request about places. It may go out twice, which does no harm: a connection that was kept may
 * lead to an agent that is gone, and only using it tells.
 */
static int
ask(struct sb_sshlink *b, enum sb_serve_op op, const struct sb_buf *args,
	const struct sb_call *call, struct sb_buf *reply, struct sb_error *err)
{
	struct sb_error own = { 0 };
	struct sb_call within =
		sb_call_within(call, op == SB_SERVE_PLACE_DESTROY ? 10 * ANSWER_MS : ANSWER_MS);
	bool fresh = false;
	int r = SB_E_CLOSED;

	sb_buf_init(reply, 0);
	err = err ? err : &own;
	while (r == SB_E_CLOSED && !fresh) {
		struct line *l = line_take(b, false, call, &fresh, err);

		if (!l)
			return err->code;
		sb_buf_free(reply);
		r = sb_far_ask(l->far, op, args, within.cancel, within.deadline, reply, err);
		line_give(b, l);
	}
	return r;
}

static int
take_place(const struct sb_buf *reply, struct sb_place *out, struct sb_error *err)
{
	struct sb_cursor c;
	int r;

	sb_cursor_init(&c, reply->data, reply->len);
	out->id = sb_message_text(&c);
	out->instance = sb_message_text(&c);
	out->root = sb_message_text(&c);
	r = sb_message_texts(&c, TEXTS_MAX, &out->dirs, err);
	if (r == 0)
		r = sb_message_texts(&c, TEXTS_MAX, &out->labels, err);
	out->fresh = sb_cursor_u8(&c);
	if (r == 0 && (c.bad || !out->id || !out->instance || !out->root || *out->root != '/'))
		r = sb_fail(err, SB_E_PROTO, "the answer of the far side is damaged");
	if (r < 0)
		sb_place_free(out);
	return r;
}

int
sb_sshlink_prepare(struct sb_sshlink *b, const struct sb_place_wish *w, const struct sb_call *call,
	struct sb_place *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	int r;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, w->id);
	sb_message_add_text(&args, w->instance);
	sb_message_add_text(&args, w->root);
	sb_message_add_texts(&args, w->names);
	sb_message_add_texts(&args, w->labels);
	sb_buf_add_u8(&args, w->may_create);
	r = ask(b, SB_SERVE_PLACE_PREPARE, &args, call, &reply, err);
	return r < 0 ? r : take_place(&reply, out, err);
}

int
sb_sshlink_find(struct sb_sshlink *b, const char *id, const char *instance,
	const char *const *labels, const struct sb_call *call, struct sb_place *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	int r;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, id);
	sb_message_add_text(&args, instance);
	sb_message_add_texts(&args, labels);
	r = ask(b, SB_SERVE_PLACE_FIND, &args, call, &reply, err);
	return r < 0 ? r : take_place(&reply, out, err);
}

int
sb_sshlink_destroy(struct sb_sshlink *b, const char *id, const char *instance,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, id);
	sb_message_add_text(&args, instance);
	return ask(b, SB_SERVE_PLACE_DESTROY, &args, call, &reply, err);
}

/* Tools. */
static struct sb_far *
tools_take(void *arg, const struct sb_call *call, void **token, struct sb_error *err)
{
	struct line *l = line_take(arg, true, call, NULL, err);

	*token = l;
	return l ? l->far : NULL;
}

static void
tools_give(void *arg, void *token)
{
	line_give(arg, token);
}

static void
let_go(void *arg)
{
	sb_sshlink_unref(arg);
}

struct sb_tool_host *
sb_sshlink_tools(struct sb_sshlink *b, enum sb_perm_mode mode, struct sb_error *err)
{
	struct sb_toolset_link link = { .take = tools_take,
		.give = tools_give,
		.let_go = let_go,
		.arg = b };
	struct sb_toolset *set = sb_toolset_far(&link, err);

	if (!set)
		return NULL;
	(void)sb_sshlink_ref(b);
	return sb_tool_host_new(set, mode, err);
}

/* Launching. */
struct ssh_launcher {
	struct sb_launcher base;
	struct sb_sshlink *link;
	char *cwd;
};

static int
send_signal(void *arg, int64_t pid, int sig, uint32_t value, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_call within = sb_call_within(NULL, SIGNAL_MS);

	sb_buf_init(&args, 64);
	sb_buf_add_varint(&args, (uint64_t)pid);
	sb_buf_add_varint(&args, (uint64_t)sig);
	sb_buf_add_u32(&args, value);
	return ask(arg, SB_SERVE_SIGNAL, &args, &within, &reply, err);
}

static int
ssh_launch(struct sb_launcher *base, const struct sb_launch_spec *given, const struct sb_call *call,
	struct sb_handle **out, struct sb_error *err)
{
	struct ssh_launcher *l = (struct ssh_launcher *)base;
	struct sb_call within = sb_call_within(call, CONNECT_MS);
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_handle_far_opts o = { .signal = send_signal, .let_go = let_go, .arg = l->link };
	struct sb_error own = { 0 };
	sb_auto(sb_strlist) struct sb_strlist words = { 0 };
	struct sb_conn *c;
	int r;

	err = err ? err : &own;
	memcpy(&spec, given, given->size < sizeof spec ? given->size : sizeof spec);
	/* Before anything travels. */
	r = sb_launch_words(&spec, &words, err);
	if (r < 0)
		return r;
	c = sb_sshlink_conn(l->link, &within, err);
	if (!c)
		return err->code;
	o.x = sb_conn_exec_agent(c, "launch", within.cancel, within.deadline, err);
	if (!o.x)
		return err->code;
	o.cwd = spec.cwd && *spec.cwd ? spec.cwd : l->cwd;
	(void)sb_sshlink_ref(l->link);
	return sb_handle_far_start(&o, &spec, call, out, err);
}

static void
ssh_launcher_free(struct sb_launcher *base)
{
	struct ssh_launcher *l = (struct ssh_launcher *)base;

	sb_sshlink_unref(l->link);
	free(l->cwd);
	free(l);
}

static const struct sb_launcher_ops launcher_ops = {
	.version = SB_LAUNCHER_VERSION,
	.launch = ssh_launch,
	.free = ssh_launcher_free,
};

struct sb_launcher *
sb_sshlink_launcher(struct sb_sshlink *b, const char *cwd, struct sb_error *err)
{
	struct ssh_launcher *l = calloc(1, sizeof *l);

	if (l)
		l->cwd = strdup(cwd);
	if (!l || !l->cwd) {
		free(l);
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	l->base.ops = &launcher_ops;
	l->link = sb_sshlink_ref(b);
	return &l->base;
}
