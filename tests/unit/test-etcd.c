/* SPDX-License-Identifier: MIT */
/* The client of etcd against a real cluster of three, whose members come and go. */
#include "config.h"

#include <tests/lib/unit.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fleet/etcd/etcd.h>
#include <tests/lib/etcd.h>

struct rig {
	struct test_etcd cluster;
	struct sb_etcd *e;
	char why[256];
	bool skip;
};

static struct sb_etcd *
client(const struct test_etcd *t)
{
	struct sb_etcd_opts o = SB_ETCD_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_etcd *e;

	o.endpoints = t->endpoint;
	o.n_endpoints = t->n;
	o.call_ms = 3000;
	e = sb_etcd_new(&o, &err);
	if (!e)
		fail_msg("%s", err.msg);
	return e;
}

static int
set_up(void **state)
{
	struct rig *g = calloc(1, sizeof *g);

	*state = g;
	if (test_etcd_start(&g->cluster, 3, NULL, &g->skip, g->why, sizeof g->why))
		g->e = client(&g->cluster);
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *g = *state;

	sb_etcd_free(g->e);
	test_etcd_stop(&g->cluster);
	free(g);
	return 0;
}

static struct rig *
rig(void **state)
{
	struct rig *g = *state;

	if (!g->e && g->skip)
		skip_because("%s", g->why);
	if (!g->e)
		fail_msg("etcd does not start: %s", g->why);
	return g;
}

/* Sets a key whatever it was. */
static int64_t
put(struct sb_etcd *e, const char *key, const char *value)
{
	struct sb_etcd_do change = { .key = key, .value = value, .len = strlen(value) };
	struct sb_error err = { 0 };
	int64_t rev = 0;

	assert_ok(sb_etcd_txn(e, NULL, 0, &change, 1, &rev, NULL, &err), &err);
	assert_true(rev > 0);
	return rev;
}

static void
a_value_comes_back_as_it_was(void **state)
{
	struct rig *g = rig(state);
	static const char odd[] = "a\0b\xff\n\"";
	struct sb_etcd_do change = { .key = "odd/\xc3\xa4 key", .value = odd, .len = sizeof odd };
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_etcd_kv kv;
	int64_t rev;

	sb_buf_init(&out, 4096);
	assert_fails(sb_etcd_get(g->e, "odd/none", &out, &kv, NULL, &err), SB_E_NOTFOUND, &err);
	assert_int_equal(sb_etcd_txn(g->e, NULL, 0, &change, 1, &rev, NULL, &err), 1);
	assert_ok(sb_etcd_get(g->e, change.key, &out, &kv, NULL, &err), &err);
	assert_int_equal(out.len, sizeof odd);
	assert_memory_equal(out.data, odd, sizeof odd);
	assert_int_equal(kv.mod_rev, rev);
	assert_int_equal(kv.create_rev, rev);
	assert_int_equal(kv.version, 1);
	/* More than the caller has room for. */
	sb_buf_reset(&out);
	out.max = 4;
	assert_true(sb_etcd_get(g->e, change.key, &out, &kv, NULL, &err) < 0);
	/* An empty value is not a deletion. */
	change.value = "";
	change.len = 0;
	assert_int_equal(sb_etcd_txn(g->e, NULL, 0, &change, 1, NULL, NULL, &err), 1);
	sb_buf_reset(&out);
	assert_ok(sb_etcd_get(g->e, change.key, &out, &kv, NULL, &err), &err);
	assert_int_equal(out.len, 0);
	assert_int_equal(kv.version, 2);
	change.value = NULL;
	assert_int_equal(sb_etcd_txn(g->e, NULL, 0, &change, 1, NULL, NULL, &err), 1);
	assert_fails(sb_etcd_get(g->e, change.key, &out, &kv, NULL, &err), SB_E_NOTFOUND, &err);
}

static void
one_of_two_writers_wins(void **state)
{
	struct rig *g = rig(state);
	struct sb_error err = { 0 };
	struct sb_etcd_if none = { .key = "cas" };
	struct sb_etcd_do first = { .key = "cas", .value = "1", .len = 1 };
	struct sb_etcd_do second = { .key = "cas", .value = "2", .len = 1 };
	struct sb_etcd_if seen = { .key = "cas" };
	int64_t rev = 0, later = 0;

	assert_int_equal(sb_etcd_txn(g->e, &none, 1, &first, 1, &rev, NULL, &err), 1);
	assert_int_equal(sb_etcd_txn(g->e, &none, 1, &second, 1, &later, NULL, &err), 0);
	assert_int_equal(later, 0);
	seen.mod_rev = rev;
	assert_int_equal(sb_etcd_txn(g->e, &seen, 1, &second, 1, &later, NULL, &err), 1);
	assert_true(later > rev);
	assert_int_equal(sb_etcd_txn(g->e, &seen, 1, &first, 1, NULL, NULL, &err), 0);
}

