/* SPDX-License-Identifier: MIT */
/*
 * The environment that an embedding program gets from a sandbox host. Compiled twice, see rpc.mk:
 * with the host in this process, and with an sbhostd. On ZFS from tests/e2e/host-zfs.sh.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <sb/env.h>

#include "tests/lib/hostfix.h"

#ifndef TEST_REMOTE
#define TEST_REMOTE 0
#endif
static const bool remote_host = TEST_REMOTE;

struct rig {
	struct hostfix f; /* options and places; its own host stays closed */
	struct sb_child daemon;
	char address[300];
	struct sb_env_host *host;
	struct sb_error err;
};

static void
start_daemon(struct rig *g)
{
	const char *top = getenv("SB_TOP_BUILDDIR");
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char program[400], listen[320];
	const char *argv[16] = { program, "--listen", listen, "--state-dir", g->f.state_dir,
		"--container-runtime", "none", "--storage-backend", hostfix_storage(),
		g->f.zfs ? "--bases-dataset" : "--bases-dir", g->f.bases,
		g->f.zfs ? "--sessions-dataset" : "--sessions-root-dir", g->f.sessions,
		g->f.zfs ? "--pool" : NULL, g->f.zfs ? g->f.o.pool : NULL, NULL };

	(void)snprintf(program, sizeof program, "%s/sbhostd", top && *top ? top : ".");
	(void)snprintf(listen, sizeof listen, "unix:%s/sock", g->f.t.path);
	o.io[1] = o.io[2] = SB_SPAWN_NULL;
	o.die_with_parent = true;
	assert_ok(sb_spawn(argv, &o, &g->daemon, &g->err), &g->err);
}

static void
open_host(struct rig *g)
{
	struct sb_env_host_opts o = SB_ENV_HOST_OPTS_INIT;
	struct sb_env_capabilities c;
	sb_deadline d = sb_deadline_in(20000);

	if (!remote_host) {
		o.host = &g->f.o;
		o.socket = g->address + strlen("unix:");
	} else {
		start_daemon(g);
		o.address = g->address;
	}
	g->host = sb_env_host_open(&o, &g->err);
	if (!g->host)
		fail_msg("open: %s", g->err.msg);
	while (remote_host && sb_env_host_capabilities(g->host, NULL, &c, &g->err) < 0 &&
		!sb_deadline_passed(d))
		(void)usleep(5000);
}

static void
close_host(struct rig *g)
{
	sb_env_host_free(g->host);
	g->host = NULL;
	if (remote_host)
		sb_child_stop(&g->daemon, 10000);
}

static int
setup(void **state)
{
	struct rig *g = calloc(1, sizeof *g);

	assert_non_null(g);
	(void)unsetenv("SB_TEST_RUNTIME");
	(void)signal(SIGPIPE, SIG_IGN);
	hostfix_prepare(&g->f);
	(void)snprintf(g->address, sizeof g->address, "unix:%s/sock", g->f.t.path);
	open_host(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *g = *state;
	struct hostfix *f = calloc(1, sizeof *f);

	close_host(g);
	assert_non_null(f);
	*f = g->f;
	free(g);
	return hostfix_teardown((void **)&f);
}

static struct sb_env *
create(struct rig *g, const char *id)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_env *e = NULL;

	o.id = id;
	o.base = g->f.base;
	assert_ok(sb_env_create(g->host, &o, 0, NULL, &e, &g->err), &g->err);
	return e;
}

static int
tool(struct sb_env *e, const char *id, const char *name, const char *params,
	struct sb_host_tool_result *out, struct sb_error *err)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;

	q.call_id = id;
	q.tool = name;
	q.params = params;
	return sb_env_execute(e, &q, NULL, out, err);
}

/* The tool runs; its text is as wanted, its exit code too. */
static void
expect(struct rig *g, struct sb_env *e, const char *name, const char *params, int code,
	const char *part)
{
	struct sb_host_tool_result r;

	assert_ok(tool(e, NULL, name, params, &r, &g->err), &g->err);
	assert_int_equal(r.exit_code, code);
	if (!strstr(r.text, part))
		fail_msg("%s: \"%s\" has no \"%s\"", name, r.text, part);
	assert_int_equal(strlen(r.text), r.text_len);
	sb_host_tool_result_clear(&r);
}

