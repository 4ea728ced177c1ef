/* SPDX-License-Identifier: MIT */
/*
 * Sessions: a shell each, which runs one command after the other. Everything of them is inside the
 * sandbox, so that a restart of the host loses nothing: the shell is a program of the guest's, and
 * HOME/.daytona/sessions/SESSION/COMMAND has the files
 *   cmd    what to run; it is sourced, so that directory and variables stay for the next one
 *   in     a FIFO, its input
 *   out, err, code   what it said and how it ended; code comes last
 *   echo   there when its input is to be seen in out
 * Names of commands begin with the time, so that they sort.
 */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define NAME_MAX_LEN 128
#define COMMAND_MAX (1u << 20)
#define INPUT_MAX 100000
#define LOG_MAX (16u << 20)
#define LOOK_MS 250 /* also where no change is told */
#define ALIVE_MS 2000

/* A name that is a file's, too. */
static bool
is_name(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return *s && *s != '.' && strlen(s) <= NAME_MAX_LEN && s[strspn(s, letters)] == '\0';
}

int
sb_daytona_read_small(struct sb_daytona_visit *v, const char *path, struct sb_buf *out,
	struct sb_error *err)
{
	struct sb_guest_stream *s = NULL;
	int64_t n = 1;
	int r = sb_guest_open(v->d->guests, v->id, path, 0, 0, &v->call, &s, NULL, err);

	/* What is beyond the buffer's end is left out. */
	while (r == 0 && n > 0 && out->len + 1 < out->max) {
		size_t room = out->max - 1 - out->len;

		n = sb_guest_read(s, out->len, room < SB_GUEST_DATA_MAX ? room : SB_GUEST_DATA_MAX,
			&v->call, out, err);
		r = n < 0 ? (int)n : sb_buf_check(out, path, err);
	}
	sb_guest_leave(s);
	return r;
}

int
sb_daytona_write_small(struct sb_daytona_visit *v, const char *path, const void *data, size_t len,
	unsigned mode, struct sb_error *err)
{
	struct sb_guest_stream *s = NULL;
	int r = sb_guest_open(v->d->guests, v->id, path,
		SB_GUEST_WRITING | SB_GUEST_PARENTS | SB_GUEST_NEW, mode, &v->call, &s, NULL, err);

	if (r == 0 && len > 0)
		r = sb_guest_write(s, data, len, &v->call, err);
	if (r == 0)
		r = sb_guest_flush(s, &v->call, err);
	sb_guest_leave(s);
	return r;
}

bool
sb_daytona_runs(struct sb_daytona_visit *v, const char *tag)
{
	struct sb_guest_running *p = NULL;
	bool yes = false;
	size_t n = 0;

	if (sb_guest_list(v->d->guests, v->id, &v->call, &p, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		yes |= strcmp(p[i].tag, tag) == 0;
	sb_guest_running_free(p, n);
	return yes;
}

/* A session, or a command of it, that a path names. */
struct place {
	struct sb_daytona_visit v;
	char tag[NAME_MAX_LEN + 20];
	char *dir;     /* of the session */
	char *command; /* of the command, or NULL */
};

static void
place_end(struct place *p)
{
	sb_daytona_visit_end(&p->v);
	free(p->dir);
	free(p->command);
}

static char *
path_of(const struct sb_daytona_visit *v, const char *session, const char *command)
{
	return sb_str_printf("%s/.daytona/sessions/%s%s%s", v->home, session, command ? "/" : "",
		command ? command : "");
}

static bool
exists(struct sb_daytona_visit *v, const char *path)
{
	return sb_guest_stat(v->d->guests, v->id, path, &v->call, NULL, NULL) == 0;
}

/* 0: it is there; 1: answered; else an error. */
static int
find(struct sb_rpc_call *call, const struct sb_query *q, struct place *p, struct sb_error *err)
{
	const char *session = q->segments.v[4],
		   *command = q->segments.n > 6 ? q->segments.v[6] : NULL;
	int r = sb_daytona_visit(call, q, &p->v, err);

	if (r != 0)
		return r;
	if (!is_name(session) || (command && !is_name(command)))
		return sb_daytona_refuse(call, 404, "session not found"), 1;
	(void)snprintf(p->tag, sizeof p->tag, "daytona-session:%s", session);
	p->dir = path_of(&p->v, session, NULL);
	p->command = command ? path_of(&p->v, session, command) : NULL;
	if (!p->dir || (command && !p->command))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!exists(&p->v, p->dir))
		return sb_daytona_refuse(call, 404, "session not found"), 1;
	if (command && !exists(&p->v, p->command))
		return sb_daytona_refuse(call, 404, "command not found"), 1;
	return 0;
}

static int
start_shell(struct sb_daytona_visit *v, const char *dir, const char *tag, struct sb_error *err)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"s=$(command -v bash || echo sh); exec \"$s\" >/dev/null 2>&1", NULL };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_guest_program p = { .argv = argv, .cwd = v->home, .tag = tag, .input = true };
	struct sb_guest_stream *s = NULL;
	int64_t pid;
	int r;

	sb_daytona_env(v, NULL, v->home, &env);
	sb_strlist_addf(&env, "DAYTONA_SESSION_DIR=%s", dir);
	r = sb_strlist_check(&env, err);
	p.env = (const char *const *)env.v;
	if (r == 0)
		r = sb_guest_start(v->d->guests, v->id, &p, &v->call, &s, &pid, err);
	sb_guest_leave(s);
	return r;
}

