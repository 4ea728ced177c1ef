/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/proc.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <sb/log.h>
#include <tool/environ.h>
#include <tool/window.h>

/* How often a group that is to die is looked at. */
#define LOOK_MS 10
/* How long the taker of stderr may let an ended program's last words wait. */
#define COPY_MS 2000

enum stop_stage {
	STAGE_RUNNING,
	STAGE_STDIN, /* stop was asked for, stdin is closed */
	STAGE_TERM,
	STAGE_KILL,
};

struct sb_proc {
	struct sb_child child; /* the watcher's, but for `in` and `out` */
	pid_t pid;
	int stop_ms;
	int text_fd; /* what the window is filled from */
	int copy_fd; /* where stderr goes too; -1: nowhere */
	bool tty;
	char wait[4096]; /* the block that waits for `copy_fd`; PIPE_BUF */
	size_t wait_at, wait_len;
	int wake_fd; /* eventfd: look at the requests */
	int done_fd; /* eventfd: set once, at the end */
	pthread_t watcher;

	pthread_mutex_t mu;
	struct sb_window window;
	bool stop_asked, kill_asked, stdin_closed, ended;
	struct sb_proc_exit how;
	int failed; /* 0, or SB_E_CHILD */
};

/* The watcher's own view. */
struct proc_watch {
	struct sb_proc *p;
	enum stop_stage stage;
	sb_deadline next; /* of the next step of the escalation */
};

/* Of the group, or of the session that a terminal's program leads. */
static bool
in_group(const char *name, pid_t group)
{
	char path[300], buf[512], *p, state;
	sb_autoclose int fd = -1;
	ssize_t n;
	int ppid, pgrp, session;

	(void)snprintf(path, sizeof path, "/proc/%s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	return p && sscanf(p + 1, " %c %d %d %d", &state, &ppid, &pgrp, &session) == 4 &&
		(pgrp == group || session == group) && state != 'Z' && state != 'X';
}

/* Is anybody of the group alive? Zombies are not. */
static bool
group_alive(pid_t group)
{
	sb_autoclosedir DIR *d = opendir("/proc");
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name) && in_group(e->d_name, group))
			return true;
	return false;
}

/* The leader must not have been reaped: its number is the group's. */
static void
signal_group(const struct sb_proc *p, int sig)
{
	sb_autoclosedir DIR *d = p->tty ? opendir("/proc") : NULL;
	const struct dirent *e;

	(void)kill(-p->pid, sig);
	/* A shell with job control gives each job a group of its own. */
	while (d && (e = readdir(d))) {
		int64_t pid;

		if (in_group(e->d_name, p->pid) && sb_str_to_i64(e->d_name, 1, INT32_MAX, &pid) &&
			pid != p->pid)
			(void)kill((pid_t)pid, sig);
	}
}

/* Waits for the group to be gone. */
static bool
group_gone(pid_t group, int ms)
{
	sb_deadline d = sb_deadline_in(ms);

	while (group_alive(group)) {
		if (sb_deadline_passed(d))
			return false;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return true;
}

/* Hands the waiting block on. False: whoever is to take it does not, yet. */
static bool
flush_copy(struct sb_proc *p)
{
	while (p->wait_len) {
		struct pollfd fd = { .fd = p->copy_fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&fd, 1, 0) == 0)
			return false;
		/* A pipe that is ready takes this much without blocking. */
		n = sb_file_write_nosig(p->copy_fd, p->wait + p->wait_at, p->wait_len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n <= 0) {
			p->copy_fd = -1; /* nobody there any more */
			p->wait_len = 0;
			break;
		}
		p->wait_at += (size_t)n;
		p->wait_len -= (size_t)n;
	}
	return true;
}

/* Takes what there is; as long as the last block waits for its taker, nothing. */
static void
take_text(struct sb_proc *p)
{
	ssize_t n = 1;

	while (flush_copy(p) && p->text_fd >= 0) {
		n = read(p->text_fd, p->wait, sizeof p->wait);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			sb_cleanup_close_(&p->text_fd);
			p->text_fd = -1;
		}
		if (n <= 0)
			return;
		(void)pthread_mutex_lock(&p->mu);
		sb_window_add(&p->window, p->wait, (size_t)n);
		(void)pthread_mutex_unlock(&p->mu);
		p->wait_at = 0;
		p->wait_len = p->copy_fd < 0 ? 0 : (size_t)n;
	}
}

