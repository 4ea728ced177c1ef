/* SPDX-License-Identifier: MIT */
/*
 * floor walk DIR     seconds to list DIR and statx each entry, one thread
 * floor speed FILE   MB/s of XXH3-128 and of zstd at some levels on FILE's bytes, one thread
 *
 * What no program that looks at every entry, or digests and compresses every byte, can go below.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

enum {
	SPEED_MAX = 64 << 20,
};

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Takes `fd` over. Returns the number of entries, or -1. */
static long
walk(int fd)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;
	long n = 0;

	if (!d) {
		(void)close(fd);
		return -1;
	}
	while (n >= 0 && (e = readdir(d))) {
		struct statx st;
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (statx(dirfd(d), e->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) < 0) {
			n = -1;
			break;
		}
		n++;
		if (!S_ISDIR(st.stx_mode))
			continue;
		sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0) {
			n = -1;
		} else {
			long below = walk(sub);

			n = below < 0 ? -1 : n + below;
		}
	}
	(void)closedir(d);
	return n;
}

static int
floor_walk(const char *path)
{
	double t = now();
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n = fd < 0 ? -1 : walk(fd);

	if (n < 0) {
		(void)fprintf(stderr, "floor: walk %s: %s\n", path, strerror(errno));
		return 1;
	}
	printf("{\"entries\":%ld,\"seconds\":%.6f}\n", n, now() - t);
	return 0;
}

static int
floor_speed(const char *path)
{
	static const int levels[] = { 1, 3, 9 };
	size_t len, cap = ZSTD_compressBound(SPEED_MAX);
	char *in = malloc(SPEED_MAX), *out = malloc(cap);
	FILE *f = fopen(path, "rb");
	XXH128_hash_t sink;
	double t;

	if (!in || !out || !f) {
		(void)fprintf(stderr, "floor: %s: %s\n", path, strerror(errno));
		free(in);
		free(out);
		if (f)
			(void)fclose(f);
		return 1;
	}
	len = fread(in, 1, SPEED_MAX, f);
	(void)fclose(f);
	memset(out, 0, cap);
	t = now();
	sink = XXH3_128bits(in, len);
	t = now() - t;
	printf("{\"bytes\":%zu,\"xxh3_mb_s\":%.0f,\"digest\":\"%016llx\"", len,
		(double)len / t / 1e6, (unsigned long long)sink.low64);
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		size_t n;

		t = now();
		n = ZSTD_compress(out, cap, in, len, levels[i]);
		t = now() - t;
		printf(",\"zstd%d_mb_s\":%.0f,\"zstd%d_ratio\":%.2f", levels[i],
			(double)len / t / 1e6, levels[i],
			ZSTD_isError(n) ? 0 : (double)len / (double)n);
	}
	printf("}\n");
	free(in);
	free(out);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "walk") == 0)
		return floor_walk(argv[2]);
	if (argc == 3 && strcmp(argv[1], "speed") == 0)
		return floor_speed(argv[2]);
	(void)fprintf(stderr, "usage: floor walk DIR | floor speed FILE\n");
	return 2;
}
