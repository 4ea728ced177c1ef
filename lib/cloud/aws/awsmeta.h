/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_AWSMETA_H
#define SB_CLOUD_AWS_AWSMETA_H

#include <cloud/aws/awschain.h>

/* The two services that give temporary credentials to what runs in AWS. */

/* Whether the environment names a container's endpoint. */
bool sb_awsmeta_has_container(void);
int sb_awsmeta_container(const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err);

/* The role of this instance, by IMDSv2. SB_E_CONNECT when no such service answers. */
int sb_awsmeta_instance(const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err);
/* The region this instance is in, to be freed. */
char *sb_awsmeta_region(const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_error *err);

/* What both answer: JSON with AccessKeyId, SecretAccessKey, Token, Expiration, maybe Code. */
int sb_awsmeta_parse(const char *text, size_t len, struct sb_awschain_creds *out,
	struct sb_error *err);

/*
 * Whether plain HTTP may carry credentials from `url`: https, this machine, or a link-local address
 * of AWS's agents.
 */
bool sb_awsmeta_url_safe(const char *url);

#endif