/* The rest, for a program that has ended. */
static void
take_rest(struct sb_proc *p)
{
	sb_deadline d = sb_deadline_in(COPY_MS);

	take_text(p);
	while (p->wait_len && !sb_deadline_passed(d)) {
		struct pollfd fd = { .fd = p->copy_fd, .events = POLLOUT };

		(void)poll(&fd, 1, sb_deadline_poll_ms(d));
		take_text(p);
	}
	p->wait_len = 0;
	p->copy_fd = -1;
	take_text(p);
}

/* Replaces the descriptor's pipe by one without a reader. Needs the lock. */
static void
close_stdin(struct sb_proc *p)
{
	int ends[2];

	if (p->stdin_closed || p->child.in < 0)
		return;
	p->stdin_closed = true;
	if (p->tty) {
		struct termios t;
		char eof = tcgetattr(p->child.in, &t) == 0 ? (char)t.c_cc[VEOF] : 4;

		(void)sb_file_write_nosig(p->child.in, &eof, 1);
		return;
	}
	if (pipe2(ends, O_CLOEXEC) < 0) {
		/* No descriptor left: a closed one is all we can do. */
		(void)close(sb_steal_fd(&p->child.in));
		return;
	}
	(void)close(ends[0]);
	(void)dup3(ends[1], p->child.in, O_CLOEXEC);
	(void)close(ends[1]);
}

/* What was asked for, and what the time says. */
static void
escalate(struct proc_watch *w)
{
	struct sb_proc *p = w->p;
	bool stop, killed;

	(void)pthread_mutex_lock(&p->mu);
	stop = p->stop_asked;
	killed = p->kill_asked;
	if (stop)
		close_stdin(p);
	(void)pthread_mutex_unlock(&p->mu);
	if (killed && w->stage != STAGE_KILL) {
		w->stage = STAGE_TERM;
		w->next = 0;
	} else if (stop && w->stage == STAGE_RUNNING) {
		w->stage = STAGE_STDIN;
		w->next = sb_deadline_in(p->stop_ms);
	}
	if (w->stage == STAGE_RUNNING || !sb_deadline_passed(w->next))
		return;
	if (w->stage == STAGE_STDIN) {
		signal_group(p, SIGTERM);
		w->stage = STAGE_TERM;
		w->next = sb_deadline_in(SB_PROC_TERM_MS);
	} else {
		signal_group(p, SIGKILL);
		w->stage = STAGE_KILL;
		w->next = SB_NEVER;
	}
}

/* The leader is a zombie, so the group's number is still its own: what it left running goes now. */
static void
end_group(struct sb_proc *p)
{
	p->failed = 0;
	if (!group_alive(p->pid))
		return;
	signal_group(p, SIGTERM);
	if (group_gone(p->pid, SB_PROC_TERM_MS))
		return;
	signal_group(p, SIGKILL);
	if (!group_gone(p->pid, SB_PROC_KILL_MS))
		p->failed = SB_E_CHILD;
}

static void
finish(struct proc_watch *w)
{
	struct sb_proc *p = w->p;
	uint64_t one = 1;
	int code, status;

	take_text(p);
	end_group(p);
	take_rest(p);
	(void)pthread_mutex_lock(&p->mu);
	(void)sb_child_wait(&p->child, NULL, SB_NEVER, NULL);
	status = p->child.status;
	code = sb_child_exit_code(&p->child);
	p->how = (struct sb_proc_exit){ .code = code,
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		.stopped = p->stop_asked || p->kill_asked };
	p->ended = true;
	close_stdin(p);
	(void)pthread_mutex_unlock(&p->mu);
	(void)!write(p->done_fd, &one, sizeof one);
}

