/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_COLD_H
#define SB_HOST_HOST_COLD_H

#include <jansson.h>

#include <host/cold/cold.h>
#include <host/hsess.h>

struct sb_host;

/* Opens the cold storage of the options, if they name one. */
int sb_host_cold_open(struct sb_host *h, struct sb_error *err);
int sb_host_cold_need(const struct sb_host *h, struct sb_error *err);

/* The record of a session as an archive carries it. NULL: out of memory. */
json_t *sb_host_cold_record(struct sb_host *h, struct sb_hsess *s);
/*
 * A session out of its record: PAUSED would follow; it is COLD, in nobody's list. Everything in it
 * is checked as what a stranger wrote. SB_E_CORRUPT.
 */
struct sb_hsess *sb_host_cold_revive(struct sb_host *h, const json_t *record, struct sb_error *err);

/* What a session from an archive still lacks of the archive's snapshots and holds. Slot held. */
int sb_host_cold_merge(struct sb_host *h, struct sb_hsess *s, const json_t *record,
	struct sb_error *err);

/* Puts a revived session into the host's list and database. Takes no reference. */
int sb_host_cold_adopt(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/*
 * Does what is left of a deep pause, or of a deep resume that did not come through, for a COLD
 * session whose slot is held: the archive is anybody's, nothing of it is here.
 */
int sb_host_cold_rest(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call,
	struct sb_error *err);

/*
 * A session that is being destroyed takes its archive along, unless another host has it. With the
 * slot held.
 */
int sb_host_cold_forget(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/* The worker's part: the rest of COLD sessions, and those that were paused for long. */
int sb_host_cold_tidy(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
/* When a PAUSED session goes to cold storage, by sb_now_ms; 0: never. `mu` held. */
int64_t sb_host_cold_due(const struct sb_host *h, const struct sb_hsess *s);

/* Tells how far a transfer is, about once a second, until it is stopped. */
struct sb_host_cold_meter {
	struct sb_host *h;
	struct sb_hsess *s;
	const char *what;
	uint64_t total; /* 0: not known */
	atomic_ullong done;
	atomic_bool stop;
	pthread_t thread;
	bool on;
};
void sb_host_cold_meter_start(struct sb_host_cold_meter *m);
void sb_host_cold_meter_stop(struct sb_host_cold_meter *m);

#endif
