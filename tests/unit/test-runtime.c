/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox must do in each runtime; what it must not let out is in test-runtime-escape.c.
 * Compiled once a runtime, see runtime.mk.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/path.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#ifndef TEST_RUNTIME
#define TEST_RUNTIME "none"
#endif

static bool works;
static char reason[300];

static int
setup(void **state)
{
	assert_int_equal(setenv("SB_TEST_RUNTIME", works ? TEST_RUNTIME : "none", 1), 0);
	return hostfix_setup(state);
}

/* Is the runtime there at all? Asked once. */
static int
probe(void **state)
{
	struct hostfix f = { 0 };

	(void)state;
	assert_int_equal(setenv("SB_TEST_RUNTIME", TEST_RUNTIME, 1), 0);
	hostfix_prepare(&f);
	f.h = sb_host_open(&f.o, &f.err);
	works = f.h != NULL;
	if (!works)
		(void)snprintf(reason, sizeof reason, "%.290s", f.err.msg);
	sb_host_close(f.h);
	tmpdir_remove(&f.t);
	return 0;
}

#define NEED_RUNTIME(f) \
	do { \
		(void)(f); \
		if (!works) \
			skip_because("%s", reason); \
	} while (0)

static bool
isolates(const struct hostfix *f)
{
	return f->o.runtime != SB_HOST_RUNTIME_NONE;
}

static void
new_session(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

static struct sb_host_process
launch(struct hostfix *f, const char *session, const char *cmd)
{
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	const char *args[] = { "-c", cmd, NULL };
	struct sb_host_process p;

	l.session = session;
	l.binary = "/bin/sh";
	l.args = args;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	sb_host_process_clear(
		&(struct sb_host_process){ .binary = p.binary, .address = p.address });
	p.binary = p.address = NULL;
	return p;
}

static void
wait_file(struct hostfix *f, const char *name)
{
	for (int i = 0; i < 1500 && access(hostfix_path(f, "one", name), F_OK) < 0; i++)
		(void)usleep(10000);
	assert_int_equal(access(hostfix_path(f, "one", name), F_OK), 0);
}

static off_t
size_of(struct hostfix *f, const char *name)
{
	struct stat st;

	return stat(hostfix_path(f, "one", name), &st) == 0 ? st.st_size : -1;
}

static void
commands_share_one_sandbox(void **state)
{
	struct hostfix *f = *state;
	char out[2000];

	NEED_RUNTIME(f);
	new_session(f, "one");
	assert_int_equal(hostfix_bash(f, "one",
				 "cat hello; echo here >/tmp/note-" TEST_RUNTIME
				 "; pwd; echo made >made",
				 out, sizeof out),
		0);
	assert_non_null(strstr(out, "hello\n"));
	if (isolates(f)) {
		assert_non_null(strstr(out, "/workspace\n"));
		assert_int_equal(
			hostfix_bash(f, "one",
				"cat /tmp/note-*; test $HOME = /home/sandbox && touch $HOME/x", out,
				sizeof out),
			0);
		assert_non_null(strstr(out, "here\n"));
		assert_int_not_equal(access("/tmp/note-" TEST_RUNTIME, F_OK), 0);
	}
	assert_true(hostfix_holds(f, "one", "made", "made\n"));
	(void)unlink("/tmp/note-" TEST_RUNTIME);
}

static void
what_a_tool_leaves_is_ended(void **state)
{
	struct hostfix *f = *state;
	off_t before;

	NEED_RUNTIME(f);
	new_session(f, "one");
	assert_int_equal(hostfix_bash(f, "one",
				 "(trap '' TERM HUP; while :; do echo x >>grows; sleep 0.02; done) "
				 ">/dev/null 2>&1 </dev/null & "
				 "while [ ! -s grows ]; do sleep 0.01; done",
				 NULL, 0),
		0);
	before = size_of(f, "grows");
	(void)usleep(200000);
	assert_int_equal(size_of(f, "grows"), before);
}

/* It does not move while paused: not by being asked, but because the kernel does not run it. */
static void
pause_freezes(void **state)
{
	struct hostfix *f = *state;
	off_t before;

	NEED_RUNTIME(f);
	new_session(f, "one");
	(void)launch(f, "one", "trap '' TSTP CONT; while :; do echo x >>grows; sleep 0.02; done");
	wait_file(f, "grows");
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	before = size_of(f, "grows");
	(void)usleep(300000);
	assert_int_equal(size_of(f, "grows"), before);
	/* Frozen across a restart of the host, too. */
	hostfix_reopen(f);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_PAUSED);
	before = size_of(f, "grows");
	(void)usleep(100000);
	assert_int_equal(size_of(f, "grows"), before);
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	for (int i = 0; i < 1000 && size_of(f, "grows") == before; i++)
		(void)usleep(10000);
	assert_true(size_of(f, "grows") > before);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
}

