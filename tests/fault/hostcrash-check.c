/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>

#include "tests/fault/hostcrash.h"

enum sure { NO, MAYBE, YES };

/* The value of a snapshot that came to be without an answer. */
#define UNKNOWN (-3)

#define SNAPS 400

struct msnap {
	char name[64];
	long value;
	enum sure there, held;
};

/* What the log says about one session. */
struct model {
	enum sure there, paused;
	long value, other; /* of the file `v`; `other` is as good when something was under way */
	bool doubt;
	struct msnap snap[SNAPS]; /* oldest first */
	size_t n;
};

#define SESSIONS ((size_t)CRASH_THREADS * CRASH_SLOTS)
static struct model models[SESSIONS];
static bool failed;
static unsigned long n_acked;

unsigned long
crash_acked(void)
{
	return n_acked;
}

static void SB_PRINTF(1, 2)
complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	failed = true;
}

static struct model *
model_of(const char *id)
{
	int t, s;

	if (sscanf(id, "t%d-%d", &t, &s) != 2 || t < 0 || t >= CRASH_THREADS || s < 0 || s >= CRASH_SLOTS)
		return NULL;
	return &models[t * CRASH_SLOTS + s];
}

static struct msnap *
find(struct model *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->snap[i].name, name) == 0)
			return &m->snap[i];
	return NULL;
}

static struct msnap *
add(struct model *m, const char *name, long value, enum sure there)
{
	struct msnap *s = find(m, name);

	if (!s && m->n < SNAPS)
		s = &m->snap[m->n++];
	if (!s)
		return NULL;
	(void)snprintf(s->name, sizeof s->name, "%s", name);
	s->value = value;
	s->there = there;
	s->held = NO;
	return s;
}

static void
drop_after(struct model *m, const struct msnap *s, bool done)
{
	size_t at = (size_t)(s - m->snap);

	for (size_t i = at + 1; i < m->n && !done; i++)
		m->snap[i].there = MAYBE;
	if (done)
		m->n = at + 1;
}

static void
begun(struct model *m, const char *what, const char *a, const char *b)
{
	struct msnap *s = a ? find(m, a) : NULL;

	if (strcmp(what, "create") == 0 || strcmp(what, "fork") == 0 || strcmp(what, "destroy") == 0) {
		if (m->there == NO)
			*m = (struct model){ .value = -1 };
		m->there = MAYBE;
	} else if (strcmp(what, "pause") == 0 || strcmp(what, "resume") == 0)
		m->paused = MAYBE;
	else if (strcmp(what, "write") == 0) {
		m->other = strtol(a, NULL, 10);
		m->doubt = true;
	} else if (strcmp(what, "snap") == 0 && strcmp(a, "turn") != 0)
		(void)add(m, a, b ? strtol(b, NULL, 10) : -1, MAYBE);
	else if (strcmp(what, "del") == 0 && s)
		s->there = MAYBE;
	else if ((strcmp(what, "hold") == 0 || strcmp(what, "free") == 0) && s)
		s->held = s->held == YES && strcmp(what, "hold") == 0 ? YES : MAYBE;
	else if (strcmp(what, "roll") == 0 && s) {
		m->other = s->value;
		m->doubt = true;
		drop_after(m, s, false);
	}
}

/* Refused: nothing happened, so what was there is there. */
static void
refused(struct model *m, const char *what, const char *a)
{
	struct msnap *s = a ? find(m, a) : NULL;

	m->doubt = false;
	if (strcmp(what, "destroy") == 0 && m->there == MAYBE)
		m->there = YES;
	if (strcmp(what, "del") == 0 && s)
		s->there = YES;
	if (strcmp(what, "snap") == 0 && s && s->there == MAYBE)
		m->n = (size_t)(s - m->snap);
	for (size_t i = 0; strcmp(what, "roll") == 0 && i < m->n; i++)
		m->snap[i].there = YES;
}

