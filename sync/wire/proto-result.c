/* SPDX-License-Identifier: MIT */
/* Messages that end a transfer: COMMIT and RESULT. */
#include "config.h"

#include <sync/wire/proto-priv.h>

#include <stdlib.h>
#include <string.h>

void
sb_proto_commit_encode(const struct sb_commit_req *m, struct sb_buf *b)
{
	sb_buf_add_u8(b, m->durability);
	sb_buf_add_u8(b, (uint8_t)((m->remember ? 1 : 0) | (m->set_root ? 2 : 0)));
	sb_buf_add_u16(b, m->root_mode);
	sb_buf_add_svarint(b, m->root_mtime);
}

int
sb_proto_commit_decode(const uint8_t *p, size_t len, struct sb_commit_req *out,
	struct sb_error *err)
{
	struct sb_cursor c;
	uint8_t flags;

	sb_cursor_init(&c, p, len);
	out->durability = sb_cursor_u8(&c);
	flags = sb_cursor_u8(&c);
	out->remember = flags & 1;
	out->set_root = flags & 2;
	out->root_mode = sb_cursor_u16(&c) & 07777;
	out->root_mtime = sb_cursor_svarint(&c);
	return sb_proto_done(&c, "COMMIT", err);
}

void
sb_proto_result_free(struct sb_commit_result *r)
{
	for (size_t i = 0; i < r->n_left; i++)
		free(r->left[i].path);
	free(r->left);
	memset(r, 0, sizeof *r);
}

int
sb_proto_result_add(struct sb_commit_result *r, const char *path, enum sb_commit_why why,
	struct sb_error *err)
{
	if (r->n_left == r->cap_left) {
		size_t cap = r->cap_left ? r->cap_left * 2 : 16;
		struct sb_commit_row *v = realloc(r->left, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "result: out of memory");
		r->left = v;
		r->cap_left = cap;
	}
	r->left[r->n_left].path = strdup(path);
	r->left[r->n_left].why = (uint8_t)why;
	if (!r->left[r->n_left].path)
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	r->n_left++;
	return 0;
}

const char *
sb_proto_why_text(enum sb_commit_why why)
{
	switch (why) {
	case SB_WHY_CHANGED: return "changed during the sync";
	case SB_WHY_NOTEMPTY: return "directory not empty";
	case SB_WHY_DENIED: return "permission denied";
	case SB_WHY_SOURCE: return "source vanished or kept changing";
	case SB_WHY_EXISTS: return "appeared during the sync";
	}
	return "unknown reason";
}

void
sb_proto_result_encode(const struct sb_commit_result *r, struct sb_buf *b)
{
	sb_buf_add_varint(b, r->files);
	sb_buf_add_varint(b, r->dirs);
	sb_buf_add_varint(b, r->deleted);
	sb_buf_add_varint(b, r->moved);
	sb_buf_add_varint(b, r->bytes);
	sb_buf_add(b, r->id.b, sizeof r->id.b);
	sb_buf_add_varint(b, r->n_left);
	for (size_t i = 0; i < r->n_left; i++) {
		sb_buf_add_bytes(b, r->left[i].path, strlen(r->left[i].path));
		sb_buf_add_u8(b, r->left[i].why);
	}
}

int
sb_proto_result_decode(const uint8_t *p, size_t len, size_t max_left, struct sb_commit_result *out,
	struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r = 0;

	memset(out, 0, sizeof *out);
	sb_cursor_init(&c, p, len);
	out->files = sb_cursor_varint(&c);
	out->dirs = sb_cursor_varint(&c);
	out->deleted = sb_cursor_varint(&c);
	out->moved = sb_cursor_varint(&c);
	out->bytes = sb_cursor_varint(&c);
	sb_proto_take_into(&c, out->id.b, sizeof out->id.b);
	n = sb_cursor_varint(&c);
	if (n > max_left)
		return sb_fail(err, SB_E_PROTO, "the far side left more alone than it was sent");
	for (uint64_t i = 0; i < n && !c.bad && r == 0; i++) {
		sb_autofree char *path = sb_proto_take_path(&c);
		uint8_t why = sb_cursor_u8(&c);

		if (why > SB_WHY_EXISTS)
			c.bad = true;

		if (!c.bad)
			r = sb_proto_result_add(out, path, why, err);
	}
	if (r == 0)
		r = sb_proto_done(&c, "RESULT", err);
	if (r < 0)
		sb_proto_result_free(out);
	return r;
}
