/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_RPC_TOY_H
#define SB_TESTS_RPC_TOY_H

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rpc/protocol/field.h>
#include <rpc/server/server.h>
#include <sb/rpc.h>
#include <tests/lib/tmpdir.h>
#include <tests/lib/unit.h>

/* A service that does what a test needs: answers, waits, floods, fails. */
struct toy {
	_Atomic int waiting;  /* calls inside Wait or Tail */
	_Atomic int canceled; /* of them, ended by their token */
	_Atomic int sent;     /* messages of Flood */
};

static inline int
toy_echo(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct sb_rpc_fields f;
	const char *text;

	sb_rpc_fields_init(&f, in);
	text = sb_rpc_field_str(&f, "Text", 1 << 20, 0);
	if (f.failed) {
		sb_rpc_call_bad_field(call, f.field);
		return sb_rpc_fields_check(&f, err);
	}
	*out = json_pack("{s:s, s:s}", "Text", text, "Who", sb_rpc_call_who(call)->name);
	return 0;
}

/* Inline only when it is not told to wait. */
static inline int
toy_maybe(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	(void)err;
	if (sb_rpc_call_inlined(call) && json_object_get(in, "Later"))
		return SB_RPC_LATER;
	*out = json_pack("{s:b}", "Inline", sb_rpc_call_inlined(call));
	return 0;
}

/* Until it is canceled or its deadline comes. */
static inline int
toy_wait(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct toy *t = sb_rpc_call_arg(call);
	struct pollfd p = { .fd = sb_cancel_fd(sb_rpc_call_cancel(call)), .events = POLLIN };

	(void)in;
	(void)out;
	atomic_fetch_add(&t->waiting, 1);
	(void)poll(&p, 1, 20000);
	atomic_fetch_sub(&t->waiting, 1);
	atomic_fetch_add(&t->canceled, 1);
	return sb_check_alive(sb_rpc_call_cancel(call), sb_rpc_call_deadline(call), "wait", err);
}

static inline int
toy_nap(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct toy *t = sb_rpc_call_arg(call);

	(void)in;
	(void)out;
	(void)err;
	atomic_fetch_add(&t->waiting, 1);
	(void)poll(NULL, 0, 300);
	atomic_fetch_sub(&t->waiting, 1);
	return 0;
}

static inline int
toy_fail(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	(void)call;
	(void)in;
	(void)out;
	return sb_fail(err, SB_E_SESSION_PAUSED, "sandbox: session is paused: x\xff");
}

static inline int
toy_big(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	sb_autofree char *text = malloc(100001);

	(void)call;
	(void)in;
	(void)err;
	memset(text, 'a', 100000);
	text[100000] = '\0';
	*out = json_pack("{s:s}", "Text", text);
	return 0;
}

static inline int
toy_count(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct sb_rpc_fields f;
	int64_t n, size;
	int r = 0;

	(void)out;
	sb_rpc_fields_init(&f, in);
	n = sb_rpc_field_int(&f, "N", 0, 1000000);
	size = sb_rpc_field_int(&f, "Size", 0, 1000000);
	for (int64_t i = 0; i < n && r == 0; i++) {
		sb_autofree char *pad = calloc(1, (size_t)size + 1);

		memset(pad, 'x', (size_t)size);
		r = sb_rpc_stream_send(call,
			json_pack("{s:I, s:s}", "I", (json_int_t)i, "Pad", pad), err);
	}
	if (r == 0 && sb_rpc_field_bool(&f, "Fail"))
		r = sb_fail(err, SB_E_POOL_FULL, "counted enough");
	return r;
}

static inline int
toy_flood(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	struct toy *t = sb_rpc_call_arg(call);
	char pad[4096];
	int r = 0;

	(void)in;
	(void)out;
	memset(pad, 'x', sizeof pad - 1);
	pad[sizeof pad - 1] = '\0';
	atomic_fetch_add(&t->waiting, 1);
	while (r == 0) {
		r = sb_rpc_stream_send(call, json_pack("{s:s}", "Pad", pad), err);
		if (r == 0)
			atomic_fetch_add(&t->sent, 1);
	}
	atomic_fetch_sub(&t->waiting, 1);
	atomic_fetch_add(&t->canceled, 1);
	return r;
}

static inline void
toy_metrics(void *arg, struct sb_buf *out)
{
	(void)arg;
	sb_rpc_metrics_value(out, "toy_number", "gauge", "A number.", 42);
}

static const struct sb_rpc_method toy_methods[] = {
	{ "Echo", SB_RPC_READ | SB_RPC_SCOPED, false, toy_echo, NULL },
	{ "Fast", SB_RPC_READ | SB_RPC_INLINE | SB_RPC_ANY_ROLE, false, toy_echo, NULL },
	{ "Maybe", SB_RPC_INLINE, false, toy_maybe, NULL },
	{ "Wait", SB_RPC_SCOPED, false, toy_wait, NULL },
	{ "Nap", 0, false, toy_nap, NULL },
	{ "Fail", 0, false, toy_fail, NULL },
	{ "Big", SB_RPC_READ, false, toy_big, NULL },
	{ "Count", 0, true, toy_count, NULL },
	{ "Flood", 0, true, toy_flood, NULL },
	{ "Follow", SB_RPC_SCOPED | SB_RPC_ENDLESS, true, toy_wait, NULL },
	{ "Tail", SB_RPC_ENDLESS, true, toy_wait, NULL },
};

