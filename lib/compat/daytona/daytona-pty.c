/* SPDX-License-Identifier: MIT */
/*
 * Terminals over WebSocket. The shell is a program of the guest's, by a tag that has the terminal's
 * name, so it goes on when its listener leaves or the host is restarted; how large it is and so on
 * is on record.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/base64.h>
#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define NAME_MAX_LEN 128
#define SIZE_MAX_CELLS 4096
#define ENVS_MAX 65536

/* A terminal that somebody asks for. */
struct pty {
	struct sb_daytona_visit v;
	char member[NAME_MAX_LEN + 8], tag[NAME_MAX_LEN + 16];
	const char *id;
};

static bool
is_name(const char *s)
{
	return *s && strlen(s) <= NAME_MAX_LEN && !strpbrk(s, "/\n\r");
}

static int
set_name(struct pty *p, const char *id, struct sb_error *err)
{
	if (!is_name(id))
		return sb_fail(err, SB_E_INVAL, "id must be a name of at most %d bytes",
			NAME_MAX_LEN);
	p->id = id;
	(void)snprintf(p->member, sizeof p->member, "pty:%s", id);
	(void)snprintf(p->tag, sizeof p->tag, "daytona-pty:%s", id);
	return 0;
}

static json_t *
info_json(struct pty *p, const json_t *o)
{
	json_t *envs = json_object_get(o, "envs");
	const char *cwd = sb_daytona_text(o, "cwd");

	return json_pack("{s:o, s:s, s:o, s:I, s:I, s:o, s:b, s:b}", "id", sb_answer_text(p->id),
		"cwd", *cwd ? cwd : SB_DAYTONA_HOME, "envs",
		envs ? json_incref(envs) : json_object(), "cols",
		(json_int_t)sb_daytona_number(o, "cols"), "rows",
		(json_int_t)sb_daytona_number(o, "rows"), "createdAt",
		sb_answer_time(sb_daytona_number(o, "createdNs")), "active",
		sb_daytona_runs(&p->v, p->tag), "lazyStart",
		json_is_true(json_object_get(o, "lazyStart")));
}

static int
begin(struct pty *p, const json_t *o, struct sb_guest_stream **s, struct sb_error *err)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"s=$(command -v bash || echo sh); exec \"$s\" -i", NULL };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	sb_autofree char *cwd = sb_daytona_path(&p->v, sb_daytona_text(o, "cwd"), err);
	struct sb_guest_program prog = { .argv = argv,
		.cwd = cwd,
		.tag = p->tag,
		.input = true,
		.terminal = true,
		.cols = (unsigned)sb_daytona_number(o, "cols"),
		.rows = (unsigned)sb_daytona_number(o, "rows") };
	int64_t pid;
	int r;

	if (!cwd)
		return SB_E_INVAL;
	sb_strlist_add(&env, "TERM=xterm-256color");
	sb_daytona_env(&p->v, json_object_get(o, "envs"), cwd, &env);
	r = sb_strlist_check(&env, err);
	prog.env = (const char *const *)env.v;
	return r < 0 ? r : sb_guest_start(p->v.d->guests, p->v.id, &prog, &p->v.call, s, &pid, err);
}

/* On record, and started unless it waits for a listener. */
static int
make(struct pty *p, json_t *o, struct sb_guest_stream **s, struct sb_error *err)
{
	bool lazy = json_is_true(json_object_get(o, "lazyStart"));
	json_t *changes = json_object();
	int r = 0;

	sb_daytona_set_number(o, "createdNs", sb_host_now_ns());
	(void)json_object_set(changes, p->member, o);
	if (sb_daytona_runs(&p->v, p->tag))
		r = sb_fail(err, SB_E_EXISTS, "PTY session with ID '%s' already exists", p->id);
	if (r == 0 && !lazy)
		r = begin(p, o, s, err);
	if (r == 0)
		return sb_daytona_record_change(p->v.d, p->v.rec, changes, err);
	json_decref(changes);
	return r;
}

static void
forget(struct pty *p)
{
	json_t *changes = json_object();

	(void)json_object_set_new(changes, p->member, json_null());
	(void)sb_daytona_record_change(p->v.d, p->v.rec, changes, NULL);
}