struct listing {
	int n;
	char last[64];
	int after; /* calls until the callback fails; 0: it does not */
};

static int
count_one(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct listing *l = arg;

	assert_true(strcmp(kv->key, l->last) > 0);
	(void)snprintf(l->last, sizeof l->last, "%s", kv->key);
	l->n++;
	return l->n == l->after ? sb_fail(err, SB_E_FULL, "enough") : 0;
}

static void
a_list_has_all_pages_of_one_moment(void **state)
{
	struct rig *g = rig(state);
	struct sb_error err = { 0 };
	struct listing all = { 0 }, some = { .after = 1500 };
	int64_t n = 0, rev = 0, rev_put;

	for (int i = 0; i < 2500; i += 100) {
		struct sb_etcd_do many[100];
		char key[100][32];

		for (int k = 0; k < 100; k++) {
			(void)snprintf(key[k], sizeof key[k], "list/%05d", i + k);
			many[k] = (struct sb_etcd_do){ .key = key[k], .value = "x", .len = 1 };
		}
		assert_ok(sb_etcd_txn(g->e, NULL, 0, many, 100, NULL, NULL, &err), &err);
	}
	rev_put = put(g->e, "list0", "behind the prefix");
	assert_ok(sb_etcd_count(g->e, "list/", &n, NULL, &err), &err);
	assert_int_equal(n, 2500);
	assert_ok(sb_etcd_list(g->e, "list/", count_one, &all, &rev, NULL, &err), &err);
	assert_int_equal(all.n, 2500);
	assert_true(rev >= rev_put);
	assert_fails(sb_etcd_list(g->e, "list/", count_one, &some, &rev, NULL, &err), SB_E_FULL,
		&err);
	assert_int_equal(some.n, 1500);
}

static void
a_lease_takes_its_keys_along(void **state)
{
	struct rig *g = rig(state);
	struct sb_error err = { 0 };
	struct sb_etcd_do held = { .key = "leased", .value = "x", .len = 1 };
	int64_t id[2] = { 0, 4711 }, ttl[2] = { -1, -1 };

	assert_ok(sb_etcd_lease_grant(g->e, 60, &id[0], NULL, &err), &err);
	held.lease = id[0];
	assert_ok(sb_etcd_txn(g->e, NULL, 0, &held, 1, NULL, NULL, &err), &err);
	assert_ok(sb_etcd_lease_renew(g->e, id, 2, ttl, NULL, &err), &err);
	assert_int_equal(ttl[0], 60);
	assert_int_equal(ttl[1], 0); /* there never was such a lease */
	assert_ok(sb_etcd_lease_revoke(g->e, id[0], NULL, &err), &err);
	assert_ok(sb_etcd_lease_revoke(g->e, id[0], NULL, &err), &err);
	assert_fails(sb_etcd_get(g->e, "leased", NULL, NULL, NULL, &err), SB_E_NOTFOUND, &err);
	assert_ok(sb_etcd_lease_renew(g->e, id, 1, ttl, NULL, &err), &err);
	assert_int_equal(ttl[0], 0);
	assert_fails(sb_etcd_txn(g->e, NULL, 0, &held, 1, NULL, NULL, &err), SB_E_NOTFOUND, &err);
}

/* A watch on a thread of its own, and what it was told. */
struct told {
	struct rig *g;
	struct sb_cancel *cancel;
	pthread_t thread;
	int64_t from;
	_Atomic int n, deleted, lines;
	int64_t last;
	int r;
	struct sb_error err;
};

static int
on_change(bool deleted, const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct told *t = arg;
	int n = atomic_load(&t->n);

	(void)err;
	/* The keys are w/0, w/1 and so on, each once and in order. */
	if (!deleted && strtol(kv->key + 2, NULL, 10) != n)
		return sb_fail(err, SB_E_CORRUPT, "%s came as number %d", kv->key, n);
	if (kv->mod_rev <= t->last)
		return sb_fail(err, SB_E_CORRUPT, "revision %lld after %lld",
			(long long)kv->mod_rev, (long long)t->last);
	t->last = kv->mod_rev;
	atomic_fetch_add(deleted ? &t->deleted : &t->n, 1);
	return 0;
}

static int
on_line(void *arg, struct sb_error *err)
{
	struct told *t = arg;

	(void)err;
	atomic_fetch_add(&t->lines, 1);
	return 0;
}

static void *
watch_main(void *arg)
{
	struct told *t = arg;
	struct sb_etcd_watch w = SB_ETCD_WATCH_INIT;

	w.prefix = "w/";
	w.from = t->from;
	w.on_change = on_change;
	w.on_line = on_line;
	w.arg = t;
	w.quiet_ms = 1000;
	t->r = sb_etcd_watch(t->g->e, &w, t->cancel, &t->err);
	return NULL;
}

