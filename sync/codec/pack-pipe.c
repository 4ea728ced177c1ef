/* SPDX-License-Identifier: MIT */
/*
 * A ring of blocks. The feeding thread fills the block at `filled`, workers compress
 * blocks in the order they were filled, the emitter sends the block at `sent` once it is
 * ready:
 *
 *     FREE -> FILLING -> QUEUED -> WORKING -> READY -> SENDING -> FREE
 *
 * (a block that is stored goes from FILLING to READY).
 *
 * Threads are started when there is first something for them to do, so a stream of one
 * block costs two of them and a stored one none but the emitter.
 */
#include "config.h"

#include <sync/codec/pack-pipe.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <zstd.h>

#include <base/cond.h>

#include <sync/codec/pack-level.h>

#define JOBS_MAX 16
#define JOBS_DEFAULT_MAX 4
#define SAMPLE_PIECES 4
#define SAMPLE_PIECE 4096
/* A block that keeps more than 31/32 of its length is not worth decoding. */
#define WORTH(len) ((len) - (len) / 32)

enum block_state {
	BLOCK_FREE,
	BLOCK_FILLING,
	BLOCK_QUEUED,
	BLOCK_WORKING,
	BLOCK_READY,
	BLOCK_SENDING,
};

struct block {
	enum block_state state;
	int level;
	size_t want; /* raw bytes that fill it */
	uint8_t *raw;
	size_t raw_len, raw_cap;
	uint8_t *packed;
	size_t packed_len, packed_cap; /* packed_len 0: stored */
	uint64_t work_ns, cpu_ns;
};

struct sb_pack_pipe {
	struct sb_pack_writer_opts opts;
	unsigned jobs;
	size_t n_blocks;
	struct block *blocks;
	struct block *cur; /* the one being filled; the feeding thread's */

	pthread_mutex_t mu;
	pthread_cond_t freed, queued, ready;
	/* Counts of blocks; the ring index is the count modulo n_blocks. */
	size_t filled, taken, sent;
	unsigned n_workers, idle_workers;
	bool emitter_runs;
	bool stop;           /* threads end now */
	bool incompressible; /* the last block was stored because it did not shrink */
	struct sb_pack_level level;
	/* The emitter's: what /proc/stat said last, and when. */
	uint64_t stat_ns, stat_idle;
	double idle;
	struct sb_error error; /* code 0 while all is well */

