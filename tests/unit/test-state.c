/* SPDX-License-Identifier: MIT */
/* Words of the contract, the state of a sandbox on disk, the registry. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <provider/provider.h>
#include <sb/registry.h>

#include "tests/lib/unit.h"

static void
words_are_exact_and_name_the_others(void **state)
{
	struct sb_error err = { 0 };
	enum sb_backend b = SB_BACKEND_SSH;
	enum sb_sync_mode m;

	(void)state;
	assert_ok(sb_backend_parse("host", &b, &err), &err);
	assert_int_equal(b, SB_BACKEND_HOST);
	assert_fails(sb_backend_parse("Host", &b, &err), SB_E_BACKEND_INVALID, &err);
	assert_non_null(strstr(err.msg, "\"Host\""));
	assert_non_null(strstr(err.msg, "daytona"));
	assert_int_equal(b, SB_BACKEND_HOST);
	assert_fails(sb_backend_parse("", &b, &err), SB_E_BACKEND_INVALID, &err);
	assert_fails(sb_sync_mode_parse("both", &m, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "session-bidirectional"));
	assert_string_equal(sb_life_name((enum sb_life)99), "?");
	assert_string_equal(sb_perm_op_name(SB_PERM_OP_TERMINAL), "terminal/create");
	for (int i = 0; i < SB_LIFE_COUNT; i++) {
		enum sb_life l = SB_LIFE_COUNT;

		assert_ok(sb_life_parse(sb_life_name((enum sb_life)i), &l, &err), &err);
		assert_int_equal(l, i);
		assert_true(sb_life_allows((enum sb_life)i, (enum sb_life)i));
	}
}

static void
no_state_with_work_leads_past_the_sync_back(void **state)
{
	(void)state;
	assert_false(sb_life_allows(SB_LIFE_ACTIVE, SB_LIFE_DESTROYED));
	assert_false(sb_life_allows(SB_LIFE_ACTIVE, SB_LIFE_STOPPED));
	assert_false(sb_life_allows(SB_LIFE_ACTIVE, SB_LIFE_CREATING));
	assert_false(sb_life_allows(SB_LIFE_UNSYNCED, SB_LIFE_CREATING));
	assert_false(sb_life_allows(SB_LIFE_STOPPING, SB_LIFE_ACTIVE));
	assert_true(sb_life_allows(SB_LIFE_STOPPING, SB_LIFE_UNSYNCED));
	assert_true(sb_life_allows(SB_LIFE_UNSYNCED, SB_LIFE_STOPPING));
	assert_true(sb_life_allows(SB_LIFE_DESTROYED, SB_LIFE_CREATING));
	assert_false(sb_life_allows(SB_LIFE_DESTROYED, SB_LIFE_ACTIVE));
	assert_false(sb_life_allows((enum sb_life) - 1, SB_LIFE_ACTIVE));
}

static void
fill(struct sb_state *s)
{
	*s = (struct sb_state)SB_STATE_INIT;
	s->sandbox_id = strdup("sb-1");
	s->backend = SB_BACKEND_SSH;
	s->life = SB_LIFE_UNSYNCED;
	s->profile = strdup("box");
	s->local_root = strdup("/w/na\xffme\n");
	s->runtime_root = strdup("there");
	sb_strlist_add(&s->local_dirs, "/x");
	sb_strlist_add(&s->local_dirs, "/y\x80");
	sb_strlist_add(&s->runtime_dirs, "x");
	sb_strlist_add(&s->runtime_dirs, "y");
	s->sync_mode = SB_SYNC_MODE_TURN;
	s->persist = SB_PERSIST_REUSE;
	s->destroy_on_stop = true;
	s->permissions = SB_PERM_MODE_APPROVE_ALL;
	s->provider_state = strdup("{\"version\":1,\"z\":[1,2]}");
	s->prepared_at = 1700000000;
	s->owner_pid = 42;
	s->owner_start = 1234567890123ull;
	s->exit_code = 3;
	s->unknown = strdup("{\"later\":{\"a\":[true]}}");
}

static void
assert_filled(const struct sb_state *s)
{
	assert_string_equal(s->sandbox_id, "sb-1");
	assert_int_equal(s->backend, SB_BACKEND_SSH);
	assert_int_equal(s->life, SB_LIFE_UNSYNCED);
	assert_string_equal(s->local_root, "/w/na\xffme\n");
	assert_string_equal(s->local_dirs.v[1], "/y\x80");
	assert_null(s->local_dirs.v[2]);
	assert_int_equal(s->sync_mode, SB_SYNC_MODE_TURN);
	assert_true(s->destroy_on_stop);
	assert_string_equal(s->provider_state, "{\"version\":1,\"z\":[1,2]}");
	assert_true(s->owner_start == 1234567890123ull);
	assert_int_equal(s->exit_code, 3);
	assert_string_equal(s->unknown, "{\"later\":{\"a\":[true]}}");
	assert_null(s->instance_id);
}

static void
state_comes_back_with_what_it_does_not_know(void **state)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	sb_auto(sb_state) struct sb_state back = SB_STATE_INIT;
	sb_auto(sb_state) struct sb_state copy = SB_STATE_INIT;
	sb_autofree char *text = NULL;
	struct sb_error err = { 0 };

	(void)state;
	fill(&s);
	assert_ok(sb_state_check(&s, &err), &err);
	assert_ok(sb_state_encode(&s, &text, &err), &err);
	assert_non_null(strstr(text, "\"runtime_additional_dirs\""));
	assert_non_null(strstr(text, "\"later\""));
	assert_null(strstr(text, "instance_id"));
	assert_ok(sb_state_decode(text, strlen(text), &back, &err), &err);
	assert_filled(&back);
	assert_ok(sb_state_copy(&back, &copy, &err), &err);
	sb_state_free(&back);
	assert_filled(&copy);
}

static void
damaged_states_are_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *names;
	} bad[] = {
		{ "", SB_E_CORRUPT, "JSON" },
		{ "[]", SB_E_CORRUPT, "version" },
		{ "{}", SB_E_CORRUPT, "version" },
		{ "{\"version\":\"1\"}", SB_E_CORRUPT, "version" },
		{ "{\"version\":2}", SB_E_VERSION, "newer" },
		{ "{\"version\":1,\"backend\":\"vm\"}", SB_E_CORRUPT, "vm" },
		{ "{\"version\":1,\"state\":7}", SB_E_CORRUPT, "state" },
		{ "{\"version\":1,\"sandbox_id\":7}", SB_E_CORRUPT, "sandbox_id" },
		{ "{\"version\":1,\"sandbox_id\":{\"hex\":\"0\"}}", SB_E_CORRUPT, "sandbox_id" },
		{ "{\"version\":1,\"sandbox_id\":{\"hex\":\"00\"}}", SB_E_CORRUPT, "sandbox_id" },
		{ "{\"version\":1,\"options\":[1]}", SB_E_CORRUPT, "options" },
		{ "{\"version\":1,\"provider_state\":\"x\"}", SB_E_CORRUPT, "provider_state" },
		{ "{\"version\":1,\"destroy_on_stop\":1}", SB_E_CORRUPT, "destroy_on_stop" },
		{ "{\"version\":1,\"exit_code\":70000}", SB_E_CORRUPT, "exit_code" },
		{ "{\"version\":1,\"version\":1}", SB_E_CORRUPT, "JSON" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", SB_E_LIMIT, "nested" },
	};
	struct sb_state s = SB_STATE_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct sb_error err = { 0 };

		assert_fails(sb_state_decode(bad[i].text, strlen(bad[i].text), &s, &err),
			bad[i].code, &err);
		if (!strstr(err.msg, bad[i].names))
			fail_msg("%s: \"%s\" does not name %s", bad[i].text, err.msg, bad[i].names);
	}
}

static void
incomplete_states_are_named(void **state)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error err = { 0 };
	char id[SB_SANDBOX_ID_MAX + 1];

	(void)state;
	assert_fails(sb_state_check(&s, &err), SB_E_INVAL, &err);
	fill(&s);
	free(s.runtime_dirs.v[1]);
	s.runtime_dirs.v[--s.runtime_dirs.n] = NULL;
	assert_fails(sb_state_check(&s, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "2 local directories for 1"));
	assert_ok(sb_sandbox_id_new(id, &err), &err);
	assert_true(sb_sandbox_id_ok(id));
	assert_false(sb_sandbox_id_ok("a/b"));
	assert_false(sb_sandbox_id_ok(".."));
	assert_false(sb_sandbox_id_ok(""));
	assert_false(sb_sandbox_id_ok(NULL));
}

/* A provider that does nothing. */
static int
no_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	(void)p, (void)profile, (void)out, (void)err;
	return 0;
}

