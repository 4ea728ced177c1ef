/* SPDX-License-Identifier: MIT */
/*
 * Starting, stopping and waiting for child processes: which descriptors, signals and limits they
 * get.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <base/spawn.h>
#include <base/str.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

/* Long enough for a loaded machine; only reached when something is broken. */
#define PATIENCE_MS 60000

/*
 * The test program itself, as a child that reports on itself; see child_mode. Scripts find it in
 * $SB_SELF.
 */
static char self[4096];
#define SELF_DOES "\"$SB_SELF\" --child "

static struct sb_error err;
static struct sb_buf out;
static struct sb_buf eout;

static int
setup(void **state)
{
	sb_buf_init(&out, 1 << 20);
	sb_buf_init(&eout, 1 << 20);
	return tmpdir_setup(state);
}

static int
teardown(void **state)
{
	sb_buf_free(&out);
	sb_buf_free(&eout);
	return tmpdir_teardown(state);
}

static int
run(const struct sb_spawn_opts *o, const char *const *argv)
{
	sb_buf_reset(&out);
	sb_buf_reset(&eout);
	return sb_child_run(argv, o, NULL, 0, &out, &eout, NULL, sb_deadline_in(PATIENCE_MS), &err);
}
#define RUN(o, ...) run(o, (const char *const[]){ __VA_ARGS__, NULL })

static void
assert_out(const char *want)
{
	assert_string_equal((char *)out.data, want);
}

/* The descriptor must come to its end: nobody holds the other side any more. */
static void
assert_eof(int fd)
{
	char c;
	ssize_t n;

	do
		n = read(fd, &c, 1);
	while (n > 0);
	assert_int_equal(n, 0);
}

/* From now on the calls that older kernels do not have answer ENOSYS. */
static bool
forbid_new_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof code / sizeof code[0], .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int
run_on_an_old_kernel(void)
{
	struct rlimit few = { .rlim_cur = 256, .rlim_max = 256 };
	struct sb_child c;

	if (!forbid_new_calls())
		return 77;
	/* Closing one by one is slow with a high limit. */
	if (setrlimit(RLIMIT_NOFILE, &few) || dup2(0, 100) < 0 || dup2(0, 255) < 0)
		return 1;
	if (RUN(NULL, self, "--child", "fds") || strcmp((char *)out.data, "0 1 2 \n"))
		return 2;
	if (sb_spawn((const char *const[]){ self, "--child", "pause", NULL }, NULL, &c, &err) < 0 ||
		c.pidfd != -1)
		return 3;
	if (sb_child_wait(&c, NULL, sb_deadline_in(30), &err) != SB_E_TIMEOUT)
		return 4;
	sb_child_stop(&c, PATIENCE_MS);
	return c.reaped && sb_child_exit_code(&c) == 128 + SIGTERM ? 0 : 5;
}

static void
works_on_older_kernels(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(run_on_an_old_kernel());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		skip_because("no seccomp filters here");
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
only_standard_descriptors_reach_the_child(void **state)
{
	int spare[8];
	int high;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_true((spare[i] = open("/dev/null", O_RDONLY)) >= 0);
	high = fcntl(spare[0], F_DUPFD, 500);
	assert_int_equal(RUN(NULL, self, "--child", "fds"), 0);
	assert_out("0 1 2 \n");
	for (int i = 0; i < 8; i++)
		(void)close(spare[i]);
	(void)close(high);
}

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void
nothing_is_left_open_here(void **state)
{
	int before = count_fds();
	struct sb_child c;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(RUN(NULL, "/bin/sh", "-c", "exit 1"), 1);
		assert_fails(RUN(NULL, "/no/such"), SB_E_NOTFOUND, &err);
		assert_ok(sb_spawn((const char *const[]){ "/bin/true", NULL }, NULL, &c, &err),
			&err);
		assert_ok(sb_child_wait(&c, NULL, SB_NEVER, &err), &err);
		sb_child_stop(&c, 0);
	}
	assert_int_equal(count_fds(), before);
}

/* Where the machine has groups of version 2 that we may make. */
static void
a_child_begins_in_its_group(void **state)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char dir[100] = "", want[100];
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < 2 && fd < 0; i++) {
		(void)snprintf(dir, sizeof dir, "%s/cgroup.controllers", roots[i]);
		if (access(dir, F_OK) < 0)
			continue;
		(void)snprintf(dir, sizeof dir, "%s/sb-test-spawn-%d", roots[i], (int)getpid());
		if (mkdir(dir, 0755) == 0)
			fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		skip_because("no control group of version 2 can be made here");
	o.cgroup = &fd;
	assert_int_equal(RUN(&o, "/bin/cat", "/proc/self/cgroup"), 0);
	(void)snprintf(want, sizeof want, "0::/sb-test-spawn-%d\n", (int)getpid());
	(void)rmdir(dir);
	(void)close(fd);
	assert_non_null(strstr((char *)out.data, want));
}

