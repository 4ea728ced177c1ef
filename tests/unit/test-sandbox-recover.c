/* SPDX-License-Identifier: MIT */
/* Sandboxes whose sync failed or whose process died: nothing that is over there gets lost. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/lifefix.h"

static void
a_failed_sync_back_keeps_the_sandbox(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	lifefix_far.fail_at = "from:stop";
	assert_fails(lifefix_stop(sb, &err), SB_E_CONNECT, &err);
	assert_non_null(strstr(err.msg, "sbctl recover one"));
	assert_null(strstr(lifefix_far.asked, "destroy"));
	lifefix_life_is(w, "one", SB_LIFE_UNSYNCED);
	lifefix_far.fail_at = "from:crash";
	assert_int_equal(lifefix_recover(w, "one", result), 1);
	assert_string_equal(result, "failed");
	assert_true(lifefix_far.exists);
	lifefix_far.fail_at = NULL;
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "from:crash destroy ");
	assert_string_equal(result, "done");
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_string_equal(lifefix_far.asked, "");
	assert_string_equal(result, "nothing");
}

static void
recovery_syncs_first_and_leaves_the_living_alone(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_string_equal(result, "owned");
	assert_string_equal(lifefix_far.asked, "");
	lifefix_orphan(w, "one");
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_string_equal(lifefix_far.asked, "from:crash destroy ");
}

static void
a_crash_while_creating_is_found(void **state)
{
	struct lifefix *w = *state;
	struct sb_error err = { 0 };
	char result[32];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		/* Made over there, but this process dies before it hears of it. */
		struct sb_sandbox *sb = NULL;

		lifefix_far.die_at = "prepare";
		(void)lifefix_start(w, "one", &sb, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	lifefix_life_is(w, "one", SB_LIFE_CREATING);
	{
		sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;

		assert_ok(sb_keeper_load(w->k, "one", &s, &err), &err);
		assert_null(s.instance_id);
		assert_int_equal(s.owner_pid, pid);
		assert_false(sb_state_owned(&s));
	}
	lifefix_far.exists = true;
	/* A search that fails removes nothing. */
	lifefix_far.fail_at = "find";
	assert_int_equal(lifefix_recover(w, "one", result), 1);
	assert_string_equal(lifefix_far.asked, "find ");
	lifefix_life_is(w, "one", SB_LIFE_CREATING);
	assert_true(lifefix_far.exists);
	lifefix_far.fail_at = NULL;
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "find discard ");
	assert_string_equal(result, "done");
	assert_false(lifefix_far.exists);
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
}

/* Whoever has to find it is told all that it was made with. */
static void
what_is_looked_for_carries_the_identity(void **state)
{
	struct lifefix *w = *state;
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct tmpdir also;
	const char *dirs[] = { NULL, NULL };
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32], want[1024];

	tmpdir_make(&also);
	dirs[0] = also.path;
	o.profile = &w->profile;
	o.sandbox_id = "one";
	o.session_id = "talk";
	o.workspace_id = "shop";
	o.local_root = w->tmp.path;
	o.local_dirs = dirs;
	lifefix_far.told = "{\"version\":1}";
	assert_ok(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), &err);
	assert_ok(sb_record_lock(sb, 0, &err), &err);
	sb->state.life = SB_LIFE_CREATING;
	sb->state.owner_pid = 0;
	assert_ok(sb_record_save(sb, SB_LIFE_CREATING, &err), &err);
	sb_sandbox_free(sb);
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	(void)snprintf(want, sizeof want, "one talk shop %s %s p {\"version\":1} ", w->tmp.path,
		also.path);
	assert_string_equal(lifefix_far.found_by, want);
	tmpdir_remove(&also);
}

