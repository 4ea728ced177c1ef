/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/delta.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>

#include <sync/codec/delta-child.h>
#include <sync/codec/delta-job.h>

/*
 * A signature: u32 magic, u32 block length, u32 sum length, then for each block u32 weak
 * sum and the strong sum; big-endian. The last block may be shorter.
 */
#define SIG_HEAD 12u
#define SIG_MAGIC 0x72730147u /* Rabin-Karp, BLAKE2 */
#define SIG_BLOCKS_MAX (1u << 24)

/*
 * Different blocks that may share one weak sum. Of 2^24 honest blocks hardly three do;
 * crafted ones can all, and each costs a comparison wherever that weak sum occurs. Equal
 * blocks (zeros) do not count: librsync keeps one of them.
 */
#define TWINS_MAX 32u

struct sig {
	const uint8_t *sums;
	size_t n, stride;
	uint32_t block, sum_len;
};

static uint32_t
load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int
parse_sig(const uint8_t *p, size_t len, struct sig *out, struct sb_error *err)
{
	if (len < SIG_HEAD)
		return sb_fail(err, SB_E_PROTO, "signature of %zu bytes", len);
	if (load_be32(p) != SIG_MAGIC)
		return sb_fail(err, SB_E_PROTO, "signature with magic %08" PRIx32, load_be32(p));
	out->block = load_be32(p + 4);
	out->sum_len = load_be32(p + 8);
	if (!out->block || out->block > SB_DELTA_BLOCK_MAX)
		return sb_fail(err, SB_E_PROTO, "signature with blocks of %" PRIu32 " bytes",
			out->block);
	if (out->sum_len < SB_DELTA_SUM_MIN || out->sum_len > SB_DELTA_SUM_MAX)
		return sb_fail(err, SB_E_PROTO, "signature with sums of %" PRIu32 " bytes",
			out->sum_len);
	out->stride = 4 + out->sum_len;
	out->n = (len - SIG_HEAD) / out->stride;
	if ((len - SIG_HEAD) % out->stride != 0 || out->n >= SIG_BLOCKS_MAX)
		return sb_fail(err, SB_E_PROTO, "signature of %zu bytes", len);
	out->sums = p + SIG_HEAD;
	return 0;
}

/* ---- flooding ---- */

/* The blocks' numbers ordered by weak sum: two passes over 16 bits each. */
static int
order_by_weak(const struct sig *s, uint32_t **out, struct sb_error *err)
{
	sb_autofree uint32_t *a = malloc((s->n + 1) * sizeof *a);
	sb_autofree uint32_t *b = malloc((s->n + 1) * sizeof *b);
	sb_autofree uint32_t *at = malloc((1 << 16) * sizeof *at);

	if (!a || !b || !at)
		return sb_fail(err, SB_E_NOMEM, "signature: out of memory");
	for (uint32_t i = 0; i < s->n; i++)
		a[i] = i;
	for (unsigned shift = 0; shift < 32; shift += 16) {
		uint32_t sum = 0;
		uint32_t *swap = a;

		memset(at, 0, (1 << 16) * sizeof *at);
		for (size_t i = 0; i < s->n; i++)
			at[load_be32(s->sums + i * s->stride) >> shift & 0xffff]++;
		for (size_t i = 0; i < 1 << 16; i++) {
			uint32_t n = at[i];

			at[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < s->n; i++)
			b[at[load_be32(s->sums + a[i] * s->stride) >> shift & 0xffff]++] = a[i];
		a = b;
		b = swap;
	}
	*out = sb_steal(&a);
	return 0;
}

/* Whether more than TWINS_MAX different strong sums are among these blocks. */
static bool
too_many_twins(const struct sig *s, const uint32_t *blocks, size_t n)
{
	const uint8_t *seen[TWINS_MAX];
	size_t n_seen = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *strong = s->sums + blocks[i] * s->stride + 4;
		size_t k = 0;

		while (k < n_seen && memcmp(seen[k], strong, s->sum_len) != 0)
			k++;
		if (k < n_seen)
			continue;
		if (n_seen == TWINS_MAX)
			return true;
		seen[n_seen++] = strong;
	}
	return false;
}

