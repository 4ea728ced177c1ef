/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MARKER_H
#define SBSYNC_MARKER_H

#include <stddef.h>

#include <sb/cancel.h>
#include <sb/error.h>

struct sb_transport;

/*
 * Talks with a shell script on another machine. The script answers with lines "sbsync:NONCE:WORDS"
 * that carry a random nonce, among whatever else the log-in shell prints. Reading a line takes not
 * a byte more, so that a stream can follow it.
 */
#define SB_MARKER_NOISE_MAX (64u << 10)
#define SB_MARKER_LINE_MAX 512

struct sb_marker {
	const char *name; /* of the machine, for messages */
	struct sb_transport *t;
	const struct sb_cancel *cancel;
	sb_deadline deadline;
	char nonce[25];
	char line[SB_MARKER_LINE_MAX]; /* the words of the last line, as they came: escape before
					  showing */
	char noise[160];               /* the beginning of what came before it, escaped */
};

/* Makes the nonce; the other fields are the caller's to set. */
int sb_marker_init(struct sb_marker *m, struct sb_error *err);

/*
 * Waits for the next line. SB_E_UNSUPPORTED when the command ended without one (the message has its
 * exit code and what it said), SB_E_PROTO after too much noise, or the error of the connection.
 */
int sb_marker_next(struct sb_marker *m, struct sb_error *err);

/*
 * Sends bytes to the script until cancel or deadline; a script that is gone is the same error as in
 * sb_marker_next.
 */
int sb_marker_send(struct sb_marker *m, const void *data, size_t len, struct sb_error *err);

/* Waits until the descriptor is ready; cancel and deadline are errors. */
int sb_marker_poll(const struct sb_marker *m, int fd, short events, struct sb_error *err);

#endif
