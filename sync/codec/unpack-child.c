/* SPDX-License-Identifier: MIT */
/* The child's side of unpack.h: a pack reader that writes down what it finds. */
#include "config.h"

#include <sync/codec/unpack-priv.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/work.h>

#define PARENT 0
#define DATA_MAX (1u << 20)

struct kid {
	const uint8_t *in;
	uint8_t *out;
	uint8_t *patch;
	size_t at; /* bytes in `out` */
	bool confined;
};

static void
say(struct kid *k, enum sb_unpack_what what, int code, const char *text)
{
	struct sb_unpack_msg m = { .what = what, .code = code, .a = k->at };
	ssize_t n;

	if (text)
		memcpy(m.text, text, strnlen(text, sizeof m.text - 1));
	k->at = 0;
	do
		n = write(PARENT, &m, sizeof m);
	while (n < 0 && errno == EINTR);
	if (n != sizeof m)
		_exit(0);
}

static void
apply(struct kid *k, const struct sb_unpack_msg *m)
{
	struct sb_error err = { 0 };
	size_t at = k->at;
	int r = sb_patch_apply(k->patch, m->a, k->patch + m->a, m->b, k->patch + m->a + m->b, m->c,
		&err);

	say(k, SB_UNPACK_APPLIED, r, r < 0 ? err.msg : NULL);
	k->at = at;
}

/* What the parent says next; patches are done on the way. */
static void
hear(struct kid *k, struct sb_unpack_msg *m)
{
	for (;;) {
		ssize_t n = read(PARENT, m, sizeof *m);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof *m) /* it is gone, or does not need us any more */
			_exit(0);
		if (m->what != SB_UNPACK_APPLY)
			return;
		apply(k, m);
	}
}

static int
next_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct kid *k = arg;
	struct sb_unpack_msg m;

	(void)err;
	say(k, SB_UNPACK_WANT, 0, NULL);
	hear(k, &m);
	if (m.what == SB_UNPACK_NO_BLOCK)
		return 0;
	if (m.what != SB_UNPACK_BLOCK || m.b > SB_UNPACK_IN)
		_exit(2);
	*codec = (enum sb_pack_codec)m.code;
	*raw_len = m.a;
	*data = k->in;
	*len = m.b;
	return 1;
}

static uint8_t *
record(struct kid *k, enum sb_unpack_kind kind, size_t len)
{
	struct sb_unpack_rec rec = { .kind = kind, .len = (uint32_t)len };
	size_t room = sizeof rec + len + -len % 8;
	uint8_t *p;

	if (room > SB_UNPACK_OUT - k->at) {
		struct sb_unpack_msg m;

		say(k, SB_UNPACK_FULL, 0, NULL);
		hear(k, &m);
		if (m.what != SB_UNPACK_GO_ON)
			_exit(2);
	}
	p = k->out + k->at;
	memcpy(p, &rec, sizeof rec);
	k->at += room;
	return p + sizeof rec;
}

static void
put_entry(struct kid *k, const struct sb_pack_entry *e)
{
	struct sb_unpack_entry head = { .size = e->size,
		.file_size = e->file_size,
		.offset = e->offset,
		.kind = (uint32_t)e->kind,
		.path_len = (uint32_t)strlen(e->path) };
	uint8_t *p = record(k, SB_UNPACK_ENTRY, sizeof head + head.path_len);

	memcpy(head.base, e->base.b, sizeof head.base);
	memcpy(p, &head, sizeof head);
	memcpy(p + sizeof head, e->path, head.path_len);
}

static int
put_data(struct kid *k, struct sb_pack_reader *in, struct sb_error *err)
{
	const void *data;
	ssize_t n;

	while ((n = sb_pack_reader_read(in, &data, err)) > 0) {
		const uint8_t *p = data;

		while (n > 0) {
			size_t piece = n > DATA_MAX ? DATA_MAX : (size_t)n;

			memcpy(record(k, SB_UNPACK_DATA, piece), p, piece);
			p += piece;
			n -= (ssize_t)piece;
		}
	}
	return (int)n;
}

static void
archive(struct kid *k)
{
	struct sb_error err = { 0 };
	sb_auto(sb_pack_reader) struct sb_pack_reader *in = sb_pack_reader_new(next_block, k, &err);
	struct sb_pack_entry e;
	int n = in ? 1 : err.code;

	while (n > 0) {
		n = sb_pack_reader_next(in, &e, &err);
		if (n <= 0)
			break;
		put_entry(k, &e);
		n = put_data(k, in, &err) < 0 ? err.code : 1;
	}
	if (n < 0)
		say(k, SB_UNPACK_FAILED, n, err.msg);
	else
		say(k, SB_UNPACK_DONE, 0, NULL);
}

void
sb_unpack_child(bool confined, void *area)
{
	struct kid k = { .in = area,
		.out = (uint8_t *)area + SB_UNPACK_IN,
		.patch = (uint8_t *)area + SB_UNPACK_IN + SB_UNPACK_OUT };

	(void)sb_work_under(NULL); /* the parent's token is not seen from here */
	say(&k, SB_UNPACK_HELLO, confined, NULL);
	for (;;) {
		struct sb_unpack_msg m;

		hear(&k, &m);
		if (m.what != SB_UNPACK_BEGIN)
			_exit(2);
		archive(&k);
	}
}
