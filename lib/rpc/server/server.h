/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_SERVER_H
#define SB_RPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include <base/buf.h>
#include <rpc/server/auth.h>
#include <rpc/protocol/code.h>
#include <rpc/server/metrics.h>
#include <sb/cancel.h>
#include <sb/log.h>
#include <sb/rpc-daemon.h>

/*
 * A server of the Connect protocol (unary and server streaming, JSON, HTTP/1.1). It knows nothing
 * of sandboxes: the service gives it a table of methods. A few I/O threads read and write all
 * connections; every call runs on a thread of its own, so a slow one holds up nobody.
 */
struct sb_rpc_server;

/* One call under way; valid in the handler only. */
struct sb_rpc_call;

/* Without side effects: GET is allowed too. */
#define SB_RPC_READ 1u
/* A session's token may call it for its own session; without this flag only an admin may. */
#define SB_RPC_SCOPED 2u
/* Anyone with a token may call it. */
#define SB_RPC_ANY_ROLE 4u
/*
 * Tried on the I/O thread first, without a thread switch; must not wait there, see SB_RPC_LATER.
 * Unary only.
 */
#define SB_RPC_INLINE 8u
/* A stream that goes on until somebody ends it: a stop of the server does not wait for it. */
#define SB_RPC_ENDLESS 16u

/*
 * An inline method returns this, without having done anything, when it would have to wait; the
 * server then calls it again on a thread.
 */
#define SB_RPC_LATER 1

/*
 * A unary method sets `*out` to its answer (owned by the server then). A streaming method
 * (`stream`) sends messages with sb_rpc_stream_send. Both return 0 or an error. `in` is an object.
 */
struct sb_rpc_method {
	const char *name;
	unsigned flags;
	bool stream;
	int (*run)(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err);
	/*
	 * Instead of `run`: takes the connection over once it is upgraded
	 * (rpc/protocol/attach-frame.h), on a thread of its own. With SB_RPC_READ.
	 */
	int (*upgrade)(struct sb_rpc_call *call, const json_t *in, int sock, struct sb_error *err);
};

struct sb_rpc_http;
struct sb_rpc_service {
	const char *name; /* "rpc.v1.SandboxService" */
	const struct sb_rpc_method *methods;
	size_t n;
	void *arg;
	/* Appends the service's own metrics; may be NULL. */
	void (*metrics)(void *arg, struct sb_buf *out);
	/* Whether it takes work, for /health?ready; must not wait. NULL: always. */
	bool (*ready)(void *arg);
	/*
	 * Takes out of an error's message what this caller must not know. NULL: nothing. Not called
	 * for mistakes that the server itself finds.
	 */
	void (*hide)(void *arg, const struct sb_rpc_who *who, char *text, size_t size);
	/* Not NULL: every request is its own to answer; of `methods` only names count. */
	const struct sb_rpc_http *http;
};

void *sb_rpc_call_arg(const struct sb_rpc_call *call);
/* Requested when the client went away, the deadline passed or the server stops. */
const struct sb_cancel *sb_rpc_call_cancel(const struct sb_rpc_call *call);
sb_deadline sb_rpc_call_deadline(const struct sb_rpc_call *call);
const struct sb_rpc_who *sb_rpc_call_who(const struct sb_rpc_call *call);
/* The number in the field "Fence" of the message; 0: none. */
uint64_t sb_rpc_call_fence(const struct sb_rpc_call *call);
/* It runs on the I/O thread now. */
bool sb_rpc_call_inlined(const struct sb_rpc_call *call);
/*
 * Sends a message of a stream; takes the reference of `msg`, also when it fails. Waits while the
 * client is behind by more than a bound; SB_E_CANCELED when it is gone.
 */
int sb_rpc_stream_send(struct sb_rpc_call *call, json_t *msg, struct sb_error *err);
/*
 * Cancels a call; `why` is SB_E_CANCELED, SB_E_TIMEOUT or SB_E_SHUTTING_DOWN. `hung_up`: the client
 * is gone, nobody reads the answer.
 */
void sb_rpc_call_abort(struct sb_rpc_call *call, int why, bool hung_up);
/* Names the field that was wrong in the error answer. */
void sb_rpc_call_bad_field(struct sb_rpc_call *call, const char *field);

/*
 * Binds, listens and serves. Strings in `opts` are not kept. Errors: SB_E_INVAL for a bad address
 * or TCP without a token, SB_E_EXISTS when something already listens on the socket.
 */
struct sb_rpc_server *sb_rpc_server_start(const struct sb_rpc_server_opts *opts,
	const struct sb_rpc_service *service, struct sb_error *err);
/* Calls `found` for each mistake in them that can be seen without listening. */
void sb_rpc_server_check(const struct sb_rpc_server_opts *opts,
	void (*found)(const char *what, void *arg), void *arg);
/* The port of listener `i` (0 for a unix socket): tests listen on port 0. */
unsigned sb_rpc_server_port(const struct sb_rpc_server *s, size_t i);
/*
 * Takes no more connections and calls (SB_E_SHUTTING_DOWN); ends endless streams; waits for running
 * calls, at most `grace_ms` and not after `hurry` (may be NULL) was requested, then cancels them
 * and waits for them. Answers under way are written. Removes unix sockets.
 */
void sb_rpc_server_stop(struct sb_rpc_server *s, int64_t grace_ms, const struct sb_cancel *hurry);
void sb_rpc_server_free(struct sb_rpc_server *s);

#endif
