/* SPDX-License-Identifier: MIT */
/*
 * A box stays alive while its workspace is exchanged under it. By tests/e2e/host-*.sh, which choose
 * storage and runtime.
 */
#include "config.h"

#include <base/buf.h>
#include <base/file.h>
#include <host/host-priv.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

static bool
boxed(void)
{
	const char *rt = getenv("SB_TEST_RUNTIME");

	return rt && strcmp(rt, "none") != 0;
}

static bool
gvisor(void)
{
	const char *rt = getenv("SB_TEST_RUNTIME");

	return rt && strcmp(rt, "gvisor") == 0;
}

/* The first process of the session's box; 0: there is none. */
static int
box_pid(struct hostfix *f)
{
	struct sb_buf b;
	char path[400];
	int pid = 0;

	if (!boxed())
		return 0;
	(void)snprintf(path, sizeof path, "%s/box-%s/one/record", f->state_dir,
		getenv("SB_TEST_RUNTIME"));
	if (sb_file_read(AT_FDCWD, path, 1000, &b, NULL) == 0)
		pid = (int)strtol((char *)b.data, NULL, 10);
	sb_buf_free(&b);
	return pid;
}

static void
new_session(struct hostfix *f)
{
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
}

/* Takes a snapshot; whether processes had to stand still for it. */
static bool
snap(struct hostfix *f, const char *name)
{
	struct sb_host_snapshot sn;
	bool live;

	assert_ok(sb_host_snapshot_create(f->h, "one", name, NULL, &sn, &f->err), &f->err);
	live = sn.live;
	sb_host_snapshot_clear(&sn);
	return live;
}

static bool
roll(struct hostfix *f, const char *name)
{
	struct sb_host_rolled r = { 0 };

	const unsigned how = SB_HOST_KILL_TOOLS | (f->zfs ? SB_HOST_DROP_LATER : 0);

	assert_ok(sb_host_session_rollback(f->h, "one", name, how, NULL, &r, &f->err), &f->err);
	return r.restarted;
}

/* The command prints exactly `want` (NULL: anything) and exits with 0. */
static void
says(struct hostfix *f, const char *cmd, const char *want)
{
	char out[4096], *end;

	if (hostfix_bash(f, "one", cmd, out, sizeof out) != 0)
		fail_msg("%s: %s", cmd, out);
	end = strstr(out, "Exit code: ");
	assert_non_null(end);
	*end = '\0';
	if (want)
		assert_string_equal(out, *want ? want : "(no output)\n");
}

