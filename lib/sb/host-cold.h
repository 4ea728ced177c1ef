/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLD_H
#define SB_HOST_COLD_H

#include <sb/host.h>

/*
 * Deep pause: a session that nobody uses becomes an archive in cold storage (sbcold(5)) and costs
 * nothing here; any host with the same storage can take it back, with its files, snapshots, holds
 * and labels. Without cold storage (sb_host_opts.cold_store) these are SB_E_UNSUPPORTED.
 *
 * At every moment one host owns the session, or none and the archive is whole: local data goes
 * after the archive was read back and verified, and a host takes an archive by an entry in the log
 * of the session that only one can write. A crash at any point leaves the session where it was or
 * where it was going, and the next open (or the worker) finishes the rest.
 */

/*
 * ACTIVE (which is paused first) or PAUSED. Its processes, which are frozen, end with it. A cancel,
 * or an error, leaves it PAUSED; once the archive is verified it is COLD, and what is left to be
 * done here is done later if it cannot be now. SB_E_SNAPSHOT_IN_USE while a snapshot is being sent.
 * Events "session.progress", about once a second, with "deep-pause PERCENT%" or bytes as subject.
 */
SB_API int sb_host_session_deep_pause(struct sb_host *h, const char *id,
	const struct sb_host_call *call, struct sb_error *err);

/*
 * COLD, here or on any other host with this storage: then the session need not be known here.
 * ACTIVE afterwards. SB_E_CONFLICT names the host that has it. SB_E_UNSUPPORTED: this host's
 * storage cannot take what the archive holds. After any error it is COLD, and others may have it.
 */
SB_API int sb_host_session_deep_resume(struct sb_host *h, const char *id,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err);

#endif
