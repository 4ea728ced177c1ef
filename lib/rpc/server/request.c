/* SPDX-License-Identifier: MIT */
/* Reads a request: its header, who calls, limits, the message. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <base/str.h>
#include <base/base64.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/field.h>
#include <rpc/protocol/gzip.h>
#include <rpc/server/server-priv.h>
#include <rpc/server/strict.h>

#define STRANGER_MAX 65536 /* of the body of somebody who is not logged in */
#define STRANGER_MS 2000

static const char *
header(const struct sb_rpc_call *c, const char *name)
{
	return MHD_lookup_connection_value(c->mc, MHD_HEADER_KIND, name);
}

static void
refuse(struct sb_rpc_call *c, enum sb_rpc_code code, int http, const char *msg)
{
	if (c->failure.code != SB_RPC_OK)
		return;
	sb_rpc_failure_set(&c->failure, code, "%s", msg);
	c->failure.http = http;
}

static void
refuse_error(struct sb_rpc_call *c, const struct sb_error *err)
{
	if (c->failure.code == SB_RPC_OK)
		sb_rpc_failure_from_error(&c->failure, err);
}

/* Whether a comma list such as "br, gzip;q=0.5" names gzip with a weight other than 0. */
static bool
accepts_gzip(const char *list)
{
	while (list && *list) {
		size_t len, name;

		list += strspn(list, " \t,");
		len = strcspn(list, ",");
		name = strcspn(list, " \t;,");
		if (name == 4 && strncasecmp(list, "gzip", 4) == 0) {
			const char *q = memchr(list, '=', len);

			return !q || strspn(q + 1, "0.") < len - (size_t)(q + 1 - list);
		}
		list += len;
	}
	return false;
}

/* "application/json; charset=utf-8" is `want`; another charset is not. */
static bool
is_type(const char *value, const char *want)
{
	size_t n = strlen(want);
	const char *p;

	if (!value || strncasecmp(value, want, n) != 0)
		return false;
	p = value + n + strspn(value + n, " \t");
	if (*p == '\0')
		return true;
	if (*p != ';')
		return false;
	p += 1 + strspn(p + 1, " \t");
	return strcasecmp(p, "charset=utf-8") == 0 || strcasecmp(p, "charset=\"utf-8\"") == 0;
}

static void
check_timeout(struct sb_rpc_call *c)
{
	const char *value = header(c, "Connect-Timeout-Ms");
	int64_t ms;

	c->deadline = SB_NEVER;
	if (!value)
		return;
	if (strlen(value) > 10 || !sb_str_to_i64(value, 0, INT64_MAX, &ms)) {
		refuse(c, SB_RPC_INVALID_ARGUMENT, 0,
			"connect-timeout-ms must be a whole number of at most 10 digits");
		return;
	}
	c->deadline = ms > 0 ? sb_deadline_in(ms) : sb_now_ms();
}

static void
check_versions(struct sb_rpc_call *c)
{
	const char *connect = header(c, "Connect-Protocol-Version");
	const char *api = header(c, "X-Api-Version");
	int64_t v = 1;
	struct sb_rpc_failure *f = &c->failure;

	if (connect && strcmp(connect, "1") != 0)
		refuse(c, SB_RPC_INVALID_ARGUMENT, 0, "connect-protocol-version must be 1");
	if (f->code != SB_RPC_OK || !api)
		return;
	if (api[0] != 'v' || !sb_str_to_i64(api + 1, 0, INT32_MAX, &v))
		refuse(c, SB_RPC_INVALID_ARGUMENT, 0, "x-api-version must be v and a number");
	else if (v < (int64_t)c->server->o.min_api_version)
		sb_rpc_failure_set(f, SB_RPC_FAILED_PRECONDITION,
			"x-api-version %s is too old: this server takes v%u to v%u", api,
			c->server->o.min_api_version, c->server->o.api_version);
}