#define TOY_ADMIN "admin-token-0123456789"
#define TOY_AGENT "agent-token-0123456789"
#define TOY_MONITOR "monitor-token-0123456789"

/* A server of it on a unix socket and on TCP, and a client. */
struct rig {
	struct tmpdir dir;
	char socket[300], url[64];
	struct toy toy;
	struct sb_rpc_service service;
	struct sb_rpc_auth *auth;
	struct sb_rpc_server_opts opts;
	struct sb_rpc_server *server;
	struct sb_rpc_client *client;
};

static inline struct sb_rpc_client *
rig_client(const char *address, const char *token, const char *ca)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_rpc_client *c;

	o.address = address;
	o.token = token;
	o.ca_file = ca;
	o.service = "toy.v1.Toy";
	c = sb_rpc_client_new(&o, &err);
	if (!c)
		fail_msg("client: %s", err.msg);
	return c;
}

/* `edit` may change the options before the start. */
static inline struct rig *
rig_new(void (*edit)(struct sb_rpc_server_opts *))
{
	struct rig *r = calloc(1, sizeof *r);
	struct sb_error err = { 0 };
	const char *listen[3];

	tmpdir_make(&r->dir);
	(void)snprintf(r->socket, sizeof r->socket, "%s/s", r->dir.path);
	r->service = (struct sb_rpc_service){ "toy.v1.Toy", toy_methods,
		sizeof toy_methods / sizeof toy_methods[0], &r->toy, toy_metrics, NULL, NULL,
		NULL };
	r->auth = sb_rpc_auth_new(&err);
	assert_ok(sb_rpc_auth_add(r->auth, "ops", SB_RPC_ROLE_ADMIN, NULL, TOY_ADMIN, &err), &err);
	assert_ok(sb_rpc_auth_add(r->auth, "agent", SB_RPC_ROLE_SESSION, "s1", TOY_AGENT, &err),
		&err);
	assert_ok(sb_rpc_auth_add(r->auth, "prom", SB_RPC_ROLE_MONITOR, NULL, TOY_MONITOR, &err),
		&err);
	r->opts = (struct sb_rpc_server_opts)SB_RPC_SERVER_OPTS_INIT;
	r->opts.auth = r->auth;
	listen[0] = r->socket;
	listen[1] = "127.0.0.1:0";
	listen[2] = NULL;
	r->opts.listen = listen;
	if (edit)
		edit(&r->opts);
	r->server = sb_rpc_server_start(&r->opts, &r->service, &err);
	if (!r->server)
		fail_msg("server: %s", err.msg);
	(void)snprintf(r->url, sizeof r->url, "http%s://127.0.0.1:%u", r->opts.tls_cert ? "s" : "",
		sb_rpc_server_port(r->server, 1));
	r->client = rig_client(r->socket, NULL, NULL);
	return r;
}

static inline void
rig_free(struct rig *r)
{
	sb_rpc_client_free(r->client);
	sb_rpc_server_free(r->server);
	sb_rpc_auth_free(r->auth);
	tmpdir_remove(&r->dir);
	free(r);
}

static inline int
rig_connect(const struct rig *r)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(r->socket) < sizeof a.sun_path);
	memcpy(a.sun_path, r->socket, strlen(r->socket) + 1);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

/* Sends bytes as they are and returns everything until the server closes (at most 8 s). */
static inline char *
rig_raw(const struct rig *r, const void *data, size_t len)
{
	struct sb_buf b;
	int fd = rig_connect(r);
	struct timeval limit = { .tv_sec = 8 };
	char piece[4096];
	ssize_t n;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	sb_buf_init(&b, 8 << 20);
	for (size_t at = 0; at < len; at += (size_t)n) {
		n = send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL);
		if (n <= 0)
			break;
	}
	while ((n = read(fd, piece, sizeof piece)) > 0)
		sb_buf_add(&b, piece, (size_t)n);
	(void)close(fd);
	if (b.len == 0)
		sb_buf_add_str(&b, "(nothing)");
	return (char *)sb_buf_detach(&b, NULL);
}

static inline char *
rig_text(const struct rig *r, const char *request)
{
	return rig_raw(r, request, strlen(request));
}

/* Until the counter has the value. */
static inline void
rig_until(_Atomic int *counter, int value)
{
	for (int i = 0; i < 4000 && atomic_load(counter) != value; i++)
		(void)poll(NULL, 0, 2);
	assert_int_equal(atomic_load(counter), value);
}

#define assert_has(text, part) \
	do { \
		if (!strstr((text), (part))) \
			fail_msg("\"%s\" is not in \"%s\"", (part), (text)); \
	} while (0)

#endif
