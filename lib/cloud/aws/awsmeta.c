/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/awsmeta.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <cloud/http/json.h>
#include <cloud/http/rest.h>

#define ANSWER_MAX 65536
#define WAIT_MS 1000
#define CONTAINER_WAIT_MS 5000
#define TOKEN_MAX 16384
#define TOKEN_TTL "21600"
#define ROLES "/latest/meta-data/iam/security-credentials/"

static const char *
env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

/* "2026-11-18T20:00:00Z" as Unix time. */
static int
expiry(const char *text, int64_t *out)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	if (!end)
		return -1;
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	*out = (int64_t)timegm(&tm);
	return strcmp(end, "Z") == 0 ? 0 : -1;
}

/* A text of the answer, copied; NULL when it is not there. */
static char *
text_of(const json_t *j, const char *key)
{
	const char *v = json_string_value(json_object_get(j, key));

	return v && *v ? strdup(v) : NULL;
}

int
sb_awsmeta_parse(const char *text, size_t len, struct sb_awschain_creds *out, struct sb_error *err)
{
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *code = json_string_value(json_object_get(j, "Code"));
	const char *until = json_string_value(json_object_get(j, "Expiration"));
	int r = 0;

	if (!json_is_object(j))
		r = sb_fail(err, SB_E_PROTO, "temporary credentials: the answer is no JSON object");
	else if (code && strcasecmp(code, "Success") != 0)
		r = sb_fail(err, SB_E_AUTH, "temporary credentials: the service says \"%.60s\"",
			code);
	else if (until && expiry(until, &out->expires_s) < 0)
		r = sb_fail(err, SB_E_PROTO, "temporary credentials: Expiration \"%.40s\"", until);
	if (r == 0) {
		out->access = text_of(j, "AccessKeyId");
		out->secret = text_of(j, "SecretAccessKey");
		out->token = text_of(j, "Token");
		if (!out->access || !out->secret)
			r = sb_fail(err, SB_E_PROTO,
				"temporary credentials: no AccessKeyId or SecretAccessKey");
	}
	if (r < 0)
		sb_awschain_creds_free(out);
	json_decref(j);
	return r;
}

bool
sb_awsmeta_url_safe(const char *url)
{
	static const char *const hosts[] = { "localhost", "[::1]", "169.254.170.2",
		"169.254.170.23", "[fd00:ec2::23]" };
	const char *host = url + 7;
	size_t len;

	if (strncasecmp(url, "https://", 8) == 0)
		return true;
	if (strncasecmp(url, "http://", 7) != 0)
		return false;
	len = strcspn(host, "/?#");
	if (memchr(host, '@', len))
		return false;
	len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
		if (strlen(hosts[i]) == len && strncasecmp(host, hosts[i], len) == 0)
			return true;
	/* 127.0.0.0/8, written out. */
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)host[i]) && host[i] != '.')
			return false;
	return strncmp(host, "127.", 4) == 0 && len <= strlen("127.255.255.255");
}

bool
sb_awsmeta_has_container(void)
{
	return env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
		env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

/* A client without proxy and repetition. */
static struct sb_rest *
client(const char *base, const char *name, const struct sb_log *log, struct sb_error *err)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;

	o.base = base;
	o.name = name;
	o.proxy = "";
	o.connect_ms = WAIT_MS;
	o.max_body = ANSWER_MAX;
	o.tries = 1;
	o.log = *log;
	return sb_rest_new(&o, err);
}

static int
ask(struct sb_rest *c, const char *method, const char *target, const struct sb_rest_header *h,
	int64_t wait_ms, const struct sb_cancel *cancel, struct sb_rest_answer *out,
	struct sb_error *err)
{
	struct sb_rest_wait wait = { .cancel = cancel, .deadline = sb_deadline_in(wait_ms) };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	int r;

	q.method = method;
	q.target = target;
	q.headers = h;
	q.n_headers = h ? 1 : 0;
	q.secret = true;
	r = sb_rest_call(c, &q, &wait, out, err);
	return r < 0 ? r : sb_rest_check(out, target, err);
}

/* The container's authorization, from the variable or the file; NULL: none. */
static int
container_token(struct sb_buf *file, const char **out, struct sb_error *err)
{
	const char *path = env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	int r = 0;

	*out = env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	if (path) {
		r = sb_file_read(AT_FDCWD, path, TOKEN_MAX, file, err);
		while (r == 0 && file->len > 0 && isspace(file->data[file->len - 1]))
			file->data[--file->len] = '\0';
		*out = (char *)file->data;
	}
	if (r == 0 && *out && (*out)[strcspn(*out, "\r\n")])
		r = sb_fail(err, SB_E_INVAL,
			"the container's authorization token has a line break");
	return r;
}

