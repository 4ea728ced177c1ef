/* SPDX-License-Identifier: MIT */
/* How the compression level follows a link, played on a model whose time is made up. */
#include "config.h"

#include <sync/codec/pack.h>
#include <sync/codec/pack-level.h>

#include "tests/lib/unit.h"

/*
 * A stream with time made up: the source makes raw bytes at `source`, compression and
 * link run beside each other, the slowest of the three sets the pace. Rates in MB/s;
 * zstd's speed and gain by level roughly as on source text.
 */
struct model {
	double link, source;
	double speed1; /* level 1, one thread */
	bool incompressible;
	double idle;   /* processors nobody uses, 0: not known */
	double buffer; /* bytes a socket takes at once, whatever the link */
};

static double
cost_of(int level)
{
	return level <= 0  ? 0.75 :
		level < 3  ? 1 :
		level < 5  ? 1.2 :
		level < 9  ? 3 :
		level < 12 ? 4.6 :
			     9;
}

static double
gain_of(int level)
{
	return level == 0 ? 1 : level < 0 ? 0.30 : level < 3 ? 0.22 : level < 5 ? 0.19 : 0.16;
}

static int
run_model(struct sb_pack_level *l, const struct model *m, double mbytes)
{
	static double clock_ns;
	double sent = 0, wire_all = 0;

	for (clock_ns = 1e9; sent < mbytes * 1e6;) {
		double raw = (double)l->block_size;
		double wire = m->incompressible ? raw : raw * gain_of(l->level);
		double work = l->level ? raw / m->speed1 * 1e3 * cost_of(l->level) : 0;
		double out = wire / m->link * 1e3;
		double pace;
		struct sb_pack_sample s = { .raw = (uint64_t)raw,
			.wire = (uint64_t)wire,
			.work_ns = (uint64_t)work,
			.idle = m->idle > 0 ? m->idle : -1 };

		if (m->incompressible)
			work *= 0.1;
		if (wire_all < m->buffer)
			out = wire / 5;
		pace = raw / m->source * 1e3;
		if (pace < work / l->jobs)
			pace = work / l->jobs;
		if (pace < out)
			pace = out;
		s.work_ns = s.cpu_ns = (uint64_t)work;
		s.begin_ns = (uint64_t)(clock_ns + pace - out);
		s.end_ns = (uint64_t)(clock_ns + pace);
		sb_pack_level_note(l, &s);
		clock_ns += pace;
		sent += raw;
		wire_all += wire;
	}
	return l->level;
}

static void
fixed_levels_stay(void **state)
{
	struct sb_pack_level l;
	struct model slow = { .link = 1, .source = 1000, .speed1 = 250 };

	(void)state;
	for (int level = 0; level <= 19; level++) {
		sb_pack_level_init(&l, level, 0, 2);
		assert_int_equal(l.level, level);
		assert_in_range(l.block_size, 256 << 10, SB_PACK_BLOCK_MAX);
		assert_int_equal(run_model(&l, &slow, 20), level);
	}
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 12345, 2);
	(void)run_model(&l, &slow, 20);
	assert_int_equal(l.block_size, 12345);
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 100u << 20, 2);
	assert_int_equal(l.block_size, SB_PACK_BLOCK_MAX);
}

static void
fast_link_ends_up_stored(void **state)
{
	struct sb_pack_level l;
	struct model pipe = { .link = 2500, .source = 1000, .speed1 = 250 };
	struct model slow_source = { .link = 100, .source = 30, .speed1 = 250 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	assert_int_not_equal(l.level, 0);
	assert_int_equal(run_model(&l, &pipe, 100), 0);
	assert_int_equal(run_model(&l, &pipe, 1000), 0);
	/* The source is slower than the link: nothing is gained by compression. */
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	assert_int_equal(run_model(&l, &slow_source, 200), 0);
}

static void
sealed_stream_is_never_stored(void **state)
{
	struct sb_pack_level l;
	struct model loopback = { .link = 400, .source = 100, .speed1 = 250 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	l.sealed = true;
	for (int i = 0; i < 40; i++) {
		assert_int_not_equal(run_model(&l, &loopback, 10), 0);
		assert_false(sb_pack_level_link_bound(&l));
	}
}

static void
slow_link_climbs_as_far_as_processors_allow(void **state)
{
	struct sb_pack_level l;
	struct model dsl = { .link = 2, .source = 1000, .speed1 = 250 };
	struct model gigabit = { .link = 110, .source = 1000, .speed1 = 250 };
	int level;

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	assert_int_equal(run_model(&l, &dsl, 200), 12);
	assert_true(l.block_size >= 1 << 20);
	assert_true(sb_pack_level_link_bound(&l));
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	level = run_model(&l, &gigabit, 500);
	assert_in_range(level, 1, 3);
	/* and it does not swing */
	for (int i = 0; i < 50; i++)
		assert_int_equal(run_model(&l, &gigabit, 20), level);
}

static void
small_one_takes_no_large_blocks(void **state)
{
	struct sb_pack_level l;
	struct model dsl = { .link = 2, .source = 1000, .speed1 = 250 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	l.small = true;
	assert_int_equal(run_model(&l, &dsl, 200), 3);
	assert_int_equal(l.block_size, 256u << 10);
}

static void
busy_machine_does_not_climb(void **state)
{
	struct sb_pack_level l;
	struct model busy = { .link = 20, .source = 1000, .speed1 = 250, .idle = 0.01 };
	struct model free = { .link = 20, .source = 1000, .speed1 = 250, .idle = 1.5 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	assert_int_equal(run_model(&l, &busy, 200), 1);
	assert_true(run_model(&l, &free, 200) > 3);
	assert_int_equal(run_model(&l, &busy, 200), 1);
}

static void
buffers_below_do_not_fool_it(void **state)
{
	struct sb_pack_level l;
	struct model dsl = { .link = 2, .source = 1000, .speed1 = 250, .buffer = 4e6 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	for (int i = 0; i < 40; i++)
		assert_int_not_equal(run_model(&l, &dsl, 1), 0);
}

static void
follows_a_link_that_changes(void **state)
{
	struct sb_pack_level l;
	struct model fast = { .link = 2500, .source = 1000, .speed1 = 250 };
	struct model slow = { .link = 5, .source = 1000, .speed1 = 250 };

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	assert_int_equal(run_model(&l, &fast, 200), 0);
	assert_true(run_model(&l, &slow, 200) >= 5);
	assert_int_equal(run_model(&l, &fast, 500), 0);
}

static void
incompressible_data_changes_nothing(void **state)
{
	struct sb_pack_level l;
	struct model m = { .link = 5, .source = 1000, .speed1 = 250, .incompressible = true };
	int first;

	(void)state;
	sb_pack_level_init(&l, SB_PACK_LEVEL_AUTO, 0, 2);
	first = l.level;
	assert_int_equal(run_model(&l, &m, 200), first);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_levels_stay),
		cmocka_unit_test(fast_link_ends_up_stored),
		cmocka_unit_test(sealed_stream_is_never_stored),
		cmocka_unit_test(slow_link_climbs_as_far_as_processors_allow),
		cmocka_unit_test(small_one_takes_no_large_blocks),
		cmocka_unit_test(busy_machine_does_not_climb),
		cmocka_unit_test(buffers_below_do_not_fool_it),
		cmocka_unit_test(follows_a_link_that_changes),
		cmocka_unit_test(incompressible_data_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