static void
watch_begin(struct told *t, struct rig *g, int64_t from)
{
	memset(t, 0, sizeof *t);
	t->g = g;
	t->from = from;
	t->cancel = sb_cancel_new(NULL);
	assert_int_equal(pthread_create(&t->thread, NULL, watch_main, t), 0);
}

static void
until(struct told *t, _Atomic int *counter, int at_least)
{
	for (int i = 0; i < 12000 && atomic_load(counter) < at_least; i++)
		(void)poll(NULL, 0, 5);
	if (atomic_load(counter) < at_least)
		fail_msg("%d instead of %d: %s", atomic_load(counter), at_least, t->err.msg);
}

static void
watch_end(struct told *t)
{
	sb_cancel_request(t->cancel);
	assert_int_equal(pthread_join(t->thread, NULL), 0);
	sb_cancel_free(t->cancel);
	assert_fails(t->r, SB_E_CANCELED, &t->err);
}

/* Writes the next keys; again when an answer was lost, which comparing makes harmless. */
static void
write_keys(struct sb_etcd *e, int from, int to)
{
	for (int i = from; i < to; i++) {
		char key[32];
		struct sb_etcd_if none = { .key = key };
		struct sb_etcd_do change = { .key = key, .value = "x", .len = 1 };
		struct sb_error err = { 0 };
		sb_deadline end = sb_deadline_in(60000);
		int r;

		(void)snprintf(key, sizeof key, "w/%d", i);
		while ((r = sb_etcd_txn(e, &none, 1, &change, 1, NULL, NULL, &err)) < 0) {
			if (r != SB_E_UNAVAILABLE || sb_deadline_passed(end))
				fail_msg("%s: %s", key, err.msg);
			(void)poll(NULL, 0, 20);
		}
	}
}

static void
a_watch_tells_each_change_once_whatever_members_do(void **state)
{
	struct rig *g = rig(state);
	struct told t;
	struct sb_etcd_do gone = { .key = "w/0" };
	struct sb_error err = { 0 };
	int n = 0;

	watch_begin(&t, g, put(g->e, "start", "x"));
	until(&t, &t.lines, 1);
	write_keys(g->e, n, n + 20);
	n += 20;
	until(&t, &t.n, n);
	/* Each of them in turn: killed at once, then one that stops to answer. */
	for (int i = 0; i < 3; i++) {
		assert_true(test_etcd_do(&g->cluster, "kill", i));
		write_keys(g->e, n, n + 20);
		n += 20;
		until(&t, &t.n, n);
		assert_true(test_etcd_do(&g->cluster, "revive", i));
		/* Until it is one of three again, the next must not go. */
		for (int k = 0; k < 1200; k++) {
			struct sb_etcd_status st;

			if (sb_etcd_status(g->e, &st, NULL, &err) == 0 && st.reached == 3)
				break;
			(void)poll(NULL, 0, 50);
		}
	}
	assert_true(test_etcd_do(&g->cluster, "freeze", 1));
	write_keys(g->e, n, n + 20);
	n += 20;
	until(&t, &t.n, n);
	assert_true(test_etcd_do(&g->cluster, "thaw", 1));
	assert_ok(sb_etcd_txn(g->e, NULL, 0, &gone, 1, NULL, NULL, &err), &err);
	until(&t, &t.deleted, 1);
	watch_end(&t);
	assert_int_equal(atomic_load(&t.n), n);
}

static void
what_was_compacted_must_be_listed_again(void **state)
{
	struct rig *g = rig(state);
	struct told t;
	int64_t from = put(g->e, "compact", "1"), to;
	struct sb_error err = { 0 };

	(void)put(g->e, "compact", "2");
	to = put(g->e, "compact", "3");
	assert_ok(sb_etcd_compact(g->e, to, NULL, &err), &err);
	assert_ok(sb_etcd_compact(g->e, to, NULL, &err), &err);
	watch_begin(&t, g, from);
	assert_int_equal(pthread_join(t.thread, NULL), 0);
	sb_cancel_free(t.cancel);
	assert_fails(t.r, SB_E_CHANGED, &t.err);
}