static int
create(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *in = sb_answer_body(call, err);
	struct place p = { 0 };
	struct sb_rpc_fields f;
	const char *id;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	id = sb_rpc_field_str(&f, "sessionId", NAME_MAX_LEN, SB_RPC_REQUIRED);
	if (!f.failed && !is_name(id))
		sb_rpc_field_bad(&f, "sessionId", "must be letters, digits, '.', '_' and '-'");
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &p.v, err);
	if (r == 0) {
		(void)snprintf(p.tag, sizeof p.tag, "daytona-session:%s", id);
		p.dir = path_of(&p.v, id, NULL);
		r = p.dir ? sb_guest_mkdir(p.v.d->guests, p.v.id, p.dir, &p.v.call, NULL, err) :
			    SB_E_NOMEM;
		if (r == SB_E_EXISTS) {
			r = sb_daytona_refuse(call, 409, "session already exists");
		} else if (r == 0) {
			r = start_shell(&p.v, p.dir, p.tag, err);
			if (r == 0)
				sb_rpc_http_reply(call, 201, NULL, NULL, 0);
			else
				(void)sb_guest_remove(p.v.d->guests, p.v.id, p.dir, &p.v.call,
					NULL);
		}
	}
	json_decref(in);
	place_end(&p);
	return r < 0 ? r : 0;
}

/* A small file beneath as a text. False: there is none. */
static bool
read_text(struct sb_daytona_visit *v, const char *dir, const char *name, struct sb_buf *out)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, name);

	return path && sb_daytona_read_small(v, path, out, NULL) == 0;
}

static bool
exit_code(struct sb_daytona_visit *v, const char *command, int *code)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 32);
	if (!read_text(v, command, "code", &b) || b.len == 0)
		return false;
	*code = (int)strtol((char *)b.data, NULL, 10);
	return true;
}

static json_t *
command_json(struct sb_daytona_visit *v, const char *dir, const char *id)
{
	sb_auto(sb_buf) struct sb_buf text;
	json_t *o;
	int code;

	sb_buf_init(&text, COMMAND_MAX + 1);
	if (!read_text(v, dir, "cmd", &text))
		return NULL;
	o = json_pack("{s:s, s:o}", "id", id, "command",
		sb_rpc_json_text(text.data ? (char *)text.data : "", text.len));
	if (exit_code(v, dir, &code))
		(void)json_object_set_new(o, "exitCode", json_integer(code));
	return o;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct sb_guest_entry *)a)->name,
		((const struct sb_guest_entry *)b)->name);
}

