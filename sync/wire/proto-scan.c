/* SPDX-License-Identifier: MIT */
/* Messages about what a side has: BEGIN, SCAN and the listings of a Merkle descent. */
#include "config.h"

#include <sync/wire/proto-priv.h>

#include <stdlib.h>
#include <string.h>

#define ROOT_LIMIT 4096u

void
sb_proto_begin_encode(const struct sb_begin *m, struct sb_buf *b)
{
	sb_buf_add_u32(b, m->flags);
	sb_buf_add_varint(b, m->jobs);
	sb_buf_add(b, m->pair, sizeof m->pair);
	sb_buf_add(b, m->identity, sizeof m->identity);
	sb_buf_add(b, m->base.b, sizeof m->base.b);
	sb_buf_add(b, m->rules.b, sizeof m->rules.b);
	sb_buf_add_bytes(b, m->root, strlen(m->root));
}

int
sb_proto_begin_decode(const uint8_t *p, size_t len, struct sb_begin *out, struct sb_error *err)
{
	struct sb_cursor c;
	int r;

	sb_cursor_init(&c, p, len);
	memset(out, 0, sizeof *out);
	out->flags = sb_cursor_u32(&c);
	out->jobs = (uint32_t)sb_cursor_varint(&c);
	sb_proto_take_into(&c, out->pair, sizeof out->pair);
	sb_proto_take_into(&c, out->identity, sizeof out->identity);
	sb_proto_take_into(&c, out->base.b, sizeof out->base.b);
	sb_proto_take_into(&c, out->rules.b, sizeof out->rules.b);
	out->root = sb_proto_take_text(&c, ROOT_LIMIT);
	r = sb_proto_done(&c, "BEGIN", err);
	if (r < 0) {
		free(out->root);
		out->root = NULL;
	}
	return r;
}

void
sb_proto_scan_encode(const struct sb_scan_reply *m, struct sb_buf *b)
{
	sb_buf_add_u32(b, m->flags);
	sb_buf_add_varint(b, m->count);
	sb_buf_add_varint(b, m->bytes_hashed);
	sb_buf_add(b, m->id.b, sizeof m->id.b);
	sb_buf_add(b, m->identity, sizeof m->identity);
	sb_buf_add_varint(b, m->free_bytes);
	sb_buf_add_svarint(b, m->clock_ms);
	sb_buf_add_u16(b, m->root_mode);
	sb_buf_add_svarint(b, m->root_mtime);
	sb_buf_add_varint(b, m->specials);
}

int
sb_proto_scan_decode(const uint8_t *p, size_t len, struct sb_scan_reply *out, struct sb_error *err)
{
	struct sb_cursor c;

	sb_cursor_init(&c, p, len);
	out->flags = sb_cursor_u32(&c);
	out->count = sb_cursor_varint(&c);
	out->bytes_hashed = sb_cursor_varint(&c);
	sb_proto_take_into(&c, out->id.b, sizeof out->id.b);
	sb_proto_take_into(&c, out->identity, sizeof out->identity);
	out->free_bytes = sb_cursor_varint(&c);
	out->clock_ms = sb_cursor_svarint(&c);
	out->root_mode = sb_cursor_u16(&c) & 07777;
	out->root_mtime = sb_cursor_svarint(&c);
	out->specials = sb_cursor_varint(&c);
	return sb_proto_done(&c, "SCAN", err);
}

void
sb_proto_listing_add(const struct sb_entry *e, struct sb_buf *b)
{
	sb_buf_add_u8(b, e->type);
	sb_buf_add_bytes(b, e->name, strlen(e->name));
	sb_buf_add_u16(b, e->mode);
	sb_buf_add_svarint(b, e->mtime);
	sb_buf_add(b, e->digest.b, sizeof e->digest.b);
	sb_buf_add_varint(b, e->type == SB_ENTRY_DIR ? e->dir->total : e->size);
	if (e->type == SB_ENTRY_LINK)
		sb_buf_add_bytes(b, sb_entry_target(e), e->size);
}

int
sb_proto_listing_take(struct sb_cursor *c, struct sb_listed *out, struct sb_error *err)
{
	uint64_t n;

	memset(out, 0, sizeof *out);
	out->e.type = sb_cursor_u8(c);
	out->name = sb_proto_take_path(c);
	out->e.mode = sb_cursor_u16(c) & 07777;
	out->e.mtime = sb_cursor_svarint(c);
	sb_proto_take_into(c, out->e.digest.b, sizeof out->e.digest.b);
	n = sb_cursor_varint(c);
	if (out->e.type == SB_ENTRY_DIR)
		out->total = n;
	else
		out->e.size = n;
	if (out->e.type == SB_ENTRY_LINK)
		out->target = sb_proto_take_text(c, 4096);
	if (c->bad || !out->name || !*out->name || strchr(out->name, '/') ||
		out->e.type < SB_ENTRY_DIR || out->e.type > SB_ENTRY_LINK ||
		(out->target && strlen(out->target) != n)) {
		free(out->name);
		free(out->target);
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged listing");
	}
	return 0;
}
