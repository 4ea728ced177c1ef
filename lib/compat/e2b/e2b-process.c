/* SPDX-License-Identifier: MIT */
/* process.Process: programs of a sandbox that go on when their callers leave. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/base64.h>
#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <rpc/protocol/envelope.h>

#define ARGS_MAX 4096
#define TEXT_MAX 131072
#define INPUT_MAX (8u << 20)

static int
read_who(struct sb_rpc_fields *f, struct sb_guest_who *who)
{
	const json_t *sel = sb_rpc_field_object(f, "process");
	struct sb_rpc_fields in;

	*who = (struct sb_guest_who){ 0 };
	if (f->failed || !sel) {
		sb_rpc_field_bad(f, "process", "is required");
		return SB_E_INVAL;
	}
	sb_rpc_fields_init(&in, sel);
	who->pid = sb_rpc_field_int(&in, "pid", 0, INT32_MAX);
	who->tag = sb_rpc_field_str(&in, "tag", 1024, 0);
	if (in.failed)
		sb_rpc_field_bad(f, "process", "%s", in.err.msg);
	else if (who->pid == 0 && !*who->tag)
		sb_rpc_field_bad(f, "process", "must have a pid or a tag");
	return f->failed;
}

/* cols and rows of pty.size; false: there is no pty. */
static bool
read_size(struct sb_rpc_fields *f, unsigned *cols, unsigned *rows)
{
	const json_t *pty = sb_rpc_field_object(f, "pty");
	const json_t *size = pty ? json_object_get(pty, "size") : NULL;
	struct sb_rpc_fields in;

	*cols = 80;
	*rows = 24;
	if (!pty)
		return false;
	if (json_is_object(size)) {
		sb_rpc_fields_init(&in, size);
		*cols = (unsigned)sb_rpc_field_int(&in, "cols", 0, 65535);
		*rows = (unsigned)sb_rpc_field_int(&in, "rows", 0, 65535);
		if (in.failed)
			sb_rpc_field_bad(f, "pty", "%s", in.err.msg);
	}
	return true;
}

static void
add_env(struct sb_strlist *env, const json_t *o)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)o, key, value) if (json_is_string(value))
		sb_strlist_addf(env, "%s=%s", key, json_string_value(value));
}

static json_t *
data_json(const struct sb_guest_event *ev)
{
	static const char *const names[] = { "stdout", "stderr", "pty" };
	size_t size = (ev->len + 2) / 3 * 4 + 1;
	char *text = malloc(size);
	json_t *o = NULL;

	if (text && sb_base64_encode_padded(ev->data, ev->len, text, size))
		o = json_pack("{s:{s:{s:s}}}", "event", "data", names[ev->which - 1], text);
	free(text);
	return o;
}

static json_t *
end_json(const struct sb_guest_event *ev)
{
	char status[64];
	json_t *end;

	if (ev->sig)
		(void)snprintf(status, sizeof status, "signal: %s",
			ev->sig == SIGKILL         ? "killed" :
				ev->sig == SIGTERM ? "terminated" :
						     strsignal(ev->sig));
	else
		(void)snprintf(status, sizeof status, "exit status %d", ev->code);
	end = json_pack("{s:i, s:b, s:s}", "exitCode", ev->sig ? -1 : ev->code, "exited",
		ev->sig == 0, "status", status);
	if (ev->sig || ev->code)
		(void)json_object_set_new(end, "error", json_string(status));
	return json_pack("{s:{s:o}}", "event", "end", end);
}

/* Everything that the program says, until its end or the caller's. Leaves the stream. */
static int
follow(struct sb_rpc_call *call, struct sb_e2b_visit *v, struct sb_guest_stream *s, int64_t pid,
	struct sb_error *err)
{
	int64_t every = sb_e2b_keepalive(call);
	struct sb_guest_event ev;
	bool over = false;
	int r = sb_e2b_send(call,
		json_pack("{s:{s:{s:I}}}", "event", "start", "pid", (json_int_t)pid), err);

