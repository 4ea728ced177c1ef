/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ATTRS_H
#define SBSYNC_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/cursor.h>
#include <sb/error.h>

/*
 * What a sync carries only when it is asked to: extended attributes of users and access control
 * lists, of the files and directories of a tree. They are no part of a manifest: they are compared
 * and set after the contents are the same. Of attributes only those of "user." go, and of these not
 * the ones that something obeys (ours, overlay's, container runtimes').
 */
enum {
	SB_ATTRS_USER = 1, /* user.* */
	SB_ATTRS_ACL = 2,  /* access control lists, of directories also those they hand on */
	SB_ATTRS_ALL = 3,
};
#define SB_ATTRS_ACCESS "system.posix_acl_access"
#define SB_ATTRS_DEFAULT "system.posix_acl_default"
#define SB_ATTRS_VALUE_MAX 65536u
#define SB_ATTRS_SET_MAX (256u << 10) /* of one file; Linux itself allows little more */
#define SB_ATTRS_BYTES_MAX (256u << 20)

/* One file's: names rising, each with its value, as "bytes name, bytes value". */
struct sb_attrs_row {
	char *path;
	uint8_t *set;
	size_t len;
};

struct sb_attrs {
	struct sb_attrs_row *v; /* in the order of a difference; what has none is not there */
	size_t n, cap;
	uint8_t kinds; /* SB_ATTRS_* that were looked at */
};
void sb_attrs_free(struct sb_attrs *a);
SB_CLEANUP_VALUE(sb_attrs, sb_attrs_free)

/* Is this a name that is carried, with these kinds asked for? */
bool sb_attrs_carried(const char *name, unsigned kinds);
/* Adds a copy behind the others. `set` of no bytes says: none. */
int sb_attrs_add(struct sb_attrs *a, const char *path, const void *set, size_t len,
	struct sb_error *err);
const struct sb_attrs_row *sb_attrs_find(const struct sb_attrs *a, const char *path);

struct sb_attr {
	char name[256];
	const uint8_t *value;
	size_t len;
};
/* The next one of a set that was checked; false at its end. */
bool sb_attrs_next(struct sb_cursor *c, struct sb_attr *out);

/*
 * "SBAT", u8 version (1), u8 kinds, varint rows, per row bytes path, bytes set; u64 XXH3-64 of all
 * before. Decoding checks everything: paths and names and their order, that they may be carried,
 * sizes, the form of access control lists. SB_E_CORRUPT otherwise, SB_E_LIMIT for more rows than
 * `max_rows`.
 */
int sb_attrs_encode(const struct sb_attrs *a, struct sb_buf *out, struct sb_error *err);
int sb_attrs_decode(const void *data, size_t len, uint64_t max_rows, struct sb_attrs *out,
	struct sb_error *err);

#endif
