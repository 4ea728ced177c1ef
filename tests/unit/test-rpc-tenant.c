/* SPDX-License-Identifier: MIT */
/* What the holder of a session's token can do on a daemon, and what the token's end is. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <base/cleanup.h>
#include <sb/rpc-daemon.h>
#include <sb/rpc.h>

#include "tests/lib/hostfix.h"

#define ADMIN "a-token-of-the-admin"
#define KEY "0123456789abcdef0123456789abcdef"

struct world {
	struct hostfix f; /* first: hostfix_teardown frees it all */
	struct sb_rpc_daemon *d;
	char address[320];
};

static void
serve(struct world *w)
{
	struct sb_rpc_server_opts so = SB_RPC_SERVER_OPTS_INIT;
	const struct sb_rpc_token admin = { .name = "a", .role = "admin", .token = ADMIN };
	const char *all[] = { w->address, NULL };

	w->d = sb_rpc_daemon_new(&w->f.err);
	assert_non_null(w->d);
	so.listen = all;
	so.socket_auth = true;
	assert_ok(sb_rpc_daemon_add_token(w->d, &admin, &w->f.err), &w->f.err);
	assert_ok(sb_rpc_daemon_set_key(w->d, KEY, sizeof KEY - 1, &w->f.err), &w->f.err);
	assert_ok(sb_rpc_daemon_start(w->d, &w->f.o, &so, &w->f.err), &w->f.err);
}

static void
stop(struct world *w)
{
	assert_ok(sb_rpc_daemon_stop(w->d, 5000, NULL, &w->f.err), &w->f.err);
	sb_rpc_daemon_free(w->d);
	w->d = NULL;
}

/* The answer as an object (the caller's), or NULL with f.err. */
static json_t *
call(struct world *w, const char *token, const char *method, const char *json)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_rpc_wait wait = { NULL, sb_deadline_in(20000) };
	struct sb_rpc_client *c;
	sb_autofree char *answer = NULL;
	size_t len = 0;
	int r;

	o.address = w->address;
	o.token = token;
	w->f.err = (struct sb_error){ 0 };
	c = sb_rpc_client_new(&o, &w->f.err);
	assert_non_null(c);
	r = sb_rpc_client_call(c, method, json, &wait, &answer, &len, &w->f.err);
	sb_rpc_client_free(c);
	return r < 0 ? NULL : json_loadb(answer, len, 0, NULL);
}

static void
must(struct world *w, const char *token, const char *method, const char *json)
{
	json_t *o = call(w, token, method, json);

	if (!o)
		fail_msg("%s: %s", method, w->f.err.msg);
	json_decref(o);
}

static void
must_not(struct world *w, const char *token, const char *method, const char *json, int code)
{
	json_t *o = call(w, token, method, json);

	if (o || w->f.err.code != code)
		fail_msg("%s: %s", method, o ? "worked" : w->f.err.msg);
	json_decref(o);
}

static char *
issue(struct world *w, const char *json)
{
	json_t *o = call(w, ADMIN, "IssueSessionToken", json);
	char *token = o ? strdup(json_string_value(json_object_get(o, "Token"))) : NULL;

	assert_non_null(token);
	json_decref(o);
	return token;
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	(void)signal(SIGPIPE, SIG_IGN);
	if (!w)
		return -1;
	hostfix_prepare(&w->f);
	(void)snprintf(w->address, sizeof w->address, "unix:%s/sock", w->f.t.path);
	serve(w);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	if (w->d)
		stop(w);
	return hostfix_teardown(state);
}

#define ONE "{\"SessionID\": \"one\"}"

static void
a_token_ends_with_its_session(void **state)
{
	struct world *w = *state;
	sb_autofree char *old = NULL, *fresh = NULL;

	must(w, ADMIN, "CreateSession", ONE);
	old = issue(w, ONE);
	must(w, old, "GetSession", ONE);
	stop(w);
	serve(w);
	/* The session is the same after a restart, and so is its token. */
	must(w, old, "GetSession", ONE);
	must(w, ADMIN, "DestroySession", ONE);
	must_not(w, old, "GetSession", ONE, SB_E_SESSION_NOT_FOUND);
	must(w, ADMIN, "CreateSession", ONE);
	must_not(w, old, "GetSession", ONE, SB_E_DENIED);
	must_not(w, old, "ExecuteTool",
		"{\"SessionID\": \"one\", \"Request\": {\"Tool\": \"bash\"}}", SB_E_DENIED);
	must_not(w, old, "DestroySession", ONE, SB_E_DENIED);
	fresh = issue(w, ONE);
	must(w, fresh, "GetSession", ONE);
	stop(w);
	serve(w);
	must_not(w, old, "GetSession", ONE, SB_E_DENIED);
	must(w, fresh, "DestroySession", ONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_token_ends_with_its_session, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
