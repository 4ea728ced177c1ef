/* SPDX-License-Identifier: MIT */
/* sb-box shell: the shell of who comes by SSH, with or without a terminal. */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE 65536
/* When the other side is gone, the shell may take so long to end. */
#define ROUNDS 200
#define ROUND_US 10000

/* What goes one way; a descriptor that is over is -1. */
struct way {
	int from, to;
	size_t at, len;
	char data[PIECE];
};

struct term {
	int master;
	pid_t pid;
	struct way in, out;
	char size[SB_HELPER_SIZE_BYTES];
	size_t have; /* of `size` */
	bool over;   /* with `status` */
	int status;
};

static const char *
choose_shell(void)
{
	static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/bin/sh" };

	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (access(shells[i], X_OK) == 0)
			return shells[i];
	return "/bin/sh";
}

static void
set_names(const char *shell)
{
	const char *user = getuid() == 0 ? "root" : "user";

	(void)setenv("USER", user, 0);
	(void)setenv("LOGNAME", user, 0);
	(void)setenv("SHELL", shell, 1);
}

/* A shell for a person is a login shell. */
static int
run_shell(const char *shell, char *command)
{
	const char *base = strrchr(shell, '/') + 1;
	char name[16];

	(void)snprintf(name, sizeof name, "-%s", base);
	if (command)
		(void)execl(shell, base, "-c", command, (char *)NULL);
	else
		(void)execl(shell, name, (char *)NULL);
	(void)helper_fail(shell);
	return errno == ENOENT ? SB_HELPER_NOTFOUND : SB_HELPER_NOEXEC;
}

static void
set_size(int fd, const char *p)
{
	const unsigned char *u = (const unsigned char *)p;
	struct winsize w = { .ws_col = (unsigned short)(u[0] << 8 | u[1]),
		.ws_row = (unsigned short)(u[2] << 8 | u[3]),
		.ws_xpixel = (unsigned short)(u[4] << 8 | u[5]),
		.ws_ypixel = (unsigned short)(u[6] << 8 | u[7]) };

	(void)ioctl(fd, TIOCSWINSZ, &w);
}

/* In the child: with the terminal as its own. */
static _Noreturn void
child(const char *name, const char *shell, char *command)
{
	sigset_t none;
	int fd;

	(void)setsid();
	fd = open(name, O_RDWR);
	if (fd < 0)
		_exit(helper_fail(name));
	(void)ioctl(fd, TIOCSCTTY, 0);
	for (int i = 0; i < 3; i++)
		(void)dup2(fd, i);
	if (fd > 2)
		(void)close(fd);
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setenv("SSH_TTY", name, 1);
	_exit(run_shell(shell, command));
}

static int
open_term(struct term *t, unsigned cols, unsigned rows, const char *shell, char *command)
{
	struct winsize w = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };
	char name[64];

	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || grantpt(t->master) < 0 || unlockpt(t->master) < 0 ||
		ptsname_r(t->master, name, sizeof name) != 0)
		return helper_fail("terminal");
	(void)ioctl(t->master, TIOCSWINSZ, &w);
	t->pid = fork();
	if (t->pid == 0)
		child(name, shell, command);
	if (t->pid < 0)
		return helper_fail("fork");
	(void)fcntl(t->master, F_SETFL, O_NONBLOCK);
	t->in.from = 0;
	t->in.to = t->out.from = t->master;
	t->out.to = 1;
	return 0;
}

/* Reads when it holds nothing, writes what it holds. False: that way is over. */
static bool
step(struct way *w, const struct pollfd *from, const struct pollfd *to)
{
	ssize_t n;

	if (w->len == 0 && from->revents) {
		n = read(w->from, w->data, sizeof w->data);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		w->at = 0;
		w->len = n > 0 ? (size_t)n : 0;
	} else if (w->len > 0 && to->revents) {
		n = write(w->to, w->data + w->at, w->len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		w->at += n > 0 ? (size_t)n : 0;
		w->len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* A new size. False: nobody is there any more. */
static bool
take_size(struct term *t)
{
	ssize_t n = read(2, t->size + t->have, sizeof t->size - t->have);

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	t->have += (size_t)n;
	if (t->have == sizeof t->size) {
		set_size(t->master, t->size);
		t->have = 0;
	}
	return true;
}

/*
 * Until the shell has ended and all it wrote is handed on, or nobody is there any more. A terminal
 * that something in the background keeps open is no reason to stay.
 */
static void
relay(struct term *t)
{
	bool in = true;

	for (;;) {
		bool idle = t->out.len == 0;
		struct pollfd p[5] = {
			{ .fd = in && t->in.len == 0 ? 0 : -1, .events = POLLIN },
			{ .fd = in && t->in.len > 0 ? t->master : -1, .events = POLLOUT },
			{ .fd = idle ? t->master : -1, .events = POLLIN },
			{ .fd = idle ? -1 : 1, .events = POLLOUT },
			{ .fd = 2, .events = POLLIN },
		};
		int n = poll(p, 5, t->over ? 0 : 1000);

		if (n < 0 && errno != EINTR)
			return;
		if (p[4].revents && n > 0 && !take_size(t))
			return;
		if (n > 0 && in)
			in = step(&t->in, &p[0], &p[1]);
		if (n > 0 && !step(&t->out, &p[2], &p[3]))
			return;
		if (t->over && idle && n >= 0 && !p[2].revents)
			return;
		t->over |= waitpid(t->pid, &t->status, WNOHANG) == t->pid;
	}
}

/* Without its terminal the kernel hangs up on the shell, which ends then, or is ended. */
static int
finish(struct term *t)
{
	(void)close(t->master);
	for (int i = 0; i < ROUNDS && !t->over; i++) {
		t->over = waitpid(t->pid, &t->status, WNOHANG) == t->pid;
		if (!t->over)
			(void)usleep(ROUND_US);
	}
	if (!t->over) {
		(void)kill(-t->pid, SIGKILL);
		(void)waitpid(t->pid, &t->status, 0);
	}
	return WIFSIGNALED(t->status) ? 128 + WTERMSIG(t->status) : WEXITSTATUS(t->status);
}

int
helper_main_shell(int argc, char **argv)
{
	static struct term t;
	const char *shell = choose_shell();
	unsigned cols = 0, rows = 0;
	char *command = NULL;
	int c, r;

	while ((c = getopt(argc, argv, "+t:c:")) != -1)
		switch (c) {
		case 't':
			if (sscanf(optarg, "%ux%u", &cols, &rows) != 2)
				return SB_HELPER_FAILED;
			break;
		case 'c': command = optarg; break;
		default: return SB_HELPER_FAILED;
		}
	set_names(shell);
	if (cols == 0)
		return run_shell(shell, command);
	/* What is told to the session's processes is for those of the terminal. */
	for (int s = 1; s < NSIG; s++)
		if (s != SIGCHLD)
			(void)signal(s, SIG_IGN);
	helper_catch_child();
	r = open_term(&t, cols, rows, shell, command);
	if (r != 0)
		return r;
	relay(&t);
	return finish(&t);
}
