/* SPDX-License-Identifier: MIT */
/* The profile of a sandbox that another process started: all of it is on record. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <provider/profile-json.h>
#include <provider/provider.h>
#include <sb/session.h>
#include <session/session-priv.h>

#include "tests/lib/tmpdir.h"

struct rig {
	struct tmpdir t;
	struct sb_registry *registry;
	struct sb_keeper *keeper;
	struct sb_error err;
};

static int
setup(void **state)
{
	struct rig *g = calloc(1, sizeof *g);
	struct sb_builtin_opts bo = SB_BUILTIN_OPTS_INIT;
	struct sb_keeper_opts ko = SB_KEEPER_OPTS_INIT;

	if (!g)
		return -1;
	(void)signal(SIGPIPE, SIG_IGN);
	tmpdir_make(&g->t);
	bo.state_dir = ko.state_dir = g->t.path;
	g->registry = sb_registry_builtin(&bo, &g->err);
	assert_non_null(g->registry);
	ko.registry = g->registry;
	g->keeper = sb_keeper_new(&ko, &g->err);
	assert_non_null(g->keeper);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *g = *state;

	sb_keeper_free(g->keeper);
	sb_registry_free(g->registry);
	tmpdir_remove(&g->t);
	free(g);
	return 0;
}

/* Starts "it" with this profile and lets go of it, as a process that ended would. */
static struct sb_sandbox *
opened(struct rig *g, const struct sb_profile *p)
{
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;

	o.profile = p;
	o.sandbox_id = "it";
	o.local_root = g->t.path;
	assert_ok(sb_sandbox_start(g->keeper, &o, NULL, &sb, NULL, &g->err), &g->err);
	assert_string_equal(sb_sandbox_profile(sb)->name, "mine");
	sb_sandbox_free(sb);
	sb = NULL;
	assert_ok(sb_sandbox_open(g->keeper, "it", &sb, &g->err), &g->err);
	return sb;
}

static int
run_sh(struct rig *g, struct sb_sandbox *sb, const char *line)
{
	const char *argv[] = { "sh", "-c", line, NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_ended end = { 0 };
	struct sb_handle *h = NULL;

	spec.argv = argv;
	assert_ok(sb_sandbox_launch(sb, &spec, NULL, &h, &g->err), &g->err);
	assert_ok(sb_handle_wait(h, NULL, &end, &g->err), &g->err);
	sb_handle_free(h);
	return end.code;
}

static void
add_hook(struct sb_profile *p, const char *event, const char *line)
{
	p->hooks = realloc(p->hooks, (p->n_hooks + 1) * sizeof *p->hooks);
	assert_non_null(p->hooks);
	p->hooks[p->n_hooks] =
		(struct sb_profile_hook){ .event = strdup(event), .timeout_ms = 20000 };
	sb_strlist_add(&p->hooks[p->n_hooks].argv, "sh");
	sb_strlist_add(&p->hooks[p->n_hooks].argv, "-c");
	sb_strlist_add(&p->hooks[p->n_hooks].argv, line);
	p->n_hooks++;
}

/* A profile with something in every member that has to survive. */
static void
fill(struct rig *g, struct sb_profile *p)
{
	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", p, &g->err), &g->err);
	sb_strlist_add(&p->env, "SB_TEST_WORD=seven");
	sb_strlist_add(&p->env, "SB_TEST_ODD=\xff");
	sb_strlist_add(&p->secret_env, "SB_TEST_TOKEN=env:SB_TEST_SOURCE");
	p->persist = SB_PERSIST_REUSE;
	p->destroy_on_stop = false;
	p->permissions = SB_PERM_MODE_DENY_ALL;
	p->network.allow_outbound = true;
	p->prepare_timeout_ms = 60001;
	p->sync_timeout_ms = 60002;
	p->destroy_timeout_ms = 60003;
	sb_strlist_add(&p->exclude, "*.o");
	add_hook(p, "prepare", "echo '{\"env\": {\"SB_TEST_HOOK\": \"by hook\"}}'");
	add_hook(p, "stop", "echo \"stopped $(cat | wc -l)\" >hook-ran");
}

static void
the_whole_profile_is_on_record(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	const struct sb_profile *q;

	fill(g, &p);
	sb = opened(g, &p);
	q = sb_sandbox_profile(sb);
	assert_string_equal(q->name, "mine");
	assert_int_equal(q->persist, SB_PERSIST_REUSE);
	assert_false(q->destroy_on_stop);
	assert_int_equal(q->permissions, SB_PERM_MODE_DENY_ALL);
	assert_int_equal(q->env.n, 2);
	assert_string_equal(q->env.v[0], "SB_TEST_WORD=seven");
	assert_string_equal(q->env.v[1], "SB_TEST_ODD=\xff");
	assert_string_equal(q->secret_env.v[0], "SB_TEST_TOKEN=env:SB_TEST_SOURCE");
	assert_true(q->network.allow_outbound);
	assert_false(q->network.required);
	assert_int_equal(q->prepare_timeout_ms, 60001);
	assert_int_equal(q->sync_timeout_ms, 60002);
	assert_int_equal(q->destroy_timeout_ms, 60003);
	assert_int_equal(q->n_hooks, 2);
	assert_string_equal(q->hooks[1].event, "stop");
	assert_int_equal(q->hooks[1].argv.n, 3);
	assert_int_equal(q->hooks[1].timeout_ms, 20000);
	assert_string_equal(sb_sandbox_state(sb)->excludes.v[0], "*.o");
}

/* Runs the line in the sandbox as a process would that knows nothing but the record. */
static void
launches_have_the_same_environment(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;

	fill(g, &p);
	assert_int_equal(setenv("SB_TEST_SOURCE", "s3cr3t", 1), 0);
	sb = opened(g, &p);
	assert_int_equal(run_sh(g, sb, "test \"$SB_TEST_WORD\" = seven"), 0);
	assert_int_equal(run_sh(g, sb, "test \"$SB_TEST_HOOK\" = 'by hook'"), 0);
	assert_int_equal(run_sh(g, sb, "test \"$SB_TEST_TOKEN\" = s3cr3t"), 0);
	(void)unsetenv("SB_TEST_SOURCE");
}

static void
a_stop_hook_runs_in_a_new_process(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	char path[512];

	fill(g, &p);
	(void)snprintf(path, sizeof path, "%s/hook-ran", g->t.path);
	sb = opened(g, &p);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_ok(sb_sandbox_stop(sb, NULL, NULL, &res, &g->err), &g->err);
	assert_int_equal(access(path, F_OK), 0);
}

/* The record's text. The caller frees it. */
static char *
record(struct rig *g)
{
	char path[512];
	FILE *f;
	char *text = calloc(1, 65536);

	(void)snprintf(path, sizeof path, "%s/sandboxes/it/state.json", g->t.path);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, 65535, f) > 0);
	(void)fclose(f);
	return text;
}

