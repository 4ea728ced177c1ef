/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_NSTIME_H
#define SBSYNC_NSTIME_H

#include <stdint.h>
#include <time.h>

/*
 * Times of files as nanoseconds since the epoch. A time beyond the year 2262 (or before 1677)
 * becomes the last one that fits. All code must use these functions: two ways to count would see a
 * change in every such file.
 */
static inline int64_t
sb_ns_of(int64_t sec, int64_t nsec)
{
	if (sec > INT64_MAX / 1000000000 - 1)
		return INT64_MAX;
	if (sec < INT64_MIN / 1000000000 + 1)
		return INT64_MIN;
	return sec * 1000000000 + nsec;
}

static inline int64_t
sb_ns_from(struct timespec t)
{
	return sb_ns_of(t.tv_sec, t.tv_nsec);
}

static inline struct timespec
sb_ns_to(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += 1000000000;
	}
	return t;
}

#endif
