/* SPDX-License-Identifier: MIT */
/*
 * Tools and processes of a sandbox host: where they run, what ends them, and that nothing of them
 * is left.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

static void
new_session(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

static int
bash(struct hostfix *f, const char *params, struct sb_host_tool_result *out, struct sb_error *err)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;

	q.session = "one";
	q.call_id = "call/1";
	q.tool = "bash";
	q.params = params;
	return sb_host_tool_execute(f->h, &q, NULL, out, err);
}

/* The file is there within ten seconds. */
static void
wait_file(struct hostfix *f, const char *name)
{
	for (int i = 0; i < 1000 && access(hostfix_path(f, "one", name), F_OK) < 0; i++)
		(void)usleep(10000);
	assert_int_equal(access(hostfix_path(f, "one", name), F_OK), 0);
}

static void
bash_works_in_the_workspace(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_result r;

	new_session(f, "one");
	assert_ok(bash(f, "{\"cmd\":\"cat hello; echo x >made; echo oops >&2; exit 3\"}", &r,
			  &f->err),
		&f->err);
	assert_non_null(strstr(r.text, "hello\nSTDERR:\noops\nExit code: 3\nDuration: "));
	assert_int_equal(strlen(r.text), r.text_len);
	assert_true(r.has_exit && r.is_error);
	assert_int_equal(r.exit_code, 3);
	assert_int_equal(r.tier, f->o.runtime == SB_HOST_RUNTIME_NONE ? 1 : 2);
	sb_host_tool_result_clear(&r);
	assert_true(hostfix_holds(f, "one", "made", "x\n"));
	assert_ok(bash(f, "{\"command\":\"true\"}", &r, &f->err), &f->err);
	assert_int_equal(strncmp(r.text, "(no output)\n", 12), 0);
	assert_false(r.is_error);
	sb_host_tool_result_clear(&r);
	assert_ok(bash(f, "{\"cmd\":\"kill -9 $$\"}", &r, &f->err), &f->err);
	assert_int_equal(r.exit_code, 128 + SIGKILL);
	sb_host_tool_result_clear(&r);
}

static void
the_environment_is_clean(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_result r;

	assert_int_equal(setenv("SB_SECRET", "s3cret", 1), 0);
	new_session(f, "one");
	assert_ok(bash(f, "{\"cmd\":\"env; ls -l /proc/self/fd | wc -l\"}", &r, &f->err), &f->err);
	assert_null(strstr(r.text, "s3cret"));
	sb_host_tool_result_clear(&r);
}

static void
bad_calls_are_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;

	new_session(f, "one");
	assert_fails(bash(f, "{}", &r, &f->err), SB_E_INVAL, &f->err);
	assert_string_equal(f->err.msg, "bash cmd is required");
	assert_fails(bash(f, "[]", &r, &f->err), SB_E_INVAL, &f->err);
	assert_fails(bash(f, "{\"cmd\":", &r, &f->err), SB_E_INVAL, &f->err);
	assert_fails(bash(f, "{\"cmd\":7}", &r, &f->err), SB_E_INVAL, &f->err);
	assert_fails(bash(f, "{\"cmd\":\"true\",\"timeout_ms\":-1}", &r, &f->err), SB_E_INVAL,
		&f->err);
	{
		/* More than a command line holds. */
		size_t n = 300000;
		char *big = malloc(n + 100);

		assert_non_null(big);
		(void)snprintf(big, n + 100, "{\"cmd\":\"%0*d\"}", (int)n, 0);
		/* gVisor's own kernel takes longer ones. */
		if (f->o.runtime != SB_HOST_RUNTIME_GVISOR)
			assert_fails(bash(f, big, &r, &f->err), SB_E_INVAL, &f->err);
		free(big);
	}
	q.session = "one";
	q.tool = "no_such_tool";
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_TOOL_UNKNOWN, &f->err);
	q.tool = "bash";
	q.session = "two";
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	q.session = "a/../b";
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_INVAL, &f->err);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_fails(bash(f, "{\"cmd\":\"true\"}", &r, &f->err), SB_E_SESSION_PAUSED, &f->err);
}

