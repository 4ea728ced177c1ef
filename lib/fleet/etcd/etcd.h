/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_ETCD_H
#define SB_FLEET_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

/*
 * A client of an etcd cluster (3.4 and up) by its JSON gateway. Threads: any number may call one
 * client at once.
 *
 * Members: a call goes to the member that answered last; one that cannot be reached, or says that
 * it has no leader, is passed over for the next. A call that only reads is made again after any
 * failure of that kind. One that writes is made again only when nothing can have happened; where
 * the answer was lost it fails with SB_E_UNAVAILABLE, and the caller has to look (all its writes
 * should compare, so that looking is enough).
 *
 * Failures: SB_E_UNAVAILABLE (no member answered, no leader, an answer was lost), SB_E_NOSPACE (the
 * cluster's alarm; reads go on), SB_E_LIMIT (too large), SB_E_CHANGED (the revision was compacted:
 * list again), SB_E_NOTFOUND (lease), SB_E_AUTH, SB_E_TIMEOUT, SB_E_CANCELED, SB_E_PROTO.
 */
struct sb_etcd;

struct sb_etcd_opts {
	size_t size;
	const char *const *endpoints; /* "http[s]://HOST:PORT", at least one */
	size_t n_endpoints;
	const char *ca_file;   /* authority of the members; NULL: as the environment says */
	const char *cert_file; /* what this client shows; both or neither */
	const char *key_file;
	int64_t connect_ms;
	int64_t call_ms; /* one call with all its members */
	struct sb_log log;
};
#define SB_ETCD_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_etcd_opts), .connect_ms = 2000, .call_ms = 5000 \
	}

/* Connects nowhere yet. SB_E_INVAL for an endpoint of another form. */
struct sb_etcd *sb_etcd_new(const struct sb_etcd_opts *o, struct sb_error *err);
void sb_etcd_free(struct sb_etcd *e); /* takes NULL; no call may be under way */
SB_CLEANUP_PTR(sb_etcd, sb_etcd_free)

/* A key with its value. Values are bytes; keys here are texts. */
struct sb_etcd_kv {
	const char *key;
	const uint8_t *value; /* NUL-terminated behind `len` */
	size_t len;
	int64_t create_rev;
	int64_t mod_rev; /* 0: there is no such key */
	int64_t version;
	int64_t lease; /* 0: none */
};

/* What each call of it gets is borrowed. Negative ends the call with it. */
typedef int (*sb_etcd_kv_fn)(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err);

/* The value in `out`, whose ceiling it must fit, and the rest in `kv` (may be NULL; its texts are
 * not set). 0, or SB_E_NOTFOUND. The cluster's majority has confirmed what it says. */
int sb_etcd_get(struct sb_etcd *e, const char *key, struct sb_buf *out, struct sb_etcd_kv *kv,
	const struct sb_cancel *cancel, struct sb_error *err);

/*
 * All keys with the prefix in their order, as they were at one revision, which is put into `rev`.
 * Asks for them in pages. SB_E_CHANGED when a compaction came in between.
 */
int sb_etcd_list(struct sb_etcd *e, const char *prefix, sb_etcd_kv_fn fn, void *arg, int64_t *rev,
	const struct sb_cancel *cancel, struct sb_error *err);

/* How many keys have the prefix. */
int sb_etcd_count(struct sb_etcd *e, const char *prefix, int64_t *n, const struct sb_cancel *cancel,
	struct sb_error *err);

/* One condition of a transaction. */
struct sb_etcd_if {
	const char *key;
	int64_t mod_rev; /* as the key's must be; 0: there must be no such key */
};

/* One change. */
struct sb_etcd_do {
	const char *key;
	const void *value; /* NULL: the key is deleted */
	size_t len;
	int64_t lease; /* 0: none */
};

/*
 * Makes all changes if all conditions hold, or none: 1 with the revision in `rev` (may be NULL), 0
 * when a condition did not hold. At most 128 of each.
 */
int sb_etcd_txn(struct sb_etcd *e, const struct sb_etcd_if *ifs, size_t n_ifs,
	const struct sb_etcd_do *dos, size_t n_dos, int64_t *rev, const struct sb_cancel *cancel,
	struct sb_error *err);

/* --- leases
 * --------------------------------------------------------------------------------------- */

/* A new one that ends `ttl` seconds after its last renewal. */
int sb_etcd_lease_grant(struct sb_etcd *e, int64_t ttl, int64_t *id, const struct sb_cancel *cancel,
	struct sb_error *err);

/* Renews `n` of them in one call; `ttl[i]` becomes what is left, 0 for one that has ended. */
int sb_etcd_lease_renew(struct sb_etcd *e, const int64_t *ids, size_t n, int64_t *ttl,
	const struct sb_cancel *cancel, struct sb_error *err);

/* Ends it, and deletes its keys. One that has ended already is no failure. */
int sb_etcd_lease_revoke(struct sb_etcd *e, int64_t id, const struct sb_cancel *cancel,
	struct sb_error *err);

/* --- watching
 * ------------------------------------------------------------------------------------- */

struct sb_etcd_watch {
	size_t size;
	const char *prefix;
	int64_t from; /* the first revision that is told */
	/*
	 * A change: `deleted`, or the key's new value. `kv->mod_rev` is its revision; several keys
	 * may share one.
	 */
	int (*on_change)(bool deleted, const struct sb_etcd_kv *kv, void *arg,
		struct sb_error *err);
	/* A member was reached and tells from now on; again after each change of the member. */
	int (*on_line)(void *arg, struct sb_error *err);
	void *arg;
	int64_t quiet_ms; /* another member is asked after so long a silence */
};
#define SB_ETCD_WATCH_INIT \
	{ \
		.size = sizeof(struct sb_etcd_watch), .quiet_ms = 15000 \
	}

/*
 * Tells of every change from `from` on, in order, each once, over lost connections and members,
 * until it is canceled (SB_E_CANCELED), a callback fails, or the revision it must go on from was
 * compacted (SB_E_CHANGED): then the caller lists again and watches from there. While no member
 * can be reached it goes on trying, from 0.1 to 2 seconds apart.
 */
int sb_etcd_watch(struct sb_etcd *e, const struct sb_etcd_watch *w, const struct sb_cancel *cancel,
	struct sb_error *err);

/* --- the cluster
 * ---------------------------------------------------------------------------------- */

struct sb_etcd_status {
	int members;
	int reached;
	bool leader;  /* a majority works together */
	bool nospace; /* the alarm is on */
	int64_t revision;
	int64_t db_bytes;
};

/* Asks each endpoint. Fails only when none answers. */
int sb_etcd_status(struct sb_etcd *e, struct sb_etcd_status *st, const struct sb_cancel *cancel,
	struct sb_error *err);

/* Forgets what was before `rev`; one that is compacted already is no failure. */
int sb_etcd_compact(struct sb_etcd *e, int64_t rev, const struct sb_cancel *cancel,
	struct sb_error *err);

#endif
