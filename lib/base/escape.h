/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_ESCAPE_H
#define SB_BASE_ESCAPE_H

#include <stddef.h>

/*
 * Like sb_escape (sb/log.h), but leaves a backslash alone: a whole message may hold names that are
 * escaped already.
 */
char *sb_escape_message(const char *in, size_t len, char *out, size_t size);

/* Room for a name in a message; a longer one is cut. */
struct sb_escape_name {
	char text[256];
};
/* The name as sb_escape writes it. Lives as long as `room`. */
const char *sb_escape_name(const char *name, size_t len, struct sb_escape_name *room);

#endif
