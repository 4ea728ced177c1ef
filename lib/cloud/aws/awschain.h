/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_AWSCHAIN_H
#define SB_CLOUD_AWS_AWSCHAIN_H

#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/log.h>

/*
 * Where a program's AWS credentials, region and endpoints come from, in the order that users of
 * AWS's own tools expect:
 *
 * 1. the profile that an option names (a profile of the environment does not beat keys there);
 * 2. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN;
 * 3. the profile AWS_PROFILE, else "default", in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials),
 *    then in AWS_CONFIG_FILE (~/.aws/config);
 * 4. AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with AWS_CONTAINER_AUTHORIZATION_TOKEN or
 *    _TOKEN_FILE. Plain HTTP only to this machine and to AWS's own link-local addresses;
 * 5. IMDSv2, at AWS_EC2_METADATA_SERVICE_ENDPOINT if that is set; AWS_EC2_METADATA_DISABLED=true
 *    skips it. Never through a proxy.
 *
 * What a profile asks for and is not built (role_arn, source_profile, credential_source,
 * web_identity_token_file, sso_*, credential_process) is refused by name: falling through would
 * work as somebody else. Credentials of 4 and 5 are renewed from 15 minutes before they expire; up
 * to 10 minutes before it, those at hand still serve when that fails. Thread-safe.
 */
struct sb_awschain;

struct sb_awschain_opts {
	size_t size;
	const char *profile; /* NULL: as the environment says */
	const char *region;  /* NULL: as above; then the profile's; then IMDS */
	struct sb_log log;
};
#define SB_AWSCHAIN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_awschain_opts) \
	}

/* A copy for one signature. Zero-initialise; free it, which wipes it. */
struct sb_awschain_creds {
	char *access, *secret, *token; /* `token` NULL: none */
	int64_t expires_s;             /* Unix time; 0: never */
	char from[96];                 /* "environment", "profile x of FILE", ... for messages */
};
void sb_awschain_creds_free(struct sb_awschain_creds *c);
SB_CLEANUP_VALUE(sb_awschain_creds, sb_awschain_creds_free)

/* Looks at nothing yet; everything is copied. sb_awschain_free takes NULL. */
struct sb_awschain *sb_awschain_new(const struct sb_awschain_opts *o, struct sb_error *err);
void sb_awschain_free(struct sb_awschain *c);
SB_CLEANUP_PTR(sb_awschain, sb_awschain_free)

/*
 * Credentials that are good now. SB_E_AUTH: there are none, and where it looked; SB_E_UNSUPPORTED
 * for a profile that needs what is not built; SB_E_INVAL for a damaged file.
 */
int sb_awschain_get(struct sb_awschain *c, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err);

/* The server called them expired: the next get looks again. */
void sb_awschain_expired(struct sb_awschain *c);

/* To be freed. SB_E_INVAL when nobody says a region: guessing one would use a wrong one. */
char *sb_awschain_region(struct sb_awschain *c, const struct sb_cancel *cancel,
	struct sb_error *err);

/*
 * The endpoint somebody configured for `service` ("S3", "EC2", "SSM"): AWS_ENDPOINT_URL_<service>,
 * AWS_ENDPOINT_URL, endpoint_url of the profile. `*out` is NULL when there is none, or
 * AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true; to be freed.
 */
int sb_awschain_endpoint(struct sb_awschain *c, const char *service, char **out,
	struct sb_error *err);

#endif
