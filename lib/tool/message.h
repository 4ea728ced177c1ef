/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_MESSAGE_H
#define SB_TOOL_MESSAGE_H

#include <base/buf.h>
#include <base/cursor.h>
#include <base/strlist.h>
#include <sb/cancel.h>

/* Messages over a pair of byte streams: a little-endian 32-bit length, then that many bytes. */

#define SB_MESSAGE_MAX (80u << 20)

/*
 * Both wait as long as cancel and deadline allow, whether the descriptor blocks or not.
 * SB_E_CLOSED: the other side is gone. After a failure the stream is in the middle of a message and
 * of no use.
 */
int sb_message_send(int fd, const struct sb_buf *b, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err);
/* Into `out`, which is reset first. SB_E_PROTO for more than `max` bytes. */
int sb_message_recv(int fd, size_t max, struct sb_buf *out, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);

/* Raw bytes under the same rules; recv returns what there is, 0 at the end. */
int sb_message_write(int fd, const void *data, size_t len, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);
ssize_t sb_message_read(int fd, void *data, size_t len, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);

/* Texts and lists of texts inside a message. A text with a NUL in it makes the cursor bad. */
void sb_message_add_text(struct sb_buf *b, const char *s);         /* NULL as "" */
void sb_message_add_texts(struct sb_buf *b, const char *const *v); /* NULL as none */
char *sb_message_text(struct sb_cursor *c); /* new; NULL: bad, or no memory */
int sb_message_texts(struct sb_cursor *c, size_t max, struct sb_strlist *out, struct sb_error *err);

#endif
