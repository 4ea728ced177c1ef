/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/idmap.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>

#define STACK 16384
#define DEPTH_MAX 2048

/* Shares our memory, so it touches none: it only is in the namespace until somebody has that. */
static int
wait_for_the_end(void *arg)
{
	(void)arg;
	for (;;)
		(void)syscall(SYS_pause);
	return 0;
}

static bool
put(const char *path, const char *text)
{
	sb_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* The namespace of `pid` with its one user and group. */
static int
fill(pid_t pid, uid_t uid, gid_t gid, uid_t owner, struct sb_error *err)
{
	char path[64], map[64];
	bool ok;
	int fd;

	(void)snprintf(map, sizeof map, "%u %u 1\n", (unsigned)uid, (unsigned)owner);
	(void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
	ok = put(path, map);
	(void)snprintf(map, sizeof map, "%u %u 1\n", (unsigned)gid, (unsigned)owner);
	(void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
	ok = ok && put(path, map);
	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	fd = ok ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	return fd < 0 ? sb_fail(err, SB_E_UNSUPPORTED, "a user namespace for user %u: %s",
				(unsigned)owner, strerror(errno)) :
			fd;
}

/* A process is the only way to a user namespace, and copying ours would cost more than the rest. */
static int
user_namespace(uid_t uid, gid_t gid, uid_t owner, struct sb_error *err)
{
	sb_autofree char *stack = malloc(STACK);
	sigset_t all, old;
	pid_t pid;
	int fd;

	if (!stack)
		return sb_fail(err, SB_E_NOMEM, "user namespace");
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = clone(wait_for_the_end, stack + STACK, CLONE_VM | CLONE_NEWUSER, NULL);
	fd = pid < 0 ? sb_fail(err, SB_E_UNSUPPORTED, "a user namespace: %s", strerror(errno)) :
		       fill(pid, uid, gid, owner, err);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return fd;
}

int
sb_idmap_open(int dir, uid_t uid, gid_t gid, uid_t owner, struct sb_error *err)
{
	sb_autoclose int ns = user_namespace(uid, gid, owner, err);
	sb_autoclose int tree = -1;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };

	if (ns < 0)
		return ns;
	attr.userns_fd = (uint64_t)ns;
	tree = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this kernel or file system shows no directory under another owner: %s",
			strerror(errno));
	return sb_steal_fd(&tree);
}

struct look {
	uid_t uid;
	gid_t gid;
	dev_t dev;
	unsigned depth;
	char *odd;
	size_t size;
};

/* Puts the name in front of what is in `odd`, as far as there is room. */
static void
prepend(const struct look *l, const char *name)
{
	size_t len = strlen(name), have = strlen(l->odd), room = l->size - 1;

	if (len > room)
		len = room;
	if (have == 0) {
		(void)snprintf(l->odd, l->size, "%s", name);
		return;
	}
	if (len + 1 > room)
		return;
	if (have > room - len - 1)
		have = room - len - 1;
	memmove(l->odd + len + 1, l->odd, have);
	memcpy(l->odd, name, len);
	l->odd[len] = '/';
	l->odd[len + 1 + have] = '\0';
}

static int
uniform(int dir, struct look *l, struct sb_error *err)
{
	int dup = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_NOATIME | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 1;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read a directory");
	}
	if (++l->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d directories deep", DEPTH_MAX);
	while (r == 1 && (e = readdir(d))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(dup, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return sb_fail_errno(err, "%s", e->d_name);
		/* What is mounted in there is not part of a lower layer. */
		if (st.st_uid != l->uid || st.st_gid != l->gid) {
			r = 0;
		} else if (S_ISDIR(st.st_mode) && st.st_dev == l->dev) {
			sb_autoclose int sub = openat(dup, e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			r = sub < 0 ? sb_fail_errno(err, "open %s", e->d_name) :
				      uniform(sub, l, err);
		}
		if (r == 0)
			prepend(l, e->d_name);
	}
	l->depth--;
	return r;
}

int
sb_idmap_uniform(int dir, char *odd, size_t size, struct sb_error *err)
{
	struct look l = { .odd = odd, .size = size };
	struct stat st;

	*odd = '\0';
	if (fstat(dir, &st) < 0)
		return sb_fail_errno(err, "stat a directory");
	l.uid = st.st_uid;
	l.gid = st.st_gid;
	l.dev = st.st_dev;
	return uniform(dir, &l, err);
}
