/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/spawn.h>

#include "tests/fault/hostcrash.h"

static void
print_log(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	printf("# %s: %s\n", component, text);
}

void
crash_init(struct crash *c, const char *dir, const char *pool)
{
	*c = (struct crash){ .dir = dir, .pool = pool, .o = SB_HOST_OPTS_INIT };
	c->slots = getenv("SB_CRASH_SLOTS") ? (unsigned)strtoul(getenv("SB_CRASH_SLOTS"), NULL, 10) : 3;
	if (c->slots < 1 || c->slots > CRASH_SLOTS)
		c->slots = CRASH_SLOTS;
	(void)snprintf(c->state_dir, sizeof c->state_dir, "%s/state", dir);
	(void)snprintf(c->log, sizeof c->log, "%s/log", dir);
	c->o.state_dir = c->state_dir;
	c->o.keep_turn = CRASH_KEEP;
	c->o.log = (struct sb_log){ .fn = print_log, .level = SB_LOG_WARN };
	if (pool) {
		(void)snprintf(c->sessions, sizeof c->sessions, "%s/crash", pool);
		(void)snprintf(c->bases, sizeof c->bases, "%s/bases", pool);
		c->o.pool = pool;
		c->o.bases_dataset = c->bases;
		c->o.sessions_dataset = c->sessions;
		c->base = "img@initial";
	} else {
		(void)snprintf(c->sessions, sizeof c->sessions, "%s/sessions", dir);
		(void)snprintf(c->bases, sizeof c->bases, "%s/bases", dir);
		c->o.storage = SB_HOST_LOCAL_DISK;
		c->o.sessions_root_dir = c->sessions;
		c->o.bases_dir = c->bases;
		c->base = "img";
	}
}