static void *
watch(void *arg)
{
	struct proc_watch w = { .p = arg, .next = SB_NEVER };
	struct sb_proc *p = arg;

	while (!sb_child_ended(&p->child)) {
		struct pollfd fds[3] = {
			{ .fd = p->wait_len ? p->copy_fd : p->text_fd,
				.events = p->wait_len ? POLLOUT : POLLIN },
			{ .fd = p->child.pidfd, .events = POLLIN },
			{ .fd = p->wake_fd, .events = POLLIN },
		};
		uint64_t seen;
		int ms = sb_deadline_poll_ms(w.next);

		if (p->child.pidfd < 0 && (ms < 0 || ms > LOOK_MS))
			ms = LOOK_MS;
		(void)poll(fds, 3, ms);
		if (fds[0].revents)
			take_text(p);
		if (fds[2].revents)
			(void)!read(p->wake_fd, &seen, sizeof seen);
		escalate(&w);
	}
	finish(&w);
	return NULL;
}

static void
wake(struct sb_proc *p)
{
	uint64_t one = 1;

	(void)!write(p->wake_fd, &one, sizeof one);
}

static void
release(struct sb_proc *p)
{
	sb_child_stop(&p->child, 0);
	sb_cleanup_close_(&p->text_fd);
	sb_cleanup_close_(&p->wake_fd);
	sb_cleanup_close_(&p->done_fd);
	sb_window_free(&p->window);
	(void)pthread_mutex_destroy(&p->mu);
	free(p);
}

