/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/cgroup.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>

#define CPU_PERIOD_US 100000

static const char *const controllers[SB_CGROUP_KINDS] = { "memory", "pids", "cpu", "freezer" };

static bool
put(const char *dir, const char *file, const char *text)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, file);
	sb_autoclose int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool
get(const char *dir, const char *file, char *buf, size_t size)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, file);
	sb_autoclose int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;

	buf[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

/* Whether `word` is in a list with commas. */
static bool
listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len)
		if ((p == list || p[-1] == ',') &&
			(p[len] == '\0' || p[len] == ',' || p[len] == '\n'))
			return true;
	return false;
}

/* The group of a process in the hierarchy with that controller ("" is version 2), or NULL. */
static char *
own_path(pid_t pid, const char *controller)
{
	char buf[8192], proc[32], *save = NULL;

	(void)snprintf(proc, sizeof proc, "/proc/%d", (int)pid);
	if (!get(proc, "cgroup", buf, sizeof buf))
		return NULL;
	for (char *l = strtok_r(buf, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(l, ':'), *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (*controller ? listed(names + 1, controller) : names[1] == '\0')
			return strdup(strcmp(path, "/") == 0 ? "" : path);
	}
	return NULL;
}

/* Where that hierarchy is mounted with its root at its top, or NULL. */
static char *
mount_point(const char *type, const char *controller)
{
	sb_autofclose FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	while (f && fgets(line, sizeof line, f)) {
		char root[1024], at[1024], kind[32], super[1024];
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*d %*d %*s %1023s %1023s", root, at) != 2 ||
			sscanf(dash, " - %31s %*s %1023s", kind, super) != 2)
			continue;
		if (strcmp(kind, type) == 0 && strcmp(root, "/") == 0 &&
			(!*controller || listed(super, controller)))
			return strdup(at);
	}
	return NULL;
}

static char *
group_of(pid_t pid, const char *type, const char *controller)
{
	sb_autofree char *at = mount_point(type, controller);
	sb_autofree char *own = at ? own_path(pid, controller) : NULL;

	return own ? sb_str_printf("%s%s", at, own) : NULL;
}

/* Ours, if groups can be made in it. */
static char *
below(const char *type, const char *controller)
{
	char *dir = group_of(getpid(), type, controller);

	if (dir && access(dir, W_OK) < 0) {
		free(dir);
		dir = NULL;
	}
	return dir;
}

/* Hands the controllers down, one by one: not all of them are ours everywhere. */
static bool
hand_down(const char *dir)
{
	char have[512];

	for (int i = 0; i < SB_CGROUP_FREEZER; i++) {
		char word[16];

		(void)snprintf(word, sizeof word, "+%s", controllers[i]);
		(void)put(dir, "cgroup.subtree_control", word);
	}
	return get(dir, "cgroup.subtree_control", have, sizeof have) &&
		(strstr(have, "memory") || strstr(have, "pids"));
}

/*
 * With version 2 a group that has processes cannot hand controllers down, unless it is the root.
 * Then its parent may be ours (a user's session); or we are alone in it (a service with a delegated
 * group), and move into a group of our own.
 */
static char *
probe_v2(void)
{
	char *dir = below("cgroup2", ""), *slash;
	sb_autofree char *inner = dir ? sb_str_printf("%s/sb-host", dir) : NULL;
	sb_autofree char *parent = dir ? strdup(dir) : NULL;

	if (!dir || !inner || !parent)
		goto no_use;
	if (hand_down(dir))
		return dir;
	slash = strrchr(parent, '/');
	*slash = '\0';
	if (access(parent, W_OK) == 0 && hand_down(parent)) {
		free(dir);
		return sb_steal(&parent);
	}
	if ((mkdir(inner, 0755) == 0 || errno == EEXIST) && put(inner, "cgroup.procs", "0") &&
		hand_down(dir))
		return dir;
	(void)put(dir, "cgroup.procs", "0");
	(void)rmdir(inner);
no_use:
	free(dir);
	return NULL;
}

void
sb_cgroup_probe(struct sb_cgroup *out)
{
	char *v2 = probe_v2(), have[512] = "";

	*out = (struct sb_cgroup){ .v2 = v2 != NULL };
	if (v2)
		(void)get(v2, "cgroup.subtree_control", have, sizeof have);
	for (int i = 0; i < SB_CGROUP_KINDS; i++)
		out->dir[i] = !v2 ? below("cgroup", controllers[i]) :
			i == SB_CGROUP_FREEZER || strstr(have, controllers[i]) ? strdup(v2) :
										 NULL;
	free(v2);
}

