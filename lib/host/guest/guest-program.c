/* SPDX-License-Identifier: MIT */
/* Programs in a session, through its guest; and the events of streams. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <host/guest/guest-priv.h>

static void
put_list(struct sb_buf *b, const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	sb_buf_add_varint(b, n);
	for (size_t i = 0; i < n; i++)
		sb_guest_put_text(b, v[i]);
}

static void
put_who(struct sb_buf *b, const struct sb_guest_who *who)
{
	sb_buf_add_varint(b, (uint64_t)who->pid);
	sb_guest_put_text(b, who->tag);
}

/* A request whose answer is a pid, and which leaves a stream. */
static int
open_stream(struct sb_guests *g, const char *session, uint8_t what, const struct sb_buf *b,
	const struct sb_host_call *call, struct sb_guest_stream **out, int64_t *out_pid,
	struct sb_error *err)
{
	struct sb_guest_answer a;
	int r = sb_guest_call(g, session, what, b, NULL, NULL, call, &a, out, err);

	if (r < 0)
		return r;
	*out_pid = (int64_t)(sb_cursor_varint(&a.c) & INT32_MAX);
	if (a.c.bad) {
		r = sb_fail(err, SB_E_PROTO, "the guest's answer is none");
		sb_guest_leave(*out);
	}
	sb_guest_answer_free(&a);
	return r;
}

int
sb_guest_start(struct sb_guests *g, const char *session, const struct sb_guest_program *p,
	const struct sb_host_call *call, struct sb_guest_stream **out, int64_t *out_pid,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX - SB_GUEST_HEAD);
	sb_buf_add_varint(&b,
		(p->input || p->terminal ? SB_GUEST_STDIN : 0) | (p->terminal ? SB_GUEST_PTY : 0));
	sb_buf_add_varint(&b, p->cols & 0xffff);
	sb_buf_add_varint(&b, p->rows & 0xffff);
	sb_buf_add_varint(&b, p->limit_ms > 0 ? (uint64_t)p->limit_ms : 0);
	sb_guest_put_text(&b, p->cwd);
	sb_guest_put_text(&b, p->tag);
	put_list(&b, p->argv);
	put_list(&b, p->env);
	return open_stream(g, session, SB_GUEST_START, &b, call, out, out_pid, err);
}

int
sb_guest_attach(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	const struct sb_host_call *call, struct sb_guest_stream **out, int64_t *out_pid,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX - SB_GUEST_HEAD);
	put_who(&b, who);
	return open_stream(g, session, SB_GUEST_ATTACH, &b, call, out, out_pid, err);
}

/* A request of which only the end matters. */
static int
ask(struct sb_guests *g, const char *session, uint8_t what, const struct sb_buf *b,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_guest_answer a;
	int r = sb_guest_call(g, session, what, b, NULL, NULL, call, &a, NULL, err);

	sb_guest_answer_free(&a);
	return r;
}

int
sb_guest_input(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	bool terminal, const void *data, size_t len, const struct sb_host_call *call,
	struct sb_error *err)
{
	const uint8_t *p = data;
	int r = 0;

	do {
		sb_auto(sb_buf) struct sb_buf b;
		size_t n = len < SB_GUEST_DATA_MAX ? len : SB_GUEST_DATA_MAX;

		sb_buf_init(&b, SB_GUEST_FRAME_MAX - SB_GUEST_HEAD);
		put_who(&b, who);
		sb_buf_add_varint(&b, terminal ? SB_GUEST_PTY : SB_GUEST_STDIN);
		sb_buf_add_bytes(&b, p, n);
		r = ask(g, session, SB_GUEST_INPUT, &b, call, err);
		p += n;
		len -= n;
	} while (r == 0 && len > 0);
	return r;
}

int
sb_guest_input_end(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 65536);
	put_who(&b, who);
	return ask(g, session, SB_GUEST_NO_MORE, &b, call, err);
}

int
sb_guest_signal(struct sb_guests *g, const char *session, const struct sb_guest_who *who, int sig,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 65536);
	put_who(&b, who);
	sb_buf_add_varint(&b, (uint64_t)sig);
	return ask(g, session, SB_GUEST_SIGNAL, &b, call, err);
}

int
sb_guest_resize(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	unsigned cols, unsigned rows, const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 65536);
	put_who(&b, who);
	sb_buf_add_varint(&b, cols & 0xffff);
	sb_buf_add_varint(&b, rows & 0xffff);
	return ask(g, session, SB_GUEST_RESIZE, &b, call, err);
}

struct running_list {
	struct sb_guest_running *v;
	size_t n;
};

