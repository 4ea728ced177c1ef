/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldcut.h>

/* 20 bits, the high ones, which depend on all of the last 64 bytes. */
#define MASK (((UINT64_C(1) << 20) - 1) << 44)
#define WINDOW 64

void
sb_coldcut_init(struct sb_coldcut *c)
{
	uint64_t x = UINT64_C(0x9e3779b97f4a7c15);

	c->hash = 0;
	c->at = 0;
	for (size_t i = 0; i < 256; i++) {
		uint64_t z = x += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		c->gear[i] = z ^ (z >> 31);
	}
}

size_t
sb_coldcut_next(struct sb_coldcut *c, const uint8_t *data, size_t len, bool *ends)
{
	size_t i = 0;

	*ends = false;
	/* Nothing is decided before the least size, but for the bytes the window needs. */
	if (c->at + WINDOW < SB_COLDCUT_MIN) {
		size_t skip = SB_COLDCUT_MIN - WINDOW - c->at;

		i = skip < len ? skip : len;
		c->at += i;
	}
	while (i < len) {
		c->hash = (c->hash << 1) + c->gear[data[i++]];
		c->at++;
		if ((c->at >= SB_COLDCUT_MIN && (c->hash & MASK) == 0) || c->at == SB_COLDCUT_MAX) {
			*ends = true;
			c->at = 0;
			c->hash = 0;
			break;
		}
	}
	return i;
}
