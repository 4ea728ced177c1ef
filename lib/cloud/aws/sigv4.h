/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_SIGV4_H
#define SB_CLOUD_AWS_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include <base/strlist.h>

/*
 * AWS Signature Version 4. libcurl's own signer gets S3 wrong (bare subresources, order of the
 * query, the hash of streams) and cannot correct a clock, so this one signs for all services.
 */
struct sb_sigv4_key {
	const char *access, *secret;
	const char *token; /* of temporary credentials; NULL or "" else */
};

struct sb_sigv4_header {
	const char *name;
	const char *value;
};

struct sb_sigv4_request {
	const char *service; /* "s3", "ec2", "ssm" */
	const char *region;
	const char *method;
	const char *host;   /* as the Host header goes out: with a port that is not the default */
	const char *target; /* "/path?query" as it goes out, each byte encoded once */
	/* What else goes out and is signed: content-type, x-amz-*. Neither host nor what signing
	 * adds. */
	const struct sb_sigv4_header *headers;
	size_t n_headers;
	const char *payload; /* hex SHA-256 of the body (sb_sigv4_hash), or SB_SIGV4_UNSIGNED */
	int64_t time_s;      /* Unix time, of the server's clock if that is known */
};

#define SB_SIGV4_HASH_MAX 65
/* Over TLS, for bodies that nobody wants to read twice. S3 only. */
#define SB_SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

/* Hex SHA-256. */
int sb_sigv4_hash(const void *data, size_t len, char out[SB_SIGV4_HASH_MAX], struct sb_error *err);

/*
 * Adds "X-Amz-Date", "X-Amz-Security-Token" (with a token), "X-Amz-Content-Sha256" (S3) and
 * "Authorization" as "Name: value" to `out`. The query need not be sorted; a name without '=' is
 * signed as an empty value. SB_E_INVAL for a target that is not encoded.
 */
int sb_sigv4_sign(const struct sb_sigv4_key *key, const struct sb_sigv4_request *q,
	struct sb_strlist *out, struct sb_error *err);

/* For tests and logs: the canonical request that sb_sigv4_sign hashes, to be freed. */
char *sb_sigv4_canonical(const struct sb_sigv4_key *key, const struct sb_sigv4_request *q,
	struct sb_error *err);

#endif
