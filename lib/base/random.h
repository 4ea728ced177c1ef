/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_RANDOM_H
#define SB_BASE_RANDOM_H

#include <stddef.h>

#include <sb/error.h>

/* Fills `out` with `len` random bytes from the kernel. */
int sb_random(void *out, size_t len, struct sb_error *err);

#endif