static void
check_encoding(struct sb_rpc_call *c)
{
	const char *in = header(c, c->streaming ? "Connect-Content-Encoding" : "Content-Encoding");
	const char *out = header(c, c->streaming ? "Connect-Accept-Encoding" : "Accept-Encoding");

	c->out_gzip = accepts_gzip(out);
	if (!in || strcasecmp(in, "identity") == 0)
		return;
	if (strcasecmp(in, "gzip") == 0)
		c->in_gzip = true;
	else
		refuse(c, SB_RPC_UNIMPLEMENTED, 0,
			"unknown compression: supported encodings are gzip, identity");
}

/*
 * Who did not log in gets an answer and no more of our time. A short body is still read, because to
 * close over unread bytes can take the answer from the client.
 */
static void
stop_stranger(struct sb_rpc_call *c)
{
	const char *value = header(c, "Content-Length");
	int64_t n = 0;

	c->close = true;
	c->early = value && (!sb_str_to_i64(value, 0, INT64_MAX, &n) || n > STRANGER_MAX);
	if (c->server->o.body_ms > STRANGER_MS)
		sb_rpc_watchdog_phase(c->server->watch, c->conn, SB_RPC_PHASE_BODY,
			sb_deadline_in(STRANGER_MS));
}

static void
check_who(struct sb_rpc_call *c)
{
	const struct sb_rpc_server *s = c->server;
	const char *value = header(c, "Authorization");
	struct sb_error err = { 0 };

	if (c->conn->listener->is_unix && !value && !s->o.socket_auth) {
		c->who = (struct sb_rpc_who){ .role = SB_RPC_ROLE_ADMIN, .name = "socket" };
		return;
	}
	if (!s->o.auth)
		(void)sb_fail(&err, SB_E_AUTH, "this server has no tokens");
	else
		(void)sb_rpc_auth_check(s->o.auth, value, time(NULL), &c->who, &err);
	if (err.code >= 0)
		return;
	refuse_error(c, &err);
	sb_rpc_login_failed(c->server, c->conn, err.msg);
	stop_stranger(c);
}

static bool
role_may(const struct sb_rpc_call *c)
{
	if (c->who.role == SB_RPC_ROLE_ADMIN || (c->method->flags & SB_RPC_ANY_ROLE))
		return true;
	return c->who.role == SB_RPC_ROLE_SESSION && (c->method->flags & SB_RPC_SCOPED);
}

/* A place among the calls or the streams of this caller; sb_rpc_call_unref gives it back. */
static void
take_place(struct sb_rpc_call *c)
{
	struct sb_error err = { 0 };

	if (c->failure.code != SB_RPC_OK)
		return;
	if (c->http)
		c->place = c->http->plan.stream || c->http->plan.upgrade ? SB_RPC_SHARE_STREAMS :
									   SB_RPC_SHARE_CALLS;
	else
		c->place = c->method && (c->method->stream || c->method->upgrade) ?
			SB_RPC_SHARE_STREAMS :
			SB_RPC_SHARE_CALLS;
	if (sb_rpc_share_take(c->server->share, &c->who, c->place, 1, &err) == 0) {
		c->counted = true;
		return;
	}
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_REFUSED, 1);
	refuse_error(c, &err);
}

static void
open_method(struct sb_rpc_call *c, const char *verb)
{
	const char *type = header(c, "Content-Type");

	c->is_get = strcmp(verb, "GET") == 0;
	if (!(c->is_get && (c->method->flags & SB_RPC_READ) && !c->method->stream) &&
		strcmp(verb, "POST") != 0) {
		refuse(c, SB_RPC_UNIMPLEMENTED, 405, "this method is called by POST");
		return;
	}
	if (c->method->upgrade && !sb_rpc_upgrade_wanted(c)) {
		refuse(c, SB_RPC_INVALID_ARGUMENT, 426,
			"this method is called by GET with Upgrade: sb-attach");
		return;
	}
	c->streaming = c->method->stream;
	if (!c->is_get &&
		!is_type(type, c->streaming ? "application/connect+json" : "application/json")) {
		refuse(c, SB_RPC_UNKNOWN, 415, "");
		c->streaming = false;
		return;
	}
	check_who(c);
	check_versions(c);
	check_timeout(c);
	if (!c->is_get)
		check_encoding(c);
	else
		c->out_gzip = accepts_gzip(header(c, "Accept-Encoding"));
	if (c->failure.code == SB_RPC_OK && !role_may(c))
		refuse(c, SB_RPC_PERMISSION_DENIED, 0, "this token may not call this method");
	take_place(c);
}

