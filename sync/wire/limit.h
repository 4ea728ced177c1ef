/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_LIMIT_H
#define SBSYNC_LIMIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * The time limit of a whole operation as a cancel token: it requests the cancel when the caller
 * does, or when the time is up. So everything that can be canceled ends at the limit, too, and
 * everything here can.
 */
struct sb_limit {
	const struct sb_cancel *from;
	struct sb_cancel *own; /* NULL: no limit, the caller's token is enough */
	int64_t ms;
	sb_deadline deadline;
	int stop_fd;
	pthread_t thread;
	_Atomic bool passed;
};

/* `ms` from now; 0: no limit. */
int sb_limit_start(struct sb_limit *l, const struct sb_cancel *from, int64_t ms,
	struct sb_error *err);
const struct sb_cancel *sb_limit_cancel(const struct sb_limit *l);
/*
 * Ends it and returns `code`; a failure that the limit or the caller's cancel caused becomes
 * SB_E_TIMEOUT or SB_E_CANCELED.
 */
int sb_limit_end(struct sb_limit *l, int code, struct sb_error *err);

#endif
