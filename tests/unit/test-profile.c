/* SPDX-License-Identifier: MIT */
/* Profiles: files, mistakes with their lines, defaults, secrets by reference. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <provider/profiles.h>
#include <provider/provider.h>

#include "tests/lib/tmpdir.h"

SB_CLEANUP_PTR(sb_profiles, sb_profiles_free)

static char told[8192];

static void
tell(const char *file, size_t line, const char *text, void *arg)
{
	size_t n = strlen(told);

	(void)arg;
	(void)snprintf(told + n, sizeof told - n, "%s:%zu: %s\n", strrchr(file, '/') + 1, line,
		text);
}

/* What the user answers, and what they were shown. */
static bool consents;
static size_t asked;
static struct sb_consent shown;
static char effects[4096];

static bool
answer(const struct sb_consent *c, void *arg)
{
	(void)arg;
	asked++;
	shown = *c;
	(void)snprintf(effects, sizeof effects, "%s", c->effects);
	assert_int_equal(strlen(c->digest), 64);
	return consents;
}

static struct sb_profiles *
load_from(const struct tmpdir *t, const char *user_file, const char *user, const char *project,
	struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	char path[300], dir[300], state[300];

	(void)snprintf(path, sizeof path, "%s/%s", t->path, user_file);
	(void)snprintf(dir, sizeof dir, "%s/project", t->path);
	(void)snprintf(state, sizeof state, "%s/state", t->path);
	(void)mkdir(dir, 0755);
	tmpdir_file(t, user_file, user);
	if (project)
		tmpdir_file(t, "project/.sandbox.yaml", project);
	o.user_file = path;
	o.project_dir = project ? dir : NULL;
	o.state_dir = state;
	o.on_mistake = tell;
	o.on_consent = answer;
	told[0] = '\0';
	return sb_profiles_load(&o, err);
}

static struct sb_profiles *
load(const struct tmpdir *t, const char *user, const char *project, struct sb_error *err)
{
	consents = true;
	return load_from(t, "config.yaml", user, project, err);
}

static void
defaults_follow_the_backend(void **state)
{
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_profile) struct sb_profile q = { 0 };
	sb_auto(sb_profile) struct sb_profile l = { 0 };
	struct sb_error err = { 0 };

	ps = load(*state,
		"defaults: {sandbox: box}\n"
		"profiles:\n"
		"  box: {backend: ssh, ssh: {host: h, port: 22}, env: {A: '1', B_TOKEN_FILE: /x}, "
		"exclude: ['*.o'], include: [keep.o]}\n"
		"  mine: {backend: local, persistence: reuse, timeouts: {sync: 5m}}\n",
		"exclude: [node_modules]\n", &err);
	if (!ps)
		fail_msg("%s", err.msg);
	assert_ok(sb_profiles_get(ps, NULL, &p, &err), &err);
	assert_string_equal(p.name, "box");
	assert_int_equal(p.sync_mode, SB_SYNC_MODE_SESSION);
	assert_int_equal(p.persist, SB_PERSIST_TRANSIENT);
	assert_true(p.destroy_on_stop);
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&p.options), "port"), "22");
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&p.env), "A"), "1");
	assert_string_equal(p.exclude.v[1], "node_modules");
	assert_string_equal(p.include.v[0], "keep.o");
	assert_ok(sb_profiles_get(ps, "mine", &q, &err), &err);
	assert_int_equal(q.sync_mode, SB_SYNC_MODE_NONE);
	assert_false(q.destroy_on_stop);
	assert_int_equal(q.sync_timeout_ms, 300000);
	assert_ok(sb_profiles_get(ps, "local", &l, &err), &err);
	assert_false(l.destroy_on_stop);
	assert_fails(sb_profiles_get(ps, "boks", &l, &err), SB_E_PROFILE_NOT_FOUND, &err);
	assert_non_null(strstr(err.msg, "local, box, mine"));
}

static void
every_mistake_is_told_with_its_line(void **state)
{
	static const char *const expect[] = {
		"config.yaml:3: backend: backend \"shh\" is not known: use local, ssh",
		"config.yaml:4: sync_mode: sync mode \"always\" is not known: use none,",
		"config.yaml:5: env: API_TOKEN looks like a secret",
		"config.yaml:6: secret_env: KEY must be a reference: env:NAME or file:/PATH",
		"config.yaml:7: network has no \"allow\": use allow_public_ingress",
		"config.yaml:8: a profile has no \"excludes\": use backend,",
		"config.yaml:9: destroy_on_stop is \"maybe\": use true or false",
		"config.yaml:10: hooks has no \"start\": use prepare,",
		"config.yaml:11: timeouts has no \"all\"",
		"config.yaml:12: include must be a list",
		"config.yaml:14: profile two has no backend",
		"config.yaml:15: there is no \"profile\" here: use defaults, profiles, controls",
	};
	struct sb_error err = { 0 };
	sb_auto(sb_profiles) struct sb_profiles *ps = load(*state,
		"profiles:\n"
		"  one:\n"
		"    backend: shh\n"
		"    sync_mode: always\n"
		"    env: {API_TOKEN: x}\n"
		"    secret_env: {KEY: hunter2}\n"
		"    network: {allow: true}\n"
		"    excludes: [a]\n"
		"    destroy_on_stop: maybe\n"
		"    hooks: {start: [x]}\n"
		"    timeouts: {all: 3s}\n"
		"    include: x\n"
		"  two:\n"
		"    persistence: reuse\n"
		"profile: {}\n",
		NULL, &err);

	assert_null(ps);
	assert_int_equal(err.code, SB_E_INVAL);
	assert_non_null(strstr(err.msg, "config.yaml:3: "));
	for (size_t i = 0; i < sizeof expect / sizeof expect[0]; i++)
		if (!strstr(told, expect[i]))
			fail_msg("\"%s\" is not in:\n%s", expect[i], told);
	assert_null(strstr(told, "hunter2"));
}