/* A deadline ends the tree, also a child that ignores signals and holds the pipes. */
static void
a_timeout_ends_everything(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_result r;
	int64_t start = sb_now_ms();

	new_session(f, "one");
	assert_ok(bash(f,
			  "{\"cmd\":\"(trap '' TERM; setsid sleep 300) & echo started; sleep "
			  "300\",\"timeout_ms\":500}",
			  &r, &f->err),
		&f->err);
	assert_true(r.timed_out && r.is_error);
	assert_int_equal(r.exit_code, 124);
	assert_non_null(strstr(r.text, "started\n(timed out)\n"));
	assert_true(sb_now_ms() - start < 60000);
	sb_host_tool_result_clear(&r);
}

static void
long_output_is_cut_and_said_so(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_result r;

	new_session(f, "one");
	assert_ok(bash(f, "{\"cmd\":\"head -c 3000000 /dev/zero | tr '\\\\0' x\"}", &r, &f->err),
		&f->err);
	assert_true(r.truncated);
	assert_true(r.text_len < 300000);
	assert_int_equal(r.exit_code, 0);
	sb_host_tool_result_clear(&r);
}

struct heard {
	size_t n[2];
};

static void
hear(const void *data, size_t len, bool is_stderr, void *arg)
{
	struct heard *h = arg;

	(void)data;
	h->n[is_stderr] += len;
}

static void
progress_is_told(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;
	struct heard h = { 0 };

	new_session(f, "one");
	q.session = "one";
	q.tool = "bash";
	q.params = "{\"cmd\":\"echo 12345; echo 123 >&2\"}";
	q.progress = hear;
	q.arg = &h;
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_int_equal(h.n[0], 6);
	assert_int_equal(h.n[1], 4);
	sb_host_tool_result_clear(&r);
}

struct running {
	struct hostfix *f;
	const char *params;
	struct sb_host_tool_result r;
	struct sb_error err;
	int res;
};

static void *
tool_thread(void *arg)
{
	struct running *t = arg;

	t->res = bash(t->f, t->params, &t->r, &t->err);
	return NULL;
}

/*
 * Pause stops admission at once and waits for what runs; past its time it gives up and all goes on.
 */
static void
pause_drains(void **state)
{
	struct hostfix *f = *state;
	struct running t = { .f = f,
		.params = "{\"cmd\":\"touch in; while [ ! -e go ]; do sleep 0.01; done\"}" };
	struct sb_host_health he;
	pthread_t th;

	sb_host_close(f->h);
	f->o.drain_timeout_ms = 200;
	hostfix_open(f);
	new_session(f, "one");
	assert_int_equal(pthread_create(&th, NULL, tool_thread, &t), 0);
	wait_file(f, "in");
	sb_host_health(f->h, NULL, &he);
	assert_true(he.active_tools == 1 && he.uptime_ms >= 0 && he.uptime_ms < 3600000);
	assert_fails(sb_host_session_pause(f->h, "one", NULL, &f->err), SB_E_TOOLS_IN_FLIGHT,
		&f->err);
	assert_string_equal(f->err.msg,
		"sandbox: tools in flight: timed out waiting for 1 in-flight tools");
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
	if (f->snaps) {
		struct sb_host_snapshot sn;

		assert_ok(sb_host_snapshot_create(f->h, "one", "s", NULL, &sn, &f->err), &f->err);
		sb_host_snapshot_clear(&sn);
		assert_fails(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err),
			SB_E_TOOLS_IN_FLIGHT, &f->err);
		assert_fails(sb_host_session_rollback(f->h, "one", "s", false, NULL, NULL, &f->err),
			SB_E_TOOLS_IN_FLIGHT, &f->err);
	}
	hostfix_write(f, "one", "go", "");
	assert_int_equal(pthread_join(th, NULL), 0);
	assert_int_equal(t.res, 0);
	sb_host_tool_result_clear(&t.r);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
}