/* The program may have been started with its own standard descriptors closed. */
static void
works_with_closed_standard_descriptors(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		for (int i = 0; i < 3; i++)
			(void)close(i);
		if (RUN(NULL, self, "--child", "fds") != 0 || strcmp((char *)out.data, "0 1 2 \n"))
			_exit(1);
		_exit(sb_child_run((const char *const[]){ self, "--child", "outerr", NULL },
			      &(struct sb_spawn_opts){ .size = sizeof(struct sb_spawn_opts),
				      .io = { SB_SPAWN_INHERIT, SB_SPAWN_INHERIT,
					      SB_SPAWN_INHERIT } },
			      NULL, 0, NULL, NULL, NULL, SB_NEVER, NULL) ?
				2 :
				0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
descriptors_can_be_given(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char text[64] = "";
	int save[3];
	int fd[3];

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "in", "out", "err" };

		fd[i] = openat(t->fd, names[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		save[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
		assert_true(fd[i] >= 0 && save[i] >= 0);
	}
	/*
	 * Our 1 is the file "err" and our 2 is "out": the child gets them crossed, through each
	 * other.
	 */
	assert_int_equal(dup2(fd[2], 1), 1);
	assert_int_equal(dup2(fd[1], 2), 2);
	o.io[0] = o.io[1] = o.io[2] = SB_SPAWN_FD;
	o.fds[0] = fd[0];
	o.fds[1] = 2;
	o.fds[2] = 1;
	assert_int_equal(sb_child_run((const char *const[]){ self, "--child", "outerr", NULL }, &o,
				 NULL, 0, NULL, NULL, NULL, SB_NEVER, &err),
		0);
	/* As they are. */
	o.io[1] = o.io[2] = SB_SPAWN_INHERIT;
	assert_int_equal(sb_child_run((const char *const[]){ self, "--child", "outerr", NULL }, &o,
				 NULL, 0, NULL, NULL, NULL, SB_NEVER, &err),
		0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dup2(save[i], i), i);
		(void)close(save[i]);
	}
	assert_int_equal(pread(fd[1], text, sizeof text, 0), 6);
	assert_string_equal(text, "outerr");
	assert_int_equal(pread(fd[2], text, sizeof text, 0), 6);
	assert_string_equal(text, "errout");
	for (int i = 0; i < 3; i++)
		(void)close(fd[i]);
}

static void
failures_to_start_say_why(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char path[300];

	assert_fails(RUN(NULL, "/no/such\n"), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg, "start /no/such\\n: No such file or directory");
	assert_fails(RUN(NULL, t->path), SB_E_DENIED, &err);
	tmpdir_file(t, "plain", "#!/bin/sh\n");
	(void)snprintf(path, sizeof path, "%s/plain", t->path);
	assert_fails(RUN(NULL, path), SB_E_DENIED, &err);
	assert_int_equal(fchmodat(t->fd, "plain", 0755, 0), 0);
	assert_int_equal(RUN(NULL, path), 0);
	/* No shell takes over what the kernel does not know. */
	tmpdir_file(t, "odd", "echo hello\n");
	assert_int_equal(fchmodat(t->fd, "odd", 0755, 0), 0);
	(void)snprintf(path, sizeof path, "%s/odd", t->path);
	assert_fails(RUN(NULL, path), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOEXEC);
	o.cwd = "/no/such/place";
	assert_fails(RUN(&o, "/bin/true"), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg,
		"start /bin/true in /no/such/place: No such file or directory");
	o.cwd = NULL;
	o.io[2] = SB_SPAWN_FD;
	o.fds[2] = 1000;
	assert_fails(sb_child_run((const char *const[]){ "/bin/true", NULL }, &o, NULL, 0, NULL,
			     NULL, NULL, SB_NEVER, &err),
		SB_E_SYS, &err);
	assert_string_equal(err.msg, "start /bin/true: set up descriptors: Bad file descriptor");
	assert_int_equal(sb_child_run((const char *const[]){ "/no/such", NULL }, NULL, NULL, 0,
				 NULL, NULL, NULL, SB_NEVER, NULL),
		SB_E_NOTFOUND);
}

static void
path_is_searched_when_asked(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char *old = strdup(getenv("PATH"));
	char path[600];

	o.search_path = true;
	assert_int_equal(mkdirat(t->fd, "a", 0755), 0);
	assert_int_equal(mkdirat(t->fd, "b", 0755), 0);
	tmpdir_file(t, "a/prog", "#!/bin/sh\necho a\n");
	tmpdir_file(t, "b/prog", "#!/bin/sh\necho b\n");
	assert_int_equal(fchmodat(t->fd, "b/prog", 0755, 0), 0);
	(void)snprintf(path, sizeof path, "relative::/no/such:/dev/null:%s/a:%s/b", t->path,
		t->path);
	assert_int_equal(setenv("PATH", path, 1), 0);
	/* The first one may not be executed; the second is taken. */
	assert_int_equal(RUN(&o, "prog"), 0);
	assert_out("b\n");
	assert_int_equal(fchmodat(t->fd, "a/prog", 0755, 0), 0);
	assert_int_equal(RUN(&o, "prog"), 0);
	assert_out("a\n");
	assert_int_equal(fchmodat(t->fd, "a/prog", 0644, 0), 0);
	assert_int_equal(fchmodat(t->fd, "b/prog", 0644, 0), 0);
	assert_fails(RUN(&o, "prog"), SB_E_DENIED, &err);
	assert_fails(RUN(&o, "no-such-prog"), SB_E_NOTFOUND, &err);
	o.cwd = t->path;
	assert_int_equal(setenv("PATH", ":a:.", 1), 0);
	assert_fails(RUN(&o, "prog"), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg, "start prog: PATH names no directory");
	assert_int_equal(unsetenv("PATH"), 0);
	assert_int_equal(RUN(&o, "true"), 0);
	assert_int_equal(setenv("PATH", old, 1), 0);
	o.search_path = false;
	assert_fails(RUN(&o, "true"), SB_E_NOTFOUND, &err);
	free(old);
}

static void
environment_and_place_are_set(void **state)
{
	static const char *const env[] = { "A=1", "B=two words", NULL };
	const struct tmpdir *t = *state;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char want[400];

	o.env = env;
	assert_int_equal(RUN(&o, self, "--child", "env"), 0);
	assert_out("A=1\nB=two words\n");
	assert_int_equal(setenv("SB_TEST_MARK", "here", 1), 0);
	assert_int_equal(RUN(NULL, self, "--child", "env"), 0);
	assert_non_null(strstr((char *)out.data, "SB_TEST_MARK=here\n"));
	o.env = (const char *const[]){ NULL };
	assert_int_equal(RUN(&o, self, "--child", "env"), 0);
	assert_out("");
	o.cwd = t->path;
	assert_int_equal(RUN(&o, self, "--child", "cwd"), 0);
	(void)snprintf(want, sizeof want, "%s\n", t->path);
	assert_out(want);
}

static void
signals_are_the_defaults(void **state)
{
	sigset_t set;
	sigset_t old;

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGRTMIN + 3, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
	assert_int_equal(RUN(NULL, self, "--child", "signals"), 0);
	assert_out("SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
	/* Ours are as before. */
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, &set), 0);
	assert_int_equal(sigismember(&set, SIGTERM), 1);
	assert_int_equal(sigismember(&set, SIGHUP), 0);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGRTMIN + 3, SIG_DFL);
}

