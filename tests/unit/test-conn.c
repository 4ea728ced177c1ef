/* SPDX-License-Identifier: MIT */
/* One connection for many syncs and commands, over a real SSH server and on this machine. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <sbsync/conn.h>
#include <sbsync/sync.h>
#include <sync/run/retry.h>

#include "tests/lib/sshd.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

#define ENV_LINE "SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp"

static struct {
	struct test_sshd sshd;
	struct tmpdir dir;
	bool none;
	char why[300];
	char program[300];
	const char *agent[3];
	char state[300], src[300];
	char endpoint[400];
} lab;

#define NEED_SERVER() \
	do { \
		if (lab.none) { \
			print_message("# skip: %s\n", lab.why); \
			skip(); \
		} \
	} while (0)

static void
write_file(const char *dir, const char *name, const char *text)
{
	struct sb_error err = { 0 };
	char path[700];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_ok(sb_file_replace(AT_FDCWD, path, text, strlen(text), 0644, &err), &err);
}

static void
holds(const char *path, const char *text)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_file_read(AT_FDCWD, path, 1u << 20, &b, &err), &err);
	assert_string_equal((char *)b.data, text);
}

/* How often the server's log says this. */
static int
logged(const char *what)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_error err = { 0 };
	int n = 0;

	assert_ok(sb_file_read(AT_FDCWD, test_sshd_path(&lab.sshd, "log"), 16u << 20, &b, &err),
		&err);
	for (const char *p = (char *)b.data; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static int
set_up(void **state)
{
	static const char *const lines[] = { ENV_LINE, NULL };
	const char *build = getenv("SB_TOP_BUILDDIR");
	char path[400];
	bool skips;

	(void)state;
	tmpdir_make(&lab.dir);
	(void)snprintf(lab.state, sizeof lab.state, "%s/state", lab.dir.path);
	(void)snprintf(lab.src, sizeof lab.src, "%s/src", lab.dir.path);
	(void)mkdir(lab.src, 0755);
	write_file(lab.src, "a", "one\n");
	(void)snprintf(lab.program, sizeof lab.program, "%s/sbsync", build ? build : ".");
	lab.agent[0] = lab.program;
	lab.agent[1] = "agent";
	(void)snprintf(path, sizeof path, "%s/sbsync-agent", build ? build : ".");
	(void)setenv("SBSYNC_AGENT", path, 0);
	if (!test_sshd_start(&lab.sshd, "start", NULL, lines, &skips, lab.why, sizeof lab.why)) {
		lab.none = true;
		return skips ? 0 : -1;
	}
	(void)snprintf(lab.endpoint, sizeof lab.endpoint, "ssh://%s@127.0.0.1:%d%s/far",
		lab.sshd.user, lab.sshd.port, lab.sshd.dir);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	if (!lab.none)
		test_sshd_stop(&lab.sshd);
	tmpdir_remove(&lab.dir);
	return 0;
}

static void
opts(struct sb_sync_opts *o)
{
	*o = (struct sb_sync_opts)SB_SYNC_OPTS_INIT;
	o->identity = lab.sshd.key;
	o->known_hosts = lab.sshd.known;
	o->ssh_config = "/dev/null";
	o->state_dir = lab.state;
	o->agent = lab.agent;
	o->never_ask = true;
}

/* Without a time limit tries end after a while, and the message says how to go on. */
static void
too_many_tries_are_told(void **state)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_retry t = { .connected = true, .lost = true, .failures = 10 },
			never = { .lost = true, .failures = 4 };
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	sb_fail(&err, SB_E_CLOSED, "me@box port 22: connection lost");
	assert_false(sb_retry_again(&t, SB_E_CLOSED, &o, &err, &res));
	assert_string_equal(err.msg,
		"me@box port 22: connection lost; 11 tries got no further: run it again to go on, "
		"or with --timeout "
		"to try for longer");
	assert_int_equal(err.code, SB_E_CLOSED);
	sb_fail(&err, SB_E_CLOSED, "me@box port 22: closed");
	assert_false(sb_retry_again(&never, SB_E_CLOSED, &o, &err, &res));
	assert_string_equal(err.msg,
		"me@box port 22: closed; 5 tries: sbsync doctor looks for the reason");
}

static struct sb_conn *
open_conn(const char *endpoint)
{
	struct sb_sync_opts o;
	struct sb_error err = { 0 };
	struct sb_conn *c;

	opts(&o);
	c = sb_conn_open(endpoint, &o, &err);
	if (!c)
		fail_msg("%s", err.msg);
	return c;
}

