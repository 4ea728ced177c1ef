/* SPDX-License-Identifier: MIT */
/*
 * The life of a sandbox, over a provider that writes down what it is asked and fails where it is
 * told to.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/str.h>
#include <provider/provider.h>
#include <sb/session.h>
#include <session/session-priv.h>

#include "tests/lib/tmpdir.h"

/* Each thread has a provider's memory of its own. */
static _Thread_local char asked[4096];    /* what the provider was asked, in order */
static _Thread_local const char *fail_at; /* the request that fails */
static _Thread_local bool exists;         /* the sandbox is there */
static _Thread_local char last_env[256];
static _Thread_local char last_excludes[256];

static int
ask(const char *what, struct sb_error *err)
{
	(void)strncat(asked, what, sizeof asked - strlen(asked) - 1);
	(void)strncat(asked, " ", sizeof asked - strlen(asked) - 1);
	return fail_at && strcmp(fail_at, what) == 0 ?
		sb_fail(err, SB_E_CONNECT, "%s: made to fail", what) :
		0;
}

static int
f_capabilities(struct sb_provider *p, const struct sb_profile *profile, struct sb_capabilities *out,
	struct sb_error *err)
{
	(void)p, (void)profile, (void)err;
	out->syncs = true;
	return 0;
}

/* What is launched ends at once, with the code that its command names. */
struct f_handle {
	struct sb_handle base;
	int code;
};

static int
h_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out, struct sb_error *err)
{
	(void)call, (void)err;
	*out = (struct sb_ended){ .code = ((struct f_handle *)h)->code };
	return 0;
}

static char *
h_tail(const struct sb_handle *h)
{
	(void)h;
	return strdup("key is s3cr3t-value, really s3cr3t-value");
}

static void
h_free(struct sb_handle *h)
{
	free(h);
}

static const struct sb_handle_ops h_ops = {
	.version = SB_LAUNCHER_VERSION, .wait = h_wait, .stderr_tail = h_tail, .free = h_free
};

static int
l_launch(struct sb_launcher *l, const struct sb_launch_spec *spec, const struct sb_call *call,
	struct sb_handle **out, struct sb_error *err)
{
	struct f_handle *h = calloc(1, sizeof *h);

	(void)l, (void)call, (void)err;
	h->base.ops = &h_ops;
	h->code = (int)strtol(spec->argv[0], NULL, 10);
	last_env[0] = '\0';
	for (size_t i = 0; spec->env && spec->env[i]; i++) {
		(void)strncat(last_env, spec->env[i], sizeof last_env - strlen(last_env) - 1);
		(void)strncat(last_env, " ", sizeof last_env - strlen(last_env) - 1);
	}
	for (size_t i = 0; spec->secret_env && spec->secret_env[i]; i++)
		(void)strncat(last_env, spec->secret_env[i],
			sizeof last_env - strlen(last_env) - 1);
	*out = &h->base;
	return 0;
}

static void
l_free(struct sb_launcher *l)
{
	free(l);
}

static void
t_free(struct sb_tool_host *t)
{
	free(t);
}

static int
f_prepare(struct sb_provider *p, const struct sb_prepare_request *req, const struct sb_call *call,
	struct sb_prepared *out, struct sb_error *err)
{
	static const struct sb_launcher_ops l_ops = { SB_LAUNCHER_VERSION, l_launch, l_free };
	static const struct sb_tool_host_ops t_ops = { .version = SB_TOOLHOST_VERSION,
		.free = t_free };
	int r = ask(req->instance_id ? "attach" : "prepare", err);

	(void)p, (void)call;
	last_excludes[0] = '\0';
	for (size_t i = 0; req->excludes && req->excludes[i]; i++) {
		(void)strncat(last_excludes, req->excludes[i],
			sizeof last_excludes - strlen(last_excludes) - 1);
		(void)strncat(last_excludes, " ", sizeof last_excludes - strlen(last_excludes) - 1);
	}
	if (r < 0)
		return r;
	exists = true;
	r = sb_state_from_request(req, &out->state, err);
	free(out->state.instance_id);
	out->state.instance_id = strdup("i-1");
	out->state.runtime_root = strdup("there");
	out->launcher = calloc(1, sizeof *out->launcher);
	out->launcher->ops = &l_ops;
	out->tools = calloc(1, sizeof *out->tools);
	out->tools->ops = &t_ops;
	return r;
}

static int
f_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	char what[32];

	(void)p, (void)s, (void)call, (void)out;
	(void)snprintf(what, sizeof what, "to:%s", sb_when_name(o->reason));
	return ask(what, err);
}

