/* SPDX-License-Identifier: MIT */
/*
 * Exchanges the workspace in a running box. Only a thread that shares its directories with no other
 * may go into another mount namespace, and nothing is to come back from there: each job has a
 * thread of its own, which ends with it.
 */
#include "config.h"

#include <host/runtime/box-mount.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/runtime/box.h>

struct job {
	int ns;   /* mount namespace of the box */
	int tree; /* to put in place; -1: take away what is there */
	bool force;
	int sys; /* errno, 0: done */
};

/* In the box, whose root is read-only and the same for all: nobody inside can lead it astray. */
static void *
work(void *arg)
{
	struct job *j = arg;
	int r;

	if (unshare(CLONE_FS) < 0 || setns(j->ns, CLONE_NEWNS) < 0)
		r = -1;
	else if (j->tree >= 0)
		r = move_mount(j->tree, "", AT_FDCWD, SB_BOX_WORKSPACE, MOVE_MOUNT_F_EMPTY_PATH);
	else
		r = umount2(SB_BOX_WORKSPACE, UMOUNT_NOFOLLOW | (j->force ? MNT_DETACH : 0));
	j->sys = r < 0 ? errno : 0;
	return NULL;
}

static int
run(pid_t pid, struct job *j, struct sb_error *err)
{
	char path[64];
	pthread_t th;

	(void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
	j->ns = open(path, O_RDONLY | O_CLOEXEC);
	if (j->ns < 0)
		return sb_fail_errno(err, "open %s", path);
	errno = pthread_create(&th, NULL, work, j);
	if (errno == 0)
		errno = pthread_join(th, NULL);
	(void)close(j->ns);
	return errno ? sb_fail_errno(err, "start a thread") : 0;
}

int
sb_box_mount_detach(pid_t pid, bool force, struct sb_error *err)
{
	struct job j = { .tree = -1, .force = force };
	int r = run(pid, &j, err);

	if (r < 0)
		return r;
	/* EINVAL: there is none. */
	if (j.sys == 0 || j.sys == EINVAL)
		return 0;
	if (j.sys == EBUSY)
		return 1;
	errno = j.sys;
	return sb_fail_errno(err, "take the workspace out of the sandbox");
}

int
sb_box_mount_attach(pid_t pid, const char *path, struct sb_error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE };
	struct job j = { .force = false };
	sb_autoclose int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r;

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return sb_fail_errno(err, "clone the mount of %s", path);
	j.tree = tree;
	r = run(pid, &j, err);
	errno = j.sys;
	return r < 0 || j.sys == 0 ? r : sb_fail_errno(err, "put %s into the sandbox", path);
}