static json_t *
session_json(struct sb_daytona_visit *v, const char *dir, const char *id, struct sb_error *err)
{
	struct sb_guest_entry *e = NULL;
	json_t *commands = json_array();
	size_t n = 0;
	int r = sb_guest_dir(v->d->guests, v->id, dir, 1, &v->call, &e, &n, err);

	if (r == 0)
		qsort(e, n, sizeof *e, by_name);
	for (size_t i = 0; r == 0 && i < n; i++) {
		sb_autofree char *one = sb_str_printf("%s/%s", dir, e[i].name);
		json_t *o = one && is_name(e[i].name) ? command_json(v, one, e[i].name) : NULL;

		if (o)
			(void)json_array_append_new(commands, o);
	}
	if (r == 0)
		sb_guest_entries_free(e, n);
	return json_pack("{s:s, s:o}", "sessionId", id, "commands", commands);
}

static int
get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct place p = { 0 };
	int r = find(call, q, &p, err);

	if (r == 0)
		r = sb_answer_json(call, 200, session_json(&p.v, p.dir, q->segments.v[4], NULL),
			err);
	place_end(&p);
	return r < 0 ? r : 0;
}

static int
list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	struct sb_guest_entry *e = NULL;
	json_t *out = json_array();
	size_t n = 0;
	int r = sb_daytona_visit(call, q, &v, err);

	if (r == 0) {
		sb_autofree char *dir = sb_str_printf("%s/.daytona/sessions", v.home);

		r = dir ? sb_guest_dir(v.d->guests, v.id, dir, 1, &v.call, &e, &n, err) :
			  SB_E_NOMEM;
		if (r == SB_E_NOTFOUND)
			r = 0;
		for (size_t i = 0; r == 0 && i < n; i++) {
			sb_autofree char *one = path_of(&v, e[i].name, NULL);

			if (one && is_name(e[i].name))
				(void)json_array_append_new(out,
					session_json(&v, one, e[i].name, NULL));
		}
		if (e)
			sb_guest_entries_free(e, n);
		if (r == 0)
			r = sb_answer_json(call, 200, json_incref(out), err);
	}
	json_decref(out);
	return r < 0 ? r : 0;
}

static int
delete_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct place p = { 0 };
	int r = find(call, q, &p, err);

	if (r == 0) {
		const struct sb_guest_who who = { .tag = p.tag };

		/* It may have ended by itself. */
		(void)sb_guest_signal(p.v.d->guests, p.v.id, &who, SIGKILL, &p.v.call, NULL);
		r = sb_guest_remove(p.v.d->guests, p.v.id, p.dir, &p.v.call, err);
		if (r == 0)
			sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	}
	place_end(&p);
	return r < 0 ? r : 0;
}

/* Waits for the command's end, or its shell's: then the code is -1. */
static int
wait_for_end(struct place *p, int *code, struct sb_error *err)
{
	struct sb_guest_stream *watch = NULL;
	struct sb_guest_event ev;
	int64_t alive = sb_now_ms() + ALIVE_MS;
	int r = 0;

	(void)sb_guest_watch(p->v.d->guests, p->v.id, p->command, 0, &p->v.call, &watch, NULL);
	while (r == 0 && !exit_code(&p->v, p->command, code)) {
		r = sb_check_alive(p->v.call.cancel, p->v.call.deadline, "command", err);
		if (r == 0 && sb_now_ms() > alive) {
			alive = sb_now_ms() + ALIVE_MS;
			if (!sb_daytona_runs(&p->v, p->tag) &&
				!exit_code(&p->v, p->command, code)) {
				*code = -1;
				break;
			}
		}
		/* Any event may be the one; without a watch the time passes. */
		if (r == 0 && !watch) {
			(void)poll(NULL, 0, LOOK_MS / 5);
		} else if (r == 0 && sb_guest_next(watch, LOOK_MS, &p->v.call, &ev, NULL) < 0) {
			sb_guest_leave(watch);
			watch = NULL;
		}
	}
	sb_guest_leave(watch);
	return r;
}

