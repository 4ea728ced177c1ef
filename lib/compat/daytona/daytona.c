/* SPDX-License-Identifier: MIT */
/* The Daytona API as a service: keys, routes, answers and errors in the vendor's shape. */
#include "config.h"

#include <sb/daytona.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>
#include <rpc/service/daemon.h>

/* What `open_request` found, for the handler. */
struct found {
	const struct sb_daytona_route *route; /* NULL: nothing */
	enum sb_daytona_plane plane;
};

static const char *
phrase(int status)
{
	switch (status) {
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 410: return "Gone";
	case 413: return "Payload Too Large";
	case 422: return "Unprocessable Entity";
	case 429: return "Too Many Requests";
	case 501: return "Not Implemented";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	default: return "Internal Server Error";
	}
}

static int
answer(struct sb_rpc_call *call, int status, const char *code, const char *text)
{
	const struct found *f = sb_rpc_http_route(call);
	const char *target = sb_rpc_http_target(call);
	sb_autofree char *path = strndup(target, strcspn(target, "?"));
	json_t *o = json_pack("{s:i, s:o, s:o, s:o}", "statusCode", status, "message",
		sb_answer_text(text), "timestamp", sb_answer_time(sb_host_now_ns()), "path",
		sb_answer_text(path ? path : ""));

	if (f && f->plane == SB_DAYTONA_TOOLBOX) {
		(void)json_object_set_new(o, "method", json_string(sb_rpc_http_verb(call)));
		(void)json_object_set_new(o, "source", json_string("DAYTONA_DAEMON"));
		if (code)
			(void)json_object_set_new(o, "code", json_string(code));
	} else {
		(void)json_object_set_new(o, "error", json_string(phrase(status)));
	}
	return sb_answer_json(call, status, o, NULL);
}

