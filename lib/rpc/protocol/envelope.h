/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_ENVELOPE_H
#define SB_RPC_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>

/*
 * A message of a Connect stream:
 *
 *   0      1               5
 *   +------+---------------+---------------- - -
 *   | flags| length, big e.| message
 *   +------+---------------+---------------- - -
 *
 * flags: 0x01 the message is compressed, 0x02 it ends the stream (and is no message of the method).
 */
#define SB_RPC_ENVELOPE_SIZE 5
#define SB_RPC_FLAG_COMPRESSED 0x01
#define SB_RPC_FLAG_END 0x02

void sb_rpc_envelope_head(uint8_t head[SB_RPC_ENVELOPE_SIZE], uint8_t flags, uint32_t len);

/*
 * Looks at the envelope at the front of `data`. Returns 1 and its parts (borrowed), 0 when bytes
 * are missing, or SB_E_LIMIT (longer than `max`) or SB_E_INVAL (unknown flags). The whole takes
 * SB_RPC_ENVELOPE_SIZE + `out_len`.
 */
int sb_rpc_envelope_next(const uint8_t *data, size_t len, size_t max, uint8_t *out_flags,
	const uint8_t **out_msg, size_t *out_len, struct sb_error *err);

#endif