/* Whether the shell came to it. */
static bool
began(struct place *p)
{
	sb_autofree char *path = sb_str_printf("%s/in", p->command);

	return path && exists(&p->v, path);
}

/* Both outputs, as far as there are any. */
static json_t *
logs_json(struct sb_daytona_visit *v, const char *command)
{
	sb_auto(sb_buf) struct sb_buf out, err;
	json_t *o;

	sb_buf_init(&out, 2 * LOG_MAX);
	sb_buf_init(&err, LOG_MAX);
	(void)read_text(v, command, "out", &out);
	(void)read_text(v, command, "err", &err);
	o = json_pack("{s:o, s:o}", "stdout",
		sb_rpc_json_text(out.data ? (char *)out.data : "", out.len), "stderr",
		sb_rpc_json_text(err.data ? (char *)err.data : "", err.len));
	sb_buf_add(&out, err.data, err.len);
	(void)json_object_set_new(o, "output",
		sb_rpc_json_text(out.data ? (char *)out.data : "", out.len));
	return o;
}

/* A UUID that begins with the time. */
static void
command_id(char out[SB_DAYTONA_ID_LEN + 1])
{
	uint64_t ms = (uint64_t)sb_host_now_ns() / 1000000;
	char uuid[SB_DAYTONA_ID_LEN + 1];

	sb_daytona_uuid(uuid);
	(void)snprintf(out, SB_DAYTONA_ID_LEN + 1, "%08x-%04x-7%s", (unsigned)(ms >> 16),
		(unsigned)(ms & 0xffff), uuid + 15);
}

/* What the shell reads: runs the file, whatever is in it, and says how it ended, also by exit. */
#define RUN_LINE \
	"mkfifo \"$DAYTONA_SESSION_DIR/%s/in\"; trap 'c=$?; echo $c " \
	">\"$DAYTONA_SESSION_DIR/%s/code.t\"; mv -f \"$DAYTONA_SESSION_DIR/%s/code.t\" " \
	"\"$DAYTONA_SESSION_DIR/%s/code\"' EXIT; . \"$DAYTONA_SESSION_DIR/%s/cmd\" " \
	"<>\"$DAYTONA_SESSION_DIR/%s/in\" >>\"$DAYTONA_SESSION_DIR/%s/out\" " \
	"2>>\"$DAYTONA_SESSION_DIR/%s/err\"; echo $? >\"$DAYTONA_SESSION_DIR/%s/code.t\"; " \
	"trap - EXIT; mv -f \"$DAYTONA_SESSION_DIR/%s/code.t\" \"$DAYTONA_SESSION_DIR/%s/code\"\n"

static int
give(struct place *p, const char *id, const char *text, bool echo, struct sb_error *err)
{
	const struct sb_guest_who who = { .tag = p->tag };
	sb_autofree char *file = sb_str_printf("%s/cmd", p->command);
	sb_autofree char *mark = sb_str_printf("%s/echo", p->command);
	sb_autofree char *line =
		sb_str_printf(RUN_LINE, id, id, id, id, id, id, id, id, id, id, id);
	int r = file && mark && line ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0)
		r = sb_daytona_write_small(&p->v, file, text, strlen(text), 0600, err);
	if (r == 0 && echo)
		r = sb_daytona_write_small(&p->v, mark, "", 0, 0600, err);
	if (r == 0)
		r = sb_guest_input(p->v.d->guests, p->v.id, &who, false, line, strlen(line),
			&p->v.call, err);
	return r;
}