/* Names in the storage: sessions, and left-overs that must not be there. */
static void
count(struct crash *c, size_t *sessions, size_t *leftovers)
{
	const char *const argv[] = { "zfs", "list", "-H", "-r", "-t", "filesystem", "-o", "name,sbhost:dead",
		c->sessions, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	size_t len = strlen(c->sessions);
	struct dirent *e;
	struct sb_buf out;
	char *text, *line;
	DIR *d;

	*sessions = *leftovers = 0;
	if (!c->pool) {
		d = opendir(c->sessions);
		while (d && (e = readdir(d)))
			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				*(e->d_name[0] == '.' ? leftovers : sessions) += 1;
		if (d)
			(void)closedir(d);
		return;
	}
	o.search_path = true;
	sb_buf_init(&out, 1 << 20);
	(void)sb_run(argv, &o, NULL, 0, &out, NULL, NULL, sb_deadline_in(30000), NULL);
	text = (char *)out.data;
	while ((line = strsep(&text, "\n"))) {
		char *name = strsep(&line, "\t");
		bool dead = line && strcmp(line, "1") == 0;

		/* `_2-ID` is a session, `_view-...` is not. */
		if (strlen(name) > len + 2)
			*(dead || (name[len + 1] == '_' && name[len + 2] > '9') ? leftovers : sessions) += 1;
	}
	sb_buf_free(&out);
}

/* Data kept aside is right only while there are forks. Busy ones get time. */
static bool
check_storage(struct crash *c, struct sb_host *h)
{
	struct sb_host_session *v;
	size_t n, forks = 0, sessions, leftovers;
	struct sb_error err = { 0 };

	if (sb_host_session_list(h, NULL, &v, &n, &err) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		forks += v[i].parent[0] != '\0';
	sb_host_sessions_free(v, n);
	for (int i = 0; i < 100; i++) {
		count(c, &sessions, &leftovers);
		if (sessions == n && (leftovers == 0 || forks > 0))
			return true;
		(void)usleep(100000);
	}
	printf("# %zu sessions, %zu forks; the storage has %zu and %zu left over\n", n, forks, sessions, leftovers);
	return false;
}

/* Processes on this machine that a session of ours started. */
static size_t
count_processes(const struct crash *c)
{
	char want[500], path[300], env[4096];
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	(void)snprintf(want, sizeof want, "%s=%s", CRASH_ENV, c->dir);
	while (d && (e = readdir(d))) {
		ssize_t len = 0;
		int fd;

		/* Not the helper that waits for it. */
		(void)snprintf(path, sizeof path, "/proc/%s/exe", e->d_name);
		len = readlink(path, env, sizeof env - 1);
		env[len > 0 ? len : 0] = '\0';
		if (len > 7 && strcmp(env + len - 7, "/sb-box") == 0)
			continue;
		(void)snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		len = read(fd, env, sizeof env - 1);
		(void)close(fd);
		env[len > 0 ? len : 0] = '\0';
		for (char *p = env; len > 0 && p < env + len; p += strlen(p) + 1)
			n += strcmp(p, want) == 0;
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* Every process that lives is one the host knows, and the other way round. */
static bool
check_processes(struct crash *c, struct sb_host *h)
{
	struct sb_error err = { 0 };
	struct sb_host_session *v;
	size_t n, known = 0, there = 0;

	for (int i = 0; i < 100; i++) {
		known = 0;
		if (sb_host_session_list(h, NULL, &v, &n, &err) < 0)
			return false;
		for (size_t k = 0; k < n; k++)
			known += v[k].processes;
		sb_host_sessions_free(v, n);
		there = count_processes(c);
		if (known == there)
			return true;
		(void)usleep(100000);
	}
	printf("# the host knows %zu processes, %zu are there\n", known, there);
	return false;
}

/* After the last round: everything can be destroyed, and then nothing is left. */
static bool
check_end(struct crash *c)
{
	struct sb_error err = { 0 };
	struct sb_host *h = sb_host_open(&c->o, &err);
	struct sb_host_session *v;
	size_t n, sessions, leftovers = 1;
	bool good = h && sb_host_start(h, &err) == 0 && sb_host_session_list(h, NULL, &v, &n, &err) == 0;

	printf("# %zu sessions at the end\n", good ? n : 0);
	for (size_t i = 0; good && i < n; i++)
		if (sb_host_session_destroy(h, v[i].id, true, NULL, &err) < 0) {
			printf("# destroy %s: %s\n", v[i].id, err.msg);
			good = false;
		}
	if (good)
		sb_host_sessions_free(v, n);
	for (int i = 0; good && i < 100 && leftovers > 0; i++) {
		count(c, &sessions, &leftovers);
		leftovers += sessions + count_processes(c);
		if (leftovers > 0)
			(void)usleep(100000);
	}
	if (leftovers > 0)
		printf("# %zu things are left over\n", leftovers);
	sb_host_close(h);
	return good && leftovers == 0;
}

/* What was being destroyed is gone soon, although the storage may have been busy at the start. */
static bool
wait_destroyed(struct sb_host *h)
{
	struct sb_host_filter f = SB_HOST_FILTER_INIT;
	struct sb_host_session *v;
	struct sb_error err = { 0 };
	size_t n = 1;

	f.states = 1u << SB_HOST_DESTROYING;
	for (int i = 0; i < 300 && n > 0; i++) {
		if (sb_host_session_list(h, &f, &v, &n, &err) < 0)
			return false;
		sb_host_sessions_free(v, n);
		if (n > 0)
			(void)usleep(100000);
	}
	if (n > 0)
		printf("# %zu sessions are still being destroyed\n", n);
	return n == 0;
}

static bool
round_of(struct crash *c, const char *self, unsigned seed)
{
	char num[16];
	const char *const argv[] = { self, "work", c->dir, num, c->pool, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	unsigned ms = seed % 7 == 0 ? seed % 60 : 60 + seed % (c->pool ? 3000 : 300);
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	struct sb_child child;
	struct sb_host *h;
	bool good;

	(void)snprintf(num, sizeof num, "%u", seed);
	o.io[1] = o.io[2] = SB_SPAWN_INHERIT;
	if (sb_spawn(argv, &o, &child, &err) < 0) {
		printf("# %s\n", err.msg);
		return false;
	}
	(void)nanosleep(&ts, NULL);
	(void)kill(child.pid, SIGKILL);
	(void)sb_child_wait(&child, NULL, SB_NEVER, &err);
	good = WIFSIGNALED(child.status);
	h = sb_host_open(&c->o, &err);
	if (!h) {
		printf("# open after the crash: %s\n", err.msg);
		return false;
	}
	if (sb_host_start(h, &err) < 0)
		good = false;
	good &= wait_destroyed(h) && crash_check(c, h, seed) && check_storage(c, h) && check_processes(c, h);
	sb_host_close(h);
	return good;
}

/* hostcrash DIR ROUNDS SEED [POOL]; one TAP line. */
int
main(int argc, char **argv)
{
	struct crash c;
	unsigned long rounds, seed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 4 && strcmp(argv[1], "work") == 0) {
		crash_init(&c, argv[2], argc > 4 ? argv[4] : NULL);
		return crash_work(&c, (unsigned)strtoul(argv[3], NULL, 10));
	}
	if (argc < 4) {
		fprintf(stderr, "usage: hostcrash DIR ROUNDS SEED [POOL]\n");
		return 2;
	}
	crash_init(&c, argv[1], argc > 4 ? argv[4] : NULL);
	rounds = strtoul(argv[2], NULL, 10);
	seed = strtoul(argv[3], NULL, 10);
	for (unsigned long i = 0; i < rounds; i++) {
		srand((unsigned)(seed + i));
		if (!round_of(&c, argv[0], (unsigned)rand())) {
			printf("# round %lu of seed %lu failed\n", i, seed);
			return 1;
		}
	}
	printf("# %lu operations acknowledged\n", crash_acked());
	if (!check_end(&c))
		return 1;
	/* A child that never got to work would prove nothing. */
	return crash_acked() >= rounds ? 0 : 1;
}
