/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_ACCESS_H
#define SB_COMPAT_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/host.h>

/*
 * Access tokens that a vendor's API hands out and a gateway of another protocol takes: who has one
 * is let into one host session. The API keeps the tokens (their digests), the gateway asks.
 */
struct sb_access_grant {
	char session[SB_HOST_ID_MAX + 1]; /* the host session it opens; it may not be active */
	char user[33];                    /* as whom, in the words of the API */
	int64_t expires_s;                /* Unix time; INT64_MAX: never */
};

struct sb_access {
	/*
	 * False: the token opens nothing, or its time is over. Takes the same time for every token
	 * of that length; does not wait for the session. Thread-safe.
	 */
	bool (*lookup)(const char *token, struct sb_access_grant *out, void *arg);
	/* Somebody works in the session now: call it at the start, and every 45 s. Thread-safe. */
	void (*active)(const char *session, void *arg);
	void *arg;
};

#endif