void
sb_cgroup_where(pid_t pid, struct sb_cgroup *out)
{
	sb_autofree char *v2 = group_of(pid, "cgroup2", "");
	char have[512] = "";

	*out = (struct sb_cgroup){ 0 };
	if (v2)
		(void)get(v2, "cgroup.controllers", have, sizeof have);
	out->v2 = strstr(have, "memory") || strstr(have, "pids");
	for (int i = 0; i < SB_CGROUP_KINDS; i++)
		out->dir[i] = !out->v2 ? group_of(pid, "cgroup", controllers[i]) :
			i == SB_CGROUP_FREEZER || strstr(have, controllers[i]) ? strdup(v2) :
										 NULL;
}

bool
sb_cgroup_distinct(const struct sb_cgroup *g, int kind)
{
	for (int i = 0; i < kind && g->v2; i++)
		if (g->dir[i])
			return false;
	return g->dir[kind] != NULL;
}

const char *
sb_cgroup_holds(const struct sb_cgroup *g, int kind)
{
	return !g->dir[kind] ? NULL : g->v2 ? "cgroup2" : "cgroup1";
}

void
sb_cgroup_clear(struct sb_cgroup *g)
{
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		free(g->dir[i]);
		g->dir[i] = NULL;
	}
}

static bool
put_number(const char *dir, const char *file, uint64_t v)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)v);
	return put(dir, file, text);
}

/* What is taken for a limit and is none is worse than an error. */
static bool
set_limits(const struct sb_cgroup *g, const struct sb_cgroup_limits *l)
{
	const char *mem = g->dir[SB_CGROUP_MEMORY], *pids = g->dir[SB_CGROUP_PIDS],
		   *cpu = g->dir[SB_CGROUP_CPU];
	char text[64];
	bool held = true;

	if (mem && l->memory) {
		held = put_number(mem, g->v2 ? "memory.max" : "memory.limit_in_bytes", l->memory);
		/* Not every kernel counts swap. */
		if (g->v2)
			(void)put(mem, "memory.swap.max", "0");
		else
			(void)put_number(mem, "memory.memsw.limit_in_bytes", l->memory);
	}
	if (pids && l->pids)
		held &= put_number(pids, "pids.max", l->pids);
	if (cpu && l->cpus > 0 && g->v2) {
		(void)snprintf(text, sizeof text, "%lld %d", (long long)(l->cpus * CPU_PERIOD_US),
			CPU_PERIOD_US);
		held &= put(cpu, "cpu.max", text);
	} else if (cpu && l->cpus > 0) {
		(void)put_number(cpu, "cpu.cfs_period_us", CPU_PERIOD_US);
		held &= put_number(cpu, "cpu.cfs_quota_us", (uint64_t)(l->cpus * CPU_PERIOD_US));
	}
	return held;
}

int
sb_cgroup_make(const struct sb_cgroup *at, const char *name, const struct sb_cgroup_limits *l,
	struct sb_cgroup *out, struct sb_error *err)
{
	*out = (struct sb_cgroup){ .v2 = at->v2 };
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		char *dir = at->dir[i] ? sb_str_printf("%s/%s", at->dir[i], name) : NULL;

		if (dir && mkdir(dir, 0755) < 0 && errno != EEXIST) {
			free(dir);
			dir = NULL;
		}
		out->dir[i] = dir;
		if (l && at->dir[i] && !dir)
			return sb_fail_errno(err, "make control group %s in %s", name, at->dir[i]);
	}
	if (l && !set_limits(out, l))
		return sb_fail(err, SB_E_RUNTIME, "the limits of control group %s do not hold",
			name);
	return 0;
}

bool
sb_cgroup_rename(struct sb_cgroup *g, const char *name)
{
	bool ok = !g->v2;

	for (int i = 0; i < SB_CGROUP_KINDS && ok; i++) {
		const char *slash = g->dir[i] ? strrchr(g->dir[i], '/') : NULL;
		char *to = slash ?
			sb_str_printf("%.*s/%s", (int)(slash - g->dir[i]), g->dir[i], name) :
			NULL;

		if (!slash)
			continue;
		/* What a box that died by itself left under that name. */
		(void)rmdir(to ? to : "");
		ok = to && rename(g->dir[i], to) == 0;
		if (ok) {
			free(g->dir[i]);
			g->dir[i] = to;
		} else {
			free(to);
		}
	}
	if (!ok) {
		(void)sb_cgroup_remove(g, sb_deadline_in(1000));
		sb_cgroup_clear(g);
	}
	return ok;
}

