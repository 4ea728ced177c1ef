/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_ETCD_PRIV_H
#define SB_FLEET_ETCD_PRIV_H

#include <stdatomic.h>

#include <jansson.h>

#include <cloud/http/rest.h>

#include "etcd.h"

#define MEMBERS_MAX 32
/* etcd takes requests of 1.5 MB; a page of keys may be larger. */
#define ANSWER_MAX ((size_t)64 << 20)

struct sb_etcd {
	struct sb_rest *member[MEMBERS_MAX];
	size_t n;
	_Atomic size_t last; /* the member that answered last */
	int64_t call_ms;
	struct sb_log log;
};

/*
 * Sends `ask` (taken; NULL: out of memory) to `path` of one member after the other. `reads`: it
 * changes nothing, so it may be sent again. The answer in `out` is the caller's.
 */
int sb_etcd_call(struct sb_etcd *e, const char *path, json_t *ask, bool reads,
	const struct sb_cancel *cancel, json_t **out, struct sb_error *err);

/* The same to one member; `ask` stays the caller's. */
int sb_etcd_call_one(struct sb_etcd *e, size_t member, const char *path, const json_t *ask,
	bool reads, const struct sb_rest_wait *wait, json_t **out, struct sb_error *err);

/* The failure that the gateway's object `o` tells of; `what` was asked. */
int sb_etcd_failure(const json_t *o, const char *what, struct sb_error *err);

/* Keys and values as the gateway has them; NULL: out of memory. */
json_t *sb_etcd_bytes(const void *data, size_t len);
json_t *sb_etcd_text(const char *s);

/* A 64-bit number, which comes as a text; 0 where there is none. False: it is not a number. */
bool sb_etcd_number(const json_t *o, const char *name, int64_t *out);

/* The revision of the store as an answer's header has it. */
bool sb_etcd_revision(const json_t *answer, int64_t *rev);

/* One key of an answer, handed to `fn`. */
int sb_etcd_kv_take(const json_t *o, sb_etcd_kv_fn fn, void *arg, struct sb_error *err);

/* The first key that can begin with `prefix`: of the empty one, which etcd takes for no key, a NUL.
 */
json_t *sb_etcd_start_of(const char *prefix);

/* The first key behind all that begin with `prefix`; NULL: out of memory. */
json_t *sb_etcd_end_of(const char *prefix);

#endif