/* A log-in that ends, and what a provider needs besides: the newest is on record. */
static void
what_is_renewed_goes_on_record(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error err = { 0 };

	lifefix_far.told = "{\"key\":1,\"version\":1}";
	lifefix_far.expires = 1800000000;
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	sb_sandbox_free(sb);
	assert_ok(sb_keeper_load(w->k, "one", &s, &err), &err);
	assert_int_equal(s.access_expires_at, 1800000000);
	sb_state_free(&s);
	lifefix_far.told = "{\"key\":2,\"version\":1}";
	lifefix_far.expires = 1900000000;
	assert_ok(sb_sandbox_open(w->k, "one", &sb, &err), &err);
	assert_non_null(sb_sandbox_tools(sb, NULL, &err));
	sb_sandbox_free(sb);
	assert_ok(sb_keeper_load(w->k, "one", &s, &err), &err);
	assert_int_equal(s.access_expires_at, 1900000000);
	assert_string_equal(s.provider_state, lifefix_far.told);
}

static void
its_events_can_be_read(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char text[4096] = { 0 };
	int fd;

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	fd = sb_keeper_events_fd(w->k, "one", &err);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0);
	(void)close(fd);
	assert_non_null(strstr(text, "sandbox.prepare.start"));
	assert_non_null(strstr(text, "sandbox.sync.complete"));
	assert_fails(sb_keeper_events_fd(w->k, "two", &err), SB_E_SANDBOX_NOT_FOUND, &err);
}

static void
creating_is_on_record_before_the_provider_is_asked(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	lifefix_far.fail_at = "prepare";
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_null(sb);
	/* The provider was asked to take away what it may have made; that worked. */
	assert_string_equal(lifefix_far.asked, "prepare discard ");
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
	lifefix_far.fail_at = "to:start";
	lifefix_far.asked[0] = '\0';
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start discard ");
	lifefix_far.fail_at = NULL;
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	lifefix_far.asked[0] = '\0';
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "prepare to:start ");
}

static void
work_over_there_is_fetched_before_a_new_start(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *again = NULL;
	struct sb_error err = { 0 };

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	lifefix_orphan(w, "one");
	lifefix_far.fail_at = "from:crash";
	assert_fails(lifefix_start(w, "one", &again, &err), SB_E_UNSYNCED, &err);
	lifefix_life_is(w, "one", SB_LIFE_UNSYNCED);
	lifefix_far.fail_at = NULL;
	lifefix_far.asked[0] = '\0';
	assert_ok(lifefix_start(w, "one", &again, &err), &err);
	assert_string_equal(lifefix_far.asked, "from:crash attach to:start ");
}

static void
a_kept_sandbox_is_served_by_every_recovery(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	lifefix_orphan(w, "one");
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "from:crash ");
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	/* What still runs there goes on working: so does recovery. */
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "from:crash ");
	assert_string_equal(result, "done");
	lifefix_far.brought = 0;
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_string_equal(result, "nothing");
	lifefix_far.fail_at = "from:crash";
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_string_equal(result, "away");
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	assert_true(lifefix_far.exists);
}

static void
a_failed_fresh_start_removes_what_it_made(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	lifefix_far.fail_at = "to:start";
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_int_equal(lifefix_far.ended_as, SB_PERSIST_TRANSIENT);
	assert_false(lifefix_far.exists);
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
}

static void
a_crashed_fresh_start_is_removed_by_recovery(void **state)
{
	struct lifefix *w = *state;
	struct sb_error e = { 0 };
	char result[32];

	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	{
		sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;

		assert_ok(lifefix_start(w, "one", &sb, &e), &e);
		assert_ok(sb_record_lock(sb, 0, &e), &e);
		sb->state.life = SB_LIFE_PREPARED;
		sb->state.last_sync_at = 0;
		sb->state.owner_start ^= 1;
		assert_ok(sb_record_save(sb, SB_LIFE_PREPARED, &e), &e);
	}
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "discard ");
	assert_int_equal(lifefix_far.ended_as, SB_PERSIST_TRANSIENT);
	assert_false(lifefix_far.exists);
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
}

