/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/lifefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Thread_local struct lifefix_far lifefix_far;

/* Adds `what` and a blank to the text of `size` bytes; what does not fit is cut. */
static void
note(char *text, size_t size, const char *what)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, size - len, "%s ", what);
}

static int
ask(const char *what, struct sb_error *err)
{
	note(lifefix_far.asked, sizeof lifefix_far.asked, what);
	if (lifefix_far.die_at && strcmp(lifefix_far.die_at, what) == 0)
		_exit(0);
	return lifefix_far.fail_all ||
			(lifefix_far.fail_at && strcmp(lifefix_far.fail_at, what) == 0) ?
		sb_fail(err, SB_E_CONNECT, "%s: made to fail", what) :
		0;
}

static int
f_capabilities(struct sb_provider *p, const struct sb_profile *profile, struct sb_capabilities *out,
	struct sb_error *err)
{
	(void)p, (void)profile, (void)err;
	out->syncs = out->archive = true;
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
	lifefix_far.env[0] = '\0';
	for (size_t i = 0; spec->env && spec->env[i]; i++) {
		note(lifefix_far.env, sizeof lifefix_far.env, spec->env[i]);
	}
	for (size_t i = 0; spec->secret_env && spec->secret_env[i]; i++)
		note(lifefix_far.env, sizeof lifefix_far.env, spec->secret_env[i]);
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
	lifefix_far.excludes[0] = '\0';
	for (size_t i = 0; req->excludes && req->excludes[i]; i++) {
		note(lifefix_far.excludes, sizeof lifefix_far.excludes, req->excludes[i]);
	}
	if (r < 0)
		return r;
	lifefix_far.exists = true;
	r = sb_state_from_request(req, &out->state, err);
	free(out->state.instance_id);
	out->state.instance_id = strdup("i-1");
	out->state.runtime_root = strdup("there");
	for (size_t i = 0; req->local_dirs && req->local_dirs[i]; i++)
		sb_strlist_add(&out->state.runtime_dirs, "there too");
	free(out->state.provider_state);
	out->state.provider_state = lifefix_far.told ? strdup(lifefix_far.told) : NULL;
	out->state.access_expires_at = lifefix_far.expires;
	out->launcher = calloc(1, sizeof *out->launcher);
	out->launcher->ops = &l_ops;
	out->tools = calloc(1, sizeof *out->tools);
	out->tools->ops = &t_ops;
	return r;
}

static void
note_left_out(const struct sb_provider_sync *o)
{
	lifefix_far.left_out[0] = '\0';
	for (size_t i = 0; o->excludes && o->excludes[i]; i++)
		note(lifefix_far.left_out, sizeof lifefix_far.left_out, o->excludes[i]);
}

static int
f_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	char what[32];

	(void)p, (void)s, (void)call, (void)out;
	note_left_out(o);
	(void)snprintf(what, sizeof what, "to:%s", sb_when_name(o->reason));
	return ask(what, err);
}

static int
f_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	char what[32];

	(void)p, (void)s, (void)call;
	note_left_out(o);
	(void)snprintf(what, sizeof what, "from:%s", sb_when_name(o->reason));
	out->files_synced = lifefix_far.brought;
	return ask(what, err);
}

static int
f_destroy(struct sb_provider *p, const struct sb_state *s, bool discard, const struct sb_call *call,
	struct sb_error *err)
{
	int r = ask(discard ? "discard" : "destroy", err);

	(void)p, (void)call;
	lifefix_far.ended_as = s->persist;
	if (r == 0 && s->persist == SB_PERSIST_TRANSIENT)
		lifefix_far.exists = false;
	return r;
}

static int
f_find(struct sb_provider *p, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	int r = ask("find", err);
	const char *const said[] = { req->sandbox_id, req->session_id, req->workspace_id,
		req->local_root, req->local_dirs ? req->local_dirs[0] : "", req->profile->name,
		req->provider_state };

	(void)p, (void)call;
	lifefix_far.found_by[0] = '\0';
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		note(lifefix_far.found_by, sizeof lifefix_far.found_by, said[i] ? said[i] : "-");
	if (r == 0 && !lifefix_far.exists)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "not there");
	if (r == 0) {
		out->instance_id = strdup("i-1");
		out->runtime_root = strdup("there");
	}
	return r;
}

