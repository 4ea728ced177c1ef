/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_MULTIPART_H
#define SB_COMPAT_MULTIPART_H

#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * Reads a multipart/form-data body as it comes, in pieces of any size, and hands each part on. It
 * keeps no more than a part's header and a boundary's length of bytes.
 */
struct sb_multipart;

#define SB_MULTIPART_HEADER_MAX 8192
#define SB_MULTIPART_PARTS_MAX 1000

/* Of a part's header; borrowed for the call. Missing ones are "". */
struct sb_multipart_part {
	const char *name;
	const char *filename; /* with %22, %0D and %0A decoded, as browsers write these */
	const char *type;
};

/* An error that one of them gives ends the reading with it. */
struct sb_multipart_ops {
	int (*begin)(const struct sb_multipart_part *part, void *arg, struct sb_error *err);
	int (*data)(const void *data, size_t len, void *arg, struct sb_error *err);
	int (*end)(void *arg, struct sb_error *err);
};

/* The boundary (1 to 70 bytes, quoted or not) is in the content type. SB_E_INVAL: it is not. */
struct sb_multipart *sb_multipart_new(const char *content_type, const struct sb_multipart_ops *ops,
	void *arg, struct sb_error *err);
void sb_multipart_free(struct sb_multipart *m);
SB_CLEANUP_PTR(sb_multipart, sb_multipart_free)

int sb_multipart_feed(struct sb_multipart *m, const void *data, size_t len, struct sb_error *err);
/* At the body's end: SB_E_INVAL when the last boundary has not come. */
int sb_multipart_finish(struct sb_multipart *m, struct sb_error *err);

#endif
