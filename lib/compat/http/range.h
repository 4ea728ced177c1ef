/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_RANGE_H
#define SB_COMPAT_RANGE_H

#include <stdint.h>

/* Which bytes of a file a Range header asks for. */
enum sb_range {
	SB_RANGE_ALL,  /* none asked for, or more than one, or words that are none: send it whole */
	SB_RANGE_PART, /* [*from, *from + *len) */
	SB_RANGE_NONE, /* nothing of it is in the file: 416 */
};

/* `header` may be NULL. */
enum sb_range sb_range_parse(const char *header, uint64_t size, uint64_t *from, uint64_t *len);

#endif