static const struct sb_provider_option f_options[] = {
	{ .name = "where", .value = "WHERE", .help = "where it is", .place = true },
	{ .name = "how", .value = "HOW", .help = "how it is reached" }, { .name = NULL }
};

static const struct sb_provider_ops f_ops = { .version = SB_PROVIDER_VERSION,
	.name = "fake",
	.backend = SB_BACKEND_FLY,
	.options = f_options,
	.capabilities = f_capabilities,
	.prepare = f_prepare,
	.sync_to_runtime = f_to,
	.sync_from_runtime = f_from,
	.destroy = f_destroy,
	.find = f_find };
/* The same elsewhere. */
static const struct sb_provider_ops other_ops = { .version = SB_PROVIDER_VERSION,
	.name = "another fake",
	.backend = SB_BACKEND_DAYTONA,
	.capabilities = f_capabilities,
	.prepare = f_prepare,
	.sync_to_runtime = f_to,
	.sync_from_runtime = f_from,
	.destroy = f_destroy,
	.find = f_find };

static void
on_event(const struct sb_event *ev, void *arg)
{
	struct lifefix *w = arg;

	note(w->seen, sizeof w->seen, ev->kind);
}

int
lifefix_setup(void **state)
{
	struct lifefix *w = calloc(1, sizeof *w);
	struct sb_keeper_opts o = SB_KEEPER_OPTS_INIT;
	struct sb_provider *p[2] = { &w->provider, &w->other };
	struct sb_error err = { 0 };

	tmpdir_make(&w->tmp);
	w->provider.ops = &f_ops;
	w->other.ops = &other_ops;
	w->registry = sb_registry_new(p, 2, &err);
	o.registry = w->registry;
	o.state_dir = w->tmp.path;
	o.on_event = on_event;
	o.event_arg = w;
	w->k = sb_keeper_new(&o, &err);
	assert_non_null(w->k);
	assert_ok(sb_profile_default(SB_BACKEND_FLY, "p", &w->profile, &err), &err);
	lifefix_far.asked[0] = '\0';
	lifefix_far.fail_at = lifefix_far.told = NULL;
	lifefix_far.expires = 0;
	lifefix_far.exists = lifefix_far.fail_all = false;
	lifefix_far.brought = 7;
	*state = w;
	return 0;
}

int
lifefix_teardown(void **state)
{
	struct lifefix *w = *state;

	sb_keeper_free(w->k);
	sb_registry_free(w->registry);
	sb_profile_free(&w->profile);
	tmpdir_remove(&w->tmp);
	free(w);
	return 0;
}

int
lifefix_start(struct lifefix *w, const char *id, struct sb_sandbox **out, struct sb_error *err)
{
	struct sb_start_opts o = SB_START_OPTS_INIT;

	o.profile = &w->profile;
	o.sandbox_id = id;
	o.local_root = w->tmp.path;
	return sb_sandbox_start(w->k, &o, NULL, out, NULL, err);
}

void
lifefix_life_is(struct lifefix *w, const char *id, enum sb_life want)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_error err = { 0 };

	assert_ok(sb_keeper_load(w->k, id, &s, &err), &err);
	assert_string_equal(sb_life_name(s.life), sb_life_name(want));
}

int
lifefix_run(struct sb_sandbox *sb, const char *code, struct sb_error *err)
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

int
lifefix_stop(struct sb_sandbox *sb, struct sb_error *err)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };

	return sb_sandbox_stop(sb, NULL, NULL, &res, err);
}

static void
count_outcome(const struct sb_state *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	(void)s, (void)res, (void)err;
	(void)snprintf(arg, 32, "%s", result);
}

void
lifefix_orphan(struct lifefix *w, const char *id)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error err = { 0 };

	assert_ok(sb_sandbox_open(w->k, id, &sb, &err), &err);
	assert_ok(sb_record_lock(sb, 0, &err), &err);
	sb->state.owner_start ^= 1;
	assert_ok(sb_record_save(sb, sb->state.life, &err), &err);
}

int
lifefix_recover(struct lifefix *w, const char *id, char *result)
{
	struct sb_error err = { 0 };

	lifefix_far.asked[0] = '\0';
	return sb_keeper_recover(w->k, id, NULL, count_outcome, result, &err);
}
