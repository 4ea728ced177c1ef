/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_SERVER_PRIV_H
#define SB_RPC_SERVER_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include <rpc/protocol/failure.h>
#include <base/strlist.h>
#include <rpc/server/http.h>
#include <rpc/server/pool.h>
#include <rpc/server/server.h>
#include <rpc/server/share.h>

/* The structs and functions that the files of this room share. */

#define SB_RPC_LISTEN_MAX 8

struct sb_rpc_listener {
	struct sb_rpc_server *server;
	struct MHD_Daemon *daemon;
	int fd;
	bool is_unix;
	bool tls;
	unsigned port;
	unsigned conns; /* open now; guarded by the watchdog */
	char *path;     /* of a unix socket */
};

/* What a connection is doing now; each phase has a time limit of its own. */
enum sb_rpc_phase {
	SB_RPC_PHASE_HEADER, /* no request has come yet */
	SB_RPC_PHASE_BODY,   /* a request's body is being read */
	SB_RPC_PHASE_CALL,   /* a call runs; the limit is the call's deadline */
	SB_RPC_PHASE_REPLY,  /* the answer is being written; MHD watches progress */
	SB_RPC_PHASE_IDLE,   /* between requests */
};

/* One connection; watchdog.c makes and frees it. */
struct sb_rpc_conn {
	struct sb_rpc_listener *listener;
	int fd;
	size_t slot;
	uint32_t generation;
	_Atomic int phase;
	_Atomic int64_t due, since; /* when the phase must end, and when it began */
	/* The target of the request being read, as it came; NULL: it has bytes it may not have. */
	const char *target;
	size_t target_len;
	char *raw; /* a copy of it, for services of plain HTTP: MHD takes the query apart in place
		    */
	pthread_mutex_t mu;
	struct sb_rpc_call *call; /* running now, or NULL */
	bool hung_up;
};

struct sb_rpc_watchdog;
struct sb_rpc_watchdog *sb_rpc_watchdog_new(struct sb_rpc_server *s, unsigned max,
	struct sb_error *err);
void sb_rpc_watchdog_free(struct sb_rpc_watchdog *w);
/* NULL: the table is full or memory is. */
struct sb_rpc_conn *sb_rpc_watchdog_add(struct sb_rpc_watchdog *w, struct sb_rpc_listener *l,
	int fd);
void sb_rpc_watchdog_remove(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c);
void sb_rpc_watchdog_phase(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c, enum sb_rpc_phase p,
	sb_deadline due);
/* The call that a hang-up or the deadline cancels; NULL: none any more. */
void sb_rpc_watchdog_call(struct sb_rpc_watchdog *w, struct sb_rpc_conn *c,
	struct sb_rpc_call *call);
/* Cancels every running call; `endless_only` leaves those that end by themselves. */
void sb_rpc_watchdog_abort(struct sb_rpc_watchdog *w, bool endless_only, int why);

/* How many lines about failed logins may still be written. */
struct sb_rpc_login {
	pthread_mutex_t mu;
	int64_t at_ms;
	unsigned left;
	uint64_t skipped;
};

struct sb_rpc_server {
	struct sb_rpc_server_opts o; /* no strings */
	const struct sb_rpc_service *service;
	const char **names;
	struct sb_rpc_metrics *metrics;
	struct sb_rpc_pool *calls, *streams;
	struct sb_rpc_share *share;
	struct sb_rpc_watchdog *watch;
	struct sb_rpc_listener listeners[SB_RPC_LISTEN_MAX];
	size_t n_listeners;
	struct sb_rpc_login login;
	_Atomic size_t buffered;
	_Atomic unsigned running; /* handlers */
	_Atomic unsigned live;    /* requests from their header to the end of their answer */
	_Atomic bool stopping;
};

/* Where a request goes. */
enum sb_rpc_target {
	SB_RPC_TARGET_NONE, /* only an error to answer */
	SB_RPC_TARGET_METHOD,
	SB_RPC_TARGET_HEALTH,
	SB_RPC_TARGET_METRICS,
};

#define SB_RPC_GZIP_FROM 1024 /* answers below this many bytes are not compressed */
#define SB_RPC_QUEUE_HIGH (256 * 1024)

/* What a call of plain HTTP has besides; guarded by the call's `mu` where threads share it. */
struct sb_rpc_http_kept;
struct sb_rpc_http_state {
	struct sb_rpc_http_plan plan;
	struct sb_strlist names, headers, out; /* verb and target; NAME, VALUE, ... of both ways */
	const char *verb, *target;
	struct sb_rpc_http_kept *kept;
	struct sb_buf in; /* of the body, not read yet */
	size_t in_head;
	bool in_eof, in_unwanted;
	bool started;   /* the handler runs, or ran */
	bool ready;     /* there is an answer to queue */
	bool queued;    /* MHD has it */
	bool streaming; /* it comes in pieces ... */
	bool cut;       /* ... and the last of them will not come */
};

struct sb_rpc_call {
	struct sb_rpc_server *server;
	struct sb_rpc_conn *conn;
	struct MHD_Connection *mc;
	_Atomic int refs; /* MHD's and the worker's */

