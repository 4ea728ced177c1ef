/* SPDX-License-Identifier: MIT */
/*
 * sb-box place: executes a program that makes a box, in control groups, in a network namespace, and
 * as the one user of a user namespace. That user may not search the host's private directories, so
 * what the box shows is bound to a place that it can reach, in a mount namespace of its own.
 */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOURCES_MAX 256

struct place_args {
	const char *stage; /* the directory that the sources appear in, by their number */
	const char *from[SOURCES_MAX];
	bool theirs[SOURCES_MAX]; /* what is in there gives nobody anything who executes it */
	size_t n;
	uid_t owner;
};

static int
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;

	if (fd >= 0)
		(void)close(fd);
	return r;
}

/* Whether we are in there: looking costs nothing, going there makes the machine wait. */
static bool
is_listed(const char *path)
{
	char text[4096], *end;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (const char *p = text; *p; p = *end ? end + 1 : end)
		if (strtol(p, &end, 10) == getpid() || end == p)
			return end != p;
	return false;
}

int
helper_join_group(const char *dir)
{
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/cgroup.procs", dir);
	return is_listed(path) ? 0 : put(path, "0");
}

/* Binds an open directory or file to a name in the stage. */
static int
bind_one(const char *stage, size_t i, int fd, bool theirs)
{
	char from[64], to[4096];
	struct stat st;

	(void)snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
	(void)snprintf(to, sizeof to, "%s/%zu", stage, i);
	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0755) < 0)
			return -1;
	} else {
		int file = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		if (file < 0)
			return -1;
		(void)close(file);
	}
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	return theirs ? mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV, NULL) :
			0;
}

/* The sources are opened before the stage may cover them. */
static int
stage(const struct place_args *a)
{
	int fds[SOURCES_MAX];

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return helper_fail("mount namespace");
	for (size_t i = 0; i < a->n; i++) {
		fds[i] = open(a->from[i], O_PATH | O_CLOEXEC);
		if (fds[i] < 0)
			return helper_fail(a->from[i]);
	}
	if (mount("sb-stage", a->stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0)
		return helper_fail(a->stage);
	for (size_t i = 0; i < a->n; i++) {
		if (bind_one(a->stage, i, fds[i], a->theirs[i]) < 0)
			return helper_fail(a->from[i]);
		(void)close(fds[i]);
	}
	return 0;
}

/* In a process that stayed outside: who is in the namespace of our parent. */
static _Noreturn void
write_maps(pid_t whose, uid_t owner, int ready)
{
	char path[64], map[64], c;

	if (read(ready, &c, 1) != 1)
		_exit(1);
	(void)snprintf(map, sizeof map, "0 %u 1\n", (unsigned)owner);
	(void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)whose);
	if (put(path, map) < 0)
		_exit(1);
	(void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)whose);
	_exit(put(path, map) < 0);
}

/* We become user 0 of a namespace that has no other, who is `owner` outside. */
static int
become(uid_t owner)
{
	int ready[2], status;
	pid_t pid, self = getpid();

	if (pipe2(ready, O_CLOEXEC) < 0 || setgroups(0, NULL) < 0)
		return helper_fail("user namespace");
	pid = fork();
	if (pid == 0) {
		(void)close(ready[1]);
		write_maps(self, owner, ready[0]);
	}
	(void)close(ready[0]);
	if (pid < 0 || unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) != 1)
		return helper_fail("user namespace");
	(void)close(ready[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0) {
		errno = EPERM;
		return helper_fail("map the sandbox's user");
	}
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return helper_fail("become the sandbox's user");
	return 0;
}

static int
parse(int argc, char **argv, struct place_args *a)
{
	int c;

	while ((c = getopt(argc, argv, "+g:N:S:B:W:u:")) != -1)
		switch (c) {
		case 'g':
			if (helper_join_group(optarg) < 0)
				return helper_fail(optarg);
			break;
		case 'N':
			if (helper_join_net(optarg) < 0)
				return helper_fail(optarg);
			break;
		case 'S': a->stage = optarg; break;
		case 'W':
		case 'B':
			if (a->n == SOURCES_MAX)
				return SB_HELPER_FAILED;
			a->theirs[a->n] = c == 'W';
			a->from[a->n++] = optarg;
			break;
		case 'u': a->owner = (uid_t)strtoul(optarg, NULL, 10); break;
		default: return SB_HELPER_FAILED;
		}
	return optind < argc ? 0 : SB_HELPER_FAILED;
}

int
helper_main_place(int argc, char **argv)
{
	struct place_args a = { 0 };
	int r = parse(argc, argv, &a);

	if (r == 0 && a.stage)
		r = stage(&a);
	if (r == 0 && a.owner)
		r = become(a.owner);
	if (r != 0)
		return r;
	(void)execvp(argv[optind], argv + optind);
	return helper_fail(argv[optind]);
}
