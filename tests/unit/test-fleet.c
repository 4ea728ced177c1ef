/* SPDX-License-Identifier: MIT */
/* Records of a fleet, the table of its sessions, and which node gets the next one. */
#include "config.h"

#include <tests/lib/unit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fleet/fleet-pick.h>
#include <fleet/fleet-record.h>
#include <fleet/fleet-table.h>

static void
a_node_is_read_as_it_was_written(void **state)
{
	sb_auto(sb_fleet_node) struct sb_fleet_node n = { .id = "n1",
		.address = strdup("https://10.0.0.1:9100"),
		.e2b = strdup("http://10.0.0.1:9200"),
		.instance = strdup("i-0123"),
		.state = SB_FLEET_DRAINING,
		.why = strdup("operator"),
		.cordoned = true,
		.max_sessions = 12 };
	sb_auto(sb_fleet_node) struct sb_fleet_node back = { 0 };
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error err = { 0 };

	(void)state;
	sb_buf_init(&out, 4096);
	assert_ok(sb_strmap_set(&n.labels, "zone", "a", &err), &err);
	sb_strlist_add(&n.templates, "base");
	sb_strlist_add(&n.templates, "python");
	assert_ok(sb_fleet_node_write(&n, &out, &err), &err);
	assert_ok(sb_fleet_node_read(&back, "n1", out.data, out.len, &err), &err);
	assert_string_equal(back.id, "n1");
	assert_string_equal(back.address, n.address);
	assert_string_equal(back.e2b, n.e2b);
	assert_null(back.daytona);
	assert_string_equal(back.instance, n.instance);
	assert_int_equal(back.state, SB_FLEET_DRAINING);
	assert_string_equal(back.why, "operator");
	assert_true(back.cordoned);
	assert_int_equal(back.max_sessions, 12);
	assert_string_equal(sb_strmap_get(&back.labels, "zone"), "a");
	assert_int_equal(back.templates.n, 2);
	assert_string_equal(back.templates.v[1], "python");
}

static void
a_session_is_read_as_it_was_written(void **state)
{
	sb_auto(sb_fleet_box) struct sb_fleet_box b = { .node = "n1",
		.to = "n2",
		.state = SB_FLEET_MOVING,
		.tenant = strdup("who"),
		.created_ms = 1234567890123 };
	sb_auto(sb_fleet_box) struct sb_fleet_box back = { 0 };
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error err = { 0 };

	(void)state;
	sb_buf_init(&out, 4096);
	assert_ok(sb_fleet_box_write(&b, &out, &err), &err);
	assert_ok(sb_fleet_box_read(&back, out.data, out.len, &err), &err);
	assert_string_equal(back.node, "n1");
	assert_string_equal(back.to, "n2");
	assert_int_equal(back.state, SB_FLEET_MOVING);
	assert_string_equal(back.tenant, "who");
	assert_null(back.template);
	assert_true(back.created_ms == 1234567890123);
}

static void
damaged_records_are_refused(void **state)
{
	static const char *const boxes[] = {
		"",
		"[]",
		"{}",
		"{\"node\":\"n1\"}",
		"{\"node\":\"N1\",\"state\":\"here\"}",
		"{\"node\":\"../n\",\"state\":\"here\"}",
		"{\"node\":\"n1\",\"state\":\"gone\"}",
		"{\"node\":\"n1\",\"state\":\"moving\"}",
		"{\"node\":\"n1\",\"state\":\"here\",\"to\":\"n2\"}",
		"{\"node\":\"n1\",\"state\":\"here\",\"tenant\":7}",
		"{\"node\":\"n1\",\"state\":\"here\",\"tenant\":\"a\\u0000b\"}",
		"{\"node\":\"n1\",\"state\":\"here\",\"labels\":{\"a\":1}}",
		"{\"node\":\"n1\",\"state\":\"here\",\"created_ms\":-1}",
		"{\"node\":\"n1\",\"state\":\"here\"",
	};
	static const char *const nodes[] = {
		"{\"address\":\"x\"}",
		"{\"state\":\"ready\"}",
		"{\"address\":\"x\",\"state\":\"ready\",\"cordoned\":1}",
		"{\"address\":\"x\",\"state\":\"ready\",\"max_sessions\":4294967296}",
		"{\"address\":\"x\",\"state\":\"ready\",\"templates\":[1]}",
		"{\"address\":\"x\",\"state\":\"ready\",\"templates\":{}}",
	};
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
		struct sb_fleet_box b;

		if (sb_fleet_box_read(&b, boxes[i], strlen(boxes[i]), &err) != SB_E_CORRUPT)
			fail_msg("taken: %s", boxes[i]);
	}
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct sb_fleet_node n;

		if (sb_fleet_node_read(&n, "n1", nodes[i], strlen(nodes[i]), &err) != SB_E_CORRUPT)
			fail_msg("taken: %s", nodes[i]);
	}
}

static void
the_table_keeps_what_it_was_given(void **state)
{
	enum { N = 20000 };
	struct sb_fleet_table t;
	struct sb_error err = { 0 };
	static bool there[N];
	unsigned seed = 7;
	size_t n = 0;
	char id[32];

	(void)state;
	assert_ok(sb_fleet_table_init(&t, &err), &err);
	for (int i = 0; i < 6 * N; i++) {
		unsigned k = (seed = seed * 1103515245 + 12345) / 65536 % N;
		struct sb_fleet_slot *s;

		(void)snprintf(id, sizeof id, "session-%u", k);
		s = sb_fleet_table_find(&t, id);
		assert_int_equal(s != NULL, there[k]);
		if (s && i % 3 == 0) {
			assert_int_equal(s->node, k);
			sb_fleet_table_remove(&t, s);
		} else {
			s = sb_fleet_table_put(&t, id);
			assert_int_equal(s->node, there[k] ? k : 0);
			s->node = k;
		}
		n += (s && i % 3 == 0 && there[k]) ? (size_t)-1 : !there[k];
		there[k] = !(there[k] && i % 3 == 0);
		assert_int_equal(t.n, n);
	}
	for (unsigned k = 0; k < N; k++) {
		(void)snprintf(id, sizeof id, "session-%u", k);
		assert_int_equal(sb_fleet_table_find(&t, id) != NULL, there[k]);
	}
	sb_fleet_table_free(&t);
}

