/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_IDEM_H
#define SB_RPC_IDEM_H

#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * Makes a repeated call give the first one's result: results by session and call id for five
 * minutes, bounded in number and bytes (oldest go first). Only results are kept, never errors. A
 * call that comes while the first one runs waits for it. Thread-safe.
 */
struct sb_rpc_idem;

#define SB_RPC_IDEM_DIGEST 32

struct sb_rpc_idem *sb_rpc_idem_new(size_t max_n, size_t max_bytes, int64_t ttl_ms,
	struct sb_error *err);
void sb_rpc_idem_free(struct sb_rpc_idem *d);

struct sb_rpc_idem_run;
/*
 * Returns 1 and the first result (text, the caller's), or 0 and `out_run`: then this call is the
 * first one and must be ended by sb_rpc_idem_end. `digest` is that of the request: the same id
 * with another digest is SB_E_INVAL.
 */
int sb_rpc_idem_begin(struct sb_rpc_idem *d, const char *session, const char *call_id,
	const uint8_t digest[SB_RPC_IDEM_DIGEST], const struct sb_cancel *cancel,
	sb_deadline deadline, char **out_text, struct sb_rpc_idem_run **out_run,
	struct sb_error *err);
/*
 * `text` (taken; NULL: it failed, a waiting call runs instead) is kept unless the session was
 * forgotten meanwhile.
 */
void sb_rpc_idem_end(struct sb_rpc_idem *d, struct sb_rpc_idem_run *run, char *text);

/* Drops the results of a session that was rolled back or destroyed. */
void sb_rpc_idem_forget(struct sb_rpc_idem *d, const char *session);

#endif
