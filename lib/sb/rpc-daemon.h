/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_DAEMON_H
#define SB_RPC_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sb/host.h>

/* How a server listens and what it allows. Strings are borrowed for the start. */
struct sb_rpc_auth;
struct sb_rpc_server_opts {
	size_t size;
	const char *const *listen; /* NULL-terminated: "unix:PATH" or a path with a slash,
				      "HOST:PORT", ":PORT" */
	mode_t socket_mode;        /* of unix sockets */
	gid_t socket_gid;          /* (gid_t)-1: unchanged */
	bool socket_auth; /* callers on unix sockets need a token too; else whoever may connect is
			     an admin */
	const char *tls_cert, *tls_key; /* PEM files for TCP, both or none */
	bool plain_tcp; /* TCP without TLS may be reached from other machines; else only loopback */
	const struct sb_rpc_auth *auth; /* for the library itself: leave it NULL */
	unsigned api_version, min_api_version;
	size_t max_message;  /* bytes of one message, each way, uncompressed */
	size_t max_buffered; /* bytes of all request bodies being read at a time */
	unsigned max_calls, max_streams, max_connections;
	/*
	 * Of them, at a time, for the tokens of one session or one monitor; 0: an eighth. Another
	 * eighth is for admins only.
	 */
	unsigned max_calls_each, max_streams_each;
	unsigned io_threads;
	int64_t header_ms; /* from connecting to the end of the first request's header */
	int64_t body_ms;   /* for a request body */
	int64_t idle_ms; /* between two requests, or without progress while an answer is written */
	struct sb_log log;
};
#define SB_RPC_SERVER_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_rpc_server_opts), .socket_mode = 0600, \
		.socket_gid = (gid_t)-1, .api_version = 1, .min_api_version = 1, \
		.max_message = 16 << 20, .max_buffered = 256 << 20, .max_calls = 512, \
		.max_streams = 256, .max_connections = 1024, .io_threads = 2, .header_ms = 10000, \
		.body_ms = 60000, .idle_ms = 75000 \
	}

/* Bytes of a bearer token: printable ASCII without blanks. */
#define SB_RPC_TOKEN_MIN 16
#define SB_RPC_TOKEN_MAX 4096

/* A bearer token that a server takes. */
struct sb_rpc_token {
	const char *name;    /* for the log */
	const char *role;    /* "admin", "session" or "monitor" */
	const char *session; /* role session: the only one it may touch */
	const char *token;   /* the token, or NULL with ... */
	const char *sha256;  /* ... the lower-case hex SHA-256 of it */
};

/*
 * A sandbox host (sb/host.h) that is served over the Connect protocol (doc/sandbox.proto): what
 * sbhostd is. Make it, give it tokens and a key, start it, stop it, free it. One thread at a time.
 */
struct sb_rpc_daemon;

SB_API struct sb_rpc_daemon *sb_rpc_daemon_new(struct sb_error *err);
/* Before the start. Keeps digests only. SB_E_INVAL for a token or a role that is none. */
SB_API int sb_rpc_daemon_add_token(struct sb_rpc_daemon *d, const struct sb_rpc_token *token,
	struct sb_error *err);
/* Before the start: the key, of at least 32 bytes, that it signs session tokens with. */
SB_API int sb_rpc_daemon_set_key(struct sb_rpc_daemon *d, const void *key, size_t len,
	struct sb_error *err);
/*
 * Looks at what a start would use, without starting or making anything, and calls `found` for each
 * mistake: addresses, TLS files, base images. Tokens are checked by sb_rpc_daemon_add_token.
 */
SB_API void sb_rpc_daemon_check(const struct sb_rpc_daemon *d, const struct sb_host_opts *host,
	const struct sb_rpc_server_opts *server, void (*found)(const char *what, void *arg),
	void *arg);
/*
 * Opens and starts the host, then listens. `host->on_event` is taken over. SIGPIPE must be ignored
 * in the process. Errors are those of sb_host_open and sb_host_start; SB_E_INVAL for a bad address,
 * or TCP without a token; SB_E_EXISTS when something already listens on the socket. After a
 * failure, or a stop, the daemon can only be freed.
 */
SB_API int sb_rpc_daemon_start(struct sb_rpc_daemon *d, const struct sb_host_opts *host,
	const struct sb_rpc_server_opts *server, struct sb_error *err);
/*
 * Takes no more calls, lets running ones end within `grace_ms` and not after `hurry` (may be NULL)
 * was requested, then pauses and keeps every session (sb_host_shutdown, whose errors it gives).
 */
SB_API int sb_rpc_daemon_stop(struct sb_rpc_daemon *d, int64_t grace_ms,
	const struct sb_cancel *hurry, struct sb_error *err);
/* Without a stop it closes the host as a crash would leave it. NULL is allowed. */
SB_API void sb_rpc_daemon_free(struct sb_rpc_daemon *d);

#endif