static void
no_secret_is_on_record(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	struct sb_start_opts o = SB_START_OPTS_INIT;
	const char *env[] = { "SB_TEST_AGENT=yes", "SB_TEST_PASSWORD=hunter2", NULL };
	struct sb_sandbox *sb = NULL;
	sb_autofree char *text = NULL;

	fill(g, &p);
	add_hook(&p, "ready", "echo '{\"env\": {\"SB_HOOK_TOKEN\": \"swordfish\"}}'");
	assert_int_equal(setenv("SB_TEST_SOURCE", "s3cr3t", 1), 0);
	o.profile = &p;
	o.sandbox_id = "it";
	o.local_root = g->t.path;
	o.agent_env = env;
	assert_ok(sb_sandbox_start(g->keeper, &o, NULL, &sb, NULL, &g->err), &g->err);
	/* The process that started it has them all. */
	assert_int_equal(
		run_sh(g, sb, "test ${#SB_TEST_TOKEN}${#SB_TEST_PASSWORD}${#SB_HOOK_TOKEN} = 679"),
		0);
	sb_sandbox_free(sb);
	sb = NULL;
	text = record(g);
	assert_null(strstr(text, "s3cr3t"));
	assert_null(strstr(text, "hunter2"));
	assert_non_null(strstr(text, "env:SB_TEST_SOURCE"));
	/* The hook's own words are configuration; what it answered is not there. */
	assert_null(strstr(text, "SB_HOOK_TOKEN=swordfish"));
	assert_ok(sb_sandbox_open(g->keeper, "it", &sb, &g->err), &g->err);
	assert_int_equal(run_sh(g, sb, "test \"$SB_TEST_AGENT\" = yes"), 0);
	sb_sandbox_free(sb);
	(void)unsetenv("SB_TEST_SOURCE");
}

