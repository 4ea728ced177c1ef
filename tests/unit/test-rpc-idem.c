/* SPDX-License-Identifier: MIT */
/* Calls that are repeated run once, and the events that readers follow. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/service/events.h>
#include <rpc/service/idem.h>
#include <tests/lib/unit.h>

static const uint8_t one[SB_RPC_IDEM_DIGEST] = { 1 }, two[SB_RPC_IDEM_DIGEST] = { 2 };

static int
begin(struct sb_rpc_idem *d, const char *s, const char *id, const uint8_t *digest, char **text,
	struct sb_rpc_idem_run **run, struct sb_error *err)
{
	*text = NULL;
	*run = NULL;
	return sb_rpc_idem_begin(d, s, id, digest, NULL, sb_deadline_in(50), text, run, err);
}

static void
a_result_is_given_again(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(10, 1000, 60000, &err);
	struct sb_rpc_idem_run *run;
	char *text;

	(void)state;
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, strdup("first"));
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 1);
	assert_string_equal(text, "first");
	free(text);
	/*
	 * Another session, another id: other calls. The same id with other parameters: a mistake.
	 */
	assert_int_equal(begin(d, "t", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, NULL);
	assert_int_equal(begin(d, "s", "2", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, strdup("second"));
	assert_fails(begin(d, "s", "1", two, &text, &run, &err), SB_E_INVAL, &err);
	sb_rpc_idem_free(d);
}

static void
failures_are_not_kept(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(10, 1000, 60000, &err);
	struct sb_rpc_idem_run *run;
	char *text;

	(void)state;
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, NULL);
	assert_int_equal(begin(d, "s", "1", two, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, strdup("x"));
	sb_rpc_idem_free(d);
}

static void
a_running_call_is_waited_for(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(10, 1000, 60000, &err);
	struct sb_rpc_idem_run *run, *none;
	char *text;

	(void)state;
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	assert_fails(begin(d, "s", "1", one, &text, &none, &err), SB_E_TIMEOUT, &err);
	sb_rpc_idem_end(d, run, strdup("x"));
	assert_int_equal(begin(d, "s", "1", one, &text, &none, &err), 1);
	free(text);
	sb_rpc_idem_free(d);
}

static void
a_forgotten_session_starts_anew(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(10, 1000, 60000, &err);
	struct sb_rpc_idem_run *run, *other;
	char *text;

	(void)state;
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, strdup("old"));
	assert_int_equal(begin(d, "s", "2", one, &text, &run, &err), 0);
	sb_rpc_idem_forget(d, "s");
	/* What ran meanwhile is not kept when it ends. */
	assert_int_equal(begin(d, "s", "2", two, &text, &other, &err), 0);
	sb_rpc_idem_end(d, run, strdup("late"));
	sb_rpc_idem_end(d, other, strdup("new"));
	assert_int_equal(begin(d, "s", "2", two, &text, &run, &err), 1);
	assert_string_equal(text, "new");
	free(text);
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, NULL);
	sb_rpc_idem_free(d);
}

static void
the_store_is_bounded(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(5, 1000, 60000, &err);
	struct sb_rpc_idem_run *run;
	char *text, id[16];

	(void)state;
	for (int i = 0; i < 10; i++) {
		(void)snprintf(id, sizeof id, "%d", i);
		assert_int_equal(begin(d, "s", id, one, &text, &run, &err), 0);
		sb_rpc_idem_end(d, run, strdup("x"));
	}
	assert_int_equal(begin(d, "s", "5", one, &text, &run, &err), 1);
	free(text);
	assert_int_equal(begin(d, "s", "4", one, &text, &run, &err), 0);
	/* Too large for all the room there is: not kept. */
	text = calloc(1, 2000);
	memset(text, 'x', 1999);
	sb_rpc_idem_end(d, run, text);
	assert_int_equal(begin(d, "s", "4", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, NULL);
	sb_rpc_idem_free(d);
	d = sb_rpc_idem_new(5, 1000, 0, &err);
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, strdup("x"));
	assert_int_equal(begin(d, "s", "1", one, &text, &run, &err), 0);
	sb_rpc_idem_end(d, run, NULL);
	sb_rpc_idem_free(d);
}

