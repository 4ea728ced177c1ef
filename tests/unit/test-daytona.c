/* SPDX-License-Identifier: MIT */
/* What the intervals of a sandbox of the Daytona API ask for, and when. */
#include "config.h"

#include <tests/lib/unit.h>

#include <compat/daytona/daytona-priv.h>

#define M SB_DAYTONA_MINUTE
#define NOW (1000000 * M)
#define FAR (2000000 * M)

/* Made 100 minutes ago, stopped 10 minutes ago, nothing else set. */
static json_t *
record(int64_t stop, int64_t pause, int64_t archive, int64_t del, int64_t ttl)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "createdNs",
		(json_int_t)(NOW - 100 * M), "stoppedNs", (json_int_t)(NOW - 10 * M),
		"autoStopInterval", (json_int_t)stop, "autoPauseInterval", (json_int_t)pause,
		"autoArchiveInterval", (json_int_t)archive, "autoDeleteInterval", (json_int_t)del,
		"ttlMinutes", (json_int_t)ttl);
}

/* Active 5 minutes ago. `wait`: minutes until it is to be looked at again; 0: not before. */
static void
expect(json_t *rec, const char *state, enum sb_daytona_due want, int64_t wait)
{
	int64_t next = FAR;

	assert_int_equal(sb_daytona_keeper_due(rec, state, NOW - 5 * M, NOW, &next), want);
	assert_int_equal(next, wait ? NOW + wait * M : FAR);
	json_decref(rec);
}

static void
idle_ones_stop_or_pause(void **state)
{
	(void)state;
	expect(record(5, 0, 0, -1, 0), "started", SB_DAYTONA_DUE_STOP, 0);
	expect(record(6, 0, 0, -1, 0), "started", SB_DAYTONA_DUE_NOTHING, 1);
	expect(record(0, 0, 0, -1, 0), "started", SB_DAYTONA_DUE_NOTHING, 0);
	expect(record(0, 5, 0, -1, 0), "started", SB_DAYTONA_DUE_PAUSE, 0);
	expect(record(5, 0, 0, -1, 0), "paused", SB_DAYTONA_DUE_NOTHING, 0);
	expect(record(5, 0, 0, -1, 0), "stopping", SB_DAYTONA_DUE_NOTHING, 0);
}

static void
stopped_ones_are_archived_and_deleted(void **state)
{
	(void)state;
	expect(record(1, 0, 10, -1, 0), "stopped", SB_DAYTONA_DUE_ARCHIVE, 0);
	expect(record(1, 0, 12, -1, 0), "stopped", SB_DAYTONA_DUE_NOTHING, 2);
	/* 0 is the longest there is. */
	expect(record(1, 0, 0, -1, 0), "stopped", SB_DAYTONA_DUE_NOTHING, 30 * 24 * 60 - 10);
	expect(record(1, 0, 10, 10, 0), "stopped", SB_DAYTONA_DUE_DELETE, 0);
	expect(record(1, 0, 50, 0, 0), "stopped", SB_DAYTONA_DUE_DELETE, 0);
	expect(record(1, 0, 10, 11, 0), "archived", SB_DAYTONA_DUE_NOTHING, 1);
	expect(record(1, 0, 10, 10, 0), "archived", SB_DAYTONA_DUE_DELETE, 0);
	expect(record(0, 0, 10, 0, 0), "started", SB_DAYTONA_DUE_NOTHING, 0);
}

static void
a_life_ends_in_every_state(void **state)
{
	static const char *const states[] = { "started", "stopped", "paused", "archived", "error" };

	(void)state;
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		expect(record(0, 0, 1000000, -1, 100), states[i], SB_DAYTONA_DUE_DELETE, 0);
		expect(record(0, 0, 1000000, -1, 101), states[i], SB_DAYTONA_DUE_NOTHING, 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_ones_stop_or_pause),
		cmocka_unit_test(stopped_ones_are_archived_and_deleted),
		cmocka_unit_test(a_life_ends_in_every_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
