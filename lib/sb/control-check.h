/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_CHECK_H
#define SB_CONTROL_CHECK_H

#include <sb/conform.h>
#include <sb/control.h>

/*
 * The conformance suite of controls: what sb/control.h promises, tried out. It makes sandboxes of
 * its own and removes them, whatever happens; sandboxes that are there already it does not touch.
 * In them it needs a POSIX shell. sbcontrol-check(1) is the program.
 */
struct sb_control_check_opts {
	size_t size;
	struct sb_control *control;
	int64_t timeout_ms;      /* for any single call and for waiting; 0: 60 s */
	const char *const *only; /* names or beginnings of names of checks; NULL: all */
	sb_conform_fn report;    /* may be NULL */
	void *arg;               /* of all callbacks */
	/*
	 * A line of shell that listens on TCP port $PORT of 127.0.0.1 in a sandbox until it is
	 * killed. NULL: what is tried with a port is skipped.
	 */
	const char *listener;
	/* The control as a new process would open it. NULL: those checks are skipped. */
	struct sb_control *(*again)(void *arg, struct sb_error *err);
};
#define SB_CONTROL_CHECK_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_control_check_opts) \
	}

/* Runs the checks. Returns how many failed, or a negative code when they could not be begun. */
SB_API int sb_control_check_run(const struct sb_control_check_opts *o, struct sb_error *err);

/* All names, NULL-terminated, and what the check of a name is about ("" for an unknown one). */
SB_API const char *const *sb_control_check_names(void);
SB_API const char *sb_control_check_about(const char *name);

#endif