	pthread_t workers[JOBS_MAX];
	pthread_t emitter;
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct block *
block_at(struct sb_pack_pipe *p, size_t count)
{
	return &p->blocks[count % p->n_blocks];
}

/* With `mu` held. The first failure stays; everyone who waits looks again. */
static void
set_error(struct sb_pack_pipe *p, const struct sb_error *error)
{
	if (!p->error.code)
		p->error = *error;
	pthread_cond_broadcast(&p->freed);
	pthread_cond_broadcast(&p->queued);
	pthread_cond_broadcast(&p->ready);
}

static int
give_error(const struct sb_pack_pipe *p, struct sb_error *err)
{
	if (err)
		*err = p->error;
	return p->error.code;
}

/* ---- compression ---- */

/*
 * Whether a few pieces of the block shrink; much cheaper than finding out with the whole
 * of it.
 */
static bool
sample_shrinks(ZSTD_CCtx *cctx, const struct block *b)
{
	uint8_t pieces[SAMPLE_PIECES * SAMPLE_PIECE];
	uint8_t out[WORTH(sizeof pieces)];
	size_t n = 0;
	size_t stride = b->raw_len / SAMPLE_PIECES;

	if (b->raw_len <= 2 * sizeof pieces)
		return true;
	for (; n < SAMPLE_PIECES; n++)
		memcpy(pieces + n * SAMPLE_PIECE, b->raw + n * stride, SAMPLE_PIECE);
	(void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, 1);
	return !ZSTD_isError(ZSTD_compress2(cctx, out, sizeof out, pieces, sizeof pieces));
}

/*
 * Fast levels find out by themselves that nothing shrinks at the cost of a sample or
 * little more, so those are only sampled behind a block that did not shrink.
 */
static void
compress_block(ZSTD_CCtx *cctx, struct block *b, bool suspicious)
{
	size_t max = WORTH(b->raw_len);
	size_t n;

	b->packed_len = 0;
	if ((b->level > 2 || suspicious) && !sample_shrinks(cctx, b))
		return;
	if (b->packed_cap < max) {
		free(b->packed);
		b->packed_cap = 0;
		b->packed = malloc(max);
		if (!b->packed)
			return; /* stored instead */
		b->packed_cap = max;
	}
	(void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, b->level);
	n = ZSTD_compress2(cctx, b->packed, max, b->raw, b->raw_len);
	if (!ZSTD_isError(n))
		b->packed_len = n;
}

/*
 * The next block to compress, or NULL; stored ones in between are passed over. With `mu`
 * held.
 */
static struct block *
take_queued(struct sb_pack_pipe *p)
{
	if (p->taken < p->sent)
		p->taken = p->sent;
	while (p->taken < p->filled) {
		struct block *b = block_at(p, p->taken++);

		if (b->state == BLOCK_QUEUED)
			return b;
	}
	return NULL;
}

static void *
worker_main(void *arg)
{
	struct sb_pack_pipe *p = arg;
	ZSTD_CCtx *cctx = ZSTD_createCCtx();

	pthread_mutex_lock(&p->mu);
	if (!cctx) {
		struct sb_error error;

		(void)sb_fail(&error, SB_E_NOMEM, "zstd compressor: out of memory");
		set_error(p, &error);
	}
	while (!p->stop && !p->error.code) {
		struct block *b = take_queued(p);
		bool suspicious = p->incompressible;
		uint64_t begin, cpu;

		if (!b) {
			p->idle_workers++;
			pthread_cond_wait(&p->queued, &p->mu);
			p->idle_workers--;
			continue;
		}
		b->state = BLOCK_WORKING;
		pthread_mutex_unlock(&p->mu);
		begin = now_ns();
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		compress_block(cctx, b, suspicious);
		b->work_ns = now_ns() - begin;
		b->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		pthread_mutex_lock(&p->mu);
		p->incompressible = !b->packed_len;
		b->state = BLOCK_READY;
		pthread_cond_signal(&p->ready);
	}
	pthread_mutex_unlock(&p->mu);
	(void)ZSTD_freeCCtx(cctx);
	return NULL;
}

/* ---- sending ---- */

#define STAT_NS 100000000ull

/*
 * Ticks all processors together spent idle since the system started; 0 when it cannot be told.
 * Those who made way for others (nice) are no reason to hold back, unless we are one of them.
 */
static uint64_t
idle_ticks(void)
{
	char buf[512];
	ssize_t n;
	sb_autoclose int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	unsigned long long idle = 0, nice = 0;

	n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	if (sscanf(buf, "cpu %*u %llu %*u %llu", &nice, &idle) != 2)
		return 0;
	return getpriority(PRIO_PROCESS, 0) > 0 ? idle : idle + nice;
}

/*
 * How many processors had nothing to do since the last look; looked at now and then. Only from the
 * emitter.
 */
static double
idle_processors(struct sb_pack_pipe *p, uint64_t now)
{
	uint64_t ticks;

	if (p->stat_ns && now - p->stat_ns < STAT_NS)
		return p->idle;
	ticks = idle_ticks();
	if (p->stat_idle && ticks >= p->stat_idle)
		p->idle = (double)(ticks - p->stat_idle) / (double)sysconf(_SC_CLK_TCK) /
			((double)(now - p->stat_ns) / 1e9);
	p->stat_idle = ticks;
	p->stat_ns = now;
	return p->idle;
}

/* With `mu` held; it is given up during the call of `out`. */
static void
send_block(struct sb_pack_pipe *p, struct block *b)
{
	struct sb_error error = { 0 };
	struct sb_pack_sample s = { .raw = b->raw_len, .work_ns = b->work_ns, .cpu_ns = b->cpu_ns };
	int r;

	s.wire = b->packed_len ? b->packed_len : b->raw_len;
	b->state = BLOCK_SENDING;
	pthread_mutex_unlock(&p->mu);
	s.begin_ns = now_ns();
	if (b->packed_len)
		r = p->opts.out(SB_PACK_ZSTD, b->raw_len, b->packed, b->packed_len, p->opts.arg,
			&error);
	else
		r = p->opts.out(SB_PACK_STORED, b->raw_len, b->raw, b->raw_len, p->opts.arg,
			&error);
	s.end_ns = now_ns();
	s.idle = idle_processors(p, s.end_ns);
	pthread_mutex_lock(&p->mu);
	if (r < 0) {
		error.code = r;
		set_error(p, &error);
		return;
	}
	sb_pack_level_note(&p->level, &s);
	b->state = BLOCK_FREE;
	p->sent++;
	pthread_cond_signal(&p->freed);
}

static void *
emitter_main(void *arg)
{
	struct sb_pack_pipe *p = arg;

	pthread_mutex_lock(&p->mu);
	while (!p->stop && !p->error.code) {
		struct block *b = block_at(p, p->sent);

		if (p->sent == p->filled || b->state != BLOCK_READY)
			pthread_cond_wait(&p->ready, &p->mu);
		else
			send_block(p, b);
	}
	pthread_mutex_unlock(&p->mu);
	return NULL;
}

/* ---- feeding ---- */

/* With `mu` held. */
static int
start_threads(struct sb_pack_pipe *p, bool need_worker, struct sb_error *err)
{
	int sys = 0;

	if (!p->emitter_runs) {
		sys = pthread_create(&p->emitter, NULL, emitter_main, p);
		p->emitter_runs = sys == 0;
	}
	if (!sys && need_worker && p->n_workers < p->jobs &&
		p->filled - p->taken > p->idle_workers) {
		sys = pthread_create(&p->workers[p->n_workers], NULL, worker_main, p);
		if (!sys)
			p->n_workers++;
		else if (p->n_workers)
			sys = 0; /* fewer will do */
	}
	if (!sys)
		return 0;
	errno = sys;
	(void)sb_fail_errno(&p->error, "start a compression thread");
	return give_error(p, err);
}

/* Hands the block being filled on. With `mu` held. */
static int
submit(struct sb_pack_pipe *p, struct sb_error *err)
{
	struct block *b = p->cur;

	p->cur = NULL;
	b->packed_len = 0;
	b->work_ns = b->cpu_ns = 0;
	b->state = b->level ? BLOCK_QUEUED : BLOCK_READY;
	p->filled++;
	if (b->level)
		pthread_cond_signal(&p->queued);
	else
		pthread_cond_signal(&p->ready);
	return start_threads(p, b->level != 0, err);
}

/*
 * Waits until `sent` reaches `count`. A cancel does not signal, so the wait looks for it
 * now and then. With `mu` held.
 */
static int
wait_sent(struct sb_pack_pipe *p, size_t count, struct sb_error *err)
{
	while (!p->error.code && p->sent < count) {
		if (sb_cancel_requested(p->opts.cancel))
			return sb_fail(err, SB_E_CANCELED, "pack: canceled");
		sb_cond_wait_until(&p->freed, &p->mu, sb_deadline_in(50));
	}
	return p->error.code ? give_error(p, err) : 0;
}

/* Makes the next block of the ring the one being filled. With `mu` held. */
static int
next_block(struct sb_pack_pipe *p, struct sb_error *err)
{
	struct block *b = block_at(p, p->filled);
	int r = 0;

	if (p->filled >= p->n_blocks)
		r = wait_sent(p, p->filled - p->n_blocks + 1, err);
	else if (p->error.code)
		r = give_error(p, err);
	if (r < 0)
		return r;
	b->level = p->level.level;
	b->want = p->level.block_size;
	if (b->raw_cap < b->want) {
		free(b->raw);
		b->raw_cap = 0;
		b->raw = malloc(b->want);
		if (!b->raw)
			return sb_fail(err, SB_E_NOMEM, "block of %zu bytes: out of memory",
				b->want);
		b->raw_cap = b->want;
	}
	b->raw_len = 0;
	b->state = BLOCK_FILLING;
	p->cur = b;
	return 0;
}

int
sb_pack_pipe_write(struct sb_pack_pipe *p, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *from = data;
	int r = 0;

	while (len) {
		struct block *b = p->cur;
		size_t n;

		if (!b) {
			pthread_mutex_lock(&p->mu);
			r = next_block(p, err);
			pthread_mutex_unlock(&p->mu);
			if (r < 0)
				return r;
			b = p->cur;
		}
		n = b->want - b->raw_len;
		if (n > len)
			n = len;
		memcpy(b->raw + b->raw_len, from, n);
		b->raw_len += n;
		from += n;
		len -= n;
		if (b->raw_len < b->want)
			continue;
		pthread_mutex_lock(&p->mu);
		r = submit(p, err);
		pthread_mutex_unlock(&p->mu);
		if (r < 0)
			return r;
	}
	return 0;
}

int
sb_pack_pipe_finish(struct sb_pack_pipe *p, struct sb_error *err)
{
	int r = 0;

	pthread_mutex_lock(&p->mu);
	if (p->error.code)
		r = give_error(p, err);
	else if (p->cur && p->cur->raw_len)
		r = submit(p, err);
	if (r >= 0)
		r = wait_sent(p, p->filled, err);
	pthread_mutex_unlock(&p->mu);
	return r;
}

/* ---- life ---- */

static unsigned
choose_jobs(unsigned asked)
{
	long n;

	if (asked)
		return asked < JOBS_MAX ? asked : JOBS_MAX;
	n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		return 1;
	return n < JOBS_DEFAULT_MAX ? (unsigned)n : JOBS_DEFAULT_MAX;
}

struct sb_pack_pipe *
sb_pack_pipe_new(const struct sb_pack_writer_opts *opts, struct sb_error *err)
{
	struct sb_pack_pipe *p = calloc(1, sizeof *p);

	if (!p) {
		(void)sb_fail(err, SB_E_NOMEM, "pack writer: out of memory");
		return NULL;
	}
	p->opts = *opts;
	p->idle = -1;
	p->jobs = choose_jobs(opts->jobs);
	p->n_blocks = 2 * (size_t)p->jobs + 2;
	p->blocks = calloc(p->n_blocks, sizeof *p->blocks);
	if (!p->blocks) {
		free(p);
		(void)sb_fail(err, SB_E_NOMEM, "pack writer: out of memory");
		return NULL;
	}
	sb_pack_level_init(&p->level, opts->level, opts->block_size, p->jobs);
	p->level.sealed = opts->sealed;
	p->level.small = opts->small;
	(void)pthread_mutex_init(&p->mu, NULL);
	sb_cond_init(&p->freed);
	(void)pthread_cond_init(&p->queued, NULL);
	(void)pthread_cond_init(&p->ready, NULL);
	return p;
}

bool
sb_pack_pipe_link_bound(struct sb_pack_pipe *p)
{
	bool bound;

	pthread_mutex_lock(&p->mu);
	bound = sb_pack_level_link_bound(&p->level);
	pthread_mutex_unlock(&p->mu);
	return bound;
}

void
sb_pack_pipe_free(struct sb_pack_pipe *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->mu);
	p->stop = true;
	pthread_cond_broadcast(&p->queued);
	pthread_cond_broadcast(&p->ready);
	pthread_mutex_unlock(&p->mu);
	for (unsigned i = 0; i < p->n_workers; i++)
		(void)pthread_join(p->workers[i], NULL);
	if (p->emitter_runs)
		(void)pthread_join(p->emitter, NULL);
	pthread_cond_destroy(&p->freed);
	pthread_cond_destroy(&p->queued);
	pthread_cond_destroy(&p->ready);
	pthread_mutex_destroy(&p->mu);
	for (size_t i = 0; i < p->n_blocks; i++) {
		free(p->blocks[i].raw);
		free(p->blocks[i].packed);
	}
	free(p->blocks);
	free(p);
}
