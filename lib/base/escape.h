/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_ESCAPE_H
#define SB_BASE_ESCAPE_H

#include <stddef.h>

/*
 * Like sb_escape (sb/log.h), but leaves a backslash alone: a whole message may hold names that are
 * escaped already.
 */
char *sb_escape_message(const char *in, size_t len, char *out, size_t size);

#endif