static int
f_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	char what[32];

	(void)p, (void)s, (void)call;
	(void)snprintf(what, sizeof what, "from:%s", sb_when_name(o->reason));
	out->files_synced = 7;
	return ask(what, err);
}

static int
f_destroy(struct sb_provider *p, const struct sb_state *s, bool discard, const struct sb_call *call,
	struct sb_error *err)
{
	int r = ask(discard ? "discard" : "destroy", err);

	(void)p, (void)s, (void)call;
	if (r == 0)
		exists = false;
	return r;
}

static int
f_find(struct sb_provider *p, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	int r = ask("find", err);

	(void)p, (void)req, (void)call;
	if (r == 0 && !exists)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "not there");
	if (r == 0) {
		out->instance_id = strdup("i-1");
		out->runtime_root = strdup("there");
	}
	return r;
}

static const struct sb_provider_ops f_ops = { .version = SB_PROVIDER_VERSION,
	.name = "fake",
	.backend = SB_BACKEND_FLY,
	.capabilities = f_capabilities,
	.prepare = f_prepare,
	.sync_to_runtime = f_to,
	.sync_from_runtime = f_from,
	.destroy = f_destroy,
	.find = f_find };

struct world {
	struct tmpdir tmp;
	struct sb_provider provider;
	struct sb_registry *registry;
	struct sb_keeper *k;
	struct sb_profile profile;
	char seen[8192]; /* kinds of events */
};

static void
on_event(const struct sb_event *ev, void *arg)
{
	struct world *w = arg;

	(void)strncat(w->seen, ev->kind, sizeof w->seen - strlen(w->seen) - 1);
	(void)strncat(w->seen, " ", sizeof w->seen - strlen(w->seen) - 1);
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct sb_keeper_opts o = SB_KEEPER_OPTS_INIT;
	struct sb_provider *p;
	struct sb_error err = { 0 };

	tmpdir_make(&w->tmp);
	w->provider.ops = &f_ops;
	p = &w->provider;
	w->registry = sb_registry_new(&p, 1, &err);
	o.registry = w->registry;
	o.state_dir = w->tmp.path;
	o.on_event = on_event;
	o.event_arg = w;
	w->k = sb_keeper_new(&o, &err);
	assert_non_null(w->k);
	assert_ok(sb_profile_default(SB_BACKEND_FLY, "p", &w->profile, &err), &err);
	asked[0] = '\0';
	fail_at = NULL;
	exists = false;
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	sb_keeper_free(w->k);
	sb_registry_free(w->registry);
	sb_profile_free(&w->profile);
	tmpdir_remove(&w->tmp);
	free(w);
	return 0;
}

static int
start(struct world *w, const char *id, struct sb_sandbox **out, struct sb_error *err)
{
	struct sb_start_opts o = SB_START_OPTS_INIT;

	o.profile = &w->profile;
	o.sandbox_id = id;
	o.local_root = w->tmp.path;
	return sb_sandbox_start(w->k, &o, NULL, out, NULL, err);
}

static void
life_is(struct world *w, const char *id, enum sb_life want)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error err = { 0 };

	assert_ok(sb_keeper_load(w->k, id, &s, &err), &err);
	assert_string_equal(sb_life_name(s.life), sb_life_name(want));
}

static int
run(struct sb_sandbox *sb, const char *code, struct sb_error *err)
{
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	const char *argv[] = { code, NULL };
	struct sb_handle *h = NULL;
	struct sb_ended end = { 0 };
	int r;

	spec.argv = argv;
	r = sb_sandbox_launch(sb, &spec, NULL, &h, err);
	if (r == 0)
		r = sb_handle_wait(h, NULL, &end, err);
	sb_handle_free(h);
	return r < 0 ? r : end.code;
}

static int
stop(struct sb_sandbox *sb, struct sb_error *err)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };

	return sb_sandbox_stop(sb, NULL, NULL, &res, err);
}

static void
a_good_run_goes_in_order(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(start(w, "one", &sb, &err), &err);
	life_is(w, "one", SB_LIFE_ACTIVE);
	assert_int_equal(run(sb, "0", &err), 0);
	assert_ok(stop(sb, &err), &err);
	assert_string_equal(asked, "prepare to:start from:stop destroy ");
	life_is(w, "o", SB_LIFE_DESTROYED);
	assert_non_null(strstr(w->seen,
		"sandbox.prepare.start sandbox.prepare.complete sandbox.sync.start "
		"sandbox.sync.complete "
		"sandbox.transport.connect sandbox.transport.disconnect "));
	assert_ok(stop(sb, &err), &err);
	assert_string_equal(asked, "prepare to:start from:stop destroy ");
}

