/* SPDX-License-Identifier: MIT */
/* Asks the user for consent to a file that came with the workspace. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bin/sbctl/ctl.h>

void
ctl_consent_show(const struct sb_consent *c, FILE *f)
{
	char file[CTL_SHOWN];

	(void)fprintf(f, "%s %s:\n%s  (sha256 %s)\n", ctl_safe(c->file, file),
		c->changed ? "changed since you consented to it. Now it" :
			     "comes with the workspace. It",
		c->effects, c->digest);
}

/* A line from the terminal; false at its end and when a signal came. */
static bool
read_line(const struct ctl *ctl, char *line, size_t size)
{
	struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = sb_cancel_fd(ctl->cancel), .events = POLLIN } };
	ssize_t n;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return false;
		if (p[1].revents)
			return false;
		if (p[0].revents)
			break;
	}
	n = read(STDIN_FILENO, line, size - 1);
	line[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool
ctl_consent_ask(const struct sb_consent *c, void *arg)
{
	struct ctl *ctl = arg;
	char line[64];

	/* Elsewhere nobody reads the question, and what comes on stdin is not an answer. */
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	progress_hide();
	ctl_consent_show(c, stderr);
	(void)fprintf(stderr, "Trust exactly this content from now on? [y/N] ");
	(void)fflush(stderr);
	if (!read_line(ctl, line, sizeof line)) {
		(void)fputc('\n', stderr);
		return false;
	}
	line[strcspn(line, "\r\n")] = '\0';
	return strcmp(line, "y") == 0 || strcmp(line, "Y") == 0 || strcmp(line, "yes") == 0;
}