static void
mistakes_of_form_too(void **state)
{
	static const char *const bad[] = { "profiles: ]", "- a\n",
		"profiles: {a: {backend: ssh, backend: ssh}}", "profiles: {'a b': {backend: ssh}}",
		"defaults: {sandbox: none-such}", "profiles: {a: {backend: ssh, local: {}}}",
		"profiles: {a: {backend: [ssh]}}" };
	struct sb_error err = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		sb_auto(sb_profiles) struct sb_profiles *ps = load(*state, bad[i], NULL, &err);

		if (ps || !strstr(told, "config.yaml:1: "))
			fail_msg("%s: %s", bad[i], told);
	}
}

/* Whatever an option makes run or be read on the user's machine is the user's alone to set. */
static void
options_that_touch_this_machine_are_the_users(void **state)
{
	static const struct {
		enum sb_backend backend;
		const char *names;
	} want[] = { { SB_BACKEND_SSH, "identity config known_hosts rsh accept_new_host_key " },
		{ SB_BACKEND_HOST, "url token_file ca_file runtime " },
		{ SB_BACKEND_DOCKER, "sync ssh_config cap_add runtime " } };
	struct sb_error err = { 0 };
	struct sb_registry *r = sb_registry_builtin(NULL, &err);

	(void)state;
	assert_non_null(r);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct sb_provider *p = sb_registry_get(r, want[i].backend, NULL);
		char names[200] = "";

		for (const struct sb_provider_option *o = p ? p->ops->options : NULL; o && o->name;
			o++)
			if (o->user_only)
				(void)snprintf(names + strlen(names), sizeof names - strlen(names),
					"%s ", o->name);
		if (p)
			assert_string_equal(names, want[i].names);
	}
	sb_registry_free(r);
}

static void
a_project_cannot_run_or_read_things_here(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_profiles) struct sb_profiles *ps =
		load(*state, "profiles: {mine: {backend: local}}\n",
			"sandbox: theirs\n"
			"profiles:\n"
			"  theirs:\n"
			"    backend: local\n"
			"    hooks: {ready: [sh, -c, evil]}\n"
			"    secret_env: {A: env:HOME}\n"
			"    dirs: [/etc]\n"
			"  mine: {backend: local}\n",
			&err);
	static const char *const lines[] = { ".sandbox.yaml:5: hooks",
		".sandbox.yaml:6: secret_env", ".sandbox.yaml:7: dirs",
		".sandbox.yaml:8: profile mine is defined already" };

	assert_null(ps);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (!strstr(told, lines[i]))
			fail_msg("\"%s\" is not in:\n%s", lines[i], told);
}

static void
a_project_chooses_or_disables(void **state)
{
	static const char user[] =
		"defaults: {sandbox: a}\nprofiles: {a: {backend: ssh}, b: {backend: fly}}\n";
	struct sb_error err = { 0 };
	sb_auto(sb_profiles) struct sb_profiles *ps = load(*state, user, "sandbox: b\n", &err);
	sb_auto(sb_profiles) struct sb_profiles *off = NULL;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_profile) struct sb_profile q = { 0 };

	assert_non_null(ps);
	assert_string_equal(sb_profiles_chosen(ps), "b");
	off = load(*state, user, "disabled: true\n", &err);
	assert_non_null(off);
	assert_ok(sb_profiles_get(off, NULL, &p, &err), &err);
	assert_int_equal(p.backend, SB_BACKEND_LOCAL);
	assert_fails(sb_profiles_get(off, "a", &q, &err), SB_E_STATE, &err);
}