int
sb_awsmeta_container(const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err)
{
	const char *relative = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	sb_autofree char *url = relative ?
		sb_str_printf("http://169.254.170.2%s%s", relative[0] == '/' ? "" : "/", relative) :
		strdup(full);
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	sb_auto(sb_rest) struct sb_rest *c = NULL;
	sb_auto(sb_buf) struct sb_buf file;
	sb_autofree char *base = NULL;
	struct sb_rest_header h = { "Authorization", NULL, true };
	const char *slash;
	int r;

	sb_buf_init(&file, TOKEN_MAX);
	if (!url)
		return sb_fail(err, SB_E_NOMEM, "container credentials");
	if (!sb_awsmeta_url_safe(url))
		return sb_fail(err, SB_E_DENIED,
			"AWS_CONTAINER_CREDENTIALS_FULL_URI %.100s: plain http only to this "
			"machine",
			url);
	slash = strchr(strstr(url, "://") + 3, '/');
	base = slash ? strndup(url, (size_t)(slash - url)) : strdup(url);
	if (!base)
		return sb_fail(err, SB_E_NOMEM, "container credentials");
	c = client(base, "the container's credentials", log, err);
	r = c ? container_token(&file, &h.value, err) : SB_E_INVAL;
	if (r == 0)
		r = ask(c, "GET", slash ? slash : "/", h.value ? &h : NULL, CONTAINER_WAIT_MS,
			cancel, &a, err);
	if (r == 0)
		r = sb_awsmeta_parse((char *)a.body.data, a.body.len, out, err);
	if (r == 0)
		(void)snprintf(out->from, sizeof out->from, "the container's endpoint");
	return r;
}

/* A session with IMDSv2: the client and the header that its requests need. */
struct imds {
	struct sb_rest *c;
	struct sb_rest_answer token;
	struct sb_rest_header h;
};

static int
imds_begin(struct imds *m, const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	const char *base = env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	struct sb_rest_header ttl = { "x-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL, false };
	int r;

	*m = (struct imds){ .h = { "x-aws-ec2-metadata-token", NULL, true } };
	m->c = client(base ? base : "http://169.254.169.254", "the instance's metadata", log, err);
	if (!m->c)
		return SB_E_INVAL;
	r = ask(m->c, "PUT", "/latest/api/token", &ttl, WAIT_MS, cancel, &m->token, err);
	if (r < 0)
		return r;
	m->h.value = (char *)m->token.body.data;
	if (m->token.body.len == 0 || m->h.value[strcspn(m->h.value, "\r\n")] ||
		strlen(m->h.value) != m->token.body.len)
		return sb_fail(err, SB_E_PROTO, "the instance's metadata gave a bad token");
	return 0;
}

static void
imds_end(struct imds *m)
{
	sb_rest_answer_free(&m->token);
	sb_rest_free(m->c);
}

int
sb_awsmeta_instance(const struct sb_log *log, const struct sb_cancel *cancel,
	struct sb_awschain_creds *out, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer role = { 0 };
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	sb_auto(sb_buf) struct sb_buf target;
	struct imds m;
	int r = imds_begin(&m, log, cancel, err);

	sb_buf_init(&target, TOKEN_MAX);
	if (r == 0)
		r = ask(m.c, "GET", ROLES, &m.h, WAIT_MS, cancel, &role, err);
	if (r == 0) {
		role.body.data[strcspn((char *)role.body.data, "\r\n")] = '\0';
		if (!role.body.data[0])
			r = sb_fail(err, SB_E_AUTH, "this instance has no role");
		sb_buf_add_str(&target, "/latest/meta-data/iam/security-credentials");
		sb_rest_add_segment(&target, (char *)role.body.data);
	}
	if (r == 0)
		r = sb_buf_check(&target, "name of the role", err);
	if (r == 0)
		r = ask(m.c, "GET", (char *)target.data, &m.h, WAIT_MS, cancel, &a, err);
	if (r == 0)
		r = sb_awsmeta_parse((char *)a.body.data, a.body.len, out, err);
	if (r == 0)
		(void)snprintf(out->from, sizeof out->from, "the instance's role %.60s",
			(char *)role.body.data);
	imds_end(&m);
	return r;
}

char *
sb_awsmeta_region(const struct sb_log *log, const struct sb_cancel *cancel, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct imds m;
	char *out = NULL;
	int r = imds_begin(&m, log, cancel, err);

	if (r == 0)
		r = ask(m.c, "GET", "/latest/meta-data/placement/region", &m.h, WAIT_MS, cancel, &a,
			err);
	if (r == 0) {
		const char *s = (char *)a.body.data;

		if (a.body.len > 0 && a.body.len < 64 &&
			strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == a.body.len)
			out = strdup(s);
		if (!out)
			(void)sb_fail(err, SB_E_PROTO, "the instance's metadata gave no region");
	}
	imds_end(&m);
	return out;
}