static int
exec(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *in = sb_answer_body(call, err), *o;
	char id[SB_DAYTONA_ID_LEN + 1];
	struct place p = { 0 };
	struct sb_rpc_fields f;
	const char *text;
	bool async, quiet;
	int r, code = 0;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	text = sb_rpc_field_str(&f, "command", COMMAND_MAX, SB_RPC_REQUIRED);
	async = sb_rpc_field_bool(&f, "runAsync") || sb_rpc_field_bool(&f, "async");
	quiet = sb_rpc_field_bool(&f, "suppressInputEcho");
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = find(call, q, &p, err);
	if (r == 0) {
		command_id(id);
		p.command = path_of(&p.v, q->segments.v[4], id);
		r = p.command ? give(&p, id, text, !quiet, err) : SB_E_NOMEM;
		if (r == SB_E_PROCESS_NOT_FOUND || r == SB_E_CLOSED)
			r = sb_daytona_refuse(call, 410, "session is over: its shell has ended");
		else if (r == 0 && async)
			r = sb_answer_json(call, 202, json_pack("{s:s}", "cmdId", id), err);
		else if (r == 0)
			r = wait_for_end(&p, &code, err);
		if (r == 0 && !sb_rpc_http_answered(call) && code == -1 && !began(&p)) {
			r = sb_daytona_refuse(call, 410, "session is over: its shell has ended");
		} else if (r == 0 && !sb_rpc_http_answered(call)) {
			o = logs_json(&p.v, p.command);
			(void)json_object_set_new(o, "cmdId", json_string(id));
			(void)json_object_set_new(o, "exitCode", json_integer(code));
			r = sb_answer_json(call, 200, o, err);
		}
	}
	json_decref(in);
	place_end(&p);
	return r < 0 ? r : 0;
}

static int
command(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct place p = { 0 };
	int r = find(call, q, &p, err);

	if (r == 0) {
		json_t *o = command_json(&p.v, p.command, q->segments.v[6]);

		r = o ? sb_answer_json(call, 200, o, err) :
			sb_daytona_refuse(call, 404, "command not found");
	}
	place_end(&p);
	return r < 0 ? r : 0;
}

static int
logs(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct place p = { 0 };
	int r = find(call, q, &p, err);

	if (r == 0)
		r = sb_answer_json(call, 200, logs_json(&p.v, p.command), err);
	place_end(&p);
	return r < 0 ? r : 0;
}

/* One output that is followed. */
struct tail {
	struct sb_guest_stream *s;
	uint64_t at;
	const char *name;
	char mark; /* three of them are before its bytes */
};

/* Sends what is new. 1: there was something. */
static int
send_new(struct place *p, struct tail *t, struct sb_websocket *w, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", p->command, t->name);
	sb_auto(sb_buf) struct sb_buf b;
	int64_t n;
	int r;

	sb_buf_init(&b, SB_GUEST_DATA_MAX + 8);
	/* It comes when the command's turn has come. */
	if (!t->s && path &&
		sb_guest_open(p->v.d->guests, p->v.id, path, 0, 0, &p->v.call, &t->s, NULL, NULL) <
			0)
		return 0;
	for (int i = 0; i < 3; i++)
		sb_buf_add_char(&b, t->mark);
	n = sb_guest_read(t->s, t->at, SB_GUEST_DATA_MAX, &p->v.call, &b, err);
	if (n <= 0)
		return (int)n;
	t->at += (uint64_t)n;
	r = sb_websocket_send(w, SB_WSFRAME_BINARY, b.data, b.len, SB_WEBSOCKET_SEND_MS, err);
	return r < 0 ? r : 1;
}

static int
follow_all(struct place *p, struct sb_websocket *w, struct sb_error *err)
{
	struct tail tails[2] = { { .name = "out", .mark = 1 }, { .name = "err", .mark = 2 } };
	int64_t alive = sb_now_ms() + ALIVE_MS;
	bool over = false;
	int r = 0, code;

	while (r >= 0) {
		enum sb_wsframe_kind kind;
		const uint8_t *data;
		size_t len;
		bool last = over;

		r = send_new(p, &tails[0], w, err);
		if (r >= 0) {
			int s = send_new(p, &tails[1], w, err);

			r = s < 0 ? s : r | s;
		}
		if (r != 0)
			continue;
		/* What was written before its end has been sent now. */
		if (last)
			break;
		over = exit_code(&p->v, p->command, &code);
		if (!over && sb_now_ms() > alive) {
			alive = sb_now_ms() + ALIVE_MS;
			over = !sb_daytona_runs(&p->v, p->tag);
		}
		if (!over)
			r = sb_websocket_next(w, LOOK_MS / 5, &kind, &data, &len, err);
	}
	for (int i = 0; i < 2; i++)
		sb_guest_leave(tails[i].s);
	return r == SB_E_CLOSED ? 0 : r < 0 ? r : 0;
}