static void
acked(struct model *m, const char *what, const char *a, const char *b, long fork_value)
{
	struct msnap *s = a ? find(m, a) : NULL;

	if (strcmp(what, "create") == 0 || strcmp(what, "fork") == 0)
		*m = (struct model){ .there = YES, .value = strcmp(what, "fork") == 0 ? fork_value : -1 };
	else if (strcmp(what, "destroy") == 0)
		*m = (struct model){ .there = NO };
	else if (strcmp(what, "pause") == 0 || strcmp(what, "resume") == 0)
		m->paused = strcmp(what, "pause") == 0 ? YES : NO;
	else if (strcmp(what, "write") == 0)
		m->value = strtol(a, NULL, 10);
	else if (strcmp(what, "snap") == 0 && strcmp(a, "-") != 0)
		(void)add(m, a, b ? strtol(b, NULL, 10) : -1, YES);
	else if (strcmp(what, "del") == 0 && s) {
		size_t at = (size_t)(s - m->snap);

		m->n--;
		memmove(s, s + 1, (m->n - at) * sizeof *s);
	} else if ((strcmp(what, "hold") == 0 || strcmp(what, "free") == 0) && s)
		s->held = strcmp(what, "hold") == 0 ? YES : NO;
	else if (strcmp(what, "roll") == 0 && s) {
		m->value = s->value;
		drop_after(m, s, true);
	}
	m->doubt = false;
	n_acked++;
}

static void
replay_line(char *line)
{
	static long fork_value[SESSIONS];
	char *phase = strsep(&line, " ");
	char *what = strsep(&line, " ");
	char *id = strsep(&line, " ");
	char *a = strsep(&line, " ");
	char *b = strsep(&line, " ");
	struct model *m = id ? model_of(id) : NULL;

	if (!m) {
		complain("log line of nobody");
		return;
	}
	if (strcmp(phase, "x") == 0) {
		complain("%s of %s: %s %s %s", what, id, a, b ? b : "", line ? line : "");
		return;
	}
	if (strcmp(phase, "b") == 0 && strcmp(what, "fork") == 0) {
		struct model *p = model_of(a);
		struct msnap *s = p ? find(p, b) : NULL;

		fork_value[m - models] = s ? s->value : UNKNOWN;
	}
	if (strcmp(phase, "b") == 0)
		begun(m, what, a, b);
	else if (strcmp(phase, "f") == 0)
		refused(m, what, a);
	else
		acked(m, what, a, b, fork_value[m - models]);
}

static void
replay(const char *path)
{
	struct sb_error err;
	struct sb_buf b;
	char *text, *line;

	if (sb_file_read(AT_FDCWD, path, 64u << 20, &b, &err) < 0)
		return;
	text = (char *)b.data;
	while ((line = strsep(&text, "\n")))
		if (*line)
			replay_line(line);
	sb_buf_free(&b);
	(void)unlink(path);
}

static const struct sb_host_snapshot *
listed(const struct sb_host_snapshot *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].name, name) == 0)
			return &v[i];
	return NULL;
}

static size_t
newer_turns(const struct sb_host_snapshot *v, size_t n, const struct model *m, const struct msnap *s)
{
	size_t count = 0;

	for (const struct msnap *t = s + 1; t < m->snap + m->n; t++)
		count += strncmp(t->name, "turn-", 5) == 0;
	/* One more may have come without an answer. */
	for (size_t i = 0; i < n; i++)
		count += v[i].kind == SB_HOST_SNAP_TURN && !find((struct model *)m, v[i].name);
	return count;
}

static void
check_snaps(struct model *m, const char *id, const struct sb_host_snapshot *v, size_t n)
{
	for (size_t i = 0; i < m->n; i++) {
		struct msnap *s = &m->snap[i];
		const struct sb_host_snapshot *l = listed(v, n, s->name);
		bool dropped = strncmp(s->name, "turn-", 5) == 0 && newer_turns(v, n, m, s) >= CRASH_KEEP;

		if (s->there == YES && !l && !dropped)
			complain("session %s: snapshot %s was acknowledged and is lost", id, s->name);
		if (l && s->held == YES && l->holds == 0)
			complain("session %s: hold on %s is lost", id, s->name);
		if (l && s->held == NO && l->holds != 0)
			complain("session %s: hold on %s came from nowhere", id, s->name);
	}
}