static void
push(struct sb_conn *c, const char *to, struct sb_sync_result *res)
{
	struct sb_error err = { 0 };
	struct sb_sync_opts o;

	opts(&o);
	o.conn = c;
	assert_ok(sb_sync_mirror(lab.src, to, &o, res, &err), &err);
}

/*
 * Several syncs in a row: one log-in, one agent; with nothing to do one round trip and little on
 * the wire.
 */
static void
syncs_share_one_agent(void **state)
{
	struct sb_sync_result res;
	struct sb_conn *c;
	char other[500];
	int logins, starts;
	uint64_t up, down;

	(void)state;
	NEED_SERVER();
	logins = logged("Accepted publickey");
	starts = logged("Starting session");
	c = open_conn(lab.endpoint);
	push(c, lab.endpoint, &res);
	assert_int_equal(res.files_synced, 1);
	assert_int_equal(res.round_trips, 2);
	sb_sync_result_free(&res);
	holds(test_sshd_path(&lab.sshd, "far/a"), "one\n");
	for (int i = 0; i < 3; i++) {
		push(c, lab.endpoint, &res);
		assert_int_equal(res.files_synced, 0);
		assert_int_equal(res.round_trips, 1);
		assert_true(
			res.bytes_wire_up > 0 && res.bytes_wire_up + res.bytes_wire_down < 1024);
		sb_sync_result_free(&res);
	}
	write_file(lab.src, "a", "two\n");
	push(c, lab.endpoint, &res);
	assert_int_equal(res.files_synced, 1);
	sb_sync_result_free(&res);
	holds(test_sshd_path(&lab.sshd, "far/a"), "two\n");
	/* Another root of the same host. */
	(void)snprintf(other, sizeof other, "%s2", lab.endpoint);
	push(c, other, &res);
	assert_int_equal(res.files_synced, 1);
	sb_sync_result_free(&res);
	holds(test_sshd_path(&lab.sshd, "far2/a"), "two\n");
	assert_int_equal(sb_conn_check(c, NULL), 0);
	sb_conn_wire_bytes(c, &up, &down);
	assert_true(up > 2000 && down > 2000);
	sb_conn_free(c);
	assert_int_equal(logged("Accepted publickey") - logins, 1);
	assert_int_equal(logged("Starting session") - starts, 1);
}

static size_t
read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t k;

	while (n + 1 < size && (k = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)k;
	buf[n] = 0;
	return n;
}

static void
run_is(struct sb_conn *c, const char *command, const char *in, const char *out,
	const char *err_text, int code)
{
	struct sb_conn_exit e = { 0 };
	struct sb_error err = { 0 };
	struct sb_conn_exec *x = sb_conn_exec(c, command, NULL, &err);
	char buf[4096];

	if (!x)
		fail_msg("%s: %s", command, err.msg);
	if (*in)
		assert_int_equal(write(sb_conn_exec_in(x), in, strlen(in)), (ssize_t)strlen(in));
	assert_ok(sb_conn_exec_close_in(x, &err), &err);
	(void)read_all(sb_conn_exec_out(x), buf, sizeof buf);
	assert_string_equal(buf, out);
	(void)read_all(sb_conn_exec_err(x), buf, sizeof buf);
	assert_string_equal(buf, err_text);
	assert_ok(sb_conn_exec_wait(x, sb_deadline_in(20000), &e, &err), &err);
	assert_true(e.known);
	assert_int_equal(e.code, code);
	sb_conn_exec_free(x);
}

static void
commands_keep_their_streams_apart(void **state)
{
	struct sb_conn *c;

	(void)state;
	NEED_SERVER();
	c = open_conn(lab.endpoint);
	run_is(c, "cat; echo oops >&2; exit 7", "text in\n", "text in\n", "oops\n", 7);
	run_is(c, "kill -TERM $$", "", "", "", 128 + 15);
	run_is(c, "true", "", "", "", 0);
	sb_conn_free(c);
}

static void
commands_of_this_machine(void **state)
{
	struct sb_conn *c = open_conn(lab.src);

	(void)state;
	run_is(c, "cat; echo oops >&2; exit 7", "text in\n", "text in\n", "oops\n", 7);
	run_is(c, "kill -TERM $$", "", "", "", 128 + 15);
	sb_conn_free(c);
}

static void *
run_many(void *arg)
{
	for (int i = 0; i < 5; i++)
		run_is(arg, "cat; sed -n 1p </etc/passwd >/dev/null; echo e >&2; exit 3", "x", "x",
			"e\n", 3);
	return NULL;
}

