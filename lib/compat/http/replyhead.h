/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_REPLYHEAD_H
#define SB_COMPAT_REPLYHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include <base/strlist.h>

/* The head of an HTTP answer, for who passes one on. */
#define SB_REPLYHEAD_MAX 65536
#define SB_REPLYHEAD_LINES_MAX 200

struct sb_replyhead {
	int status;                /* 100 to 999 */
	int64_t length;            /* Content-Length; -1: none */
	char *type;                /* Content-Type, or NULL */
	struct sb_strlist headers; /* name, value, ...: the others that may be passed on */
};

/*
 * 1: it is whole, `*used` bytes of them; 0: more is needed; SB_E_PROTO: it is none, or cannot be
 * passed on: a coded transfer, two lengths, bytes that no header has.
 */
int sb_replyhead_parse(const char *data, size_t len, struct sb_replyhead *out, size_t *used,
	struct sb_error *err);
void sb_replyhead_free(struct sb_replyhead *h);
SB_CLEANUP_VALUE(sb_replyhead, sb_replyhead_free)

/* A header of one connection, which is not passed on. */
bool sb_replyhead_is_hop(const char *name);

#endif