static void
open_plain(struct sb_rpc_call *c, enum sb_rpc_target target, const char *verb)
{
	c->target = target;
	if (strcmp(verb, "GET") != 0 && strcmp(verb, "HEAD") != 0) {
		refuse(c, SB_RPC_UNIMPLEMENTED, 405, "only GET is allowed here");
		return;
	}
	if (target == SB_RPC_TARGET_HEALTH) {
		c->want_ready = MHD_lookup_connection_value_n(c->mc, MHD_GET_ARGUMENT_KIND, "ready",
					5, NULL, NULL) == MHD_YES;
		return;
	}
	check_who(c);
	if (c->failure.code == SB_RPC_OK && c->who.role == SB_RPC_ROLE_SESSION)
		refuse(c, SB_RPC_PERMISSION_DENIED, 0, "this token may not read metrics");
	take_place(c);
}

/* Refuses a body by its announced size before any of it is read. */
static void
check_length(struct sb_rpc_call *c)
{
	const char *value = header(c, "Content-Length");
	int64_t n;

	if (!value || !sb_str_to_i64(value, 0, INT64_MAX, &n) ||
		c->failure.code == SB_RPC_UNAUTHENTICATED)
		return;
	if ((uint64_t)n > c->server->o.max_message + SB_RPC_ENVELOPE_SIZE) {
		c->failure.code = SB_RPC_OK;
		sb_rpc_failure_set(&c->failure, SB_RPC_RESOURCE_EXHAUSTED,
			"message of %lld bytes is longer than %zu", (long long)n,
			c->server->o.max_message);
		c->failure.http = c->streaming ? 0 : 413;
		c->early = true;
	}
}

void *
sb_rpc_request_target(void *cls, const char *target, struct MHD_Connection *mc)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct sb_rpc_conn *conn = info ? info->socket_context : NULL;

	(void)cls;
	if (conn) {
		conn->target = sb_rpc_strict_target(target) ? target : NULL;
		conn->target_len = strlen(target);
		free(conn->raw);
		conn->raw = conn->listener->server->service->http && conn->target ? strdup(target) :
										    NULL;
	}
	return NULL;
}

#if MHD_VERSION < 0x00097700
static const char *
check_lines(struct sb_rpc_call *c, const char *verb, const char *version, struct sb_rpc_strict *s)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	const char *target = c->conn->target, *lines = version + strlen(version) + 2;

	if (!info || !target || target != verb + strlen(verb) + 1 ||
		version != target + c->conn->target_len + 1)
		return "the request line is not one";
	if (lines > verb + info->header_size || lines[-1])
		return "the request line does not end in CRLF";
	return sb_rpc_strict_lines(lines, (size_t)(verb + info->header_size - lines), s);
}
#else
static enum MHD_Result
count_line(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	sb_rpc_strict_count(arg, name, strlen(name), value ? value : "");
	return MHD_YES;
}

/* This libmicrohttpd refuses bad lines itself. */
static const char *
check_lines(struct sb_rpc_call *c, const char *verb, const char *version, struct sb_rpc_strict *s)
{
	(void)verb;
	(void)version;
	*s = (struct sb_rpc_strict){ 0 };
	(void)MHD_get_connection_values(c->mc, MHD_HEADER_KIND, count_line, s);
	return NULL;
}
#endif

/* Whether everybody on the way reads the same request; else the connection ends with a 400. */
static void
check_strict(struct sb_rpc_call *c, const char *verb, const char *version)
{
	struct sb_rpc_strict s;
	const char *why = check_lines(c, verb, version, &s);

	if (!why)
		why = sb_rpc_strict_judge(&s, version);
	if (why) {
		refuse(c, SB_RPC_INVALID_ARGUMENT, 400, why);
		c->early = c->close = true;
	}
}