void
sb_cgroup_each(const struct sb_cgroup *at, const char *prefix,
	void (*fn)(const char *name, void *arg), void *arg)
{
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		sb_autoclosedir DIR *d = sb_cgroup_distinct(at, i) ? opendir(at->dir[i]) : NULL;
		struct dirent *e;

		while (d && (e = readdir(d)))
			if (sb_str_starts(e->d_name, prefix))
				fn(e->d_name, arg);
	}
}

int
sb_cgroup_freeze(const struct sb_cgroup *g, bool freeze, sb_deadline d, struct sb_error *err)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	const char *dir = g->dir[SB_CGROUP_FREEZER];
	const char *file = g->v2 ? "cgroup.freeze" : "freezer.state";
	const char *want = g->v2 ? (freeze ? "1" : "0") : (freeze ? "FROZEN" : "THAWED");
	char now[256];

	if (!dir)
		return sb_fail(err, SB_E_UNSUPPORTED, "no freezer");
	if (!put(dir, file, want))
		return sb_fail_errno(err, "%s/%s", dir, file);
	for (;;) {
		bool done = get(dir, g->v2 ? "cgroup.events" : file, now, sizeof now) &&
			(g->v2 ? strstr(now, freeze ? "frozen 1" : "frozen 0") != NULL :
				 strncmp(now, want, strlen(want)) == 0);

		if (done)
			return 0;
		if (sb_deadline_passed(d))
			return sb_fail(err, SB_E_TIMEOUT, "processes do not %s",
				freeze ? "freeze" : "thaw");
		(void)nanosleep(&nap, NULL);
	}
}

uint64_t
sb_cgroup_ooms(const struct sb_cgroup *g)
{
	const char *dir = g->dir[SB_CGROUP_MEMORY];
	char text[512];
	const char *p;

	if (!dir || !get(dir, g->v2 ? "memory.events" : "memory.oom_control", text, sizeof text))
		return 0;
	p = strstr(text, "oom_kill ");
	return p ? strtoull(p + strlen("oom_kill "), NULL, 10) : 0;
}

/* One round of SIGKILL over its members. */
static void
kill_members(const char *dir)
{
	char text[65536], *end;

	if (put(dir, "cgroup.kill", "1") || !get(dir, "cgroup.procs", text, sizeof text))
		return;
	for (const char *p = text; *p; p = *end ? end + 1 : end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		/* Membership is what makes it ours, and it lasts until the process is gone. */
		if (pid > 1 && pid != getpid())
			(void)kill((pid_t)pid, SIGKILL);
	}
}

/* SIGKILL to its members but for `keep`; how many there are. */
static size_t
kill_others(const char *dir, const pid_t *keep, size_t n_keep)
{
	char text[65536], *end;
	size_t n = 0;

	if (!get(dir, "cgroup.procs", text, sizeof text))
		return 1;
	for (const char *p = text; *p; p = *end ? end + 1 : end) {
		long pid = strtol(p, &end, 10);
		size_t i = 0;

		if (end == p)
			break;
		while (i < n_keep && pid != keep[i])
			i++;
		if (pid <= 1 || pid == getpid() || i < n_keep)
			continue;
		(void)kill((pid_t)pid, SIGKILL);
		n++;
	}
	return n;
}

bool
sb_cgroup_empty(const struct sb_cgroup *g, const pid_t *keep, size_t n, sb_deadline d)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	const char *dir = g->dir[SB_CGROUP_FREEZER];

	/* What is frozen does not fork: one look finds all. */
	if (!dir || sb_cgroup_freeze(g, true, d, NULL) < 0)
		return false;
	(void)kill_others(dir, keep, n);
	if (sb_cgroup_freeze(g, false, d, NULL) < 0)
		return false;
	while (kill_others(dir, keep, n) > 0) {
		if (sb_deadline_passed(d))
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

bool
sb_cgroup_remove(const struct sb_cgroup *g, sb_deadline d)
{
	const struct timespec nap = { .tv_nsec = 2000000 };

	/* The frozen ones do not die before they thaw. */
	if (g->dir[SB_CGROUP_FREEZER])
		(void)put(g->dir[SB_CGROUP_FREEZER], g->v2 ? "cgroup.freeze" : "freezer.state",
			g->v2 ? "0" : "THAWED");
	for (;;) {
		bool left = false;

		for (int i = 0; i < SB_CGROUP_KINDS; i++)
			if (g->dir[i] && rmdir(g->dir[i]) < 0 && errno != ENOENT) {
				kill_members(g->dir[i]);
				left = true;
			}
		if (!left)
			return true;
		if (sb_deadline_passed(d))
			return false;
		(void)nanosleep(&nap, NULL);
	}
}
