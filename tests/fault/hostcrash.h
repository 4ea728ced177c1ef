/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_HOSTCRASH_H
#define SB_TESTS_HOSTCRASH_H

#include <stdbool.h>
#include <stddef.h>

#include <sb/host-snapshot.h>
#include <sb/host.h>

/*
 * The host under kill -9. A child works on it with several threads and writes what it begins and what was
 * acknowledged to a log; the parent kills it at a random moment, opens the host itself and compares.
 */
#define CRASH_THREADS 4
#define CRASH_SLOTS 13 /* sessions a thread may own: t<thread>-<slot> */
#define CRASH_ENV "SB_CRASH_DIR" /* is in the environment of everything that runs in a session */
#define CRASH_KEEP 5  /* turn snapshots kept */

struct crash {
	const char *dir;  /* state, log */
	unsigned slots;   /* sessions a thread owns, SB_CRASH_SLOTS of the environment or 3 */
	const char *pool; /* NULL: local-disk */
	char state_dir[400], sessions[400], bases[400], log[400];
	const char *base;
	struct sb_host_opts o;
};

void crash_init(struct crash *c, const char *dir, const char *pool);
/* The file `v` of a session; -1 when it is not there. */
long crash_value(const char *mountpoint);

/* In the child: works until it is killed. */
int crash_work(struct crash *c, unsigned seed);

/* In the parent: true when the host agrees with the log; else complains on stdout. Empties the log. */
bool crash_check(struct crash *c, struct sb_host *h, unsigned seed);
/* Operations acknowledged so far. */
unsigned long crash_acked(void);

#endif