/* A destroy does not wait for ever for a tool. */
static void
destroy_kills_tools(void **state)
{
	struct hostfix *f = *state;
	struct running t = { .f = f, .params = "{\"cmd\":\"touch in; sleep 300\"}" };
	pthread_t th;

	sb_host_close(f->h);
	f->o.drain_timeout_ms = 100;
	hostfix_open(f);
	new_session(f, "one");
	assert_int_equal(pthread_create(&th, NULL, tool_thread, &t), 0);
	wait_file(f, "in");
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_int_equal(pthread_join(th, NULL), 0);
	assert_int_equal(t.res, SB_E_SESSION_DESTROYING);
	assert_int_equal(hostfix_storage_count(f), 0);
}

static void
need_snapshots(const struct hostfix *f)
{
	if (!f->snaps)
		skip_because("the storage that this runs on has no snapshots");
}

static void
rollback_kills_what_runs(void **state)
{
	struct hostfix *f = *state;
	struct running t = { .f = f, .params = "{\"cmd\":\"touch in; sleep 300\"}" };
	struct sb_host_snapshot sn;
	pthread_t th;

	need_snapshots(f);
	new_session(f, "one");
	assert_ok(sb_host_snapshot_create(f->h, "one", "s", NULL, &sn, &f->err), &f->err);
	sb_host_snapshot_clear(&sn);
	assert_int_equal(pthread_create(&th, NULL, tool_thread, &t), 0);
	wait_file(f, "in");
	assert_ok(sb_host_session_rollback(f->h, "one", "s", true, NULL, NULL, &f->err), &f->err);
	assert_int_equal(pthread_join(th, NULL), 0);
	assert_true(t.res == SB_E_ROLLBACK_IN_PROGRESS || t.res == SB_E_CANCELED);
	assert_true(hostfix_holds(f, "one", "in", NULL));
}

static void
a_tool_call_leaves_a_snapshot(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_result r;
	struct sb_host_snapshot *v;
	size_t n;

	need_snapshots(f);
	sb_host_close(f->h);
	f->o.per_tool_snapshots = true;
	f->o.keep_tool = 2;
	hostfix_open(f);
	new_session(f, "one");
	for (int i = 0; i < 3; i++) {
		assert_ok(bash(f, "{\"cmd\":\"echo >>x\"}", &r, &f->err), &f->err);
		assert_int_equal(strncmp(r.snapshot, "tool-call_1-2", 13), 0);
		assert_string_equal(r.snapshot_error, "");
		sb_host_tool_result_clear(&r);
	}
	assert_ok(sb_host_snapshot_list(f->h, "one", NULL, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 2);
	assert_int_equal(v[0].kind, SB_HOST_SNAP_TOOL);
	sb_host_snapshots_free(v, n);
}

static void
canceled_calls_end(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_cancel *c = sb_cancel_new(&f->err);
	struct sb_host_call call = { .cancel = c, .deadline = SB_NEVER };
	struct sb_host_tool_result r;

	new_session(f, "one");
	sb_cancel_request(c);
	q.session = "one";
	q.tool = "bash";
	q.params = "{\"cmd\":\"sleep 300\"}";
	assert_fails(sb_host_tool_execute(f->h, &q, &call, &r, &f->err), SB_E_CANCELED, &f->err);
	call = (struct sb_host_call){ .deadline = sb_deadline_in(50) };
	assert_fails(sb_host_tool_execute(f->h, &q, &call, &r, &f->err), SB_E_TIMEOUT, &f->err);
	sb_cancel_free(c);
}

static void
launch(struct hostfix *f, const char *script, struct sb_host_process *out)
{
	const char *args[] = { "-c", script, NULL };
	const char *env[] = { "GREETING=hi", NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;

	l.session = "one";
	l.binary = "sh";
	l.args = args;
	l.env = env;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, out, &f->err), &f->err);
	assert_int_not_equal(out->status, SB_HOST_PROC_STARTING);
}

/* Waits for its end. */
static struct sb_host_process
finished(struct hostfix *f, const char *id)
{
	struct sb_host_process p = { 0 };

	for (int i = 0; i < 1000; i++) {
		assert_ok(sb_host_process_get(f->h, "one", id, &p, &f->err), &f->err);
		sb_host_process_clear(
			&(struct sb_host_process){ .binary = p.binary, .address = p.address });
		p.binary = p.address = NULL;
		if (p.status == SB_HOST_PROC_EXITED)
			return p;
		(void)usleep(10000);
	}
	fail_msg("process %s does not end", id);
	return p;
}

