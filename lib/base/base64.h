/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_BASE64_H
#define SB_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>

/* Unpadded standard alphabet with its NUL; false when `size` is too small. */
bool sb_base64_encode(const void *data, size_t len, char *out, size_t size);

/* The same with padding, as JSON has bytes. */
bool sb_base64_encode_padded(const void *data, size_t len, char *out, size_t size);

/*
 * Both alphabets, padded or not; appends to `out`. False for any other byte or an impossible
 * length.
 */
bool sb_base64_decode(const char *s, size_t len, struct sb_buf *out);

#endif