static int
no_prepare(struct sb_provider *p, const struct sb_prepare_request *req, const struct sb_call *call,
	struct sb_prepared *out, struct sb_error *err)
{
	(void)p, (void)req, (void)call, (void)out;
	return sb_fail(err, SB_E_UNSUPPORTED, "no");
}

static int
no_sync(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	(void)p, (void)s, (void)o, (void)call, (void)out, (void)err;
	return 0;
}

static int
no_destroy(struct sb_provider *p, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	(void)p, (void)s, (void)discard, (void)call, (void)err;
	return 0;
}

static int freed;

static void
count_free(struct sb_provider *p)
{
	(void)p;
	freed++;
}

#define OPS(b) \
	{ \
		.version = SB_PROVIDER_VERSION, .name = "nothing", .backend = b, \
		.capabilities = no_capabilities, .prepare = no_prepare, \
		.sync_to_runtime = no_sync, .sync_from_runtime = no_sync, .destroy = no_destroy, \
		.free = count_free \
	}

static void
the_default_registry_is_one(void **state)
{
	struct sb_error err = { 0 };
	struct sb_registry *r = sb_registry_default(&err);

	(void)state;
	assert_non_null(r);
	assert_ptr_equal(sb_registry_default(&err), r);
	assert_non_null(sb_registry_get(r, SB_BACKEND_LOCAL, &err));
	assert_non_null(sb_registry_get(r, SB_BACKEND_HOST, &err));
}

