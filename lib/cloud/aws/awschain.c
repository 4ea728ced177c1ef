/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/awschain.h>

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <base/file.h>
#include <base/str.h>
#include <cloud/aws/awsmeta.h>
#include <cloud/aws/awsprofile.h>

#define RENEW_S 900
#define INSIST_S 600

struct sb_awschain {
	char *profile, *region;
	struct sb_log log;
	pthread_mutex_t mu; /* held while somebody looks: the others want the same */
	struct sb_awschain_creds now;
	bool have;
};

static void
wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void
sb_awschain_creds_free(struct sb_awschain_creds *c)
{
	wipe(c->secret);
	wipe(c->token);
	free(c->access);
	*c = (struct sb_awschain_creds){ 0 };
}

static int
copy(const struct sb_awschain_creds *from, struct sb_awschain_creds *to, struct sb_error *err)
{
	*to = *from;
	to->access = strdup(from->access);
	to->secret = strdup(from->secret);
	to->token = from->token ? strdup(from->token) : NULL;
	if (to->access && to->secret && (!from->token || to->token))
		return 0;
	sb_awschain_creds_free(to);
	return sb_fail(err, SB_E_NOMEM, "credentials");
}

/* The variable, if it says anything. */
static const char *
env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static bool
env_true(const char *name)
{
	const char *v = env(name);

	return v && strcasecmp(v, "true") == 0;
}

struct sb_awschain *
sb_awschain_new(const struct sb_awschain_opts *o, struct sb_error *err)
{
	struct sb_awschain *c = calloc(1, sizeof *c);

	if (c) {
		(void)pthread_mutex_init(&c->mu, NULL);
		c->log = o->log;
		c->profile = o->profile ? strdup(o->profile) : NULL;
		c->region = o->region ? strdup(o->region) : NULL;
	}
	if (c && (!o->profile || c->profile) && (!o->region || c->region))
		return c;
	sb_awschain_free(c);
	(void)sb_fail(err, SB_E_NOMEM, "AWS credentials");
	return NULL;
}

void
sb_awschain_free(struct sb_awschain *c)
{
	if (!c)
		return;
	sb_awschain_creds_free(&c->now);
	free(c->profile);
	free(c->region);
	(void)pthread_mutex_destroy(&c->mu);
	free(c);
}

/* The path of one of the two files, or NULL without a home. */
static char *
file_path(const char *variable, const char *leaf)
{
	const char *path = env(variable);
	const char *home = env("HOME");

	if (path && path[0] == '~' && path[1] == '/' && home)
		return sb_str_printf("%s%s", home, path + 1);
	if (path)
		return strdup(path);
	return home ? sb_str_printf("%s/.aws/%s", home, leaf) : NULL;
}

/* The settings of a section of a file. 1, or 0 when file or section is missing. */
static int
read_section(const char *path, const char *section, struct sb_strmap *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	struct sb_error why = { 0 };
	int r = sb_file_read(AT_FDCWD, path, SB_AWSPROFILE_TEXT_MAX, &text, &why);

	if (r == SB_E_NOTFOUND)
		return 0;
	if (r >= 0)
		r = sb_awsprofile_parse((char *)text.data, text.len, section, out, &why);
	explicit_bzero(text.data, text.len);
	if (r < 0)
		(void)sb_fail(err, why.code, "%s: %s", path, why.msg);
	return r;
}

/* The profile as both files have it. */
struct profile {
	const char *name;
	bool named; /* by an option or the environment: it has to be there */
	struct sb_strmap credentials, config;
	char *file[2];
	bool found;
};

static void
profile_free(struct profile *p)
{
	sb_strmap_free(&p->credentials);
	sb_strmap_free(&p->config);
	free(p->file[0]);
	free(p->file[1]);
}

