/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/procid.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>

int64_t
sb_procid_start(pid_t pid)
{
	char path[64], buf[1024], state;
	sb_autoclose int fd = -1;
	long long start;
	const char *p;
	ssize_t n;

	if (pid <= 0)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : 0;
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	/* The name in parentheses may hold anything, also parentheses. Wanted: fields 3 and 22. */
	p = strrchr(buf, ')');
	if (!p ||
		sscanf(p + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %lld",
			&state, &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

const char *
sb_procid_boot(char out[SB_PROCID_BOOT_SIZE])
{
	sb_autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, SB_PROCID_BOOT_SIZE - 1) : 0;

	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return out;
}
