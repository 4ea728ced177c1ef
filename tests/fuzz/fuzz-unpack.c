/* SPDX-License-Identifier: MIT */
/*
 * What the unpacking child says to its parent, when the child was taken over by what it unpacked:
 * answers and records of any kind. The child is this file; its parent, unpack.c, is compiled in.
 *
 * Input: answers of 4 bytes each (what, code, two of the length), 0xff, then the records.
 */
#include "config.h"

#include <sync/codec/confined.h>

static int fake_start(struct sb_confined *c, const struct sb_confined_opts *o,
	struct sb_error *err);
static int fake_end(struct sb_confined *c, bool must_end);
#define sb_confined_start fake_start
#define sb_confined_end fake_end
#define sb_unpack_child fuzz_unpack_child
/* One name is one thing: these are not those of the library. */
#define sb_unpack_new fuzz_unpack_new
#define sb_unpack_free fuzz_unpack_free
#define sb_unpack_is_confined fuzz_unpack_is_confined
#define sb_unpack_pid fuzz_unpack_pid
#define sb_unpack_begin fuzz_unpack_begin
#define sb_unpack_leave fuzz_unpack_leave
#define sb_unpack_next fuzz_unpack_next
#define sb_unpack_read fuzz_unpack_read
#define sb_unpack_patch fuzz_unpack_patch
#include "sync/codec/unpack.c"

#include "tests/fuzz/fuzz.h"

static int child = -1; /* its end of the socket */

void
sb_unpack_child(bool confined, void *area)
{
	(void)confined;
	(void)area;
}

static int
fake_start(struct sb_confined *c, const struct sb_confined_opts *o, struct sb_error *err)
{
	(void)err;
	c->pid = 1;
	child = dup(o->keep[0]);
	FUZZ_CHECK(child >= 0);
	return 0;
}

static int
fake_end(struct sb_confined *c, bool must_end)
{
	(void)must_end;
	c->pid = 0;
	if (child >= 0)
		(void)close(child);
	child = -1;
	return -1;
}

static int
give_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	(void)arg;
	(void)err;
	*codec = SB_PACK_STORED;
	*raw_len = *len = 4;
	*data = "data";
	return 1;
}

static void
answers(const uint8_t **p, size_t *n)
{
	for (int i = 0; i < 16 && *n >= 4 && (*p)[0] != 0xff; i++, *p += 4, *n -= 4) {
		struct sb_unpack_msg m = { .what = (*p)[0],
			.code = (int8_t)(*p)[1],
			.a = (uint64_t)(*p)[2] | (uint64_t)(*p)[3] << 8 };

		if ((*p)[3] == 0xff)
			m.a = UINT64_MAX - (*p)[2];
		memset(m.text, (*p)[2], sizeof m.text);
		FUZZ_CHECK(send(child, &m, sizeof m, MSG_NOSIGNAL) == sizeof m);
	}
	FUZZ_CHECK(shutdown(child, SHUT_WR) == 0);
	if (*n && (*p)[0] == 0xff) {
		(*p)++;
		(*n)--;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_unpack *u;
	struct sb_error err = { 0 };
	struct sb_pack_entry e;
	uint8_t out[16];
	int r;

	if (!u)
		u = sb_unpack_new(NULL);
	FUZZ_CHECK(u && sb_unpack_begin(u, give_block, NULL, &err) == 0);
	answers(&data, &size);
	if (size > SB_UNPACK_OUT)
		size = SB_UNPACK_OUT;
	if (size)
		memcpy(u->area + SB_UNPACK_IN, data, size);
	while ((r = sb_unpack_next(u, &e, &err)) == 1) {
		const void *got;
		uint64_t sum = 0;
		ssize_t n;

		FUZZ_CHECK(sb_path_check(e.path, strlen(e.path), NULL) == 0);
		FUZZ_CHECK((unsigned)e.kind <= SB_PACK_SPARSE);
		while ((n = sb_unpack_read(u, &got, &err)) > 0)
			sum += (uint64_t)n;
		FUZZ_CHECK(n < 0 || sum == e.size);
		if (n < 0)
			break;
	}
	FUZZ_CHECK(r >= 0 || (err.code < 0 && *err.msg));
	if (u->sock >= 0)
		(void)sb_unpack_patch(u, "base", 4, "patch", 5, out, sizeof out, &err);
	stop(u);
	return 0;
}