static void
what_is_kept_stays_kept(void **state)
{
	struct lifefix *w = *state;
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	o.profile = &w->profile;
	o.sandbox_id = "one";
	o.local_root = w->tmp.path;
	o.keep = true;
	assert_ok(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	o.keep = false;
	assert_ok(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	assert_true(lifefix_far.exists);
	/* Also behind a start that nobody answered. */
	lifefix_far.fail_at = "attach";
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_CONNECT, &err);
	lifefix_far.fail_at = NULL;
	assert_ok(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	assert_true(lifefix_far.exists);
}

/* What somebody had put away is put away again, and no recovery removes it. */
static void
what_is_put_away_stays_put_away(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	w->profile.persist = SB_PERSIST_ARCHIVE;
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	assert_int_equal(lifefix_far.ended_as, SB_PERSIST_ARCHIVE);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	w->profile.persist = SB_PERSIST_TRANSIENT;
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_int_equal(lifefix_far.ended_as, SB_PERSIST_ARCHIVE);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
	assert_true(lifefix_far.exists);
	/* The process of the next start dies before anything ran. */
	assert_ok(sb_record_lock(sb, 0, &err), &err);
	assert_ok(sb_record_save(sb, SB_LIFE_CREATING, &err), &err);
	sb_sandbox_free(sb);
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "find ");
	assert_true(lifefix_far.exists);
	lifefix_life_is(w, "one", SB_LIFE_STOPPED);
}

/* A start that died on the way to a sandbox of an earlier session throws away nothing in it. */
static void
recovery_of_a_second_start_brings_back_first(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	lifefix_far.fail_at = "destroy";
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_fails(lifefix_stop(sb, &err), SB_E_CONNECT, &err);
	lifefix_far.fail_at = NULL;
	assert_ok(sb_record_lock(sb, 0, &err), &err);
	assert_ok(sb_record_save(sb, SB_LIFE_CREATING, &err), &err);
	sb_sandbox_free(sb);
	assert_int_equal(lifefix_recover(w, "one", result), 0);
	assert_string_equal(lifefix_far.asked, "find destroy ");
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
}

/* A start that names one on record gets that one, or nothing: never a second one elsewhere. */
static void
a_sandbox_stays_where_it_is(void **state)
{
	struct lifefix *w = *state;
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	sb_strlist_put(&w->profile.options, "where=here");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	sb_sandbox_free(sb);
	lifefix_orphan(w, "one");
	lifefix_far.asked[0] = '\0';
	o.profile = &w->profile;
	o.sandbox_id = "one";
	o.local_root = "/";
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_STATE, &err);
	assert_non_null(strstr(err.msg, w->tmp.path));
	w->profile.backend = SB_BACKEND_DAYTONA;
	sb_strlist_free(&w->profile.options);
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_STATE, &err);
	assert_non_null(strstr(err.msg, "fly, not daytona"));
	w->profile.backend = SB_BACKEND_FLY;
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_STATE, &err);
	sb_strlist_put(&w->profile.options, "where=there");
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_STATE, &err);
	assert_non_null(strstr(err.msg, "\"here\", not \"there\""));
	/* Nobody was asked, and the work is still on record as not here. */
	assert_string_equal(lifefix_far.asked, "");
	lifefix_life_is(w, "one", SB_LIFE_ACTIVE);
	sb_strlist_put(&w->profile.options, "where=here");
	sb_strlist_put(&w->profile.options, "how=otherwise");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_string_equal(lifefix_far.asked, "from:crash attach to:start ");
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	/* What is gone is nowhere. */
	sb_strlist_put(&w->profile.options, "where=there");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	sb_sandbox_free(sb);
}