static int
profile_read(const struct sb_awschain *c, struct profile *p, struct sb_error *err)
{
	sb_autofree char *section = NULL;
	int a = 0, b = 0;

	*p = (struct profile){ .name = c->profile ? c->profile : env("AWS_PROFILE") };
	p->named = p->name != NULL;
	if (!p->name)
		p->name = "default";
	section = strcmp(p->name, "default") == 0 ? strdup("default") :
						    sb_str_printf("profile %s", p->name);
	p->file[0] = file_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
	p->file[1] = file_path("AWS_CONFIG_FILE", "config");
	if (!section)
		return sb_fail(err, SB_E_NOMEM, "profile");
	if (p->file[0])
		a = read_section(p->file[0], p->name, &p->credentials, err);
	if (a >= 0 && p->file[1])
		b = read_section(p->file[1], section, &p->config, err);
	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	p->found = a || b;
	if (!p->found && p->named)
		return sb_fail(err, SB_E_AUTH, "AWS profile \"%s\" is neither in %s nor in %s",
			p->name, p->file[0] ? p->file[0] : "~/.aws/credentials",
			p->file[1] ? p->file[1] : "~/.aws/config");
	return 0;
}

/* Keys of a section, 1; 0 when it has none. */
static int
section_keys(const struct profile *p, const struct sb_strmap *m, const char *file,
	struct sb_awschain_creds *out, struct sb_error *err)
{
	const char *id = sb_strmap_get(m, "aws_access_key_id");
	const char *secret = sb_strmap_get(m, "aws_secret_access_key");
	const char *token = sb_strmap_get(m, "aws_session_token");
	struct sb_awschain_creds c = { .access = (char *)id,
		.secret = (char *)secret,
		.token = token && *token ? (char *)token : NULL };
	int r;

	if (!id && !secret)
		return 0;
	if (!id || !secret || !*id || !*secret)
		return sb_fail(err, SB_E_AUTH, "AWS profile \"%s\" in %s has no %s", p->name, file,
			id && *id ? "aws_secret_access_key" : "aws_access_key_id");
	(void)snprintf(c.from, sizeof c.from, "profile %.60s", p->name);
	r = copy(&c, out, err);
	return r < 0 ? r : 1;
}

/* What would make somebody else of us, and is not built. */
static int
refuse_unbuilt(const struct profile *p, struct sb_error *err)
{
	static const char *const keys[] = { "role_arn", "source_profile", "credential_source",
		"web_identity_token_file", "sso_session", "sso_start_url", "sso_account_id",
		"credential_process" };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (sb_strmap_get(&p->config, keys[i]) || sb_strmap_get(&p->credentials, keys[i]))
			return sb_fail(err, SB_E_UNSUPPORTED,
				"AWS profile \"%s\" uses %s, which is not supported: give keys in "
				"the profile, in AWS_ACCESS_KEY_ID or by the instance's role",
				p->name, keys[i]);
	return 0;
}

/* 1, or 0 when the files say nothing about the profile that nobody named. */
static int
from_profile(const struct sb_awschain *c, struct sb_awschain_creds *out, struct sb_error *err)
{
	struct profile p;
	int r = profile_read(c, &p, err);

	if (r == 0 && p.found)
		r = section_keys(&p, &p.credentials, p.file[0], out, err);
	if (r == 0 && p.found)
		r = refuse_unbuilt(&p, err);
	if (r == 0 && p.found)
		r = section_keys(&p, &p.config, p.file[1], out, err);
	if (r == 0 && p.named)
		r = sb_fail(err, SB_E_AUTH, "AWS profile \"%s\" has no aws_access_key_id", p.name);
	profile_free(&p);
	return r;
}

