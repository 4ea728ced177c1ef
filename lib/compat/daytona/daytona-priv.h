/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_DAYTONA_PRIV_H
#define SB_COMPAT_DAYTONA_PRIV_H

#include <pthread.h>

#include <jansson.h>

#include <compat/http/answer.h>
#include <compat/http/query.h>
#include <compat/http/websocket.h>
#include <compat/keep/access.h>
#include <compat/keep/alarm.h>
#include <compat/keep/keys.h>
#include <compat/keep/records.h>
#include <host/guest/guest.h>
#include <rpc/protocol/field.h>
#include <sb/daytona.h>
#include <sb/host-snapshot.h>

#define SB_DAYTONA_ID_LEN 36 /* a UUID */
#define SB_DAYTONA_HOME "/home/daytona"
#define SB_DAYTONA_ORGANIZATION "00000000-0000-4000-8000-000000000001"
#define SB_DAYTONA_VERSION "0.218.0"
#define SB_DAYTONA_MINUTE INT64_C(60000000000)

/*
 * What the host does not know of a sandbox is a JSON object on record, with the vendor's names for
 * what the vendor shows, and:
 *   kind         "sandbox"; "snapshot": a session that nobody sees, and sandboxes are forked from
 *   state        "started", "stopped", "paused" or "archived": the last that was reached
 *   createdNs, updatedNs, activeNs, stoppedNs   Unix times
 *   token        opens its ports; signingKey signs addresses of its files
 *   parent       what it was forked from, or ""
 *   ssh          access tokens: id, digest, createdNs, expiresNs
 *   sign:DIGEST  a signed token for a port: port, expiresNs
 *   pty:ID       a terminal: cols, rows, cwd, envs, createdNs, lazyStart
 * Labels are the session's. Its id is the session's, too.
 */

/* What is in memory only: who works in it, what it is on its way to. */
struct sb_daytona_now {
	struct sb_daytona_now *next;
	char id[SB_DAYTONA_ID_LEN + 1];
	const char *transit; /* the state to be shown meanwhile, or NULL */
	int64_t active_ns;
	unsigned users;
};

struct sb_daytona_listener;

struct sb_daytona {
	struct sb_host *host;
	struct sb_guests *guests;
	struct sb_rpc_auth *keys;
	struct sb_rpc_service service;
	struct sb_rpc_server *server;
	struct sb_log log;
	struct sb_records *records;
	struct sb_alarm *_Atomic keeper; /* its own thread may be at work before it is set */
	struct sb_access access;
	char *ssh_gateway; /* HOST[:PORT], or NULL: there is none */
	bool tls;

	pthread_mutex_t making; /* held while a name is looked for and taken */
	pthread_mutex_t edit;   /* held while a record is changed */
	pthread_mutex_t mu;     /* guards `now` */
	struct sb_daytona_now *now;
	pthread_mutex_t hub; /* guards below */
	struct sb_daytona_listener *listeners;
};

/* A way through the API. */
enum sb_daytona_plane { SB_DAYTONA_CONTROL, SB_DAYTONA_TOOLBOX, SB_DAYTONA_PREVIEW };
struct sb_daytona_route {
	const char *verb, *path; /* of a toolbox: behind its id */
	int (*run)(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err);
	enum sb_rpc_http_body body;
	unsigned how;
	int (*socket)(struct sb_rpc_call *call, const struct sb_query *q, struct sb_websocket *w,
		struct sb_error *err); /* instead of `run` */
};
enum {
	SB_DAYTONA_LASTS = 1,   /* a stream */
	SB_DAYTONA_ENDLESS = 2, /* that a stop does not wait for */
	SB_DAYTONA_OPEN = 4,    /* needs no key, or looks after it itself */
	SB_DAYTONA_SIGNED = 8,  /* of a toolbox: a signed address will do */
};
extern const struct sb_daytona_route sb_daytona_sandbox_routes[], sb_daytona_list_routes[],
	sb_daytona_get_routes[], sb_daytona_ssh_routes[], sb_daytona_snapshot_routes[],
	sb_daytona_session_routes[], sb_daytona_pty_routes[], sb_daytona_git_routes[],
	sb_daytona_event_routes[], sb_daytona_toolbox_routes[], sb_daytona_file_routes[];

