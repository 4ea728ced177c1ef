/* SPDX-License-Identifier: MIT */
/*
 * Ports of a sandbox: which listen, the addresses that lead to them, and the way there. An address
 * is BASE/preview/PORT-ID/..., with the sandbox's token in a header, a cookie or the query, or
 * BASE/preview/PORT-TOKEN/... with a token of that one port that ends. Nothing that says who the
 * caller is to us goes on into the sandbox.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/crypto.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <compat/http/replyhead.h>
#include <host/host.h>

#define TOKEN_LEN 32
#define AUTH_QUERY "DAYTONA_SANDBOX_AUTH_KEY"
#define AUTH_HEADER "X-Daytona-Preview-Token"
#define AUTH_COOKIE "daytona-sandbox-auth-key"
#define SECONDS_DEFAULT 60
#define SECONDS_MAX 86400
#define CONNECT_MS 10000
#define PIECE 65536
#define BODY_MAX (16u << 20)

/* A port number; false: it is none. */
static bool
port_of(const char *text, int64_t *port)
{
	return sb_str_to_i64(text, 1, 65535, port);
}

/* "sign:DIGEST", where a signed token is on record; its text is nowhere. */
static bool
member_of(const char *token, char out[80])
{
	uint8_t sum[32];
	char hex[65];

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), sum) != 0)
		return false;
	(void)sb_str_hex(sum, sizeof sum, hex);
	(void)snprintf(out, 80, "sign:%s", hex);
	return true;
}

static int
url(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	char base[SB_DAYTONA_BASE_MAX];
	int64_t port = 0;
	int r = 0;

	if (rec && !port_of(q->segments.v[3], &port)) {
		r = sb_daytona_refuse(call, 400, "the port must be from 1 to 65535");
	} else if (rec) {
		const char *id = sb_daytona_text(rec, "id");

		sb_daytona_base(call, base);
		r = sb_answer_json(call, 200,
			json_pack("{s:s, s:o, s:s}", "sandboxId", id, "url",
				json_sprintf("%s/preview/%d-%s/", base, (int)port, id), "token",
				sb_daytona_text(rec, "token")),
			err);
	}
	json_decref(rec);
	return r;
}

/* Those whose time is over go with the next one. */
static void
add_ended(const json_t *rec, json_t *changes)
{
	int64_t now = sb_host_now_ns();
	const char *name;
	json_t *o;

	json_object_foreach((json_t *)(uintptr_t)rec, name, o)
	{
		if (strncmp(name, "sign:", 5) == 0 && sb_daytona_number(o, "expiresNs") <= now)
			(void)json_object_set_new(changes, name, json_null());
	}
}

static int
signed_url(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *text = sb_query_get(q, "expiresInSeconds");
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *changes;
	int64_t port = 0, seconds = SECONDS_DEFAULT;
	char base[SB_DAYTONA_BASE_MAX], token[TOKEN_LEN + 1], member[80];
	int r;

	if (!rec)
		return 0;
	if (!port_of(q->segments.v[3], &port) ||
		(text && !sb_str_to_i64(text, 1, SECONDS_MAX, &seconds))) {
		json_decref(rec);
		return sb_daytona_refuse(call, 400,
			"the port must be from 1 to 65535, expiresInSeconds from 1 to %d",
			SECONDS_MAX);
	}
	r = sb_keys_make(token, TOKEN_LEN, err);
	if (r == 0 && !member_of(token, member))
		r = sb_fail(err, SB_E_SYS, "no digest");
	if (r == 0) {
		changes = json_object();
		add_ended(rec, changes);
		(void)json_object_set_new(changes, member,
			json_pack("{s:I, s:I}", "port", (json_int_t)port, "expiresNs",
				(json_int_t)(sb_host_now_ns() + seconds * 1000000000)));
		r = sb_daytona_record_change(sb_rpc_call_arg(call), rec, changes, err);
	}
	sb_daytona_base(call, base);
	if (r == 0)
		r = sb_answer_json(call, 200,
			json_pack("{s:s, s:I, s:s, s:o}", "sandboxId", sb_daytona_text(rec, "id"),
				"port", (json_int_t)port, "token", token, "url",
				json_sprintf("%s/preview/%d-%s/", base, (int)port, token)),
			err);
	explicit_bzero(token, sizeof token);
	json_decref(rec);
	return r;
}