/* Much on stderr while stdout is not read, commands from several threads, and a sync among them. */
static void
commands_and_syncs_at_once(void **state)
{
	struct sb_conn_exit e = { 0 };
	struct sb_error err = { 0 };
	struct sb_sync_result res;
	struct sb_conn_exec *x;
	struct sb_conn *c;
	pthread_t t[3];
	char *big;
	int logins;

	(void)state;
	NEED_SERVER();
	logins = logged("Accepted publickey");
	c = open_conn(lab.endpoint);
	x = sb_conn_exec(c,
		"head -c 100000 /dev/zero; head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 5",
		NULL, &err);
	if (!x)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, run_many, c), 0);
	push(c, lab.endpoint, &res);
	sb_sync_result_free(&res);
	for (size_t i = 0; i < 3; i++)
		(void)pthread_join(t[i], NULL);
	big = malloc(4000000);
	assert_non_null(big);
	assert_int_equal(read_all(sb_conn_exec_err(x), big, 4000000), 3000000);
	assert_int_equal(read_all(sb_conn_exec_out(x), big, 4000000), 100000);
	free(big);
	assert_ok(sb_conn_exec_wait(x, sb_deadline_in(20000), &e, &err), &err);
	assert_int_equal(e.code, 5);
	sb_conn_exec_free(x);
	sb_conn_free(c);
	assert_int_equal(logged("Accepted publickey") - logins, 1);
}

/* The server ends the connection: what ran on it is told so, the next use makes a new one. */
static void
a_broken_connection_is_made_anew(void **state)
{
	struct sb_conn_exit e = { .known = true };
	struct sb_error err = { 0 };
	struct sb_sync_result res;
	struct sb_conn_exec *x;
	struct sb_conn *c;
	char buf[64];

	(void)state;
	NEED_SERVER();
	c = open_conn(lab.endpoint);
	push(c, lab.endpoint, &res);
	sb_sync_result_free(&res);
	/* Its parent is the server's process of this connection. */
	x = sb_conn_exec(c, "kill $PPID; exec sleep 100", NULL, &err);
	if (!x)
		fail_msg("%s", err.msg);
	(void)read_all(sb_conn_exec_out(x), buf, sizeof buf);
	assert_true(sb_conn_exec_wait(x, sb_deadline_in(20000), &e, &err) < 0);
	assert_false(e.known);
	assert_true(sb_conn_check(c, &err) < 0);
	assert_non_null(strstr(err.msg, "127.0.0.1 port"));
	sb_conn_exec_free(x);
	push(c, lab.endpoint, &res);
	sb_sync_result_free(&res);
	assert_int_equal(sb_conn_check(c, NULL), 0);
	run_is(c, "echo again", "", "again\n", "", 0);
	sb_conn_free(c);
}

static void
local_syncs_share_one_agent(void **state)
{
	struct sb_sync_result res;
	char to[400], file[500];
	struct sb_conn *c;

	(void)state;
	(void)snprintf(to, sizeof to, "%s/dst", lab.dir.path);
	(void)snprintf(file, sizeof file, "%s/a", to);
	c = open_conn(to);
	write_file(lab.src, "a", "three\n");
	push(c, to, &res);
	sb_sync_result_free(&res);
	holds(file, "three\n");
	push(c, to, &res);
	assert_int_equal(res.round_trips, 1);
	sb_sync_result_free(&res);
	sb_conn_free(c);
}

/* A sync that cannot be done is refused, and the next one works. */
static void
a_failed_sync_leaves_it_usable(void **state)
{
	struct sb_error err = { 0 };
	struct sb_sync_result res;
	struct sb_sync_opts o;
	struct sb_conn *c;

	(void)state;
	NEED_SERVER();
	c = open_conn(lab.endpoint);
	opts(&o);
	o.conn = c;
	assert_fails(sb_sync_mirror(lab.src, "elsewhere.example:x", &o, &res, &err), SB_E_INVAL,
		&err);
	sb_sync_result_free(&res);
	o.timeout_ms = 1;
	assert_fails(sb_sync_mirror(lab.src, lab.endpoint, &o, &res, &err), SB_E_TIMEOUT, &err);
	assert_non_null(strstr(err.msg, "--timeout"));
	sb_sync_result_free(&res);
	push(c, lab.endpoint, &res);
	sb_sync_result_free(&res);
	sb_conn_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_tries_are_told),
		cmocka_unit_test(syncs_share_one_agent),
		cmocka_unit_test(commands_keep_their_streams_apart),
		cmocka_unit_test(commands_of_this_machine),
		cmocka_unit_test(commands_and_syncs_at_once),
		cmocka_unit_test(a_broken_connection_is_made_anew),
		cmocka_unit_test(local_syncs_share_one_agent),
		cmocka_unit_test(a_failed_sync_leaves_it_usable),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
