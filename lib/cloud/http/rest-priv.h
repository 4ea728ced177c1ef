/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_REST_PRIV_H
#define SB_CLOUD_REST_PRIV_H

#include <pthread.h>

#include <curl/curl.h>

#include <cloud/http/rest.h>

/* A connection, or what makes one. Each has a multi of its own, so threads share nothing. */
struct sb_rest_handle {
	struct sb_rest_handle *next;
	CURLM *multi;
	CURL *easy;
};

/* A header that is copied. */
struct sb_rest_fixed {
	char *name, *value;
	bool secret;
};

struct sb_rest {
	struct sb_rest_opts o; /* texts in it are not ours: those below are */
	char *base, *name, *shown, *socket, *proxy, *ca_file, *ca_dir, *cert_file, *key_file;
	struct sb_rest_fixed *headers;
	size_t n_headers;

	pthread_mutex_t mu;
	struct sb_rest_handle *idle; /* latest first */
	size_t n_idle;
};

/* One request that goes out once. */
struct sb_rest_try {
	struct sb_rest *client;
	const struct sb_rest_request *q;
	struct sb_rest_answer *a;
	struct sb_rest_handle *h;
	struct curl_slist *headers;
	const char *body; /* of a request without `read` */
	size_t body_len;
	struct sb_strlist secrets; /* values that no message may show */
	struct sb_error err;       /* what a callback found */
	char curl_msg[CURL_ERROR_SIZE];
	unsigned n;      /* counts from 1 */
	bool sent;       /* a connection was there, the request may have gone out */
	bool stale;      /* the connection closed and libcurl had another */
	bool read_begun; /* `read` was called */
	bool handed_on;  /* bytes of the answer are with the caller */
	bool waiting;    /* for `read_fd` */
	bool in_body;    /* the last line of the header came */
	size_t head_len;
	curl_off_t moved; /* bytes up to `moved_at` */
	int64_t moved_at;
};

_Static_assert(CURL_MAX_WRITE_SIZE <= SB_REST_PIECE_MAX, "pieces of libcurl are longer");

/* rest-try.c: makes the try and fills `t->a`; the caller has set the first four members and `n`. */
int sb_rest_try_run(struct sb_rest_try *t, const struct sb_rest_wait *w, struct sb_error *err);
/* Frees what the try holds, but not its answer. */
void sb_rest_try_end(struct sb_rest_try *t);

/* rest-again.c: milliseconds until the next try, or -1: there is none. `r` is what the try gave. */
int64_t sb_rest_again_in(const struct sb_rest_try *t, int r);
/* Whether the body can go out once more. */
bool sb_rest_again_body(const struct sb_rest_try *t);
/* Waits so long; SB_E_CANCELED or SB_E_TIMEOUT. */
int sb_rest_again_pause(int64_t ms, const struct sb_rest_wait *w, const char *what,
	struct sb_error *err);
/* The token that this thread works under, or NULL. */
const struct sb_cancel *sb_rest_again_token(void);

/* rest-log.c */
bool sb_rest_log_secret(const char *name, size_t len);
void sb_rest_log_sent(const struct sb_rest_try *t);
void sb_rest_log_came(const struct sb_rest_try *t, int r, int64_t ms, int64_t again_ms,
	const struct sb_error *err);
/* Keeps a value that must not be seen; a scheme before it ("Bearer x") is left out. */
void sb_rest_log_keep(struct sb_strlist *secrets, const char *value);
/* Overwrites each of them in the text. */
void sb_rest_log_redact(const struct sb_strlist *secrets, char *text, size_t len);

#endif
