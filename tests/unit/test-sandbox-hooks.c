/* SPDX-License-Identifier: MIT */
/* What hooks and secrets of a profile do to the life of a sandbox and to what it launches. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/lifefix.h"

static int
hook(const struct sb_hook_info *info, struct sb_hook_answer *out, void *arg, struct sb_error *err)
{
	const char *deny = arg;

	(void)err;
	if (strcmp(deny, info->event) == 0 &&
		!(info->direction && strcmp(deny, "sync.before") == 0 &&
			strcmp(info->direction, "from_runtime") != 0)) {
		out->deny = true;
		out->reason = strdup("because");
	}
	if (strcmp(info->event, "prepare") == 0) {
		sb_strlist_add(&out->exclude, "*.tmp");
		sb_strlist_add(&out->env, "FROM_HOOK=1");
	}
	return 0;
}

static struct sb_keeper *
with_hook(struct lifefix *w, struct sb_hook *h, const char *deny)
{
	struct sb_keeper_opts o = SB_KEEPER_OPTS_INIT;
	struct sb_error err = { 0 };

	*h = (struct sb_hook){ NULL, hook, (void *)(uintptr_t)deny };
	o.registry = w->registry;
	o.state_dir = w->tmp.path;
	o.hooks = h;
	o.n_hooks = 1;
	sb_keeper_free(w->k);
	w->k = sb_keeper_new(&o, &err);
	return w->k;
}

static void
hooks_deny_exclude_and_set(void **state)
{
	struct lifefix *w = *state;
	struct sb_hook h;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	(void)with_hook(w, &h, "prepare");
	assert_fails(lifefix_start(w, "a", &sb, &err), SB_E_HOOK_DENIED, &err);
	assert_non_null(strstr(err.msg, "because"));
	assert_null(strstr(lifefix_far.asked, "prepare"));
	(void)with_hook(w, &h, "ready");
	assert_fails(lifefix_start(w, "b", &sb, &err), SB_E_HOOK_DENIED, &err);
	(void)with_hook(w, &h, "sync.before");
	assert_ok(lifefix_start(w, "c", &sb, &err), &err);
	assert_string_equal(lifefix_far.excludes, "*.tmp ");
	assert_int_equal(lifefix_run(sb, "0", &err), 0);
	assert_non_null(strstr(lifefix_far.env, "FROM_HOOK=1"));
	lifefix_far.asked[0] = '\0';
	assert_fails(lifefix_stop(sb, &err), SB_E_HOOK_DENIED, &err);
	assert_string_equal(lifefix_far.asked, "");
	lifefix_life_is(w, "c", SB_LIFE_UNSYNCED);
	sb_sandbox_free(sb);
	(void)with_hook(w, &h, "stop");
	assert_ok(lifefix_start(w, "d", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	lifefix_life_is(w, "d", SB_LIFE_STOPPED);
	assert_true(lifefix_far.exists);
	sb_sandbox_free(sb);
}

static int
leaves_out(const struct sb_hook_info *info, struct sb_hook_answer *out, void *arg,
	struct sb_error *err)
{
	(void)arg, (void)err;
	if (strcmp(info->event, "sync.before") == 0)
		sb_strlist_add(&out->exclude, "of-the-hook");
	return 0;
}

/* Neither the patterns of a hook nor those of the caller make the others forgotten. */
static void
patterns_of_hook_and_caller_both_count(void **state)
{
	struct lifefix *w = *state;
	const struct sb_hook h = { NULL, leaves_out, NULL };
	static const char *const mine[] = { "of-the-caller", NULL };
	struct sb_keeper_opts ko = SB_KEEPER_OPTS_INIT;
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };

	ko.registry = w->registry;
	ko.state_dir = w->tmp.path;
	ko.hooks = &h;
	ko.n_hooks = 1;
	sb_keeper_free(w->k);
	w->k = sb_keeper_new(&ko, &err);
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	o.excludes = mine;
	assert_ok(sb_sandbox_sync(sb, &o, NULL, &res, &err), &err);
	assert_string_equal(lifefix_far.left_out, "of-the-caller of-the-hook ");
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_string_equal(lifefix_far.left_out, "of-the-hook ");
}

/* Started again and again, as exec does, a sandbox has each pattern once. */
static void
patterns_do_not_pile_up(void **state)
{
	struct lifefix *w = *state;
	struct sb_hook h;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	(void)with_hook(w, &h, "none");
	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	sb_strlist_add(&w->profile.exclude, "*.tmp");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_string_equal(lifefix_far.excludes, "*.tmp ");
	assert_ok(lifefix_stop(sb, &err), &err);
	sb_sandbox_free(sb);
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	assert_int_equal(sb_sandbox_state(sb)->excludes.n, 1);
	sb_sandbox_free(sb);
}

