/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONFINED_FILTER_H
#define SBSYNC_CONFINED_FILTER_H

#include <stdbool.h>

/*
 * From now on this process reads and writes what it has open and takes memory; it opens nothing,
 * starts nothing, signals and reaches nobody: by Landlock where the kernel has it, and by seccomp.
 * For a child that reads what a sandbox sent. False: seccomp does not hold, because the kernel
 * cannot or this is a build with a sanitizer.
 */
bool sb_confined_filter(void);

#endif