static int
expire(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *changes;
	char member[80];
	int r = 0;

	if (!rec)
		return 0;
	if (!member_of(q->segments.v[5], member) || !json_object_get(rec, member)) {
		r = sb_daytona_refuse(call, 404, "no such token");
	} else {
		changes = json_object();
		(void)json_object_set_new(changes, member, json_null());
		r = sb_daytona_record_change(sb_rpc_call_arg(call), rec, changes, err);
		if (r == 0)
			sb_rpc_http_reply(call, 200, NULL, NULL, 0);
	}
	json_decref(rec);
	return r;
}

/* The sandbox whose signed token for that port it is. NULL: none. */
static json_t *
by_signed(struct sb_daytona *d, const char *token, int64_t port)
{
	int64_t now = sb_host_now_ns();
	json_t *found = NULL, **v;
	char member[80];
	size_t n;

	if (!member_of(token, member))
		return NULL;
	v = sb_records_all(d->records, &n);
	for (size_t i = 0; v && i < n; i++) {
		const json_t *o = json_object_get(v[i], member);

		if (!found && o && sb_daytona_number(o, "port") == port &&
			sb_daytona_number(o, "expiresNs") > now)
			found = json_incref(v[i]);
		json_decref(v[i]);
	}
	free(v);
	return found;
}

/* The value of our cookie. False: there is none. */
static bool
cookie(struct sb_rpc_call *call, char *out, size_t size)
{
	const char *p = sb_rpc_http_header(call, "Cookie");
	size_t n = sizeof AUTH_COOKIE - 1;

	while (p && *p) {
		size_t len = strcspn(p += strspn(p, "; "), ";");

		if (len > n && len - n <= size && strncmp(p, AUTH_COOKIE "=", n + 1) == 0) {
			(void)snprintf(out, size, "%.*s", (int)(len - n - 1), p + n + 1);
			return true;
		}
		p += len;
	}
	return false;
}

/* The sandbox that a request may reach at that port. NULL: it is a stranger's. */
static json_t *
admit(struct sb_rpc_call *call, const struct sb_query *q, const char *name, int64_t port,
	bool *set_cookie)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	const char *bearer = sb_rpc_http_header(call, "Authorization"),
		   *given = sb_rpc_http_header(call, AUTH_HEADER),
		   *query = sb_query_get(q, AUTH_QUERY);
	char kept[100];
	json_t *rec = sb_daytona_record_find(d, "sandbox", name);

	*set_cookie = false;
	if (!rec)
		return by_signed(d, name, port);
	if (json_is_true(json_object_get(rec, "public")))
		return rec;
	if (given && sb_keys_same(sb_daytona_text(rec, "token"), given))
		return rec;
	if (query && sb_keys_same(sb_daytona_text(rec, "token"), query)) {
		*set_cookie = true;
		return rec;
	}
	if (cookie(call, kept, sizeof kept) && sb_keys_same(sb_daytona_text(rec, "token"), kept))
		return rec;
	if (bearer && strncmp(bearer, "Bearer ", 7) == 0 && sb_daytona_key_ok(d, bearer + 7))
		return rec;
	json_decref(rec);
	return NULL;
}

/* A request on its way. */
struct way {
	struct sb_rpc_call *call;
	const struct sb_cancel *cancel;
	int fd;
};