static void
programs_learn_of_directories_and_of_what_to_resume(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	struct tmpdir one, two;
	const char *dirs[] = { NULL, NULL, NULL };
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;
	char line[1024];

	tmpdir_make(&one);
	tmpdir_make(&two);
	dirs[0] = one.path;
	dirs[1] = two.path;
	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	o.profile = &p;
	o.sandbox_id = "it";
	o.local_root = g->t.path;
	o.local_dirs = dirs;
	o.agent_command = "sh -c 'exit 5'";
	o.resume_acp_state = "conversation 9";
	assert_ok(sb_sandbox_start(g->keeper, &o, NULL, &sb, NULL, &g->err), &g->err);
	(void)snprintf(line, sizeof line,
		"test \"$SB_DIRS\" = \"$(printf '%%s\\n%%s' '%s' '%s')\" && "
		"test \"$SB_RESUME_ACP_STATE\" = 'conversation 9'",
		one.path, two.path);
	assert_int_equal(run_sh(g, sb, line), 0);
	sb_sandbox_free(sb);
	sb = NULL;
	assert_ok(sb_sandbox_open(g->keeper, "it", &sb, &g->err), &g->err);
	assert_int_equal(run_sh(g, sb, line), 0);
	{
		struct sb_handle *h = NULL;
		struct sb_ended end = { 0 };

		/* Without a command, the agent of the start. */
		assert_ok(sb_sandbox_launch(sb, NULL, NULL, &h, &g->err), &g->err);
		assert_ok(sb_handle_wait(h, NULL, &end, &g->err), &g->err);
		assert_int_equal(end.code, 5);
		sb_handle_free(h);
	}
	sb_sandbox_free(sb);
	tmpdir_remove(&one);
	tmpdir_remove(&two);
}

static void
a_handle_tells_its_process(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	const char *argv[] = { "cat", NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_handle *h = NULL;

	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	sb = opened(g, &p);
	spec.argv = argv;
	assert_ok(sb_sandbox_launch(sb, &spec, NULL, &h, &g->err), &g->err);
	assert_true(sb_handle_pid(h) > 1);
	assert_int_equal(kill((pid_t)sb_handle_pid(h), 0), 0);
	assert_ok(sb_handle_stop(h, NULL, &g->err), &g->err);
	sb_handle_free(h);
	assert_int_equal(sb_handle_pid(NULL), 0);
}

/* Nobody here gives a sandbox a public address, so nobody may seem to. */
static void
a_public_address_is_refused(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	struct sb_start_opts o = SB_START_OPTS_INIT;
	struct sb_sandbox *sb = NULL;

	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	p.network.allow_public_ingress = true;
	o.profile = &p;
	o.local_root = g->t.path;
	assert_fails(sb_sandbox_start(g->keeper, &o, NULL, &sb, NULL, &g->err), SB_E_NETWORK_POLICY,
		&g->err);
	assert_non_null(strstr(g->err.msg, "allow_public_ingress"));
}

static void
damaged_settings_are_named(void **state)
{
	static const char *const bad[] = { "[]", "{\"env\": 3}", "{\"env\": [3]}",
		"{\"hooks\": [{\"event\": \"stop\"}]}", "{\"hooks\": [{\"argv\": [\"x\"]}]}",
		"{\"network_required\": 1}", "{\"sync_timeout_ms\": -1}",
		"{\"sync_timeout_ms\": \"1\"}", "{\"runtime_root\": 1}", "{", "" };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct sb_profile p = { 0 };

		assert_fails(sb_profile_json_decode(bad[i], &p, &err), SB_E_CORRUPT, &err);
		assert_non_null(strstr(err.msg, "settings"));
		sb_profile_free(&p);
	}
}

static void
a_state_of_another_version_is_refused(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	static const char *const bad[] = { "{\"version\":2}", "{}", "{\"version\":\"1\"}" };

	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	p.sync_mode = SB_SYNC_MODE_SESSION;
	sb = opened(g, &p);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
		struct sb_state s = sb->state;
		char text[100];

		s.provider_state = (char *)(uintptr_t)bad[i];
		assert_fails(sb_provider_sync(sb->provider, &s, SB_WAY_FROM_RUNTIME, &o, NULL, &res,
				     &g->err),
			SB_E_VERSION, &g->err);
		assert_non_null(strstr(g->err.msg, "sandbox it"));
		assert_fails(sb_provider_destroy(sb->provider, &s, true, NULL, &g->err),
			SB_E_VERSION, &g->err);
		assert_fails(
			sb_provider_refused(sb->provider, &s, NULL, text, sizeof text, &g->err),
			SB_E_VERSION, &g->err);
		free(sb->state.provider_state);
		sb->state.provider_state = strdup(bad[i]);
		assert_null(sb_sandbox_tools(sb, NULL, &g->err));
		assert_int_equal(g->err.code, SB_E_VERSION);
	}
}

int
main(void)
{
#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		RIG_TEST(the_whole_profile_is_on_record),
		RIG_TEST(launches_have_the_same_environment),
		RIG_TEST(a_stop_hook_runs_in_a_new_process),
		RIG_TEST(no_secret_is_on_record),
		RIG_TEST(programs_learn_of_directories_and_of_what_to_resume),
		RIG_TEST(a_handle_tells_its_process),
		RIG_TEST(a_public_address_is_refused),
		RIG_TEST(damaged_settings_are_named),
		RIG_TEST(a_state_of_another_version_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
