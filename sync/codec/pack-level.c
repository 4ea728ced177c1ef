/* SPDX-License-Identifier: MIT */
/*
 * The level of a stream. A ladder of steps, from storing up to zstd level 12, each with
 * the block size that suits it (larger blocks gain more than higher levels on source
 * trees, but cost latency). Per window of blocks two shares are measured:
 *
 *   link = time inside `out` / time passed
 *          near 1: the link is what we wait for
 *   work = time spent compressing / (time passed * jobs)
 *          near 1: the processors are what we wait for
 *   cpu  = the same in processor time: what a higher level would be a multiple of
 *
 * and then, in this order:
 *
 *   1. Blocks are stored now. Begin to compress when the link is the bottleneck and
 *      slower, per raw byte, than one thread compresses.
 *   2. The link could carry the raw bytes in half of the time, or faster than one
 *      thread compresses them: store. Not where the stream is encrypted below us: that
 *      costs 4 to 10 ns a byte on each side, the fastest levels 3 to 4 on one.
 *   3. The link is the bottleneck and the next step would still leave the processors
 *      room: up, at the lower steps by two where both fit. Only processors that nobody
 *      uses are room: others may need them more, not least a receiver on the same
 *      machine, whose hunger then makes the link slow.
 *   4. The processors are the bottleneck: one step down, not below the fastest
 *      compression; when it is others who use them, not below the first level. On a slow
 *      link that is so only when it starves: its buffers carry it over short droughts.
 *
 * Rule 2 waits until more went out than the buffers below us may have swallowed (a socket
 * takes megabytes at memory speed however slow its link is), so short streams stay at the
 * first level. Blocks that do not shrink say nothing about levels, so a window of them
 * changes nothing.
 */
#include "config.h"

#include <sync/codec/pack-level.h>

#include <sync/codec/pack.h>

struct level_step {
	int level;
	unsigned block_kib;
	double cost; /* of compressing a byte, level 1 being 1; source text, zstd 1.5 */
};

static const struct level_step ladder[] = {
	{ 0, 256, 0 },
	{ -5, 256, 0.7 },
	{ -2, 256, 0.8 },
	{ 1, 256, 1.0 },
	{ 3, 2048, 1.4 },
	{ 5, 4096, 2.8 },
	{ 6, 4096, 3.7 },
	{ 7, 4096, 4.7 },
	{ 9, 4096, 6.5 },
	{ 12, 4096, 14.0 },
};

enum {
	STEP_STORE = 0,
	STEP_FASTEST = 1,
	STEP_FIRST = 3,
	STEP_SMALL = 4,
	STEP_STEADY = 5, /* from here on one at a time: the next windows still show the blocks of
			    the last step */
	STEP_LAST = sizeof ladder / sizeof ladder[0] - 1,
	WINDOW_BLOCKS = 8,
	WINDOW_BLOCKS_MIN = 2,
};

#define WINDOW_NS 10000000ull      /* a window of WINDOW_BLOCKS lasts at least this long */
#define WINDOW_NS_MAX 250000000ull /* and is closed after this, on slow links */
#define WINDOW_NS_SLOW \
	400000000ull /* where those are known: the bursts of the buffers below even out */
#define PRIME_BYTES (4ull << 20) /* what buffers below `out` may hold */
#define SLOW_RATE 0.016          /* bytes a ns: more than 100 Mbit/s, much less than a disk */
#define SLOW_WAITS 0.25   /* share of all the time that the link of a slow stream was waited for */
#define LINK_WAITS 0.4    /* share of a slow link's time: above, there is more to be had */
#define LINK_STARVES 0.15 /* below, it waits for us */
#define IDLE_MIN 0.15     /* of a processor: less is none */
#define WORK_NS_GUESS 4.0 /* level 1 on one thread, before it was measured */

static void
enter_step(struct sb_pack_level *l, unsigned step)
{
	l->step = step;
	l->level = ladder[step].level;
	if (!l->fixed_block)
		l->block_size = (size_t)(l->small ? ladder[STEP_FIRST] : ladder[step]).block_kib
			<< 10;
}