static int
check_flood(const struct sig *s, struct sb_error *err)
{
	sb_autofree uint32_t *order = NULL;
	size_t from = 0;
	int r = order_by_weak(s, &order, err);

	if (r < 0)
		return r;
	for (size_t i = 1; i <= s->n; i++) {
		uint32_t weak = load_be32(s->sums + order[from] * s->stride);

		if (i < s->n && load_be32(s->sums + order[i] * s->stride) == weak)
			continue;
		if (i - from > TWINS_MAX && too_many_twins(s, order + from, i - from))
			return sb_fail(err, SB_E_PROTO,
				"signature with more than %u blocks of one weak sum", TWINS_MAX);
		from = i;
	}
	return 0;
}

int
sb_delta_check_sig(const void *sig, size_t len, uint64_t basis_size, struct sb_error *err)
{
	struct sig s;
	int r = parse_sig(sig, len, &s, err);

	if (r < 0)
		return r;
	if (s.n != basis_size / s.block + (basis_size % s.block != 0))
		return sb_fail(err, SB_E_PROTO,
			"signature of %zu blocks for a file of %" PRIu64 " bytes", s.n, basis_size);
	return check_flood(&s, err);
}

/* ---- files as input ---- */

struct delta_file {
	int fd;
	uint64_t at;
	const struct sb_cancel *cancel;
};

static ssize_t
read_file(void *to, size_t len, void *arg, struct sb_error *err)
{
	struct delta_file *f = arg;
	ssize_t n;

	if (sb_cancel_requested(f->cancel))
		return sb_fail(err, SB_E_CANCELED, "delta: canceled");
	do
		n = pread(f->fd, to, len, (off_t)f->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return sb_fail_errno(err, "read");
	f->at += (uint64_t)n;
	return n;
}

static int
write_buf(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct sb_buf *b = arg;

	sb_buf_add(b, data, len);
	return sb_buf_check(b, "signature", err);
}

/*
 * Not in a child: the input is our own file and the memory needed is known and small,
 * while a fork for each of a thousand files would cost more than their signatures.
 */
int
sb_delta_sign(int fd, uint64_t size, struct sb_buf *out, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	struct delta_file f = { .fd = fd, .cancel = cancel };
	struct sb_delta_io io = { .read = read_file,
		.read_arg = &f,
		.write = write_buf,
		.write_arg = out };

	if (size > INT64_MAX)
		return sb_fail(err, SB_E_INVAL, "file of %" PRIu64 " bytes", size);
	return sb_delta_job_sign(&io, size, err);
}

/* ---- in a child ---- */

struct make_task {
	const void *sig;
	size_t sig_len;
};

static int
make_in_child(const struct sb_delta_io *io, int fd, void *arg, struct sb_error *err)
{
	const struct make_task *t = arg;
	struct delta_file f = { .fd = fd };
	struct sb_delta_io with_file = *io;

	with_file.read = read_file;
	with_file.read_arg = &f;
	return sb_delta_job_make(&with_file, t->sig, t->sig_len, err);
}

int
sb_delta_make(const void *sig, size_t sig_len, int new_fd, const struct sb_delta_budget *budget,
	sb_delta_sink_fn sink, void *arg, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct make_task t = { sig, sig_len };
	struct sb_delta_child_opts o = { .task = make_in_child,
		.task_arg = &t,
		.fd = new_fd,
		.sink = sink,
		.sink_arg = arg,
		.budget = budget,
		.cancel = cancel };
	struct sig s;
	int r = parse_sig(sig, sig_len, &s, err);

	return r < 0 ? r : sb_delta_child_run(&o, err);
}
