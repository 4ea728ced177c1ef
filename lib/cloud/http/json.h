/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_JSON_H
#define SB_CLOUD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <sb/error.h>

/* What a text may hold besides its size: levels of nesting, values and keys together. */
#define SB_JSON_DEPTH 64
#define SB_JSON_VALUES 100000

/*
 * Parses JSON from outside: one object, UTF-8, no NUL in strings, within the two limits above
 * (checked before anything is allocated). No bytes at all are an empty object. SB_E_INVAL or
 * SB_E_LIMIT.
 */
json_t *sb_json_parse(const void *data, size_t len, struct sb_error *err);

/* The same for any JSON value, and strings may hold NUL. */
json_t *sb_json_value(const void *data, size_t len, struct sb_error *err);

/* A JSON string of `len` bytes; what is not UTF-8 becomes U+FFFD. NULL: out of memory. */
json_t *sb_json_text(const char *s, size_t len);

/* The member as a text, borrowed; NULL when it is none, or `obj` no object. */
const char *sb_json_get(const json_t *obj, const char *key);

/*
 * Fields of an answer; 0, "" and false when missing or something else. Integers may come as text;
 * a time, as doc/sandbox.proto writes them, is given in nanoseconds since 1970.
 */
int64_t sb_json_int(const json_t *o, const char *key);
const char *sb_json_str(const json_t *o, const char *key);
bool sb_json_flag(const json_t *o, const char *key);
int64_t sb_json_time(const json_t *o, const char *key);

#endif