static void
the_sandbox_is_found_after_a_restart(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p, q;
	char out[2000];

	NEED_RUNTIME(f);
	if (!isolates(f))
		skip_because("there is no sandbox in runtime none");
	new_session(f, "one");
	assert_int_equal(hostfix_bash(f, "one", "echo kept >/tmp/kept", NULL, 0), 0);
	p = launch(f, "one", "while [ ! -e go ]; do sleep 0.02; done; exit 9");
	hostfix_reopen(f);
	assert_int_equal(hostfix_bash(f, "one", "cat /tmp/kept; touch go", out, sizeof out), 0);
	assert_non_null(strstr(out, "kept\n"));
	for (int i = 0; i < 1000; i++) {
		assert_ok(sb_host_process_get(f->h, "one", p.id, &q, &f->err), &f->err);
		sb_host_process_clear(
			&(struct sb_host_process){ .binary = q.binary, .address = q.address });
		if (q.status == SB_HOST_PROC_EXITED)
			break;
		(void)usleep(10000);
	}
	assert_int_equal(q.status, SB_HOST_PROC_EXITED);
}

/* How many processes of the machine have `text` in their command line or environment. */
static size_t
processes_with(const char *text)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		static const char *const files[] = { "cmdline", "environ" };

		for (int i = 0; i < 2 && e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			strtol(e->d_name, NULL, 10) != getpid();
			i++) {
			char path[300], buf[16384];
			int fd;
			ssize_t got;

			(void)snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, files[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			got = fd >= 0 ? read(fd, buf, sizeof buf) : -1;
			if (fd >= 0)
				(void)close(fd);
			if (got > 0 && memmem(buf, (size_t)got, text, strlen(text))) {
				n++;
				break;
			}
		}
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* Processes end a moment after they were killed. */
static void
assert_gone(struct hostfix *f)
{
	for (int i = 0; i < 500 && processes_with(f->t.path) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(processes_with(f->t.path), 0);
}

static void
destroy_leaves_nothing(void **state)
{
	struct hostfix *f = *state;

	NEED_RUNTIME(f);
	new_session(f, "one");
	(void)launch(f, "one", "env -i setsid sleep 1000 & env -i sleep 1000");
	assert_int_equal(hostfix_bash(f, "one", "true", NULL, 0), 0);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_gone(f);
}

/* A program that is not there, or is none, is the same error in every runtime, and no process. */
static void
a_missing_program_is_told_at_once(void **state)
{
	static const struct {
		const char *binary;
		int code;
		const char *msg;
	} bad[] = {
		{ "no-such-program", SB_E_NOTFOUND,
			"launch process: no-such-program: no such program" },
		{ "/no/such/program", SB_E_NOTFOUND,
			"launch process: /no/such/program: no such program" },
		{ "./hello", SB_E_DENIED, "launch process: ./hello cannot be executed" },
	};
	struct hostfix *f = *state;
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p, *v;
	struct sb_host_session s;
	size_t n;

	hostfix_create(f, "missing", &s);
	sb_host_session_clear(&s);
	l.session = "missing";
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		l.binary = bad[i].binary;
		assert_fails(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), bad[i].code,
			&f->err);
		assert_string_equal(f->err.msg, bad[i].msg);
	}
	assert_ok(sb_host_process_list(f->h, "missing", &v, &n, &f->err), &f->err);
	assert_int_equal(n, 0);
	sb_host_processes_free(v, n);
}

