/* SPDX-License-Identifier: MIT */
/* The life of a sandbox from start to stop: what its provider is asked, and in which order. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/lifefix.h"

static void
a_good_run_goes_in_order(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	lifefix_life_is(w, "one", SB_LIFE_ACTIVE);
	assert_int_equal(lifefix_run(sb, "0", &err), 0);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start from:stop destroy ");
	lifefix_life_is(w, "o", SB_LIFE_DESTROYED);
	assert_non_null(strstr(w->seen,
		"sandbox.prepare.start sandbox.prepare.complete sandbox.sync.start "
		"sandbox.sync.complete "
		"sandbox.transport.connect sandbox.transport.disconnect "));
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start from:stop destroy ");
}

static void
a_failed_agent_is_a_crash(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_int_equal(lifefix_run(sb, "9", &err), 9);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start from:crash destroy ");
	assert_int_equal(sb_sandbox_state(sb)->exit_code, 9);
}

static void
modes_are_obeyed(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	struct sb_sync_result res = { 0 };

	w->profile.sync_mode = SB_SYNC_MODE_NONE;
	assert_ok(lifefix_start(w, "none", &sb, &err), &err);
	assert_ok(sb_sandbox_turn(sb, NULL, &res, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare destroy ");
	sb_sandbox_free(sb);
	lifefix_far.asked[0] = '\0';
	w->profile.sync_mode = SB_SYNC_MODE_TURN;
	assert_ok(lifefix_start(w, "turn", &sb, &err), &err);
	assert_ok(sb_sandbox_turn(sb, NULL, &res, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start to:turn from:stop destroy ");
	sb_sandbox_free(sb);
}

static void
a_kept_sandbox_is_used_again(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *again = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };

	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	assert_ok(lifefix_start(w, "one", &again, &err), &err);
	assert_ok(lifefix_stop(again, &err), &err);
	assert_string_equal(lifefix_far.asked,
		"prepare to:start from:stop attach to:start from:stop ");
	assert_ok(sb_sandbox_destroy(again, false, NULL, &res, &err), &err);
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
	assert_non_null(strstr(lifefix_far.asked, "destroy "));
}

static void
cancelled_calls_do_nothing(void **state)
{
	struct lifefix *w = *state;
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_call call = SB_CALL_INIT;
	struct sb_cancel *c = sb_cancel_new(NULL);
	struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };

	sb_cancel_request(c);
	call.cancel = c;
	o.profile = &w->profile;
	o.local_root = w->tmp.path;
	assert_fails(sb_sandbox_start(w->k, &o, &call, &sb, NULL, &err), SB_E_CANCELED, &err);
	assert_string_equal(lifefix_far.asked, "");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_fails(sb_sandbox_stop(sb, NULL, &call, &res, &err), SB_E_CANCELED, &err);
	lifefix_life_is(w, "one", SB_LIFE_UNSYNCED);
	assert_true(lifefix_far.exists);
	sb_sandbox_free(sb);
	sb_cancel_free(c);
}

static void
bad_requests_are_named(void **state)
{
	struct lifefix *w = *state;
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	const char *dirs[] = { w->tmp.path, NULL };

	o.profile = &w->profile;
	o.local_root = w->tmp.path;
	o.sandbox_id = "../x";
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_INVAL, &err);
	o.sandbox_id = NULL;
	o.local_dirs = dirs;
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "inside each other"));
	o.local_dirs = NULL;
	o.local_root = "/nowhere/at/all";
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_NOTFOUND, &err);
	assert_string_equal(lifefix_far.asked, "");
	w->profile.backend = SB_BACKEND_E2B;
	o.local_root = w->tmp.path;
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_PROVIDER_MISSING,
		&err);
	assert_fails(sb_sandbox_open(w->k, "zz", &sb, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	w->profile.backend = SB_BACKEND_FLY;
	sb_strlist_add(&w->profile.options, "colour=red");
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "colour"));
}

struct runner {
	struct lifefix *w;
	int number;
	char wrong[256];
};

/* A few lives of one sandbox; the keeper is shared. */
static void *
live(void *arg)
{
	struct runner *x = arg;
	char id[32];

	(void)snprintf(id, sizeof id, "t%d", x->number);
	for (int i = 0; i < 5 && !x->wrong[0]; i++) {
		struct sb_sandbox *sb = NULL;
		struct sb_error err = { 0 };
		int r;

		lifefix_far.asked[0] = '\0';
		r = lifefix_start(x->w, id, &sb, &err);
		if (r == 0)
			r = lifefix_run(sb, x->number % 2 ? "1" : "0", &err);
		if (r >= 0)
			r = lifefix_stop(sb, &err);
		if (r < 0)
			(void)snprintf(x->wrong, sizeof x->wrong, "%.200s", err.msg);
		else if (strcmp(lifefix_far.asked,
				 x->number % 2 ? "prepare to:start from:crash destroy " :
						 "prepare to:start from:stop destroy ") != 0)
			(void)snprintf(x->wrong, sizeof x->wrong, "%.200s", lifefix_far.asked);
		sb_sandbox_free(sb);
	}
	return NULL;
}

static void
sandboxes_do_not_disturb_each_other(void **state)
{
	struct lifefix *w = *state;
	struct runner x[8];
	pthread_t t[8];
	struct sb_keeper_opts o = SB_KEEPER_OPTS_INIT;
	struct sb_error err = { 0 };

	/* Without the listener, which writes into one text. */
	o.registry = w->registry;
	o.state_dir = w->tmp.path;
	sb_keeper_free(w->k);
	w->k = sb_keeper_new(&o, &err);
	for (int i = 0; i < 8; i++) {
		x[i] = (struct runner){ .w = w, .number = i };
		assert_int_equal(pthread_create(&t[i], NULL, live, &x[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_string_equal(x[i].wrong, "");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LIFEFIX_TEST(a_good_run_goes_in_order),
		LIFEFIX_TEST(a_failed_agent_is_a_crash),
		LIFEFIX_TEST(modes_are_obeyed),
		LIFEFIX_TEST(a_kept_sandbox_is_used_again),
		LIFEFIX_TEST(cancelled_calls_do_nothing),
		LIFEFIX_TEST(bad_requests_are_named),
		LIFEFIX_TEST(sandboxes_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