static void
registry_keeps_one_a_backend(void **state)
{
	static const struct sb_provider_ops ssh = OPS(SB_BACKEND_SSH), fly = OPS(SB_BACKEND_FLY);
	struct sb_provider a = { &ssh }, b = { &ssh }, c = { &fly }, *both[] = { &a, &b },
			   **list = NULL;
	struct sb_error err = { 0 };
	struct sb_registry *r = sb_registry_new(both, 2, &err);
	size_t n = 0;

	(void)state;
	freed = 0;
	assert_null(r);
	assert_int_equal(err.code, SB_E_PROVIDER_EXISTS);
	assert_int_equal(freed, 0);
	r = sb_registry_new(both, 1, &err);
	assert_non_null(r);
	assert_fails(sb_registry_add(r, &b, false, &err), SB_E_PROVIDER_EXISTS, &err);
	assert_ok(sb_registry_add(r, &c, false, &err), &err);
	assert_ptr_equal(sb_registry_get(r, SB_BACKEND_SSH, &err), &a);
	assert_ok(sb_registry_add(r, &b, true, &err), &err);
	assert_ptr_equal(sb_registry_get(r, SB_BACKEND_SSH, &err), &b);
	assert_null(sb_registry_get(r, SB_BACKEND_E2B, &err));
	assert_int_equal(err.code, SB_E_PROVIDER_MISSING);
	assert_non_null(strstr(err.msg, "e2b"));
	assert_non_null(strstr(err.msg, "ssh, fly"));
	assert_ok(sb_registry_list(r, &list, &n, &err), &err);
	assert_int_equal(n, 2);
	list[0] = NULL;
	assert_ptr_equal(sb_registry_get(r, SB_BACKEND_SSH, &err), &b);
	free(list);
	sb_registry_free(r);
	assert_int_equal(freed, 3);
	assert_null(sb_registry_get(NULL, SB_BACKEND_LOCAL, &err));
	assert_int_equal(err.code, SB_E_PROVIDER_MISSING);
	sb_registry_free(NULL);
}

static void
registry_refuses_what_is_no_provider(void **state)
{
	struct sb_error err = { 0 };
	struct sb_registry *r = sb_registry_new(NULL, 0, &err);
	struct sb_provider_ops ops = OPS(SB_BACKEND_SSH);
	struct sb_provider empty = { NULL }, p = { &ops };

	(void)state;
	assert_fails(sb_registry_add(r, NULL, false, &err), SB_E_PROVIDER_NULL, &err);
	assert_fails(sb_registry_add(r, &empty, false, &err), SB_E_PROVIDER_NULL, &err);
	ops.destroy = NULL;
	assert_fails(sb_registry_add(r, &p, false, &err), SB_E_PROVIDER_NULL, &err);
	ops.destroy = no_destroy;
	ops.backend = SB_BACKEND_COUNT;
	assert_fails(sb_registry_add(r, &p, false, &err), SB_E_BACKEND_INVALID, &err);
	ops.backend = SB_BACKEND_SSH;
	ops.version = 99;
	assert_fails(sb_registry_add(r, &p, false, &err), SB_E_VERSION, &err);
	sb_registry_free(r);
}

static void *
churn(void *arg)
{
	static const struct sb_provider_ops ops[] = { OPS(SB_BACKEND_SSH), OPS(SB_BACKEND_FLY),
		OPS(SB_BACKEND_E2B) };
	struct sb_provider *p = calloc(300, sizeof *p);

	for (int i = 0; p && i < 300; i++) {
		p[i].ops = &ops[i % 3];
		(void)sb_registry_add(arg, &p[i], true, NULL);
		if (!sb_registry_get(arg, SB_BACKEND_SSH, NULL))
			return NULL;
	}
	return p;
}

static void
registry_serves_many_threads(void **state)
{
	struct sb_registry *r = sb_registry_new(NULL, 0, NULL);
	pthread_t t[4];
	void *p[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, r), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], &p[i]), 0);
		assert_non_null(p[i]);
	}
	freed = 0;
	sb_registry_free(r);
	assert_int_equal(freed, 1200);
	for (int i = 0; i < 4; i++)
		free(p[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_exact_and_name_the_others),
		cmocka_unit_test(no_state_with_work_leads_past_the_sync_back),
		cmocka_unit_test(state_comes_back_with_what_it_does_not_know),
		cmocka_unit_test(damaged_states_are_refused),
		cmocka_unit_test(incomplete_states_are_named),
		cmocka_unit_test(registry_keeps_one_a_backend),
		cmocka_unit_test(the_default_registry_is_one),
		cmocka_unit_test(registry_refuses_what_is_no_provider),
		cmocka_unit_test(registry_serves_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
