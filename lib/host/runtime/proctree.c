/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/proctree.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/procid.h>

/*
 * The host puts the mark first, but a shell may hand its variables on in another order, so all of
 * an environment is looked through; the kernel allows 6 MiB for it and the arguments.
 */
#define ENVIRON_PIECE 16384
#define ENVIRON_MAX (6 << 20)
/* How many milliseconds a look waits, in all, for those who are between two programs. */
#define EXEC_WAITS 200
/* A signal is sent again to newcomers at most this often. */
#define SIGNAL_ROUNDS 20

struct stat_line {
	char state;
	pid_t ppid, session;
	int64_t start;
	unsigned long vsize;      /* 0: a kernel thread, or one that ended */
	unsigned long start_code; /* 0: the kernel is still loading the program */
	unsigned long env_start, env_end;
};

static ssize_t
read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	sb_autoclose int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

static int
read_stat(pid_t pid, struct stat_line *out)
{
	char buf[1024], *p;
	int ppid, session;
	long long start;
	/* From the size: two more fields, the code, 23 more, the environment. */
	static const char rest[] = " %*s %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu";
	int used = 0;

	if (read_proc(pid, "stat", buf, sizeof buf) <= 0)
		return -1;
	/* The name in parentheses may hold anything, also parentheses. */
	p = strrchr(buf, ')');
	if (!p ||
		sscanf(p + 1,
			" %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
			"%lld %lu%n",
			&out->state, &ppid, &session, &start, &out->vsize, &used) != 5)
		return -1;
	if (sscanf(p + 1 + used, rest, &out->start_code, &out->env_start, &out->env_end) != 3)
		out->start_code = out->env_start = out->env_end = 1;
	out->ppid = ppid;
	out->session = session;
	out->start = start;
	return 0;
}

pid_t
sb_proctree_parent(pid_t pid)
{
	struct stat_line st;

	return pid > 0 && read_stat(pid, &st) == 0 ? st.ppid : 0;
}

/*
 * Whether `s` is what the pattern means: "a/1" is not "a/12". A '*' stands for anything without a
 * slash.
 */
static bool
begins(const char *s, const char *pattern)
{
	bool all = *pattern && pattern[strlen(pattern) - 1] == '/';

	for (; *pattern; pattern++) {
		if (*pattern == '*') {
			s += strcspn(s, "/");
			continue;
		}
		if (*s++ != *pattern)
			return false;
	}
	return all || *s == '\0';
}

/*
 * The environment of a process. Between two programs, while the kernel loads the second, it has
 * none; and who opens it before that moment and reads it after it gets nothing either, although
 * the second program has one. Who took either for an answer would miss a child that a killed
 * parent had just begun to start. So only an environment of no bytes in a program that is loaded
 * counts as empty; everything else is read again, `*waits` times at most.
 */
static ssize_t
read_environ(pid_t pid, char *buf, size_t size, int *waits)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (;;) {
		ssize_t n = read_proc(pid, "environ", buf, size);
		struct stat_line st;

		if (n != 0 || read_stat(pid, &st) < 0 || st.vsize == 0)
			return n;
		/* The kernel sets the code after the environment. */
		if ((st.start_code != 0 && st.env_start == st.env_end) || (*waits)-- <= 0)
			return n;
		if (st.start_code == 0)
			(void)nanosleep(&pause, NULL);
	}
}

/* Whether one of the variables in what was read is the mark; `*found` with whether it fits. */
static bool
find_mark(const char *buf, size_t n, const char *mark, bool *found)
{
	static const char key[] = SB_PROCTREE_MARK "=";

	for (const char *p = buf; p < buf + n; p += strlen(p) + 1)
		if (strncmp(p, key, sizeof key - 1) == 0) {
			*found = begins(p + sizeof key - 1, mark);
			return true;
		}
	return false;
}

/* One that is longer than a piece: all of it. */
static bool
find_in_all(pid_t pid, const char *mark)
{
	char path[64];
	sb_autoclose int fd = -1;
	sb_auto(sb_buf) struct sb_buf all;
	bool found = false;
	uint8_t *room;
	ssize_t n = 1;

	sb_buf_init(&all, ENVIRON_MAX);
	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0 && (room = sb_buf_reserve(&all, ENVIRON_PIECE)) != NULL) {
		n = read(fd, room, ENVIRON_PIECE);
		sb_buf_grow(&all, n > 0 ? (size_t)n : 0);
	}
	return all.len > 0 && find_mark((const char *)all.data, all.len, mark, &found) && found;
}

