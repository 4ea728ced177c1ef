/* SPDX-License-Identifier: MIT */
/* What a front end knows of a fleet, on a real etcd. */
#include "config.h"

#include <tests/lib/unit.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fleet/fleet-view.h>
#include <tests/lib/etcd.h>

#define PREFIX "/sbfleet/test/"

struct rig {
	struct test_etcd cluster;
	struct sb_etcd *e;
	struct sb_fleet_view *v;
};

static int
set_up(void **state)
{
	struct rig *g = calloc(1, sizeof *g);
	struct sb_etcd_opts o = SB_ETCD_OPTS_INIT;
	struct sb_fleet_view_opts vo = SB_FLEET_VIEW_OPTS_INIT;
	struct sb_error err = { 0 };
	char why[256];
	bool skip;

	*state = g;
	if (!test_etcd_start(&g->cluster, 1, NULL, &skip, why, sizeof why)) {
		print_message("# skip: %s\n", why);
		return skip ? 0 : -1;
	}
	o.endpoints = g->cluster.endpoint;
	o.n_endpoints = g->cluster.n;
	o.call_ms = 2000;
	g->e = sb_etcd_new(&o, &err);
	vo.etcd = g->e;
	vo.prefix = PREFIX;
	vo.relist_ms = 1000;
	vo.quiet_ms = 300;
	g->v = g->e ? sb_fleet_view_new(&vo, &err) : NULL;
	return g->v ? 0 : -1;
}

static int
tear_down(void **state)
{
	struct rig *g = *state;

	sb_fleet_view_free(g->v);
	sb_etcd_free(g->e);
	test_etcd_stop(&g->cluster);
	free(g);
	return 0;
}

static struct rig *
rig(void **state)
{
	struct rig *g = *state;
	struct sb_error err = { 0 };

	if (!g->v)
		skip_because("etcd does not run here");
	assert_ok(sb_fleet_view_wait(g->v, NULL, sb_deadline_in(30000), &err), &err);
	return g;
}

static int64_t
put(struct rig *g, const char *key, const char *value)
{
	char whole[128];
	struct sb_etcd_do change = { .key = whole,
		.value = value,
		.len = value ? strlen(value) : 0 };
	struct sb_error err = { 0 };
	int64_t rev = 0;

	(void)snprintf(whole, sizeof whole, PREFIX "%s", key);
	assert_ok(sb_etcd_txn(g->e, NULL, 0, &change, 1, &rev, NULL, &err), &err);
	return rev;
}

/* Until the view knows the session as of that revision; 0: until it does not know it. */
static void
until_box(struct rig *g, const char *id, int64_t rev)
{
	struct sb_fleet_at at;

	for (int i = 0; i < 6000; i++) {
		bool known = sb_fleet_view_box(g->v, id, &at);

		if (rev ? known && at.rev >= rev : !known)
			return;
		(void)poll(NULL, 0, 5);
	}
	fail_msg("%s is not known as of %lld", id, (long long)rev);
}

static int
pick(struct rig *g, const char *template, const struct sb_strlist *except, char *node)
{
	struct sb_fleet_pick_opts o = SB_FLEET_PICK_OPTS_INIT;
	struct sb_fleet_want want = { .template = template, .except = except };
	struct sb_error err = { 0 };
	char *address = NULL;
	int r = sb_fleet_view_pick(g->v, &want, &o, node, &address, &err);

	if (r == 0)
		assert_string_equal(address, "http://127.0.0.1:1");
	free(address);
	return r;
}

static void
told(struct rig *g, const char *id, const char *value, int64_t rev)
{
	sb_fleet_view_told(g->v, id, value, strlen(value), rev);
}

#define READY "{\"address\":\"http://127.0.0.1:1\",\"state\":\"ready\",\"templates\":[\"base\"]}"
#define LOAD "{\"healthy\":true,\"sessions\":0,\"max_sessions\":2}"