/* A sandbox whose session the database does not know any more goes when the host starts. */
static void
orphans_are_collected(void **state)
{
	struct hostfix *f = *state;
	char path[400];

	NEED_RUNTIME(f);
	if (!isolates(f))
		skip_because("there is no sandbox in runtime none");
	new_session(f, "one");
	assert_int_equal(hostfix_bash(f, "one", "true", NULL, 0), 0);
	sb_host_close(f->h);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof path, "%s/host.db%s", f->state_dir,
			((const char *[]){ "", "-wal", "-shm" })[i]);
		(void)unlink(path);
	}
	f->o.orphans = SB_HOST_ORPHANS_REPORT;
	hostfix_open(f);
	assert_gone(f);
}

static int
connect_to(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

/*
 * Two sessions use the same port; each is reached at its own address, and neither sees the other's.
 */
static void
ports_are_the_sessions_own(void **state)
{
	struct hostfix *f = *state;
	static const char *const ids[] = { "one", "two" };
	struct sb_host_process p[2];
	char out[2000];

	NEED_RUNTIME(f);
	if (!isolates(f))
		skip_because("sessions of runtime none share the host's network");
	if (access("/usr/bin/python3", X_OK) < 0)
		skip_because("python3 is not installed");
	for (int i = 0; i < 2; i++) {
		struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
		char code[400];
		const char *args[] = { "-c", code, NULL };

		new_session(f, ids[i]);
		(void)snprintf(code, sizeof code,
			"import socket\ns=socket.socket();s.bind(('127.0.0.1',7777));s.listen(5)\n"
			"while True:\n c,_=s.accept();c.sendall(b'%s '+c.recv(100));c.close()\n",
			ids[i]);
		l.session = ids[i];
		l.binary = "/usr/bin/python3";
		l.args = args;
		l.expose_port = 7777;
		assert_ok(sb_host_process_launch(f->h, &l, NULL, &p[i], &f->err), &f->err);
	}
	for (int i = 0; i < 2; i++) {
		struct sb_host_process q = { 0 };
		char buf[100] = "", want[100];
		int fd;

		for (int k = 0; k < 600; k++) {
			sb_host_process_clear(&q);
			assert_ok(sb_host_process_get(f->h, ids[i], p[i].id, &q, &f->err), &f->err);
			if (q.status == SB_HOST_PROC_RUNNING)
				break;
			(void)usleep(50000);
		}
		assert_int_equal(q.status, SB_HOST_PROC_RUNNING);
		fd = connect_to(q.address);
		assert_int_equal(write(fd, "ping", 4), 4);
		(void)sb_file_read_full(fd, buf, sizeof buf - 1, &f->err);
		(void)snprintf(want, sizeof want, "%s ping", ids[i]);
		assert_string_equal(buf, want);
		(void)close(fd);
		sb_host_process_clear(&q);
		sb_host_process_clear(&p[i]);
	}
	new_session(f, "three");
	assert_int_not_equal(
		hostfix_bash(f, "three", "exec 3<>/dev/tcp/127.0.0.1/7777", out, sizeof out), 0);
}

static void
limits_end_the_greedy(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;

	NEED_RUNTIME(f);
	new_session(f, "one");
	q.session = "one";
	q.tool = "bash";
	q.params = "{\"cmd\":\"head -c 600000000 /dev/zero | tail -n 1 | wc -c; exit "
		   "${PIPESTATUS[1]}\"}";
	q.res.mem_mb = 200;
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_true(r.is_error);
	assert_int_not_equal(r.exit_code, 0);
	sb_host_tool_result_clear(&r);
	assert_int_equal(hostfix_bash(f, "one", "true", NULL, 0), 0);
}

static void
capabilities_tell_the_truth(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_capabilities c;
	struct sb_host_session s;

	NEED_RUNTIME(f);
	sb_host_capabilities(f->h, &c);
	assert_string_equal(c.runtime, TEST_RUNTIME);
	assert_int_equal(c.isolation, isolates(f));
	assert_int_equal(c.network_policy, isolates(f));
	assert_int_equal(c.tier_routing, isolates(f));
	assert_int_equal(strcmp(c.isolation_level, "none") == 0, !isolates(f));
	assert_int_equal(c.snapshots, f->snaps);
	o.base = f->base;
	o.network = SB_HOST_NET_NONE;
	o.id = "quiet";
	if (isolates(f)) {
		assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
		assert_int_equal(s.network, SB_HOST_NET_NONE);
		assert_int_equal(s.runtime, f->o.runtime);
		sb_host_session_clear(&s);
		o.id = "loud";
		o.network = SB_HOST_NET_HOST;
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_DENIED,
			&f->err);
		o.network = SB_HOST_NET_SANDBOX;
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_UNSUPPORTED,
			&f->err);
		o.network = SB_HOST_NET_DEFAULT;
		o.runtime = SB_HOST_RUNTIME_NONE;
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_DENIED,
			&f->err);
	} else {
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_UNSUPPORTED,
			&f->err);
		assert_string_equal(f->err.msg, "network none: runtime none cannot enforce it");
		o.network = SB_HOST_NET_HOST;
		assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
		sb_host_session_clear(&s);
	}
}

