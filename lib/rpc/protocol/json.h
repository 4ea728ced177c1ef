/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_JSON_H
#define SB_RPC_JSON_H

#include <stddef.h>

#include <jansson.h>

#include <sb/error.h>

/* What a message may hold besides its size: levels of nesting, values and keys together. */
#define SB_RPC_JSON_DEPTH 64
#define SB_RPC_JSON_VALUES 100000

/*
 * Parses a message from outside: one JSON object, UTF-8, no NUL in strings, within the two limits
 * above (checked before anything is allocated). No bytes at all are an empty object. SB_E_INVAL or
 * SB_E_LIMIT.
 */
json_t *sb_rpc_json_parse(const void *data, size_t len, struct sb_error *err);

/* The same for any JSON value, and strings may hold NUL. */
json_t *sb_rpc_json_value(const void *data, size_t len, struct sb_error *err);

/* A JSON string of `len` bytes; what is not UTF-8 becomes U+FFFD. NULL: out of memory. */
json_t *sb_rpc_json_text(const char *s, size_t len);

#endif