/* For every verb, whatever follows its path. */
extern const struct sb_daytona_route sb_daytona_preview_route;
extern const struct sb_daytona_route sb_daytona_port_routes[], sb_daytona_inner_port_routes[];

/* daytona.c */
/* Answers with the vendor's error; returns 0, so that a handler can end with it. */
int sb_daytona_refuse(struct sb_rpc_call *call, int status, const char *fmt, ...) SB_PRINTF(3, 4);
/* The same with the toolbox's word for it ("FILE_NOT_FOUND"). */
int sb_daytona_refuse_as(struct sb_rpc_call *call, int status, const char *code, const char *fmt,
	...) SB_PRINTF(4, 5);
/* "http://HOST" as the caller knows us. */
#define SB_DAYTONA_BASE_MAX 300
void sb_daytona_base(struct sb_rpc_call *call, char out[SB_DAYTONA_BASE_MAX]);
bool sb_daytona_key_ok(struct sb_daytona *d, const char *key);

/* daytona-record.c */
int sb_daytona_record_load(struct sb_daytona *d, struct sb_error *err);
/* A new one with a random id and the vendor's defaults. NULL: error. */
json_t *sb_daytona_record_new(const char *kind, struct sb_error *err);
/* By id or name; the caller's own, to be changed and saved. NULL: none. */
json_t *sb_daytona_record_find(struct sb_daytona *d, const char *kind, const char *id_or_name);
/* A new one. */
int sb_daytona_record_save(struct sb_daytona *d, const json_t *rec, struct sb_error *err);
/*
 * Sets these members (null: takes them away) of the one on record, and of the caller's `rec`;
 * others may change other members meanwhile. Takes `changes`. SB_E_SESSION_NOT_FOUND: it has gone.
 */
int sb_daytona_record_change(struct sb_daytona *d, json_t *rec, json_t *changes,
	struct sb_error *err);
void sb_daytona_record_drop(struct sb_daytona *d, const char *id);
/* "" and 0 for what is not there. */
const char *sb_daytona_text(const json_t *rec, const char *name);
int64_t sb_daytona_number(const json_t *rec, const char *name);
void sb_daytona_set(json_t *rec, const char *name, const char *value);
void sb_daytona_set_number(json_t *rec, const char *name, int64_t value);
void sb_daytona_uuid(char out[SB_DAYTONA_ID_LEN + 1]);
/* Somebody works in it until the leave; its time of activity is now. */
void sb_daytona_enter(struct sb_daytona *d, const char *id);
void sb_daytona_leave(struct sb_daytona *d, const char *id);
int64_t sb_daytona_active(struct sb_daytona *d, const json_t *rec);
/* False: something else is under way with it. */
bool sb_daytona_transit(struct sb_daytona *d, const char *id, const char *state);
void sb_daytona_arrive(struct sb_daytona *d, const char *id);
/* What the vendor calls its state now. */
const char *sb_daytona_state(struct sb_daytona *d, const json_t *rec);

/* daytona-keeper.c */
enum sb_daytona_due {
	SB_DAYTONA_DUE_NOTHING,
	SB_DAYTONA_DUE_PAUSE,
	SB_DAYTONA_DUE_STOP,
	SB_DAYTONA_DUE_ARCHIVE,
	SB_DAYTONA_DUE_DELETE,
};
/* What its intervals ask for now; lowers `*next` to when to look again. */
enum sb_daytona_due sb_daytona_keeper_due(const json_t *rec, const char *state, int64_t active_ns,
	int64_t now_ns, int64_t *next);
int64_t sb_daytona_keeper_round(void *d);

/* daytona-life.c: from one state to the next. `rec` is changed and saved; events are told. */
int sb_daytona_life_create(struct sb_daytona *d, json_t *rec, struct sb_host_create_opts *o,
	const char *from, const struct sb_host_call *call, struct sb_error *err);
int sb_daytona_life_start(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err);
int sb_daytona_life_stop(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err);
int sb_daytona_life_pause(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err);
int sb_daytona_life_archive(struct sb_daytona *d, json_t *rec, struct sb_error *err);
int sb_daytona_life_delete(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err);

