/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/serve.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <tool/place.h>
#include <tool/message.h>
#include <tool/launch.h>
#include <tool/terms.h>
#include <tool/textfile.h>

#define LIST_MAX 65536
/* Requests that may wait at the same time. */
#define SLOW_MAX 256

struct serve {
	int out_fd;
	struct sb_roots roots;
	struct sb_terms *terms;
	struct sb_cancel *end;
	pthread_mutex_t mu; /* of the answers' stream, and of: */
	pthread_cond_t idle;
	unsigned slow; /* threads under way */
};

/* One request being answered. */
struct ask {
	struct serve *s;
	struct sb_buf in;
	struct sb_cursor c; /* its arguments */
	uint32_t id;
	uint8_t op;
	struct sb_buf out;
};

static void
free_ask(struct ask *a)
{
	sb_buf_free(&a->in);
	sb_buf_free(&a->out);
	free(a);
}

static int
damaged(struct sb_error *err)
{
	return sb_fail(err, SB_E_PROTO, "a request is damaged");
}

static int
need_roots(const struct ask *a, struct sb_error *err)
{
	return a->s->terms ? 0 : sb_fail(err, SB_E_STATE, "no roots were named yet");
}

static int
do_roots(struct ask *a, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist v = { 0 };
	int r = sb_message_texts(&a->c, LIST_MAX, &v, err);

	if (r < 0)
		return r;
	if (a->s->terms)
		return sb_fail(err, SB_E_STATE, "the roots are known already");
	r = sb_roots_open((const char *const *)v.v, v.n, &a->s->roots, err);
	if (r < 0)
		return r;
	a->s->terms = sb_terms_new(&a->s->roots, err);
	return a->s->terms ? 0 : SB_E_NOMEM;
}

static int
do_read(struct ask *a, struct sb_error *err)
{
	sb_autofree char *path = sb_message_text(&a->c);
	uint32_t line = sb_cursor_u32(&a->c), limit = sb_cursor_u32(&a->c);
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, SB_TEXTFILE_MAX + (1u << 20));
	if (!path || a->c.bad)
		return damaged(err);
	r = sb_textfile_read(&a->s->roots, path, line, limit, &text, err);
	if (r == 0)
		sb_buf_add_bytes(&a->out, text.data, text.len);
	return r;
}

static int
do_write(struct ask *a, struct sb_error *err)
{
	sb_autofree char *path = sb_message_text(&a->c);
	size_t len;
	const uint8_t *text = sb_cursor_bytes(&a->c, SB_MESSAGE_MAX, &len);

	if (!path || !text || a->c.bad)
		return damaged(err);
	return sb_textfile_write(&a->s->roots, path, text, len, err);
}

static int
do_resolve(struct ask *a, struct sb_error *err)
{
	sb_autofree char *path = sb_message_text(&a->c);
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	int r;

	if (!path)
		return damaged(err);
	r = sb_roots_resolve(&a->s->roots, path, &at, err);
	if (r == 0)
		sb_message_add_text(&a->out, at.path);
	return r;
}

static int
do_create(struct ask *a, struct sb_error *err)
{
	sb_autofree char *command = sb_message_text(&a->c), *cwd = NULL;
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_terms_spec spec = { .command = command };
	char id[SB_TERMS_ID];
	int r = sb_message_texts(&a->c, LIST_MAX, &args, err);

	if (r == 0)
		r = sb_message_texts(&a->c, LIST_MAX, &env, err);
	if (r < 0)
		return r;
	cwd = sb_message_text(&a->c);
	spec.window = sb_cursor_svarint(&a->c);
	if (!command || !cwd || a->c.bad)
		return damaged(err);
	spec.args = (const char *const *)args.v;
	spec.env = (const char *const *)env.v;
	spec.cwd = *cwd ? cwd : NULL;
	r = sb_terms_create(a->s->terms, &spec, id, err);
	if (r == 0)
		sb_message_add_text(&a->out, id);
	return r;
}

static void
add_exit(struct sb_buf *b, const struct sb_proc_exit *how)
{
	sb_buf_add_varint(b, (uint64_t)how->code);
	sb_buf_add_varint(b, (uint64_t)how->signal);
	sb_buf_add_u8(b, how->stopped);
}