static void
groups_and_sessions_are_made(void **state)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	char want[64];

	(void)state;
	/* Prints whether its group and its session are its own. */
	assert_int_equal(RUN(&o, self, "--child", "group"), 0);
	assert_out("group=own session=other\n");
	o.new_session = true;
	assert_int_equal(RUN(&o, self, "--child", "group"), 0);
	assert_out("group=own session=own\n");
	o.new_session = o.own_group = false;
	assert_int_equal(RUN(&o, self, "--child", "pgid"), 0);
	(void)snprintf(want, sizeof want, "%d\n", (int)getpgrp());
	assert_out(want);
}

static void
limits_are_set(void **state)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;

	(void)state;
	o.max_memory = UINT64_C(1) << 44;
	o.max_cpu_s = 30;
	assert_int_equal(RUN(&o, "/bin/sh", "-c", "ulimit -v; ulimit -t; ulimit -Ht"), 0);
	assert_out("17179869184\n30\n31\n");
	assert_int_equal(RUN(NULL, "/bin/sh", "-c", "ulimit -v"), 0);
	assert_out("unlimited\n");
	/* One that uses up its time is ended. */
	o.max_cpu_s = 1;
	assert_int_equal(RUN(&o, "/bin/sh", "-c", "while :; do :; done"), 128 + SIGXCPU);
	/* One that wants too much memory does not get it. */
	o.max_memory = 64 << 20;
	o.max_cpu_s = 0;
	assert_int_not_equal(RUN(&o, "/bin/sh", "-c", "head -c 200000000 /dev/zero | tail -n 1"),
		0);
}

