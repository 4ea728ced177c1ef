/* SPDX-License-Identifier: MIT */
/* What the holder of a session's token can do on a daemon, and what the token's end is. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <sqlite3.h>

#include <base/cleanup.h>
#include <base/str.h>
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

#define APPEND(id) \
	"{\"SessionID\": \"one\", \"ToolCallID\": \"" id "\", \"ToolName\": \"bash\", " \
	"\"Params\": {\"cmd\": \"echo x >>n; wc -l <n\"}}"

/* The first line of the answer's content, and whether it is an earlier one. */
static void
gives(struct world *w, const char *json, const char *content, bool replayed)
{
	json_t *o = call(w, ADMIN, "ExecuteTool", json);

	if (!o)
		fail_msg("%s", w->f.err.msg);
	assert_non_null(strstr(json_string_value(json_object_get(o, "Content")), content));
	assert_int_equal(json_is_true(json_object_get(o, "Replayed")), replayed);
	json_decref(o);
}

static void
a_call_runs_once_whatever_restarts(void **state)
{
	struct world *w = *state;
	char path[400];
	sqlite3 *sql = NULL;

	must(w, ADMIN, "CreateSession", ONE);
	gives(w, APPEND("c1"), "1", false);
	gives(w, APPEND("c1"), "1", true);
	stop(w);
	serve(w);
	gives(w, APPEND("c1"), "1", true);
	gives(w, APPEND("c2"), "2", false);
	must_not(w, ADMIN, "ExecuteTool",
		"{\"SessionID\": \"one\", \"ToolCallID\": \"c1\", \"ToolName\": \"bash\", "
		"\"Params\": {\"cmd\": \"true\"}}",
		SB_E_INVAL);
	stop(w);
	/* As a kill in the middle of the call would leave it. */
	(void)snprintf(path, sizeof path, "%s/calls.db", w->f.state_dir);
	assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(sql, "UPDATE calls SET ended = 0 WHERE id = 'c2'", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_close(sql), SQLITE_OK);
	serve(w);
	must_not(w, ADMIN, "ExecuteTool", APPEND("c2"), SB_E_STATE);
	assert_non_null(strstr(w->f.err.msg, "nobody knows how far it came"));
	gives(w, APPEND("c3"), "3", false);
	/* Another session of that id has calls of its own. */
	must(w, ADMIN, "DestroySession", ONE);
	must(w, ADMIN, "CreateSession", ONE);
	gives(w, APPEND("c1"), "1", false);
}

/* The text has none of the names of the host's places. */
static void
tells_no_place(struct world *w, const char *text)
{
	const char *const places[] = { w->f.t.path, w->f.state_dir, w->f.sessions, w->f.bases };

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		if (strstr(text, places[i]))
			fail_msg("\"%s\" tells of %s", text, places[i]);
}

static void
a_session_does_not_learn_where_it_lies(void **state)
{
	static const char *const methods[] = { "GetSession", "ListProcesses", "HealthCheck",
		"GetCapabilities", "PauseSession", "ResumeSession", "ListSnapshots", "TurnComplete",
		"CreateSnapshot", "RollbackSession" };
	struct world *w = *state;
	sb_autofree char *token = NULL, *gone = NULL, *from = NULL;

	must(w, ADMIN, "CreateSession", ONE);
	token = issue(w, ONE);
	for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
		json_t *o = call(w, token, methods[i],
			"{\"SessionID\": \"one\", \"Name\": \"a\", \"SnapshotID\": \"a\"}");
		sb_autofree char *text = o ? json_dumps(o, 0) : NULL;

		tells_no_place(w, text ? text : w->f.err.msg);
		if (i == 0)
			assert_non_null(strstr(text, "\"Mountpoint\": \"/workspace\""));
		json_decref(o);
	}
	/* An error from the depths of the host. */
	if (w->f.zfs)
		return;
	from = sb_str_printf("%s/one", w->f.sessions);
	gone = sb_str_printf("%s/.gone", w->f.sessions);
	assert_true(from && gone);
	{
		json_t *o;

		assert_int_equal(rename(from, gone), 0);
		o = call(w, token, "ExecuteTool",
			"{\"SessionID\": \"one\", \"ToolCallID\": \"p\", \"ToolName\": "
			"\"read_file\", \"Params\": {\"path\": \"hello\"}}");
		{
			sb_autofree char *text = o ? json_dumps(o, 0) : NULL;

			tells_no_place(w, text ? text : w->f.err.msg);
		}
		json_decref(o);
		o = call(w, token, "LaunchProcess",
			"{\"SessionID\": \"one\", \"Binary\": \"/bin/true\"}");
		{
			sb_autofree char *text = o ? json_dumps(o, 0) : NULL;

			tells_no_place(w, text ? text : w->f.err.msg);
		}
		json_decref(o);
		assert_int_equal(rename(gone, from), 0);
	}
	/* An admin does. */
	{
		json_t *o = call(w, ADMIN, "GetSession", ONE);
		sb_autofree char *text = json_dumps(o, 0);

		assert_non_null(strstr(text, from));
		json_decref(o);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_token_ends_with_its_session, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_runs_once_whatever_restarts, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_session_does_not_learn_where_it_lies, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
