/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DOCTOR_H
#define SBSYNC_DOCTOR_H

#include <stdbool.h>

#include <sb/cancel.h>
#include <sb/error.h>

struct sb_remote_opts;

/* The checks, in their order; after a failure of one of the first four the rest is skipped. */
enum sb_doctor_what {
	SB_DOCTOR_NAME,  /* the machine answers under this name and port */
	SB_DOCTOR_KEY,   /* its host key is the one we know */
	SB_DOCTOR_LOGIN, /* we may log in and run commands */
	SB_DOCTOR_AGENT, /* the agent runs there, or can be brought there */
	SB_DOCTOR_WRITE, /* the path, or the directory it will be made in, can be written */
	SB_DOCTOR_SPACE, /* free space there */
	SB_DOCTOR_CLOCK, /* its clock agrees with ours */
	SB_DOCTOR_CHECKS,
};

enum sb_doctor_state {
	SB_DOCTOR_GOOD,
	SB_DOCTOR_WARN, /* works, but somebody should look at it */
	SB_DOCTOR_BAD,
	SB_DOCTOR_SKIPPED,
};

struct sb_doctor_result {
	enum sb_doctor_what what;
	enum sb_doctor_state state;
	char text[SB_ERROR_MSG_MAX]; /* what was found, with the way out when it is bad; escaped */
};

/* Called with each result as it comes. */
typedef void (*sb_doctor_fn)(const struct sb_doctor_result *r, void *arg);

/*
 * Checks everything a sync with `path` on that machine needs. Returns how many checks are bad;
 * errors only for what is wrong here (memory, cancel).
 */
int sb_doctor_run(const struct sb_remote_opts *opts, const char *path, sb_deadline d,
	sb_doctor_fn fn, void *arg, struct sb_error *err);

/* "name", "host key", "log-in", ... */
const char *sb_doctor_name(enum sb_doctor_what what);

#endif
