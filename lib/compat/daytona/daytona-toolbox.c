/* SPDX-License-Identifier: MIT */
/* A sandbox's toolbox: which one is meant, by which paths; commands that are waited for. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>

#define OUTPUT_MAX (16u << 20)
#define TEXT_MAX 131072
#define ENV_MAX 4096

int
sb_daytona_visit_id(struct sb_daytona *d, const char *id, const struct sb_host_call *call,
	struct sb_daytona_visit *v, struct sb_error *err)
{
	struct sb_host_session s;

	*v = (struct sb_daytona_visit){ .d = d, .call = *call };
	v->rec = sb_daytona_record_find(d, "sandbox", id);
	if (!v->rec ||
		sb_host_session_get(d->host, sb_daytona_text(v->rec, "id"), false, &s, err) < 0)
		return sb_fail(err, SB_E_SESSION_NOT_FOUND, "Sandbox %.100s not found", id);
	v->id = sb_daytona_text(v->rec, "id");
	v->none = s.runtime == SB_HOST_RUNTIME_NONE;
	(void)snprintf(v->home, sizeof v->home, "%s", v->none ? s.mountpoint : SB_DAYTONA_HOME);
	sb_host_session_clear(&s);
	sb_daytona_enter(d, v->id);
	return 0;
}

int
sb_daytona_visit(struct sb_rpc_call *call, const struct sb_query *q, struct sb_daytona_visit *v,
	struct sb_error *err)
{
	struct sb_host_call limits = sb_answer_limits(call);
	const char *state;
	int r = sb_daytona_visit_id(sb_rpc_call_arg(call), q->segments.v[1], &limits, v, err);

	if (r == SB_E_SESSION_NOT_FOUND)
		return sb_daytona_refuse(call, 404, "Sandbox %.100s not found", q->segments.v[1]),
		       1;
	if (r < 0)
		return r;
	state = sb_daytona_state(v->d, v->rec);
	if (strcmp(state, "started") != 0)
		return sb_daytona_refuse(call, 400, "Sandbox is not started: it is %s", state), 1;
	return 0;
}

void
sb_daytona_visit_end(struct sb_daytona_visit *v)
{
	if (v->id)
		sb_daytona_leave(v->d, v->id);
	json_decref(v->rec);
	*v = (struct sb_daytona_visit){ 0 };
}

char *
sb_daytona_path(const struct sb_daytona_visit *v, const char *path, struct sb_error *err)
{
	static const char home[] = SB_DAYTONA_HOME;
	size_t n = sizeof home - 1;
	char *out;

	if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
		path += path[1] == '/' ? 2 : 1;
	if (strlen(path) > 4096) {
		(void)sb_fail(err, SB_E_INVAL, "the path is too long");
		return NULL;
	}
	if (*path != '/')
		out = *path ? sb_str_printf("%s/%s", v->home, path) : strdup(v->home);
	else if (v->none && strncmp(path, home, n) == 0 && (path[n] == '/' || path[n] == '\0'))
		out = sb_str_printf("%s%s", v->home, path + n);
	else
		out = strdup(path);
	if (!out)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return out;
}

json_t *
sb_daytona_path_shown(const struct sb_daytona_visit *v, const char *real)
{
	size_t n = strlen(v->home);
	sb_autofree char *text = NULL;

	if (v->none && strncmp(real, v->home, n) == 0 && (real[n] == '/' || real[n] == '\0'))
		text = sb_str_printf("%s%s", SB_DAYTONA_HOME, real + n);
	return sb_answer_text(text ? text : real);
}

static void
add_env(struct sb_strlist *env, const json_t *o)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)o, key, value) if (json_is_string(value))
		sb_strlist_addf(env, "%s=%s", key, json_string_value(value));
}

void
sb_daytona_env(const struct sb_daytona_visit *v, const json_t *more, const char *cwd,
	struct sb_strlist *out)
{
	sb_strlist_addf(out, "HOME=%s", v->home);
	sb_strlist_addf(out, "PWD=%s", cwd);
	sb_strlist_addf(out, "USER=%s", sb_daytona_text(v->rec, "user"));
	sb_strlist_addf(out, "LOGNAME=%s", sb_daytona_text(v->rec, "user"));
	sb_strlist_addf(out, "DAYTONA_SANDBOX_ID=%s", v->id);
	add_env(out, json_object_get(v->rec, "env"));
	add_env(out, more);
}

void
sb_daytona_run_free(struct sb_daytona_run *run)
{
	sb_buf_free(&run->out);
	sb_buf_free(&run->err);
}

/* Gathers what the program says until its end. */
static int
gather(struct sb_daytona_visit *v, struct sb_daytona_run *run, struct sb_guest_stream *s,
	struct sb_error *err)
{
	struct sb_guest_event ev;
	int r;

