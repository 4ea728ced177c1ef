/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDSTORE_H
#define SB_HOST_COLDSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/host.h>

/*
 * Where archives of sessions lie: objects of bytes by key, each written once and never changed. A
 * key is components of [A-Za-z0-9._-] with '/' between them. Thread-safe. What was put is there for
 * everybody who asks afterwards, in listings, too, and survives a power loss.
 */
struct sb_coldstore;

#define SB_COLDSTORE_KEY_MAX 512

struct sb_coldstore_entry {
	const char *key;
	uint64_t size;
	int64_t time_s; /* Unix time of its making, by the store's clock */
};
typedef int (*sb_coldstore_entry_fn)(const struct sb_coldstore_entry *e, void *arg,
	struct sb_error *err);

struct sb_coldstore_ops {
	const char *name;
	void (*close)(struct sb_coldstore *st);
	/* SB_E_EXISTS when there is one of that key, whatever is in it. */
	int (*put)(struct sb_coldstore *st, const char *key, const void *data, size_t len,
		const struct sb_host_call *call, struct sb_error *err);
	/* Exactly `len` bytes from `at`. SB_E_NOTFOUND, SB_E_CORRUPT when it is shorter. */
	int (*get)(struct sb_coldstore *st, const char *key, uint64_t at, void *out, size_t len,
		const struct sb_host_call *call, struct sb_error *err);
	/* SB_E_NOTFOUND. */
	int (*size)(struct sb_coldstore *st, const char *key, uint64_t *out,
		const struct sb_host_call *call, struct sb_error *err);
	/* All keys that begin with `prefix`, in byte order. */
	int (*list)(struct sb_coldstore *st, const char *prefix, sb_coldstore_entry_fn fn,
		void *arg, const struct sb_host_call *call, struct sb_error *err);
	/* Not there is success. */
	int (*remove)(struct sb_coldstore *st, const char *key, const struct sb_host_call *call,
		struct sb_error *err);
	/* Removes what broken writers left behind; may be NULL. */
	int (*sweep)(struct sb_coldstore *st, int64_t older_than_s, const struct sb_host_call *call,
		struct sb_error *err);
};

/* Each store's struct begins with this. */
struct sb_coldstore {
	const struct sb_coldstore_ops *ops;
};

/* `url` is the path of a directory, which is made when it is missing, or s3://BUCKET[/PREFIX]. */
struct sb_coldstore *sb_coldstore_open(const char *url, const struct sb_log *log,
	struct sb_error *err);
void sb_coldstore_close(struct sb_coldstore *st); /* NULL is allowed */
SB_CLEANUP_PTR(sb_coldstore, sb_coldstore_close)

/* Whether a text has the form of a key, or of the beginning of one (`prefix`). */
int sb_coldstore_check_key(const char *key, bool prefix, struct sb_error *err);

/* A directory; others who use it must do so as this user. */
struct sb_coldstore *sb_coldstore_dir_open(const char *path, struct sb_error *err);

/*
 * Credentials and so on as cloud/aws/awschain.h says. Asks the store whether it makes objects
 * conditionally: SB_E_UNSUPPORTED when it does not.
 */
struct sb_coldstore *sb_coldstore_s3_open(const char *url, const struct sb_log *log,
	struct sb_error *err);

/* A whole object of at most `max` bytes, NUL behind it; to be freed. */
uint8_t *sb_coldstore_read(struct sb_coldstore *st, const char *key, uint64_t max, size_t *out_len,
	const struct sb_host_call *call, struct sb_error *err);

#endif