static void
processes_run_and_are_known(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p, *v, e;
	char buf[200];
	uint64_t off = 0;
	size_t n;
	int64_t got;

	new_session(f, "one");
	launch(f, "echo $GREETING $PWD; echo bad >&2; exit 7", &p);
	assert_string_equal(p.id, "proc-one-1");
	e = finished(f, p.id);
	assert_true(e.has_exit);
	assert_int_equal(e.exit_code, 7);
	got = sb_host_process_logs(f->h, "one", p.id, 0, &off, buf, sizeof buf - 1, true, NULL,
		&f->err);
	assert_true(got > 3);
	buf[got] = '\0';
	assert_int_equal(strncmp(buf, "hi /", 4), 0);
	assert_int_equal(sb_host_process_logs(f->h, "one", p.id, 0, &off, buf, sizeof buf, true,
				 NULL, &f->err),
		0);
	off = 0;
	assert_int_equal(sb_host_process_logs(f->h, "one", p.id, 1, &off, buf, sizeof buf, false,
				 NULL, &f->err),
		4);
	assert_memory_equal(buf, "bad\n", 4);
	sb_host_process_clear(&p);
	launch(f, "sleep 300 & wait", &p);
	assert_ok(sb_host_process_list(f->h, "one", &v, &n, &f->err), &f->err);
	assert_int_equal(n, 2);
	sb_host_processes_free(v, n);
	assert_ok(sb_host_process_kill(f->h, "one", p.id, 0, &f->err), &f->err);
	e = finished(f, p.id);
	assert_int_equal(e.exit_code, 128 + SIGTERM);
	assert_ok(sb_host_process_kill(f->h, "one", p.id, SIGKILL, &f->err), &f->err);
	assert_fails(sb_host_process_kill(f->h, "one", "proc-x", 0, &f->err),
		SB_E_PROCESS_NOT_FOUND, &f->err);
	assert_fails(sb_host_process_kill(f->h, "one", p.id, 9999, &f->err), SB_E_INVAL, &f->err);
	sb_host_process_clear(&p);
}

static void
bad_launches_are_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	const char *env[] = { "=x", NULL };
	struct sb_host_process p, *v;
	size_t n;

	new_session(f, "one");
	l.session = "one";
	assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), SB_E_INVAL, &f->err);
	assert_string_equal(f->err.msg, "binary is required");
	l.binary = "no-such-program";
	assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), SB_E_NOTFOUND, &f->err);
	l.binary = "true";
	l.expose_port = 70000;
	assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), SB_E_INVAL, &f->err);
	l.expose_port = 0;
	l.env = env;
	assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), SB_E_INVAL, &f->err);
	l.env = NULL;
	l.session = "two";
	assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_ok(sb_host_process_list(f->h, "one", &v, &n, &f->err), &f->err);
	assert_int_equal(n, 0);
	sb_host_processes_free(v, n);
}

static char
proc_state(int64_t pid)
{
	char path[64], line[300] = "";
	const char *p;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	f = fopen(path, "re");
	if (!f)
		return '-';
	p = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	(void)fclose(f);
	return p ? p[2] : '-';
}

static void
pause_freezes_processes(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p;

	if (f->o.runtime != SB_HOST_RUNTIME_NONE)
		skip_because("how the others freeze is in test-runtime");
	new_session(f, "one");
	/* One that starts no others: a shell stopped inside vfork shows as 'D', not 'T'. */
	launch(f, "exec sleep 1000", &p);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	for (int i = 0; i < 500 && proc_state(p.pid) != 'T'; i++)
		(void)usleep(10000);
	assert_int_equal(proc_state(p.pid), 'T');
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	for (int i = 0; i < 500 && proc_state(p.pid) == 'T'; i++)
		(void)usleep(10000);
	assert_int_not_equal(proc_state(p.pid), 'T');
	/* Frozen ones can be destroyed all the same. */
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_true(proc_state(p.pid) == '-' || proc_state(p.pid) == 'Z');
	sb_host_process_clear(&p);
}

