/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_UNITS_H
#define SB_BIN_UNITS_H

#include <stdint.h>
#include <stdio.h>

/* 1234567 as "1.2 MB". */
static inline char *
unit_bytes(uint64_t n, char *out, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	double v = (double)n;
	size_t u = 0;

	while (v >= 1000 && u + 1 < sizeof units / sizeof units[0]) {
		v /= 1000;
		u++;
	}
	(void)snprintf(out, size, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return out;
}

#endif
