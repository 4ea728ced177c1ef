/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_BUF_H
#define SB_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * A growing byte buffer with a ceiling. An append that does not fit (ceiling or memory) changes
 * nothing and sticks: every later append fails too, so a run of appends is checked once with
 * sb_buf_check. Always NUL-terminated behind `len` (the NUL is not counted), so `data` of a text
 * buffer is a C string; `data` is never NULL after init, even when empty.
 */
struct sb_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max;
	int failed; /* 0, SB_E_NOMEM or SB_E_FULL */
};

/* `max` is the ceiling in bytes. Allocates nothing. */
void sb_buf_init(struct sb_buf *b, size_t max);
void sb_buf_free(struct sb_buf *b);
SB_CLEANUP_VALUE(sb_buf, sb_buf_free)

/* Empties it and clears a sticky failure; keeps the memory. */
void sb_buf_reset(struct sb_buf *b);

/* 0, or the sticky failure as an error that names `what`. */
int sb_buf_check(const struct sb_buf *b, const char *what, struct sb_error *err);

void sb_buf_add(struct sb_buf *b, const void *data, size_t len);
void sb_buf_add_str(struct sb_buf *b, const char *s);
void sb_buf_add_char(struct sb_buf *b, char c);
void sb_buf_addf(struct sb_buf *b, const char *fmt, ...) SB_PRINTF(2, 3);
void sb_buf_vaddf(struct sb_buf *b, const char *fmt, va_list ap) SB_PRINTF(2, 0);

/*
 * Room for `len` more bytes: returns where to write them, or NULL (sticky). sb_buf_grow counts them
 * in.
 */
uint8_t *sb_buf_reserve(struct sb_buf *b, size_t len);
void sb_buf_grow(struct sb_buf *b, size_t len);

/* Drops the first `len` bytes. */
void sb_buf_consume(struct sb_buf *b, size_t len);

/*
 * Takes the bytes out as a heap block owned by the caller (NUL-terminated); the buffer is empty
 * then.
 */
uint8_t *sb_buf_detach(struct sb_buf *b, size_t *out_len);

/* Little-endian integers and LEB128 varints, as the wire and the state files use them. */
void sb_buf_add_u8(struct sb_buf *b, uint8_t v);
void sb_buf_add_u16(struct sb_buf *b, uint16_t v);
void sb_buf_add_u32(struct sb_buf *b, uint32_t v);
void sb_buf_add_u64(struct sb_buf *b, uint64_t v);
void sb_buf_add_varint(struct sb_buf *b, uint64_t v);
/* Zigzag varint for signed values. */
void sb_buf_add_svarint(struct sb_buf *b, int64_t v);
/* Varint length, then the bytes. */
void sb_buf_add_bytes(struct sb_buf *b, const void *data, size_t len);

#endif