static void
processes_outlive_the_host(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p, q;
	uint64_t off = 0;
	char buf[64];

	new_session(f, "one");
	launch(f, "echo up; while [ ! -e go ]; do sleep 0.01; done; echo done; exit 5", &p);
	hostfix_reopen(f);
	assert_ok(sb_host_process_get(f->h, "one", p.id, &q, &f->err), &f->err);
	assert_int_equal(q.status, SB_HOST_PROC_RUNNING);
	assert_int_equal(q.pid, p.pid);
	sb_host_process_clear(&q);
	hostfix_write(f, "one", "go", "");
	q = finished(f, p.id);
	while (off < 8)
		assert_true(sb_host_process_logs(f->h, "one", p.id, 0, &off, buf, sizeof buf, true,
				    NULL, &f->err) > 0);
	assert_int_equal(off, 8);
	hostfix_reopen(f);
	q = finished(f, p.id);
	assert_int_equal(q.status, SB_HOST_PROC_EXITED);
	sb_host_process_clear(&p);
}

/* Processes whose working directory is the session's. */
static unsigned
living_in(const char *dir)
{
	char path[300], cwd[1024];
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir("/proc");

	assert_non_null(d);
	while ((e = readdir(d))) {
		ssize_t len;

		(void)snprintf(path, sizeof path, "/proc/%s/cwd", e->d_name);
		len = readlink(path, cwd, sizeof cwd - 1);
		if (len > 0) {
			cwd[len] = '\0';
			n += strcmp(cwd, dir) == 0;
		}
	}
	(void)closedir(d);
	return n;
}

/* Children that are being born while the signal is sent get it as well. */
static void
a_kill_leaves_nothing(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p;
	char dir[1024];

	new_session(f, "one");
	(void)snprintf(dir, sizeof dir, "%s", hostfix_path(f, "one", ""));
	dir[strlen(dir) - 1] = '\0';
	for (int i = 0; i < 15; i++) {
		launch(f, "sleep 300 & sleep 300 & wait", &p);
		assert_ok(sb_host_process_kill(f->h, "one", p.id, SIGTERM, &f->err), &f->err);
		assert_int_equal(finished(f, p.id).exit_code, 128 + SIGTERM);
		sb_host_process_clear(&p);
	}
	for (int i = 0; i < 500 && living_in(dir) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(living_in(dir), 0);
}

/*
 * When the helper that waits for a process is killed alone, the process is not said to have ended
 * before all of it has.
 */
static void
nothing_outlives_its_record(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p;
	char dir[1024];

	if (f->o.runtime != SB_HOST_RUNTIME_NONE)
		skip_because("in the others the sandbox ends what is in it");
	new_session(f, "one");
	(void)snprintf(dir, sizeof dir, "%s", hostfix_path(f, "one", ""));
	dir[strlen(dir) - 1] = '\0';
	for (int i = 0; i < 10; i++) {
		launch(f, "sleep 300 & sleep 300 & wait", &p);
		for (int j = 0; j < 500 && living_in(dir) < 4; j++)
			(void)usleep(10000);
		assert_int_equal(kill((pid_t)p.pid, SIGKILL), 0);
		assert_int_equal(finished(f, p.id).exit_code, 128 + SIGKILL);
		/* Killed; some milliseconds may pass until each is gone. */
		for (int j = 0; j < 100 && living_in(dir) > 0; j++)
			(void)usleep(10000);
		assert_int_equal(living_in(dir), 0);
		sb_host_process_clear(&p);
	}
}

/* A socket that listens at the loopback address; its port. */
static int
listener(unsigned *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	assert_true(fd >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

/* This program as a server: gives back what it is sent until the client's end, then says so. */
static int
echo_server(unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 5) < 0)
		return 1;
	for (;;) {
		int c = accept(fd, NULL, NULL);
		char buf[4096];
		ssize_t n;

		while ((n = read(c, buf, sizeof buf)) > 0)
			if (write(c, buf, (size_t)n) != n)
				break;
		(void)!write(c, "end\n", 4);
		(void)close(c);
	}
}

/*
 * Connects to "127.0.0.1:PORT", sends `text` and its end, gives what comes back; NULL: no
 * connection.
 */
static const char *
talk(const char *address, const char *text, char *buf, size_t size)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t got = 0;
	ssize_t n;

	a.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		(void)close(fd);
		return NULL;
	}
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += (size_t)n;
	buf[got] = '\0';
	(void)close(fd);
	return buf;
}

