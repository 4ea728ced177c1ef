/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_HOLD_H
#define SBSYNC_SESSION_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/error.h>

/* A session's folder, locked. */
struct sb_session_held {
	int dirfd;
	int lockfd;
};
int sb_session_hold(const char *state_dir, const char *name, bool create, struct sb_session_held *h,
	struct sb_error *err);
void sb_session_let_go(struct sb_session_held *h);

/* A number larger than that of any run before. */
uint64_t sb_session_stamp(void);

#endif
