/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDCUT_H
#define SB_HOST_COLDCUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where frames end: content decides, by a gear hash over the last 64 bytes, from 1 MiB on and at
 * 4 MiB at the latest; 2 MiB on average. No reader depends on it.
 */
#define SB_COLDCUT_MIN ((size_t)1 << 20)
#define SB_COLDCUT_MAX ((size_t)4 << 20)

struct sb_coldcut {
	uint64_t gear[256];
	uint64_t hash;
	size_t at; /* bytes of the frame so far */
};

void sb_coldcut_init(struct sb_coldcut *c);
/* How many of the bytes belong to the frame under way; `*ends`: it ends behind them. */
size_t sb_coldcut_next(struct sb_coldcut *c, const uint8_t *data, size_t len, bool *ends);

#endif
