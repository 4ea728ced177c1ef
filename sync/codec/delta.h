/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DELTA_H
#define SBSYNC_DELTA_H

#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sb/error.h>

/*
 * librsync deltas: send a changed file without sending all of it. Nothing here trusts the peer; the
 * caller verifies every result by digest.
 */

#define SB_DELTA_MIN_SIZE (64u << 10)

/*
 * librsync. Signatures use Rabin-Karp + BLAKE2 with block and sum sizes by librsync's advice for
 * the file size. sb_delta_check_sig looks at a signature from a peer before librsync does: magic,
 * block <= 1 MiB, sum 6..32, length fits, block count below 2^24, weak sums that repeat no more
 * than a threshold (flooding). sb_delta_make and sb_delta_apply run librsync in a child process
 * with memory and CPU limits (it aborts when out of memory, and crafted input can make it
 * quadratic): SB_E_LIMIT when the budget is spent: send the file whole.
 */
int sb_delta_sign(int fd, uint64_t size, struct sb_buf *out, const struct sb_cancel *cancel,
	struct sb_error *err);
int sb_delta_check_sig(const void *sig, size_t len, uint64_t basis_size, struct sb_error *err);

typedef int (*sb_delta_sink_fn)(const void *data, size_t len, void *arg, struct sb_error *err);

struct sb_delta_budget {
	uint64_t max_out; /* bytes of delta or of result; more is SB_E_LIMIT */
	unsigned max_ms;  /* wall time */
	uint64_t max_memory;
};
#define SB_DELTA_BUDGET_INIT \
	{ \
		.max_out = UINT64_MAX, .max_ms = 60000, .max_memory = 1ull << 30 \
	}

int sb_delta_make(const void *sig, size_t sig_len, int new_fd, const struct sb_delta_budget *budget,
	sb_delta_sink_fn sink, void *arg, const struct sb_cancel *cancel, struct sb_error *err);

/*
 * `src` gives the delta's bytes (0 at its end). Copies outside the basis (`basis_fd`, `basis_size`)
 * and a result longer than max_out are errors.
 */
typedef ssize_t (*sb_delta_source_fn)(const void **out, void *arg, struct sb_error *err);
int sb_delta_apply(int basis_fd, uint64_t basis_size, sb_delta_source_fn src, void *src_arg,
	const struct sb_delta_budget *budget, sb_delta_sink_fn sink, void *arg,
	const struct sb_cancel *cancel, struct sb_error *err);

#endif