static int
create(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *in = sb_answer_body(call, err), *o;
	struct sb_guest_stream *s = NULL;
	struct pty p = { 0 };
	struct sb_rpc_fields f;
	char made[SB_DAYTONA_ID_LEN + 1];
	int64_t cols, rows;
	const char *id;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_daytona_uuid(made);
	sb_rpc_fields_init(&f, in);
	id = sb_rpc_field_str(&f, "id", NAME_MAX_LEN, 0);
	cols = sb_rpc_field(&f, "cols") ? sb_rpc_field_int(&f, "cols", 1, SIZE_MAX_CELLS) : 80;
	rows = sb_rpc_field(&f, "rows") ? sb_rpc_field_int(&f, "rows", 1, SIZE_MAX_CELLS) : 24;
	o = json_pack("{s:I, s:I, s:s, s:b}", "cols", (json_int_t)cols, "rows", (json_int_t)rows,
		"cwd", sb_rpc_field_str(&f, "cwd", 4096, 0), "lazyStart",
		sb_rpc_field_bool(&f, "lazyStart"));
	if (sb_rpc_field_object(&f, "envs"))
		(void)json_object_set_new(o, "envs",
			json_deep_copy(sb_rpc_field_object(&f, "envs")));
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = set_name(&p, *id ? id : made, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &p.v, err);
	if (r == 0) {
		r = make(&p, o, &s, err);
		sb_guest_leave(s);
		if (r == SB_E_NOTFOUND || r == SB_E_DENIED)
			r = sb_daytona_refuse(call, 400, "cannot start in %s: %s",
				sb_daytona_text(o, "cwd"), err->msg);
		else if (r == 0)
			r = sb_answer_json(call, 201,
				json_pack("{s:o}", "sessionId", sb_answer_text(p.id)), err);
	}
	json_decref(o);
	json_decref(in);
	sb_daytona_visit_end(&p.v);
	return r < 0 ? r : 0;
}

/* One that is on record; 1: answered. `*o` belongs to the visit. */
static int
find(struct sb_rpc_call *call, const struct sb_query *q, struct pty *p, json_t **o,
	struct sb_error *err)
{
	int r = sb_daytona_visit(call, q, &p->v, err);

	if (r == 0)
		r = set_name(p, q->segments.v[4], err);
	if (r != 0)
		return r;
	*o = json_object_get(p->v.rec, p->member);
	return *o ? 0 : (sb_daytona_refuse(call, 404, "PTY session %.64s not found", p->id), 1);
}

static int
get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct pty p = { 0 };
	json_t *o;
	int r = find(call, q, &p, &o, err);

	if (r == 0)
		r = sb_answer_json(call, 200, info_json(&p, o), err);
	sb_daytona_visit_end(&p.v);
	return r < 0 ? r : 0;
}

static int
list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct pty p = { 0 };
	json_t *out = json_array(), *o;
	const char *name;
	int r = sb_daytona_visit(call, q, &p.v, err);

	if (r == 0) {
		json_object_foreach(p.v.rec, name, o) if (strncmp(name, "pty:", 4) == 0 &&
			set_name(&p, name + 4, NULL) == 0)(void)
			json_array_append_new(out, info_json(&p, o));
		r = sb_answer_json(call, 200, json_pack("{s:O}", "sessions", out), err);
	}
	json_decref(out);
	sb_daytona_visit_end(&p.v);
	return r < 0 ? r : 0;
}

static int
delete_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct pty p = { 0 };
	json_t *o;
	int r = find(call, q, &p, &o, err);

	if (r == 0) {
		const struct sb_guest_who who = { .tag = p.tag };

		/* It may have ended by itself. */
		(void)sb_guest_signal(p.v.d->guests, p.v.id, &who, SIGKILL, &p.v.call, NULL);
		forget(&p);
		r = sb_answer_json(call, 200, json_pack("{s:s}", "message", "PTY session deleted"),
			err);
	}
	sb_daytona_visit_end(&p.v);
	return r < 0 ? r : 0;
}

