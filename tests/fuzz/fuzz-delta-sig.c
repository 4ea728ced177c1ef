/* SPDX-License-Identifier: MIT */
/*
 * Signatures of a peer: u16 length of the new file, u32 size the basis is said to have,
 * the new file, the signature. What sb_delta_check_sig lets through must not harm
 * librsync, and the delta it gives must end with its end command.
 */
#include "config.h"

#include <string.h>

#include <sync/codec/delta-job.h>
#include <sync/codec/delta.h>

#include "fuzz.h"

#include <base/cursor.h>

struct bytes {
	const uint8_t *p;
	size_t len;
};

static ssize_t
give(void *to, size_t len, void *arg, struct sb_error *err)
{
	struct bytes *b = arg;
	size_t n = b->len < len ? b->len : len;

	(void)err;
	if (n)
		memcpy(to, b->p, n);
	b->p += n;
	b->len -= n;
	return (ssize_t)n;
}

static int
keep(const void *data, size_t len, void *arg, struct sb_error *err)
{
	sb_buf_add(arg, data, len);
	return sb_buf_check(arg, "delta", err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_cursor c;
	struct bytes new;
	uint32_t size;
	int r;
	sb_auto(sb_buf) struct sb_buf delta;
	struct sb_delta_io io = { .read = give,
		.read_arg = &new,
		.write = keep,
		.write_arg = &delta };

	sb_buf_init(&delta, 1 << 24);
	sb_cursor_init(&c, data, len);
	new.len = sb_cursor_u16(&c);
	size = sb_cursor_u32(&c);
	if (new.len > sb_cursor_left(&c))
		new.len = sb_cursor_left(&c);
	new.p = sb_cursor_take(&c, new.len);
	if (c.bad)
		return 0;
	r = sb_delta_check_sig(c.p, sb_cursor_left(&c), size, NULL);
	FUZZ_CHECK(r == 0 || r == SB_E_PROTO);
	if (r < 0)
		return 0;
	FUZZ_CHECK(sb_delta_job_make(&io, c.p, sb_cursor_left(&c), NULL) == 0);
	FUZZ_CHECK(delta.len >= 5 && delta.data[delta.len - 1] == 0);
	return 0;
}
