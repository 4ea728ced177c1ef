/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/wsframe.h>

#include <string.h>

#include <base/utf8.h>
#include <sb/error.h>

/*
 *   0                1                2 to 8 more           4            length
 *   +---+---+------+ +----+---------+ +-----------------+ +----------+ +---------
 *   |FIN|RSV|opcode| |MASK| length  | | longer length   | | mask key | | payload
 *   +---+---+------+ +----+---------+ +-----------------+ +----------+ +---------
 *   A length of 126 says that two more bytes have it, 127 eight; big-endian.
 */
#define FIN 0x80
#define RSV 0x70
#define MASKED 0x80
#define HEAD_MAX 14
#define CONTROL_MAX 125

enum { BAD_FRAME = 1002, BAD_TEXT = 1007, TOO_BIG = 1009 };

void
sb_wsframe_init(struct sb_wsframe *w, size_t max)
{
	*w = (struct sb_wsframe){ .max = max };
	sb_buf_init(&w->in, max + HEAD_MAX + SB_WSFRAME_PIECE);
	sb_buf_init(&w->msg, max + 1);
}

void
sb_wsframe_free(struct sb_wsframe *w)
{
	sb_buf_free(&w->in);
	sb_buf_free(&w->msg);
}

void
sb_wsframe_add(struct sb_wsframe *w, const void *data, size_t len)
{
	sb_buf_add(&w->in, data, len);
}

static int
bad(struct sb_wsframe *w, int code, const char *what, struct sb_error *err)
{
	w->bad = code;
	return sb_fail(err, SB_E_PROTO, "WebSocket: %s", what);
}

/* What a frame's first bytes say. */
struct head {
	bool fin;
	int op;
	size_t size; /* of the head */
	uint64_t len;
	const uint8_t *key;
};

static int
read_head(struct sb_wsframe *w, struct head *h, struct sb_error *err)
{
	const uint8_t *p = w->in.data;
	size_t more;

	if (w->in.len < 2)
		return 0;
	*h = (struct head){ .fin = p[0] & FIN, .op = p[0] & 15, .len = p[1] & 127 };
	if (p[0] & RSV)
		return bad(w, BAD_FRAME, "reserved bits", err);
	if (!(p[1] & MASKED))
		return bad(w, BAD_FRAME, "a frame without a mask", err);
	more = h->len == 126 ? 2 : h->len == 127 ? 8 : 0;
	h->size = 2 + more + 4;
	if (w->in.len < h->size)
		return 0;
	if (more > 0)
		h->len = 0;
	for (size_t i = 0; i < more; i++)
		h->len = h->len << 8 | p[2 + i];
	if ((more == 2 && h->len < 126) || (more == 8 && h->len < 65536))
		return bad(w, BAD_FRAME, "a length that is longer than it need be", err);
	if (h->len > w->max)
		return bad(w, TOO_BIG, "a frame that is too long", err);
	h->key = p + 2 + more;
	return 1;
}

static int
check(struct sb_wsframe *w, const struct head *h, struct sb_error *err)
{
	if (h->op >= 8) {
		if (h->op > SB_WSFRAME_PONG)
			return bad(w, BAD_FRAME, "an unknown kind of frame", err);
		if (!h->fin || h->len > CONTROL_MAX)
			return bad(w, BAD_FRAME, "a control frame in parts, or too long", err);
		return 0;
	}
	if (h->op > SB_WSFRAME_BINARY)
		return bad(w, BAD_FRAME, "an unknown kind of frame", err);
	if ((h->op == 0) != (w->begun != 0))
		return bad(w, BAD_FRAME, "a message in parts that do not follow", err);
	if (h->len > w->max - w->msg.len)
		return bad(w, TOO_BIG, "a message that is too long", err);
	return 0;
}

static bool
is_text(const uint8_t *p, size_t len)
{
	uint32_t c;

	for (size_t i = 0; i < len;) {
		int n = sb_utf8_next(p + i, len - i, &c);

		if (n <= 0)
			return false;
		i += (size_t)n;
	}
	return true;
}

/* Takes the frame out of what came. 1: something is whole now. */
static int
take(struct sb_wsframe *w, const struct head *h, enum sb_wsframe_kind *kind, const uint8_t **data,
	size_t *len, struct sb_error *err)
{
	const uint8_t *from = w->in.data + h->size;
	size_t n = (size_t)h->len;
	uint8_t *to = h->op >= 8 ? w->hand : sb_buf_reserve(&w->msg, n);

	if (!to)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] ^ h->key[i % 4];
	if (h->op >= 8) {
		w->hand[n] = 0;
		*kind = (enum sb_wsframe_kind)h->op;
		*data = w->hand;
		*len = n;
		sb_buf_consume(&w->in, h->size + n);
		return 1;
	}
	sb_buf_grow(&w->msg, n);
	sb_buf_consume(&w->in, h->size + n);
	if (h->op != 0)
		w->begun = h->op;
	if (!h->fin)
		return 0;
	*kind = (enum sb_wsframe_kind)w->begun;
	*data = w->msg.data ? w->msg.data : (const uint8_t *)"";
	*len = w->msg.len;
	w->begun = 0;
	w->over = true;
	if (*kind == SB_WSFRAME_TEXT && !is_text(*data, *len))
		return bad(w, BAD_TEXT, "a text that is none", err);
	return 1;
}

int
sb_wsframe_next(struct sb_wsframe *w, enum sb_wsframe_kind *kind, const uint8_t **data, size_t *len,
	struct sb_error *err)
{
	struct head h;
	int r;

	if (w->over)
		sb_buf_reset(&w->msg);
	w->over = false;
	if (w->bad)
		return bad(w, w->bad, "a frame behind a bad one", err);
	if (w->in.failed)
		return bad(w, TOO_BIG, "more than fits", err);
	do {
		r = read_head(w, &h, err);
		if (r == 1)
			r = check(w, &h, err) < 0 ? SB_E_PROTO : w->in.len >= h.size + h.len;
		if (r != 1)
			return r;
		r = take(w, &h, kind, data, len, err);
	} while (r == 0);
	return r;
}

void
sb_wsframe_put(struct sb_buf *out, enum sb_wsframe_kind kind, const void *data, size_t len)
{
	sb_buf_add_u8(out, (uint8_t)(FIN | kind));
	if (len < 126) {
		sb_buf_add_u8(out, (uint8_t)len);
	} else if (len < 65536) {
		sb_buf_add_u8(out, 126);
		sb_buf_add_u8(out, (uint8_t)(len >> 8));
		sb_buf_add_u8(out, (uint8_t)len);
	} else {
		sb_buf_add_u8(out, 127);
		for (int i = 7; i >= 0; i--)
			sb_buf_add_u8(out, (uint8_t)((uint64_t)len >> (8 * i)));
	}
	sb_buf_add(out, data, len);
}