static void
serve_in(struct hostfix *f, unsigned port, struct sb_host_process *out)
{
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	char self[1024], number[16];
	const char *args[] = { "echo-server", number, NULL };
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	assert_true(n > 0);
	self[n] = '\0';
	(void)snprintf(number, sizeof number, "%u", port);
	l.session = "one";
	l.binary = self;
	l.args = args;
	l.expose_port = (int)port;
	l.ready_timeout_ms = 20000;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, out, &f->err), &f->err);
}

static void
a_port_is_reached_at_its_address(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p, q;
	char buf[200];
	unsigned port;

	if (f->o.runtime != SB_HOST_RUNTIME_NONE)
		skip_because("this program is not in the sandbox; see test-runtime");
	new_session(f, "one");
	(void)close(listener(&port));
	serve_in(f, port, &p);
	assert_int_equal(p.status, SB_HOST_PROC_RUNNING);
	assert_int_equal(p.port, port);
	assert_int_equal(strncmp(p.address, "127.0.0.1:", 10), 0);
	/* The answer comes after the client has ended its direction. */
	assert_string_equal(talk(p.address, "hello", buf, sizeof buf), "helloend\n");
	/* A new host finds it again, at the same address. */
	hostfix_reopen(f);
	assert_ok(sb_host_process_get(f->h, "one", p.id, &q, &f->err), &f->err);
	assert_string_equal(q.address, p.address);
	assert_string_equal(talk(q.address, "again", buf, sizeof buf), "againend\n");
	sb_host_process_clear(&q);
	assert_ok(sb_host_process_kill(f->h, "one", p.id, SIGKILL, &f->err), &f->err);
	(void)finished(f, p.id);
	for (int i = 0; i < 500 && talk(p.address, "x", buf, sizeof buf); i++)
		(void)usleep(10000);
	assert_null(talk(p.address, "x", buf, sizeof buf));
	sb_host_process_clear(&p);
}

/* Somebody else listens under the number: nothing is handed to them. */
static void
a_foreign_port_is_not_exposed(void **state)
{
	struct hostfix *f = *state;
	const char *args[] = { "300", NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p;
	char buf[200];
	unsigned port;
	int fd = listener(&port);

	new_session(f, "one");
	l.session = "one";
	l.binary = "sleep";
	l.args = args;
	l.expose_port = (int)port;
	l.ready_timeout_ms = 300;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	assert_int_equal(p.status, SB_HOST_PROC_STARTING);
	assert_string_equal(talk(p.address, "secret", buf, sizeof buf), "");
	/* Not even a connection arrived. */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(accept(fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	(void)close(fd);
	sb_host_process_clear(&p);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
}

static int
run_all(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(bash_works_in_the_workspace),
		T(the_environment_is_clean),
		T(bad_calls_are_refused),
		T(a_timeout_ends_everything),
		T(long_output_is_cut_and_said_so),
		T(progress_is_told),
		T(pause_drains),
		T(destroy_kills_tools),
		T(rollback_kills_what_runs),
		T(a_tool_call_leaves_a_snapshot),
		T(canceled_calls_end),
		T(processes_run_and_are_known),
		T(a_kill_leaves_nothing),
		T(nothing_outlives_its_record),
		T(a_port_is_reached_at_its_address),
		T(a_foreign_port_is_not_exposed),
		T(bad_launches_are_refused),
		T(pause_freezes_processes),
		T(processes_outlive_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "echo-server") == 0)
		return echo_server((unsigned)strtoul(argv[2], NULL, 10));
	return run_all();
}
