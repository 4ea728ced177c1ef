/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_UTF8_H
#define SB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The length of the valid UTF-8 sequence at the front of the `left` (at least 1) bytes, with its
 * code point in `cp` (may be NULL). 0: there is none; -1: what is there is the beginning of one
 * that is cut. Surrogates, overlong forms and values past U+10FFFF are none.
 */
int sb_utf8_next(const uint8_t *p, size_t left, uint32_t *cp);

#endif