static int
do_term(struct ask *a, struct sb_error *err)
{
	sb_autofree char *id = sb_message_text(&a->c);
	struct sb_proc_exit how = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	bool cut, ended;
	int r;

	sb_buf_init(&text, SB_TERMS_WINDOW_MAX);
	if (!id)
		return damaged(err);
	switch (a->op) {
	case SB_SERVE_TERM_KILL: return sb_terms_kill(a->s->terms, id, err);
	case SB_SERVE_TERM_RELEASE: return sb_terms_release(a->s->terms, id, err);
	case SB_SERVE_TERM_WAIT:
		r = sb_terms_wait(a->s->terms, id, a->s->end, SB_NEVER, &how, err);
		break;
	default:
		r = sb_terms_output(a->s->terms, id, &text, &cut, &ended, &how, err);
		if (r < 0)
			return r;
		sb_buf_add_bytes(&a->out, text.data, text.len);
		sb_buf_add_u8(&a->out, cut);
		sb_buf_add_u8(&a->out, ended);
	}
	add_exit(&a->out, &how);
	return r;
}

static int
do_signal(struct ask *a, struct sb_error *err)
{
	uint64_t pid = sb_cursor_varint(&a->c), sig = sb_cursor_varint(&a->c);
	union sigval value = { .sival_int = (int)sb_cursor_u32(&a->c) };
	int real = sig == SB_SERVE_SIG_KILL ? SB_LAUNCH_SIG_KILL :
		sig == SB_SERVE_SIG_SIZE    ? SB_LAUNCH_SIG_SIZE :
		sig == SIGKILL              ? SB_LAUNCH_SIG_KILL :
					      (int)sig;

	if (a->c.bad || pid < 2 || pid > INT32_MAX || real < 0 || real > SIGRTMAX)
		return damaged(err);
	if (sigqueue((pid_t)pid, real, value) < 0 && errno != ESRCH)
		return sb_fail_errno(err, "signal");
	return 0;
}

static void
add_place(struct sb_buf *b, const struct sb_place *place)
{
	sb_message_add_text(b, place->id);
	sb_message_add_text(b, place->instance);
	sb_message_add_text(b, place->root);
	sb_message_add_texts(b, (const char *const *)place->dirs.v);
	sb_message_add_texts(b, (const char *const *)place->labels.v);
	sb_buf_add_u8(b, place->fresh);
}

static int
do_place(struct ask *a, struct sb_error *err)
{
	sb_autofree char *id = sb_message_text(&a->c), *instance = sb_message_text(&a->c),
			 *root = NULL;
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	sb_auto(sb_place) struct sb_place place = { 0 };
	struct sb_place_wish w = { .id = id, .instance = instance };
	int r = 0;

	if (!id || !instance)
		return damaged(err);
	if (a->op == SB_SERVE_PLACE_DESTROY)
		return sb_place_destroy(id, instance, err);
	if (a->op == SB_SERVE_PLACE_PREPARE) {
		root = sb_message_text(&a->c);
		r = sb_message_texts(&a->c, LIST_MAX, &names, err);
	}
	if (r == 0)
		r = sb_message_texts(&a->c, LIST_MAX, &labels, err);
	if (r < 0)
		return r;
	w.root = root;
	w.names = (const char *const *)names.v;
	w.labels = (const char *const *)labels.v;
	w.may_create = a->op == SB_SERVE_PLACE_PREPARE && sb_cursor_u8(&a->c);
	if (a->c.bad)
		return damaged(err);
	r = a->op == SB_SERVE_PLACE_PREPARE ? sb_place_prepare(&w, &place, err) :
					      sb_place_find(id, instance, w.labels, &place, err);
	if (r == 0)
		add_place(&a->out, &place);
	return r;
}

static int
carry_out(struct ask *a, struct sb_error *err)
{
	int r;

	switch (a->op) {
	case SB_SERVE_ROOTS: return do_roots(a, err);
	case SB_SERVE_SIGNAL: return do_signal(a, err);
	case SB_SERVE_PLACE_PREPARE:
	case SB_SERVE_PLACE_FIND:
	case SB_SERVE_PLACE_DESTROY: return do_place(a, err);
	default: break;
	}
	r = need_roots(a, err);
	if (r < 0)
		return r;
	switch (a->op) {
	case SB_SERVE_READ: return do_read(a, err);
	case SB_SERVE_WRITE: return do_write(a, err);
	case SB_SERVE_RESOLVE: return do_resolve(a, err);
	case SB_SERVE_TERM_CREATE: return do_create(a, err);
	case SB_SERVE_TERM_OUTPUT:
	case SB_SERVE_TERM_WAIT:
	case SB_SERVE_TERM_KILL:
	case SB_SERVE_TERM_RELEASE: return do_term(a, err);
	default: return sb_fail(err, SB_E_UNSUPPORTED, "operation %u is not known here", a->op);
	}
}

