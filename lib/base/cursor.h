/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_CURSOR_H
#define SB_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A cursor over bytes from outside. A read past the end sets `bad` and gives zero; check `bad` once
 * at the end (or before a value is used as a size). Nothing is copied.
 */
struct sb_cursor {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

void sb_cursor_init(struct sb_cursor *c, const void *data, size_t len);
size_t sb_cursor_left(const struct sb_cursor *c);
uint8_t sb_cursor_u8(struct sb_cursor *c);
uint16_t sb_cursor_u16(struct sb_cursor *c);
uint32_t sb_cursor_u32(struct sb_cursor *c);
uint64_t sb_cursor_u64(struct sb_cursor *c);
/* At most 10 bytes, no bits beyond 64; a longer or overlong final byte is bad. */
uint64_t sb_cursor_varint(struct sb_cursor *c);
int64_t sb_cursor_svarint(struct sb_cursor *c);
/* Borrowed view of the next `len` bytes, or NULL and bad. */
const uint8_t *sb_cursor_take(struct sb_cursor *c, size_t len);
/* Length-prefixed bytes of at most `max`. */
const uint8_t *sb_cursor_bytes(struct sb_cursor *c, size_t max, size_t *out_len);

#endif