	while ((r = sb_guest_next(s, -1, &v->call, &ev, err)) >= 0) {
		struct sb_buf *b = run->apart && ev.which == 2 ? &run->err : &run->out;

		if (r == 0)
			continue;
		if (ev.kind == SB_GUEST_EV_END) {
			run->code = ev.sig ? 128 + ev.sig : ev.code;
			return 0;
		}
		/* What is beyond is read and dropped, so that it comes to its end. */
		if (ev.kind == SB_GUEST_EV_OUTPUT) {
			size_t room = run->max > b->len ? run->max - b->len : 0;

			sb_buf_add(b, ev.data, ev.len < room ? ev.len : room);
		}
	}
	return r;
}

int
sb_daytona_run(struct sb_daytona_visit *v, struct sb_daytona_run *run, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_guest_stream *s = NULL;
	int64_t pid = 0, began = sb_now_ms();
	struct sb_guest_program p = { .argv = run->argv,
		.cwd = run->cwd,
		.input = run->input != NULL,
		.limit_ms = run->limit_ms };
	struct sb_guest_who who;
	int r;

	run->max = run->max ? run->max : OUTPUT_MAX;
	sb_buf_init(&run->out, run->max + 1);
	sb_buf_init(&run->err, run->max + 1);
	sb_daytona_env(v, run->env, run->cwd, &env);
	r = sb_strlist_check(&env, err);
	p.env = (const char *const *)env.v;
	if (r == 0)
		r = sb_guest_start(v->d->guests, v->id, &p, &v->call, &s, &pid, err);
	if (r < 0)
		return r;
	who = (struct sb_guest_who){ .pid = pid };
	if (run->input) {
		/* It may end without having read it. */
		(void)sb_guest_input(v->d->guests, v->id, &who, false, run->input, run->input_len,
			&v->call, NULL);
		(void)sb_guest_input_end(v->d->guests, v->id, &who, &v->call, NULL);
	}
	r = gather(v, run, s, err);
	/* Nobody is there who could see how it ends. */
	if (r == SB_E_CANCELED || r == SB_E_TIMEOUT) {
		const struct sb_host_call last = { .deadline = sb_deadline_in(5000) };

		(void)sb_guest_signal(v->d->guests, v->id, &who, SIGKILL, &last, NULL);
	}
	sb_guest_leave(s);
	run->timed_out = r == 0 && run->limit_ms > 0 && run->code == 128 + SIGKILL &&
		sb_now_ms() - began >= run->limit_ms;
	if (r == 0)
		r = sb_buf_check(&run->out, "output", err);
	return r;
}

/* In a shell as the user has it, with one stream for both outputs. */
#define IN_SHELL "s=$(command -v bash || echo sh); exec \"$s\" -c \"$1\" 2>&1"

static int
execute(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { 0 };
	const char *argv[] = { "/bin/sh", "-c", IN_SHELL, "sh", NULL, NULL };
	json_t *in = sb_answer_body(call, err);
	sb_autofree char *cwd = NULL;
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	argv[4] = sb_rpc_field_str(&f, "command", TEXT_MAX, SB_RPC_REQUIRED);
	run.env = sb_rpc_field_object(&f, "envs");
	run.limit_ms = sb_rpc_field_int(&f, "timeout", 0, 30 * 24 * 3600) * 1000;
	run.argv = argv;
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &v, err);
	if (r == 0) {
		cwd = sb_daytona_path(&v, sb_rpc_field_str(&f, "cwd", 4096, 0), err);
		run.cwd = cwd;
		r = cwd ? sb_daytona_run(&v, &run, err) : SB_E_NOMEM;
		if (r == SB_E_NOTFOUND || r == SB_E_DENIED || r == SB_E_INVAL)
			r = sb_daytona_refuse(call, 400, "cannot run it in %s: %s", cwd, err->msg);
		else if (r == 0 && run.timed_out)
			r = sb_daytona_refuse(call, 408, "command execution timeout");
		else if (r == 0)
			r = sb_answer_json(call, 200,
				json_pack("{s:i, s:o}", "exitCode", run.code, "result",
					sb_rpc_json_text(run.out.data ? (char *)run.out.data : "",
						run.out.len)),
				err);
	}
	json_decref(in);
	return r < 0 ? r : 0;
}

/* The interpreter of a language, and how it is told to run a text. */
static const struct language {
	const char *name, *script;
} languages[] = {
	{ "python", "exec \"$(command -v python3 || echo python)\" -u - \"$@\"" },
	{ "javascript", "exec node - \"$@\"" },
	{ "typescript",
		"f=$(mktemp -d)/code.ts; cat >\"$f\"; "
		"if command -v tsx >/dev/null; then tsx \"$f\" \"$@\"; "
		"else npx --no-install ts-node \"$f\" \"$@\"; fi; "
		"c=$?; rm -rf \"${f%/*}\"; exit $c" },
};