	while (r == 0 && !over) {
		r = sb_guest_next(s, every, &v->call, &ev, err);
		if (r < 0)
			break;
		over = r == 1 && ev.kind == SB_GUEST_EV_END;
		r = sb_e2b_send(call,
			r == 0 ? json_pack("{s:{s:{}}}", "event", "keepalive") :
				ev.kind == SB_GUEST_EV_END ? end_json(&ev) :
							     data_json(&ev),
			err);
	}
	sb_guest_leave(s);
	return r;
}

static int
run_start(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 }, env = { 0 };
	sb_autofree char *shown = NULL, *real = NULL;
	struct sb_guest_program p = { 0 };
	struct sb_guest_stream *s = NULL;
	struct sb_rpc_fields f, pf;
	const json_t *config, *envs;
	const char *cwd;
	int64_t pid = 0;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	config = sb_rpc_field_object(&f, "process");
	sb_rpc_fields_init(&pf, config ? config : in);
	sb_strlist_add(&argv, sb_rpc_field_str(&pf, "cmd", TEXT_MAX, SB_RPC_REQUIRED));
	sb_rpc_field_list(&pf, "args", ARGS_MAX, TEXT_MAX, &argv);
	cwd = sb_rpc_field_str(&pf, "cwd", 4096, 0);
	envs = sb_rpc_field_object(&pf, "envs");
	p.terminal = read_size(&f, &p.cols, &p.rows);
	p.tag = sb_rpc_field_str(&f, "tag", 1024, 0);
	p.input = !sb_rpc_field(&f, "stdin") || sb_rpc_field_bool(&f, "stdin");
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_rpc_fields_check(&pf, err);
	if (r == 0)
		r = sb_e2b_path(v, cwd, &shown, &real, err);
	if (r < 0)
		return r;
	/* The home is a link in a box; a shell that is told so shows it. */
	sb_strlist_addf(&env, "HOME=%s",
		*v->home == '/' && strcmp(v->home, "/workspace") == 0 ? SB_E2B_HOME : v->home);
	sb_strlist_addf(&env, "PWD=%s", strcmp(v->home, "/workspace") == 0 ? shown : real);
	sb_strlist_addf(&env, "USER=%s", v->user);
	sb_strlist_addf(&env, "LOGNAME=%s", v->user);
	sb_strlist_add(&env, "E2B_SANDBOX=true");
	sb_strlist_addf(&env, "E2B_SANDBOX_ID=%s", v->r->id);
	add_env(&env, v->r->env);
	add_env(&env, envs);
	r = sb_strlist_check(&argv, err);
	if (r == 0)
		r = sb_strlist_check(&env, err);
	p.argv = (const char *const *)argv.v;
	p.env = (const char *const *)env.v;
	p.cwd = real;
	/* The time that a client gives is the program's, too. */
	if (v->call.deadline != SB_NEVER)
		p.limit_ms = v->call.deadline - sb_now_ms();
	if (r == 0)
		r = sb_guest_start(v->e->guests, v->r->id, &p, &v->call, &s, &pid, err);
	/* The program or its directory: either is the caller's mistake. */
	if (r == SB_E_NOTFOUND || r == SB_E_DENIED)
		return sb_fail(err, SB_E_INVAL, "%s in %s: %s", argv.v[0], shown, sb_code_text(r));
	return r < 0 ? r : follow(call, v, s, pid, err);
}

static int
run_connect(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_guest_stream *s = NULL;
	struct sb_guest_who who;
	struct sb_rpc_fields f;
	int64_t pid = 0;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	(void)read_who(&f, &who);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_guest_attach(v->e->guests, v->r->id, &who, &v->call, &s, &pid, err);
	return r < 0 ? r : follow(call, v, s, pid, err);
}

