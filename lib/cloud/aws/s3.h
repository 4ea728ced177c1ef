/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_S3_H
#define SB_CLOUD_AWS_S3_H

#include <stdint.h>

#include <cloud/aws/awscall.h>

/*
 * Objects in a bucket of S3, or of what speaks as it does. Objects are made only where there is
 * none of their key, so a store that cannot do that is refused. Credentials, region and endpoint as
 * struct sb_awschain says; an endpoint of somebody's own is spoken to in path style. Thread-safe.
 */
struct sb_s3;

struct sb_s3_opts {
	size_t size;
	const char *bucket;
	const char *endpoint; /* NULL: configured, else AWS's */
	const char *region;   /* NULL: configured */
	const char *ca_file;
	const struct sb_cancel *cancel; /* of the opening */
	struct sb_log log;
};
#define SB_S3_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_s3_opts) \
	}

/* Does not connect, unless a region has to be asked for. */
struct sb_s3 *sb_s3_new(const struct sb_s3_opts *o, struct sb_error *err);
void sb_s3_free(struct sb_s3 *s); /* NULL is allowed */
SB_CLEANUP_PTR(sb_s3, sb_s3_free)

/*
 * Finds out by the object `key` whether the store makes objects conditionally: SB_E_UNSUPPORTED
 * when it does not. The object stays.
 */
int sb_s3_probe(struct sb_s3 *s, const char *key, const struct sb_rest_wait *wait,
	struct sb_error *err);

/*
 * A new object; SB_E_EXISTS when there is one of that key. An answer that was lost to a write that
 * came through is no error.
 */
int sb_s3_put_new(struct sb_s3 *s, const char *key, const void *data, size_t len,
	const struct sb_rest_wait *wait, struct sb_error *err);
/* Exactly `len` bytes from `at`. SB_E_NOTFOUND; SB_E_CORRUPT when it is shorter. */
int sb_s3_get(struct sb_s3 *s, const char *key, uint64_t at, void *out, size_t len,
	const struct sb_rest_wait *wait, struct sb_error *err);
int sb_s3_size(struct sb_s3 *s, const char *key, uint64_t *out, const struct sb_rest_wait *wait,
	struct sb_error *err);
/* Not there is success. */
int sb_s3_remove(struct sb_s3 *s, const char *key, const struct sb_rest_wait *wait,
	struct sb_error *err);

struct sb_s3_entry {
	const char *key;
	uint64_t size;
	int64_t time_s;
};
typedef int (*sb_s3_entry_fn)(const struct sb_s3_entry *e, void *arg, struct sb_error *err);
/* All keys with that prefix, in byte order. */
int sb_s3_list(struct sb_s3 *s, const char *prefix, sb_s3_entry_fn fn, void *arg,
	const struct sb_rest_wait *wait, struct sb_error *err);

/*
 * One page of a listing (ListObjectsV2 with encoding-type=url). `next`, of `size` bytes, is the
 * token of the page behind it, or "". SB_E_PROTO.
 */
#define SB_S3_TOKEN_MAX 2048
int sb_s3_list_page(const char *xml, sb_s3_entry_fn fn, void *arg, char *next, size_t size,
	struct sb_error *err);

#endif