/* daytona-show.c: what the vendor shows of it. */
json_t *sb_daytona_show(struct sb_daytona *d, const json_t *rec, const char *base, bool listed);
int sb_daytona_show_answer(struct sb_rpc_call *call, const json_t *rec, struct sb_error *err);
unsigned sb_daytona_show_cpus(struct sb_daytona *d);
uint64_t sb_daytona_show_mem_mb(struct sb_daytona *d);
uint64_t sb_daytona_show_disk(struct sb_daytona *d, const struct sb_host_session *s);

/* daytona-sandbox.c */
/* The record that a path names, or NULL and a 404 that is answered. */
json_t *sb_daytona_sandbox_find(struct sb_rpc_call *call, const char *id_or_name);

/* daytona-ssh.c */
void sb_daytona_ssh_init(struct sb_daytona *d);

/* daytona-event.c */
void sb_daytona_event_tell(struct sb_daytona *d, const char *event, const json_t *rec,
	const char *old, const char *new);

/* daytona-toolbox.c: a request to a sandbox. */
struct sb_daytona_visit {
	struct sb_daytona *d;
	json_t *rec;
	const char *id;
	struct sb_host_call call;
	char home[4200]; /* the directory that SB_DAYTONA_HOME is, as the guest knows it */
	bool none;       /* without a box: paths are the machine's */
};
/* 0: go on; 1: it is answered; else an error. */
int sb_daytona_visit(struct sb_rpc_call *call, const struct sb_query *q, struct sb_daytona_visit *v,
	struct sb_error *err);
int sb_daytona_visit_id(struct sb_daytona *d, const char *id, const struct sb_host_call *call,
	struct sb_daytona_visit *v, struct sb_error *err);
void sb_daytona_visit_end(struct sb_daytona_visit *v);
SB_CLEANUP_VALUE(sb_daytona_visit, sb_daytona_visit_end)
/* A path as the guest knows it: relative ones are beneath the home. A new string; NULL: error. */
char *sb_daytona_path(const struct sb_daytona_visit *v, const char *path, struct sb_error *err);
/* A path of the guest's as the caller knows it. */
json_t *sb_daytona_path_shown(const struct sb_daytona_visit *v, const char *real);
/* The environment of what is started for a caller. */
void sb_daytona_env(const struct sb_daytona_visit *v, const json_t *more, const char *cwd,
	struct sb_strlist *out);
/* Runs a program to its end. */
struct sb_daytona_run {
	const char *const *argv;
	const json_t *env; /* beside the sandbox's; may be NULL */
	const char *cwd;   /* of the guest's */
	const void *input;
	size_t input_len;
	int64_t limit_ms;       /* 0: none */
	size_t max;             /* bytes of output that are kept; 0: 16 MiB */
	struct sb_buf out, err; /* `err` only with `apart` */
	bool apart;             /* stderr in a buffer of its own */
	int code;               /* 128+n: a signal */
	bool timed_out;
};
void sb_daytona_run_free(struct sb_daytona_run *run);
SB_CLEANUP_VALUE(sb_daytona_run, sb_daytona_run_free)
int sb_daytona_run(struct sb_daytona_visit *v, struct sb_daytona_run *run, struct sb_error *err);

/* daytona-session.c: small files of the toolbox's own. */
int sb_daytona_read_small(struct sb_daytona_visit *v, const char *path, struct sb_buf *out,
	struct sb_error *err);
int sb_daytona_write_small(struct sb_daytona_visit *v, const char *path, const void *data,
	size_t len, unsigned mode, struct sb_error *err);
/* Whether a program with that tag runs. */
bool sb_daytona_runs(struct sb_daytona_visit *v, const char *tag);

/* daytona-file.c */
/* Answers for an error of the guest about a file, or returns it. */
int sb_daytona_file_refuse(struct sb_rpc_call *call, const char *path, struct sb_error *err);
void sb_daytona_file_error(const struct sb_error *err, int *status, const char **code);

/* daytona-transfer.c: handlers. */
int sb_daytona_transfer_download(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);
int sb_daytona_transfer_upload(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);
int sb_daytona_transfer_upload_v2(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);
int sb_daytona_transfer_bulk_upload(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);
int sb_daytona_transfer_bulk_download(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err);

#endif