static json_t *
running_json(const struct sb_guest_running *p)
{
	json_t *args = json_array(), *envs = json_object(), *o;

	for (size_t i = 1; i < p->argv.n; i++)
		(void)json_array_append_new(args,
			sb_rpc_json_text(p->argv.v[i], strlen(p->argv.v[i])));
	for (size_t i = 0; i < p->env.n; i++) {
		const char *eq = strchr(p->env.v[i], '=');

		if (eq)
			(void)json_object_setn_new(envs, p->env.v[i], (size_t)(eq - p->env.v[i]),
				sb_rpc_json_text(eq + 1, strlen(eq + 1)));
	}
	o = json_pack("{s:{s:s, s:o, s:o, s:s}, s:I}", "config", "cmd",
		p->argv.n ? p->argv.v[0] : "", "args", args, "envs", envs, "cwd", p->cwd, "pid",
		(json_int_t)p->pid);
	if (*p->tag)
		(void)json_object_set_new(o, "tag", json_string(p->tag));
	return o;
}

static int
run_list(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_guest_running *p = NULL;
	json_t *list = json_array();
	size_t n = 0;
	int r = sb_guest_list(v->e->guests, v->r->id, &v->call, &p, &n, err);

	(void)call;
	(void)in;
	for (size_t i = 0; r == 0 && i < n; i++)
		(void)json_array_append_new(list, running_json(&p[i]));
	if (r == 0)
		sb_guest_running_free(p, n);
	*out = json_pack("{s:o}", "processes", list);
	return r;
}

static int
give_input(struct sb_e2b_visit *v, const struct sb_guest_who *who, const json_t *input,
	struct sb_error *err)
{
	const json_t *in = json_object_get(input, "stdin"), *pty = json_object_get(input, "pty");
	const char *text = json_string_value(pty ? pty : in);
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, INPUT_MAX);
	if (!text || !sb_base64_decode(text, strlen(text), &b))
		return sb_fail(err, SB_E_INVAL, "input must have stdin or pty in base64");
	return sb_guest_input(v->e->guests, v->r->id, who, pty != NULL, b.data, b.len, &v->call,
		err);
}

static int
run_input(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_guest_who who;
	struct sb_rpc_fields f;
	int r;

	(void)call;
	(void)out;
	sb_rpc_fields_init(&f, in);
	(void)read_who(&f, &who);
	r = sb_rpc_fields_check(&f, err);
	return r < 0 ? r : give_input(v, &who, json_object_get(in, "input"), err);
}

static int
run_close(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_guest_who who;
	struct sb_rpc_fields f;
	int r;

	(void)call;
	(void)out;
	sb_rpc_fields_init(&f, in);
	(void)read_who(&f, &who);
	r = sb_rpc_fields_check(&f, err);
	return r < 0 ? r : sb_guest_input_end(v->e->guests, v->r->id, &who, &v->call, err);
}

static int
run_update(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_guest_who who;
	struct sb_rpc_fields f;
	unsigned cols, rows;
	bool pty;
	int r;

	(void)call;
	(void)out;
	sb_rpc_fields_init(&f, in);
	(void)read_who(&f, &who);
	pty = read_size(&f, &cols, &rows);
	r = sb_rpc_fields_check(&f, err);
	if (r < 0 || !pty)
		return r;
	return sb_guest_resize(v->e->guests, v->r->id, &who, cols, rows, &v->call, err);
}

