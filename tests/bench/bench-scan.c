/* SPDX-License-Identifier: MIT */
/*
 * How long scans of a tree take and what they hold: bench-scan DIR [JOBS]. Prints a cold scan
 * (everything hashed), saving and loading of the cache, and warm scans with it. The cache file is
 * made in the current directory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <sync/scan/scan.h>

#define CACHE "bench-scan.cache"

static double
now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Resident now, in MiB. */
static double
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		(void)fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double
peak(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	return (double)ru.ru_maxrss / 1024;
}

/* Seconds of processor time so far. */
static double
cpu(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
		(double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

static int
scan(int fd, const struct sb_manifest *cache, unsigned jobs, const char *what, struct sb_scan *out)
{
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };
	double t = now(), used = cpu(), rss = resident();

	o.cache = cache;
	o.jobs = jobs;
	if (sb_scan_run(fd, &o, out, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	t = now() - t;
	used = cpu() - used;
	printf("%-6s %8.3f s (%.3f s of processor)  %llu entries, %llu hashed, %.1f MB, %zu "
	       "skipped; +%.1f MiB (%.0f bytes an entry), "
	       "peak %.1f MiB\n",
		what, t, used, (unsigned long long)out->manifest->count,
		(unsigned long long)out->hashed_files, (double)out->hashed_bytes / 1e6,
		out->n_skipped, resident() - rss,
		(resident() - rss) * (1 << 20) / (double)(out->manifest->count + 1), peak());
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned jobs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	int fd = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	struct sb_scan s = { 0 };
	struct sb_manifest *cache;
	struct sb_error err = { 0 };
	double t;

	if (fd < 0) {
		(void)fprintf(stderr, "usage: bench-scan DIR [JOBS]\n");
		return 2;
	}
	if (access(CACHE, R_OK) != 0) {
		if (scan(fd, NULL, jobs, "cold", &s) < 0)
			return 1;
		t = now();
		if (sb_manifest_save(s.manifest, true, false, AT_FDCWD, CACHE, &err) < 0) {
			(void)fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		printf("save   %8.3f s, peak %.1f MiB\n", now() - t, peak());
		sb_scan_free(&s);
		return 0;
	}
	t = now();
	cache = sb_manifest_load(AT_FDCWD, CACHE, &err);
	if (!cache) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	printf("load   %8.3f s, %.1f MiB\n", now() - t, resident());
	for (int i = 0; i < 5; i++) {
		if (scan(fd, cache, jobs, "warm", &s) < 0)
			return 1;
		sb_scan_free(&s);
	}
	t = now();
	if (sb_manifest_finish(cache, &err) < 0)
		return 1;
	printf("finish %8.3f s\n", now() - t);
	sb_manifest_free(cache);
	return 0;
}
