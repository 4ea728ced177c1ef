/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DELTA_JOB_H
#define SBSYNC_DELTA_JOB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sb/error.h>

/*
 * librsync's jobs over callbacks, in this process. librsync aborts when memory runs out
 * and takes as long as its input makes it take: with input from a peer only in a child
 * (delta-child.h) or a fuzzer.
 */

/* What a signature may say. */
#define SB_DELTA_BLOCK_MAX (1u << 20)
#define SB_DELTA_SUM_MIN 6u
#define SB_DELTA_SUM_MAX 32u

/* Up to `len` bytes into `to`; 0 at the end. */
typedef ssize_t (*sb_delta_read_fn)(void *to, size_t len, void *arg, struct sb_error *err);
typedef int (*sb_delta_write_fn)(const void *data, size_t len, void *arg, struct sb_error *err);

struct sb_delta_io {
	sb_delta_read_fn read;
	void *read_arg;
	sb_delta_write_fn write;
	void *write_arg;
};

/* Signature of the bytes read, with block and sum lengths for a file of `size`. */
int sb_delta_job_sign(const struct sb_delta_io *io, uint64_t size, struct sb_error *err);

/* Delta from the file with that signature (checked) to the bytes read. */
int sb_delta_job_make(const struct sb_delta_io *io, const void *sig, size_t sig_len,
	struct sb_error *err);

#endif
