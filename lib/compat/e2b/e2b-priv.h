/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_E2B_PRIV_H
#define SB_COMPAT_E2B_PRIV_H

#include <pthread.h>

#include <jansson.h>

#include <compat/http/answer.h>
#include <compat/http/query.h>
#include <compat/keep/alarm.h>
#include <compat/keep/keys.h>
#include <compat/keep/records.h>
#include <host/guest/guest.h>
#include <rpc/protocol/field.h>
#include <rpc/server/http.h>
#include <sb/e2b.h>
#include <sb/host-snapshot.h>

#define SB_E2B_ID_LEN 20
#define SB_E2B_ENVD_PORT "49983"
#define SB_E2B_ENVD_VERSION "0.6.13"
#define SB_E2B_HOME "/home/user"
#define SB_E2B_SECOND INT64_C(1000000000)
#define SB_E2B_TIMEOUT_V2 300 /* seconds, where the caller names none */
#define SB_E2B_TIMEOUT_MAX (30 * 24 * 3600)

/*
 * What the host does not know of a sandbox or a snapshot. It is a file of the state directory,
 * written before the session is made, so that a crash leaves no sandbox without it. A snapshot is a
 * session that nobody sees and that sandboxes are forked from.
 */
struct sb_e2b_record {
	char id[SB_E2B_ID_LEN + 1]; /* of the session, too */
	bool snapshot;
	char *template, *name;          /* `name`: of a snapshot, or "" */
	char token[65];                 /* of the sandbox's own plane */
	char origin[SB_E2B_ID_LEN + 1]; /* of a snapshot: its sandbox */
	json_t *env;                    /* object of strings */
	int64_t started_ns, end_ns;
	bool pause; /* at `end_ns`; else it is killed */
	bool auto_resume;
	bool internet;
};

/* A watcher by id (CreateWatcher). */
struct sb_e2b_watcher;

struct sb_e2b {
	struct sb_host *host;
	struct sb_guests *guests;
	struct sb_rpc_auth *keys;
	struct sb_rpc_service service;
	struct sb_rpc_server *server;
	struct sb_log log;
	struct sb_records *records;
	struct sb_alarm *_Atomic keeper; /* its own thread may be at work before it is set */

	pthread_mutex_t mu; /* guards all below */
	struct sb_e2b_watcher *watchers;
};

/* e2b-record.c. A record found is a copy, the caller's to free. */
int sb_e2b_record_load_all(struct sb_e2b *e, struct sb_error *err);
struct sb_e2b_record *sb_e2b_record_new(bool snapshot, struct sb_error *err);
void sb_e2b_record_free(struct sb_e2b_record *r);
SB_CLEANUP_PTR(sb_e2b_record, sb_e2b_record_free)
struct sb_e2b_record *sb_e2b_record_find(struct sb_e2b *e, const char *id);
/* Writes it and makes the list have it. */
int sb_e2b_record_save(struct sb_e2b *e, const struct sb_e2b_record *r, struct sb_error *err);
void sb_e2b_record_drop(struct sb_e2b *e, const char *id);
/* All of one kind; the caller frees each and the array. */
struct sb_e2b_record **sb_e2b_record_all(struct sb_e2b *e, bool snapshots, size_t *n);
/* The id of the sandbox whose token made that signature; false: none did. */
bool sb_e2b_record_signed(struct sb_e2b *e, const char *signature, const char *text,
	const char *expires, char id[SB_E2B_ID_LEN + 1]);

/* e2b-keeper.c: ends or pauses sandboxes when their time is over. */
int64_t sb_e2b_keeper_round(void *e);