static enum sb_env_state
state_of(struct rig *g, struct sb_env *e)
{
	enum sb_env_state s = SB_ENV_CREATING;

	assert_ok(sb_env_state(e, NULL, &s, &g->err), &g->err);
	return s;
}

static void
tools_give_what_the_host_gives(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_result r;

	assert_string_equal(sb_env_id(e), "one");
	expect(g, e, "write_file", "{\"path\":\"note\",\"content\":\"a\\nb\\n\"}", 0, "4 bytes");
	expect(g, e, "read_file", "{\"path\":\"note\"}", 0, "b");
	expect(g, e, "bash", "{\"cmd\":\"cat hello; exit 3\"}", 3, "hello");
	assert_ok(tool(e, NULL, "read_file", "{\"path\":\"missing\"}", &r, &g->err), &g->err);
	assert_true(r.is_error && r.tier == 1 && !r.has_exit);
	sb_host_tool_result_clear(&r);
	assert_ok(tool(e, NULL, "bash", "{\"cmd\":\"sleep 60\",\"timeout_ms\":100}", &r, &g->err),
		&g->err);
	assert_true(r.timed_out && r.has_exit && r.is_error);
	assert_int_equal(r.exit_code, 124);
	sb_host_tool_result_clear(&r);
	assert_fails(tool(e, NULL, "no_such", "{}", &r, &g->err), SB_E_TOOL_UNKNOWN, &g->err);
	assert_fails(tool(e, NULL, "bash", "[1]", &r, &g->err), SB_E_INVAL, &g->err);
	assert_fails(tool(e, NULL, "bash", "{", &r, &g->err), SB_E_INVAL, &g->err);
	sb_env_free(e);
}

struct heard {
	char text[2][200];
	const char *touch; /* made when output comes: the command waits for it */
};

static void
hear(const void *data, size_t len, bool is_stderr, void *arg)
{
	struct heard *h = arg;
	size_t at = strlen(h->text[is_stderr]);

	(void)snprintf(h->text[is_stderr] + at, sizeof h->text[0] - at, "%.*s", (int)len,
		(const char *)data);
	if (h->touch)
		(void)sb_file_replace(AT_FDCWD, h->touch, "", 0, 0644, NULL);
}

static void
progress_comes_while_the_tool_runs(void **state)
{
	struct rig *g = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_result r;
	struct heard h = { 0 };
	sb_autofree char *params = NULL;
	char path[400];

	(void)snprintf(path, sizeof path, "%s/go", g->f.t.path);
	h.touch = path;
	q.tool = "bash";
	q.progress = hear;
	q.arg = &h;
	params = sb_str_printf("{\"cmd\":\"echo first; while ! test -e %s; do sleep 0.02; done; "
			       "echo second; echo third >&2\"}",
		path);
	q.params = params;
	assert_ok(sb_env_execute(e, &q, NULL, &r, &g->err), &g->err);
	assert_string_equal(h.text[0], "first\nsecond\n");
	assert_string_equal(h.text[1], "third\n");
	assert_int_equal(r.exit_code, 0);
	sb_host_tool_result_clear(&r);
	sb_env_free(e);
}

static void
a_call_runs_once(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_result r;

	for (int i = 0; i < 3; i++) {
		assert_ok(tool(e, "call-1", "bash", "{\"cmd\":\"echo x >>f; wc -l <f\"}", &r,
				  &g->err),
			&g->err);
		assert_non_null(strstr(r.text, "1\n"));
		sb_host_tool_result_clear(&r);
	}
	assert_fails(tool(e, "call-1", "bash", "{\"cmd\":\"true\"}", &r, &g->err), SB_E_INVAL,
		&g->err);
	/* Without an id every call is one of its own. */
	expect(g, e, "bash", "{\"cmd\":\"echo x >>f; wc -l <f\"}", 0, "2\n");
	expect(g, e, "bash", "{\"cmd\":\"echo x >>f; wc -l <f\"}", 0, "3\n");
	sb_env_free(e);
}