static void
older_callers_are_accepted(void **state)
{
	struct sb_spawn_opts o;

	(void)state;
	/* Whatever lies behind the size they know must not be looked at. */
	memset(&o, 0xff, sizeof o);
	o.size = offsetof(struct sb_spawn_opts, env);
	memset(o.io, 0, sizeof o.io);
	assert_int_equal(RUN(&o, self, "--child", "group"), 0);
	assert_out("group=own session=other\n");
}

/* Starts a child with a pipe on its output and waits until it has said a line. */
static struct sb_child
start_ready(const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_child c = SB_CHILD_INIT;
	char ch = 0;

	o.io[1] = SB_SPAWN_PIPE;
	assert_ok(sb_spawn(argv, &o, &c, &err), &err);
	assert_int_equal(fcntl(c.out, F_GETFD), FD_CLOEXEC);
	while (ch != '\n')
		assert_int_equal(read(c.out, &ch, 1), 1);
	return c;
}

static void
stop_asks_first_and_kills_then(void **state)
{
	struct sb_child c =
		start_ready("trap 'exit 7' TERM; echo; while :; do " SELF_DOES "nap; done");

	(void)state;
	sb_child_stop(&c, PATIENCE_MS);
	assert_true(c.reaped);
	assert_int_equal(sb_child_exit_code(&c), 7);
	assert_int_equal(c.out, -1);
	assert_int_equal(c.pidfd, -1);
	sb_child_stop(&c, PATIENCE_MS);

	c = start_ready("trap '' TERM; echo; while :; do " SELF_DOES "nap; done");
	sb_child_stop(&c, 50);
	assert_true(c.reaped);
	assert_int_equal(sb_child_exit_code(&c), 137);

	c = start_ready("trap 'exit 7' TERM; echo; while :; do " SELF_DOES "nap; done");
	sb_child_stop(&c, 0);
	assert_int_equal(sb_child_exit_code(&c), 137);
	sb_child_stop(&(struct sb_child)SB_CHILD_INIT, 10);
}

static void
stop_reaches_what_outlives_the_child(void **state)
{
	struct sb_child c = start_ready("(trap '' TERM; echo; exec " SELF_DOES "pause) & wait");
	int copy = fcntl(c.out, F_DUPFD_CLOEXEC, 10);

	(void)state;
	sb_child_stop(&c, PATIENCE_MS);
	assert_true(c.reaped);
	assert_int_equal(sb_child_exit_code(&c), 128 + SIGTERM);
	assert_eof(copy);
	(void)close(copy);
}

/* A helper that did not hear the signal its leader died of; one that was left on purpose stays. */
static void
wait_group_ends_what_a_signal_left(void **state)
{
	struct sb_child c = start_ready("(trap '' INT; echo; exec " SELF_DOES "pause) & wait");
	int copy = fcntl(c.out, F_DUPFD_CLOEXEC, 10);
	char x;

	(void)state;
	assert_int_equal(kill(-c.pid, SIGINT), 0);
	assert_ok(sb_child_wait_group(&c, NULL, sb_deadline_in(PATIENCE_MS), &err), &err);
	assert_int_equal(sb_child_exit_code(&c), 128 + SIGINT);
	assert_eof(copy);
	(void)close(copy);
	assert_ok(sb_child_wait_group(&c, NULL, SB_NEVER, &err), &err);
	sb_child_stop(&c, 0);

	c = start_ready("(echo; exec " SELF_DOES "pause) & exit 3");
	copy = fcntl(c.out, F_DUPFD_CLOEXEC, 10);
	assert_ok(sb_child_wait_group(&c, NULL, sb_deadline_in(PATIENCE_MS), &err), &err);
	assert_int_equal(sb_child_exit_code(&c), 3);
	assert_int_equal(read(copy, &x, 1), 1); /* "pause" says that it is there */
	assert_int_equal(poll(&(struct pollfd){ .fd = copy, .events = POLLIN }, 1, 100), 0);
	assert_int_equal(kill(-c.pid, SIGKILL), 0);
	assert_eof(copy);
	(void)close(copy);
	sb_child_stop(&c, 0);
}

