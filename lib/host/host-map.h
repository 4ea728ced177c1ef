/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_MAP_H
#define SB_HOST_HOST_MAP_H

#include <host/hsess.h>

struct sb_host;

/* The sessions of a host by id. */

/* Returns the session with a reference, or NULL (SB_E_INVAL, SB_E_SESSION_NOT_FOUND). */
struct sb_hsess *sb_host_map_find(struct sb_host *h, const char *id, struct sb_error *err);
/* The same by row; NULL when the session is gone. */
struct sb_hsess *sb_host_map_find_uid(struct sb_host *h, int64_t uid);
/* Every session with a reference; the caller drops the references and frees `out`. */
int sb_host_map_all(struct sb_host *h, struct sb_hsess ***out, size_t *out_n, struct sb_error *err);
/*
 * Counts the sessions made from a snapshot. The number is exact while the caller holds the slot of
 * session `uid` and nobody pins the snapshot.
 */
unsigned sb_host_map_forks(struct sb_host *h, int64_t uid, const char *snap);

/* For callers that hold the host's `mu`. The map keeps a reference of its own. */
int sb_host_map_add(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
void sb_host_map_remove(struct sb_host *h, struct sb_hsess *s);
struct sb_hsess *sb_host_map_get(struct sb_host *h, const char *id);

#endif
