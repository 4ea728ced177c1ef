/* SPDX-License-Identifier: MIT */
#ifndef SB_COLD_H
#define SB_COLD_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/host.h>

/*
 * Cold storage, where sandbox hosts keep deep-paused sessions (sbcold(5)), for who looks after it.
 * Hosts may use it meanwhile.
 */
struct sb_cold;

struct sb_cold_opts {
	size_t size;
	const char *url;      /* "/DIR", or "s3://BUCKET[/PREFIX]" */
	const char *space;    /* a tenant's part of it: [A-Za-z0-9._-]; NULL: "default" */
	const char *key_file; /* NULL: keys of SBHOSTD_COLD_KEYS, if that is set */
	uint64_t rate;        /* bytes a second in all transfers together; 0: no limit */
	unsigned transfers;   /* sessions on their way at a time; 0: no limit */
	struct sb_log log;
};
#define SB_COLD_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_cold_opts) \
	}

SB_API struct sb_cold *sb_cold_open(const struct sb_cold_opts *o, struct sb_error *err);
SB_API void sb_cold_close(struct sb_cold *c); /* NULL is allowed */

/* One session in the store. */
struct sb_cold_entry {
	const char *id, *nonce;
	const char *where; /* "cold", "host" (has been taken by `host`), "gone" */
	const char *host;
	const char *index;     /* of its archive; "" when there is none */
	int64_t time_s;        /* of what `where` says */
	uint64_t size, stored; /* of the streams; of the frames they need. 0 unless checked */
	uint64_t snapshots;    /* in the archive; 0 unless checked */
	bool encrypted;
	const char *wrong; /* NULL, or what is wrong with it */
};
typedef int (*sb_cold_entry_fn)(const struct sb_cold_entry *e, void *arg, struct sb_error *err);

/*
 * Calls `fn` for every session, or those of the id; with `check` every frame of its archive is
 * fetched and verified first, nothing is restored. 0, or the error of the store or of `fn`; what is
 * wrong with an archive is in its entry.
 */
SB_API int sb_cold_list(struct sb_cold *c, const char *id, bool check,
	const struct sb_host_call *call, sb_cold_entry_fn fn, void *arg, struct sb_error *err);

struct sb_cold_collected {
	uint64_t kept, removed, bytes; /* parts; bytes of the removed ones */
	uint64_t archives;             /* of destroyed sessions, removed */
};
/*
 * Removes what no archive names any more and is older than `older_than_s`; a younger one may belong
 * to an archive that is being written. Any number of hosts may do so at once, and die at it. An
 * index that cannot be read stops it before anything is removed.
 */
SB_API int sb_cold_collect(struct sb_cold *c, int64_t older_than_s, const struct sb_host_call *call,
	struct sb_cold_collected *out, struct sb_error *err);

#endif