/* 1, or 0 when the environment has none. */
static int
from_environment(struct sb_awschain_creds *out, struct sb_error *err)
{
	const char *id = env("AWS_ACCESS_KEY_ID");
	const char *secret = env("AWS_SECRET_ACCESS_KEY");
	struct sb_awschain_creds c = { .access = (char *)id,
		.secret = (char *)secret,
		.token = (char *)env("AWS_SESSION_TOKEN"),
		.from = "environment" };
	int r;

	if (!id && !secret)
		return 0;
	if (!id || !secret)
		return sb_fail(err, SB_E_AUTH, "%s is set without %s",
			id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
			id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	r = copy(&c, out, err);
	return r < 0 ? r : 1;
}

static int
look(const struct sb_awschain *c, const struct sb_cancel *cancel, struct sb_awschain_creds *out,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = c->profile ? 0 : from_environment(out, err);

	if (r == 0)
		r = from_profile(c, out, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (sb_awsmeta_has_container())
		return sb_awsmeta_container(&c->log, cancel, out, err);
	if (env_true("AWS_EC2_METADATA_DISABLED"))
		(void)sb_fail(&why, SB_E_CONNECT, "the instance's metadata are switched off");
	else
		r = sb_awsmeta_instance(&c->log, cancel, out, &why);
	if (out->access)
		return 0;
	if (r < 0 && why.code != SB_E_CONNECT && why.code != SB_E_TIMEOUT) {
		if (err)
			*err = why;
		return r;
	}
	return sb_fail(err, SB_E_AUTH,
		"no AWS credentials: neither AWS_ACCESS_KEY_ID nor a default profile nor a "
		"container's endpoint, and %s",
		why.msg);
}

int
sb_awschain_get(struct sb_awschain *c, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err)
{
	int64_t now = (int64_t)time(NULL);
	struct sb_awschain_creds fresh = { 0 };
	struct sb_error why = { 0 };
	int r = 0;

	(void)pthread_mutex_lock(&c->mu);
	if (!c->have || (c->now.expires_s && c->now.expires_s - now < RENEW_S)) {
		r = look(c, cancel, &fresh, &why);
		if (r == 0) {
			sb_awschain_creds_free(&c->now);
			c->now = fresh;
			c->have = true;
			sb_log(&c->log, SB_LOG_DEBUG, "aws", "credentials from %s", c->now.from);
		} else if (c->have && c->now.expires_s - now >= INSIST_S && r != SB_E_CANCELED) {
			sb_log(&c->log, SB_LOG_WARN, "aws", "credentials not renewed: %s", why.msg);
			r = 0;
		}
	}
	if (r == 0)
		r = copy(&c->now, out, &why);
	(void)pthread_mutex_unlock(&c->mu);
	if (r < 0 && err)
		*err = why;
	return r;
}

void
sb_awschain_expired(struct sb_awschain *c)
{
	(void)pthread_mutex_lock(&c->mu);
	sb_awschain_creds_free(&c->now);
	c->have = false;
	(void)pthread_mutex_unlock(&c->mu);
}

/* A setting of the profile: of the config file, else of the other one; NULL: none. To be freed. */
static int
profile_setting(struct sb_awschain *c, const char *key, char **out, struct sb_error *err)
{
	struct profile p;
	int r = profile_read(c, &p, err);

	*out = NULL;
	if (r == 0) {
		const char *v = sb_strmap_get(&p.config, key);

		v = v ? v : sb_strmap_get(&p.credentials, key);
		if (v && *v && !(*out = strdup(v)))
			r = sb_fail(err, SB_E_NOMEM, "profile");
	}
	profile_free(&p);
	return r;
}

char *
sb_awschain_region(struct sb_awschain *c, const struct sb_cancel *cancel, struct sb_error *err)
{
	const char *said = c->region ? c->region : env("AWS_REGION");
	struct sb_error why = { 0 };
	char *out = NULL;

	if (!said)
		said = env("AWS_DEFAULT_REGION");
	if (said) {
		out = strdup(said);
		if (!out)
			(void)sb_fail(err, SB_E_NOMEM, "region");
		return out;
	}
	if (profile_setting(c, "region", &out, err) < 0 || out)
		return out;
	if (!env_true("AWS_EC2_METADATA_DISABLED"))
		out = sb_awsmeta_region(&c->log, cancel, &why);
	if (!out)
		(void)sb_fail(err, SB_E_INVAL,
			"no AWS region: set AWS_REGION, or region in the profile%s%s",
			why.msg[0] ? "; " : "", why.msg);
	return out;
}

int
sb_awschain_endpoint(struct sb_awschain *c, const char *service, char **out, struct sb_error *err)
{
	char name[64];
	const char *said;

	*out = NULL;
	if (env_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
		return 0;
	(void)snprintf(name, sizeof name, "AWS_ENDPOINT_URL_%s", service);
	said = env(name) ? env(name) : env("AWS_ENDPOINT_URL");
	if (!said)
		return profile_setting(c, "endpoint_url", out, err);
	*out = strdup(said);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "endpoint");
}
