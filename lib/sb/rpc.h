/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_H
#define SB_RPC_H

#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * A client of a sandbox host (sbhostd) over the Connect protocol with JSON messages. The procedures
 * and their fields are in doc/sandbox.proto. Keeps its connection open between calls. Not
 * thread-safe: one call at a time; use a client for each thread.
 */
struct sb_rpc_client;

struct sb_rpc_client_opts {
	size_t size;
	const char *address; /* "unix:PATH", a path with a slash, "http://HOST:PORT" or
				"https://HOST:PORT" */
	const char *token;   /* bearer token, or NULL */
	const char *ca_file; /* PEM file of the authorities that https is checked with; NULL: the
				system's */
	const char *service; /* the service's full name */
	int64_t connect_ms;  /* limit for connecting */
	size_t max_message;  /* bytes of one message that comes back */
};
#define SB_RPC_CLIENT_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_rpc_client_opts), .service = "rpc.v1.SandboxService", \
		.connect_ms = 10000, .max_message = 32 << 20 \
	}

/* Strings are copied. Connects with the first call. SB_E_INVAL for an address of another form. */
SB_API struct sb_rpc_client *sb_rpc_client_new(const struct sb_rpc_client_opts *opts,
	struct sb_error *err);
SB_API void sb_rpc_client_free(struct sb_rpc_client *c);

/* How long a call may take; the deadline is told to the host. `cancel` may be NULL. */
struct sb_rpc_wait {
	const struct sb_cancel *cancel;
	sb_deadline deadline;
};

/*
 * Calls a unary procedure with a JSON object as text (NULL: {}) and gives its answer as text, freed
 * by the caller. An error of the host has the host's own code (SB_E_SESSION_PAUSED, ...) and
 * message; the transport's are SB_E_CONNECT, SB_E_CLOSED, SB_E_TIMEOUT, SB_E_CANCELED, SB_E_PROTO,
 * SB_E_LIMIT and SB_E_HOSTKEY (a certificate that does not check out). `wait` may be NULL.
 */
SB_API int sb_rpc_client_call(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, char **out, size_t *out_len, struct sb_error *err);

/*
 * One message of a stream; borrowed, NUL-terminated. A negative return (with `err` set) ends the
 * call with it.
 */
typedef int (*sb_rpc_message_fn)(const char *json, size_t len, void *arg, struct sb_error *err);

/*
 * Calls a streaming procedure; `fn` gets each message. Success once the host ended the stream
 * without an error.
 */
SB_API int sb_rpc_client_stream(struct sb_rpc_client *c, const char *method, const char *json,
	const struct sb_rpc_wait *wait, sb_rpc_message_fn fn, void *arg, struct sb_error *err);

/*
 * Runs a command in a session with `fds` (stdin, stdout, stderr) as its streams, byte for byte,
 * until it ends; `json` is
 * {"SessionID","Command","Env"}, the command a line of shell. Of `opts`, all but max_message
 * counts. The command is killed when this ends first. SIGPIPE must be ignored. Gives the exit code,
 * 128+n for a signal.
 */
SB_API int sb_rpc_attach(const struct sb_rpc_client_opts *opts, const char *json, const int fds[3],
	const struct sb_rpc_wait *wait, int *out_code, struct sb_error *err);

#endif
