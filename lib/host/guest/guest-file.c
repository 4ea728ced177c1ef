/* SPDX-License-Identifier: MIT */
/* Files and watches in a session, through its guest. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <host/guest/guest-priv.h>

/* Pieces of a file that may be under way. */
#define WRITES_MAX 8

/* A request whose answer is an entry. */
static int
ask_entry(struct sb_guests *g, const char *session, uint8_t what, const struct sb_buf *b,
	const struct sb_host_call *call, struct sb_guest_entry *out,
	struct sb_guest_stream **out_stream, struct sb_error *err)
{
	struct sb_guest_entry e = { 0 };
	struct sb_guest_answer a;
	int r = sb_guest_call(g, session, what, b, NULL, NULL, call, &a, out_stream, err);

	if (r < 0)
		return r;
	r = sb_guest_entry_read(&a.c, &e, err);
	sb_guest_answer_free(&a);
	if (r < 0) {
		if (out_stream)
			sb_guest_leave(*out_stream);
		return r;
	}
	if (out)
		*out = e;
	else
		sb_guest_entry_clear(&e);
	return 0;
}

static void
begin(struct sb_buf *b, const char *path)
{
	sb_buf_init(b, SB_GUEST_FRAME_MAX - SB_GUEST_HEAD);
	sb_guest_put_text(b, path);
}

int
sb_guest_stat(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, path);
	return ask_entry(g, session, SB_GUEST_STAT, &b, call, out, NULL, err);
}

int
sb_guest_mkdir(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, path);
	return ask_entry(g, session, SB_GUEST_MKDIR, &b, call, out, NULL, err);
}

int
sb_guest_move(struct sb_guests *g, const char *session, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, from);
	sb_guest_put_text(&b, to);
	return ask_entry(g, session, SB_GUEST_MOVE, &b, call, out, NULL, err);
}

int
sb_guest_chmod(struct sb_guests *g, const char *session, const char *path, unsigned mode,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, path);
	sb_buf_add_varint(&b, mode);
	return ask_entry(g, session, SB_GUEST_CHMOD, &b, call, out, NULL, err);
}

static void
put_strings(struct sb_buf *b, const struct sb_strlist *l)
{
	sb_buf_add_varint(b, l->n);
	for (size_t i = 0; i < l->n; i++)
		sb_guest_put_text(b, l->v[i]);
}

int
sb_guest_meta(struct sb_guests *g, const char *session, const char *path, const char *prefix,
	const struct sb_strlist *pairs, const struct sb_host_call *call, struct sb_guest_entry *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, path);
	sb_guest_put_text(&b, prefix);
	put_strings(&b, pairs);
	return ask_entry(g, session, SB_GUEST_META, &b, call, out, NULL, err);
}

int
sb_guest_join(struct sb_guests *g, const char *session, const char *to,
	const struct sb_strlist *from, const struct sb_host_call *call, struct sb_guest_entry *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, to);
	put_strings(&b, from);
	return ask_entry(g, session, SB_GUEST_JOIN, &b, call, out, NULL, err);
}

int
sb_guest_remove(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_guest_answer a;
	int r;

	begin(&b, path);
	r = sb_guest_call(g, session, SB_GUEST_REMOVE, &b, NULL, NULL, call, &a, NULL, err);
	sb_guest_answer_free(&a);
	return r;
}

struct listing {
	struct sb_guest_entry *v;
	size_t n;
};

static int
on_entries(struct sb_cursor *c, void *arg, struct sb_error *err)
{
	struct listing *l = arg;

	while (sb_cursor_left(c) > 0) {
		struct sb_guest_entry *v;
		int r;

		if (l->n > 10000)
			return sb_fail(err, SB_E_PROTO, "the guest's list is too long");
		v = reallocarray(l->v, l->n + 1, sizeof *v);
		if (!v)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		l->v = v;
		r = sb_guest_entry_read(c, &v[l->n], err);
		if (r < 0)
			return r;
		l->n++;
	}
	return 0;
}