/* A session may ask for a stronger runtime than its host's, and keeps it over a restart. */
static void
a_session_chooses_its_runtime(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	char out[1000];

	NEED_RUNTIME(f);
	if (!isolates(f))
		skip_because("runtime none is what it starts from");
	sb_host_close(f->h);
	o.runtime = f->o.runtime;
	f->o.runtime = SB_HOST_RUNTIME_NONE;
	hostfix_open(f);
	o.id = "one";
	o.base = f->base;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	hostfix_reopen(f);
	assert_ok(sb_host_session_get(f->h, "one", false, &s, &f->err), &f->err);
	assert_int_equal(s.runtime, o.runtime);
	sb_host_session_clear(&s);
	assert_int_equal(hostfix_bash(f, "one", "pwd", out, sizeof out), 0);
	assert_non_null(strstr(out, "/workspace\n"));
	/* So that the teardown ends its sandbox. */
	f->o.runtime = o.runtime;
}

/* Its status once it has ended. */
static struct sb_host_process
await_end(struct hostfix *f, const char *process)
{
	struct sb_host_process q;

	for (int i = 0; i < 1500; i++) {
		assert_ok(sb_host_process_get(f->h, "one", process, &q, &f->err), &f->err);
		sb_host_process_clear(
			&(struct sb_host_process){ .binary = q.binary, .address = q.address });
		if (q.status == SB_HOST_PROC_EXITED)
			return q;
		(void)usleep(10000);
	}
	fail_msg("process %s does not end", process);
	return q;
}

static void
assert_code(struct hostfix *f, const char *process, int code)
{
	struct sb_host_process q = await_end(f, process);

	if (!q.has_exit || q.exit_code != code)
		fail_msg("process %s: exit %d (%s), want %d", process, q.exit_code,
			q.has_exit ? "known" : "unknown", code);
}