/* Waits for the sandbox; the caller may go meanwhile. */
static int
wait_for(struct way *w, short events, struct sb_error *err)
{
	struct pollfd p[2] = { { .fd = w->fd, .events = events },
		{ .fd = sb_cancel_fd(w->cancel), .events = POLLIN } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (sb_cancel_requested(w->cancel))
		return sb_fail(err, SB_E_CANCELED, "the client went away");
	return 0;
}

static int
send_all(struct way *w, const void *data, size_t len, struct sb_error *err)
{
	const char *p = data;
	int r = 0;

	while (r == 0 && len > 0) {
		ssize_t n = send(w->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			/* It may have answered all the same. */
			return SB_E_CLOSED;
		} else {
			r = wait_for(w, POLLOUT, err);
		}
	}
	return r;
}

/* Appends what comes, at most one piece. 1: some; 0: the end. */
static int
receive(struct way *w, struct sb_buf *b, struct sb_error *err)
{
	uint8_t *room = sb_buf_reserve(b, PIECE);
	ssize_t n = -1;
	int r = 0;

	if (!room)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	while (r == 0 && n < 0) {
		n = recv(w->fd, room, PIECE, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			n = 0;
		else if (n < 0)
			r = wait_for(w, POLLIN, err);
	}
	if (r == 0)
		sb_buf_grow(b, (size_t)n);
	return r < 0 ? r : n > 0;
}

/* What the sandbox gets to see of the caller's cookies: all but ours. */
static void
add_cookies(struct sb_buf *out, const char *value)
{
	bool some = false;

	while (*value) {
		size_t len = strcspn(value += strspn(value, "; "), ";");

		if (len > 0 && strncmp(value, AUTH_COOKIE "=", sizeof AUTH_COOKIE) != 0) {
			sb_buf_addf(out, "%s %.*s", some ? ";" : "Cookie:", (int)len, value);
			some = true;
		}
		value += len;
	}
	if (some)
		sb_buf_add_str(out, "\r\n");
}

static void
add_headers(struct sb_rpc_call *call, struct sb_buf *out)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);

	for (size_t i = 0; i < sb_rpc_http_headers(call); i++) {
		const char *value, *name = sb_rpc_http_header_at(call, i, &value);

		if (sb_replyhead_is_hop(name) || strcasecmp(name, AUTH_HEADER) == 0)
			continue;
		/* A key of ours is none of the sandbox's business; its own schemes are. */
		if (strcasecmp(name, "Authorization") == 0 && strncmp(value, "Bearer ", 7) == 0 &&
			sb_daytona_key_ok(d, value + 7))
			continue;
		if (strcasecmp(name, "Cookie") == 0)
			add_cookies(out, value);
		else
			sb_buf_addf(out, "%s: %s\r\n", name, value);
	}
}

/* The target behind "/preview/PORT-ID", without our token. */
static char *
target_of(struct sb_rpc_call *call)
{
	const char *t = sb_rpc_http_target(call), *query;
	sb_auto(sb_buf) struct sb_buf b;
	size_t n;

	sb_buf_init(&b, 65536);
	t += strncmp(t, "/api/", 5) == 0 ? 4 : 0;
	t += strspn(t, "/") + 7; /* preview */
	t += strspn(t, "/");
	t += strcspn(t, "/?");
	n = strcspn(t, "?");
	if (n == 0)
		sb_buf_add_char(&b, '/');
	sb_buf_add(&b, t, n);
	query = t[n] ? t + n + 1 : "";
	for (char sep = '?'; *query;) {
		size_t len = strcspn(query, "&");

		if (strncmp(query, AUTH_QUERY "=", sizeof AUTH_QUERY) != 0) {
			sb_buf_add_char(&b, sep);
			sb_buf_add(&b, query, len);
			sep = '&';
		}
		query += len + (query[len] == '&');
	}
	return b.failed ? NULL : (char *)sb_buf_detach(&b, NULL);
}

/* Whether the request has a body; `*length`: -1 when it is not told. */
static bool
has_body(struct sb_rpc_call *call, int64_t *length)
{
	const char *text = sb_rpc_http_header(call, "Content-Length");

	*length = -1;
	if (text && sb_str_to_i64(text, 0, INT64_MAX, length))
		return *length > 0;
	return sb_rpc_http_header(call, "Transfer-Encoding") != NULL;
}

/* A body whose length is not told is read first. */
static int
read_body(struct sb_rpc_call *call, struct sb_buf *out, struct sb_error *err)
{
	int64_t n = 1;

	while (n > 0) {
		uint8_t *room = sb_buf_reserve(out, PIECE);

		if (!room)
			return sb_fail(err, SB_E_LIMIT,
				"a body of unknown length may have %u bytes", BODY_MAX);
		n = sb_rpc_http_read(call, room, PIECE, err);
		if (n > 0)
			sb_buf_grow(out, (size_t)n);
	}
	return (int)n;
}

static int
pass_body(struct way *w, struct sb_error *err)
{
	sb_autofree char *piece = malloc(PIECE);
	int64_t n;
	int r = piece ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	while (r == 0 && (n = sb_rpc_http_read(w->call, piece, PIECE, err)) != 0)
		r = n < 0 ? (int)n : send_all(w, piece, (size_t)n, err);
	return r;
}