int
sb_guest_dir(struct sb_guests *g, const char *session, const char *path, unsigned depth,
	const struct sb_host_call *call, struct sb_guest_entry **out, size_t *out_n,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct listing l = { 0 };
	struct sb_guest_answer a;
	int r;

	begin(&b, path);
	sb_buf_add_varint(&b, depth);
	r = sb_guest_call(g, session, SB_GUEST_DIR, &b, on_entries, &l, call, &a, NULL, err);
	sb_guest_answer_free(&a);
	if (r < 0) {
		sb_guest_entries_free(l.v, l.n);
		return r;
	}
	*out = l.v;
	*out_n = l.n;
	return 0;
}

int
sb_guest_watch(struct sb_guests *g, const char *session, const char *path, unsigned flags,
	const struct sb_host_call *call, struct sb_guest_stream **out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_guest_answer a;
	int r;

	begin(&b, path);
	sb_buf_add_varint(&b, flags);
	r = sb_guest_call(g, session, SB_GUEST_WATCH, &b, NULL, NULL, call, &a, out, err);
	sb_guest_answer_free(&a);
	return r;
}

int
sb_guest_open(struct sb_guests *g, const char *session, const char *path, unsigned flags,
	unsigned mode, const struct sb_host_call *call, struct sb_guest_stream **out,
	struct sb_guest_entry *entry, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	begin(&b, path);
	sb_buf_add_varint(&b, flags);
	sb_buf_add_varint(&b, mode);
	return ask_entry(g, session, SB_GUEST_OPEN, &b, call, entry, out, err);
}

/*
 * Requests about an open file have its id as theirs: the guest answers them in order, and nobody
 * else uses the stream.
 */
static int
answer(struct sb_guest_stream *s, const struct sb_host_call *call, struct sb_guest_frame **out,
	struct sb_error *err)
{
	struct sb_guest_frame *f = NULL;
	struct sb_cursor c;
	int r = sb_guest_link_wait(s, SB_NEVER, call, &f, err);

	if (r < 0)
		return r;
	sb_cursor_init(&c, f->data, f->len);
	if (f->what == SB_GUEST_FAILED)
		r = sb_guest_failure(&c, err);
	else if (f->what != SB_GUEST_DONE)
		r = sb_fail(err, SB_E_PROTO, "the guest answers something else");
	if (r == 0 && out)
		*out = f;
	else
		free(f);
	return r;
}

int64_t
sb_guest_read(struct sb_guest_stream *s, uint64_t offset, size_t count,
	const struct sb_host_call *call, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_guest_frame *f = NULL;
	int64_t n;
	int r;

	sb_buf_init(&b, 64);
	sb_buf_add_varint(&b, s->id);
	sb_buf_add_varint(&b, offset);
	sb_buf_add_varint(&b, count < SB_GUEST_DATA_MAX ? count : SB_GUEST_DATA_MAX);
	r = sb_guest_link_send(s->link, SB_GUEST_READ, s->id, b.data, b.len, call, err);
	if (r == 0)
		r = answer(s, call, &f, err);
	if (r < 0)
		return r;
	n = (int64_t)f->len;
	if (f->len > count)
		n = sb_fail(err, SB_E_PROTO, "the guest gives more than was asked for");
	else
		sb_buf_add(out, f->data, f->len);
	free(f);
	r = sb_buf_check(out, "file", err);
	return r < 0 ? r : n;
}

int
sb_guest_write(struct sb_guest_stream *s, const void *data, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	const uint8_t *p = data;
	int r = 0;

	while (r == 0 && len > 0) {
		sb_auto(sb_buf) struct sb_buf b;
		size_t n = len < SB_GUEST_DATA_MAX ? len : SB_GUEST_DATA_MAX;

		sb_buf_init(&b, SB_GUEST_FRAME_MAX - SB_GUEST_HEAD);
		sb_buf_add_varint(&b, s->id);
		sb_buf_add(&b, p, n);
		r = sb_guest_link_send(s->link, SB_GUEST_WRITE, s->id, b.data, b.len, call, err);
		if (r == 0 && ++s->waits > WRITES_MAX) {
			r = answer(s, call, NULL, err);
			s->waits--;
		}
		p += n;
		len -= n;
	}
	return r;
}

int
sb_guest_flush(struct sb_guest_stream *s, const struct sb_host_call *call, struct sb_error *err)
{
	int r = 0;

	while (r == 0 && s->waits > 0) {
		r = answer(s, call, NULL, err);
		s->waits--;
	}
	return r;
}