static void
wait_can_give_up_and_go_on(void **state)
{
	struct sb_child c = start_ready("echo; " SELF_DOES "pause");
	struct sb_cancel *token = sb_cancel_new(&err);

	(void)state;
	assert_false(sb_child_ended(&c));
	assert_fails(sb_child_wait(&c, NULL, sb_deadline_in(20), &err), SB_E_TIMEOUT, &err);
	sb_cancel_request(token);
	assert_fails(sb_child_wait(&c, token, SB_NEVER, &err), SB_E_CANCELED, &err);
	assert_false(c.reaped);
	/* Where the kernel has no pidfd it looks now and then. */
	(void)close(c.pidfd);
	c.pidfd = -1;
	assert_fails(sb_child_wait(&c, NULL, sb_deadline_in(20), &err), SB_E_TIMEOUT, &err);
	assert_int_equal(kill(-c.pid, SIGINT), 0);
	assert_ok(sb_child_wait(&c, NULL, sb_deadline_in(PATIENCE_MS), &err), &err);
	assert_true(sb_child_ended(&c));
	assert_int_equal(sb_child_exit_code(&c), 128 + SIGINT);
	assert_ok(sb_child_wait(&c, NULL, SB_NEVER, &err), &err);
	sb_child_stop(&c, 0);
	sb_cancel_free(token);
}

static void
child_can_die_with_its_parent(void **state)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	int p[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct sb_child child;

		o.die_with_parent = true;
		o.io[1] = SB_SPAWN_FD;
		o.fds[1] = p[1];
		if (sb_spawn((const char *const[]){ self, "--child", "pause", NULL }, &o, &child,
			    NULL) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_eof(p[0]);
	(void)close(p[0]);
}

static void
child_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	bool open_fd[1024] = { false };
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int64_t fd;

		if (sb_str_to_i64(e->d_name, 0, 1023, &fd) && fd != dirfd(d))
			open_fd[fd] = true;
	}
	for (int i = 0; i < 1024; i++)
		if (open_fd[i])
			(void)printf("%d ", i);
	(void)puts("");
	(void)closedir(d);
}

static void
child_signals(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6))
			(void)printf("%.7s%s", line, line + 8);
	if (f)
		(void)fclose(f);
}

/* What the program does as its own child. */
static int
child_mode(const char *what)
{
	char cwd[400];

	if (!strcmp(what, "fds"))
		child_fds();
	else if (!strcmp(what, "signals"))
		child_signals();
	else if (!strcmp(what, "env"))
		for (char **e = environ; *e; e++)
			(void)puts(*e);
	else if (!strcmp(what, "cwd"))
		(void)puts(getcwd(cwd, sizeof cwd) ? cwd : "?");
	else if (!strcmp(what, "pgid"))
		(void)printf("%d\n", (int)getpgrp());
	else if (!strcmp(what, "group"))
		(void)printf("group=%s session=%s\n", getpgrp() == getpid() ? "own" : "other",
			getsid(0) == getpid() ? "own" : "other");
	else if (!strcmp(what, "outerr"))
		return write(1, "out", 3) == 3 && write(2, "err", 3) == 3 ? 0 : 1;
	else if (!strcmp(what, "nap"))
		(void)usleep(10000);
	else if (!strcmp(what, "pause")) {
		(void)!write(1, "x", 1);
		for (;;)
			(void)pause();
	}
	return 0;
}

int
main(int argc, char **argv)
{
#define WITH_BUFFERS(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_BUFFERS(works_on_older_kernels),
		WITH_BUFFERS(only_standard_descriptors_reach_the_child),
		WITH_BUFFERS(nothing_is_left_open_here),
		WITH_BUFFERS(a_child_begins_in_its_group),
		WITH_BUFFERS(works_with_closed_standard_descriptors),
		WITH_BUFFERS(descriptors_can_be_given),
		WITH_BUFFERS(failures_to_start_say_why),
		WITH_BUFFERS(path_is_searched_when_asked),
		WITH_BUFFERS(environment_and_place_are_set),
		WITH_BUFFERS(signals_are_the_defaults),
		WITH_BUFFERS(groups_and_sessions_are_made),
		WITH_BUFFERS(limits_are_set),
		WITH_BUFFERS(older_callers_are_accepted),
		WITH_BUFFERS(stop_asks_first_and_kills_then),
		WITH_BUFFERS(stop_reaches_what_outlives_the_child),
		WITH_BUFFERS(wait_group_ends_what_a_signal_left),
		WITH_BUFFERS(wait_can_give_up_and_go_on),
		WITH_BUFFERS(child_can_die_with_its_parent),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return child_mode(argv[2]);
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || setenv("SB_SELF", self, 1))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