static void
pause_and_resume(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_result r;

	assert_int_equal(state_of(g, e), SB_ENV_ACTIVE);
	assert_fails(sb_env_resume(e, NULL, &g->err), SB_E_INVALID_STATE, &g->err);
	assert_ok(sb_env_pause(e, NULL, &g->err), &g->err);
	assert_int_equal(state_of(g, e), SB_ENV_PAUSED);
	assert_fails(tool(e, NULL, "bash", "{\"cmd\":\"true\"}", &r, &g->err), SB_E_SESSION_PAUSED,
		&g->err);
	assert_ok(sb_env_resume(e, NULL, &g->err), &g->err);
	expect(g, e, "bash", "{\"cmd\":\"true\"}", 0, "");
	sb_env_free(e);
}

static void
attach_finds_what_is_there(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one"), *again = NULL;

	assert_fails(sb_env_attach(g->host, "two", NULL, &again, &g->err), SB_E_SESSION_NOT_FOUND,
		&g->err);
	assert_ok(sb_env_attach(g->host, "one", NULL, &again, &g->err), &g->err);
	expect(g, e, "write_file", "{\"path\":\"n\",\"content\":\"seen\"}", 0, "");
	expect(g, again, "read_file", "{\"path\":\"n\"}", 0, "seen");
	assert_ok(sb_env_destroy(e, false, NULL, &g->err), &g->err);
	assert_ok(sb_env_destroy(e, false, NULL, &g->err), &g->err);
	assert_int_equal(state_of(g, e), SB_ENV_DESTROYED);
	assert_int_equal(state_of(g, again), SB_ENV_DESTROYED);
	assert_ok(sb_env_destroy(again, false, NULL, &g->err), &g->err);
	assert_fails(sb_env_pause(e, NULL, &g->err), SB_E_SESSION_NOT_FOUND, &g->err);
	assert_fails(sb_env_pause(again, NULL, &g->err), SB_E_SESSION_NOT_FOUND, &g->err);
	sb_env_free(e);
	sb_env_free(again);
}

static void
what_the_host_lacks_makes_nothing(void **state)
{
	struct rig *g = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_env_capabilities c;
	struct sb_env *e = NULL;

	o.id = "one";
	o.base = g->f.base;
	assert_ok(sb_env_host_capabilities(g->host, NULL, &c, &g->err), &g->err);
	assert_string_equal(c.storage, hostfix_storage());
	assert_string_equal(c.runtime, "none");
	assert_string_equal(c.isolation_level, "none");
	assert_true(c.pause && c.streaming_progress && !c.isolation && !c.tier_routing);
	assert_int_equal(c.snapshots, g->f.snaps);
	assert_fails(sb_env_create(g->host, &o, SB_ENV_NEED_ISOLATION, NULL, &e, &g->err),
		SB_E_UNSUPPORTED, &g->err);
	assert_fails(sb_env_create(g->host, &o, SB_ENV_NEED_TIERS, NULL, &e, &g->err),
		SB_E_UNSUPPORTED, &g->err);
	if (!g->f.snaps)
		assert_fails(sb_env_create(g->host, &o, SB_ENV_NEED_SNAPSHOTS, NULL, &e, &g->err),
			SB_E_UNSUPPORTED, &g->err);
	assert_fails(sb_env_attach(g->host, "one", NULL, &e, &g->err), SB_E_SESSION_NOT_FOUND,
		&g->err);
	assert_int_equal(hostfix_storage_count(&g->f), 0);
	o.network = SB_HOST_NET_NONE;
	assert_fails(sb_env_create(g->host, &o, 0, NULL, &e, &g->err), SB_E_UNSUPPORTED, &g->err);
	o.network = SB_HOST_NET_DEFAULT;
	assert_ok(sb_env_create(g->host, &o, SB_ENV_NEED_PAUSE, NULL, &e, &g->err), &g->err);
	sb_env_free(e);
	assert_fails(sb_env_create(g->host, &o, 0, NULL, &e, &g->err), SB_E_SESSION_EXISTS,
		&g->err);
}