static int
run_signal(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	const json_t *sig = json_object_get(in, "signal");
	const char *name = json_string_value(sig);
	struct sb_guest_who who;
	struct sb_rpc_fields f;
	int number, r;

	(void)call;
	(void)out;
	sb_rpc_fields_init(&f, in);
	(void)read_who(&f, &who);
	r = sb_rpc_fields_check(&f, err);
	number = name && strcmp(name, "SIGNAL_SIGTERM") == 0 ? SIGTERM :
		name && strcmp(name, "SIGNAL_SIGKILL") == 0  ? SIGKILL :
							       (int)json_integer_value(sig);
	if (r == 0 && number != SIGTERM && number != SIGKILL)
		r = sb_fail(err, SB_E_INVAL, "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
	return r < 0 ? r : sb_guest_signal(v->e->guests, v->r->id, &who, number, &v->call, err);
}

/* Messages of the client, in order, each in its envelope; one answer at the end. */
static int
run_inputs(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *none, json_t **out,
	struct sb_error *err)
{
	size_t len, at = 0;
	const uint8_t *body = (const uint8_t *)sb_rpc_http_body(call, &len);
	struct sb_guest_who who = { 0 };
	json_t *first = NULL;
	int r = 0;

	(void)none;
	(void)out;
	while (r == 0 && at < len) {
		const uint8_t *msg = NULL;
		const json_t *ev;
		struct sb_rpc_fields f;
		uint8_t flags = 0;
		size_t n = 0;
		json_t *in;

		r = sb_rpc_envelope_next(body + at, len - at, len, &flags, &msg, &n, err);
		if (r <= 0 || (flags & SB_RPC_FLAG_END))
			break;
		at += SB_RPC_ENVELOPE_SIZE + n;
		r = 0;
		in = sb_rpc_json_parse(msg, n, err);
		if (!in) {
			r = SB_E_INVAL;
		} else if ((ev = json_object_get(in, "start")) && !first) {
			sb_rpc_fields_init(&f, ev);
			(void)read_who(&f, &who);
			r = sb_rpc_fields_check(&f, err);
			first = json_incref(in);
		} else if ((ev = json_object_get(in, "data"))) {
			r = first ? give_input(v, &who, json_object_get(ev, "input"), err) :
				    sb_fail(err, SB_E_INVAL, "the first message must be start");
		}
		json_decref(in);
	}
	json_decref(first);
	return r < 0 ? r : 0;
}

/* The request is many messages, so the body is not read as one. */
static int
stream_input(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	struct sb_rpc_failure f = { 0 };
	struct sb_error why = { 0 };
	json_t *end, *none = NULL;
	int r = sb_e2b_visit(call, NULL, &v, err);

	(void)q;
	if (r != 0)
		return r < 0 ? r : 0;
	r = run_inputs(call, &v, NULL, &none, &why);
	if (sb_rpc_http_begin(call, 200, "application/connect+json", -1, err) < 0)
		return SB_E_NOMEM;
	if (r == 0)
		r = sb_e2b_send(call, json_object(), err);
	end = json_object();
	if (r < 0) {
		sb_e2b_failure(&why, &f);
		(void)json_object_set_new(end, "error",
			json_pack("{s:s, s:s}", "code", sb_rpc_code_name(f.code), "message",
				f.msg));
	}
	return sb_e2b_send_end(call, end, err);
}

#define METHOD(name, how) \
	static int on_##name(struct sb_rpc_call *call, const struct sb_query *q, \
		struct sb_error *err) \
	{ \
		(void)q; \
		return sb_e2b_##how(call, run_##name, err); \
	}
METHOD(start, stream)
METHOD(connect, stream)
METHOD(list, unary)
METHOD(input, unary)
METHOD(close, unary)
METHOD(update, unary)
METHOD(signal, unary)

#define P "/process.Process/"
const struct sb_e2b_route sb_e2b_process_routes[] = {
	{ "POST", P "Start", SB_E2B_STREAM, on_start, SB_RPC_HTTP_WHOLE, true, true, false },
	{ "POST", P "Connect", SB_E2B_STREAM, on_connect, SB_RPC_HTTP_WHOLE, true, true, false },
	{ "POST", P "StreamInput", SB_E2B_STREAM, stream_input, SB_RPC_HTTP_WHOLE, false, false,
		false },
	{ "POST", P "List", SB_E2B_UNARY, on_list, SB_RPC_HTTP_WHOLE, false, false, false },
	{ "POST", P "SendInput", SB_E2B_UNARY, on_input, SB_RPC_HTTP_WHOLE, false, false, false },
	{ "POST", P "CloseStdin", SB_E2B_UNARY, on_close, SB_RPC_HTTP_WHOLE, false, false, false },
	{ "POST", P "Update", SB_E2B_UNARY, on_update, SB_RPC_HTTP_WHOLE, false, false, false },
	{ "POST", P "SendSignal", SB_E2B_UNARY, on_signal, SB_RPC_HTTP_WHOLE, false, false, false },
	{ NULL, NULL, SB_E2B_UNARY, NULL, SB_RPC_HTTP_NO_BODY, false, false, false },
};