static void
exit_codes_survive_a_restart(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process before, after, term, kill9;
	char go[1024], pid[1024];

	NEED_RUNTIME(f);
	new_session(f, "one");
	assert_code(f, launch(f, "one", "exit 3").id, 3);
	before = launch(f, "one", "while [ ! -e go ]; do sleep 0.02; done; touch went; exit 9");
	term = launch(f, "one", "while [ ! -e go ]; do sleep 0.02; done; kill -TERM $$; sleep 60");
	after = launch(f, "one", "while [ ! -e go-on ]; do sleep 0.02; done; exit 11");
	kill9 = launch(f, "one", "touch sleeps; exec sleep 600");
	wait_file(f, "sleeps");
	(void)snprintf(go, sizeof go, "%s", hostfix_path(f, "one", "go"));
	(void)snprintf(pid, sizeof pid, "%s", hostfix_path(f, "one", "went"));
	/*
	 * Two end while no host is there, the others under the next one, which is not their parent.
	 */
	sb_host_close(f->h);
	f->h = NULL;
	assert_ok(sb_file_replace(AT_FDCWD, go, "", 0, 0644, &f->err), &f->err);
	for (int i = 0; i < 1500 && access(pid, F_OK) < 0; i++)
		(void)usleep(10000);
	(void)usleep(300000);
	hostfix_open(f);
	assert_code(f, before.id, 9);
	assert_code(f, term.id, 128 + SIGTERM);
	hostfix_write(f, "one", "go-on", "");
	assert_code(f, after.id, 11);
	assert_ok(sb_host_process_kill(f->h, "one", kill9.id, SIGKILL, &f->err), &f->err);
	assert_code(f, kill9.id, 128 + SIGKILL);
	hostfix_reopen(f);
	assert_code(f, kill9.id, 128 + SIGKILL);
	assert_code(f, before.id, 9);
}

/* Number 1 of them is not number 10. */
static void
a_signal_reaches_one_process_only(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p[10];
	off_t size;

	NEED_RUNTIME(f);
	new_session(f, "one");
	for (int i = 0; i < 10; i++)
		p[i] = launch(f, "one",
			i == 9 ? "while :; do echo x >>grows; sleep 0.02; done" : "exec sleep 600");
	wait_file(f, "grows");
	assert_ok(sb_host_process_kill(f->h, "one", p[0].id, SIGKILL, &f->err), &f->err);
	assert_code(f, p[0].id, 128 + SIGKILL);
	size = size_of(f, "grows");
	for (int i = 0; i < 500 && size_of(f, "grows") == size; i++)
		(void)usleep(10000);
	assert_true(size_of(f, "grows") > size);
}

/* What an attached command wrote, all of it. */
static void
read_end(int fd, char *out, size_t size)
{
	size_t at = 0;
	ssize_t n;

	while (at + 1 < size && (n = read(fd, out + at, size - 1 - at)) > 0)
		at += (size_t)n;
	out[at] = '\0';
	(void)close(fd);
}

struct attached {
	struct hostfix *f;
	struct sb_host_attach a;
	struct sb_host_call call;
	struct sb_error err;
	int code, r;
};

static void
close_theirs(void *arg)
{
	struct attached *t = arg;

	for (int i = 0; i < 3; i++)
		(void)close(t->a.fds[i]);
}

static void *
attach_thread(void *arg)
{
	struct attached *t = arg;

	t->r = sb_host_attach(t->f->h, &t->a, &t->call, &t->code, &t->err);
	return NULL;
}

/* Starts `cmd` and gives our ends of its descriptors. */
static pthread_t
attach(struct attached *t, const char *const *argv, int ours[3])
{
	pthread_t th;

	for (int i = 0; i < 3; i++) {
		int p[2];

		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		t->a.fds[i] = p[i == 0 ? 0 : 1];
		ours[i] = p[i == 0 ? 1 : 0];
	}
	t->a.session = "one";
	t->a.argv = argv;
	t->a.started = close_theirs;
	t->a.arg = t;
	assert_int_equal(pthread_create(&th, NULL, attach_thread, t), 0);
	return th;
}

