/* SPDX-License-Identifier: MIT */
/* The profile of a sandbox that another process started: what is on record, and what is given
 * again. */
#include "config.h"

#include <signal.h>

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
what_is_not_on_record_is_given_again(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;

	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	sb_strlist_add(&p.env, "SB_TEST_WORD=seven");
	p.persist = SB_PERSIST_REUSE;
	sb = opened(g, &p);
	assert_string_equal(sb_sandbox_profile(sb)->name, "mine");
	assert_null(sb_sandbox_profile(sb)->env.v);

	/* As the profile reads now; what was settled at the start does not follow it. */
	p.persist = SB_PERSIST_TRANSIENT;
	p.permissions = SB_PERM_MODE_DENY_ALL;
	sb_strlist_add(&p.exclude, "*.o");
	assert_ok(sb_sandbox_use_profile(sb, &p, &g->err), &g->err);
	assert_string_equal(sb_sandbox_profile(sb)->env.v[0], "SB_TEST_WORD=seven");
	assert_int_equal(sb_sandbox_profile(sb)->persist, SB_PERSIST_REUSE);
	assert_int_equal(sb_sandbox_profile(sb)->permissions, SB_PERM_MODE_APPROVE_READS);
	assert_null(sb_sandbox_profile(sb)->exclude.v);
	assert_int_equal(run_sh(g, sb, "test \"$SB_TEST_WORD\" = seven"), 0);
}

static void
a_profile_of_another_backend_is_refused(void **state)
{
	struct rig *g = *state;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_profile) struct sb_profile other = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;

	assert_ok(sb_profile_default(SB_BACKEND_LOCAL, "mine", &p, &g->err), &g->err);
	assert_ok(sb_profile_default(SB_BACKEND_SSH, "far", &other, &g->err), &g->err);
	sb = opened(g, &p);
	assert_fails(sb_sandbox_use_profile(sb, &other, &g->err), SB_E_INVAL, &g->err);
	assert_string_equal(g->err.msg, "profile far is of backend ssh, sandbox it of local");
	assert_string_equal(sb_sandbox_profile(sb)->name, "mine");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_on_record_is_given_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_profile_of_another_backend_is_refused, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
