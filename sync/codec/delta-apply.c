/* SPDX-License-Identifier: MIT */
/*
 * Applies a delta in librsync's format here and now. librsync does it too, but must run in a child
 * (it aborts when out of memory), and a result of a gigabyte through a pipe costs more than
 * everything else. The format is small:
 *
 *   u32 0x72730236, then commands, numbers big-endian:
 *   0x00             end
 *   0x01 .. 0x40     literal of so many bytes
 *   0x41 .. 0x44     literal, its length in 1, 2, 4 or 8 bytes
 *   0x45 .. 0x54     copy from the basis: 0x45 + 4 * o + l,
 *                    offset in 2^o bytes, length in 2^l bytes
 */
#include "config.h"

#include <sync/codec/delta.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>

#define DELTA_MAGIC 0x72730236u
#define COPY_LEN (256u << 10)

struct delta_applier {
	int basis;
	uint64_t basis_size;
	sb_delta_source_fn src;
	void *src_arg;
	sb_delta_sink_fn sink;
	void *sink_arg;
	const struct sb_delta_budget *budget;
	const struct sb_cancel *cancel;
	sb_deadline deadline;
	const uint8_t *in; /* what is left of the piece at hand */
	size_t in_len;
	uint64_t out;
	uint8_t *buf;
};

static int
corrupt(const char *what, struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "delta: %s", what);
}

/* 1 when there is input, 0 at its end. */
static int
fill(struct delta_applier *a, struct sb_error *err)
{
	const void *p;
	ssize_t n;

	if (a->in_len)
		return 1;
	n = a->src(&p, a->src_arg, err);
	if (n <= 0)
		return (int)n;
	a->in = p;
	a->in_len = (size_t)n;
	return 1;
}

static int
number(struct delta_applier *a, unsigned bytes, uint64_t *out, struct sb_error *err)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++) {
		int r = fill(a, err);

		if (r <= 0)
			return r < 0 ? r : corrupt("ends inside a command", err);
		v = v << 8 | *a->in++;
		a->in_len--;
	}
	*out = v;
	return 0;
}

/* Room for `len` more bytes, and time? */
static int
check(struct delta_applier *a, uint64_t len, struct sb_error *err)
{
	if (len > a->budget->max_out - a->out)
		return sb_fail(err, SB_E_LIMIT,
			"delta: gives more than the %llu bytes that were announced",
			(unsigned long long)a->budget->max_out);
	if (sb_cancel_requested(a->cancel))
		return sb_fail(err, SB_E_CANCELED, "delta: canceled");
	if (sb_deadline_passed(a->deadline))
		return sb_fail(err, SB_E_LIMIT, "delta: takes longer than %u ms",
			a->budget->max_ms);
	return 0;
}

static int
literal(struct delta_applier *a, uint64_t len, struct sb_error *err)
{
	if (!len || len > INT64_MAX)
		return corrupt("literal of an impossible length", err);
	while (len) {
		int r = fill(a, err);
		size_t n;

		if (r <= 0)
			return r < 0 ? r : corrupt("ends inside a literal", err);
		n = a->in_len < len ? a->in_len : (size_t)len;
		r = check(a, n, err);
		if (r == 0)
			r = a->sink(a->in, n, a->sink_arg, err);
		if (r < 0)
			return r;
		a->in += n;
		a->in_len -= n;
		a->out += n;
		len -= n;
	}
	return 0;
}

static int
copy(struct delta_applier *a, uint64_t from, uint64_t len, struct sb_error *err)
{
	if (!len || from > a->basis_size || len > a->basis_size - from)
		return corrupt("copies from outside the basis", err);
	while (len) {
		size_t want = len < COPY_LEN ? (size_t)len : COPY_LEN;
		ssize_t n;
		int r = check(a, want, err);

		if (r < 0)
			return r;
		n = pread(a->basis, a->buf, want, (off_t)from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read the basis of a delta");
		if (n == 0)
			return corrupt("the basis has become shorter", err);
		r = a->sink(a->buf, (size_t)n, a->sink_arg, err);
		if (r < 0)
			return r;
		a->out += (uint64_t)n;
		from += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* 1 after the end command. */
static int
command(struct delta_applier *a, struct sb_error *err)
{
	uint64_t op = 0, from = 0, len = 0;
	int r = number(a, 1, &op, err);

	if (r < 0)
		return r;
	if (op == 0)
		return 1;
	if (op <= 0x40)
		return literal(a, op, err);
	if (op > 0x54)
		return corrupt("unknown command", err);
	if (op <= 0x44) {
		r = number(a, 1u << (op - 0x41), &len, err);
		return r < 0 ? r : literal(a, len, err);
	}
	op -= 0x45;
	r = number(a, 1u << (op / 4), &from, err);
	if (r == 0)
		r = number(a, 1u << (op % 4), &len, err);
	return r < 0 ? r : copy(a, from, len, err);
}

int
sb_delta_apply(int basis_fd, uint64_t basis_size, sb_delta_source_fn src, void *src_arg,
	const struct sb_delta_budget *budget, sb_delta_sink_fn sink, void *arg,
	const struct sb_cancel *cancel, struct sb_error *err)
{
	struct delta_applier a = { .basis = basis_fd,
		.basis_size = basis_size,
		.src = src,
		.src_arg = src_arg,
		.sink = sink,
		.sink_arg = arg,
		.budget = budget,
		.cancel = cancel,
		.deadline = sb_deadline_in((int)budget->max_ms) };
	sb_autofree uint8_t *buf = malloc(COPY_LEN);
	uint64_t magic = 0;
	int r;

	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "delta: out of memory");
	a.buf = buf;
	r = number(&a, 4, &magic, err);
	if (r == 0 && magic != DELTA_MAGIC)
		r = corrupt("wrong magic", err);
	while (r == 0)
		r = command(&a, err);
	if (r < 0)
		return r;
	r = fill(&a, err);
	return r > 0 ? corrupt("something behind its end", err) : r;
}