static void
launch(struct hostfix *f, const char *script)
{
	const char *args[] = { "-c", script, NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p;

	l.session = "one";
	l.binary = "/bin/sh";
	l.args = args;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	sb_host_process_clear(&p);
}

static size_t
running(struct hostfix *f)
{
	struct sb_host_process *v;
	size_t n, k = 0;

	assert_ok(sb_host_process_list(f->h, "one", &v, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		k += v[i].status == SB_HOST_PROC_RUNNING;
	sb_host_processes_free(v, n);
	return k;
}

/* Between its commands nothing of a box holds the workspace. */
static void
an_idle_box_lets_it_be_exchanged(void **state)
{
	struct hostfix *f = *state;
	int pid;

	new_session(f);
	says(f, "echo 1 >work; cat work", "1\n");
	pid = box_pid(f);
	assert_int_equal(snap(f, "a"), gvisor() && f->o.storage == SB_HOST_OVERLAY);
	says(f, "cat work; mv dir rid; echo 2 >work; cat work rid/deep", "1\n2\ndeep\n");
	assert_false(snap(f, "b") && !gvisor());
	says(f, "rm -r rid work; ls", "hello\nlink\n");
	assert_int_equal(box_pid(f), pid);
	assert_int_equal(roll(f, "a"), gvisor() && !f->zfs);
	if (!gvisor())
		assert_int_equal(box_pid(f), pid);
	says(f, "cat work dir/deep; pwd", boxed() ? "1\ndeep\n/workspace\n" : NULL);
	if (!f->zfs) {
		assert_int_equal(roll(f, "b"), gvisor());
		says(f, "cat work rid/deep", "2\ndeep\n");
	}
	if (!gvisor())
		assert_int_equal(box_pid(f), pid);
	/* The host and the box see the same. */
	assert_true(hostfix_holds(f, "one", "work", f->zfs ? "1\n" : "2\n"));
	hostfix_write(f, "one", "from-host", "x");
	says(f, "cat from-host", "x\n");
}

/* With a process that works there: its files stay its files. */
static void
a_busy_box_goes_on(void **state)
{
	struct hostfix *f = *state;
	int pid;

	new_session(f);
	says(f, ":", "");
	pid = box_pid(f);
	launch(f, "exec >log; i=0; while [ ! -e stop ]; do echo $i; i=$((i+1)); sleep 0.01; done");
	for (int i = 0; i < 1000 && access(hostfix_path(f, "one", "log"), F_OK) < 0; i++)
		(void)usleep(10000);
	for (int i = 0; i < 5; i++) {
		char name[8];

		(void)snprintf(name, sizeof name, "s%d", i);
		assert_int_equal(snap(f, name), f->o.storage == SB_HOST_OVERLAY);
	}
	assert_int_equal(running(f), 1);
	says(f, "a=$(wc -l <log); until [ $(wc -l <log) -gt $a ]; do sleep 0.01; done", "");
	assert_int_equal(box_pid(f), pid);
	assert_int_equal(roll(f, "s1"), gvisor() && !f->zfs);
	assert_int_equal(running(f), 0);
	if (!gvisor())
		assert_int_equal(box_pid(f), pid);
	/* Nobody writes any more, and the box is as good as before. */
	says(f, "a=$(wc -l <log); sleep 0.1; [ $(wc -l <log) = $a ] && touch stop; ls stop",
		"stop\n");
	assert_false(snap(f, "after") && !gvisor());
}

/* A process that hides from its parent, its group and its environment does not get away. */
static void
a_rollback_ends_everything(void **state)
{
	struct hostfix *f = *state;

	new_session(f);
	says(f, "echo 1 >work", "");
	(void)snap(f, "a");
	if (!boxed())
		skip_because("without a box nobody finds what has left its session");
	launch(f, "env -i setsid sh -c 'while :; do echo x >>work; done' & sleep 0.1");
	(void)roll(f, "a");
	says(f, "sleep 0.1", "");
	says(f, "cat work", "1\n");
}

static void
file_tools_see_the_new_workspace(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;

	new_session(f);
	q.session = "one";
	for (int i = 0; i < 3; i++) {
		q.tool = "write_file";
		q.params = "{\"path\":\"made\",\"content\":\"by a tool\"}";
		assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
		assert_false(r.is_error);
		sb_host_tool_result_clear(&r);
		assert_true(hostfix_holds(f, "one", "made", "by a tool"));
		if (i == 0)
			assert_false(snap(f, "with"));
		else
			(void)roll(f, "with");
		q.tool = "read_file";
		q.params = "{\"path\":\"made\"}";
		assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
		assert_false(r.is_error);
		assert_non_null(strstr(r.text, "by a tool"));
		sb_host_tool_result_clear(&r);
	}
}

/* A host that comes later finds the box, with the workspace that was put into it. */
static void
a_restarted_host_goes_on(void **state)
{
	struct hostfix *f = *state;
	int pid;

	new_session(f);
	says(f, "echo 1 >work", "");
	pid = box_pid(f);
	(void)snap(f, "a");
	says(f, "echo 2 >work", "");
	hostfix_reopen(f);
	assert_false(snap(f, "b") && !gvisor());
	(void)roll(f, "a");
	says(f, "cat work", "1\n");
	if (!gvisor())
		assert_int_equal(box_pid(f), pid);
}

/* A paused session is snapshot and stays paused. */
static void
a_paused_session_stays_still(void **state)
{
	struct hostfix *f = *state;
	char path[1024];
	struct sb_buf a, b;

	new_session(f);
	launch(f, "while :; do echo x >>log; sleep 0.01; done");
	for (int i = 0; i < 1000 && access(hostfix_path(f, "one", "log"), F_OK) < 0; i++)
		(void)usleep(10000);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	(void)snap(f, "a");
	(void)snprintf(path, sizeof path, "%s", hostfix_path(f, "one", "log"));
	assert_ok(sb_file_read(AT_FDCWD, path, 1 << 20, &a, &f->err), &f->err);
	(void)usleep(100000);
	assert_ok(sb_file_read(AT_FDCWD, path, 1 << 20, &b, &f->err), &f->err);
	assert_int_equal(a.len, b.len);
	sb_buf_free(&a);
	sb_buf_free(&b);
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(an_idle_box_lets_it_be_exchanged),
		T(a_busy_box_goes_on),
		T(a_rollback_ends_everything),
		T(file_tools_see_the_new_workspace),
		T(a_restarted_host_goes_on),
		T(a_paused_session_stays_still),
	};

	if (!hostfix_has_snapshots()) {
		print_message("1..0 # SKIP needs a storage: tests/e2e/host-*.sh\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