static void
programs_as_hooks(void **state)
{
	struct lifefix *w = *state;
	static const char *const ok[] = { "sh", "-c",
		"grep -q '\"event\":\"prepare\"' && echo '{\"env\": {\"X\": \"y\"}, "
		"\"exclude\": [\"a\"]}'",
		NULL };
	static const char *const bad[] = { "sh", "-c", "echo not today >&2; exit 3", NULL };
	struct sb_profile_hook hooks[2] = { { .event = (char[]){ "prepare" } },
		{ .event = (char[]){ "ready" } } };
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	sb_strlist_add_all(&hooks[0].argv, ok);
	sb_strlist_add_all(&hooks[1].argv, bad);
	w->profile.hooks = hooks;
	w->profile.n_hooks = 1;
	assert_ok(lifefix_start(w, "a", &sb, &err), &err);
	assert_string_equal(lifefix_far.excludes, "a ");
	assert_int_equal(lifefix_run(sb, "0", &err), 0);
	assert_non_null(strstr(lifefix_far.env, "X=y"));
	sb_sandbox_free(sb);
	w->profile.n_hooks = 2;
	assert_fails(lifefix_start(w, "b", &sb, &err), SB_E_HOOK_DENIED, &err);
	assert_non_null(strstr(err.msg, "not today"));
	w->profile.hooks = NULL;
	w->profile.n_hooks = 0;
	sb_strlist_free(&hooks[0].argv);
	sb_strlist_free(&hooks[1].argv);
}

/* Only at the stop, and true: these hooks deny where it is otherwise. */
static void
a_stop_hook_learns_what_becomes_of_the_sandbox(void **state)
{
	struct lifefix *w = *state;
	static const char *const not_yet[] = { "sh", "-c", "! grep -q '\"will_destroy\":'", NULL };
	static const char *const goes[] = { "grep", "-q", "\"will_destroy\":true", NULL };
	static const char *const stays[] = { "grep", "-q", "\"will_destroy\":false", NULL };
	struct sb_profile_hook hooks[2] = { { .event = (char[]){ "prepare" } },
		{ .event = (char[]){ "stop" } } };
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	sb_strlist_add_all(&hooks[0].argv, not_yet);
	sb_strlist_add_all(&hooks[1].argv, goes);
	w->profile.hooks = hooks;
	w->profile.n_hooks = 2;
	assert_ok(lifefix_start(w, "a", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	lifefix_life_is(w, "a", SB_LIFE_DESTROYED);
	sb_sandbox_free(sb);
	sb_strlist_free(&hooks[1].argv);
	sb_strlist_add_all(&hooks[1].argv, stays);
	assert_ok(lifefix_start(w, "b", &sb, &err), &err);
	assert_ok(lifefix_stop(sb, &err), &err);
	lifefix_life_is(w, "b", SB_LIFE_STOPPED);
	sb_sandbox_free(sb);
	w->profile.hooks = NULL;
	w->profile.n_hooks = 0;
	sb_strlist_free(&hooks[0].argv);
	sb_strlist_free(&hooks[1].argv);
}

static void
secrets_reach_the_child_alone(void **state)
{
	struct lifefix *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	const char *argv[] = { "0", NULL };
	struct sb_handle *h = NULL;
	struct sb_error err = { 0 };
	sb_autofree char *tail = NULL, *grep = NULL;

	(void)setenv("SB_TEST_SECRET", "s3cr3t-value", 1);
	sb_strlist_add(&w->profile.secret_env, "KEY=env:SB_TEST_SECRET");
	assert_ok(lifefix_start(w, "one", &sb, &err), &err);
	spec.argv = argv;
	assert_ok(sb_sandbox_launch(sb, &spec, NULL, &h, &err), &err);
	assert_non_null(strstr(lifefix_far.env, "KEY=s3cr3t-value"));
	tail = sb_handle_stderr_tail(h);
	assert_string_equal(tail, "key is ************, really ************");
	sb_handle_free(h);
	assert_ok(lifefix_stop(sb, &err), &err);
	assert_true(asprintf(&grep, "grep -rq s3cr3t-value %s", w->tmp.path) > 0);
	{
		FILE *f = popen(grep, "r");

		assert_int_equal(WEXITSTATUS(pclose(f)), 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LIFEFIX_TEST(hooks_deny_exclude_and_set),
		LIFEFIX_TEST(patterns_of_hook_and_caller_both_count),
		LIFEFIX_TEST(patterns_do_not_pile_up),
		LIFEFIX_TEST(programs_as_hooks),
		LIFEFIX_TEST(a_stop_hook_learns_what_becomes_of_the_sandbox),
		LIFEFIX_TEST(secrets_reach_the_child_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
