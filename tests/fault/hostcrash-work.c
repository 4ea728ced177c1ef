/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sb/host-exec.h>

#include "tests/fault/hostcrash.h"

struct worker {
	struct crash *c;
	struct sb_host *h;
	int log;
	int n;
	unsigned seed;
};

/* One write a line: it is in the file or not, whenever we die. */
static void SB_PRINTF(2, 3)
say(struct worker *w, const char *fmt, ...)
{
	char line[700];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (n <= 0 || write(w->log, line, (size_t)n) != n)
		_exit(3);
}

/* The outcome of what was begun: acknowledged, or refused for a reason that the contract knows. */
static void
answer(struct worker *w, int r, const char *what, const char *id, const char *name, const struct sb_error *err)
{
	switch (r) {
	case 0: say(w, "a %s %s %s\n", what, id, name); break;
	case SB_E_SESSION_PAUSED:
	case SB_E_SESSION_EXISTS:
	case SB_E_SESSION_NOT_FOUND:
	case SB_E_SNAPSHOT_NOT_FOUND:
	case SB_E_SNAPSHOT_HELD:
	case SB_E_SNAPSHOT_IN_USE:
	case SB_E_NO_SNAPSHOTS:
	case SB_E_EXISTS:
	case SB_E_HOLD_NOT_FOUND:
	case SB_E_POOL_FULL:
	case SB_E_INVALID_STATE: say(w, "f %s %s %s\n", what, id, name); break;
	default: say(w, "x %s %s %d %s\n", what, id, r, err->msg);
	}
}

long
crash_value(const char *mountpoint)
{
	char path[800], text[32] = "";
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "%s/v", mountpoint);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	(void)close(fd);
	return n > 0 ? strtol(text, NULL, 10) : -1;
}

static void
write_value(struct worker *w, const struct sb_host_session *s)
{
	static const char tmp_name[] = "v.new";
	char path[800], tmp[800], text[32];
	long v = rand_r(&w->seed) % 1000000;
	int n = snprintf(text, sizeof text, "%ld", v);
	int fd;

	(void)snprintf(path, sizeof path, "%s/v", s->mountpoint);
	(void)snprintf(tmp, sizeof tmp, "%s/%s", s->mountpoint, tmp_name);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n || close(fd) < 0)
		return;
	say(w, "b write %s %ld\n", s->id, v);
	if (rename(tmp, path) == 0)
		say(w, "a write %s %ld\n", s->id, v);
}

/* A random snapshot of the session, "" when there is none. */
static void
pick(struct worker *w, const char *id, char out[SB_HOST_NAME_MAX + 1])
{
	struct sb_host_snapshot *v;
	struct sb_error err;
	size_t n;

	out[0] = '\0';
	if (sb_host_snapshot_list(w->h, id, NULL, &v, &n, &err) < 0)
		return;
	if (n > 0)
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", v[rand_r(&w->seed) % n].name);
	sb_host_snapshots_free(v, n);
}

static void
make(struct worker *w, const char *id)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	char from[16], snap[SB_HOST_NAME_MAX + 1] = "";
	struct sb_host_session s = { 0 };
	struct sb_error err = { 0 };
	int r;

	o.id = id;
	o.base = w->c->base;
	(void)snprintf(from, sizeof from, "t%d-%d", w->n, rand_r(&w->seed) % (int)w->c->slots);
	if (strcmp(from, id) != 0 && rand_r(&w->seed) % 2)
		pick(w, from, snap);
	if (snap[0]) {
		say(w, "b fork %s %s %s\n", id, from, snap);
		r = sb_host_session_fork(w->h, from, snap, &o, NULL, &s, &err);
		answer(w, r, "fork", id, snap, &err);
	} else {
		say(w, "b create %s\n", id);
		r = sb_host_session_create(w->h, &o, NULL, &s, &err);
		answer(w, r, "create", id, "-", &err);
	}
	sb_host_session_clear(&s);
}

static void
snapshot(struct worker *w, const struct sb_host_session *s, bool turn)
{
	struct sb_host_snapshot sn = { 0 };
	struct sb_error err = { 0 };
	long v = crash_value(s->mountpoint);
	char name[32];
	int r;

	(void)snprintf(name, sizeof name, "n%d", rand_r(&w->seed) % 100000);
	say(w, "b snap %s %s %ld\n", s->id, turn ? "turn" : name, v);
	r = turn ? sb_host_turn_complete(w->h, s->id, NULL, &sn, &err)
		 : sb_host_snapshot_create(w->h, s->id, name, NULL, &sn, &err);
	if (r == 0)
		say(w, "a snap %s %s %ld\n", s->id, sn.name[0] ? sn.name : "-", v);
	else
		answer(w, r, "snap", s->id, name, &err);
	sb_host_snapshot_clear(&sn);
}

