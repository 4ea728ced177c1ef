/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_STR_H
#define SB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/* printf into a new string, or NULL. */
char *sb_str_printf(const char *fmt, ...) SB_PRINTF(1, 2);
/* Strict decimal: the whole text, no sign but one '-', in [min, max]. */
bool sb_str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out);
/* Lower-case hex of `len` bytes into `out` (2*len+1), and back (exactly 2*len digits). */
char *sb_str_hex(const uint8_t *in, size_t len, char *out);
bool sb_str_unhex(const char *hex, uint8_t *out, size_t len);
/* The value of a hex digit of either case; -1: it is none. */
int sb_str_hex_digit(char c);
bool sb_str_starts(const char *s, const char *prefix);
bool sb_str_ends(const char *s, const char *suffix);

#endif
