/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/delta-job.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librsync.h>

#include <base/cleanup.h>

/* librsync wants at least a block and 64 KiB of input at a time. */
#define IN_LEN (2u << 20)
#define OUT_LEN (256u << 10)

static int
from_result(rs_result r, const char *what, struct sb_error *err)
{
	switch (r) {
	case RS_DONE: return 0;
	case RS_MEM_ERROR: return sb_fail(err, SB_E_NOMEM, "%s: out of memory", what);
	case RS_IO_ERROR:
	case RS_INPUT_ENDED:
	case RS_BAD_MAGIC:
	case RS_CORRUPT:
	case RS_UNIMPLEMENTED: return sb_fail(err, SB_E_CORRUPT, "%s: %s", what, rs_strerror(r));
	default: return sb_fail(err, SB_E_CHILD, "%s: %s", what, rs_strerror(r));
	}
}

/* librsync's own messages go to stderr otherwise. */
static void
be_silent(rs_loglevel level, const char *msg)
{
	(void)level;
	(void)msg;
}

/* ---- the pump ---- */

struct pump {
	const struct sb_delta_io *io;
	rs_buffers_t b;
	char *in, *out;
};

/* Moves what is left to the front and reads behind it. */
static int
fill(struct pump *p, struct sb_error *err)
{
	ssize_t n;

	if (p->b.eof_in || p->b.avail_in == IN_LEN)
		return 0;
	memmove(p->in, p->b.next_in, p->b.avail_in);
	p->b.next_in = p->in;
	n = p->io->read(p->in + p->b.avail_in, IN_LEN - p->b.avail_in, p->io->read_arg, err);
	if (n < 0)
		return (int)n;
	p->b.avail_in += (size_t)n;
	p->b.eof_in = n == 0;
	return 0;
}

static int
drain(struct pump *p, struct sb_error *err)
{
	size_t n = (size_t)(p->b.next_out - p->out);
	int r = n ? p->io->write(p->out, n, p->io->write_arg, err) : 0;

	p->b.next_out = p->out;
	p->b.avail_out = OUT_LEN;
	return r;
}

/* Runs the job to its end. What is left of the input then is in the pump. */
static int
run(struct pump *p, rs_job_t *job, const char *what, struct sb_error *err)
{
	rs_result res = RS_BLOCKED;
	unsigned idle = 0;
	int r = 0;

	while (r >= 0 && res == RS_BLOCKED) {
		size_t in, out;

		r = fill(p, err);
		if (r < 0)
			break;
		in = p->b.avail_in;
		out = p->b.avail_out;
		res = rs_job_iter(job, &p->b);
		/*
		 * Neither input taken nor output made, more than once: it would never
		 * end.
		 */
		idle = in == p->b.avail_in && out == p->b.avail_out ? idle + 1 : 0;
		r = drain(p, err);
		if (r >= 0 && idle > 2 && res == RS_BLOCKED)
			r = sb_fail(err, SB_E_CORRUPT, "%s: no way forward", what);
	}
	return r < 0 ? r : from_result(res, what, err);
}

static int
run_job(const struct sb_delta_io *io, rs_job_t *job, const char *what, struct sb_error *err)
{
	sb_autofree char *in = malloc(IN_LEN);
	sb_autofree char *out = malloc(OUT_LEN);
	struct pump p = { .io = io, .in = in, .out = out };
	int r;

	p.b = (rs_buffers_t){ .next_in = in, .next_out = out, .avail_out = OUT_LEN };
	if (!in || !out)
		r = sb_fail(err, SB_E_NOMEM, "%s: out of memory", what);
	else
		r = run(&p, job, what, err);
	(void)rs_job_free(job);
	return r;
}

/* ---- jobs ---- */

int
sb_delta_job_sign(const struct sb_delta_io *io, uint64_t size, struct sb_error *err)
{
	rs_magic_number magic = RS_RK_BLAKE2_SIG_MAGIC;
	size_t block_len = 0, strong_len = (size_t)-1; /* -1: the shortest that is safe */
	rs_job_t *job;
	int r;

	rs_trace_to(be_silent);
	r = from_result(rs_sig_args((rs_long_t)size, &magic, &block_len, &strong_len), "signature",
		err);
	if (r < 0)
		return r;
	if (block_len > SB_DELTA_BLOCK_MAX)
		block_len = SB_DELTA_BLOCK_MAX;
	if (strong_len < SB_DELTA_SUM_MIN)
		strong_len = SB_DELTA_SUM_MIN;
	job = rs_sig_begin(block_len, strong_len, magic);
	return run_job(io, job, "signature", err);
}

static int
load_signature(const void *sig, size_t len, rs_signature_t **out, struct sb_error *err)
{
	rs_buffers_t b = { .next_in = (char *)sig, .avail_in = len, .eof_in = 1 };
	rs_job_t *job = rs_loadsig_begin(out);
	rs_result res = rs_job_iter(job, &b);

	(void)rs_job_free(job);
	if (res == RS_DONE)
		res = rs_build_hash_table(*out);
	return from_result(res, "signature", err);
}

int
sb_delta_job_make(const struct sb_delta_io *io, const void *sig, size_t sig_len,
	struct sb_error *err)
{
	rs_signature_t *sums = NULL;
	int r;

	rs_trace_to(be_silent);
	r = load_signature(sig, sig_len, &sums, err);
	if (r >= 0)
		r = run_job(io, rs_delta_begin(sums), "delta", err);
	if (sums)
		rs_free_sumset(sums);
	return r;
}
