/* SPDX-License-Identifier: MIT */
/* Signals of sbctl as bytes in a pipe, and what they cancel. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <bin/sbctl/ctl.h>

/* For the handler: where signals are told, and what they cancel. */
static int signal_pipe[2] = { -1, -1 };
static _Atomic(struct sb_cancel *) signal_cancel;

static void
on_signal(int sig)
{
	struct sb_cancel *c = atomic_load(&signal_cancel);
	unsigned char b = (unsigned char)sig;

	if (signal_pipe[1] >= 0 && write(signal_pipe[1], &b, 1) < 0)
		return; /* full: enough of them wait there */
	if (c && sig != SIGWINCH)
		sb_cancel_request(c);
}

int
ctl_signals_open(struct sb_error *err)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	static const int which[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };

	if (signal_pipe[0] < 0 && pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return sb_fail_errno(err, "pipe");
	for (size_t i = 0; i < sizeof which / sizeof which[0]; i++)
		(void)sigaction(which[i], &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signal_pipe[0];
}

int
ctl_signals_take(int fd)
{
	unsigned char b;

	return read(fd, &b, 1) == 1 ? b : 0;
}

void
ctl_signals_cancel(struct sb_cancel *c)
{
	atomic_store(&signal_cancel, c);
}
