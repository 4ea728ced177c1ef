/* SPDX-License-Identifier: MIT */
/* Sandboxes whose sync failed or whose process died: nothing that is over there gets lost. */
#include "config.h"

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
		/* Prepared over there, but this process dies before it hears of it. */
		struct sb_sandbox *sb = NULL;

		lifefix_far.fail_at = "prepare";
		(void)lifefix_start(w, "one", &sb, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)err;
	{
		sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
		struct sb_error e = { 0 };

		lifefix_far.fail_at = NULL;
		assert_ok(lifefix_start(w, "two", &sb, &e), &e);
		assert_ok(sb_record_lock(sb, 0, &e), &e);
		sb->state.life = SB_LIFE_CREATING;
		free(sb->state.instance_id);
		sb->state.instance_id = NULL;
		sb->state.owner_start ^= 1;
		assert_ok(sb_record_save(sb, SB_LIFE_CREATING, &e), &e);
	}
	assert_int_equal(lifefix_recover(w, "two", result), 0);
	assert_string_equal(lifefix_far.asked, "find discard ");
	lifefix_life_is(w, "two", SB_LIFE_DESTROYED);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LIFEFIX_TEST(a_failed_sync_back_keeps_the_sandbox),
		LIFEFIX_TEST(recovery_syncs_first_and_leaves_the_living_alone),
		LIFEFIX_TEST(a_crash_while_creating_is_found),
		LIFEFIX_TEST(creating_is_on_record_before_the_provider_is_asked),
		LIFEFIX_TEST(work_over_there_is_fetched_before_a_new_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
