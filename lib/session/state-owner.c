/* SPDX-License-Identifier: MIT */
/* Which process works with a sandbox (sb_state_owned is declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>

/* Field 22 of /proc/PID/stat, in clock ticks since boot; 0: no such process. */
static uint64_t
proc_start(int64_t pid)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char path[64], *p;
	unsigned long long v = 0;

	sb_buf_init(&text, 4096);
	(void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	{
		sb_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
		char raw[2048];
		ssize_t n = fd < 0 ? -1 : sb_file_read_full(fd, raw, sizeof raw - 1, NULL);

		if (n <= 0)
			return 0;
		sb_buf_add(&text, raw, (size_t)n);
	}
	/* The name in parentheses may hold anything; the fields behind it do not. */
	p = strrchr((char *)text.data, ')');
	for (int i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	if (p)
		v = strtoull(p + 1, NULL, 10);
	return v;
}

void
sb_state_own(struct sb_state *s, bool own)
{
	s->owner_pid = own ? getpid() : 0;
	s->owner_start = own ? proc_start(s->owner_pid) : 0;
}

bool
sb_state_owned(const struct sb_state *s)
{
	return s->owner_pid > 0 && s->owner_start > 0 && proc_start(s->owner_pid) == s->owner_start;
}
