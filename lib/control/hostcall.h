/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_HOSTCALL_H
#define SB_CONTROL_HOSTCALL_H

#include <jansson.h>

#include <sb/control.h>

/*
 * One sandbox host (sbhostd) as controls call it: connections that are kept between calls, and the
 * limits and the fencing token of a call in each request. Thread-safe.
 */
struct sb_hostcall;

/* `url`: "unix:PATH", "http://HOST:PORT", "https://HOST:PORT". The files may be NULL. */
struct sb_hostcall *sb_hostcall_new(const char *url, const char *token_file, const char *ca_file,
	struct sb_error *err);
void sb_hostcall_free(struct sb_hostcall *h);
const char *sb_hostcall_url(const struct sb_hostcall *h);
/* The address in the URL, and whether it is reached by TLS. */
const char *sb_hostcall_address(const struct sb_hostcall *h, bool *tls);

/*
 * Calls a procedure; takes `in` over (NULL: out of memory, or text that is not UTF-8). `out` may be
 * NULL, else it is a new object. Errors are the host's, but SB_E_SANDBOX_NOT_FOUND for a session
 * that it does not know.
 */
int sb_hostcall(struct sb_hostcall *h, const char *method, json_t *in,
	const struct sb_control_call *call, json_t **out, struct sb_error *err);

/* The answer may have been lost on its way, or nobody was there: the same call again is in order.
 */
bool sb_hostcall_transient(int code);
/* Waits `ms`, or less. SB_E_TIMEOUT, SB_E_CANCELED. */
int sb_hostcall_pause(const struct sb_control_call *call, int64_t ms, struct sb_error *err);

/* The remote shell with which sbsync reaches sessions of it. A new text. */
char *sb_hostcall_rsh(const struct sb_hostcall *h, struct sb_error *err);

#endif
