/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDLOG_H
#define SB_HOST_COLDLOG_H

#include <host/cold/coldstore.h>

/*
 * Who has a session: a log of objects, each made only if there is none of its number, so that of
 * two hosts that want to write the next entry one wins. The last entry counts: "cold", whoever
 * wants the archive may take it; "host", that host has it and nobody else may; "gone", it was
 * destroyed. A session without a log was never in cold storage.
 */
enum sb_coldlog_kind { SB_COLDLOG_NONE, SB_COLDLOG_COLD, SB_COLDLOG_HOST, SB_COLDLOG_GONE };

#define SB_COLDLOG_HOST_MAX 64
#define SB_COLDLOG_INDEX_MAX 64

struct sb_coldlog {
	uint32_t n; /* from 1; 0: there is none */
	enum sb_coldlog_kind kind;
	char host[SB_COLDLOG_HOST_MAX];   /* who wrote it */
	char index[SB_COLDLOG_INDEX_MAX]; /* of the archive */
	int64_t time_s;
};

/* The last entry in the folder `dir` of a session. */
int sb_coldlog_last(struct sb_coldstore *st, const char *dir, struct sb_coldlog *out,
	const struct sb_host_call *call, struct sb_error *err);

/* Writes `e` as the entry behind `after`. SB_E_CONFLICT: somebody else was first. */
int sb_coldlog_append(struct sb_coldstore *st, const char *dir, uint32_t after,
	const struct sb_coldlog *e, const struct sb_host_call *call, struct sb_error *err);

/* Removes the entries before `n`, which nobody asks for any more. */
int sb_coldlog_trim(struct sb_coldstore *st, const char *dir, uint32_t n,
	const struct sb_host_call *call, struct sb_error *err);

#endif
