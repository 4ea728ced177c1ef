/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OWNER_H
#define SB_HOST_OWNER_H

#include <sys/types.h>

#include <sb/host.h>

struct sb_hsess;

/*
 * To whom the files and processes of sessions belong. User 0 of a box is a user of this machine
 * that nobody else is: one of the range session_uid_first, session_uid_count of the host's options,
 * another one for each session as far as they go; forks share the user of their origin. The owner
 * of the workspace's directory is the record of it: whoever starts something for a session does so
 * as that user (sb_runtime_owner).
 */

/*
 * Settles the range in `o`: session_uid_count becomes 0 where this process cannot be other users,
 * which `why` tells then.
 */
void sb_host_owner_settle(struct sb_host_opts *o, char *why, size_t size);

/* The user of the range that a new workspace of the session is to belong to; 0: to nobody's. */
uid_t sb_host_owner_of(const struct sb_host *h, const struct sb_hsess *s);

/*
 * Makes the workspace in `dir` the property of a user of the range, unless it is already; from now
 * on no program in it runs as its owner, where it is a file system of its own. What is in it comes
 * first, so that a claim which was cut is done again. For a session that has nothing running.
 */
int sb_host_owner_claim(struct sb_host *h, const struct sb_hsess *s, const char *dir,
	const struct sb_host_call *call, struct sb_error *err);

#endif
