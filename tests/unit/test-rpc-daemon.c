/* SPDX-License-Identifier: MIT */
/* A host served in this process: tokens, calls, the end that keeps the sessions. */
#include "config.h"

#include <signal.h>

#include <sb/rpc-daemon.h>
#include <sb/rpc.h>

#include "tests/lib/hostfix.h"

#define TOKEN "a-token-of-the-admin"
#define MONITOR "a-token-of-a-monitor"

static int
call(struct hostfix *f, const char *token, const char *method, const char *json)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_rpc_wait wait = { NULL, sb_deadline_in(20000) };
	struct sb_rpc_client *c;
	char address[320], *answer = NULL;
	size_t len = 0;
	int r;

	(void)snprintf(address, sizeof address, "unix:%s/sock", f->t.path);
	o.address = address;
	o.token = token;
	c = sb_rpc_client_new(&o, &f->err);
	assert_non_null(c);
	r = sb_rpc_client_call(c, method, json, &wait, &answer, &len, &f->err);
	sb_rpc_client_free(c);
	free(answer);
	return r;
}

/* A daemon with two tokens on `f`'s storage, at `sock` in its directory. */
static struct sb_rpc_daemon *
serve(struct hostfix *f)
{
	struct sb_rpc_server_opts so = SB_RPC_SERVER_OPTS_INIT;
	const struct sb_rpc_token admin = { .name = "a", .role = "admin", .token = TOKEN };
	const struct sb_rpc_token monitor = { .name = "m", .role = "monitor", .token = MONITOR };
	struct sb_rpc_daemon *d = sb_rpc_daemon_new(&f->err);
	char listen[320];
	const char *all[] = { listen, NULL };

	assert_non_null(d);
	(void)snprintf(listen, sizeof listen, "unix:%s/sock", f->t.path);
	so.listen = all;
	so.socket_auth = true;
	assert_ok(sb_rpc_daemon_add_token(d, &admin, &f->err), &f->err);
	assert_ok(sb_rpc_daemon_add_token(d, &monitor, &f->err), &f->err);
	assert_ok(sb_rpc_daemon_start(d, &f->o, &so, &f->err), &f->err);
	return d;
}

static int
setup(void **state)
{
	struct hostfix *f = calloc(1, sizeof *f);

	(void)signal(SIGPIPE, SIG_IGN);
	if (!f)
		return -1;
	hostfix_prepare(f);
	*state = f;
	return 0;
}

static void
tokens_decide_who_may_call(void **state)
{
	struct hostfix *f = *state;
	struct sb_rpc_daemon *d = serve(f);

	assert_ok(call(f, TOKEN, "ListSessions", NULL), &f->err);
	assert_ok(call(f, MONITOR, "HealthCheck", NULL), &f->err);
	assert_fails(call(f, MONITOR, "ListSessions", NULL), SB_E_DENIED, &f->err);
	assert_fails(call(f, "no-token-of-anybody", "HealthCheck", NULL), SB_E_AUTH, &f->err);
	assert_ok(sb_rpc_daemon_stop(d, 5000, NULL, &f->err), &f->err);
	sb_rpc_daemon_free(d);
}

static void
a_stop_keeps_the_sessions(void **state)
{
	struct hostfix *f = *state;
	struct sb_rpc_daemon *d = serve(f);

	assert_ok(call(f, TOKEN, "CreateSession", "{\"SessionID\": \"one\"}"), &f->err);
	assert_ok(sb_rpc_daemon_stop(d, 5000, NULL, &f->err), &f->err);
	assert_fails(call(f, TOKEN, "HealthCheck", NULL), SB_E_CONNECT, &f->err);
	sb_rpc_daemon_free(d);
	d = serve(f);
	assert_ok(call(f, TOKEN, "GetSession", "{\"SessionID\": \"one\"}"), &f->err);
	assert_ok(sb_rpc_daemon_stop(d, 5000, NULL, &f->err), &f->err);
	sb_rpc_daemon_free(d);
}

static void
mistakes_are_refused_before_anything_runs(void **state)
{
	struct hostfix *f = *state;
	struct sb_rpc_token t = { .name = "x", .role = "king", .token = TOKEN };
	struct sb_rpc_server_opts so = SB_RPC_SERVER_OPTS_INIT;
	const char *all[] = { "127.0.0.1:0", NULL };
	struct sb_rpc_daemon *d = sb_rpc_daemon_new(&f->err);

	assert_non_null(d);
	assert_fails(sb_rpc_daemon_add_token(d, &t, &f->err), SB_E_INVAL, &f->err);
	assert_string_equal(f->err.msg, "token x: role \"king\" must be admin, session or monitor");
	t = (struct sb_rpc_token){ .name = "x", .role = "admin", .token = "short" };
	assert_fails(sb_rpc_daemon_add_token(d, &t, &f->err), SB_E_INVAL, &f->err);
	t = (struct sb_rpc_token){ .name = "x", .role = "admin", .sha256 = "no digest" };
	assert_fails(sb_rpc_daemon_add_token(d, &t, &f->err), SB_E_INVAL, &f->err);
	assert_fails(sb_rpc_daemon_set_key(d, "short", 5, &f->err), SB_E_INVAL, &f->err);
	/* None was taken, and TCP needs one. */
	so.listen = all;
	assert_fails(sb_rpc_daemon_start(d, &f->o, &so, &f->err), SB_E_INVAL, &f->err);
	sb_rpc_daemon_free(d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tokens_decide_who_may_call, setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(a_stop_keeps_the_sessions, setup, hostfix_teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_refused_before_anything_runs, setup,
			hostfix_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