static void
answer(struct ask *a)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	int r = carry_out(a, &err);

	sb_buf_init(&b, SB_MESSAGE_MAX);
	if (r == 0)
		r = sb_buf_check(&a->out, "an answer", &err);
	sb_buf_add_u32(&b, a->id);
	sb_buf_add_svarint(&b, r);
	if (r < 0)
		sb_message_add_text(&b, err.msg);
	else
		sb_buf_add(&b, a->out.data, a->out.len);
	(void)pthread_mutex_lock(&a->s->mu);
	/* Who does not read his answers finds out by himself. */
	(void)sb_message_send(a->s->out_fd, &b, a->s->end, SB_NEVER, NULL);
	(void)pthread_mutex_unlock(&a->s->mu);
}

static void *
answer_slowly(void *arg)
{
	struct ask *a = arg;
	struct serve *s = a->s;

	answer(a);
	free_ask(a);
	(void)pthread_mutex_lock(&s->mu);
	s->slow--;
	(void)pthread_cond_signal(&s->idle);
	(void)pthread_mutex_unlock(&s->mu);
	return NULL;
}

static bool
is_slow(uint8_t op)
{
	return op == SB_SERVE_TERM_WAIT || op == SB_SERVE_TERM_RELEASE ||
		op == SB_SERVE_PLACE_DESTROY;
}

/* In a thread of its own where it may take long. */
static void
dispatch(struct ask *a)
{
	struct serve *s = a->s;
	bool own = is_slow(a->op);
	pthread_t t;

	if (own) {
		(void)pthread_mutex_lock(&s->mu);
		own = s->slow < SLOW_MAX;
		s->slow += own;
		(void)pthread_mutex_unlock(&s->mu);
	}
	if (own && pthread_create(&t, NULL, answer_slowly, a) == 0) {
		(void)pthread_detach(t);
		return;
	}
	if (own) {
		(void)pthread_mutex_lock(&s->mu);
		s->slow--;
		(void)pthread_mutex_unlock(&s->mu);
	}
	answer(a);
	free_ask(a);
}

static int
loop(struct serve *s, int in_fd, struct sb_error *err)
{
	for (;;) {
		struct ask *a = calloc(1, sizeof *a);
		int r;

		if (!a)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		a->s = s;
		sb_buf_init(&a->in, SB_MESSAGE_MAX);
		sb_buf_init(&a->out, SB_MESSAGE_MAX);
		r = sb_message_recv(in_fd, SB_MESSAGE_MAX, &a->in, NULL, SB_NEVER, err);
		sb_cursor_init(&a->c, a->in.data, a->in.len);
		if (r == 0) {
			a->id = sb_cursor_u32(&a->c);
			a->op = sb_cursor_u8(&a->c);
			r = a->c.bad ? damaged(err) : 0;
		}
		if (r < 0) {
			free_ask(a);
			return r == SB_E_CLOSED ? 0 : r;
		}
		dispatch(a);
	}
}

int
sb_serve_run(int in_fd, int out_fd, struct sb_error *err)
{
	struct serve s = { .out_fd = out_fd, .end = sb_cancel_new(err) };
	int r;

	if (!s.end)
		return SB_E_NOMEM;
	(void)pthread_mutex_init(&s.mu, NULL);
	(void)pthread_cond_init(&s.idle, NULL);
	r = loop(&s, in_fd, err);
	sb_cancel_request(s.end);
	(void)pthread_mutex_lock(&s.mu);
	while (s.slow)
		(void)pthread_cond_wait(&s.idle, &s.mu);
	(void)pthread_mutex_unlock(&s.mu);
	sb_terms_free(s.terms);
	sb_roots_close(&s.roots);
	sb_cancel_free(s.end);
	(void)pthread_cond_destroy(&s.idle);
	(void)pthread_mutex_destroy(&s.mu);
	return r;
}
