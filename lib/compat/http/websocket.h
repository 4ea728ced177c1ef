/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_WEBSOCKET_H
#define SB_COMPAT_WEBSOCKET_H

#include <compat/http/wsframe.h>
#include <rpc/server/http.h>

/*
 * The server's end of a WebSocket. In a service's `open`: sb_websocket_accept, whose headers are
 * the 101's; in its `upgrade`: sb_websocket_new with the socket.
 */
struct sb_websocket;

#define SB_WEBSOCKET_MAX (1u << 20) /* bytes of a message that a client may send */

bool sb_websocket_wanted(struct sb_rpc_call *call);
/* `protocol` (may be NULL) is what is chosen of those offered. SB_E_INVAL: no handshake. */
int sb_websocket_accept(struct sb_rpc_call *call, const char *protocol, struct sb_error *err);
/* Copies the first offered protocol that begins with `prefix`. */
bool sb_websocket_offered(struct sb_rpc_call *call, const char *prefix, char *out, size_t size);

/* `cancel` ends all waiting. `sock` stays the caller's. */
struct sb_websocket *sb_websocket_new(int sock, const struct sb_cancel *cancel,
	struct sb_error *err);
void sb_websocket_free(struct sb_websocket *w);
SB_CLEANUP_PTR(sb_websocket, sb_websocket_free)

/*
 * Waits for the next message. 1: one, as sb_wsframe_next; 0: none within `wait_ms` (negative: for
 * ever); SB_E_CLOSED: the client went; SB_E_PROTO, SB_E_CANCELED. Pings are answered. By one thread
 * at a time, sends by any.
 */
int sb_websocket_next(struct sb_websocket *w, int64_t wait_ms, enum sb_wsframe_kind *kind,
	const uint8_t **data, size_t *len, struct sb_error *err);
/* Waits while the client is behind, at most `ms`: SB_E_TIMEOUT, and nothing more is sent. */
#define SB_WEBSOCKET_SEND_MS 30000
int sb_websocket_send(struct sb_websocket *w, enum sb_wsframe_kind kind, const void *data,
	size_t len, int64_t ms, struct sb_error *err);
/* Ends the waiting of the one who reads, now and later. From any thread. */
void sb_websocket_leave(struct sb_websocket *w);
/* Says that it is over, once. `reason`: at most 120 bytes. */
void sb_websocket_close(struct sb_websocket *w, int code, const char *reason);

#endif