/* A visit without a request that could be answered. */
static int
enter_socket(struct sb_rpc_call *call, const struct sb_query *q, struct place *p,
	struct sb_error *err)
{
	struct sb_host_call limits = sb_answer_limits(call);
	int r = sb_daytona_visit_id(sb_rpc_call_arg(call), q->segments.v[1], &limits, &p->v, err);

	if (r < 0)
		return r;
	if (!is_name(q->segments.v[4]) || !is_name(q->segments.v[6]))
		return sb_fail(err, SB_E_NOTFOUND, "command not found");
	(void)snprintf(p->tag, sizeof p->tag, "daytona-session:%s", q->segments.v[4]);
	p->command = path_of(&p->v, q->segments.v[4], q->segments.v[6]);
	if (!p->command)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return exists(&p->v, p->command) ? 0 : sb_fail(err, SB_E_NOTFOUND, "command not found");
}

static int
follow(struct sb_rpc_call *call, const struct sb_query *q, struct sb_websocket *w,
	struct sb_error *err)
{
	struct place p = { 0 };
	int r = enter_socket(call, q, &p, err);

	if (r == 0)
		r = follow_all(&p, w, err);
	place_end(&p);
	return r;
}

static int
input(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { .limit_ms = 30000, .apart = true };
	const char *argv[] = { "/bin/sh", "-c",
		"[ ! -e \"$2/echo\" ] || printf %s \"$1\" >>\"$2/out\"; printf %s \"$1\" "
		"1<>\"$2/in\"",
		"sh", NULL, NULL, NULL };
	json_t *in = sb_answer_body(call, err);
	struct place p = { 0 };
	struct sb_rpc_fields f;
	int r, code;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	argv[4] = sb_rpc_field_str(&f, "data", INPUT_MAX, SB_RPC_REQUIRED);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = find(call, q, &p, err);
	if (r == 0 && exit_code(&p.v, p.command, &code)) {
		(void)sb_daytona_refuse(call, 410, "the command has ended");
		r = 1;
	}
	if (r == 0) {
		argv[5] = p.command;
		run.argv = argv;
		run.cwd = p.v.home;
		r = sb_daytona_run(&p.v, &run, err);
		if (r == 0 && run.code != 0)
			r = sb_daytona_refuse(call, 409, "the command does not take it");
		else if (r == 0)
			sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	}
	json_decref(in);
	place_end(&p);
	return r < 0 ? r : 0;
}

/* No program of an image is started here. */
static int
entrypoint(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	(void)err;
	return sb_daytona_refuse(call, 404, "a sandbox of this host has no entrypoint");
}

#define S "/process/session"
#define ROUTE(verb, path, run, body, how) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, how, NULL \
	}
const struct sb_daytona_route sb_daytona_session_routes[] = {
	ROUTE("POST", S, create, WHOLE, 0),
	ROUTE("GET", S, list, NO_BODY, 0),
	ROUTE("GET", S "/entrypoint", entrypoint, NO_BODY, 0),
	ROUTE("GET", S "/entrypoint/logs", entrypoint, NO_BODY, 0),
	ROUTE("GET", S "/*", get, NO_BODY, 0),
	ROUTE("DELETE", S "/*", delete_it, NO_BODY, 0),
	ROUTE("POST", S "/*/exec", exec, WHOLE, SB_DAYTONA_LASTS),
	ROUTE("GET", S "/*/command/*", command, NO_BODY, 0),
	{ "GET", S "/*/command/*/logs", logs, SB_RPC_HTTP_NO_BODY, SB_DAYTONA_ENDLESS, follow },
	ROUTE("POST", S "/*/command/*/input", input, WHOLE, 0),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