static void
a_failed_agent_is_a_crash(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(start(w, "one", &sb, &err), &err);
	assert_int_equal(run(sb, "9", &err), 9);
	assert_ok(stop(sb, &err), &err);
	assert_string_equal(asked, "prepare to:start from:crash destroy ");
	assert_int_equal(sb_sandbox_state(sb)->exit_code, 9);
}

static void
modes_are_obeyed(void **state)
{
	struct world *w = *state;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	struct sb_sync_result res = { 0 };

	w->profile.sync_mode = SB_SYNC_MODE_NONE;
	assert_ok(start(w, "none", &sb, &err), &err);
	assert_ok(sb_sandbox_turn(sb, NULL, &res, &err), &err);
	assert_ok(stop(sb, &err), &err);
	assert_string_equal(asked, "prepare destroy ");
	sb_sandbox_free(sb);
	asked[0] = '\0';
	w->profile.sync_mode = SB_SYNC_MODE_TURN;
	assert_ok(start(w, "turn", &sb, &err), &err);
	assert_ok(sb_sandbox_turn(sb, NULL, &res, &err), &err);
	assert_ok(stop(sb, &err), &err);
	assert_string_equal(asked, "prepare to:start to:turn from:stop destroy ");
	sb_sandbox_free(sb);
}

static void
count_outcome(const struct sb_state *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	(void)s, (void)res, (void)err;
	(void)snprintf(arg, 32, "%s", result);
}

/* What another process, long dead, owned. */
static void
orphan(struct world *w, const char *id)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(sb_sandbox_open(w->k, id, &sb, &err), &err);
	assert_ok(sb_record_lock(sb, 0, &err), &err);
	sb->state.owner_start ^= 1;
	assert_ok(sb_record_save(sb, sb->state.life, &err), &err);
}

static int
recover(struct world *w, const char *id, char *result)
{
	struct sb_error err = { 0 };

	asked[0] = '\0';
	return sb_keeper_recover(w->k, id, NULL, count_outcome, result, &err);
}

static void
a_failed_sync_back_keeps_the_sandbox(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	assert_ok(start(w, "one", &sb, &err), &err);
	fail_at = "from:stop";
	assert_fails(stop(sb, &err), SB_E_CONNECT, &err);
	assert_non_null(strstr(err.msg, "sbctl recover one"));
	assert_null(strstr(asked, "destroy"));
	life_is(w, "one", SB_LIFE_UNSYNCED);
	fail_at = "from:crash";
	assert_int_equal(recover(w, "one", result), 1);
	assert_string_equal(result, "failed");
	assert_true(exists);
	fail_at = NULL;
	assert_int_equal(recover(w, "one", result), 0);
	assert_string_equal(asked, "from:crash destroy ");
	assert_string_equal(result, "done");
	life_is(w, "one", SB_LIFE_DESTROYED);
	assert_int_equal(recover(w, NULL, result), 0);
	assert_string_equal(asked, "");
	assert_string_equal(result, "nothing");
}

static void
recovery_syncs_first_and_leaves_the_living_alone(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	assert_ok(start(w, "one", &sb, &err), &err);
	assert_int_equal(recover(w, NULL, result), 0);
	assert_string_equal(result, "owned");
	assert_string_equal(asked, "");
	orphan(w, "one");
	assert_int_equal(recover(w, NULL, result), 0);
	assert_string_equal(asked, "from:crash destroy ");
}

static void
a_crash_while_creating_is_found(void **state)
{
	struct world *w = *state;
	struct sb_error err = { 0 };
	char result[32];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		/* Prepared over there, but this process dies before it hears of it. */
		struct sb_sandbox *sb = NULL;

		fail_at = "prepare";
		(void)start(w, "one", &sb, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)err;
	{
		sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
		struct sb_error e = { 0 };

		fail_at = NULL;
		assert_ok(start(w, "two", &sb, &e), &e);
		assert_ok(sb_record_lock(sb, 0, &e), &e);
		sb->state.life = SB_LIFE_CREATING;
		free(sb->state.instance_id);
		sb->state.instance_id = NULL;
		sb->state.owner_start ^= 1;
		assert_ok(sb_record_save(sb, SB_LIFE_CREATING, &e), &e);
	}
	assert_int_equal(recover(w, "two", result), 0);
	assert_string_equal(asked, "find discard ");
	life_is(w, "two", SB_LIFE_DESTROYED);
}

