/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/child.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <base/cleanup.h>

/*
 * A child that does not die within this time after SIGKILL hangs in the kernel; we stop
 * waiting.
 */
#define REAP_MS 10000
/* How often to look where the kernel has no pidfd. */
#define LOOK_MS 10

bool
sb_child_ended(const struct sb_child *c)
{
	siginfo_t si = { 0 };

	if (c->reaped)
		return true;
	/*
	 * ECHILD: the program ignores SIGCHLD or someone else took it. It is gone either
	 * way.
	 */
	if (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return errno == ECHILD;
	return si.si_pid == c->pid;
}

static int
reap(struct sb_child *c, struct sb_error *err)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(c->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	c->reaped = true;
	c->status = status;
	sb_cleanup_close_(&c->pidfd);
	c->pidfd = -1;
	if (got < 0)
		return sb_fail(err, SB_E_CHILD, "process %d: its exit status was lost",
			(int)c->pid);
	return 0;
}

/* Waits for the end without reaping. */
static int
wait_end(const struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	while (!sb_child_ended(c)) {
		struct pollfd p[2] = {
			{ .fd = c->pidfd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		int ms = sb_deadline_poll_ms(d);
		int r = sb_check_alive(cancel, d, "wait for a child process", err);

		if (r < 0)
			return r;
		if (c->pidfd < 0 && (ms < 0 || ms > LOOK_MS))
			ms = LOOK_MS;
		if (poll(p, 2, ms) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
	}
	return 0;
}

int
sb_child_wait(struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	int r;

	if (c->reaped)
		return 0;
	r = wait_end(c, cancel, d, err);
	return r < 0 ? r : reap(c, err);
}

int
sb_child_wait_group(struct sb_child *c, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	siginfo_t si = { 0 };
	int r;

	if (c->reaped)
		return 0;
	r = wait_end(c, cancel, d, err);
	if (r < 0)
		return r;
	/* Not reaped yet, so the group's number is still its own. */
	if (c->own_group && waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid == c->pid && si.si_code != CLD_EXITED)
		(void)kill(-c->pid, SIGTERM);
	return reap(c, err);
}

int
sb_child_exit_code(const struct sb_child *c)
{
	assert(c->reaped);
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

static void
close_pipes(struct sb_child *c)
{
	sb_cleanup_close_(&c->in);
	sb_cleanup_close_(&c->out);
	sb_cleanup_close_(&c->errfd);
	c->in = c->out = c->errfd = -1;
}

void
sb_child_stop(struct sb_child *c, int grace_ms)
{
	pid_t target = c->own_group ? -c->pid : c->pid;

	close_pipes(c);
	if (c->reaped || c->pid <= 0)
		return;
	if (grace_ms > 0) {
		(void)kill(target, SIGTERM);
		(void)wait_end(c, NULL, sb_deadline_in(grace_ms), NULL);
	}
	/*
	 * Not reaped yet, so the group's number is still its own: this reaches what the
	 * child left behind.
	 */
	(void)kill(target, SIGKILL);
	if (wait_end(c, NULL, sb_deadline_in(REAP_MS), NULL) >= 0)
		(void)reap(c, NULL);
	sb_cleanup_close_(&c->pidfd);
	c->pidfd = -1;
}
