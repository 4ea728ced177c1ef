/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_MARKS_H
#define SB_PROVIDER_MARKS_H

#include <stdbool.h>

#include <base/buf.h>

/*
 * Finds the marks of tool/launch.h in the stderr of a far program as the bytes come, and passes on
 * what is between them. Drops what the log-in shell printed before, and holds back a byte of the
 * program only while it may begin a mark.
 */
struct sb_marks {
	char start[64], end[64]; /* what the marks begin with, NUL and nonce included */
	size_t start_len, end_len;
	struct sb_buf held;
	bool started;
	bool ended;
	int code, signal;
};

typedef void (*sb_marks_fn)(const void *data, size_t len, void *arg);

int sb_marks_init(struct sb_marks *m, const char *nonce, struct sb_error *err);
void sb_marks_free(struct sb_marks *m);
/* Drops everything behind the end mark. */
void sb_marks_feed(struct sb_marks *m, const void *data, size_t len, sb_marks_fn fn, void *arg);
/* The stream has ended: what was held back is text. */
void sb_marks_flush(struct sb_marks *m, sb_marks_fn fn, void *arg);

#endif