static void
creating_is_on_record_before_the_provider_is_asked(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };
	char result[32];

	fail_at = "prepare";
	assert_fails(start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_null(sb);
	/* The provider was asked to take away what it may have made; that worked. */
	assert_string_equal(asked, "prepare discard ");
	life_is(w, "one", SB_LIFE_DESTROYED);
	fail_at = "to:start";
	asked[0] = '\0';
	assert_fails(start(w, "one", &sb, &err), SB_E_CONNECT, &err);
	assert_string_equal(asked, "prepare to:start discard ");
	fail_at = NULL;
	assert_int_equal(recover(w, NULL, result), 0);
	asked[0] = '\0';
	assert_ok(start(w, "one", &sb, &err), &err);
	assert_string_equal(asked, "prepare to:start ");
}

static void
a_kept_sandbox_is_used_again(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *again = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };

	w->profile.persist = SB_PERSIST_REUSE;
	w->profile.destroy_on_stop = false;
	assert_ok(start(w, "one", &sb, &err), &err);
	assert_ok(stop(sb, &err), &err);
	life_is(w, "one", SB_LIFE_STOPPED);
	assert_ok(start(w, "one", &again, &err), &err);
	assert_ok(stop(again, &err), &err);
	assert_string_equal(asked, "prepare to:start from:stop attach to:start from:stop ");
	assert_ok(sb_sandbox_destroy(again, false, NULL, &res, &err), &err);
	life_is(w, "one", SB_LIFE_DESTROYED);
	assert_non_null(strstr(asked, "destroy "));
}

static void
work_over_there_is_fetched_before_a_new_start(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *again = NULL;
	struct sb_error err = { 0 };

	assert_ok(start(w, "one", &sb, &err), &err);
	orphan(w, "one");
	fail_at = "from:crash";
	assert_fails(start(w, "one", &again, &err), SB_E_UNSYNCED, &err);
	life_is(w, "one", SB_LIFE_UNSYNCED);
	fail_at = NULL;
	asked[0] = '\0';
	assert_ok(start(w, "one", &again, &err), &err);
	assert_string_equal(asked, "from:crash attach to:start ");
}

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
		(void)sb_texts_add(&out->exclude, "*.tmp", NULL);
		(void)sb_texts_add(&out->env, "FROM_HOOK=1", NULL);
	}
	return 0;
}

static struct sb_keeper *
with_hook(struct world *w, struct sb_hook *h, const char *deny)
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
	struct world *w = *state;
	struct sb_hook h;
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	(void)with_hook(w, &h, "prepare");
	assert_fails(start(w, "a", &sb, &err), SB_E_HOOK_DENIED, &err);
	assert_non_null(strstr(err.msg, "because"));
	assert_null(strstr(asked, "prepare"));
	(void)with_hook(w, &h, "ready");
	assert_fails(start(w, "b", &sb, &err), SB_E_HOOK_DENIED, &err);
	(void)with_hook(w, &h, "sync.before");
	assert_ok(start(w, "c", &sb, &err), &err);
	assert_string_equal(last_excludes, "*.tmp ");
	assert_int_equal(run(sb, "0", &err), 0);
	assert_non_null(strstr(last_env, "FROM_HOOK=1"));
	asked[0] = '\0';
	assert_fails(stop(sb, &err), SB_E_HOOK_DENIED, &err);
	assert_string_equal(asked, "");
	life_is(w, "c", SB_LIFE_UNSYNCED);
	sb_sandbox_free(sb);
	(void)with_hook(w, &h, "stop");
	assert_ok(start(w, "d", &sb, &err), &err);
	assert_ok(stop(sb, &err), &err);
	life_is(w, "d", SB_LIFE_STOPPED);
	assert_true(exists);
	sb_sandbox_free(sb);
}

static void
programs_as_hooks(void **state)
{
	struct world *w = *state;
	char *ok[] = { strdup("sh"), strdup("-c"),
		strdup("grep -q '\"event\":\"prepare\"' && echo '{\"env\": {\"X\": \"y\"}, "
		       "\"exclude\": [\"a\"]}'"),
		NULL };
	char *bad[] = { strdup("sh"), strdup("-c"), strdup("echo not today >&2; exit 3"), NULL };
	struct sb_profile_hook hooks[] = { { strdup("prepare"), ok, 0 },
		{ strdup("ready"), bad, 0 } };
	struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	w->profile.hooks = hooks;
	w->profile.n_hooks = 1;
	assert_ok(start(w, "a", &sb, &err), &err);
	assert_string_equal(last_excludes, "a ");
	assert_int_equal(run(sb, "0", &err), 0);
	assert_non_null(strstr(last_env, "X=y"));
	sb_sandbox_free(sb);
	w->profile.n_hooks = 2;
	assert_fails(start(w, "b", &sb, &err), SB_E_HOOK_DENIED, &err);
	assert_non_null(strstr(err.msg, "not today"));
	w->profile.hooks = NULL;
	w->profile.n_hooks = 0;
	for (int i = 0; i < 3; i++) {
		free(ok[i]);
		free(bad[i]);
	}
	free(hooks[0].event);
	free(hooks[1].event);
}

