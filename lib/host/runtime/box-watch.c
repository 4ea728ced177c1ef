/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/box-watch.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/str.h>
#include <base/thread.h>

#define LOOK_MS 100

/* One box: by the process namespace of its first process. */
struct watched {
	struct watched *next;
	char name[96];
	pid_t pid;
	ino_t space;
	uint64_t ooms;
	uint64_t sum; /* bytes, in this round */
	uint64_t most;
	pid_t largest;
};

struct sb_box_watch {
	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	pthread_t thread;
	bool stop;
	uint64_t limit;
	struct watched *first;
};

static ino_t
space_of(const char *pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof path, "/proc/%.16s/ns/pid", pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* What the process has for itself, in bytes: neither files nor memory that it shares. */
static uint64_t
memory_of(const char *pid)
{
	char path[64], text[128] = "";
	unsigned long long size, resident = 0, shared = 0;
	sb_autoclose int fd = -1;

	(void)snprintf(path, sizeof path, "/proc/%.16s/statm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 ||
		sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	return resident > shared ? (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void
count(struct sb_box_watch *w, const char *pid)
{
	ino_t space = space_of(pid);

	for (struct watched *x = space ? w->first : NULL; x; x = x->next)
		if (x->space == space) {
			uint64_t n = memory_of(pid);

			x->sum += n;
			if (n > x->most && strtol(pid, NULL, 10) != x->pid) {
				x->most = n;
				x->largest = (pid_t)strtol(pid, NULL, 10);
			}
			return;
		}
}

/* With `mu` held. */
static void
look(struct sb_box_watch *w)
{
	sb_autoclosedir DIR *d = opendir("/proc");
	struct dirent *e;

	for (struct watched **p = &w->first; *p;) {
		struct watched *x = *p;
		char pid[16];

		(void)snprintf(pid, sizeof pid, "%d", (int)x->pid);
		if (space_of(pid) != x->space) {
			*p = x->next;
			free(x);
			continue;
		}
		x->sum = x->most = 0;
		x->largest = 0;
		p = &x->next;
	}
	while (d && w->first && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			count(w, e->d_name);
	for (struct watched *x = w->first; x; x = x->next)
		if (x->sum > w->limit && x->largest > 1 && kill(x->largest, SIGKILL) == 0)
			x->ooms++;
}

static void *
run(void *arg)
{
	struct sb_box_watch *w = arg;

	(void)pthread_mutex_lock(&w->mu);
	while (!w->stop) {
		look(w);
		sb_cond_wait_until(&w->cv, &w->mu, w->first ? sb_deadline_in(LOOK_MS) : SB_NEVER);
	}
	(void)pthread_mutex_unlock(&w->mu);
	return NULL;
}

/* With the list's `mu` held. */
static struct sb_box_watch *
start(struct sb_box_runtime *b)
{
	struct sb_box_watch *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->limit = b->o->session_mem_mb << 20;
	(void)pthread_mutex_init(&w->mu, NULL);
	sb_cond_init(&w->cv);
	if (pthread_create(&w->thread, NULL, run, w) == 0)
		return w;
	(void)pthread_mutex_destroy(&w->mu);
	(void)pthread_cond_destroy(&w->cv);
	free(w);
	return NULL;
}

int
sb_box_watch_add(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err)
{
	struct watched *x;
	char pid[16];

	if (!b->kind->watched || !b->o->session_mem_mb || box->group.dir[SB_CGROUP_MEMORY])
		return 0;
	(void)pthread_mutex_lock(&b->mu);
	if (!b->watch)
		b->watch = start(b);
	(void)pthread_mutex_unlock(&b->mu);
	x = calloc(1, sizeof *x);
	if (!b->watch || !x) {
		free(x);
		return sb_fail(err, SB_E_NOMEM, "watch the memory of a sandbox");
	}
	x->pid = box->pid;
	(void)snprintf(x->name, sizeof x->name, "%s", box->name);
	(void)snprintf(pid, sizeof pid, "%d", (int)box->pid);
	x->space = space_of(pid);
	if (!x->space) {
		free(x);
		return sb_fail(err, SB_E_RUNTIME, "the memory of the sandbox cannot be watched");
	}
	(void)pthread_mutex_lock(&b->watch->mu);
	for (struct watched *y = b->watch->first; y; y = y->next)
		if (y->pid == x->pid && y->space == x->space) {
			(void)pthread_mutex_unlock(&b->watch->mu);
			free(x);
			return 0;
		}
	x->next = b->watch->first;
	b->watch->first = x;
	(void)pthread_cond_signal(&b->watch->cv);
	(void)pthread_mutex_unlock(&b->watch->mu);
	return 0;
}

uint64_t
sb_box_watch_ooms(struct sb_box_runtime *b, const struct sb_box *box)
{
	struct sb_box_watch *w;
	uint64_t n = 0;

	(void)pthread_mutex_lock(&b->mu);
	w = b->watch;
	(void)pthread_mutex_unlock(&b->mu);
	if (!w)
		return 0;
	(void)pthread_mutex_lock(&w->mu);
	for (struct watched *x = w->first; x; x = x->next)
		if (strcmp(x->name, box->name) == 0)
			n += x->ooms;
	(void)pthread_mutex_unlock(&w->mu);
	return n;
}

void
sb_box_watch_stop(struct sb_box_runtime *b)
{
	struct sb_box_watch *w = b->watch;

	if (!w)
		return;
	(void)pthread_mutex_lock(&w->mu);
	w->stop = true;
	(void)pthread_cond_signal(&w->cv);
	(void)pthread_mutex_unlock(&w->mu);
	(void)pthread_join(w->thread, NULL);
	while (w->first) {
		struct watched *x = w->first;

		w->first = x->next;
		free(x);
	}
	(void)pthread_mutex_destroy(&w->mu);
	(void)pthread_cond_destroy(&w->cv);
	free(w);
	b->watch = NULL;
}