static int
code_run(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { 0 };
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	const struct language *lang = NULL;
	json_t *in = sb_answer_body(call, err);
	const char *code, *name;
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	code = sb_rpc_field_str(&f, "code", 4u << 20, SB_RPC_REQUIRED);
	name = sb_rpc_field_str(&f, "language", 32, SB_RPC_REQUIRED);
	run.env = sb_rpc_field_object(&f, "envs");
	run.limit_ms = sb_rpc_field_int(&f, "timeout", 0, 30 * 24 * 3600) * 1000;
	for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
		if (strcmp(languages[i].name, name) == 0)
			lang = &languages[i];
	if (!lang)
		sb_rpc_field_bad(&f, "language", "must be python, javascript or typescript");
	sb_strlist_add(&argv, "/bin/sh");
	sb_strlist_add(&argv, "-c");
	sb_strlist_addf(&argv, "exec 2>&1; %s", lang ? lang->script : "");
	sb_strlist_add(&argv, "sh");
	sb_rpc_field_list(&f, "argv", 1000, TEXT_MAX, &argv);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_strlist_check(&argv, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &v, err);
	if (r == 0) {
		run.argv = (const char *const *)argv.v;
		run.cwd = v.home;
		run.input = code;
		run.input_len = strlen(code);
		r = sb_daytona_run(&v, &run, err);
		if (r == 0 && run.timed_out)
			r = sb_daytona_refuse(call, 408, "code execution timeout");
		else if (r == 0)
			r = sb_answer_json(call, 200,
				json_pack("{s:i, s:o, s:{s:[]}}", "exitCode", run.code, "result",
					sb_rpc_json_text(run.out.data ? (char *)run.out.data : "",
						run.out.len),
					"artifacts", "charts"),
				err);
	}
	json_decref(in);
	return r < 0 ? r : 0;
}

/* Home and working directory are one. */
static int
dir(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	int r = sb_daytona_visit(call, q, &v, err);

	if (r == 0)
		r = sb_answer_json(call, 200, json_pack("{s:s}", "dir", SB_DAYTONA_HOME), err);
	return r < 0 ? r : 0;
}

static int
version(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	return sb_answer_json(call, 200, json_pack("{s:s}", "version", SB_DAYTONA_VERSION), err);
}

/* What is set is there for what is started from now on. */
static int
env(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_strlist) struct sb_strlist unset = { 0 }, set = { 0 };
	json_t *in = sb_answer_body(call, err), *has;
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	sb_rpc_field_env(&f, "set", ENV_MAX, TEXT_MAX, &set);
	sb_rpc_field_list(&f, "unset", ENV_MAX, 1024, &unset);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &v, err);
	if (r == 0) {
		has = json_object_get(v.rec, "env");
		for (size_t i = 0; i < unset.n; i++)
			(void)json_object_del(has, unset.v[i]);
		(void)json_object_update(has, (json_t *)(uintptr_t)sb_rpc_field_object(&f, "set"));
		r = sb_daytona_record_change(v.d, v.rec,
			json_pack("{s:O}", "env", json_object_get(v.rec, "env")), err);
		if (r == 0)
			r = sb_answer_json(call, 200, json_object(), err);
	}
	json_decref(in);
	return r < 0 ? r : 0;
}

/* Of which nothing is on a host without a screen, or without these servers. */
static int
not_here(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)err;
	return sb_daytona_refuse(call, 501, "this host does not serve %s: see sbhostd(8)",
		q->segments.v[2]);
}

#define ROUTE(verb, path, run, body, how) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, how, NULL \
	}
const struct sb_daytona_route sb_daytona_toolbox_routes[] = {
	ROUTE("POST", "/process/execute", execute, WHOLE, 0),
	ROUTE("POST", "/process/code-run", code_run, WHOLE, 0),
	ROUTE("GET", "/user-home-dir", dir, NO_BODY, 0),
	ROUTE("GET", "/work-dir", dir, NO_BODY, 0),
	ROUTE("GET", "/version", version, NO_BODY, 0),
	ROUTE("POST", "/env", env, WHOLE, 0),
	ROUTE("POST", "/lsp/*", not_here, WHOLE, 0),
	ROUTE("GET", "/lsp/*", not_here, NO_BODY, 0),
	ROUTE("POST", "/computeruse/*", not_here, WHOLE, 0),
	ROUTE("GET", "/computeruse/*", not_here, NO_BODY, 0),
	ROUTE("POST", "/process/interpreter/context", not_here, WHOLE, 0),
	ROUTE("GET", "/process/interpreter/context", not_here, NO_BODY, 0),
	ROUTE("GET", "/process/interpreter/execute", not_here, NO_BODY, 0),
	ROUTE("GET", "/system/metrics", not_here, NO_BODY, 0),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
