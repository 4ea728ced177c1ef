/* SPDX-License-Identifier: MIT */
/* Finds processes in /proc by mark, parent or session, and signals them. */
#include "config.h"

#include "helper.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "SB_SANDBOX_MARK="
#define ENVIRON_MAX 16384

struct tree_member {
	pid_t pid, ppid, sid;
	bool in;
};

static ssize_t
read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/* Parent and session; false when it is gone or only a zombie. */
static bool
look_at(pid_t pid, struct tree_member *out)
{
	char buf[1024], state, *p;
	int ppid, sid;

	if (read_proc(pid, "stat", buf, sizeof buf) <= 0)
		return false;
	p = strrchr(buf, ')');
	if (!p || sscanf(p + 1, " %c %d %*d %d", &state, &ppid, &sid) != 3 || state == 'Z' ||
		state == 'X')
		return false;
	*out = (struct tree_member){ .pid = pid, .ppid = ppid, .sid = sid };
	return true;
}

/* A mark that ends with a slash means all that begin with it, any other itself. */
static bool
has_mark(pid_t pid, const char *mark)
{
	char buf[ENVIRON_MAX];
	ssize_t n = read_proc(pid, "environ", buf, sizeof buf);
	size_t len = strlen(mark);

	for (char *p = buf; n > 0 && p < buf + n; p += strlen(p) + 1)
		if (strncmp(p, MARK, sizeof MARK - 1) == 0)
			return strncmp(p + sizeof MARK - 1, mark, len) == 0 &&
				(len == 0 || mark[len - 1] == '/' ||
					p[sizeof MARK - 1 + len] == '\0');
	return false;
}

static struct tree_member *
list(size_t *out_n)
{
	struct tree_member *v = NULL;
	size_t n = 0, cap = 0;
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ?
			(pid_t)strtol(e->d_name, NULL, 10) :
			0;
		struct tree_member m;

		if (pid <= 1 || pid == getpid() || !look_at(pid, &m))
			continue;
		if (n == cap) {
			struct tree_member *more = realloc(v, (cap ? cap * 2 : 64) * sizeof *v);

			if (!more)
				break;
			v = more;
			cap = cap ? cap * 2 : 64;
		}
		v[n++] = m;
	}
	if (d)
		(void)closedir(d);
	*out_n = n;
	return v;
}

/*
 * Supervisors take no signal but the last; counting them would hide that their command is not there
 * yet.
 */
static bool
is_helper(pid_t pid)
{
	char comm[32];

	return read_proc(pid, "comm", comm, sizeof comm) > 0 && strcmp(comm, "box\n") == 0;
}

/* Those that are in, and all that descend from them. */
static size_t
signal_members(struct tree_member *v, size_t n, int sig)
{
	size_t sent = 0;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n && !v[i].in; j++)
				if (v[j].in && v[j].pid == v[i].ppid)
					more = v[i].in = true;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].in && (sig == SIGKILL || !is_helper(v[i].pid)))
			sent += kill(v[i].pid, sig) == 0;
	free(v);
	return sent;
}

size_t
helper_signal(const char *mark, pid_t parent, int sig)
{
	size_t n = 0;
	struct tree_member *v = list(&n);

	for (size_t i = 0; i < n; i++)
		v[i].in = (parent > 0 && v[i].ppid == parent) || (mark && has_mark(v[i].pid, mark));
	return signal_members(v, n, sig);
}

size_t
helper_signal_session(const char *mark, pid_t sid, int sig)
{
	size_t n = 0;
	struct tree_member *v = list(&n);

	for (size_t i = 0; i < n; i++)
		v[i].in = v[i].sid == sid || v[i].pid == sid || (mark && has_mark(v[i].pid, mark));
	return signal_members(v, n, sig);
}
