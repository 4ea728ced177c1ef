/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RETRY_H
#define SBSYNC_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <sbsync/sync.h>

/*
 * Lets a sync go on after it lost its connection: each attempt begins with sb_run_link_take and
 * ends with sb_run_link_give, both given the same one of these, zero at first.
 */
struct sb_retry {
	bool connected; /* a link worked once, so the name, the keys and the log-in are right */
	bool lost;      /* the last failure was one of the connection */
	bool was_lost;  /* ... or an earlier one: an old agent may still hold its lock */
	bool moved;     /* the attempt found more there than any before it */
	uint64_t best;  /* the most that was there when an attempt began */
	int failures;   /* in a row, without having got further */
};

/* Tells how much earlier attempts have brought; only its growth matters. */
void sb_retry_progress(struct sb_retry *t, uint64_t there);
/*
 * After an attempt that failed with `code`: pauses and returns true when another one makes sense,
 * with `res` ready for it. After too many attempts that got no further, returns false, and `err`
 * says what to do.
 */
bool sb_retry_again(struct sb_retry *t, int code, const struct sb_sync_opts *o,
	struct sb_error *err, struct sb_sync_result *res);

#endif