static void
nodes_take_sessions_while_they_live(void **state)
{
	struct rig *g = rig(state);
	char node[SB_FLEET_NAME_MAX + 1] = "";
	sb_auto(sb_strlist) struct sb_strlist tried = { 0 };
	struct sb_fleet_view_counts c;
	int64_t last;

	assert_int_equal(pick(g, NULL, NULL, node), SB_E_UNAVAILABLE);
	(void)put(g, "node/n1", READY);
	(void)put(g, "node/n2", READY);
	last = put(g, "box/mark", "{\"node\":\"n9\",\"state\":\"here\"}");
	until_box(g, "mark", last);
	/* On record, but nobody has seen them alive. */
	assert_int_equal(pick(g, NULL, NULL, node), SB_E_UNAVAILABLE);
	(void)put(g, "load/n1", LOAD);
	last = put(g, "box/mark", "{\"node\":\"n9\",\"state\":\"here\"}");
	until_box(g, "mark", last);
	assert_int_equal(pick(g, "base", NULL, node), 0);
	assert_string_equal(node, "n1");
	assert_int_equal(pick(g, "other", NULL, node), SB_E_BASE_NOT_FOUND);
	sb_strlist_add(&tried, "n1");
	assert_int_equal(pick(g, NULL, &tried, node), SB_E_UNAVAILABLE);
	/* What was told counts before the watch tells it. */
	told(g, "s1", "{\"node\":\"n1\",\"state\":\"creating\"}", last + 1000);
	told(g, "s2", "{\"node\":\"n1\",\"state\":\"creating\"}", last + 1001);
	assert_int_equal(pick(g, NULL, NULL, node), SB_E_MAX_SESSIONS);
	sb_fleet_view_told(g->v, "s1", NULL, 0, last + 1002);
	sb_fleet_view_told(g->v, "s2", NULL, 0, last + 1003);
	assert_int_equal(pick(g, NULL, NULL, node), 0);
	/* Its lease ends. */
	(void)put(g, "load/n1", NULL);
	last = put(g, "box/mark", "{\"node\":\"n9\",\"state\":\"here\"}");
	until_box(g, "mark", last);
	assert_int_equal(pick(g, NULL, NULL, node), SB_E_UNAVAILABLE);
	sb_fleet_view_count(g->v, &c);
	assert_int_equal(c.nodes, 2);
	assert_int_equal(c.ready, 2);
	assert_int_equal(c.alive, 0);
	assert_int_equal(c.boxes, 1);
	assert_int_equal(c.damaged, 0);
	assert_true(c.online);
}

static void
sessions_are_found_where_they_are(void **state)
{
	struct rig *g = rig(state);
	struct sb_fleet_at at;
	int64_t rev = put(g, "box/a", "{\"node\":\"n1\",\"state\":\"here\",\"tenant\":\"t\"}");

	until_box(g, "a", rev);
	assert_true(sb_fleet_view_box(g->v, "a", &at));
	assert_string_equal(at.node, "n1");
	assert_int_equal(at.state, SB_FLEET_HERE);
	assert_int_equal(at.rev, rev);
	assert_int_equal(sb_fleet_view_tenant(g->v, "t"), 1);
	rev = put(g, "box/a",
		"{\"node\":\"n1\",\"to\":\"n2\",\"state\":\"moving\",\"tenant\":\"t\"}");
	until_box(g, "a", rev);
	assert_true(sb_fleet_view_box(g->v, "a", &at));
	assert_string_equal(at.to, "n2");
	/* Older news change nothing. */
	sb_fleet_view_told(g->v, "a", NULL, 0, rev - 1);
	assert_true(sb_fleet_view_box(g->v, "a", &at));
	(void)put(g, "box/a", NULL);
	until_box(g, "a", 0);
	assert_int_equal(sb_fleet_view_tenant(g->v, "t"), 0);
}

static void
what_the_watch_missed_the_next_list_finds(void **state)
{
	struct rig *g = rig(state);
	int64_t rev = put(g, "box/kept", "{\"node\":\"n1\",\"state\":\"here\"}");

	until_box(g, "kept", rev);
	/* It believes in a session that nobody has put on record. */
	told(g, "ghost", "{\"node\":\"n1\",\"state\":\"here\"}", 1);
	until_box(g, "ghost", 1);
	until_box(g, "ghost", 0);
	until_box(g, "kept", rev);
}

static void
without_etcd_it_goes_on_with_what_it_knows(void **state)
{
	struct rig *g = rig(state);
	struct sb_fleet_view_counts c = { .online = true };
	struct sb_fleet_at at;
	int64_t rev = put(g, "box/stays", "{\"node\":\"n1\",\"state\":\"here\"}");

	until_box(g, "stays", rev);
	assert_true(test_etcd_do(&g->cluster, "kill", 0));
	for (int i = 0; i < 12000 && c.online; i++) {
		sb_fleet_view_count(g->v, &c);
		(void)poll(NULL, 0, 5);
	}
	assert_false(c.online);
	assert_true(sb_fleet_view_box(g->v, "stays", &at));
	assert_true(test_etcd_do(&g->cluster, "revive", 0));
	for (int i = 0; i < 12000 && !c.online; i++) {
		sb_fleet_view_count(g->v, &c);
		(void)poll(NULL, 0, 5);
	}
	assert_true(c.online);
	(void)put(g, "box/stays", NULL);
	until_box(g, "stays", 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_take_sessions_while_they_live),
		cmocka_unit_test(sessions_are_found_where_they_are),
		cmocka_unit_test(what_the_watch_missed_the_next_list_finds),
		cmocka_unit_test(without_etcd_it_goes_on_with_what_it_knows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