int
sb_daytona_refuse(struct sb_rpc_call *call, int status, const char *fmt, ...)
{
	char text[SB_ERROR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return answer(call, status, NULL, text);
}

int
sb_daytona_refuse_as(struct sb_rpc_call *call, int status, const char *code, const char *fmt, ...)
{
	char text[SB_ERROR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return answer(call, status, code, text);
}

void
sb_daytona_base(struct sb_rpc_call *call, char out[SB_DAYTONA_BASE_MAX])
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	const char *host = sb_rpc_http_header(call, "Host"),
		   *proto = sb_rpc_http_header(call, "X-Forwarded-Proto");
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_:[]";

	/* What a proxy says of itself concerns nobody but who came through it. */
	if (!host || !*host || strlen(host) > 255 || host[strspn(host, letters)] != '\0')
		host = "localhost";
	(void)snprintf(out, SB_DAYTONA_BASE_MAX, "%s://%s",
		d->tls || (proto && strcmp(proto, "https") == 0) ? "https" : "http", host);
}

bool
sb_daytona_key_ok(struct sb_daytona *d, const char *key)
{
	sb_autofree char *value = sb_str_printf("Bearer %s", key);
	struct sb_rpc_who who;

	return value && sb_rpc_auth_check(d->keys, value, time(NULL), &who, NULL) == 0;
}

/* Both "/api/sandbox" and "/sandbox" are the API's. */
static size_t
skip_api(const struct sb_query *q)
{
	return q->segments.n > 0 && strcmp(q->segments.v[0], "api") == 0;
}

static bool
find_route(const char *verb, const struct sb_query *q, struct found *f)
{
	static const struct sb_daytona_route *const control[] = { sb_daytona_sandbox_routes,
		sb_daytona_list_routes, sb_daytona_ssh_routes, sb_daytona_port_routes,
		sb_daytona_snapshot_routes, sb_daytona_get_routes, sb_daytona_event_routes, NULL };
	static const struct sb_daytona_route *const toolbox[] = { sb_daytona_toolbox_routes,
		sb_daytona_file_routes, sb_daytona_inner_port_routes, sb_daytona_session_routes,
		sb_daytona_pty_routes, sb_daytona_git_routes, NULL };
	size_t from = skip_api(q);
	const struct sb_daytona_route *const *t = control;

	f->plane = SB_DAYTONA_CONTROL;
	if (q->segments.n > from + 1 && strcmp(q->segments.v[from], "toolbox") == 0) {
		f->plane = SB_DAYTONA_TOOLBOX;
		from += 2;
		t = toolbox;
	} else if (q->segments.n > from + 1 && strcmp(q->segments.v[from], "preview") == 0) {
		f->plane = SB_DAYTONA_PREVIEW;
		f->route = &sb_daytona_preview_route;
		return true;
	}
	for (; *t; t++)
		for (const struct sb_daytona_route *r = *t; r->verb; r++)
			if (strcmp(r->verb, verb) == 0 && sb_query_matches(q, from, r->path)) {
				f->route = r;
				return true;
			}
	return false;
}

/* The handlers see the path behind "/api". */
static int
parse(struct sb_rpc_call *call, struct sb_query *q, struct sb_error *err)
{
	int r = sb_query_parse(sb_rpc_http_target(call), q, err);

	if (r == 0 && skip_api(q)) {
		free(q->segments.v[0]);
		q->segments.n--;
		memmove(q->segments.v, q->segments.v + 1, q->segments.n * sizeof(char *));
		q->segments.v[q->segments.n] = NULL;
	}
	return r;
}

static int
run_route(struct sb_rpc_call *call, struct sb_error *err)
{
	const struct found *f = sb_rpc_http_route(call);
	struct sb_query q;
	int r = parse(call, &q, err);

	if (r < 0)
		return r;
	r = f->route->run(call, &q, err);
	sb_query_free(&q);
	return r;
}

static int
run_socket(struct sb_rpc_call *call, int sock, struct sb_error *err)
{
	const struct found *f = sb_rpc_http_route(call);
	sb_auto(sb_websocket) struct sb_websocket *w =
		sb_websocket_new(sock, sb_rpc_call_cancel(call), err);
	struct sb_query q;
	int r = w ? parse(call, &q, err) : SB_E_NOMEM;

	if (r < 0)
		return r;
	r = f->route->socket(call, &q, w, err);
	sb_websocket_close(w, r < 0 ? 1011 : 1000, r < 0 && err ? err->msg : "");
	sb_query_free(&q);
	return r;
}

/* The sandbox's own token opens what its ports' addresses lead to. */
static bool
preview_token(struct sb_daytona *d, struct sb_rpc_call *call, const struct sb_query *q,
	const char *id)
{
	const char *given = sb_rpc_http_header(call, "X-Daytona-Preview-Token");
	json_t *rec;
	bool ok;

	if (!given)
		given = sb_query_get(q, "DAYTONA_SANDBOX_AUTH_KEY");
	if (!given)
		return false;
	rec = sb_daytona_record_find(d, "sandbox", id);
	ok = rec && sb_keys_same(sb_daytona_text(rec, "token"), given);
	json_decref(rec);
	return ok;
}

static int
check_who(struct sb_daytona *d, struct sb_rpc_call *call, const struct sb_query *q,
	const struct found *f, struct sb_rpc_who *who, struct sb_error *err)
{
	unsigned how = f->route ? f->route->how : 0;

	*who = (struct sb_rpc_who){ .role = SB_RPC_ROLE_SESSION, .name = "anybody" };
	if (how & SB_DAYTONA_OPEN)
		return 0;
	if ((how & SB_DAYTONA_SIGNED) && sb_query_get(q, "signature"))
		return 0; /* the handler looks at it */
	if (f->plane == SB_DAYTONA_TOOLBOX && f->route &&
		preview_token(d, call, q, q->segments.v[1])) {
		(void)snprintf(who->session, sizeof who->session, "%s", q->segments.v[1]);
		return 0;
	}
	if (sb_rpc_auth_check(d->keys, sb_rpc_http_header(call, "Authorization"), time(NULL), who,
		    err) < 0)
		return sb_fail(err, SB_E_AUTH, "Invalid credentials");
	return 0;
}

static int
plan_it(struct sb_rpc_call *call, const struct sb_daytona_route *r, struct sb_rpc_http_plan *plan,
	struct sb_error *err)
{
	char chosen[64];
	bool some = sb_websocket_offered(call, "X-Daytona-Pty-Exit-Control", chosen, sizeof chosen);

	plan->body = r->body;
	plan->stream = r->how & SB_DAYTONA_LASTS;
	plan->endless = r->how & SB_DAYTONA_ENDLESS;
	if (r->socket && (!r->run || sb_websocket_wanted(call))) {
		if (!sb_websocket_wanted(call))
			return sb_fail(err, SB_E_INVAL, "this is a WebSocket: Upgrade is missing");
		plan->upgrade = run_socket;
		plan->stream = true;
		return sb_websocket_accept(call, some ? chosen : NULL, err);
	}
	plan->run = run_route;
	return 0;
}

static int
open_request(struct sb_rpc_call *call, struct sb_rpc_http_plan *plan, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct found *f = sb_rpc_http_keep(call, sizeof *f);
	struct sb_query q;
	int r = f ? parse(call, &q, err) : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r < 0)
		return r;
	*f = (struct found){ 0 };
	plan->route = f;
	(void)find_route(sb_rpc_http_verb(call), &q, f);
	/* What does not exist is not told to strangers. */
	r = check_who(d, call, &q, f, &plan->who, err);
	sb_query_free(&q);
	if (r == 0 && !f->route)
		r = sb_fail(err, SB_E_NOTFOUND, "Cannot %s %.200s", sb_rpc_http_verb(call),
			sb_rpc_http_target(call));
	return r < 0 ? r : plan_it(call, f->route, plan, err);
}