/*
 * By HTTP/1.0: the answer ends with its connection, or has a length. SB_E_CLOSED: it takes no more,
 * but may have answered.
 */
static int
ask(struct way *w, struct sb_error *err)
{
	sb_autofree char *target = target_of(w->call);
	sb_auto(sb_buf) struct sb_buf head, body;
	int64_t length;
	bool has = has_body(w->call, &length);
	int r = 0;

	sb_buf_init(&head, 4 * SB_REPLYHEAD_MAX);
	sb_buf_init(&body, BODY_MAX + PIECE);
	if (!target)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (has && length < 0) {
		r = read_body(w->call, &body, err);
		length = (int64_t)body.len;
	}
	if (r < 0)
		return r;
	sb_buf_addf(&head, "%s %s HTTP/1.0\r\n", sb_rpc_http_verb(w->call), target);
	add_headers(w->call, &head);
	sb_buf_add_str(&head, "Connection: close\r\n");
	if (has)
		sb_buf_addf(&head, "Content-Length: %lld\r\n", (long long)length);
	sb_buf_add_str(&head, "\r\n");
	r = sb_buf_check(&head, "head", err);
	if (r == 0)
		r = send_all(w, head.data, head.len, err);
	if (r == 0 && body.len > 0)
		r = send_all(w, body.data, body.len, err);
	else if (r == 0 && has)
		r = pass_body(w, err);
	return r;
}

/* The rest of the answer, of which `b` has the beginning. */
static int
pass_answer(struct way *w, const struct sb_replyhead *h, struct sb_buf *b, struct sb_error *err)
{
	int64_t left = h->length < 0 ? INT64_MAX : h->length;
	int r = 1;

	while (left > 0) {
		size_t n = (int64_t)b->len < left ? b->len : (size_t)left;

		r = n > 0 ? sb_rpc_http_write(w->call, b->data, n, err) : 0;
		left -= (int64_t)n;
		sb_buf_reset(b);
		if (r < 0 || left == 0)
			return r;
		r = receive(w, b, err);
		if (r <= 0)
			break;
	}
	/* The client notices that an answer is cut. */
	return r == 0 && h->length > 0 ? sb_fail(err, SB_E_CLOSED, "the sandbox broke off") :
					 (r < 0 ? r : 0);
}

/* Asks what listens there, and answers as it does. */
static int
go(struct way *w, struct sb_error *err)
{
	sb_auto(sb_replyhead) struct sb_replyhead h = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_error why = { 0 };
	size_t used = 0;
	int r = ask(w, err), whole = 0;

	sb_buf_init(&b, SB_REPLYHEAD_MAX + 2 * PIECE);
	if (r < 0 && r != SB_E_CLOSED)
		return r;
	/* What comes before the answer itself is not passed on. */
	do {
		if (whole == 1) {
			sb_buf_consume(&b, used);
			sb_replyhead_free(&h);
		}
		while ((whole = b.len == 0 ? 0 :
					     sb_replyhead_parse((char *)b.data, b.len, &h, &used,
						     &why)) == 0 &&
			(r = receive(w, &b, err)) == 1)
			;
	} while (whole == 1 && h.status < 200);
	if (r < 0)
		return r;
	if (whole != 1)
		return sb_daytona_refuse(w->call, 502, "the sandbox does not answer: %s",
			whole < 0 ? why.msg : "it broke off");
	sb_buf_consume(&b, used);
	for (size_t i = 0; i + 1 < h.headers.n; i += 2)
		sb_rpc_http_add_header(w->call, h.headers.v[i], h.headers.v[i + 1]);
	if (strcmp(sb_rpc_http_verb(w->call), "HEAD") == 0 || h.status == 204 || h.status == 304) {
		sb_rpc_http_reply(w->call, h.status, h.type, NULL, 0);
		return 0;
	}
	r = sb_rpc_http_begin(w->call, h.status, h.type, h.length, err);
	return r < 0 ? r : pass_answer(w, &h, &b, err);
}

