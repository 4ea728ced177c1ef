/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DOCTOR_H
#define SBSYNC_DOCTOR_H

#include <sb/error.h>
#include <sbsync/sync.h>

/* The checks, in the order they are made. */
enum sb_doctor_what {
	/* Of another machine. After a failure of one of the first four the rest is not tried. */
	SB_DOCTOR_NAME,  /* the machine answers under this name and port */
	SB_DOCTOR_KEY,   /* its host key is the one we know */
	SB_DOCTOR_LOGIN, /* we may log in and run commands */
	SB_DOCTOR_AGENT, /* the agent runs there, or can be brought there */
	SB_DOCTOR_WRITE, /* the path, or the directory it will be made in, can be written */
	SB_DOCTOR_SPACE, /* free space there */
	SB_DOCTOR_CLOCK, /* its clock agrees with ours */
	SB_DOCTOR_CHECKS,
	/* Of this machine. */
	SB_DOCTOR_STATE_DIR = SB_DOCTOR_CHECKS, /* the state directory can be written */
	SB_DOCTOR_OWN_AGENT,                    /* the agent program is there to be sent */
	SB_DOCTOR_SSH,                          /* the ssh program is there */
	SB_DOCTOR_KEYS,                         /* an ssh-agent runs */
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
	const char *place; /* what was checked: "this machine", "user@host:path"; escaped */
	char text[SB_ERROR_MSG_MAX]; /* what was found, with the way out when it is bad; escaped */
};

/* Told each result as it comes. */
typedef void (*sb_doctor_fn)(const struct sb_doctor_result *r, void *arg);

/*
 * Checks everything that a sync with `remote` ([user@]host:path, ssh://...) needs, or this machine
 * when `remote` is NULL. Of `opts` the way to the machine counts, and timeout_ms (0: a minute),
 * cancel and log. Changes nothing there but for the agent, which is brought there as for a sync.
 * Returns how many checks are bad; errors are SB_E_USAGE for what names no other machine, and what
 * is wrong here (memory, cancel).
 */
SB_API int sb_doctor_check(const char *remote, const struct sb_sync_opts *opts, sb_doctor_fn fn,
	void *arg, struct sb_error *err);

/* "name", "host key", "log-in", ... */
SB_API const char *sb_doctor_name(enum sb_doctor_what what);

#endif