struct racer {
	struct sb_rpc_idem *d;
	_Atomic int *ran;
};

static void *
race(void *arg)
{
	struct racer *r = arg;

	for (int i = 0; i < 200; i++) {
		struct sb_rpc_idem_run *run = NULL;
		char *text = NULL, id[16];

		(void)snprintf(id, sizeof id, "%d", i);
		if (sb_rpc_idem_begin(r->d, "s", id, one, NULL, SB_NEVER, &text, &run, NULL) == 0) {
			atomic_fetch_add(&r->ran[i], 1);
			sb_rpc_idem_end(r->d, run, strdup("x"));
		}
		free(text);
	}
	return NULL;
}

static void
of_many_at_once_one_runs(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_idem *d = sb_rpc_idem_new(1000, 100000, 60000, &err);
	static _Atomic int ran[200];
	struct racer r = { d, ran };
	pthread_t t[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, race, &r), 0);
	for (int i = 0; i < 8; i++)
		(void)pthread_join(t[i], NULL);
	for (int i = 0; i < 200; i++)
		assert_int_equal(atomic_load(&ran[i]), 1);
	sb_rpc_idem_free(d);
}

static void
publish(struct sb_rpc_events *e, uint64_t seq)
{
	struct sb_host_event ev = { .seq = seq, .kind = "session.created", .session = "s" };

	sb_rpc_events_publish(e, &ev);
}

static void
events_reach_readers_in_order(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_events *e = sb_rpc_events_new(&err);
	struct sb_rpc_reader *r, *later;
	struct sb_rpc_event ev;
	uint64_t seq;

	(void)state;
	publish(e, 1);
	r = sb_rpc_events_open(e, 0, &seq, &err);
	assert_non_null(r);
	assert_int_equal(seq, 1);
	publish(e, 2);
	publish(e, 3);
	later = sb_rpc_events_open(e, 2, &seq, &err);
	assert_non_null(later);
	assert_ok(sb_rpc_events_next(r, NULL, SB_NEVER, &ev, &err), &err);
	assert_int_equal(ev.seq, 2);
	assert_ok(sb_rpc_events_next(r, NULL, SB_NEVER, &ev, &err), &err);
	assert_int_equal(ev.seq, 3);
	assert_fails(sb_rpc_events_next(r, NULL, sb_deadline_in(5), &ev, &err), SB_E_TIMEOUT, &err);
	assert_ok(sb_rpc_events_next(later, NULL, SB_NEVER, &ev, &err), &err);
	assert_int_equal(ev.seq, 3);
	sb_rpc_events_close(later);
	sb_rpc_events_close(r);
	sb_rpc_events_free(e);
}

static void
a_reader_that_sleeps_is_told_what_it_lost(void **state)
{
	struct sb_error err = { 0 };
	struct sb_rpc_events *e = sb_rpc_events_new(&err);
	struct sb_rpc_reader *r;
	struct sb_rpc_event ev;
	uint64_t seq;

	(void)state;
	r = sb_rpc_events_open(e, 0, &seq, &err);
	for (uint64_t i = 1; i <= 3000; i++)
		publish(e, i);
	assert_fails(sb_rpc_events_next(r, NULL, SB_NEVER, &ev, &err), SB_E_CORRUPT, &err);
	assert_null(sb_rpc_events_open(e, 1, &seq, &err));
	assert_int_equal(err.code, SB_E_CORRUPT);
	assert_null(sb_rpc_events_open(e, 99999, &seq, &err));
	sb_rpc_events_close(r);
	sb_rpc_events_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_is_given_again),
		cmocka_unit_test(failures_are_not_kept),
		cmocka_unit_test(a_running_call_is_waited_for),
		cmocka_unit_test(a_forgotten_session_starts_anew),
		cmocka_unit_test(the_store_is_bounded),
		cmocka_unit_test(of_many_at_once_one_runs),
		cmocka_unit_test(events_reach_readers_in_order),
		cmocka_unit_test(a_reader_that_sleeps_is_told_what_it_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
