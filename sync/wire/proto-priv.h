/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PROTO_PRIV_H
#define SBSYNC_PROTO_PRIV_H

#include <sync/wire/proto.h>

/*
 * What the codecs of the messages share. The cursor reads bytes of the peer: anything that does not
 * fit sets its `bad`, and sb_proto_done at the end of the message reports that.
 */

/* The message was whole and nothing follows it, else SB_E_PROTO with its name. */
int sb_proto_done(const struct sb_cursor *c, const char *what, struct sb_error *err);
/* Copies the next `len` bytes to `out`; zeros when there are fewer. */
void sb_proto_take_into(struct sb_cursor *c, void *out, size_t len);
/* A copy of length-prefixed bytes without NUL, at most `max`; NULL (and bad) otherwise. */
char *sb_proto_take_text(struct sb_cursor *c, size_t max);
/* The same for a path, which must be a valid one beneath a root; it may be "". */
char *sb_proto_take_path(struct sb_cursor *c);

#endif
