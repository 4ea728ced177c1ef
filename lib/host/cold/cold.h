/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLD_COLD_H
#define SB_HOST_COLD_COLD_H

#include <host/cold/coldkey.h>
#include <host/cold/coldlog.h>
#include <host/cold/coldpace.h>
#include <host/cold/coldread.h>
#include <host/cold/coldstore.h>
#include <sb/cold.h>

/* A store, a tenant's part of it, and what is needed to work there. */
struct sb_cold {
	struct sb_coldstore *store;
	char *space;
	struct sb_coldkeys keys;
	struct sb_coldpace pace;
	struct sb_log log;
};

/* The folder of a session: its log and its indexes. */
#define SB_COLD_DIR_MAX 384
void sb_cold_dir(const struct sb_cold *c, const char *id, const char *nonce,
	char out[SB_COLD_DIR_MAX]);

/* What a reader needs, `done` unset. */
struct sb_coldread_opts sb_cold_reading(struct sb_cold *c, const struct sb_host_call *call);

/*
 * The nonce of the one session of that id that has an archive. SB_E_SESSION_NOT_FOUND, or
 * SB_E_CONFLICT when there are several.
 */
int sb_cold_find(struct sb_cold *c, const char *id, char nonce[SB_HOST_NONCE_LEN + 1],
	const struct sb_host_call *call, struct sb_error *err);

/*
 * 1 when a collector has one of the archive's parts in its hands, whose name goes to `part`; it may
 * be gone any moment, so the archive must not count on it.
 */
int sb_cold_marked(struct sb_cold *c, const struct sb_coldindex *x,
	char part[SB_COLDINDEX_PART_MAX], const struct sb_host_call *call, struct sb_error *err);

/* Removes the indexes in a session's folder but `keep` (NULL: none is kept). */
int sb_cold_prune(struct sb_cold *c, const char *dir, const char *keep,
	const struct sb_host_call *call, struct sb_error *err);

#endif
