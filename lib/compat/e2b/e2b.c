/* SPDX-License-Identifier: MIT */
/* The E2B API as a service: keys, routes, answers and errors in the vendor's shape. */
#include "config.h"

#include <sb/e2b.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <host/host.h>
#include <rpc/service/daemon.h>

int64_t
sb_e2b_now(void)
{
	return sb_host_now_ns();
}

int
sb_e2b_refuse(struct sb_rpc_call *call, int status, const char *fmt, ...)
{
	char text[SB_ERROR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return sb_answer_json(call, status,
		json_pack("{s:i, s:o}", "code", status, "message",
			sb_rpc_json_text(text, strlen(text))),
		NULL);
}

static const struct sb_e2b_route *
find_route(const char *verb, const struct sb_query *q, bool inside)
{
	const struct sb_e2b_route *const inner[] = { sb_e2b_envd_routes, sb_e2b_process_routes,
		sb_e2b_filesystem_routes, sb_e2b_control_routes, NULL };
	const struct sb_e2b_route *const outer[] = { sb_e2b_control_routes, sb_e2b_envd_routes,
		sb_e2b_process_routes, sb_e2b_filesystem_routes, NULL };

	for (const struct sb_e2b_route *const *t = inside ? inner : outer; *t; t++)
		for (const struct sb_e2b_route *r = *t; r->verb; r++)
			if (strcmp(r->verb, verb) == 0 && sb_query_matches(q, 0, r->path))
				return r;
	return NULL;
}

/* The sandbox that a request names: by header, or as PORT-ID in the host's name. */
static const char *
sandbox_of(struct sb_rpc_call *call, char id[SB_E2B_ID_LEN + 1])
{
	const char *h = sb_rpc_http_header(call, "E2b-Sandbox-Id");
	const char *host = sb_rpc_http_header(call, "Host");

	id[0] = '\0';
	if (h && strlen(h) <= SB_E2B_ID_LEN) {
		(void)snprintf(id, SB_E2B_ID_LEN + 1, "%s", h);
	} else if (host && strncmp(host, SB_E2B_ENVD_PORT "-", 6) == 0) {
		size_t len = strcspn(host + 6, ".:");

		if (len <= SB_E2B_ID_LEN)
			(void)snprintf(id, SB_E2B_ID_LEN + 1, "%.*s", (int)len, host + 6);
	}
	return id;
}

static int
check_key(struct sb_e2b *e, struct sb_rpc_call *call, struct sb_rpc_who *who, struct sb_error *err)
{
	const char *key = sb_rpc_http_header(call, "X-API-Key");
	const char *bearer = sb_rpc_http_header(call, "Authorization");
	sb_autofree char *value = key ? sb_str_printf("Bearer %s", key) : NULL;

	if (sb_rpc_auth_check(e->keys, key ? value : bearer, time(NULL), who, err) < 0)
		return sb_fail(err, SB_E_AUTH, "Invalid API key");
	return 0;
}

/* Who is at the sandbox's own plane: the holder of its token. */
static int
check_token(struct sb_e2b *e, struct sb_rpc_call *call, const struct sb_e2b_route *r,
	struct sb_rpc_who *who, struct sb_error *err)
{
	const char *given = sb_rpc_http_header(call, "X-Access-Token");
	sb_auto(sb_e2b_record) struct sb_e2b_record *rec = NULL;
	char id[SB_E2B_ID_LEN + 1];

	rec = sb_e2b_record_find(e, sandbox_of(call, id));
	*who = (struct sb_rpc_who){ .role = SB_RPC_ROLE_SESSION, .name = "sandbox" };
	memcpy(who->session, id, sizeof id);
	/* A sandbox that is not there is no login that failed: 502. */
	if (!rec || rec->snapshot || r->open)
		return 0;
	if (!given || !sb_keys_same(rec->token, given))
		return sb_fail(err, SB_E_AUTH, "unauthorized access");
	return 0;
}

static int
run_route(struct sb_rpc_call *call, struct sb_error *err)
{
	const struct sb_e2b_route *r = sb_rpc_http_route(call);
	struct sb_query q;
	int res = sb_query_parse(sb_rpc_http_target(call), &q, err);

	if (res < 0)
		return res;
	res = r->run(call, &q, err);
	sb_query_free(&q);
	return res;
}

static int
open_request(struct sb_rpc_call *call, struct sb_rpc_http_plan *plan, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	const struct sb_e2b_route *r;
	char id[SB_E2B_ID_LEN + 1];
	struct sb_query q;
	int res = sb_query_parse(sb_rpc_http_target(call), &q, err);

	if (res < 0)
		return res;
	r = find_route(sb_rpc_http_verb(call), &q, *sandbox_of(call, id) != '\0');
	sb_query_free(&q);
	plan->route = r;
	/* What does not exist is not told to strangers. */
	if (!r) {
		res = check_key(e, call, &plan->who, err);
		return res < 0 ? res :
				 sb_fail(err, SB_E_NOTFOUND, "this host does not serve %s %.200s",
					 sb_rpc_http_verb(call), sb_rpc_http_target(call));
	}
	if (r->plane == SB_E2B_CONTROL)
		res = r->open ? 0 : check_key(e, call, &plan->who, err);
	else
		res = check_token(e, call, r, &plan->who, err);
	plan->run = run_route;
	plan->body = r->body;
	plan->stream = r->lasts;
	plan->endless = r->endless;
	return res;
}

/* The body's code decides with this vendor; on Connect's own routes it is a word. */
static void
fail_request(struct sb_rpc_call *call, const struct sb_rpc_failure *f)
{
	const struct sb_e2b_route *r = sb_rpc_http_route(call);
	int status = f->http ? f->http : sb_rpc_code_http(f->code);

	if (status == 499)
		status = 500;
	if (r && (r->plane == SB_E2B_UNARY || r->plane == SB_E2B_STREAM)) {
		(void)sb_answer_json(call, status,
			json_pack("{s:s, s:o}", "code", sb_rpc_code_name(f->code), "message",
				sb_rpc_json_text(f->msg, strlen(f->msg))),
			NULL);
		return;
	}
	if (f->code == SB_RPC_FAILED_PRECONDITION)
		status = 409;
	if (status == 429)
		sb_rpc_http_add_header(call, "Retry-After", "1");
	(void)sb_e2b_refuse(call, status, "%s", f->msg);
}

static const struct sb_rpc_http http = { open_request, fail_request };

void
sb_e2b_check(const char *listen, const char *key_file, const struct sb_rpc_server_opts *server,
	void (*found)(const char *what, void *arg), void *arg)
{
	const char *const where[] = { listen, NULL };
	struct sb_rpc_server_opts o = *server;
	struct sb_error err = { 0 };
	struct sb_rpc_auth *auth = sb_rpc_auth_new(&err);

	if (!auth || sb_keys_load("E2B", key_file, auth, &err) < 0)
		found(err.msg, arg);
	o.listen = where;
	o.auth = auth;
	if (auth && err.code == 0)
		sb_rpc_server_check(&o, found, arg);
	sb_rpc_auth_free(auth);
}

static int
start(struct sb_e2b *e, struct sb_rpc_daemon *d, const char *listen, const char *key_file,
	const struct sb_rpc_server_opts *server, struct sb_error *err)
{
	const char *const where[] = { listen, NULL };
	struct sb_rpc_server_opts o = *server;
	int r;

	e->host = sb_rpc_daemon_host(d);
	e->log = server->log;
	e->keys = sb_rpc_auth_new(err);
	e->guests = e->keys ? sb_guests_new(e->host, err) : NULL;
	if (!e->guests)
		return SB_E_NOMEM;
	r = sb_keys_load("E2B", key_file, e->keys, err);
	if (r == 0)
		r = sb_e2b_record_load_all(e, err);
	if (r == 0)
		e->keeper = sb_alarm_start(sb_e2b_keeper_round, e, err);
	if (r == 0 && !e->keeper)
		r = SB_E_SYS;
	if (r < 0)
		return r;
	e->service = (struct sb_rpc_service){ .name = "e2b", .arg = e, .http = &http };
	o.listen = where;
	o.auth = e->keys;
	o.socket_auth = true;
	e->server = sb_rpc_server_start(&o, &e->service, err);
	return e->server ? 0 : SB_E_SYS;
}

struct sb_e2b *
sb_e2b_start(struct sb_rpc_daemon *d, const char *listen, const char *key_file,
	const struct sb_rpc_server_opts *server, struct sb_error *err)
{
	struct sb_e2b *e = calloc(1, sizeof *e);

	if (!e) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&e->mu, NULL);
	if (start(e, d, listen, key_file, server, err) < 0) {
		sb_e2b_free(e);
		return NULL;
	}
	return e;
}

void
sb_e2b_stop(struct sb_e2b *e, int64_t grace_ms, const struct sb_cancel *hurry)
{
	sb_alarm_stop(e->keeper);
	e->keeper = NULL;
	if (e->server)
		sb_rpc_server_stop(e->server, grace_ms, hurry);
}

void
sb_e2b_free(struct sb_e2b *e)
{
	if (!e)
		return;
	sb_e2b_stop(e, 0, NULL);
	sb_rpc_server_free(e->server);
	sb_e2b_watchers_end(e, NULL);
	sb_guests_free(e->guests);
	sb_rpc_auth_free(e->keys);
	sb_records_free(e->records);
	(void)pthread_mutex_destroy(&e->mu);
	free(e);
}
