/* SPDX-License-Identifier: MIT */
/*
 * Deltas of a peer: u16 length of the basis, the basis, the delta. Ends, without reading
 * outside of the basis (which is as long as said), as success, SB_E_CORRUPT, or with the
 * sink's refusal of too much.
 */
#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/cursor.h>
#include <sync/codec/delta.h>

#include "fuzz.h"

#define OUT_MAX (1u << 20)

struct bytes {
	const uint8_t *p;
	size_t len;
};

static ssize_t
give(const void **out, void *arg, struct sb_error *err)
{
	struct bytes *b = arg;
	size_t n = b->len < 1000 ? b->len : 1000;

	(void)err;
	*out = b->p;
	b->p += n;
	b->len -= n;
	return (ssize_t)n;
}

static int
count(const void *data, size_t len, void *arg, struct sb_error *err)
{
	size_t *total = arg;

	(void)data;
	*total += len;
	return *total > OUT_MAX ? sb_fail(err, SB_E_LIMIT, "too much") : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_cursor c;
	struct bytes delta;
	size_t basis_len, total = 0;
	struct sb_delta_budget budget = SB_DELTA_BUDGET_INIT;
	const uint8_t *basis;
	int fd, r;

	sb_cursor_init(&c, data, len);
	basis_len = sb_cursor_u16(&c);
	if (basis_len > sb_cursor_left(&c))
		basis_len = sb_cursor_left(&c);
	basis = sb_cursor_take(&c, basis_len);
	if (c.bad)
		return 0;
	fd = memfd_create("basis", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && pwrite(fd, basis, basis_len, 0) == (ssize_t)basis_len);
	delta = (struct bytes){ c.p, sb_cursor_left(&c) };
	r = sb_delta_apply(fd, basis_len, give, &delta, &budget, count, &total, NULL, NULL);
	FUZZ_CHECK(r == 0 || r == SB_E_CORRUPT || r == SB_E_LIMIT);
	(void)close(fd);
	return 0;
}
