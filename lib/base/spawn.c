/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/spawn.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/forker.h>
#include <base/strlist.h>
#include <sb/log.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* What failed between fork and exec. */
enum step {
	STEP_FDS, /* putting descriptors 0-2 in place */
	STEP_SIGNALS,
	STEP_GROUP,
	STEP_TTY, /* the controlling terminal */
	STEP_LIMITS,
	STEP_PARENT, /* PR_SET_PDEATHSIG */
	STEP_CWD,
	STEP_EXEC = SB_SPAWN_REPORT_EXEC,
};

/*
 * Everything the child needs, made before the fork: after it nothing may allocate or
 * lock.
 */
struct plan {
	const char *const *argv;
	const struct sb_spawn_opts *o;
	const char *const *env;
	char *const *files; /* what to try to execute, in order */
	int src[3];         /* becomes 0-2; -1: ours */
	int report;
	pid_t parent;
	int fd_limit;
};

static void __attribute__((noreturn)) child_fail(const struct plan *p, enum step step)
{
	struct sb_spawn_report r = { .step = (int)step, .sys = errno };
	ssize_t n;

	do
		n = write(p->report, &r, sizeof r);
	while (n < 0 && errno == EINTR);
	_exit(127);
}

static int
child_fds(struct plan *p)
{
	/*
	 * First out of the way of 0-2, so that no dup2 overwrites what a later one needs.
	 */
	for (int i = 0; i < 3; i++)
		if (p->src[i] >= 0 && p->src[i] < 3 &&
			(p->src[i] = fcntl(p->src[i], F_DUPFD_CLOEXEC, 4)) < 0)
			return -1;
	for (int i = 0; i < 3; i++) {
		if (p->src[i] < 0 && fcntl(i, F_GETFD) >= 0) {
			if (fcntl(i, F_SETFD, 0) < 0)
				return -1;
			continue;
		}
		/*
		 * A closed standard descriptor would be filled by the next open;
		 * /dev/null is harmless.
		 */
		if (p->src[i] < 0) {
			int null = open("/dev/null", O_RDWR);

			if (null < 0 || (null != i && dup2(null, i) < 0))
				return -1;
		} else if (dup2(p->src[i], i) < 0) {
			return -1;
		}
	}
	if (p->report != SB_SPAWN_REPORT_FD) {
		if (dup3(p->report, SB_SPAWN_REPORT_FD, O_CLOEXEC) < 0)
			return -1;
		p->report = SB_SPAWN_REPORT_FD;
	}
	if (p->o->leads && fcntl(p->report, F_SETFD, 0) < 0)
		return -1;
	if (syscall(SYS_close_range, 4u, ~0u, 0u) < 0)
		for (int fd = 4; fd < p->fd_limit; fd++)
			(void)close(fd);
	return 0;
}

static int
child_signals(void)
{
	/*
	 * The kernel's own struct sigaction, all zero: SIG_DFL, no flags, no mask. By
	 * system call, because libc hides the two signals it uses itself, and these may
	 * have been inherited as ignored, too.
	 */
	static const unsigned long dfl[8];
	sigset_t none;

	/* Fails for SIGKILL and SIGSTOP, which nobody can change. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, (NSIG - 1) / 8);
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Lowers a limit; one that is lower already stays. */
static int
child_limit(int what, rlim_t soft, rlim_t hard)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)what, &r) < 0)
		return -1;
	r.rlim_max = hard < r.rlim_max ? hard : r.rlim_max;
	r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
	return setrlimit((__rlimit_resource_t)what, &r);
}

static int
child_exec(const struct plan *p)
{
	int sys = ENOENT;

	for (char *const *file = p->files; *file; file++) {
		(void)execve(*file, (char *const *)(uintptr_t)p->argv,
			(char *const *)(uintptr_t)p->env);
		if (errno == EACCES)
			sys = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return -1;
	}
	errno = sys;
	return -1;
}

/* All signals are blocked here, so the terminal stops nobody. */
static void
child_foreground(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)tcsetpgrp(fd, getpid());
	(void)close(fd);
}

