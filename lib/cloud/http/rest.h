/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_REST_H
#define SB_CLOUD_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

/*
 * The one HTTP client: requests to one service, with small bodies or streams both ways. HTTP/1.1 by
 * libcurl; redirects are answers like others; what a server sends is bounded before it is kept.
 *
 * Threads: any number of threads may call one client at once. Each call has a connection of its
 * own from the client's pool, where it stays for the next call; callbacks run on the thread of
 * their call, may block (the peer waits then) and may make calls of their own on the same client.
 *
 * Environment, read by sb_rest_new and libcurl: http_proxy, https_proxy, all_proxy, no_proxy (and
 * in capitals, but for HTTP_PROXY); CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR.
 *
 * Logs (component "http"): DEBUG has a line for each try (method, address without query, status,
 * bytes, time, why it is made again), TRACE headers and the start of bodies. What is marked secret
 * here is in neither, nor in any error message; headers whose names look like secrets
 * (base/secret.h) count as marked.
 */
struct sb_rest;

struct sb_rest_header {
	const char *name;
	const char *value;
	bool secret;
};

struct sb_rest_opts {
	size_t size;
	const char *base;    /* "http[s]://HOST[:PORT][/PATH]", or "unix:PATH" of a socket */
	const char *name;    /* what messages call the service; NULL: `base` */
	const char *ca_file; /* authorities for https; NULL: as the environment says */
	const char
		*cert_file; /* what the client shows of itself, PEM; with its key or not at all */
	const char *key_file;
	const char *proxy;                    /* NULL: of the environment; "": none */
	const struct sb_rest_header *headers; /* of every request */
	size_t n_headers;
	int64_t connect_ms; /* for a connection with its TLS */
	int64_t stall_ms;   /* no byte in either direction for so long; 0: no limit */
	size_t max_body;    /* of an answer that is collected */
	unsigned tries;     /* at most so many for one call */
	int64_t pause_ms;   /* before the second try; doubled each time, up to `pause_max_ms` */
	int64_t pause_max_ms;
	int64_t retry_after_max_ms; /* a server that wants a longer pause has given its answer */
	struct sb_log log;
};
#define SB_REST_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_rest_opts), .connect_ms = 10000, .stall_ms = 60000, \
		.max_body = 16 << 20, .tries = 5, .pause_ms = 250, .pause_max_ms = 8000, \
		.retry_after_max_ms = 60000 \
	}

/*
 * Connects nowhere yet; everything is copied. SB_E_INVAL for an address of another form or with a
 * user in it. sb_rest_free takes NULL; no call may be under way.
 */
struct sb_rest *sb_rest_new(const struct sb_rest_opts *o, struct sb_error *err);
void sb_rest_free(struct sb_rest *r);
SB_CLEANUP_PTR(sb_rest, sb_rest_free)

/* What messages call the service, and the address without its last slashes; borrowed. */
const char *sb_rest_name(const struct sb_rest *r);
const char *sb_rest_base(const struct sb_rest *r);

/*
 * Whether a request may go out again. Only the caller knows what a second one does; libcurl's own
 * repetition, where a kept connection turns out dead, is held back. In every case a stream whose
 * first byte was handed on, or whose body cannot be rewound, is not begun anew.
 */
enum sb_rest_again {
	SB_REST_ONCE,   /* never */
	SB_REST_UNSENT, /* when nothing can have happened: no connection was made, or a 429 */
	SB_REST_REPEAT, /* also after a cut, a stall, and 408, 500, 502, 503, 504 */
};

/*
 * The bytes of a request's body: fills `buf` with at most `len`, returns how many, 0 at the end, or
 * an error. Blocks as long as it likes, but must watch the cancel token of the call itself.
 */
typedef ssize_t (*sb_rest_read_fn)(void *buf, size_t len, void *arg, struct sb_error *err);
/* From the start again, for another try. */
typedef int (*sb_rest_rewind_fn)(void *arg, struct sb_error *err);
/*
 * Bytes of an answer with a status of 200 to 299, as they come, at most SB_REST_PIECE_MAX at a
 * time. Negative ends the call with it.
 */
#define SB_REST_PIECE_MAX 16384
typedef int (*sb_rest_write_fn)(const void *data, size_t len, void *arg, struct sb_error *err);

struct sb_rest_answer;
/* The header of a 2xx answer is there, its body not yet; before the first write. */
typedef int (*sb_rest_head_fn)(const struct sb_rest_answer *a, void *arg, struct sb_error *err);
/*
 * Headers that each try needs made for it (signatures, renewed tokens): adds "Name: value" to
 * `out`, all of which are secret. `n` counts from 1.
 */
