/* SPDX-License-Identifier: MIT */
/* Messages that ask for changes and contents: PLAN and WANT. */
#include "config.h"

#include <sync/wire/proto-priv.h>

#include <stdlib.h>
#include <string.h>

void
sb_proto_plan_free(struct sb_plan_piece *p)
{
	sb_diff_free(&p->diff);
	free(p->steps);
	p->steps = NULL;
	sb_buf_free(&p->strings);
}

/*
 * Plan piece: varint length of the diff, the diff, then per change u8 method and, for CLONE and
 * MOVE, a path.
 */
int
sb_proto_plan_encode(const struct sb_diff *diff, const struct sb_plan_step *steps, struct sb_buf *b,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf d = { 0 };
	int r;

	sb_buf_init(&d, b->max);
	r = sb_diff_encode(diff, &d, err);
	if (r < 0)
		return r;
	sb_buf_add_bytes(b, d.data, d.len);
	for (size_t i = 0; i < diff->n; i++) {
		sb_buf_add_u8(b, steps[i].method);
		if (steps[i].method == SB_METHOD_CLONE || steps[i].method == SB_METHOD_MOVE)
			sb_buf_add_bytes(b, steps[i].from, strlen(steps[i].from));
	}
	return sb_buf_check(b, "plan", err);
}

/* Does this method make sense for this change? The peer may send anything. */
static bool
method_fits(const struct sb_change *ch, uint8_t method)
{
	if (ch->del)
		return method == SB_METHOD_DELETE;
	switch (method) {
	case SB_METHOD_META: return true;
	case SB_METHOD_MAKE: return ch->entry.type != SB_ENTRY_FILE || ch->entry.size == 0;
	case SB_METHOD_MOVE: return ch->entry.type != SB_ENTRY_LINK;
	case SB_METHOD_DATA:
	case SB_METHOD_CLONE:
	case SB_METHOD_LEFTOVER: return ch->entry.type == SB_ENTRY_FILE;
	case SB_METHOD_HARDLINK:
		return ch->entry.type == SB_ENTRY_FILE && ch->leader &&
			strcmp(ch->leader, ch->path) != 0;
	default: return false;
	}
}

int
sb_proto_plan_decode(const uint8_t *p, size_t len, const struct sb_manifest_limits *limits,
	struct sb_plan_piece *out, struct sb_error *err)
{
	struct sb_cursor c;
	const uint8_t *d;
	size_t n;
	int r;

	memset(out, 0, sizeof *out);
	sb_buf_init(&out->strings, len + 1);
	sb_cursor_init(&c, p, len);
	d = sb_cursor_bytes(&c, len, &n);
	if (!d)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged plan");
	r = sb_diff_decode(d, n, limits, &out->diff, err);
	if (r < 0)
		return sb_wrap(err, r, "plan from the far side");
	out->steps = calloc(out->diff.n + 1, sizeof *out->steps);
	/* Reserved at once so that `from` pointers stay good. */
	if (!out->steps || !sb_buf_reserve(&out->strings, sb_cursor_left(&c))) {
		sb_proto_plan_free(out);
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	}
	for (size_t i = 0; i < out->diff.n && !c.bad; i++) {
		struct sb_plan_step *s = &out->steps[i];

		s->method = sb_cursor_u8(&c);
		if (!method_fits(&out->diff.v[i], s->method))
			c.bad = true;
		if (s->method == SB_METHOD_CLONE || s->method == SB_METHOD_MOVE) {
			sb_autofree char *from = sb_proto_take_path(&c);

			if (!from || !*from) {
				c.bad = true;
				break;
			}
			s->from = (char *)out->strings.data + out->strings.len;
			sb_buf_add(&out->strings, from, strlen(from) + 1);
		}
	}
	r = sb_proto_done(&c, "PLAN", err);
	if (r < 0)
		sb_proto_plan_free(out);
	return r;
}