static void
secrets_reach_the_child_alone(void **state)
{
	struct world *w = *state;
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	const char *argv[] = { "0", NULL };
	struct sb_handle *h = NULL;
	struct sb_error err = { 0 };
	sb_autofree char *tail = NULL, *grep = NULL;

	(void)setenv("SB_TEST_SECRET", "s3cr3t-value", 1);
	assert_ok(sb_texts_add(&w->profile.secret_env, "KEY=env:SB_TEST_SECRET", &err), &err);
	assert_ok(start(w, "one", &sb, &err), &err);
	spec.argv = argv;
	assert_ok(sb_sandbox_launch(sb, &spec, NULL, &h, &err), &err);
	assert_non_null(strstr(last_env, "KEY=s3cr3t-value"));
	tail = sb_handle_stderr_tail(h);
	assert_string_equal(tail, "key is ************, really ************");
	sb_handle_free(h);
	assert_ok(stop(sb, &err), &err);
	assert_true(asprintf(&grep, "grep -rq s3cr3t-value %s", w->tmp.path) > 0);
	{
		FILE *f = popen(grep, "r");

		assert_int_equal(WEXITSTATUS(pclose(f)), 1);
	}
}

static void
cancelled_calls_do_nothing(void **state)
{
	struct world *w = *state;
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
	assert_string_equal(asked, "");
	assert_ok(start(w, "one", &sb, &err), &err);
	assert_fails(sb_sandbox_stop(sb, NULL, &call, &res, &err), SB_E_CANCELED, &err);
	life_is(w, "one", SB_LIFE_UNSYNCED);
	assert_true(exists);
	sb_sandbox_free(sb);
	sb_cancel_free(c);
}

static void
bad_requests_are_named(void **state)
{
	struct world *w = *state;
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
	assert_string_equal(asked, "");
	w->profile.backend = SB_BACKEND_E2B;
	o.local_root = w->tmp.path;
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_PROVIDER_MISSING,
		&err);
	assert_fails(sb_sandbox_open(w->k, "zz", &sb, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	w->profile.backend = SB_BACKEND_FLY;
	assert_ok(sb_texts_add(&w->profile.options, "colour=red", &err), &err);
	assert_fails(sb_sandbox_start(w->k, &o, NULL, &sb, NULL, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "colour"));
}

struct runner {
	struct world *w;
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

		asked[0] = '\0';
		r = start(x->w, id, &sb, &err);
		if (r == 0)
			r = run(sb, x->number % 2 ? "1" : "0", &err);
		if (r >= 0)
			r = stop(sb, &err);
		if (r < 0)
			(void)snprintf(x->wrong, sizeof x->wrong, "%.200s", err.msg);
		else if (strcmp(asked,
				 x->number % 2 ? "prepare to:start from:crash destroy " :
						 "prepare to:start from:stop destroy ") != 0)
			(void)snprintf(x->wrong, sizeof x->wrong, "%.200s", asked);
		sb_sandbox_free(sb);
	}
	return NULL;
}

static void
sandboxes_do_not_disturb_each_other(void **state)
{
	struct world *w = *state;
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_good_run_goes_in_order),
		TEST(a_failed_agent_is_a_crash),
		TEST(modes_are_obeyed),
		TEST(a_failed_sync_back_keeps_the_sandbox),
		TEST(recovery_syncs_first_and_leaves_the_living_alone),
		TEST(a_crash_while_creating_is_found),
		TEST(creating_is_on_record_before_the_provider_is_asked),
		TEST(a_kept_sandbox_is_used_again),
		TEST(work_over_there_is_fetched_before_a_new_start),
		TEST(hooks_deny_exclude_and_set),
		TEST(programs_as_hooks),
		TEST(secrets_reach_the_child_alone),
		TEST(cancelled_calls_do_nothing),
		TEST(bad_requests_are_named),
		TEST(sandboxes_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
