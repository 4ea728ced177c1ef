/* SPDX-License-Identifier: MIT */
/* Asks the user for passphrases and passwords on the terminal. */
#include "config.h"

#include <sync/ssh/ssh.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <termios.h>

#include <base/file.h>

static atomic_uint asking;

bool
sb_ssh_tty_busy(void)
{
	return atomic_load(&asking) > 0;
}

/* Reads a line byte by byte until its end, the end of the terminal, or cancel. */
static int
read_line(int fd, const struct sb_cancel *cancel, char *answer, size_t size)
{
	size_t n = 0;

	for (;;) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN } };
		ssize_t r;
		char c;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return SB_E_CANCELED;
		if (p[1].revents || sb_cancel_requested(cancel))
			return SB_E_CANCELED;
		if (!p[0].revents)
			continue;
		r = read(fd, &c, 1);
		if (r < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (r <= 0)
			return SB_E_CANCELED;
		if (c == '\n' || c == '\r')
			break;
		if (n + 1 < size)
			answer[n++] = c;
	}
	answer[n] = '\0';
	return 0;
}

int
sb_ssh_ask_tty(enum sb_ssh_ask kind, const char *text, bool echo, char *answer, size_t size,
	void *arg)
{
	sb_autoclose int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct termios old, quiet;
	bool changed = false;
	int r;

	if (fd < 0)
		return SB_E_CANCELED;
	if (!echo && tcgetattr(fd, &old) == 0) {
		quiet = old;
		quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
		changed = tcsetattr(fd, TCSAFLUSH, &quiet) == 0;
	}
	atomic_fetch_add(&asking, 1);
	/* A line of progress that stands there goes. */
	r = sb_file_write_all(fd, "\r\033[K", 4, NULL);
	if (r >= 0)
		r = sb_file_write_all(fd, text, strlen(text), NULL);
	if (r >= 0)
		r = read_line(fd, arg, answer, size);
	atomic_fetch_sub(&asking, 1);
	if (changed) {
		(void)tcsetattr(fd, TCSAFLUSH, &old);
		(void)sb_file_write_all(fd, "\n", 1, NULL);
	}
	return r < 0 ? SB_E_CANCELED : 0;
}
