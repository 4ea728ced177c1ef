/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DELTA_CONFINE_H
#define SBSYNC_DELTA_CONFINE_H

#include <stdbool.h>

/*
 * From now on this process reads and writes what it has open and takes memory; it opens nothing,
 * starts nothing, signals and reaches nobody. For a child that reads what a sandbox sent. False:
 * the kernel cannot, or this is a build with a sanitizer.
 */
bool sb_delta_confine(void);

#endif