	enum sb_rpc_target target;
	const struct sb_rpc_method *method;
	size_t index;   /* of the method, service->n for none */
	bool streaming; /* the client wants envelopes */
	bool in_gzip, out_gzip;
	bool is_get;
	bool want_ready; /* /health?ready */
	bool inlined;    /* runs on the I/O thread */
	bool early;      /* answered before the body was read */
	bool close;      /* the connection ends with the answer */
	struct sb_rpc_who who;
	uint64_t fence;
	struct sb_cancel *cancel;
	sb_deadline deadline;
	int64_t start_us;
	struct sb_buf body;
	json_t *message; /* the body as it was read, between a try inline and the thread */
	size_t reserved; /* bytes counted in server->buffered and of the caller's share */
	bool counted;    /* has a place of the caller's share ... */
	enum sb_rpc_share_of place; /* ... of these */
	size_t dropped;             /* bytes of a body that is not kept */

	struct sb_rpc_http_state *http; /* NULL: a call of Connect */
	struct sb_rpc_failure failure;  /* code 0: none */
	struct MHD_Response *response;
	int status;

	pthread_mutex_t mu;
	pthread_cond_t room;
	bool suspended;
	bool finished; /* unary: the response is ready; stream: everything is queued */
	bool gone;     /* MHD is done with the connection or the client hung up */
	int abort_why; /* 0 or the code the call was canceled with */
	struct sb_buf queue;
	size_t queue_head;
};

/* call.c: from header to handler. */
enum MHD_Result sb_rpc_call_on_request(void *cls, struct MHD_Connection *mc, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **ctx);
void sb_rpc_call_on_completed(void *cls, struct MHD_Connection *mc, void **ctx,
	enum MHD_RequestTerminationCode why);
void sb_rpc_call_unref(struct sb_rpc_call *c);
/* Wakes the connection; with `mu` held. */
void sb_rpc_call_resume(struct sb_rpc_call *c);

/* Metrics and log of a call's end; `err` becomes the call's failure. */
void sb_rpc_call_count_end(struct sb_rpc_call *c);
void sb_rpc_call_fail(struct sb_rpc_call *c, struct sb_error *err);

/* upgrade.c: a method that takes the connection over. MHD_NO: `failure` is set. */
bool sb_rpc_upgrade_wanted(struct sb_rpc_call *c);
enum MHD_Result sb_rpc_upgrade_start(struct sb_rpc_call *c);

/* request.c: notes the target of a request line before MHD takes it apart. */
void *sb_rpc_request_target(void *cls, const char *target, struct MHD_Connection *mc);
/* Reads the header into the call, or sets the call's failure. */
void sb_rpc_request_open(struct sb_rpc_call *c, const char *url, const char *method,
	const char *version);
/*
 * Decompresses and parses the message and checks that this caller may send it. NULL: `failure` is
 * set.
 */
json_t *sb_rpc_request_message(struct sb_rpc_call *c);

/* reply.c: makes `response` and `status`. */
void sb_rpc_reply_json(struct sb_rpc_call *c, const json_t *msg);
void sb_rpc_reply_failure(struct sb_rpc_call *c);
void sb_rpc_reply_text(struct sb_rpc_call *c, int status, const char *type,
	const struct sb_buf *text);
/* Headers every answer has. */
void sb_rpc_reply_headers(struct sb_rpc_call *c, const char *type);

/* http.c: the header, a piece of the body (gives what was taken), the answer to a failure. */
int sb_rpc_http_open(struct sb_rpc_call *c, const char *verb, struct sb_error *err);
size_t sb_rpc_http_feed(struct sb_rpc_call *c, const char *data, size_t len);
void sb_rpc_http_put_headers(struct sb_rpc_call *c, struct MHD_Response *resp, const char *type);
void sb_rpc_http_fail(struct sb_rpc_call *c);
void sb_rpc_http_free(struct sb_rpc_http_state *h);

/* login.c: for the log. */
void sb_rpc_login_failed(struct sb_rpc_server *s, const struct sb_rpc_conn *c, const char *why);

/* stream.c: an answer of many messages. */
int sb_rpc_stream_open(struct sb_rpc_call *c, struct sb_error *err);
/*
 * MHD asks for more of the queued answer of `call`. With nothing there the connection sleeps until
 * sb_rpc_call_resume.
 */
ssize_t sb_rpc_stream_read(void *call, uint64_t pos, char *buf, size_t max);
/* Queues the end-of-stream message with `failure`, if any. */
void sb_rpc_stream_end(struct sb_rpc_call *c);

/* listen.c: whether it may be listened on at all; SB_E_INVAL. */
int sb_rpc_listen_check(const char *where, const struct sb_rpc_server_opts *o,
	struct sb_error *err);
int sb_rpc_listen_open(struct sb_rpc_listener *l, const char *where,
	const struct sb_rpc_server_opts *o, struct sb_error *err);
/* Removes a unix socket from its folder; clients that are connected stay so. */
void sb_rpc_listen_hide(struct sb_rpc_listener *l);
void sb_rpc_listen_close(struct sb_rpc_listener *l);

#endif