static void
its_tools_are_listed(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool *there = NULL, *here = NULL;
	size_t n = 0, m = 0;
	char *workspace = NULL;

	assert_ok(sb_env_tools(e, NULL, &there, &n, &g->err), &g->err);
	assert_ok(sb_host_tool_list(&here, &m, &g->err), &g->err);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(there[i].name, here[i].name);
		assert_string_equal(there[i].description, here[i].description);
		assert_string_equal(there[i].schema, here[i].schema);
		assert_int_equal(there[i].reads, here[i].reads);
		assert_int_equal(there[i].network, here[i].network);
	}
	sb_host_tools_free(there, n);
	sb_host_tools_free(here, m);
	assert_ok(sb_env_workspace(e, NULL, &workspace, &g->err), &g->err);
	assert_non_null(strstr(workspace, "/one"));
	free(workspace);
	assert_ok(sb_env_destroy(e, false, NULL, &g->err), &g->err);
	assert_fails(sb_env_tools(e, NULL, &there, &n, &g->err), SB_E_SESSION_NOT_FOUND, &g->err);
	sb_env_free(e);
}

static void
a_host_is_what_the_configuration_wants(void **state)
{
	struct rig *g = *state;
	struct sb_env_config c = SB_ENV_CONFIG_INIT;

	/* The default wants isolation, which runtime none has not. */
	assert_fails(sb_env_host_check(g->host, &c, NULL, &g->err), SB_E_UNSUPPORTED, &g->err);
	c.needs = SB_ENV_NEED_PAUSE;
	assert_ok(sb_env_host_check(g->host, &c, NULL, &g->err), &g->err);
	c.storage = hostfix_storage();
	c.runtime = "none";
	assert_ok(sb_env_host_check(g->host, &c, NULL, &g->err), &g->err);
	c.runtime = "gvisor";
	assert_fails(sb_env_host_check(g->host, &c, NULL, &g->err), SB_E_UNSUPPORTED, &g->err);
	assert_string_equal(g->err.msg, "the host has runtime none, not gvisor");
	c.storage = "tape";
	assert_fails(sb_env_host_check(g->host, &c, NULL, &g->err), SB_E_UNSUPPORTED, &g->err);
}

static void
a_newer_token_shuts_older_ones_out(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_call mine = { .deadline = SB_NEVER, .fence = UINT64_C(1) << 60 };
	struct sb_host_call older = { .deadline = SB_NEVER, .fence = 9 };
	struct sb_host_tool_result r;

	q.tool = "ls";
	assert_ok(sb_env_execute(e, &q, &older, &r, &g->err), &g->err);
	sb_host_tool_result_clear(&r);
	assert_ok(sb_env_pause(e, &mine, &g->err), &g->err);
	assert_fails(sb_env_resume(e, &older, &g->err), SB_E_FENCED, &g->err);
	assert_fails(sb_env_destroy(e, false, &older, &g->err), SB_E_FENCED, &g->err);
	assert_ok(sb_env_resume(e, &mine, &g->err), &g->err);
	assert_fails(sb_env_execute(e, &q, &older, &r, &g->err), SB_E_FENCED, &g->err);
	assert_ok(sb_env_execute(e, &q, NULL, &r, &g->err), &g->err);
	sb_host_tool_result_clear(&r);
	sb_env_free(e);
}

struct tool_heard {
	struct sb_env *e;
	bool started;
	char subject[64];
};

static bool
on_tool_event(const char *kind, const char *subject, void *arg)
{
	struct tool_heard *h = arg;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;
	struct sb_error err = { 0 };

	if (strcmp(kind, "stream.started") == 0) {
		h->started = true;
		q.tool = "bash";
		q.params = "{\"cmd\":\"true\"}";
		q.call_id = "the-call";
		assert_ok(sb_env_execute(h->e, &q, NULL, &r, &err), &err);
		sb_host_tool_result_clear(&r);
		return true;
	}
	assert_string_equal(kind, "tool.done");
	(void)snprintf(h->subject, sizeof h->subject, "%s", subject);
	return false;
}

