/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_CGROUP_H
#define SB_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * A control group below the host's own, in version 2 or in the hierarchies of version 1. The struct
 * has only what the machine offers: a host without control groups works, with fewer limits.
 */
enum { SB_CGROUP_MEMORY, SB_CGROUP_PIDS, SB_CGROUP_CPU, SB_CGROUP_FREEZER, SB_CGROUP_KINDS };

struct sb_cgroup {
	bool v2;
	char *dir[SB_CGROUP_KINDS]; /* NULL: not there. With version 2 all are the same directory */
};

struct sb_cgroup_limits {
	uint64_t memory; /* bytes; 0: no limit, as below */
	uint64_t pids;
	double cpus;
};

/*
 * Finds where groups can be made, controller by controller; all NULL when nowhere. An ordinary user
 * has what was delegated to them.
 */
void sb_cgroup_probe(struct sb_cgroup *out);
/* The groups that a process is in. */
void sb_cgroup_where(pid_t pid, struct sb_cgroup *out);
/*
 * Makes (or finds again) the group `name` below `at`. SB_E_RUNTIME when a limit does not hold for
 * which `at` has a controller; without limits it never fails, and what could not be made is NULL.
 */
int sb_cgroup_make(const struct sb_cgroup *at, const char *name, const struct sb_cgroup_limits *l,
	struct sb_cgroup *out, struct sb_error *err);
/* Those groups called `name` that a process is in, wherever the host was that made them. */
void sb_cgroup_of(pid_t pid, const char *name, struct sb_cgroup *out);
/*
 * Keeps in a file where groups were made; hands out all places that it has, one hierarchy at a
 * time.
 */
int sb_cgroup_remember(const char *file, const struct sb_cgroup *at, struct sb_error *err);
void sb_cgroup_recall(const char *file, void (*fn)(const struct sb_cgroup *at, void *arg),
	void *arg);
/* Whether that directory is there and none of a lower number: version 2 has it several times. */
bool sb_cgroup_distinct(const struct sb_cgroup *g, int kind);
/* "cgroup2", "cgroup1", or NULL: what holds a limit of that kind. */
const char *sb_cgroup_holds(const struct sb_cgroup *g, int kind);
/* Calls `fn` once for each group in `at` whose name begins with `prefix`. */
void sb_cgroup_each(const struct sb_cgroup *at, const char *prefix,
	void (*fn)(const char *name, void *arg), void *arg);
void sb_cgroup_clear(struct sb_cgroup *g);
/* Gives the group another name. False: it cannot be, and the group is gone. Version 1 only. */
bool sb_cgroup_rename(struct sb_cgroup *g, const char *name);

/*
 * Stops or continues everything in the group and waits until it did. SB_E_UNSUPPORTED without a
 * freezer.
 */
int sb_cgroup_freeze(const struct sb_cgroup *g, bool freeze, sb_deadline d, struct sb_error *err);
/* How many processes the kernel killed so far because the group was out of memory. */
uint64_t sb_cgroup_ooms(const struct sb_cgroup *g);
/*
 * Kills what is in the group but for the `n` of `keep`, all at once. False without a freezer, or
 * when something stays.
 */
bool sb_cgroup_empty(const struct sb_cgroup *g, const pid_t *keep, size_t n, sb_deadline d);
/* Kills what is in the group and removes it. Returns false when something stays. */
bool sb_cgroup_remove(const struct sb_cgroup *g, sb_deadline d);

#endif