static void
the_worst_share_decides(void **state)
{
	struct sb_fleet_pick_opts o = SB_FLEET_PICK_OPTS_INIT;
	struct sb_fleet_pick_load empty = { .max_sessions = 10, .mem = 100, .disk = 100 };
	struct sb_fleet_pick_load sessions = { .sessions = 5,
		.max_sessions = 10,
		.mem = 100,
		.disk = 100 };
	struct sb_fleet_pick_load mem = { .max_sessions = 10,
		.mem = 100,
		.mem_used = 80,
		.disk = 100 };
	struct sb_fleet_pick_load both = { .sessions = 5,
		.max_sessions = 10,
		.mem = 100,
		.mem_used = 80,
		.disk = 100 };
	struct sb_fleet_pick_load full = { .sessions = 10, .max_sessions = 10 };
	struct sb_fleet_pick_load no_disk = { .max_sessions = 10, .disk = 100, .disk_used = 100 };

	(void)state;
	assert_true(sb_fleet_pick_score(&empty, &o) < sb_fleet_pick_score(&sessions, &o));
	assert_true(sb_fleet_pick_score(&sessions, &o) < sb_fleet_pick_score(&mem, &o));
	assert_true(sb_fleet_pick_score(&mem, &o) < sb_fleet_pick_score(&both, &o));
	assert_true(sb_fleet_pick_score(&both, &o) < 1);
	assert_true(sb_fleet_pick_score(&full, &o) >= 1);
	assert_true(sb_fleet_pick_score(&no_disk, &o) >= 1);
	o.headroom = 0.5;
	assert_true(sb_fleet_pick_score(&sessions, &o) >= 1);
	assert_true(sb_fleet_pick_score(&empty, &o) < 1);
}

/* Nodes as they are, and as a front end saw them a while ago. */
struct world {
	size_t n;
	uint32_t now[1000], seen[1000], max;
	bool may[1000];
	uint64_t state;
};

static uint64_t
chance(void *arg)
{
	struct world *w = arg;

	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return w->state;
}

static bool
load(size_t i, struct sb_fleet_pick_load *out, void *arg)
{
	struct world *w = arg;

	out->sessions = w->seen[i];
	out->max_sessions = w->max;
	return w->may[i];
}

static void
only_nodes_that_may_are_taken(void **state)
{
	struct sb_fleet_pick_opts o = SB_FLEET_PICK_OPTS_INIT;
	struct world w = { .n = 1000, .max = 10, .state = 88172645463325252 };
	bool full;

	(void)state;
	assert_int_equal(sb_fleet_pick(0, load, chance, &w, &o, &full), -1);
	assert_false(full);
	assert_int_equal(sb_fleet_pick(w.n, load, chance, &w, &o, &full), -1);
	assert_false(full);
	/* One of a thousand is found. */
	w.may[417] = true;
	assert_int_equal(sb_fleet_pick(w.n, load, chance, &w, &o, &full), 417);
	w.seen[417] = 10;
	assert_int_equal(sb_fleet_pick(w.n, load, chance, &w, &o, &full), -1);
	assert_true(full);
	w.may[3] = true;
	assert_int_equal(sb_fleet_pick(w.n, load, chance, &w, &o, &full), 3);
	assert_false(full);
}

/* The coefficient of variation of the load when `each` sessions a node were placed. */
static double
spread(unsigned k, unsigned each, unsigned stale)
{
	struct sb_fleet_pick_opts o = SB_FLEET_PICK_OPTS_INIT;
	static struct world w;
	double sum = 0, squares = 0;
	bool full;

	memset(&w, 0, sizeof w);
	w.n = 1000;
	w.max = 4 * each;
	w.state = 88172645463325252;
	for (size_t i = 0; i < w.n; i++)
		w.may[i] = true;
	o.k = k;
	for (unsigned i = 0; i < each * w.n; i++) {
		long at;

		if (i % stale == 0)
			memcpy(w.seen, w.now, sizeof w.now);
		at = sb_fleet_pick(w.n, load, chance, &w, &o, &full);
		assert_true(at >= 0);
		w.now[at]++;
	}
	for (size_t i = 0; i < w.n; i++) {
		sum += w.now[i];
		squares += (double)w.now[i] * w.now[i];
	}
	return sqrt(squares / (double)w.n - sum / (double)w.n * sum / (double)w.n) /
		(sum / (double)w.n);
}

static void
a_few_by_chance_spread_well_also_with_an_old_view(void **state)
{
	/* 300 a second on a view of five seconds ago. */
	double random = spread(1, 100, 1500), three = spread(3, 100, 1500);

	(void)state;
	if (three > random / 2)
		fail_msg("variation %.3f with three, %.3f with one", three, random);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_read_as_it_was_written),
		cmocka_unit_test(a_session_is_read_as_it_was_written),
		cmocka_unit_test(damaged_records_are_refused),
		cmocka_unit_test(the_table_keeps_what_it_was_given),
		cmocka_unit_test(the_worst_share_decides),
		cmocka_unit_test(only_nodes_that_may_are_taken),
		cmocka_unit_test(a_few_by_chance_spread_well_also_with_an_old_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
