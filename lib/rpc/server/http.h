/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_HTTP_H
#define SB_RPC_HTTP_H

#include <rpc/protocol/failure.h>
#include <rpc/server/server.h>

/*
 * A service of plain HTTP on the same ground as the Connect services: strict requests, limits,
 * shares, deadlines, hang-ups, TLS. The service looks at each request's header and says what runs
 * it; that runs on a thread of its own, reads the body as it comes or whole, and answers in one
 * piece or as a stream.
 */

enum sb_rpc_http_body {
	SB_RPC_HTTP_NO_BODY, /* what comes is read and dropped */
	SB_RPC_HTTP_WHOLE,   /* the handler runs when all of it is there */
	SB_RPC_HTTP_STREAM,  /* the handler runs at once and reads */
};

/* Runs a request. An error before the answer has begun becomes an answer of the service's `fail`;
 * after it, the connection is cut so that the client notices. */
typedef int (*sb_rpc_http_fn)(struct sb_rpc_call *call, struct sb_error *err);

/* What is to be done with a request. */
struct sb_rpc_http_plan {
	sb_rpc_http_fn run;
	/*
	 * Instead of `run`: takes the connection over after a 101 (headers by
	 * sb_rpc_http_add_header, the first of them Upgrade); for requests without a body. Reads of
	 * `sock` do not wait: poll it.
	 */
	int (*upgrade)(struct sb_rpc_call *call, int sock, struct sb_error *err);
	const void *route; /* the service's own, see sb_rpc_http_route */
	size_t index;      /* of the service's methods, whose names the metrics have */
	enum sb_rpc_http_body body;
	size_t max_body;       /* WHOLE: bytes; 0: the server's max_message */
	bool stream;           /* may last: it counts among the streams, not among the calls */
	bool endless;          /* a stop of the server does not wait for it */
	struct sb_rpc_who who; /* for shares and the log */
	sb_deadline deadline;  /* SB_NEVER unless the service sets it */
};

struct sb_rpc_http {
	/*
	 * On an I/O thread, with the header there: it must not wait. SB_E_AUTH: a stranger, who
	 * gets the answer of `fail` and no more time. The target and the headers can be asked for.
	 */
	int (*open)(struct sb_rpc_call *call, struct sb_rpc_http_plan *plan, struct sb_error *err);
	/* Makes the answer to a failure by sb_rpc_http_reply, in the words of this service. */
	void (*fail)(struct sb_rpc_call *call, const struct sb_rpc_failure *failure);
};

/* The request. Texts last as long as the call. */
const char *sb_rpc_http_verb(const struct sb_rpc_call *call);
/* Path and query as they came: printable ASCII, nothing decoded. */
const char *sb_rpc_http_target(const struct sb_rpc_call *call);
/* The first header of that name (any case), or NULL. */
const char *sb_rpc_http_header(const struct sb_rpc_call *call, const char *name);
size_t sb_rpc_http_headers(const struct sb_rpc_call *call);
const char *sb_rpc_http_header_at(const struct sb_rpc_call *call, size_t i, const char **value);
const void *sb_rpc_http_route(const struct sb_rpc_call *call);
/* Bytes that belong to the call, from `open` on, freed with it; NULL: out of memory. */
void *sb_rpc_http_keep(struct sb_rpc_call *call, size_t size);

/* The body. WHOLE: all of it, NUL-terminated. */
const char *sb_rpc_http_body(const struct sb_rpc_call *call, size_t *len);
/* STREAM: waits for some of it. 0: the end; SB_E_CANCELED and so on when the client is gone. */
int64_t sb_rpc_http_read(struct sb_rpc_call *call, void *data, size_t size, struct sb_error *err);

/* The answer. Headers first; the others of an answer are the server's. */
void sb_rpc_http_add_header(struct sb_rpc_call *call, const char *name, const char *value);
/* In one piece, copied; `type` may be NULL. Only the first answer counts. */
void sb_rpc_http_reply(struct sb_rpc_call *call, int status, const char *type, const void *data,
	size_t len);
/*
 * Begins an answer of `length` bytes (-1: not known, chunked), which sb_rpc_http_write sends; it
 * ends when the handler returns. Writes wait while the client is behind.
 */
int sb_rpc_http_begin(struct sb_rpc_call *call, int status, const char *type, int64_t length,
	struct sb_error *err);
int sb_rpc_http_write(struct sb_rpc_call *call, const void *data, size_t len, struct sb_error *err);
/* An answer has begun, or is complete. */
bool sb_rpc_http_answered(struct sb_rpc_call *call);

#endif