static int
preview(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	const char *name = q->segments.v[1], *dash = strchr(name, '-');
	sb_autofree char *number = dash ? strndup(name, (size_t)(dash - name)) : NULL;
	struct way w = { .call = call, .cancel = sb_rpc_call_cancel(call), .fd = -1 };
	json_t *rec = NULL;
	int64_t port = 0;
	bool set_cookie = false;
	char text[200];
	int r;

	if (number && port_of(number, &port))
		rec = admit(call, q, dash + 1, port, &set_cookie);
	/* Which sandboxes there are is not told to strangers. */
	if (!rec)
		return sb_daytona_refuse(call, 401, "no such preview, or no token for it");
	if (strcmp(sb_daytona_state(d, rec), "started") != 0) {
		r = sb_daytona_refuse(call, 400, "Sandbox is not started");
		json_decref(rec);
		return r;
	}
	sb_daytona_enter(d, sb_daytona_text(rec, "id"));
	r = sb_host_port_connect(d->host, sb_daytona_text(rec, "id"), (unsigned)port,
		sb_deadline_in(CONNECT_MS), &w.fd, err);
	if (r == SB_E_UNSUPPORTED)
		r = sb_daytona_refuse(call, 501, "%s", err->msg);
	else if (r < 0)
		r = sb_daytona_refuse(call, 502, "nothing listens on port %d of the sandbox",
			(int)port);
	if (w.fd >= 0) {
		if (set_cookie) {
			(void)snprintf(text, sizeof text,
				AUTH_COOKIE "=%s; Path=/preview/%s/; HttpOnly; SameSite=Lax",
				sb_daytona_text(rec, "token"), name);
			sb_rpc_http_add_header(call, "Set-Cookie", text);
		}
		r = go(&w, err);
		(void)close(w.fd);
	}
	sb_daytona_leave(d, sb_daytona_text(rec, "id"));
	json_decref(rec);
	return r;
}

/* The ports in /proc/net/tcp and tcp6: state 0A listens. */
static json_t *
listening(const char *text)
{
	json_t *out = json_array();

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		char local[80], state[8];
		const char *colon;
		bool known = false;
		json_t *one;
		size_t i;
		long port;

		if (sscanf(line, " %*[0-9]: %79s %*s %7s", local, state) == 2 &&
			strcmp(state, "0A") == 0 && (colon = strrchr(local, ':'))) {
			port = strtol(colon + 1, NULL, 16);
			json_array_foreach(out, i, one) known |= json_integer_value(one) == port;
			if (!known && port > 0)
				(void)json_array_append_new(out, json_integer(port));
		}
		if (!line[strcspn(line, "\n")])
			break;
	}
	return out;
}

/* 0: `*list` is new. 1: answered. */
static int
ask_ports(struct sb_rpc_call *call, const struct sb_query *q, json_t **list, struct sb_error *err)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || :", NULL };
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { .argv = argv, .cwd = "/" };
	int r = sb_daytona_visit(call, q, &v, err);

	if (r == 0)
		r = sb_daytona_run(&v, &run, err);
	if (r == 0)
		*list = listening(run.out.data ? (char *)run.out.data : "");
	return r;
}

static int
ports(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *list = NULL;
	int r = ask_ports(call, q, &list, err);

	if (r == 0)
		r = sb_answer_json(call, 200, json_pack("{s:o}", "ports", list), err);
	return r < 0 ? r : 0;
}

static int
in_use(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *list = NULL, *one;
	bool yes = false;
	int64_t port;
	size_t i;
	int r;

	if (!port_of(q->segments.v[3], &port))
		return sb_daytona_refuse(call, 400, "the port must be from 1 to 65535");
	r = ask_ports(call, q, &list, err);
	if (r == 0) {
		json_array_foreach(list, i, one) yes |= json_integer_value(one) == port;
		r = sb_answer_json(call, 200, json_pack("{s:b}", "isInUse", yes), err);
	}
	json_decref(list);
	return r < 0 ? r : 0;
}

#define P "/sandbox/*/ports/*/"
const struct sb_daytona_route sb_daytona_port_routes[] = {
	{ "GET", P "preview-url", url, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "GET", P "signed-preview-url", signed_url, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "POST", P "signed-preview-url/*/expire", expire, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
const struct sb_daytona_route sb_daytona_inner_port_routes[] = {
	{ "GET", "/port", ports, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "GET", "/port/*/in-use", in_use, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
/* Of every verb and whatever follows. */
const struct sb_daytona_route sb_daytona_preview_route = { "*", "/preview/*", preview,
	SB_RPC_HTTP_STREAM, SB_DAYTONA_OPEN | SB_DAYTONA_LASTS | SB_DAYTONA_ENDLESS, NULL };