static int
resize(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *in = sb_answer_body(call, err), *o, *now, *changes;
	struct pty p = { 0 };
	struct sb_rpc_fields f;
	int64_t cols, rows;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	cols = sb_rpc_field_int(&f, "cols", 1, SIZE_MAX_CELLS);
	rows = sb_rpc_field_int(&f, "rows", 1, SIZE_MAX_CELLS);
	r = sb_rpc_fields_check(&f, err);
	json_decref(in);
	if (r == 0)
		r = find(call, q, &p, &o, err);
	if (r == 0) {
		const struct sb_guest_who who = { .tag = p.tag };

		r = sb_guest_resize(p.v.d->guests, p.v.id, &who, (unsigned)cols, (unsigned)rows,
			&p.v.call, err);
		/* One that waits for its listener begins so. */
		if (r == SB_E_PROCESS_NOT_FOUND && json_is_true(json_object_get(o, "lazyStart")))
			r = 0;
		now = json_deep_copy(o);
		sb_daytona_set_number(now, "cols", cols);
		sb_daytona_set_number(now, "rows", rows);
		changes = json_object();
		(void)json_object_set(changes, p.member, now);
		if (r == 0)
			r = sb_daytona_record_change(p.v.d, p.v.rec, changes, err);
		else
			json_decref(changes);
		if (r == 0)
			r = sb_answer_json(call, 200, info_json(&p, now), err);
		else if (r == SB_E_PROCESS_NOT_FOUND)
			r = sb_daytona_refuse(call, 410, "PTY session has ended");
		json_decref(now);
	}
	sb_daytona_visit_end(&p.v);
	return r < 0 ? r : 0;
}

/* The side of a listener that types. */
struct typing {
	struct pty *p;
	struct sb_websocket *w;
	struct sb_cancel *over; /* requested when it has gone */
};

static void *
type(void *arg)
{
	struct typing *t = arg;
	const struct sb_guest_who who = { .tag = t->p->tag };
	enum sb_wsframe_kind kind;
	const uint8_t *data;
	size_t len;

	while (!sb_cancel_requested(t->over) &&
		sb_websocket_next(t->w, -1, &kind, &data, &len, NULL) == 1)
		if (len > 0 &&
			sb_guest_input(t->p->v.d->guests, t->p->v.id, &who, true, data, len,
				&t->p->v.call, NULL) < 0)
			break;
	sb_cancel_request(t->over);
	return NULL;
}

static int
say(struct sb_websocket *w, json_t *o, struct sb_error *err)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int r = text ? sb_websocket_send(w, SB_WSFRAME_TEXT, text, strlen(text),
			       SB_WEBSOCKET_SEND_MS, err) :
		       sb_fail(err, SB_E_NOMEM, "out of memory");

	json_decref(o);
	free(text);
	return r;
}

/* What the terminal says until its end, or until the listener has gone: 1. */
static int
show(struct pty *p, struct sb_websocket *w, struct sb_guest_stream *s, bool control,
	struct sb_error *err)
{
	struct sb_guest_event ev;
	char text[64];
	int r, code;

	r = say(w, json_pack("{s:s, s:s}", "type", "control", "status", "connected"), err);
	while (r >= 0) {
		r = sb_guest_next(s, -1, &p->v.call, &ev, err);
		if (r == 1 && ev.kind == SB_GUEST_EV_END)
			break;
		if (r == 1 && ev.kind == SB_GUEST_EV_OUTPUT)
			r = sb_websocket_send(w, SB_WSFRAME_BINARY, ev.data, ev.len,
				SB_WEBSOCKET_SEND_MS, err);
		else
			continue;
		if (r == SB_E_CLOSED)
			return 1;
	}
	if (r < 0)
		return r == SB_E_CANCELED ? 0 : r;
	code = ev.sig ? 128 + ev.sig : ev.code;
	forget(p);
	if (control)
		(void)say(w,
			json_pack("{s:s, s:s, s:i}", "type", "control", "status", "exited",
				"exitCode", code),
			NULL);
	(void)snprintf(text, sizeof text, "{\"exitCode\":%d}", code);
	sb_websocket_close(w, 1000, text);
	return 0;
}

/* Joins listener and terminal; leaves `s`. */
static int
join(struct sb_rpc_call *call, struct pty *p, struct sb_websocket *w, struct sb_guest_stream *s,
	struct sb_error *err)
{
	struct typing t = { .p = p, .w = w, .over = sb_cancel_new(err) };
	pthread_t thread;
	char any[64];
	int r = t.over ? 0 : SB_E_NOMEM;

	p->v.call.cancel = t.over;
	if (r == 0 && pthread_create(&thread, NULL, type, &t) != 0)
		r = sb_fail(err, SB_E_SYS, "cannot start a thread");
	if (r == 0) {
		r = show(p, w, s,
			sb_websocket_offered(call, "X-Daytona-Pty-Exit-Control", any, sizeof any),
			err);
		/* What it typed before it went is still to be read. */
		if (r != 1) {
			sb_cancel_request(t.over);
			sb_websocket_leave(w);
		}
		(void)pthread_join(thread, NULL);
		r = r == 1 ? 0 : r;
	}
	sb_guest_leave(s);
	sb_cancel_free(t.over);
	return r;
}