void
sb_proto_want_free(struct sb_want_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].source);
		free(l->v[i].sig);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

int
sb_proto_want_add(struct sb_want_list *l, const char *path, struct sb_want **out,
	struct sb_error *err)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct sb_want *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
		l->v = v;
		l->cap = cap;
	}
	memset(&l->v[l->n], 0, sizeof l->v[l->n]);
	l->v[l->n].path = strdup(path);
	if (!l->v[l->n].path)
		return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
	*out = &l->v[l->n++];
	return 0;
}

enum {
	WANT_BASE = 1,
	WANT_HAVE = 2,
	WANT_SIG = 4,
	WANT_WHOLE = 8,
	WANT_SOURCE = 16,
};

void
sb_proto_want_encode(const struct sb_want_list *l, struct sb_buf *b)
{
	sb_buf_add_varint(b, l->n);
	for (size_t i = 0; i < l->n; i++) {
		const struct sb_want *w = &l->v[i];
		bool base = sb_digest_known(&w->base);

		sb_buf_add_bytes(b, w->path, strlen(w->path));
		sb_buf_add_u8(b,
			(uint8_t)((base ? WANT_BASE : 0) | (w->have ? WANT_HAVE : 0) |
				(w->sig ? WANT_SIG : 0) | (w->whole ? WANT_WHOLE : 0) |
				(w->source ? WANT_SOURCE : 0)));
		if (w->source)
			sb_buf_add_bytes(b, w->source, strlen(w->source));
		if (base) {
			sb_buf_add(b, w->base.b, sizeof w->base.b);
			sb_buf_add_varint(b, w->base_size);
		}
		if (w->have) {
			sb_buf_add_varint(b, w->have);
			sb_buf_add(b, w->have_digest.b, sizeof w->have_digest.b);
		}
		if (w->sig)
			sb_buf_add_bytes(b, w->sig, w->sig_len);
	}
}

static int
want_decode(struct sb_cursor *c, struct sb_want_list *out, struct sb_error *err)
{
	sb_autofree char *path = sb_proto_take_path(c);
	struct sb_want *w;
	uint8_t flags;
	int r;

	if (!path || !*path)
		return sb_fail(err, SB_E_PROTO,
			"the far side asked for a path that is not allowed");
	r = sb_proto_want_add(out, path, &w, err);
	if (r < 0)
		return r;
	flags = sb_cursor_u8(c);
	w->whole = flags & WANT_WHOLE;
	if (flags & WANT_SOURCE) {
		w->source = sb_proto_take_path(c);
		if (!w->source || !*w->source)
			return sb_fail(err, SB_E_PROTO,
				"the far side asked for a path that is not allowed");
	}
	if (flags & WANT_BASE) {
		sb_proto_take_into(c, w->base.b, sizeof w->base.b);
		w->base_size = sb_cursor_varint(c);
	}
	if (flags & WANT_HAVE) {
		w->have = sb_cursor_varint(c);
		sb_proto_take_into(c, w->have_digest.b, sizeof w->have_digest.b);
	}
	if (flags & WANT_SIG) {
		const uint8_t *sig = sb_cursor_bytes(c, 64u << 20, &w->sig_len);

		if (!sig)
			return sb_fail(err, SB_E_PROTO, "the far side sent a damaged signature");
		w->sig = malloc(w->sig_len + 1);
		if (!w->sig)
			return sb_fail(err, SB_E_NOMEM, "signature: out of memory");
		memcpy(w->sig, sig, w->sig_len);
	}
	return 0;
}

int
sb_proto_want_decode(const uint8_t *p, size_t len, struct sb_want_list *out, struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r = 0;

	memset(out, 0, sizeof *out);
	sb_cursor_init(&c, p, len);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && !c.bad && r == 0; i++)
		r = want_decode(&c, out, err);
	if (r == 0)
		r = sb_proto_done(&c, "WANT", err);
	if (r < 0)
		sb_proto_want_free(out);
	return r;
}