static void
open_target(struct sb_rpc_call *c, const char *url, const char *verb)
{
	const struct sb_rpc_service *sv = c->server->service;
	size_t n = strlen(sv->name);

	if (strcmp(url, "/health") == 0) {
		open_plain(c, SB_RPC_TARGET_HEALTH, verb);
	} else if (strcmp(url, "/metrics") == 0) {
		open_plain(c, SB_RPC_TARGET_METRICS, verb);
	} else if (url[0] == '/' && strncmp(url + 1, sv->name, n) == 0 && url[n + 1] == '/') {
		for (size_t i = 0; i < sv->n; i++)
			if (strcmp(url + n + 2, sv->methods[i].name) == 0)
				c->index = i;
		if (c->index < sv->n) {
			c->target = SB_RPC_TARGET_METHOD;
			c->method = &sv->methods[c->index];
			open_method(c, verb);
		}
	}
	if (c->target == SB_RPC_TARGET_NONE)
		refuse(c, SB_RPC_UNIMPLEMENTED, 404, "there is no such procedure");
	check_length(c);
}

/* The same for a service of plain HTTP, which knows its callers itself. */
static void
open_http(struct sb_rpc_call *c, const char *verb)
{
	struct sb_error err = { 0 };
	struct sb_rpc_http_plan *plan;
	const char *value = header(c, "Content-Length");
	int r = sb_rpc_http_open(c, verb, &err);
	int64_t n = 0;

	if (!c->http) {
		refuse_error(c, &err);
		return;
	}
	plan = &c->http->plan;
	c->who = plan->who;
	c->index = plan->index;
	c->deadline = plan->deadline;
	if (r < 0) {
		err.code = err.code < 0 ? err.code : r;
		refuse_error(c, &err);
		plan->body = SB_RPC_HTTP_NO_BODY;
		if (err.code == SB_E_AUTH) {
			sb_rpc_login_failed(c->server, c->conn, err.msg);
			stop_stranger(c);
		}
		return;
	}
	take_place(c);
	if (c->failure.code != SB_RPC_OK)
		plan->body = SB_RPC_HTTP_NO_BODY;
	if (plan->body != SB_RPC_HTTP_WHOLE)
		return;
	if (plan->max_body == 0 || plan->max_body > c->server->o.max_message)
		plan->max_body = c->server->o.max_message;
	c->body.max = plan->max_body;
	if (value && sb_str_to_i64(value, 0, INT64_MAX, &n) && (uint64_t)n > plan->max_body) {
		refuse(c, SB_RPC_RESOURCE_EXHAUSTED, 413, "the body is too long");
		c->early = true;
	}
}

void
sb_rpc_request_open(struct sb_rpc_call *c, const char *url, const char *verb, const char *version)
{
	c->index = c->server->service->n;
	check_strict(c, verb, version);
	if (c->early)
		return;
	if (c->server->service->http)
		open_http(c, verb);
	else
		open_target(c, url, verb);
}

