/* SPDX-License-Identifier: MIT */
/* Requests to a guest and the reading of its answers, none of which is believed. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <host/guest/guest-priv.h>

#define LIST_MAX 65536
#define TEXT_MAX (1u << 20)

void
sb_guest_answer_free(struct sb_guest_answer *a)
{
	free(a->frame);
	a->frame = NULL;
}

void
sb_guest_put_text(struct sb_buf *b, const char *s)
{
	sb_buf_add_bytes(b, s ? s : "", s ? strlen(s) : 0);
}

char *
sb_guest_text_read(struct sb_cursor *c, size_t max)
{
	size_t len = 0;
	const uint8_t *s = sb_cursor_bytes(c, max, &len);

	return s && !c->bad && !memchr(s, 0, len) ? strndup((const char *)s, len) : NULL;
}

int
sb_guest_strings_read(struct sb_cursor *c, struct sb_strlist *out, struct sb_error *err)
{
	uint64_t n = sb_cursor_varint(c);

	*out = (struct sb_strlist){ 0 };
	if (c->bad || n > LIST_MAX)
		return sb_fail(err, SB_E_PROTO, "the guest's list is none");
	for (uint64_t i = 0; i < n; i++) {
		sb_autofree char *s = sb_guest_text_read(c, TEXT_MAX);

		if (!s)
			return sb_fail(err, SB_E_PROTO, "the guest's list is none");
		sb_strlist_add(out, s);
	}
	return sb_strlist_check(out, err);
}

void
sb_guest_entry_clear(struct sb_guest_entry *e)
{
	free(e->name);
	free(e->target);
	sb_strlist_free(&e->meta);
	*e = (struct sb_guest_entry){ 0 };
}

void
sb_guest_entries_free(struct sb_guest_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_guest_entry_clear(&v[i]);
	free(v);
}

int
sb_guest_entry_read(struct sb_cursor *c, struct sb_guest_entry *out, struct sb_error *err)
{
	int r;

	*out = (struct sb_guest_entry){ 0 };
	out->name = sb_guest_text_read(c, 65536);
	out->kind = (char)sb_cursor_u8(c);
	out->size = sb_cursor_varint(c);
	out->mode = (uint32_t)sb_cursor_varint(c);
	out->own = sb_cursor_varint(c) != 0;
	out->mtime_s = (int64_t)(sb_cursor_varint(c) & INT64_MAX);
	out->mtime_ns = (uint32_t)(sb_cursor_varint(c) % 1000000000);
	out->target = sb_guest_text_read(c, 65536);
	r = sb_guest_strings_read(c, &out->meta, err);
	if (r == 0 &&
		(c->bad || !out->name || !out->target || !strchr("fdlo", out->kind) ||
			out->kind == '\0' || out->size > INT64_MAX))
		r = sb_fail(err, SB_E_PROTO, "the guest's entry is none");
	if (r < 0)
		sb_guest_entry_clear(out);
	return r;
}

/* What its errno says in our codes. */
static int
code_of(int sys)
{
	switch (sys) {
	case ESRCH: return SB_E_PROCESS_NOT_FOUND;
	case EPIPE: return SB_E_CLOSED;
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL:
	case ENOTTY:
	case ENODEV:
	case ENOTEMPTY: return SB_E_INVAL;
	case EROFS: return SB_E_DENIED;
	case EDQUOT: return SB_E_NOSPACE;
	case ENOTSUP: return SB_E_UNSUPPORTED;
	case EOVERFLOW:
	case EAGAIN:
	case EMFILE: return SB_E_LIMIT;
	default: return sb_code_from_errno(sys);
	}
}

int
sb_guest_failure(struct sb_cursor *c, struct sb_error *err)
{
	uint64_t sys = sb_cursor_varint(c);
	int code = c->bad || sys == 0 || sys > 4095 ? SB_E_PROTO : code_of((int)sys);

	if (code == SB_E_PROTO)
		return sb_fail(err, code, "the guest's answer is none");
	/* The words are ours, not the guest's. */
	(void)sb_fail(err, code, "%s", strerror((int)sys));
	if (err)
		err->sys = (int)sys;
	return code;
}

int
sb_guest_call(struct sb_guests *g, const char *session, uint8_t what, const struct sb_buf *fields,
	sb_guest_more_fn more, void *arg, const struct sb_host_call *call,
	struct sb_guest_answer *out, struct sb_guest_stream **out_stream, struct sb_error *err)
{
	struct sb_guest_link *l;
	struct sb_guest_stream *s;
	struct sb_guest_frame *f = NULL;
	struct sb_cursor c;
	int r = sb_buf_check(fields, "request", err);

	*out = (struct sb_guest_answer){ 0 };
	if (r < 0)
		return r;
	l = sb_guest_link_get(g, session, call, err);
	s = l ? sb_guest_link_ask(g, l, err) : NULL;
	if (!s)
		return err && err->code < 0 ? err->code : SB_E_RUNTIME;
	r = sb_guest_link_send(l, what, s->id, fields->data, fields->len, call, err);
	while (r == 0) {
		r = sb_guest_link_wait(s, SB_NEVER, call, &f, err);
		if (r < 0)
			break;
		sb_cursor_init(&c, f->data, f->len);
		if (f->what == SB_GUEST_DONE)
			break;
		if (f->what == SB_GUEST_FAILED)
			r = sb_guest_failure(&c, err);
		else if (f->what == SB_GUEST_MORE && more)
			r = more(&c, arg, err);
		else
			r = sb_fail(err, SB_E_PROTO, "the guest answers something else");
		free(f);
		f = NULL;
	}
	if (r == 0) {
		out->frame = f;
		out->c = c;
	}
	if (r == 0 && out_stream) {
		*out_stream = s;
	} else {
		/* Answered: the guest has nothing of this id any more, unless it was not told. */
		if (r == 0 || (err && err->sys))
			s->max = 0;
		sb_guest_leave(s);
	}
	return r;
}