/* A pipe for both outputs, or a terminal. */
static int
open_ends(const struct sb_proc_opts *o, int *near, int *far, struct sb_error *err)
{
	struct winsize size = { .ws_row = o->rows ? o->rows : 24,
		.ws_col = o->cols ? o->cols : 80 };
	int ends[2];

	if (o->tty ? openpty(&ends[0], &ends[1], NULL, NULL, &size) < 0 :
		     pipe2(ends, O_CLOEXEC) < 0)
		return sb_fail_errno(err, o->tty ? "terminal" : "pipe");
	(void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	*near = ends[0];
	*far = ends[1];
	return 0;
}

/* Starts the program. */
static int
spawn(struct sb_proc *p, const struct sb_proc_opts *o, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_autofree char *file = NULL;
	sb_autoclose int far = -1; /* the child's end of a pipe or a terminal */
	int near = -1;
	int r;

	sb_strlist_add_all(&env, o->env);
	r = sb_strlist_check(&env, err);
	if (r == 0 && !o->env)
		r = sb_environ_build(false, NULL, &env, err);
	if (r == 0)
		r = sb_environ_find(&env, o->argv[0], &file, err);
	if (r == 0) {
		sb_strlist_add(&argv, file);
		sb_strlist_add_all(&argv, o->argv + 1);
		r = sb_strlist_check(&argv, err);
	}
	if (r == 0 && (o->captured || o->tty))
		r = open_ends(o, &near, &far, err);
	if (r < 0)
		return r;
	so.env = env.n ? (const char *const *)env.v : (const char *const[]){ NULL };
	so.cwd = o->cwd;
	so.new_session = so.controlling_tty = o->tty;
	so.io[1] = so.io[2] = o->captured || o->tty ? SB_SPAWN_FD :
		o->inherit                          ? SB_SPAWN_INHERIT :
						      SB_SPAWN_PIPE;
	so.io[0] = o->captured ? SB_SPAWN_NULL : so.io[1];
	so.fds[0] = so.fds[1] = so.fds[2] = far;
	r = sb_spawn((const char *const *)argv.v, &so, &p->child, err);
	if (r >= 0 && o->tty) {
		p->child.in = near;
		p->child.out = fcntl(near, F_DUPFD_CLOEXEC, 3);
		return p->child.out < 0 ? sb_fail_errno(err, "terminal") : 0;
	}
	p->text_fd = near >= 0 ? near : sb_steal_fd(&p->child.errfd);
	return r;
}

struct sb_proc *
sb_proc_start(const struct sb_proc_opts *opts, struct sb_error *err)
{
	struct sb_proc *p = calloc(1, sizeof *p);
	int r;

	if (!p) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	p->child = (struct sb_child)SB_CHILD_INIT;
	p->stop_ms = opts->stop_ms ? opts->stop_ms : SB_PROC_STOP_MS;
	p->text_fd = -1;
	p->tty = opts->tty;
	p->copy_fd = opts->stderr_fd;
	(void)pthread_mutex_init(&p->mu, NULL);
	sb_window_init(&p->window, opts->window);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->wake_fd < 0 || p->done_fd < 0 ? sb_fail_errno(err, "eventfd") : spawn(p, opts, err);
	if (r >= 0) {
		p->pid = p->child.pid;
		if (p->text_fd >= 0)
			(void)fcntl(p->text_fd, F_SETFL, O_NONBLOCK);
		errno = pthread_create(&p->watcher, NULL, watch, p);
		r = errno ? sb_fail_errno(err, "thread") : 0;
	}
	if (r < 0) {
		release(p);
		return NULL;
	}
	return p;
}

void
sb_proc_free(struct sb_proc *p)
{
	if (!p)
		return;
	sb_proc_kill(p);
	(void)pthread_join(p->watcher, NULL);
	release(p);
}

pid_t
sb_proc_pid(const struct sb_proc *p)
{
	return p->pid;
}

int
sb_proc_stdin(const struct sb_proc *p)
{
	return p->child.in;
}

int
sb_proc_stdout(const struct sb_proc *p)
{
	return p->child.out;
}

void
sb_proc_close_stdin(struct sb_proc *p)
{
	(void)pthread_mutex_lock(&p->mu);
	close_stdin(p);
	(void)pthread_mutex_unlock(&p->mu);
}

int
sb_proc_done_fd(const struct sb_proc *p)
{
	return p->done_fd;
}

bool
sb_proc_text(struct sb_proc *p, struct sb_buf *out)
{
	bool cut;

	(void)pthread_mutex_lock(&p->mu);
	cut = sb_window_text(&p->window, p->ended, out);
	(void)pthread_mutex_unlock(&p->mu);
	return cut;
}

int
sb_proc_wait(struct sb_proc *p, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_proc_exit *out, struct sb_error *err)
{
	for (;;) {
		struct pollfd fds[2] = {
			{ .fd = p->done_fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		int r;

		(void)pthread_mutex_lock(&p->mu);
		if (p->ended) {
			if (out)
				*out = p->how;
			r = p->failed;
			(void)pthread_mutex_unlock(&p->mu);
			return r < 0 ?
				sb_fail(err, r, "process group %d would not die", (int)p->pid) :
				0;
		}
		(void)pthread_mutex_unlock(&p->mu);
		r = sb_check_alive(cancel, d, "wait for a process", err);
		if (r < 0)
			return r;
		if (poll(fds, 2, sb_deadline_poll_ms(d)) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
	}
}

int
sb_proc_stop(struct sb_proc *p, const struct sb_cancel *cancel, sb_deadline d, struct sb_error *err)
{
	int r = sb_check_alive(cancel, SB_NEVER, "stop a process", err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&p->mu);
	p->stop_asked = true;
	(void)pthread_mutex_unlock(&p->mu);
	wake(p);
	return sb_proc_wait(p, cancel, d, NULL, err);
}

void
sb_proc_kill(struct sb_proc *p)
{
	(void)pthread_mutex_lock(&p->mu);
	p->kill_asked = true;
	(void)pthread_mutex_unlock(&p->mu);
	wake(p);
}

void
sb_proc_signal(struct sb_proc *p, int sig)
{
	(void)pthread_mutex_lock(&p->mu);
	/* Reaping happens under the lock too, so the number is still its own. */
	if (!p->ended)
		signal_group(p, sig);
	(void)pthread_mutex_unlock(&p->mu);
}

int
sb_proc_resize(struct sb_proc *p, unsigned short rows, unsigned short cols, struct sb_error *err)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (!p->tty)
		return sb_fail(err, SB_E_STATE, "process %d has no terminal", (int)p->pid);
	if (ioctl(p->child.in, TIOCSWINSZ, &size) < 0)
		return sb_fail_errno(err, "size of a terminal");
	return 0;
}