void
sb_pack_level_init(struct sb_pack_level *l, int level, size_t block_size, unsigned jobs)
{
	unsigned step = STEP_FIRST;

	*l = (struct sb_pack_level){ .jobs = jobs, .work_ns = WORK_NS_GUESS, .win.idle = -1 };
	if (block_size) {
		l->fixed_block = true;
		l->block_size = block_size < SB_PACK_BLOCK_MAX ? block_size : SB_PACK_BLOCK_MAX;
	}
	if (level != SB_PACK_LEVEL_AUTO) {
		l->fixed = true;
		for (step = level > 0 ? STEP_FIRST : STEP_STORE; step < STEP_LAST; step++)
			if (level <= ladder[step].level)
				break;
	}
	enter_step(l, step);
	if (l->fixed)
		l->level = level;
}

static bool
nobody_idles(const struct sb_pack_level *l)
{
	return l->win.idle >= 0 && l->win.idle < IDLE_MIN;
}

/*
 * Would `step` leave the processors room? `work` is the share that the step that is takes of them.
 */
static bool
has_room(const struct sb_pack_level *l, double work, unsigned step)
{
	double more = ladder[step].cost / ladder[l->step].cost;

	return work * more < 0.75 &&
		(l->win.idle < 0 || work * l->jobs * (more - 1) < 0.9 * l->win.idle);
}

static void
decide(struct sb_pack_level *l, double passed)
{
	double raw = (double)l->win.raw;
	double wire = (double)l->win.wire;
	double link = (double)l->win.out_ns / passed;
	double work = (double)l->win.work_ns / (passed * l->jobs);
	double cpu = (double)l->win.cpu_ns / (passed * l->jobs);
	double link_ns = (double)l->win.out_ns / wire;

	if (l->step == STEP_STORE) {
		if (link >= 0.6 && link_ns > 1.25 * l->work_ns)
			enter_step(l, STEP_FIRST);
		return;
	}
	if (wire > 0.95 * raw)
		return;
	l->work_ns = (double)l->win.work_ns / raw;
	if (!l->sealed && l->sent >= PRIME_BYTES &&
		(link * raw / wire < 0.5 || link_ns < 0.8 * l->work_ns)) {
		enter_step(l, STEP_STORE);
	} else if (nobody_idles(l) && l->step > STEP_FIRST && (!l->slow || link < LINK_STARVES)) {
		enter_step(l, l->step - 1);
	} else if (link >= (l->slow ? LINK_WAITS : 0.6)) {
		const unsigned last = l->small ? STEP_SMALL : STEP_LAST;
		unsigned to = l->step;

		while (to < last && to < l->step + (l->step < STEP_STEADY ? 2 : 1) &&
			has_room(l, cpu, to + 1))
			to++;
		if (to > l->step)
			enter_step(l, to);
	} else if ((l->slow ? cpu : work) > 0.85 && l->step > STEP_FASTEST) {
		enter_step(l, l->step - 1);
	}
}

void
sb_pack_level_note(struct sb_pack_level *l, const struct sb_pack_sample *s)
{
	uint64_t passed;

	if (l->fixed)
		return;
	if (!l->win.start_ns)
		l->win.start_ns = s->begin_ns;
	l->win.raw += s->raw;
	l->win.wire += s->wire;
	l->win.out_ns += s->end_ns - s->begin_ns;
	l->win.work_ns += s->work_ns;
	l->win.cpu_ns += s->cpu_ns;
	l->win.blocks++;
	if (s->idle >= 0) {
		l->win.idle_sum += s->idle;
		l->win.idle = l->win.idle_sum / ++l->win.idle_n;
	}
	l->sent += s->wire;
	if (!l->first_ns)
		l->first_ns = s->begin_ns;
	l->out_ns += s->end_ns - s->begin_ns;
	passed = s->end_ns - l->first_ns;
	l->slow = (double)l->out_ns > SLOW_WAITS * (double)passed &&
		(double)l->sent < SLOW_RATE * (double)passed;
	passed = s->end_ns - l->win.start_ns;
	if (passed < WINDOW_NS || l->win.blocks < WINDOW_BLOCKS_MIN)
		return;
	if (l->slow ? passed < WINDOW_NS_SLOW :
		      l->win.blocks < WINDOW_BLOCKS && passed < WINDOW_NS_MAX)
		return;
	decide(l, (double)passed);
	l->win.start_ns = s->end_ns;
	l->win.raw = l->win.wire = l->win.out_ns = l->win.work_ns = l->win.cpu_ns = 0;
	l->win.idle_sum = 0;
	l->win.blocks = l->win.idle_n = 0;
}

bool
sb_pack_level_link_bound(const struct sb_pack_level *l)
{
	return l->fixed ? l->level > 0 : l->slow;
}