static void
a_project_counts_with_consent_to_its_content(void **state)
{
	static const char user[] = "profiles: {a: {backend: ssh}}\n";
	static const char *const weaker[] = { "disabled: true\n", "sandbox: a\n",
		"sandbox: mine\nprofiles: {mine: {backend: local}}\n",
		"sandbox: b\nprofiles: {b: {backend: ssh, ssh: {host: evil.example}}}\n",
		"sandbox: c\nprofiles: {c: {backend: host, network: {allow_outbound: true}}}\n",
		"exclude: ['*']\n", "include: [x]\n" };
	static const char *const words[] = { "disables the sandbox", "chooses the profile: a",
		"with your rights, without a sandbox", "option: host=evil.example",
		"may reach the network", "does not sync: *", "syncs nevertheless: x" };
	struct sb_error err = { 0 };

	for (size_t i = 0; i < sizeof weaker / sizeof weaker[0]; i++) {
		sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
		sb_auto(sb_profiles) struct sb_profiles *again = NULL;

		consents = false;
		asked = 0;
		ps = load_from(*state, "config.yaml", user, weaker[i], &err);
		assert_null(ps);
		assert_int_equal(err.code, SB_E_UNTRUSTED);
		assert_non_null(strstr(err.msg, "project/.sandbox.yaml"));
		assert_non_null(strstr(err.msg, "sbctl trust"));
		assert_int_equal(asked, 1);
		assert_int_equal(shown.changed, i > 0);
		if (!strstr(effects, words[i]))
			fail_msg("\"%s\" is not in:\n%s", words[i], effects);
		ps = load(*state, user, weaker[i], &err);
		assert_non_null(ps);
		/* It is on record now: nobody is asked. */
		consents = false;
		again = load_from(*state, "config.yaml", user, weaker[i], &err);
		assert_non_null(again);
		assert_int_equal(asked, 2);
	}
}

static void
a_file_that_says_nothing_needs_no_consent(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;

	consents = false;
	asked = 0;
	ps = load_from(*state, "config.yaml", "profiles: {}\n", "# nothing\n{}\n", &err);
	assert_non_null(ps);
	assert_int_equal(asked, 0);
}

static void
the_users_file_in_the_workspace_needs_consent(void **state)
{
	static const char user[] =
		"defaults: {sandbox: a}\n"
		"profiles: {a: {backend: local, hooks: {ready: [sh, -c, evil]}}}\n";
	struct sb_error err = { 0 };
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;

	consents = false;
	ps = load_from(*state, "project/config.yaml", user, "{}\n", &err);
	assert_null(ps);
	assert_int_equal(err.code, SB_E_UNTRUSTED);
	assert_non_null(strstr(effects, "word: evil"));
	assert_non_null(strstr(err.msg, "project/config.yaml"));
}

static void
a_linked_project_file_is_refused(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	char path[300];

	sb_profiles_free(load(t, "profiles: {}\n", "exclude: [a]\n", &err));
	(void)snprintf(path, sizeof path, "%s/project/.sandbox.yaml", t->path);
	assert_int_equal(unlink(path), 0);
	tmpdir_file(t, "elsewhere", "exclude: [a]\n");
	assert_int_equal(symlink("../elsewhere", path), 0);
	{
		struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
		char dir[300];

		(void)snprintf(dir, sizeof dir, "%s/project", t->path);
		o.user_file = "";
		o.project_dir = dir;
		o.on_consent = answer;
		assert_null(sb_profiles_load(&o, &err));
		assert_int_equal(err.code, SB_E_DENIED);
		assert_non_null(strstr(err.msg, "is a symlink"));
	}
}

static void
secrets_come_by_reference_only(void **state)
{
	const struct tmpdir *t = *state;
	sb_autofree char *file = NULL;
	const char *refs[3] = { NULL };
	struct sb_strlist got = { 0 };
	struct sb_error err = { 0 };

	tmpdir_file(t, "key", "s3cr3t\n");
	assert_true(asprintf(&file, "Z=file:%s/key", t->path) > 0);
	refs[0] = file;
	refs[1] = "A=env:SB_TEST_SECRET";
	(void)unsetenv("SB_TEST_SECRET");
	assert_fails(sb_secrets_resolve(refs, &got, &err), SB_E_SECRET, &err);
	assert_non_null(strstr(err.msg, "env:SB_TEST_SECRET"));
	(void)setenv("SB_TEST_SECRET", "other", 1);
	assert_ok(sb_secrets_resolve(refs, &got, &err), &err);
	assert_string_equal(got.v[0], "A=other");
	assert_string_equal(got.v[1], "Z=s3cr3t");
	assert_null(got.v[2]);
	sb_secrets_free(&got);
	refs[0] = "A=s3cr3t";
	refs[1] = NULL;
	assert_fails(sb_secrets_resolve(refs, &got, &err), SB_E_SECRET, &err);
	assert_null(strstr(err.msg, "s3cr3t"));
}

int
main(void)
{
#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		ON_DISK(defaults_follow_the_backend),
		ON_DISK(every_mistake_is_told_with_its_line),
		ON_DISK(mistakes_of_form_too),
		cmocka_unit_test(options_that_touch_this_machine_are_the_users),
		ON_DISK(a_project_cannot_run_or_read_things_here),
		ON_DISK(a_project_chooses_or_disables),
		ON_DISK(a_project_counts_with_consent_to_its_content),
		ON_DISK(a_file_that_says_nothing_needs_no_consent),
		ON_DISK(the_users_file_in_the_workspace_needs_consent),
		ON_DISK(a_linked_project_file_is_refused),
		ON_DISK(secrets_come_by_reference_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