static void
on_snapshot(struct worker *w, const char *id, int what)
{
	char name[SB_HOST_NAME_MAX + 1];
	struct sb_error err = { 0 };
	int r;

	pick(w, id, name);
	if (!name[0])
		return;
	if (what == 0) {
		say(w, "b del %s %s\n", id, name);
		r = sb_host_snapshot_delete(w->h, id, name, NULL, &err);
		answer(w, r, "del", id, name, &err);
	} else if (what == 1) {
		say(w, "b roll %s %s\n", id, name);
		r = sb_host_session_rollback(w->h, id, name, false, NULL, &err);
		answer(w, r, "roll", id, name, &err);
	} else if (what == 2) {
		say(w, "b hold %s %s\n", id, name);
		r = sb_host_snapshot_hold(w->h, id, name, "tag", NULL, &err);
		answer(w, r, "hold", id, name, &err);
	} else {
		say(w, "b free %s %s\n", id, name);
		r = sb_host_snapshot_release(w->h, id, name, "tag", NULL, &err);
		answer(w, r, "free", id, name, &err);
	}
}

/* A tool that is likely to be running when we die. */
static void
tool(struct worker *w, const char *id)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;
	struct sb_error err = { 0 };
	char params[600];

	(void)snprintf(params, sizeof params, "{\"cmd\":\"export %s=%s; sleep 0.0%d & sleep 0.0%d; wait\"}", CRASH_ENV,
		w->c->dir, rand_r(&w->seed) % 10, rand_r(&w->seed) % 10);
	q.session = id;
	q.tool = "bash";
	q.params = params;
	if (sb_host_tool_execute(w->h, &q, NULL, &r, &err) == 0)
		sb_host_tool_result_clear(&r);
	else if (err.code != SB_E_SESSION_PAUSED && err.code != SB_E_INVALID_STATE)
		say(w, "x tool %s %d %s\n", id, err.code, err.msg);
}

static void
process(struct worker *w, const struct sb_host_session *s)
{
	const char *const args[] = { "1000", NULL };
	char var[500];
	const char *const env[] = { var, NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p, *v;
	struct sb_error err = { 0 };
	size_t n;

	(void)snprintf(var, sizeof var, "%s=%s", CRASH_ENV, w->c->dir);
	l.session = s->id;
	l.binary = "sleep";
	l.args = args;
	l.env = env;
	if (s->processes < 2 && sb_host_process_launch(w->h, &l, NULL, &p, &err) == 0) {
		sb_host_process_clear(&p);
	} else if (sb_host_process_list(w->h, s->id, &v, &n, &err) == 0) {
		if (n > 0)
			(void)sb_host_process_kill(w->h, s->id, v[rand_r(&w->seed) % n].id, 0, &err);
		sb_host_processes_free(v, n);
	}
}

static void
step(struct worker *w)
{
	struct sb_error err = { 0 };
	struct sb_host_session s;
	char id[16];
	int r;

	(void)snprintf(id, sizeof id, "t%d-%d", w->n, rand_r(&w->seed) % (int)w->c->slots);
	if (sb_host_session_get(w->h, id, false, &s, &err) < 0) {
		make(w, id);
		return;
	}
	switch (rand_r(&w->seed) % 14) {
	case 0:
		say(w, "b destroy %s\n", id);
		r = sb_host_session_destroy(w->h, id, rand_r(&w->seed) % 2 == 0, NULL, &err);
		answer(w, r, "destroy", id, "-", &err);
		break;
	case 1:
		say(w, "b pause %s\n", id);
		answer(w, sb_host_session_pause(w->h, id, NULL, &err), "pause", id, "-", &err);
		break;
	case 2:
	case 3:
		say(w, "b resume %s\n", id);
		answer(w, sb_host_session_resume(w->h, id, NULL, &err), "resume", id, "-", &err);
		break;
	case 4: snapshot(w, &s, false); break;
	case 5:
	case 6: snapshot(w, &s, true); break;
	case 7: on_snapshot(w, id, rand_r(&w->seed) % 2 ? 0 : 3); break;
	case 8: on_snapshot(w, id, 1); break;
	case 9: on_snapshot(w, id, 2); break;
	case 10: tool(w, id); break;
	case 11: process(w, &s); break;
	default: write_value(w, &s); break;
	}
	sb_host_session_clear(&s);
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	for (;;)
		step(w);
	return NULL;
}

int
crash_work(struct crash *c, unsigned seed)
{
	struct sb_error err = { 0 };
	struct worker w[CRASH_THREADS];
	pthread_t t[CRASH_THREADS];
	struct sb_host *h = sb_host_open(&c->o, &err);
	int log = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (!h || log < 0 || sb_host_start(h, &err) < 0) {
		printf("# child: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < CRASH_THREADS; i++) {
		w[i] = (struct worker){ .c = c, .h = h, .log = log, .n = i, .seed = seed * 7919 + (unsigned)i };
		if (pthread_create(&t[i], NULL, work, &w[i]) != 0)
			return 1;
	}
	for (int i = 0; i < CRASH_THREADS; i++)
		(void)pthread_join(t[i], NULL);
	return 0;
}
