/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/lend-tty.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <base/cleanup.h>

static atomic_flag lent = ATOMIC_FLAG_INIT;

enum sb_lend_tty_may
sb_lend_tty_begin(struct sb_lend_tty *l)
{
	sb_autoclose int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	l->fd = -1;
	if (fd < 0)
		return SB_LEND_TTY_NONE;
	if (tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &l->before) < 0 ||
		!(l->before.c_lflag & ICANON) || atomic_flag_test_and_set(&lent))
		return SB_LEND_TTY_NO;
	l->fd = sb_steal_fd(&fd);
	return SB_LEND_TTY_YES;
}

void
sb_lend_tty_end(struct sb_lend_tty *l)
{
	sigset_t ttou, old;

	if (l->fd < 0)
		return;
	/* From the background these raise the signal, in this thread, unless it is blocked. */
	(void)sigemptyset(&ttou);
	(void)sigaddset(&ttou, SIGTTOU);
	(void)pthread_sigmask(SIG_BLOCK, &ttou, &old);
	(void)tcsetpgrp(l->fd, getpgrp());
	/* Whoever was killed at a question has left the echo off. */
	(void)tcsetattr(l->fd, TCSADRAIN, &l->before);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)close(l->fd);
	l->fd = -1;
	atomic_flag_clear(&lent);
}
