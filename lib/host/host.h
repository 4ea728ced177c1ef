/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_H
#define SB_HOST_HOST_H

#include <sb/host.h>

/* What the room above, lib/host/tool, asks of a host whose insides it does not see. */

/* The options the host was opened with. */
const struct sb_host_opts *sb_host_options(const struct sb_host *h);
/* Counts a tool call that came to its end. */
void sb_host_count_tool(struct sb_host *h, bool failed);
/* Notes an event; the end of the call delivers it (sb_host_call_end). */
void sb_host_note(struct sb_host *h, const char *kind, const char *session, const char *subject,
	enum sb_host_state state);

/* A shutdown has begun. */
bool sb_host_closing(struct sb_host *h);
/* Where bin/sb-files is, or NULL. */
const char *sb_host_files_helper(const struct sb_host *h);

/*
 * Pauses an ACTIVE session as sb_host_session_pause does, but first ends every tool and program in
 * it: a resume finds its files and nothing else.
 */
int sb_host_session_halt(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err);

/*
 * A connection to what listens on `port` of the loopback address of an ACTIVE session's box; who
 * may is the caller's concern. SB_E_UNAVAILABLE: nothing does, SB_E_TIMEOUT, SB_E_UNSUPPORTED: the
 * session has no ports of its own.
 */
int sb_host_port_connect(struct sb_host *h, const char *id, unsigned port, sb_deadline d,
	int *out_fd, struct sb_error *err);

/* Unix time. */
int64_t sb_host_now_ns(void);

/* Whether options can be meant: SB_E_INVAL. */
int sb_host_check_options(const struct sb_host_opts *o, struct sb_error *err);

#endif