static void
an_attached_command_has_its_own_streams(void **state)
{
	struct hostfix *f = *state;
	const char *const argv[] = { "/bin/sh", "-c", "echo here; cat; echo there >&2; exit 5",
		NULL };
	const char *const forever[] = { "/bin/sh", "-c",
		"while :; do echo x >>grows; sleep 0.02; done & cat", NULL };
	struct attached t = { .f = f, .a = SB_HOST_ATTACH_INIT, .call = { .deadline = SB_NEVER } };
	struct sb_cancel *cancel;
	char text[100];
	pthread_t th;
	int fd[3];
	off_t size;

	NEED_RUNTIME(f);
	cancel = sb_cancel_new(&f->err);
	new_session(f, "one");
	th = attach(&t, argv, fd);
	assert_int_equal(read(fd[1], text, 5), 5);
	assert_memory_equal(text, "here\n", 5);
	/* It goes on for as long as its input is open, and ends by itself. */
	(void)usleep(100000);
	assert_int_equal(write(fd[0], "to and fro\n", 11), 11);
	assert_int_equal(read(fd[1], text, sizeof text), 11);
	(void)close(fd[0]);
	read_end(fd[2], text, sizeof text);
	assert_string_equal(text, "there\n");
	read_end(fd[1], text, sizeof text);
	assert_string_equal(text, "");
	(void)pthread_join(th, NULL);
	assert_ok(t.r, &t.err);
	assert_int_equal(t.code, 5);

	/* Canceled, it is gone with all it started. */
	t.call.cancel = cancel;
	th = attach(&t, forever, fd);
	wait_file(f, "grows");
	sb_cancel_request(cancel);
	(void)pthread_join(th, NULL);
	assert_int_equal(t.r, SB_E_CANCELED);
	size = size_of(f, "grows");
	(void)usleep(200000);
	assert_int_equal(size_of(f, "grows"), size);
	for (int i = 0; i < 3; i++)
		(void)close(fd[i]);
	sb_cancel_free(cancel);
}

/* On a machine so busy that the probe takes too long, a host that ran before starts again. */
static void
what_worked_is_not_tried_again(void **state)
{
	struct hostfix *f = *state;
	char wrapper[400], hang[400], text[1000];

	NEED_RUNTIME(f);
	if (f->o.runtime != SB_HOST_RUNTIME_GVISOR)
		skip_because("only gvisor has platforms to try");
	(void)snprintf(wrapper, sizeof wrapper, "%s/runsc", f->t.path);
	(void)snprintf(hang, sizeof hang, "%s/hang", f->t.path);
	(void)snprintf(text, sizeof text,
		"#!/bin/sh\n[ \"$5\" != do ] || [ ! -e %s ] || exit 99\nexec runsc \"$@\"\n", hang);
	assert_ok(sb_file_replace(AT_FDCWD, wrapper, text, strlen(text), 0755, &f->err), &f->err);
	sb_host_close(f->h);
	f->o.runsc_path = wrapper;
	hostfix_open(f);
	assert_ok(sb_file_replace(AT_FDCWD, hang, "", 0, 0644, &f->err), &f->err);
	hostfix_reopen(f);
	new_session(f, "one");
	assert_int_equal(hostfix_bash(f, "one", "true", NULL, 0), 0);
	/* Another runsc is another matter. */
	assert_ok(sb_file_replace(AT_FDCWD, wrapper, "#!/bin/sh\nexit 99\n", 18, 0755, &f->err),
		&f->err);
	sb_host_close(f->h);
	f->h = sb_host_open(&f->o, &f->err);
	assert_null(f->h);
	assert_int_equal(f->err.code, SB_E_UNSUPPORTED);
	f->o.runsc_path = NULL;
	hostfix_open(f);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(commands_share_one_sandbox),
		T(what_a_tool_leaves_is_ended),
		T(pause_freezes),
		T(the_sandbox_is_found_after_a_restart),
		T(exit_codes_survive_a_restart),
		T(a_signal_reaches_one_process_only),
		T(an_attached_command_has_its_own_streams),
		T(destroy_leaves_nothing),
		T(orphans_are_collected),
		T(a_missing_program_is_told_at_once),
		T(ports_are_the_sessions_own),
		T(limits_end_the_greedy),
		T(capabilities_tell_the_truth),
		T(a_session_chooses_its_runtime),
		T(what_worked_is_not_tried_again),
	};

	return cmocka_run_group_tests(tests, probe, NULL);
}
