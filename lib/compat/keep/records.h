/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_RECORDS_H
#define SB_COMPAT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <sb/error.h>
#include <sb/log.h>

/*
 * What an API knows of its sandboxes besides their host sessions: a JSON object each, in a file
 * DIR/ID.json, which a crash leaves old or new. Objects in it are never changed: a new one takes
 * the place of the old. Thread-safe.
 */
struct sb_records;

/*
 * Reads all of them. `keep` (may be NULL) says which are still wanted; the files of the others go.
 * Damaged files stay where they are, and the log (as `who`) says so.
 */
struct sb_records *sb_records_open(const char *dir, const char *who, const struct sb_log *log,
	bool (*keep)(const char *id, const json_t *o, void *arg), void *arg, struct sb_error *err);
void sb_records_free(struct sb_records *r);

/* NULL: there is none. The caller's reference; not to be changed. */
json_t *sb_records_get(struct sb_records *r, const char *id);
/* Takes `o` (NULL: out of memory). `id` is a file's name, in letters, digits and '-'. */
int sb_records_put(struct sb_records *r, const char *id, json_t *o, struct sb_error *err);
void sb_records_drop(struct sb_records *r, const char *id);
/* An array of `n`: decref each, free it. NULL: out of memory. */
json_t **sb_records_all(struct sb_records *r, size_t *n);

#endif