/* The message of a GET request is in its query; it is put where a body would be. */
static int
read_query(struct sb_rpc_call *c, struct sb_error *err)
{
	const char *message = NULL, *value;
	size_t len = 0;

	value = MHD_lookup_connection_value(c->mc, MHD_GET_ARGUMENT_KIND, "connect");
	if (value && strcmp(value, "v1") != 0)
		return sb_fail(err, SB_E_INVAL, "query parameter connect must be v1");
	value = MHD_lookup_connection_value(c->mc, MHD_GET_ARGUMENT_KIND, "encoding");
	if (!value || strcmp(value, "json") != 0)
		return sb_fail(err, SB_E_INVAL, "query parameter encoding must be json");
	value = MHD_lookup_connection_value(c->mc, MHD_GET_ARGUMENT_KIND, "compression");
	if (value && strcmp(value, "gzip") != 0 && strcmp(value, "identity") != 0)
		return sb_fail(err, SB_E_INVAL,
			"query parameter compression must be gzip or identity");
	c->in_gzip = value && strcmp(value, "gzip") == 0;
	(void)MHD_lookup_connection_value_n(c->mc, MHD_GET_ARGUMENT_KIND, "message", 7, &message,
		&len);
	if (!message)
		return sb_fail(err, SB_E_INVAL, "query parameter message is required");
	value = MHD_lookup_connection_value(c->mc, MHD_GET_ARGUMENT_KIND, "base64");
	if (!value || strcmp(value, "1") != 0)
		sb_buf_add(&c->body, message, len);
	else if (!sb_base64_decode(message, len, &c->body) && !c->body.failed)
		return sb_fail(err, SB_E_INVAL, "query parameter message is not base64");
	return sb_buf_check(&c->body, "message", err);
}

/*
 * A session's token works for its own session only; which session is meant is the field SessionID.
 */
static int
check_scope(struct sb_rpc_call *c, const json_t *msg, struct sb_error *err)
{
	struct sb_rpc_fields f;
	const char *id;

	sb_rpc_fields_init(&f, msg);
	c->fence = (uint64_t)sb_rpc_field_int(&f, "Fence", 0, INT64_MAX);
	if (f.failed)
		return sb_rpc_fields_check(&f, err);
	if (c->who.role != SB_RPC_ROLE_SESSION || !(c->method->flags & SB_RPC_SCOPED))
		return 0;
	sb_rpc_fields_init(&f, msg);
	id = sb_rpc_field_str(&f, "SessionID", SB_RPC_WHO_SESSION_MAX, SB_RPC_REQUIRED);
	if (f.failed)
		return sb_rpc_fields_check(&f, err);
	if (strcmp(id, c->who.session) != 0)
		return sb_fail(err, SB_E_DENIED, "this token is for another session");
	return 0;
}

static int
unwrap(struct sb_rpc_call *c, const uint8_t **data, size_t *len, bool *gzip, struct sb_error *err)
{
	uint8_t flags = 0;
	int r;

	if (!c->streaming) {
		*data = c->body.data;
		*len = c->body.len;
		*gzip = c->in_gzip;
		return 0;
	}
	r = sb_rpc_envelope_next(c->body.data, c->body.len, c->server->o.max_message, &flags, data,
		len, err);
	if (r < 0)
		return r;
	if (r == 0 || SB_RPC_ENVELOPE_SIZE + *len != c->body.len || (flags & SB_RPC_FLAG_END))
		return sb_fail(err, SB_E_INVAL,
			"the request must be exactly one message in its envelope");
	*gzip = flags & SB_RPC_FLAG_COMPRESSED;
	if (*gzip && !c->in_gzip)
		return sb_fail(err, SB_E_INVAL,
			"message is compressed but connect-content-encoding is not set");
	return 0;
}

static json_t *
read_message(struct sb_rpc_call *c, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf plain;
	const uint8_t *data = NULL;
	size_t len = 0;
	bool gzip = false;
	json_t *msg;

	sb_buf_init(&plain, c->server->o.max_message);
	if (c->is_get && c->body.len == 0 && read_query(c, err) < 0)
		return NULL;
	if (unwrap(c, &data, &len, &gzip, err) < 0)
		return NULL;
	if (gzip && len > 0) {
		if (sb_rpc_gzip_inflate(data, len, &plain, err) < 0)
			return NULL;
		data = plain.data;
		len = plain.len;
	}
	msg = sb_rpc_json_parse(data, len, err);
	if (msg && check_scope(c, msg, err) < 0) {
		json_decref(msg);
		return NULL;
	}
	return msg;
}

json_t *
sb_rpc_request_message(struct sb_rpc_call *c)
{
	struct sb_error err = { 0 };
	json_t *msg = read_message(c, &err);

	if (!msg)
		refuse_error(c, &err);
	return msg;
}