/* A way through the API. */
enum sb_e2b_plane { SB_E2B_CONTROL, SB_E2B_ENVD, SB_E2B_UNARY, SB_E2B_STREAM };
struct sb_e2b_route {
	const char *verb, *path; /* "*" stands for one segment */
	enum sb_e2b_plane plane;
	int (*run)(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
	enum sb_rpc_http_body body;
	bool lasts;   /* a stream */
	bool endless; /* that a stop does not wait for */
	bool open;    /* needs no key or token, or looks after it itself */
};
extern const struct sb_e2b_route sb_e2b_control_routes[], sb_e2b_envd_routes[],
	sb_e2b_process_routes[], sb_e2b_filesystem_routes[];

/* e2b.c */
/* Answers with the vendor's error; returns 0, so that a handler can end with it. */
int sb_e2b_refuse(struct sb_rpc_call *call, int status, const char *fmt, ...) SB_PRINTF(3, 4);
int64_t sb_e2b_now(void);

/* e2b-sandbox.c */
int sb_e2b_sandbox_resume(struct sb_e2b *e, struct sb_e2b_record *r,
	const struct sb_host_call *call, struct sb_error *err);
int sb_e2b_sandbox_pause(struct sb_e2b *e, const char *id, const struct sb_host_call *call,
	struct sb_error *err);

bool sb_e2b_sandbox_paused(const struct sb_host_session *s);
/* The record of a sandbox, or NULL and a 404 that is answered. */
struct sb_e2b_record *sb_e2b_sandbox_find(struct sb_rpc_call *call, const char *id);
/* Forgets a sandbox whose session is gone, and answers so. */
int sb_e2b_sandbox_gone(struct sb_rpc_call *call, const char *id);
/* What its maker is told of it. */
json_t *sb_e2b_sandbox_made(const struct sb_e2b_record *r);
/* As the vendor shows it; `listed`: without what only its owner needs. */
json_t *sb_e2b_sandbox_json(struct sb_e2b *e, const struct sb_e2b_record *r,
	const struct sb_host_session *s, bool listed);

/* e2b-snapshot.c: handlers. */
int sb_e2b_snapshot_fork(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_snapshot_take(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_snapshot_list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_snapshot_delete(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);

/* e2b-list.c: the handlers of both lists. */
int sb_e2b_list_v1(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_list_v2(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);

/* e2b-envd.c: a request to a sandbox. */
struct sb_e2b_visit {
	struct sb_e2b *e;
	struct sb_e2b_record *r;
	struct sb_host_call call;
	const char *user;
	char home[4200]; /* the directory that SB_E2B_HOME is, as the guest knows it */
	char buf[256];
};
/*
 * Finds the sandbox, wakes it when it may be woken, finds the user. 0: go on; 1: it is answered (a
 * 502, a 401); else an error.
 */
int sb_e2b_visit(struct sb_rpc_call *call, const char *user, struct sb_e2b_visit *v,
	struct sb_error *err);
/* The same for one that the request does not name itself. */
int sb_e2b_visit_to(struct sb_rpc_call *call, const char *id, const char *user,
	struct sb_e2b_visit *v, struct sb_error *err);
void sb_e2b_visit_end(struct sb_e2b_visit *v);
SB_CLEANUP_VALUE(sb_e2b_visit, sb_e2b_visit_end)
/*
 * A path of the vendor's rules ("~", relative, absolute): as the caller knows it, without "." and
 * "..", and as the guest does. Both are new strings.
 */
int sb_e2b_path(const struct sb_e2b_visit *v, const char *path, char **shown, char **real,
	struct sb_error *err);
json_t *sb_e2b_entry(const struct sb_guest_entry *e, const char *shown);
/* "user.e2b.": where the metadata of files is. */
extern const char sb_e2b_meta_prefix[];
json_t *sb_e2b_meta(const struct sb_guest_entry *e);

/* e2b-connect.c: Connect over it. */
typedef int (*sb_e2b_method_fn)(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in,
	json_t **out, struct sb_error *err);
int sb_e2b_unary(struct sb_rpc_call *call, sb_e2b_method_fn fn, struct sb_error *err);
int sb_e2b_stream(struct sb_rpc_call *call, sb_e2b_method_fn fn, struct sb_error *err);
/* Both take `msg`. */
int sb_e2b_send(struct sb_rpc_call *call, json_t *msg, struct sb_error *err);
int sb_e2b_send_end(struct sb_rpc_call *call, json_t *msg, struct sb_error *err);
/* What an error of the guest is called there. */
void sb_e2b_failure(struct sb_error *err, struct sb_rpc_failure *out);
/* Keepalive-Ping-Interval in ms, or the default. */
int64_t sb_e2b_keepalive(struct sb_rpc_call *call);

/* e2b-file.c: the handlers of /files. */
int sb_e2b_file_get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_file_post(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
int sb_e2b_file_compose(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);

/* e2b-filesystem.c */
void sb_e2b_watchers_end(struct sb_e2b *e, const char *id);

#endif
