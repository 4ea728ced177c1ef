/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_MOUNT_H
#define SB_HOST_BOX_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include <sb/error.h>

/* The workspace of the box whose first process is `pid`; needs root. */

/* 0: it is out; 1: something inside uses it. With `force` it goes, whoever uses it. */
int sb_box_mount_detach(pid_t pid, bool force, struct sb_error *err);
/* What is at `path` on the host becomes the workspace: nosuid, nodev, of no further effect. */
int sb_box_mount_attach(pid_t pid, const char *path, struct sb_error *err);

#endif
