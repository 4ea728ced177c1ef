/* SPDX-License-Identifier: MIT */
/* sbsync log: what the syncs of a session did. */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include <bin/sbsync/options.h>

static int
log_verb(void *values, int argc, char **argv)
{
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char buf[8192];
	ssize_t n;
	int fd, r = load_session(argc, argv, &s);

	(void)values;
	if (r)
		return r;
	fd = sb_session_log_fd(&s, &err);
	if (fd < 0)
		complain("%s", err.msg);
	while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
		(void)fwrite(buf, 1, (size_t)n, stdout);
	if (fd >= 0)
		(void)close(fd);
	sb_session_free(&s);
	return fd < 0 ? exit_code(fd) : EXIT_DONE;
}

const struct sb_cmd cmd_log = {
	.name = "log",
	.args = "[SESSION]",
	.help = "show what the session's syncs did",
	.opts = list_options,
	.max_args = 1,
	.run = log_verb,
};
