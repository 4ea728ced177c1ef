/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/memory.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/file.h>

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The number behind `key` in a small file of the kernel; UINT64_MAX when there is none. */
static uint64_t
number_in(const char *path, const char *key, uint64_t unit)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	const char *at;
	char *end;
	unsigned long long v;

	if (sb_file_read(AT_FDCWD, path, 64u << 10, &b, NULL) < 0)
		return UINT64_MAX;
	at = strstr((const char *)b.data, key);
	if (!at)
		return UINT64_MAX;
	v = strtoull(at + strlen(key), &end, 10);
	return end == at + strlen(key) || v > UINT64_MAX / unit ? UINT64_MAX : v * unit;
}

static uint64_t
group_left(void)
{
	uint64_t max = number_in("/sys/fs/cgroup/memory.max", "", 1);
	uint64_t now = number_in("/sys/fs/cgroup/memory.current", "", 1);

	if (max == UINT64_MAX || now == UINT64_MAX)
		return UINT64_MAX;
	return max > now ? max - now : 0;
}

static uint64_t
own_left(void)
{
	uint64_t pages = number_in("/proc/self/statm", "", 1), used;
	struct rlimit r;

	if (getrlimit(RLIMIT_AS, &r) < 0 || r.rlim_cur == RLIM_INFINITY || pages == UINT64_MAX)
		return UINT64_MAX;
	used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return r.rlim_cur > used ? r.rlim_cur - used : 0;
}

uint64_t
sb_memory_available(void)
{
	uint64_t system = number_in("/proc/meminfo", "MemAvailable:", 1024);

	return least(least(system, group_left()), own_left());
}