typedef int (*sb_rest_sign_fn)(unsigned n, struct sb_strlist *out, void *arg, struct sb_error *err);

struct sb_rest_request {
	size_t size;
	const char *method; /* "GET" */
	const char *target; /* "/path?query", as it goes out behind the base's path */
	const struct sb_rest_header *headers; /* replace those of the client by name */
	size_t n_headers;
	sb_rest_sign_fn sign; /* may be NULL */
	void *sign_arg;

	/* At most one body: `json`, `body`, or what `read` gives. */
	const json_t *json; /* sent compact, as application/json */
	const void *body;
	size_t body_len;
	const char *type;         /* Content-Type of `body` and `read`; may be NULL */
	sb_rest_read_fn read;     /* its length is `body_len`, or with `chunked` unknown */
	sb_rest_rewind_fn rewind; /* NULL: it can be read once */
	void *read_arg;
	bool chunked;
	/*
	 * `read` is called only when this polls readable, so that answers are read meanwhile.
	 * Negative: `read` may be called at any time.
	 */
	int read_fd;

	sb_rest_write_fn write; /* NULL: a 2xx body is collected like others */
	sb_rest_head_fn head;   /* may be NULL */
	void *write_arg;

	enum sb_rest_again again;
	bool secret;        /* neither body shall be in a log */
	bool gunzip;        /* says that it takes gzip, and unpacks it */
	int64_t connect_ms; /* 0: of the client, as the next two */
	int64_t stall_ms;   /* negative: no limit */
	size_t max_body;
};
#define SB_REST_REQUEST_INIT \
	{ \
		.size = sizeof(struct sb_rest_request), .method = "GET", .target = "/", \
		.read_fd = -1 \
	}

/* How long a call, with all its tries and pauses, may go on. */
struct sb_rest_wait {
	const struct sb_cancel *cancel; /* may be NULL; that of the thread's work counts as well */
	sb_deadline deadline;
};
#define SB_REST_WAIT_INIT \
	{ \
		.deadline = SB_NEVER \
	}

/* An answer, of any status. Zero-initialise; the caller frees it. */
struct sb_rest_answer {
	int status;
	struct sb_strlist headers; /* "name: value", names in lower case */
	struct sb_buf body;        /* collected; the first part of it when `cut` */
	bool cut;                  /* an answer of 300 and more had a longer body than is kept */
	unsigned tries;
};
void sb_rest_answer_free(struct sb_rest_answer *a); /* zeroes it */
SB_CLEANUP_VALUE(sb_rest_answer, sb_rest_answer_free)

/*
 * Makes a request: 0 with the last answer in `out`, whatever its status. Otherwise an error that
 * names the service: SB_E_CONNECT (nothing went out), SB_E_HOSTKEY (TLS), SB_E_CLOSED (cut),
 * SB_E_TIMEOUT (deadline or stall), SB_E_CANCELED, SB_E_PROTO, SB_E_LIMIT (body too long), or what
 * a callback returned. `wait` may be NULL.
 */
int sb_rest_call(struct sb_rest *r, const struct sb_rest_request *q,
	const struct sb_rest_wait *wait, struct sb_rest_answer *out, struct sb_error *err);

/* The value of a header of that name (in lower case), or NULL. */
const char *sb_rest_header(const struct sb_rest_answer *a, const char *name);

/*
 * 0 for 200 to 299. Otherwise an error with `what`, the status and the message in the body, if it
 * is JSON with "message", "error" (a text, or an object with "message") or "detail": 400 and 422
 * SB_E_INVAL, 401 AUTH, 403 DENIED, 404 and 410 NOTFOUND, 409 and 412 CONFLICT, 408 and 504
 * TIMEOUT, 429 LIMIT, 507 NOSPACE, other 5xx UNAVAILABLE, else PEER.
 */
int sb_rest_check(const struct sb_rest_answer *a, const char *what, struct sb_error *err);

/*
 * The body as JSON (cloud/http/json.h has its bounds); of another shape or damaged: SB_E_PROTO.
 * The caller has the reference. An empty body is SB_E_PROTO, too.
 */
json_t *sb_rest_json(const struct sb_rest_answer *a, const char *what, struct sb_error *err);

/*
 * Parts of a target: a segment with a slash before it, and "?name=value" or "&name=value". All but
 * letters, digits and "-._~" is escaped.
 */
void sb_rest_add_segment(struct sb_buf *target, const char *segment);
void sb_rest_add_query(struct sb_buf *target, const char *name, const char *value);

/*
 * How long the answer's Retry-After (seconds, or a date) asks to wait, in milliseconds; -1: it has
 * none that can be read.
 */
int64_t sb_rest_retry_after(const struct sb_rest_answer *a);

#endif
