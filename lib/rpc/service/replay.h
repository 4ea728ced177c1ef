/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_REPLAY_H
#define SB_RPC_REPLAY_H

#include <stdint.h>

#include <rpc/service/idem.h>
#include <sb/error.h>

/*
 * What idem.h remembers, on disk, so that a call which is repeated after a restart of the host does
 * not run again. Calls are told by the nonce of their session and by their id. Only the last
 * minutes and a bounded number are kept. Losing the file costs nothing but this. Thread-safe.
 */
struct sb_rpc_replay;

#define SB_RPC_REPLAY_RESULT_MAX (1024 * 1024) /* longer ones are known to have ended, no more */

struct sb_rpc_replay *sb_rpc_replay_open(const char *path, int64_t ttl_s, struct sb_error *err);
void sb_rpc_replay_close(struct sb_rpc_replay *r);

/*
 * Returns 1 and the result (the caller's); 0: this call is new, and on record from now on. Errors:
 * SB_E_INVAL when the id was used for another call, SB_E_STATE when the call began before a restart
 * and nobody knows how it ended, or its result is not kept.
 */
int sb_rpc_replay_begin(struct sb_rpc_replay *r, const char *nonce, const char *call_id,
	const uint8_t digest[SB_RPC_IDEM_DIGEST], char **out_text, struct sb_error *err);
/* `text` NULL: it failed, and may be tried again. */
void sb_rpc_replay_end(struct sb_rpc_replay *r, const char *nonce, const char *call_id,
	const char *text);
/* Drops what a session had: it was rolled back. */
void sb_rpc_replay_forget(struct sb_rpc_replay *r, const char *nonce);

#endif
