/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_FIELD_H
#define SB_RPC_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <base/strlist.h>
#include <base/strmap.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/json.h>
#include <sb/error.h>

/*
 * Reads the fields of a request. A field that is missing or null has its default. Names are
 * compared without regard to case and underscores, so SessionID, sessionId and session_id are one
 * field; an exact match wins. Unknown fields are ignored. The first mistake sticks; it names the
 * field, what came and what is wanted.
 */
struct sb_rpc_fields {
	const json_t *obj;
	const char *prefix;           /* path of `obj` for messages ("Resources."), "" at the top */
	char field[SB_RPC_FIELD_MAX]; /* the field of the first mistake */
	struct sb_error err;
	int failed;
};

void sb_rpc_fields_init(struct sb_rpc_fields *f, const json_t *obj);
/* 0, or the first mistake copied to `err`. */
int sb_rpc_fields_check(const struct sb_rpc_fields *f, struct sb_error *err);

/* The value, NULL when missing or null. */
const json_t *sb_rpc_field(const struct sb_rpc_fields *f, const char *name);

#define SB_RPC_REQUIRED 1u /* missing and empty are mistakes */
/* A string of at most `max` bytes; "" when missing. Borrowed from the request. */
const char *sb_rpc_field_str(struct sb_rpc_fields *f, const char *name, size_t max, unsigned flags);
/* A number without fraction, or its decimal text (as proto3 JSON writes 64 bit), in [min, max]. */
int64_t sb_rpc_field_int(struct sb_rpc_fields *f, const char *name, int64_t min, int64_t max);
double sb_rpc_field_double(struct sb_rpc_fields *f, const char *name, double min, double max);
bool sb_rpc_field_bool(struct sb_rpc_fields *f, const char *name);
/* An object; NULL when missing. */
const json_t *sb_rpc_field_object(struct sb_rpc_fields *f, const char *name);
/* An array of strings, or an object of strings as "KEY=value" texts, appended to `out`. */
void sb_rpc_field_list(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_len,
	struct sb_strlist *out);
void sb_rpc_field_env(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_len,
	struct sb_strlist *out);
void sb_rpc_field_map(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_key,
	size_t max_value, struct sb_strmap *out);

/* Records a mistake that the caller found. */
void sb_rpc_field_bad(struct sb_rpc_fields *f, const char *name, const char *fmt, ...)
	SB_PRINTF(3, 4);

#endif
