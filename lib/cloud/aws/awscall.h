/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_AWSCALL_H
#define SB_CLOUD_AWS_AWSCALL_H

#include <cloud/aws/awschain.h>
#include <cloud/http/rest.h>

/*
 * Signed calls to one service of AWS. Each try is signed anew. What an answer says about our
 * credentials (expired: they are looked up once more) and about our clock (too far off: corrected
 * by the answer's Date, once) is done something about here, as are throttling codes that HTTP does
 * not show. Thread-safe.
 */
struct sb_awscall;

struct sb_awscall_opts {
	size_t size;
	const char *service;       /* as it is signed: "ec2" */
	const char *region;        /* NULL: of the chain */
	const char *endpoint;      /* "https://HOST[:PORT]"; NULL: configured, else AWS's own */
	struct sb_awschain *chain; /* outlives the client */
	const struct sb_cancel *cancel; /* of the opening: a region may have to be asked for */
	unsigned throttled;             /* so many more tries when the service is throttling */
	struct sb_rest_opts rest;       /* base, name and what this file sets are replaced */
};
#define SB_AWSCALL_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_awscall_opts), .throttled = 8, .rest = SB_REST_OPTS_INIT \
	}

struct sb_awscall *sb_awscall_new(const struct sb_awscall_opts *o, struct sb_error *err);
void sb_awscall_free(struct sb_awscall *a); /* NULL is allowed */
SB_CLEANUP_PTR(sb_awscall, sb_awscall_free)

const char *sb_awscall_region(const struct sb_awscall *a);
const char *sb_awscall_base(const struct sb_awscall *a);

/*
 * As sb_rest_call; the headers of the request and its type are signed. `payload`: the hex SHA-256
 * of a body that `read` gives, or SB_SIGV4_UNSIGNED; NULL: the body is in memory (or there is
 * none).
 */
int sb_awscall_do(struct sb_awscall *a, const struct sb_rest_request *q, const char *payload,
	const struct sb_rest_wait *wait, struct sb_rest_answer *out, struct sb_error *err);

/*
 * 0 for 200 to 299; else an error with `what`, the service's code, message and request id. The
 * code of sb_error: throttling SB_E_LIMIT, no such thing SB_E_NOTFOUND, credentials SB_E_AUTH,
 * refused SB_E_DENIED, wrong SB_E_INVAL, 409 and 412 SB_E_CONFLICT, 5xx SB_E_UNAVAILABLE, else
 * SB_E_PEER.
 */
int sb_awscall_check(const struct sb_rest_answer *a, const char *what, struct sb_error *err);

/* The service's code of a failure ("SlowDown"), "" when there is none. XML and JSON answers. */
#define SB_AWSCALL_CODE_MAX 96
void sb_awscall_code(const struct sb_rest_answer *a, char out[SB_AWSCALL_CODE_MAX]);

/*
 * The text of the first element `name` of a small XML answer, its entities resolved, into `out`;
 * false when there is none or it does not fit.
 */
bool sb_awscall_xml_text(const char *xml, const char *name, char *out, size_t size);

#endif