static void
events_tell_of_a_tool_that_ended(void **state)
{
	struct rig *g = *state;
	struct tool_heard h = { .e = create(g, "one") };
	const struct sb_host_call call = { .cancel = NULL, .deadline = sb_deadline_in(60000) };

	assert_ok(sb_env_events(h.e, "tool.", &call, on_tool_event, &h, &g->err), &g->err);
	assert_true(h.started);
	assert_string_equal(h.subject, "the-call");
	sb_env_free(h.e);
}

static void
snapshot_and_rollback(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	struct sb_env_snapshot s;
	struct timespec now;

	if (!g->f.snaps) {
		assert_fails(sb_env_snapshot(e, "before", NULL, &s, &g->err), SB_E_NO_SNAPSHOTS,
			&g->err);
		assert_fails(sb_env_rollback(e, "before", false, NULL, &g->err), SB_E_NO_SNAPSHOTS,
			&g->err);
		assert_ok(sb_env_turn(e, NULL, &s, &g->err), &g->err);
		assert_string_equal(s.id, "");
		sb_env_free(e);
		return;
	}
	assert_ok(sb_env_snapshot(e, "before", NULL, &s, &g->err), &g->err);
	assert_string_equal(s.id, "before");
	/* Not time(2), whose clock is a tick behind the one of the host. */
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	assert_in_range(s.created_ns / 1000000000, now.tv_sec - 600, now.tv_sec);
	expect(g, e, "write_file", "{\"path\":\"hello\",\"content\":\"changed\"}", 0, "");
	assert_ok(sb_env_turn(e, NULL, &s, &g->err), &g->err);
	assert_string_equal(s.id, "turn-0001");
	assert_int_equal(s.turn, 1);
	assert_fails(sb_env_rollback(e, "other", false, NULL, &g->err), SB_E_SNAPSHOT_NOT_FOUND,
		&g->err);
	assert_int_equal(state_of(g, e), SB_ENV_ACTIVE);
	expect(g, e, "read_file", "{\"path\":\"hello\"}", 0, "changed");
	assert_ok(sb_env_rollback(e, "before", SB_HOST_DROP_LATER, NULL, &g->err), &g->err);
	expect(g, e, "read_file", "{\"path\":\"hello\"}", 0, "hello");
	assert_int_equal(state_of(g, e), SB_ENV_ACTIVE);
	sb_env_free(e);
}

static void
request_cancel(const void *data, size_t len, bool is_stderr, void *arg)
{
	(void)data;
	(void)len;
	(void)is_stderr;
	sb_cancel_request(arg);
}

static void
limits_end_a_tool(void **state)
{
	struct rig *g = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_cancel *cancel = sb_cancel_new(&g->err);
	struct sb_host_call call = { .cancel = cancel, .deadline = SB_NEVER };
	struct sb_env *e = create(g, "one");
	struct sb_host_tool_result r;

	assert_non_null(cancel);
	q.tool = "bash";
	q.params = "{\"cmd\":\"echo $$ >pid; echo here; exec sleep 300\"}";
	q.progress = request_cancel;
	q.arg = cancel;
	assert_fails(sb_env_execute(e, &q, &call, &r, &g->err), SB_E_CANCELED, &g->err);
	/* What it started ends, too. */
	expect(g, e, "bash",
		"{\"cmd\":\"for i in $(seq 500); do kill -0 $(cat pid) || exit 7; sleep 0.02; "
		"done\"}",
		7, "");
	call = (struct sb_host_call){ .cancel = NULL, .deadline = sb_deadline_in(300) };
	q.progress = NULL;
	assert_fails(sb_env_execute(e, &q, &call, &r, &g->err), SB_E_TIMEOUT, &g->err);
	expect(g, e, "bash", "{\"cmd\":\"echo fine\"}", 0, "fine");
	sb_cancel_free(cancel);
	sb_env_free(e);
}

