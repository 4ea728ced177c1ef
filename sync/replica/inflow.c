/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/inflow.h>

#include <sync/codec/pack.h>
#include <sync/wire/proto.h>

#define PIECE_MAX (256u << 20)

struct inflow {
	struct sb_wire *w;
	struct sb_receive *r;
	bool plans;
	bool ended;
	const uint8_t *p; /* a DATA payload not yet handed on */
	size_t len;
};

int
sb_inflow_plan(struct sb_wire *w, struct sb_receive *r, const uint8_t *first, size_t first_len,
	struct sb_error *err)
{
	static const struct sb_manifest_limits limits = SB_MANIFEST_LIMITS_INIT;
	sb_auto(sb_plan_piece) struct sb_plan_piece piece = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int n;

	sb_buf_init(&b, 0);
	sb_buf_init(&piece.strings, 0);
	n = sb_wire_recv_blob(w, SB_MSG_PLAN, first, first_len, PIECE_MAX, &b, err);
	if (n == 0)
		n = sb_proto_plan_decode(b.data, b.len, &limits, &piece, err);
	if (n == 0)
		n = sb_receive_plan(r, &piece, err);
	return n;
}

static int
give_block(struct inflow *f, enum sb_pack_codec *codec, size_t *raw_len, const void **data,
	size_t *len, struct sb_error *err)
{
	const uint8_t *p = f->p;

	if (f->len < 5 || p[0] > SB_PACK_ZSTD)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged data block");
	*codec = p[0];
	*raw_len = (size_t)p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16 | (size_t)p[4] << 24;
	*data = p + 5;
	*len = f->len - 5;
	f->p = NULL;
	return 1;
}

static int
next_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct inflow *f = arg;

	while (!f->p) {
		const uint8_t *p;
		uint8_t type;
		size_t n;
		int r;

		if (f->ended)
			return 0;
		r = sb_wire_recv(f->w, &type, &p, &n, err);
		if (r < 0)
			return r;
		if (type == SB_MSG_DATA) {
			f->p = p;
			f->len = n;
		} else if (type == SB_MSG_ROWS) {
			r = sb_receive_rows(f->r, p, n, err);
		} else if (type == SB_MSG_PLAN && f->plans) {
			r = sb_inflow_plan(f->w, f->r, p, n, err);
		} else if (type == SB_MSG_DATA_END) {
			f->ended = true;
		} else {
			r = sb_fail(err, SB_E_PROTO,
				"the far side sent message %u inside the data stream", type);
		}
		if (r < 0)
			return r;
	}
	return give_block(f, codec, raw_len, data, len, err);
}

int
sb_inflow_run(struct sb_wire *w, struct sb_receive *r, bool plans, const uint8_t *first,
	size_t first_len, struct sb_error *err)
{
	struct inflow f = { .w = w, .r = r, .plans = plans, .p = first, .len = first_len };
	sb_auto(sb_pack_reader) struct sb_pack_reader *in =
		sb_receive_reader(r, next_block, &f, err);
	struct sb_pack_entry e;
	int n;

	if (!in)
		return err ? err->code : SB_E_NOMEM;
	while ((n = sb_pack_reader_next(in, &e, err)) > 0) {
		n = sb_receive_entry(r, in, &e, err);
		if (n < 0)
			return n;
	}
	/* The archive is complete; DATA_END and late rows may still be under way. */
	while (n == 0 && !f.ended) {
		enum sb_pack_codec codec;
		size_t raw, len;
		const void *data;

		n = next_block(&codec, &raw, &data, &len, &f, err);
		if (n > 0)
			n = sb_fail(err, SB_E_PROTO,
				"the far side sent data behind the end of the archive");
	}
	return n;
}