static int
on_running(struct sb_cursor *c, void *arg, struct sb_error *err)
{
	struct running_list *l = arg;
	struct sb_guest_running *v, *p;
	int r;

	if (l->n >= 4096)
		return sb_fail(err, SB_E_PROTO, "the guest's list is too long");
	v = reallocarray(l->v, l->n + 1, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	l->v = v;
	p = &v[l->n++];
	*p = (struct sb_guest_running){ .pid = (int64_t)(sb_cursor_varint(c) & INT32_MAX) };
	p->tag = sb_guest_text_read(c, 65536);
	p->cwd = sb_guest_text_read(c, 65536);
	r = sb_guest_strings_read(c, &p->argv, err);
	if (r == 0)
		r = sb_guest_strings_read(c, &p->env, err);
	return r == 0 && (!p->tag || !p->cwd) ? sb_fail(err, SB_E_PROTO, "a program is none") : r;
}

void
sb_guest_running_free(struct sb_guest_running *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].tag);
		free(v[i].cwd);
		sb_strlist_free(&v[i].argv);
		sb_strlist_free(&v[i].env);
	}
	free(v);
}

int
sb_guest_list(struct sb_guests *g, const char *session, const struct sb_host_call *call,
	struct sb_guest_running **out, size_t *out_n, struct sb_error *err)
{
	const struct sb_buf none = { .data = (uint8_t *)(uintptr_t) "" };
	struct running_list l = { 0 };
	struct sb_guest_answer a;
	int r = sb_guest_call(g, session, SB_GUEST_PROCS, &none, on_running, &l, call, &a, NULL,
		err);

	sb_guest_answer_free(&a);
	if (r < 0) {
		sb_guest_running_free(l.v, l.n);
		return r;
	}
	*out = l.v;
	*out_n = l.n;
	return 0;
}

static int
read_change(struct sb_guest_stream *s, struct sb_cursor *c, struct sb_guest_event *ev,
	struct sb_error *err)
{
	uint64_t what = sb_cursor_varint(c);
	int r = 0;

	free(s->name);
	s->name = sb_guest_text_read(c, 65536);
	sb_guest_entry_clear(&s->entry);
	ev->kind = SB_GUEST_EV_CHANGE;
	ev->change = (enum sb_guest_change)what;
	ev->name = s->name;
	if (sb_cursor_varint(c) == 1) {
		r = sb_guest_entry_read(c, &s->entry, err);
		ev->entry = &s->entry;
	}
	if (r == 0 && (c->bad || !s->name || what < SB_GUEST_CREATED || what > SB_GUEST_CHMODDED))
		r = sb_fail(err, SB_E_PROTO, "the guest's event is none");
	return r;
}

/* Lets the guest send as much again. */
static int
give_credit(struct sb_guest_stream *s, size_t n, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 16);
	sb_buf_add_varint(&b, n);
	return sb_guest_link_send(s->link, SB_GUEST_CREDIT, s->id, b.data, b.len, call, err);
}

static int
read_event(struct sb_guest_stream *s, const struct sb_host_call *call, struct sb_guest_event *ev,
	struct sb_error *err)
{
	struct sb_cursor c;
	int r = 0;

	*ev = (struct sb_guest_event){ 0 };
	sb_cursor_init(&c, s->now->data, s->now->len);
	if (s->now->what == SB_GUEST_OUTPUT) {
		ev->kind = SB_GUEST_EV_OUTPUT;
		ev->which = (int)sb_cursor_varint(&c);
		ev->data = sb_cursor_bytes(&c, SB_GUEST_FRAME_MAX, &ev->len);
		if (c.bad || ev->which < 1 || ev->which > 3)
			return sb_fail(err, SB_E_PROTO, "the guest's output is none");
		s->waits += (unsigned)ev->len;
		if (s->waits >= SB_GUEST_WINDOW / 4) {
			r = give_credit(s, s->waits, call, err);
			s->waits = 0;
		}
	} else if (s->now->what == SB_GUEST_EXIT) {
		ev->kind = SB_GUEST_EV_END;
		ev->code = (int)(sb_cursor_varint(&c) & 0xff);
		ev->sig = (int)(sb_cursor_varint(&c) & 0x7f);
		r = c.bad ? sb_fail(err, SB_E_PROTO, "the guest's end is none") : 0;
	} else if (s->now->what == SB_GUEST_EVENT) {
		r = read_change(s, &c, ev, err);
	} else {
		r = sb_fail(err, SB_E_PROTO, "the guest sends something else");
	}
	return r;
}

int
sb_guest_next(struct sb_guest_stream *s, int64_t wait_ms, const struct sb_host_call *call,
	struct sb_guest_event *ev, struct sb_error *err)
{
	sb_deadline d = wait_ms < 0 ? SB_NEVER : sb_now_ms() + wait_ms;
	int r;

	free(s->now);
	s->now = NULL;
	r = sb_guest_link_wait(s, d, call, &s->now, err);
	if (r < 0 || !s->now)
		return r;
	r = read_event(s, call, ev, err);
	return r < 0 ? r : 1;
}
