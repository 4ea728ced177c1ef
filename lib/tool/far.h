/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_FAR_H
#define SB_TOOL_FAR_H

#include <base/buf.h>
#include <sb/cancel.h>
#include <tool/serve.h>

/*
 * The other end of sb_serve_run. Any thread may ask, several at once. A request given up by cancel
 * or deadline may still be carried out over there; its answer is dropped.
 */
struct sb_far;

/* Takes the descriptors as they are; they stay the caller's and must live until sb_far_free. */
struct sb_far *sb_far_new(int rfd, int wfd, struct sb_error *err);
/* Nobody may be asking. */
void sb_far_free(struct sb_far *f);

/*
 * Sends `args` and waits for the answer: 0 with the results in `reply` (initialised by this call,
 * freed by the caller, also on failure), or the code and text from over there, or the failure of
 * the connection.
 */
int sb_far_ask(struct sb_far *f, enum sb_serve_op op, const struct sb_buf *args,
	const struct sb_cancel *cancel, sb_deadline d, struct sb_buf *reply, struct sb_error *err);

/* 0 while it can be asked. */
int sb_far_check(struct sb_far *f, struct sb_error *err);

#endif
