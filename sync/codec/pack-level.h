/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PACK_LEVEL_H
#define SBSYNC_PACK_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decides how hard to compress the blocks of a stream. The pipe feeds it one measurement a block,
 * in stream order; it decides once a window, from its measurements alone (it reads no clock). Not
 * thread-safe.
 */
struct sb_pack_level {
	int level;         /* of the next block; 0: store it */
	size_t block_size; /* of the next block */

	bool fixed; /* the level was asked for */
	bool fixed_block;
	uint64_t first_ns; /* when the stream began */
	uint64_t out_ns;   /* time inside `out` since then */
	bool slow;         /* so far the link was the bottleneck and carried less than SLOW_RATE */
	bool small;        /* set after init: steps that take little memory only */
	bool sealed;       /* set after init: compressible blocks are never stored */
	unsigned jobs;
	unsigned step;  /* index into the ladder */
	uint64_t sent;  /* wire bytes since the beginning */
	double work_ns; /* compression time of a raw byte, last measured */
	struct {
		uint64_t start_ns; /* 0: the next measurement begins it */
		uint64_t raw, wire, out_ns, work_ns, cpu_ns;
		unsigned blocks;
		double idle; /* on average, or the last one known */
		double idle_sum;
		unsigned idle_n;
	} win;
};

/* One block that left: when, how large before and after, how long `out` and the compressor took. */
struct sb_pack_sample {
	uint64_t begin_ns, end_ns; /* of the call of `out` */
	uint64_t raw, wire;
	uint64_t work_ns; /* from its beginning to its end: what else ran meanwhile counts */
	uint64_t cpu_ns;  /* of a processor */
	double idle;      /* processors of this machine that had nothing to do lately; negative: not
			     known */
};

/* `level` and `block_size` as in struct sb_pack_writer_opts. */
void sb_pack_level_init(struct sb_pack_level *l, int level, size_t block_size, unsigned jobs);
void sb_pack_level_note(struct sb_pack_level *l, const struct sb_pack_sample *s);
/* Is the link slow, and is it what we wait for? A level that was asked for says so by itself. */
bool sb_pack_level_link_bound(const struct sb_pack_level *l);

#endif
