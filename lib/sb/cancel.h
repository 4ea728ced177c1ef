/* SPDX-License-Identifier: MIT */
#ifndef SB_CANCEL_H
#define SB_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/error.h>

/*
 * A cancel token: one side asks, many wait. Thread-safe; sb_cancel_request is also
 * async-signal-safe. Once requested it stays requested. The maker frees it, after every user
 * is done with it.
 */
struct sb_cancel;

SB_API struct sb_cancel *sb_cancel_new(struct sb_error *err);
SB_API void sb_cancel_free(struct sb_cancel *c);
SB_API void sb_cancel_request(struct sb_cancel *c);
/* False for NULL. */
SB_API bool sb_cancel_requested(const struct sb_cancel *c);
/* A descriptor that polls readable once requested; -1 for NULL. Borrowed; do not read it. */
SB_API int sb_cancel_fd(const struct sb_cancel *c);

/* A point on the monotonic clock in milliseconds; SB_NEVER never comes. */
typedef int64_t sb_deadline;
#define SB_NEVER INT64_MAX

SB_API int64_t sb_now_ms(void);
/* `ms` from now; 0 and negative mean SB_NEVER. */
SB_API sb_deadline sb_deadline_in(int64_t ms);
/* What is left as a poll(2) timeout: 0 when passed, -1 for SB_NEVER. */
SB_API int sb_deadline_poll_ms(sb_deadline d);
SB_API bool sb_deadline_passed(sb_deadline d);
SB_API sb_deadline sb_deadline_min(sb_deadline a, sb_deadline b);

/* SB_E_CANCELED or SB_E_TIMEOUT naming `what`, or 0 to go on. `c` may be NULL. */
SB_API int sb_check_alive(const struct sb_cancel *c, sb_deadline d, const char *what,
	struct sb_error *err);

#endif