/* Runs in the child: async-signal-safe calls only. */
static void __attribute__((noreturn)) child_main(struct plan *p)
{
	const struct sb_spawn_opts *o = p->o;

	if (child_fds(p) < 0)
		child_fail(p, STEP_FDS);
	if (o->new_session ? setsid() < 0 : o->own_group && setpgid(0, 0) < 0)
		child_fail(p, STEP_GROUP);
	if (o->take_terminal)
		child_foreground();
	if (o->controlling_tty && ioctl(0, TIOCSCTTY, 0) < 0)
		child_fail(p, STEP_TTY);
	if (o->max_memory && child_limit(RLIMIT_AS, o->max_memory, o->max_memory) < 0)
		child_fail(p, STEP_LIMITS);
	/*
	 * The hard limit a second later: SIGXCPU first, then SIGKILL for who ignores it.
	 */
	if (o->max_cpu_s && child_limit(RLIMIT_CPU, o->max_cpu_s, (rlim_t)o->max_cpu_s + 1) < 0)
		child_fail(p, STEP_LIMITS);
	if (o->die_with_parent && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail(p, STEP_PARENT);
	/* It may have died before the prctl. */
	if (o->die_with_parent && getppid() != p->parent)
		_exit(127);
	if (o->cwd && chdir(o->cwd) < 0)
		child_fail(p, STEP_CWD);
	if (child_signals() < 0)
		child_fail(p, STEP_SIGNALS);
	(void)child_exec(p);
	child_fail(p, STEP_EXEC);
}

/* The files to try for `name`. */
static int
find_files(const char *name, bool search, struct sb_strlist *out, struct sb_error *err)
{
	const char *path = getenv("PATH");

	if (!search || strchr(name, '/')) {
		sb_strlist_add(out, name);
		return sb_strlist_check(out, err);
	}
	if (!path || !*path)
		path = DEFAULT_PATH;
	while (*path) {
		const char *colon = strchrnul(path, ':');
		int len = (int)(colon - path);

		/* Relative entries would depend on where the child happens to run. */
		if (*path == '/')
			sb_strlist_addf(out, "%.*s/%s", len, path, name);
		path = *colon ? colon + 1 : colon;
	}
	if (!out->n && !out->failed)
		return sb_fail(err, SB_E_NOTFOUND, "start %s: PATH names no directory", name);
	return sb_strlist_check(out, err);
}

/*
 * Moves a new descriptor out of 0-2. It gets there when the program runs without standard
 * descriptors, and would then be taken for one of them. -1 and errno; the old one is
 * closed in any case.
 */
static int
move_up(int fd)
{
	int moved;

	if (fd < 0 || fd > 2)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	sb_cleanup_close_(&fd);
	return moved;
}

static int
make_pipe(int *rd, int *wr, struct sb_error *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return sb_fail_errno(err, "pipe");
	*rd = move_up(fds[0]);
	*wr = move_up(fds[1]);
	return *rd < 0 || *wr < 0 ? sb_fail_errno(err, "pipe") : 0;
}

/* Both ends of the child's standard descriptors while it is being started. */
struct ends {
	int child[3]; /* ours to close; -1: none */
	int parent[3];
};

static void
close_ends(struct ends *e)
{
	for (int i = 0; i < 3; i++) {
		sb_cleanup_close_(&e->child[i]);
		sb_cleanup_close_(&e->parent[i]);
		e->child[i] = e->parent[i] = -1;
	}
}

static int
open_ends(const struct sb_spawn_opts *o, struct ends *e, int src[3], struct sb_error *err)
{
	for (int i = 0; i < 3; i++) {
		int r = 0;

		src[i] = -1;
		switch (o->io[i]) {
		case SB_SPAWN_INHERIT: break;
		case SB_SPAWN_FD:
			assert(o->fds[i] >= 0);
			src[i] = o->fds[i];
			break;
		case SB_SPAWN_NULL:
			e->child[i] = src[i] =
				move_up(open("/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
			if (src[i] < 0)
				r = sb_fail_errno(err, "open /dev/null");
			break;
		case SB_SPAWN_PIPE:
			r = make_pipe(i ? &e->parent[i] : &e->child[i],
				i ? &e->child[i] : &e->parent[i], err);
			src[i] = e->child[i];
			break;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* A child that is in the group from its first instruction on. */
static pid_t
fork_into(int group)
{
	const struct clone_args a = { .flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)group };

	return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

/* By the forker, if there is one. 0: there is none, or no more. */
static pid_t
ask_forker(const struct plan *p, struct sb_error *err)
{
	const struct sb_spawn_opts *o = p->o;
	const int fds[SB_FORKER_FDS] = { p->src[0] < 0 ? 0 : p->src[0],
		p->src[1] < 0 ? 1 : p->src[1], p->src[2] < 0 ? 2 : p->src[2], p->report };
	pid_t pid;

	if (!o->forker)
		return 0;
	assert(o->new_session && !o->max_memory && !o->max_cpu_s && !o->controlling_tty);
	pid = sb_forker_start(*o->forker, p->argv, p->env, fds, o->leads, o->die_with_parent, err);
	return pid == SB_E_CLOSED ? 0 : pid;
}

static pid_t
fork_child(struct plan *p)
{
	sigset_t all;
	sigset_t old;
	pid_t pid;
	int sys;

	/* No handler of ours may run in the child. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = p->o->cgroup ? fork_into(*p->o->cgroup) : -1;
	if (pid < 0)
		pid = fork();
	if (!pid)
		child_main(p);
	sys = errno;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = sys;
	return pid;
}

static int
fail_report(const struct plan *p, const struct sb_spawn_report *r, struct sb_error *err)
{
	static const char *const what[] = {
		[STEP_FDS] = "descriptors",
		[STEP_SIGNALS] = "signals",
		[STEP_GROUP] = "process group",
		[STEP_TTY] = "controlling terminal",
		[STEP_LIMITS] = "limits",
		[STEP_PARENT] = "tie to the parent",
	};
	char name[256];

	(void)sb_escape(p->argv[0], strlen(p->argv[0]), name, sizeof name);
	errno = r->sys;
	if (r->step < 0 || r->step > STEP_CWD)
		return sb_fail_errno(err, "start %s", name);
	if (r->step == STEP_CWD) {
		char cwd[256];

		return sb_fail_errno(err, "start %s in %s", name,
			sb_escape(p->o->cwd, strlen(p->o->cwd), cwd, sizeof cwd));
	}
	return sb_fail_errno(err, "start %s: set up %s", name, what[r->step]);
}

/* Forks and waits until the new program runs or has said why it does not. */
static int
start(struct plan *p, int report_fd, int *write_end, pid_t *out, struct sb_error *err)
{
	struct sb_spawn_report r;
	pid_t pid = ask_forker(p, err);
	ssize_t n;

	if (pid < 0)
		return pid;
	if (pid == 0)
		pid = fork_child(p);
	if (pid < 0)
		return sb_fail_errno(err, "fork");
	(void)close(sb_steal_fd(write_end));
	do
		n = read(report_fd, &r, sizeof r);
	while (n < 0 && errno == EINTR);
	if (!n) {
		*out = pid;
		return 0;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof r)
		return sb_fail(err, SB_E_CHILD, "start a child: no word from it");
	return fail_report(p, &r, err);
}

static int
fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur > 1048576)
		return 1048576;
	return (int)r.rlim_cur;
}

int
sb_spawn(const char *const *argv, const struct sb_spawn_opts *opts, struct sb_child *out,
	struct sb_error *err)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist files = { 0 };
	struct ends ends = { .child = { -1, -1, -1 }, .parent = { -1, -1, -1 } };
	struct plan p = { .argv = argv, .o = &o, .parent = getpid(), .fd_limit = fd_limit() };
	sb_autoclose int report_rd = -1;
	sb_autoclose int report_wr = -1;
	pid_t pid = -1;
	int r;

	assert(argv[0]);
	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	p.env = o.env ? o.env : (const char *const *)environ;
	r = find_files(argv[0], o.search_path, &files, err);
	if (r < 0)
		return r;
	p.files = files.v;
	r = make_pipe(&report_rd, &report_wr, err);
	p.report = report_wr;
	if (r >= 0)
		r = open_ends(&o, &ends, p.src, err);
	if (r >= 0)
		r = start(&p, report_rd, &report_wr, &pid, err);
	if (r < 0) {
		close_ends(&ends);
		return r;
	}
	*out = (struct sb_child){
		.pid = pid,
		.pidfd = move_up((int)syscall(SYS_pidfd_open, pid, 0)),
		.in = sb_steal_fd(&ends.parent[0]),
		.out = sb_steal_fd(&ends.parent[1]),
		.errfd = sb_steal_fd(&ends.parent[2]),
		.own_group = o.own_group || o.new_session,
	};
	close_ends(&ends);
	return 0;
}