static void *
loop(void *arg)
{
	struct sb_env *e = arg;
	struct sb_error err = { 0 };
	struct sb_host_tool_result r;

	for (int i = 0; i < 20; i++) {
		if (tool(e, NULL, i % 2 ? "read_file" : "bash",
			    i % 2 ? "{\"path\":\"hello\"}" : "{\"cmd\":\"cat hello\"}", &r,
			    &err) < 0)
			return arg;
		if (!strstr(r.text, "hello"))
			return arg;
		sb_host_tool_result_clear(&r);
	}
	return NULL;
}

static void
many_threads_share_it(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	pthread_t t[8];
	void *bad;

	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, loop, e), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	sb_env_free(e);
}

static void
sessions_outlive_the_host(void **state)
{
	struct rig *g = *state;
	struct sb_env *e = create(g, "one");
	enum sb_env_state s = SB_ENV_ACTIVE;

	expect(g, e, "write_file", "{\"path\":\"n\",\"content\":\"kept\"}", 0, "");
	if (remote_host) {
		/*
		 * The same environment works on, on a new connection. What does not answer has no
		 * state.
		 */
		sb_child_stop(&g->daemon, 0);
		assert_true(sb_env_state(e, NULL, &s, &g->err) < 0);
		assert_true(g->err.code == SB_E_CONNECT || g->err.code == SB_E_CLOSED);
		start_daemon(g);
		for (int i = 0; i < 1000 && sb_env_state(e, NULL, &s, &g->err) < 0; i++)
			(void)usleep(10000);
	} else {
		sb_env_free(e);
		close_host(g);
		open_host(g);
		assert_ok(sb_env_attach(g->host, "one", NULL, &e, &g->err), &g->err);
	}
	assert_int_equal(state_of(g, e), SB_ENV_ACTIVE);
	expect(g, e, "read_file", "{\"path\":\"n\"}", 0, "kept");
	sb_env_free(e);
}

static void
options_are_checked(void **state)
{
	struct rig *g = *state;
	struct sb_env_host_opts o = SB_ENV_HOST_OPTS_INIT;
	struct sb_env_capabilities c;
	struct sb_env_host *h;

	assert_null(sb_env_host_open(&o, &g->err));
	assert_int_equal(g->err.code, SB_E_INVAL);
	o.address = g->address;
	o.host = &g->f.o;
	assert_null(sb_env_host_open(&o, &g->err));
	assert_int_equal(g->err.code, SB_E_INVAL);
	o.host = NULL;
	o.address = "ftp://x";
	assert_null(sb_env_host_open(&o, &g->err));
	assert_int_equal(g->err.code, SB_E_INVAL);
	o.address = NULL;
	o.host = &g->f.o;
	assert_null(sb_env_host_open(&o, &g->err));
	assert_int_equal(g->err.code, SB_E_LOCKED);
	o.host = NULL;
	o.address = "unix:/nowhere/at/all";
	h = sb_env_host_open(&o, &g->err);
	assert_non_null(h);
	assert_fails(sb_env_host_capabilities(h, NULL, &c, &g->err), SB_E_CONNECT, &g->err);
	sb_env_host_free(h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tools_give_what_the_host_gives),
		TEST(progress_comes_while_the_tool_runs),
		TEST(a_call_runs_once),
		TEST(pause_and_resume),
		TEST(attach_finds_what_is_there),
		TEST(what_the_host_lacks_makes_nothing),
		TEST(its_tools_are_listed),
		TEST(a_host_is_what_the_configuration_wants),
		TEST(a_newer_token_shuts_older_ones_out),
		TEST(events_tell_of_a_tool_that_ended),
		TEST(snapshot_and_rollback),
		TEST(limits_end_a_tool),
		TEST(many_threads_share_it),
		TEST(sessions_outlive_the_host),
		TEST(options_are_checked),
	};

	return cmocka_run_group_tests_name(remote_host ? "env, sbhostd" : "env, in the process",
		tests, NULL, NULL);
}