static void
fail_request(struct sb_rpc_call *call, const struct sb_rpc_failure *f)
{
	int status = f->http ? f->http : sb_rpc_code_http(f->code);

	if (status == 499)
		status = 500;
	if (f->code == SB_RPC_FAILED_PRECONDITION)
		status = 409;
	if (status == 429)
		sb_rpc_http_add_header(call, "Retry-After", "1");
	(void)answer(call, status, NULL, f->msg);
}

static const struct sb_rpc_http http = { open_request, fail_request };

void
sb_daytona_check(const struct sb_daytona_opts *opts, const struct sb_rpc_server_opts *server,
	void (*found)(const char *what, void *arg), void *arg)
{
	const char *const where[] = { opts->listen, NULL };
	struct sb_rpc_server_opts o = *server;
	struct sb_error err = { 0 };
	struct sb_rpc_auth *auth = sb_rpc_auth_new(&err);

	if (!auth || sb_keys_load("Daytona", opts->key_file, auth, &err) < 0)
		found(err.msg, arg);
	o.listen = where;
	o.auth = auth;
	if (auth && err.code == 0)
		sb_rpc_server_check(&o, found, arg);
	sb_rpc_auth_free(auth);
}

static int
start(struct sb_daytona *d, struct sb_rpc_daemon *daemon, const struct sb_daytona_opts *opts,
	const struct sb_rpc_server_opts *server, struct sb_error *err)
{
	const char *const where[] = { opts->listen, NULL };
	struct sb_rpc_server_opts o = *server;
	int r;

	d->host = sb_rpc_daemon_host(daemon);
	d->log = server->log;
	d->tls = server->tls_cert != NULL && strncmp(opts->listen, "unix:", 5) != 0;
	d->keys = sb_rpc_auth_new(err);
	d->guests = d->keys ? sb_guests_new(d->host, err) : NULL;
	if (!d->guests)
		return SB_E_NOMEM;
	if (opts->ssh_gateway && !(d->ssh_gateway = strdup(opts->ssh_gateway)))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_daytona_ssh_init(d);
	r = sb_keys_load("Daytona", opts->key_file, d->keys, err);
	if (r == 0)
		r = sb_daytona_record_load(d, err);
	if (r < 0)
		return r;
	d->keeper = sb_alarm_start(sb_daytona_keeper_round, d, err);
	if (!d->keeper)
		return SB_E_SYS;
	d->service = (struct sb_rpc_service){ .name = "daytona", .arg = d, .http = &http };
	o.listen = where;
	o.auth = d->keys;
	o.socket_auth = true;
	d->server = sb_rpc_server_start(&o, &d->service, err);
	return d->server ? 0 : SB_E_SYS;
}

struct sb_daytona *
sb_daytona_start(struct sb_rpc_daemon *daemon, const struct sb_daytona_opts *opts,
	const struct sb_rpc_server_opts *server, struct sb_error *err)
{
	struct sb_daytona *d = calloc(1, sizeof *d);

	if (!d) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&d->making, NULL);
	(void)pthread_mutex_init(&d->edit, NULL);
	(void)pthread_mutex_init(&d->mu, NULL);
	(void)pthread_mutex_init(&d->hub, NULL);
	if (start(d, daemon, opts, server, err) < 0) {
		sb_daytona_free(d);
		return NULL;
	}
	return d;
}

void
sb_daytona_stop(struct sb_daytona *d, int64_t grace_ms, const struct sb_cancel *hurry)
{
	sb_alarm_stop(d->keeper);
	d->keeper = NULL;
	if (d->server)
		sb_rpc_server_stop(d->server, grace_ms, hurry);
}

void
sb_daytona_free(struct sb_daytona *d)
{
	if (!d)
		return;
	sb_daytona_stop(d, 0, NULL);
	sb_rpc_server_free(d->server);
	sb_guests_free(d->guests);
	sb_rpc_auth_free(d->keys);
	sb_records_free(d->records);
	while (d->now) {
		struct sb_daytona_now *n = d->now;

		d->now = n->next;
		free(n);
	}
	(void)pthread_mutex_destroy(&d->making);
	(void)pthread_mutex_destroy(&d->edit);
	(void)pthread_mutex_destroy(&d->mu);
	(void)pthread_mutex_destroy(&d->hub);
	free(d->ssh_gateway);
	free(d);
}