/* The environment in a subprotocol's name: JSON in base64url. */
static json_t *
envs_of(struct sb_rpc_call *call)
{
	static const char prefix[] = "X-Daytona-Pty-Envs~";
	sb_autofree char *text = malloc(ENVS_MAX);
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, ENVS_MAX);
	if (!text || !sb_websocket_offered(call, prefix, text, ENVS_MAX) ||
		!sb_base64_decode(text + sizeof prefix - 1, strlen(text + sizeof prefix - 1), &b))
		return json_object();
	return sb_rpc_json_parse(b.data, b.len, NULL);
}

static int64_t
size_of(const struct sb_query *q, const char *name, int64_t normal)
{
	const char *text = sb_query_get(q, name);
	int64_t n = normal;

	return text && !sb_str_to_i64(text, 1, SIZE_MAX_CELLS, &n) ? normal : n;
}

static int
create_connect(struct sb_rpc_call *call, const struct sb_query *q, struct sb_websocket *w,
	struct sb_error *err)
{
	struct sb_host_call limits = sb_answer_limits(call);
	const char *id = sb_query_get(q, "id"), *cwd = sb_query_get(q, "cwd");
	json_t *envs = envs_of(call), *o;
	struct sb_guest_stream *s = NULL;
	struct pty p = { 0 };
	int r = envs ? 0 : sb_fail(err, SB_E_INVAL, "the environment cannot be read");

	o = json_pack("{s:I, s:I, s:s, s:b, s:o}", "cols", (json_int_t)size_of(q, "cols", 80),
		"rows", (json_int_t)size_of(q, "rows", 24), "cwd", cwd ? cwd : "", "lazyStart", 0,
		"envs", envs ? envs : json_object());
	if (r == 0)
		r = sb_daytona_visit_id(sb_rpc_call_arg(call), q->segments.v[1], &limits, &p.v,
			err);
	if (r == 0)
		r = set_name(&p, id ? id : "", err);
	if (r == 0)
		r = make(&p, o, &s, err);
	json_decref(o);
	if (r == 0)
		r = join(call, &p, w, s, err);
	else
		(void)say(w,
			json_pack("{s:s, s:s, s:s}", "type", "control", "status", "error", "error",
				err->msg),
			NULL);
	sb_daytona_visit_end(&p.v);
	return r;
}

static int
connect_to(struct sb_rpc_call *call, const struct sb_query *q, struct sb_websocket *w,
	struct sb_error *err)
{
	struct sb_host_call limits = sb_answer_limits(call);
	struct sb_guest_stream *s = NULL;
	struct pty p = { 0 };
	const json_t *o;
	int64_t pid;
	int r = sb_daytona_visit_id(sb_rpc_call_arg(call), q->segments.v[1], &limits, &p.v, err);

	if (r == 0)
		r = set_name(&p, q->segments.v[4], err);
	o = r == 0 ? json_object_get(p.v.rec, p.member) : NULL;
	if (r == 0 && !o)
		r = sb_fail(err, SB_E_NOTFOUND, "PTY session %.64s not found", p.id);
	if (r == 0) {
		const struct sb_guest_who who = { .tag = p.tag };

		r = sb_guest_attach(p.v.d->guests, p.v.id, &who, &p.v.call, &s, &pid, err);
		if (r == SB_E_PROCESS_NOT_FOUND && json_is_true(json_object_get(o, "lazyStart")))
			r = begin(&p, o, &s, err);
	}
	if (r == 0)
		r = join(call, &p, w, s, err);
	else
		(void)say(w,
			json_pack("{s:s, s:s, s:s}", "type", "control", "status", "error", "error",
				err->msg),
			NULL);
	sb_daytona_visit_end(&p.v);
	return r;
}

#define P "/process/pty"
#define ROUTE(verb, path, run, body) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, 0, NULL \
	}
const struct sb_daytona_route sb_daytona_pty_routes[] = {
	ROUTE("POST", P, create, WHOLE),
	ROUTE("GET", P, list, NO_BODY),
	{ "GET", P "/create-connect", NULL, SB_RPC_HTTP_NO_BODY, SB_DAYTONA_ENDLESS,
		create_connect },
	ROUTE("GET", P "/*", get, NO_BODY),
	ROUTE("DELETE", P "/*", delete_it, NO_BODY),
	ROUTE("POST", P "/*/resize", resize, WHOLE),
	{ "GET", P "/*/connect", NULL, SB_RPC_HTTP_NO_BODY, SB_DAYTONA_ENDLESS, connect_to },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