static void
without_a_majority_calls_fail_and_none_is_lost(void **state)
{
	struct rig *g = rig(state);
	struct sb_etcd_do change = { .key = "minority", .value = "x", .len = 1 };
	struct sb_error err = { 0 };
	struct sb_etcd_status st;
	int r;

	assert_true(test_etcd_do(&g->cluster, "kill", 0));
	assert_true(test_etcd_do(&g->cluster, "kill", 1));
	assert_fails(sb_etcd_get(g->e, "cas", NULL, NULL, NULL, &err), SB_E_UNAVAILABLE, &err);
	assert_fails(sb_etcd_txn(g->e, NULL, 0, &change, 1, NULL, NULL, &err), SB_E_UNAVAILABLE,
		&err);
	assert_ok(sb_etcd_status(g->e, &st, NULL, &err), &err);
	assert_int_equal(st.members, 3);
	assert_int_equal(st.reached, 1);
	assert_true(test_etcd_do(&g->cluster, "revive", 0));
	assert_true(test_etcd_do(&g->cluster, "revive", 1));
	for (int i = 0; i < 600; i++) {
		r = sb_etcd_get(g->e, "cas", NULL, NULL, NULL, &err);
		if (r != SB_E_UNAVAILABLE)
			break;
		(void)poll(NULL, 0, 50);
	}
	assert_ok(r, &err);
}

static void
a_full_cluster_says_so(void **state)
{
	static const char *const args[] = { "--quota-backend-bytes", "200000", NULL };
	struct rig *g = rig(state);
	struct test_etcd small;
	struct sb_etcd *e;
	struct sb_etcd_status st;
	struct sb_error err = { 0 };
	static char big[100000];
	char why[256];
	bool skip;
	int r = 0;

	(void)g;
	if (!test_etcd_start(&small, 1, args, &skip, why, sizeof why))
		fail_msg("%s", why);
	e = client(&small);
	(void)put(e, "small", "kept");
	for (int i = 0; i < 100 && r >= 0; i++) {
		struct sb_etcd_do change = { .key = "big", .value = big, .len = sizeof big };

		r = sb_etcd_txn(e, NULL, 0, &change, 1, NULL, NULL, &err);
	}
	assert_fails(r, SB_E_NOSPACE, &err);
	assert_ok(sb_etcd_get(e, "small", NULL, NULL, NULL, &err), &err);
	assert_ok(sb_etcd_status(e, &st, NULL, &err), &err);
	assert_true(st.nospace);
	assert_true(st.leader);
	sb_etcd_free(e);
	test_etcd_stop(&small);
}

static void
certificates_decide_who_may(void **state)
{
	static const char *const args[] = { "tls", NULL };
	static const struct {
		const char *ca, *cert;
		int code;
	} tries[] = {
		{ "ca.pem", "client", 0 },
		{ "ca.pem", "other", SB_E_UNAVAILABLE },
		{ "ca.pem", NULL, SB_E_UNAVAILABLE },
		{ "strangers.pem", "client", SB_E_UNAVAILABLE },
	};
	struct rig *g = rig(state);
	struct test_etcd t;
	char why[256];
	bool skip;

	(void)g;
	if (!test_etcd_start(&t, 1, args, &skip, why, sizeof why)) {
		if (skip)
			skip_because("%s", why);
		fail_msg("%s", why);
	}
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		struct sb_etcd_opts o = SB_ETCD_OPTS_INIT;
		char ca[256], cert[256], key[256];
		struct sb_error err = { 0 };
		struct sb_etcd *e;
		int64_t n;

		(void)snprintf(ca, sizeof ca, "%s/%s", t.dir, tries[i].ca);
		(void)snprintf(cert, sizeof cert, "%s/%s.pem", t.dir,
			tries[i].cert ? tries[i].cert : "");
		(void)snprintf(key, sizeof key, "%s/%s.key", t.dir,
			tries[i].cert ? tries[i].cert : "");
		o.endpoints = t.endpoint;
		o.n_endpoints = t.n;
		o.ca_file = ca;
		o.cert_file = tries[i].cert ? cert : NULL;
		o.key_file = tries[i].cert ? key : NULL;
		e = sb_etcd_new(&o, &err);
		assert_non_null(e);
		assert_fails(sb_etcd_count(e, "", &n, NULL, &err), tries[i].code, &err);
		sb_etcd_free(e);
		/* Half of what shows who one is. */
		o.cert_file = cert;
		o.key_file = NULL;
		assert_null(sb_etcd_new(&o, &err));
		assert_int_equal(err.code, SB_E_INVAL);
	}
	test_etcd_stop(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_comes_back_as_it_was),
		cmocka_unit_test(one_of_two_writers_wins),
		cmocka_unit_test(a_list_has_all_pages_of_one_moment),
		cmocka_unit_test(a_lease_takes_its_keys_along),
		cmocka_unit_test(a_watch_tells_each_change_once_whatever_members_do),
		cmocka_unit_test(what_was_compacted_must_be_listed_again),
		cmocka_unit_test(without_a_majority_calls_fail_and_none_is_lost),
		cmocka_unit_test(a_full_cluster_says_so),
		cmocka_unit_test(certificates_decide_who_may),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
