/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_ROOTCHECK_H
#define SB_HOST_ROOTCHECK_H

#include <sb/error.h>
#include <sb/log.h>

/*
 * The directory that sessions are in is for the host alone: what a sandbox makes, a program that
 * runs as its owner among it, is not for other users of the machine to come to. Closes it (0700),
 * and says so, where it was open to others. SB_E_DENIED when it belongs to somebody else and is.
 */
int sb_rootcheck(const char *dir, const struct sb_log *log, struct sb_error *err);

#endif