/* Nobody answers: neither at the start nor when it is taken back. */
static void
a_start_that_nobody_answered_leaves_nothing_open(void **state)
{
	struct lifefix *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	lifefix_far.fail_all = true;
	assert_fails(lifefix_start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_string_equal(lifefix_far.asked, "prepare discard ");
	lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
	assert_int_equal(lifefix_recover(w, NULL, result), 0);
	assert_ok(sb_keeper_forget(w->k, "one", false, &err), &err);
	assert_fails(sb_keeper_forget(w->k, "one", false, &err), SB_E_SANDBOX_NOT_FOUND, &err);
}

/* Every state has a verb that ends it, also when nobody answers. */
static void
every_record_can_be_ended(void **state)
{
	struct lifefix *w = *state;
	struct sb_error err = { 0 };

	for (int life = 0; life < SB_LIFE_COUNT; life++) {
		sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
		sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
		int r;

		lifefix_far.fail_all = false;
		assert_ok(lifefix_start(w, "one", &sb, &err), &err);
		assert_fails(sb_keeper_forget(w->k, "one", true, &err), SB_E_LOCKED, &err);
		assert_ok(sb_record_lock(sb, 0, &err), &err);
		sb->state.life = (enum sb_life)life;
		sb->state.owner_pid = 0;
		assert_ok(sb_record_save(sb, sb->state.life, &err), &err);
		sb_record_unlock(sb);
		/* With somebody who answers, destroy does. */
		lifefix_far.fail_all = true;
		r = sb_sandbox_destroy(sb, true, NULL, &res, &err);
		if (life == SB_LIFE_DESTROYED) {
			assert_ok(r, &err);
			assert_ok(sb_keeper_forget(w->k, "one", false, &err), &err);
			continue;
		}
		assert_int_equal(r, SB_E_CONNECT);
		assert_non_null(strstr(err.msg, "sbctl forget one"));
		r = sb_keeper_forget(w->k, "one", false, &err);
		assert_true(r == SB_E_UNSYNCED || r == SB_E_STATE);
		lifefix_far.fail_all = false;
		assert_ok(sb_sandbox_destroy(sb, true, NULL, &res, &err), &err);
		lifefix_life_is(w, "one", SB_LIFE_DESTROYED);
		assert_ok(sb_keeper_forget(w->k, "one", false, &err), &err);
	}
}

static void
an_unreadable_record_can_be_forgotten(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char path[512];
	FILE *f;

	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	(void)snprintf(path, sizeof path, "%s/sandboxes/one/state.json", w->tmp.path);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("{", f);
	(void)fclose(f);
	assert_fails(sb_keeper_forget(w->k, "one", false, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	assert_ok(sb_keeper_forget(w->k, "one", true, &err), &err);
	assert_int_not_equal(access(path, F_OK), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LIFEFIX_TEST(a_failed_sync_back_keeps_the_sandbox),
		LIFEFIX_TEST(recovery_syncs_first_and_leaves_the_living_alone),
		LIFEFIX_TEST(a_crash_while_creating_is_found),
		LIFEFIX_TEST(what_is_looked_for_carries_the_identity),
		LIFEFIX_TEST(what_is_renewed_goes_on_record),
		LIFEFIX_TEST(its_events_can_be_read),
		LIFEFIX_TEST(creating_is_on_record_before_the_provider_is_asked),
		LIFEFIX_TEST(work_over_there_is_fetched_before_a_new_start),
		LIFEFIX_TEST(a_kept_sandbox_is_served_by_every_recovery),
		LIFEFIX_TEST(a_failed_fresh_start_removes_what_it_made),
		LIFEFIX_TEST(a_crashed_fresh_start_is_removed_by_recovery),
		LIFEFIX_TEST(what_is_kept_stays_kept),
		LIFEFIX_TEST(what_is_put_away_stays_put_away),
		LIFEFIX_TEST(recovery_of_a_second_start_brings_back_first),
		LIFEFIX_TEST(a_sandbox_stays_where_it_is),
		LIFEFIX_TEST(a_start_that_nobody_answered_leaves_nothing_open),
		LIFEFIX_TEST(every_record_can_be_ended),
		LIFEFIX_TEST(an_unreadable_record_can_be_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