/* The model starts anew from what is there. */
static void
adopt(struct model *m, const struct sb_host_session *s, const struct sb_host_snapshot *v, size_t n)
{
	struct model old = *m;

	m->there = YES;
	m->paused = s->state == SB_HOST_PAUSED ? YES : NO;
	m->value = crash_value(s->mountpoint);
	m->doubt = false;
	m->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct msnap *o = find(&old, v[i].name);
		/* A name in doubt may be that of an older turn, rolled back since. */
		struct msnap *a = add(m, v[i].name, o && o->there == YES ? o->value : UNKNOWN, YES);

		if (a)
			a->held = v[i].holds ? YES : NO;
	}
}

/* Back to a snapshot: the file has the value it had then. */
static void
try_rollback(struct sb_host *h, struct model *m, const struct sb_host_session *s, unsigned seed)
{
	struct sb_error err = { 0 };
	struct msnap *t;
	int r;

	if (m->n == 0 || s->state != SB_HOST_ACTIVE)
		return;
	t = &m->snap[seed % m->n];
	r = sb_host_session_rollback(h, s->id, t->name, false, NULL, &err);
	if (r == SB_E_SNAPSHOT_IN_USE || r == SB_E_SNAPSHOT_HELD)
		return;
	if (r < 0) {
		complain("session %s: rollback to %s: %s", s->id, t->name, err.msg);
		return;
	}
	m->value = crash_value(s->mountpoint);
	if (t->value != UNKNOWN && m->value != t->value)
		complain("session %s: snapshot %s holds %ld instead of %ld", s->id, t->name, m->value, t->value);
	drop_after(m, t, true);
}

static void
check_session(struct crash *c, struct sb_host *h, const struct sb_host_session *s, unsigned seed)
{
	struct model *m = model_of(s->id);
	struct sb_host_snapshot *v = NULL;
	struct sb_error err = { 0 };
	long value = crash_value(s->mountpoint);
	size_t n = 0;

	if (!m) {
		complain("session %s is nobody's", s->id);
		return;
	}
	if (m->there == NO)
		complain("session %s was destroyed or never made, and is there", s->id);
	if (s->state != SB_HOST_ACTIVE && s->state != SB_HOST_PAUSED)
		complain("session %s is %s (%s)", s->id, sb_host_state_name(s->state), s->why);
	if (m->there == YES && m->paused != MAYBE && (m->paused == YES) != (s->state == SB_HOST_PAUSED))
		complain("session %s is %s", s->id, sb_host_state_name(s->state));
	if (m->there == YES && m->value != UNKNOWN && value != m->value &&
		!(m->doubt && (value == m->other || m->other == UNKNOWN)))
		complain("session %s holds %ld instead of %ld", s->id, value, m->value);
	if (c->pool && sb_host_snapshot_list(h, s->id, NULL, &v, &n, &err) < 0)
		complain("session %s: %s", s->id, err.msg);
	if (m->there == YES)
		check_snaps(m, s->id, v, n);
	adopt(m, s, v, n);
	sb_host_snapshots_free(v, n);
	if (c->pool && seed % 3 == 0)
		try_rollback(h, m, s, seed / 3);
}

bool
crash_check(struct crash *c, struct sb_host *h, unsigned seed)
{
	struct sb_host_session *v;
	struct sb_error err = { 0 };
	bool seen[SESSIONS] = { false };
	size_t n;

	failed = false;
	replay(c->log);
	if (sb_host_session_list(h, NULL, &v, &n, &err) < 0) {
		complain("list: %s", err.msg);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct model *m = model_of(v[i].id);

		if (m)
			seen[m - models] = true;
		check_session(c, h, &v[i], seed + (unsigned)i);
	}
	sb_host_sessions_free(v, n);
	for (size_t i = 0; i < SESSIONS; i++) {
		if (!seen[i] && models[i].there == YES)
			complain("session t%zu-%zu is lost", i / CRASH_SLOTS, i % CRASH_SLOTS);
		if (!seen[i])
			models[i] = (struct model){ .there = NO };
	}
	return !failed;
}