static bool
has_mark(pid_t pid, const char *mark, int *waits)
{
	char buf[ENVIRON_PIECE];
	ssize_t n = read_environ(pid, buf, sizeof buf, waits);
	bool found = false;

	if (n == ENVIRON_PIECE - 1)
		return find_in_all(pid, mark);
	return n > 0 && find_mark(buf, (size_t)n, mark, &found) && found;
}

struct proc_member {
	pid_t pid, ppid;
	int pidfd; /* -1: not one of them */
};

struct proc_table {
	struct proc_member *v;
	size_t n, cap;
};

static int
add(struct proc_table *t, const struct proc_member *m)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct proc_member *v = reallocarray(t->v, cap, sizeof *v);

		if (!v)
			return -1;
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n++] = *m;
	return 0;
}

static int
open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void
look(struct proc_table *t, pid_t pid, const char *mark, pid_t leader, int *waits)
{
	struct proc_member m = { .pid = pid, .pidfd = open_pidfd(pid) };
	struct stat_line st;

	if (read_stat(pid, &st) < 0 || st.state == 'Z' || st.state == 'X') {
		if (m.pidfd >= 0)
			(void)close(m.pidfd);
		return;
	}
	m.ppid = st.ppid;
	if (!((leader > 0 && st.session == leader) || (mark && has_mark(pid, mark, waits)))) {
		if (m.pidfd >= 0)
			(void)close(m.pidfd);
		m.pidfd = -1;
	}
	if (add(t, &m) < 0 && m.pidfd >= 0)
		(void)close(m.pidfd);
}

/* Children of members are members. */
static void
close_over_children(struct proc_table *t)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->n; i++) {
			struct stat_line st;

			if (t->v[i].pidfd >= 0)
				continue;
			for (size_t j = 0; j < t->n; j++)
				if (t->v[j].pidfd >= 0 && t->v[j].pid == t->v[i].ppid) {
					t->v[i].pidfd = open_pidfd(t->v[i].pid);
					/* Still the same child of the same parent. */
					if (t->v[i].pidfd >= 0 &&
						(read_stat(t->v[i].pid, &st) < 0 ||
							st.ppid != t->v[i].ppid)) {
						(void)close(t->v[i].pidfd);
						t->v[i].pidfd = -1;
					}
					more |= t->v[i].pidfd >= 0;
					break;
				}
		}
	}
}

size_t
sb_proctree_visit(const char *mark, pid_t leader, sb_proctree_fn fn, void *arg)
{
	sb_autoclosedir DIR *d = opendir("/proc");
	struct proc_table t = { 0 };
	struct dirent *e;
	pid_t self = getpid();
	int waits = EXEC_WAITS;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		long pid = isdigit((unsigned char)e->d_name[0]) ? strtol(e->d_name, NULL, 10) : 0;

		if (pid > 1 && pid != self)
			look(&t, (pid_t)pid, mark, leader, &waits);
	}
	close_over_children(&t);
	for (size_t i = 0; i < t.n; i++)
		if (t.v[i].pidfd >= 0) {
			n += fn(t.v[i].pid, t.v[i].pidfd, arg);
			(void)close(t.v[i].pidfd);
		}
	free(t.v);
	return n;
}

/*
 * Who got the signal already, so that a second look sends it only to those who were born meanwhile.
 */
struct sending {
	int sig;
	struct {
		pid_t pid;
		int64_t start;
	} * done;
	size_t n, cap;
	bool more;
};

static bool
send_once(pid_t pid, int pidfd, void *arg)
{
	struct sending *s = arg;
	int64_t start = sb_procid_start(pid);

	for (size_t i = 0; i < s->n; i++)
		if (s->done[i].pid == pid && s->done[i].start == start)
			return false;
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		void *v = reallocarray(s->done, cap, sizeof *s->done);

		if (!v)
			return false;
		s->done = v;
		s->cap = cap;
	}
	s->done[s->n].pid = pid;
	s->done[s->n++].start = start;
	s->more = true;
	return syscall(SYS_pidfd_send_signal, pidfd, s->sig, NULL, 0) == 0;
}

size_t
sb_proctree_signal(const char *mark, pid_t leader, int sig)
{
	struct sending s = { .sig = sig };
	size_t sent = 0;

	/*
	 * A child born while we looked is found by the next look: fork itself waits for a signal
	 * that is there already.
	 */
	for (int i = 0; i < SIGNAL_ROUNDS; i++) {
		s.more = false;
		sent += sb_proctree_visit(mark, leader, send_once, &s);
		if (!s.more || sig == 0)
			break;
	}
	free(s.done);
	return sent;
}
