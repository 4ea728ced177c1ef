/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_WIRE_H
#define SBSYNC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sync/tree/digest.h>
#include <sync/wire/transport.h>

/*
 * Frames over a transport: u32 length (little-endian, of the payload), u8 type, payload. Each
 * direction keeps a count and a running digest of all its frames; a PROOF frame carries both, and
 * the receiver checks it. So it notices lost, added and changed bytes whatever the exit status
 * says. While a side is busy it sends PING so that the other can tell slow from dead. sb_wire_send
 * may be called from several threads; sb_wire_recv from one at a time.
 */
#define SB_WIRE_MAX_PAYLOAD ((4u << 20) + 1024)

struct sb_wire;

struct sb_wire_opts {
	size_t size;
	const struct sb_cancel *cancel;
	int stall_ms; /* a peer that neither sends nor takes a byte for so long is dead; 0: wait for
			 ever */
	int busy_ms;  /* gives up a peer that for so long only sends PING and takes nothing; 0: 120
			 times stall_ms, negative: never */
	int ping_ms;  /* send PING when idle for this long; 0: never */
	uint64_t bwlimit; /* bytes a second we send, 0: no limit */
	/*
	 * For a wire without a transport: the first flush calls it with the first bytes to send; it
	 * makes the transport and sees to it that these bytes arrive.
	 */
	int (*start)(const void *first, size_t len, struct sb_transport **out, void *arg,
		struct sb_error *err);
	void *start_arg;
};
#define SB_WIRE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_wire_opts), .stall_ms = 30000, .ping_ms = 5000 \
	}

struct sb_wire *sb_wire_new(struct sb_transport *t, const struct sb_wire_opts *opts,
	struct sb_error *err);
void sb_wire_free(struct sb_wire *w);
SB_CLEANUP_PTR(sb_wire, sb_wire_free)

/*
 * Queues one frame; frames are gathered until 64 KiB or sb_wire_flush. `a` then `b` make the
 * payload.
 */
int sb_wire_send(struct sb_wire *w, uint8_t type, const void *data, size_t len,
	struct sb_error *err);
int sb_wire_send2(struct sb_wire *w, uint8_t type, const void *a, size_t a_len, const void *b,
	size_t b_len, struct sb_error *err);
int sb_wire_flush(struct sb_wire *w, struct sb_error *err);
/* A PROOF of all that was sent so far, then flush. */
int sb_wire_send_proof(struct sb_wire *w, struct sb_error *err);
/* Sends an ERROR frame with `e` and flushes; drops it when it cannot. */
void sb_wire_send_error(struct sb_wire *w, const struct sb_error *e);

/*
 * The next frame but PING and ERROR; `out` is valid until the next call. Checks a PROOF and hands
 * it on. An ERROR frame becomes the peer's code with its text, escaped, behind "far side: ". End of
 * stream is SB_E_CLOSED.
 */
int sb_wire_recv(struct sb_wire *w, uint8_t *type, const uint8_t **out, size_t *len,
	struct sb_error *err);
/*
 * When sending failed: the reason the peer gave, if it gave one within `ms`. 0 and `err` untouched
 * when it did not, or when nothing sent has failed. The wire is of no use afterwards.
 */
int sb_wire_last_words(struct sb_wire *w, int ms, struct sb_error *err);
/* The next frame, which must be of this type. */
int sb_wire_expect(struct sb_wire *w, uint8_t type, const uint8_t **out, size_t *len,
	struct sb_error *err);

/*
 * Something larger than a frame: zstd-compressed, cut into frames of one type. sb_wire_recv_blob
 * takes the first frame's payload as received and reads the rest; more than `max` raw bytes is
 * SB_E_LIMIT.
 */
int sb_wire_send_blob(struct sb_wire *w, uint8_t type, const void *data, size_t len,
	struct sb_error *err);
int sb_wire_recv_blob(struct sb_wire *w, uint8_t type, const uint8_t *first, size_t first_len,
	size_t max, struct sb_buf *out, struct sb_error *err);

/*
 * Between two syncs over one wire: sets the cancel token, the stall time and the speed of the next.
 * The cancel token must last until the next call.
 */
void sb_wire_renew(struct sb_wire *w, const struct sb_cancel *cancel, int stall_ms,
	uint64_t bwlimit);
/*
 * Takes the PINGs that came while this side did not read. SB_E_CLOSED when the peer is gone,
 * SB_E_PROTO when it said something else.
 */
int sb_wire_idle(struct sb_wire *w, struct sb_error *err);
/* Looks without waiting: 1 and its type when a frame other than PING has come, 0 when none has. */
int sb_wire_peep(struct sb_wire *w, uint8_t *type, struct sb_error *err);

/* How often this side waited for an answer: frames went out, then one came in. */
uint64_t sb_wire_turns(const struct sb_wire *w);
/* Payload and header bytes so far. */
void sb_wire_counts(const struct sb_wire *w, uint64_t *sent, uint64_t *received);

/*
 * Reads and drops bytes until the peer's greeting line has come, at most `max` of them: what login
 * shells print before the agent starts.
 */
int sb_wire_skip_to(struct sb_wire *w, const char *marker, size_t max, struct sb_error *err);

#endif
