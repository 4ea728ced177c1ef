/* SPDX-License-Identifier: MIT */
/* Where AWS credentials come from, and calls signed with them. */
#include "config.h"

#include "tests/lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/str.h>
#include <cloud/aws/awscall.h>
#include <cloud/aws/awsmeta.h>
#include <cloud/aws/awsprofile.h>

#include "tests/lib/httpfix.h"
#include "tests/lib/tmpdir.h"

#define TEMPORARY(id, until) \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"" id "\",\"SecretAccessKey\":\"s/+=\"," \
	"\"Token\":\"tok==\",\"Expiration\":\"" until "\"}"

/* What the toy service does and saw. */
static struct {
	unsigned puts, roles, seen;
	char auth[1024], date[64];
	bool short_lived, down;
} toy;

static bool
has(const struct httpfix_request *q, const char *text)
{
	return strstr(q->head, text) != NULL;
}

/* Copies the value of a header of the request. */
static void
keep(const struct httpfix_request *q, const char *name, char *out, size_t size)
{
	const char *p = strstr(q->head, name);

	out[0] = '\0';
	if (p)
		(void)snprintf(out, size, "%.*s", (int)strcspn(p, "\r\n"), p);
}

static void
imds(struct httpfix_conn *c, const struct httpfix_request *q)
{
	char until[32];
	time_t t = time(NULL) + (toy.short_lived ? 700 : 86400);
	sb_autofree char *body = NULL;

	if (strcmp(q->target, "/latest/api/token") == 0) {
		toy.puts++;
		if (strcmp(q->method, "PUT") != 0 ||
			!has(q, "x-aws-ec2-metadata-token-ttl-seconds: 21600"))
			httpfix_answer(c, 400, "", "");
		else
			httpfix_answer(c, 200, "", "imds-token");
		return;
	}
	if (!has(q, "x-aws-ec2-metadata-token: imds-token")) {
		httpfix_answer(c, 401, "", "");
		return;
	}
	if (strcmp(q->target, "/latest/meta-data/placement/region") == 0) {
		httpfix_answer(c, 200, "", "eu-north-7");
	} else if (sb_str_ends(q->target, "/security-credentials/")) {
		httpfix_answer(c, 200, "", "my role\n");
	} else if (sb_str_ends(q->target, "/security-credentials/my%20role")) {
		toy.roles++;
		(void)strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
		body = sb_str_printf(TEMPORARY("ASIA%u", "%s"), toy.roles, until);
		httpfix_answer(c, toy.down ? 500 : 200, "", body);
	} else {
		httpfix_answer(c, 404, "", "");
	}
}

static bool
serve(struct httpfix_conn *c, const struct httpfix_request *q, void *arg)
{
	(void)arg;
	toy.seen++;
	if (sb_str_starts(q->target, "/latest/")) {
		imds(c, q);
	} else if (strcmp(q->target, "/creds?x=1") == 0) {
		if (has(q, "Authorization: Bearer abc"))
			httpfix_answer(c, 200, "", TEMPORARY("ASIACONT", "2099-01-01T00:00:00Z"));
		else
			httpfix_answer(c, 403, "", "");
	} else if (sb_str_starts(q->target, "/expired") && q->n == 1) {
		httpfix_answer(c, 400, "",
			"<Error><Code>ExpiredToken</Code><Message>old</Message></Error>");
	} else if (sb_str_starts(q->target, "/skew") && q->n == 1) {
		httpfix_answer(c, 403, "Date: Sun, 01 Feb 2037 00:00:00 GMT\r\n",
			"<Error><Code>RequestTimeTooSkewed</Code><Message>x</Message></Error>");
	} else if (sb_str_starts(q->target, "/slow") && q->n == 1) {
		httpfix_answer(c, 400, "", "{\"__type\":\"a#ThrottlingException\"}");
	} else if (sb_str_starts(q->target, "/no")) {
		httpfix_answer(c, 400, "x-amzn-RequestId: r-1\r\n",
			"<?xml version=\"1.0\"?><Response><Errors><Error><Code>InvalidID.NotFound"
			"</Code><Message>a &lt;b&gt;</Message></Error></Errors></Response>");
	} else {
		keep(q, "Authorization: ", toy.auth, sizeof toy.auth);
		keep(q, "X-Amz-Date: ", toy.date, sizeof toy.date);
		httpfix_answer(c, 200, "", "ok");
	}
	return true;
}

static struct httpfix *fix;
static struct tmpdir dir;
static char *home = dir.path;

static int
clean(void **state)
{
	static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_CONFIG_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		(void)unsetenv(names[i]);
	(void)setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	(void)setenv("HOME", home, 1);
	memset(&toy, 0, sizeof toy);
	return 0;
}

static void
write_file(const char *leaf, const char *text, const char *variable)
{
	char path[320];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", home, leaf);
	f = fopen(path, "we");
	assert_non_null(f);
	(void)fputs(text, f);
	(void)fclose(f);
	if (variable)
		(void)setenv(variable, path, 1);
}

static struct sb_awschain *
chain(const char *profile)
{
	struct sb_awschain_opts o = SB_AWSCHAIN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_awschain *c;

	o.profile = profile;
	c = sb_awschain_new(&o, &err);
	assert_non_null(c);
	return c;
}

static void
assert_creds(struct sb_awschain *c, const char *access, const char *secret, const char *token)
{
	struct sb_awschain_creds creds = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_awschain_get(c, NULL, &creds, &err), &err);
	assert_string_equal(creds.access, access);
	assert_string_equal(creds.secret, secret);
	if (token)
		assert_string_equal(creds.token, token);
	else
		assert_null(creds.token);
	sb_awschain_creds_free(&creds);
}

static void
assert_none(struct sb_awschain *c, int code, const char *word)
{
	struct sb_awschain_creds creds = { 0 };
	struct sb_error err = { 0 };

	assert_fails(sb_awschain_get(c, NULL, &creds, &err), code, &err);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, word);
}

static void
the_environment_comes_before_the_files(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	sb_auto(sb_awschain) struct sb_awschain *d = chain("work");
	sb_auto(sb_awschain) struct sb_awschain *e = chain(NULL);

	(void)state;
	write_file("cred",
		"[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
		"[work]\naws_access_key_id=C\naws_secret_access_key=D # not this\n"
		"aws_session_token=E\n",
		"AWS_SHARED_CREDENTIALS_FILE");
	(void)setenv("AWS_ACCESS_KEY_ID", "X", 1);
	(void)setenv("AWS_PROFILE", "work", 1);
	assert_none(c, SB_E_AUTH, "AWS_SECRET_ACCESS_KEY");
	(void)setenv("AWS_SECRET_ACCESS_KEY", "Y", 1);
	assert_creds(c, "X", "Y", NULL);
	/* An option beats the keys of the environment, AWS_PROFILE does not. */
	assert_creds(d, "C", "D", "E");
	(void)unsetenv("AWS_ACCESS_KEY_ID");
	(void)unsetenv("AWS_SECRET_ACCESS_KEY");
	assert_creds(e, "C", "D", "E");
}

static void
profiles_are_found_in_both_files(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	sb_auto(sb_awschain) struct sb_awschain *d = chain("nobody");
	sb_auto(sb_awschain) struct sb_awschain *half = chain("half");
	struct sb_error err = { 0 };
	char *region, *endpoint;

	(void)state;
	write_file("cred2", "[half]\naws_access_key_id=A\n", "AWS_SHARED_CREDENTIALS_FILE");
	write_file("conf",
		"; first\n[default]\nregion = eu-1\nAWS_ACCESS_KEY_ID = A\n"
		"aws_secret_access_key = B;B\nendpoint_url=http://x:1\ns3 =\n  max = 3\n"
		"[profile other]\nregion=zz\n",
		"AWS_CONFIG_FILE");
	assert_creds(c, "A", "B;B", NULL);
	assert_none(d, SB_E_AUTH, "nobody");
	assert_none(half, SB_E_AUTH, "aws_secret_access_key");
	region = sb_awschain_region(c, NULL, &err);
	assert_string_equal(region, "eu-1");
	free(region);
	(void)setenv("AWS_DEFAULT_REGION", "d", 1);
	region = sb_awschain_region(c, NULL, &err);
	assert_string_equal(region, "d");
	free(region);
	assert_ok(sb_awschain_endpoint(c, "S3", &endpoint, &err), &err);
	assert_string_equal(endpoint, "http://x:1");
	free(endpoint);
	(void)setenv("AWS_ENDPOINT_URL_S3", "http://y", 1);
	assert_ok(sb_awschain_endpoint(c, "S3", &endpoint, &err), &err);
	assert_string_equal(endpoint, "http://y");
	free(endpoint);
	(void)setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
	assert_ok(sb_awschain_endpoint(c, "S3", &endpoint, &err), &err);
	assert_null(endpoint);
}

static void
what_is_not_built_is_refused_by_name(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain("r");
	sb_auto(sb_awschain) struct sb_awschain *d = chain("sso");
	sb_auto(sb_awschain) struct sb_awschain *e = chain("x");

	(void)state;
	write_file("conf2",
		"[profile r]\nrole_arn=arn:x\nsource_profile=default\n"
		"[profile sso]\nsso_session = s\n[default]\naws_access_key_id=A\n"
		"aws_secret_access_key=B\n[broken\n",
		"AWS_CONFIG_FILE");
	assert_none(c, SB_E_INVAL, "line 9");
	write_file("conf2",
		"[profile r]\nrole_arn=arn:x\nsource_profile=default\n"
		"[profile sso]\nsso_session = s\n[profile x]\nregion=r\n",
		"AWS_CONFIG_FILE");
	assert_none(c, SB_E_UNSUPPORTED, "role_arn");
	assert_none(d, SB_E_UNSUPPORTED, "sso_session");
	assert_none(e, SB_E_AUTH, "no aws_access_key_id");
}

static void
nothing_anywhere_says_where_it_looked(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	struct sb_error err = { 0 };

	(void)state;
	assert_none(c, SB_E_AUTH, "no AWS credentials");
	assert_null(sb_awschain_region(c, NULL, &err));
	assert_int_equal(err.code, SB_E_INVAL);
}

static void
a_container_has_an_endpoint(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	sb_auto(sb_awschain) struct sb_awschain *d = chain(NULL);
	char url[128];

	(void)state;
	(void)snprintf(url, sizeof url, "%s/creds?x=1", httpfix_url(fix));
	(void)setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
	assert_none(c, SB_E_DENIED, "403");
	write_file("token", "Bearer abc\n", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	assert_creds(c, "ASIACONT", "s/+=", "tok==");
	(void)setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.org/x", 1);
	assert_none(d, SB_E_DENIED, "plain http");
	assert_true(sb_awsmeta_url_safe("https://example.org/x"));
	assert_true(sb_awsmeta_url_safe("http://127.9.9.9:1/x"));
	assert_true(sb_awsmeta_url_safe("http://[::1]:80/x"));
	assert_false(sb_awsmeta_url_safe("http://127.0.0.1@evil/x"));
	assert_false(sb_awsmeta_url_safe("http://127.0.0.1.evil.org/x"));
	assert_false(sb_awsmeta_url_safe("http://localhost.evil.org/x"));
	assert_false(sb_awsmeta_url_safe("ftp://localhost/x"));
}

static void
an_instance_has_a_role(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	struct sb_error err = { 0 };
	char *region;

	(void)state;
	(void)unsetenv("AWS_EC2_METADATA_DISABLED");
	(void)setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", httpfix_url(fix), 1);
	assert_creds(c, "ASIA1", "s/+=", "tok==");
	assert_creds(c, "ASIA1", "s/+=", "tok==");
	assert_int_equal(toy.puts, 1);
	region = sb_awschain_region(c, NULL, &err);
	assert_string_equal(region, "eu-north-7");
	free(region);
	/* Near their end they are renewed; a service that is down costs nothing yet. */
	toy.short_lived = true;
	sb_awschain_expired(c);
	assert_creds(c, "ASIA2", "s/+=", "tok==");
	assert_creds(c, "ASIA3", "s/+=", "tok==");
	toy.down = true;
	assert_creds(c, "ASIA3", "s/+=", "tok==");
	sb_awschain_expired(c);
	assert_none(c, SB_E_UNAVAILABLE, "500");
}

static void
answers_of_the_services_are_checked(void **state)
{
	static const char *const bad[] = { "", "[]", "{\"Code\":\"Failed\"}",
		"{\"AccessKeyId\":\"a\"}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Expiration\":\"soon\"}" };
	struct sb_awschain_creds creds = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_true(sb_awsmeta_parse(bad[i], strlen(bad[i]), &creds, &err) < 0);
		assert_null(creds.access);
	}
}

static struct sb_awscall *
caller(struct sb_awschain *c)
{
	struct sb_awscall_opts o = SB_AWSCALL_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_awscall *a;

	(void)setenv("AWS_ACCESS_KEY_ID", "AKIDX", 1);
	(void)setenv("AWS_SECRET_ACCESS_KEY", "Y", 1);
	o.service = "ec2";
	o.region = "r-1";
	o.endpoint = httpfix_url(fix);
	o.chain = c;
	a = sb_awscall_new(&o, &err);
	if (!a)
		fail_msg("%s", err.msg);
	return a;
}

static int
post(struct sb_awscall *a, const char *target, struct sb_rest_answer *out, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;

	q.method = "POST";
	q.target = target;
	q.body = "Action=X";
	q.body_len = 8;
	q.type = "application/x-www-form-urlencoded; charset=utf-8";
	return sb_awscall_do(a, &q, NULL, NULL, out, err);
}

static void
calls_are_signed_and_made_again_where_that_helps(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	sb_auto(sb_awscall) struct sb_awscall *a = caller(c);
	sb_auto(sb_rest_answer) struct sb_rest_answer ans = { 0 };
	static const char *const targets[] = { "/plain", "/expired", "/slow", "/skew" };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
		assert_ok(post(a, targets[i], &ans, &err), &err);
		assert_int_equal(ans.status, 200);
		assert_int_equal(httpfix_count(fix, targets[i]), i ? 2 : 1);
		assert_non_null(strstr(toy.auth, "Credential=AKIDX/"));
		assert_non_null(strstr(toy.auth,
			"/r-1/ec2/aws4_request, SignedHeaders=content-type;host;x-amz-date, "));
	}
	/* Signed with the server's clock from there on. */
	assert_non_null(strstr(toy.date, "2037"));
}

static void
failures_have_the_services_words(void **state)
{
	sb_auto(sb_awschain) struct sb_awschain *c = chain(NULL);
	sb_auto(sb_awscall) struct sb_awscall *a = caller(c);
	sb_auto(sb_rest_answer) struct sb_rest_answer ans = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(post(a, "/no", &ans, &err), &err);
	assert_fails(sb_awscall_check(&ans, "describe i-1", &err), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg,
		"describe i-1: HTTP 400 InvalidID.NotFound: a <b>, request r-1");
}

static int
begin(void **state)
{
	(void)state;
	tmpdir_make(&dir);
	fix = httpfix_start(NULL, serve, NULL);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	httpfix_stop(fix);
	tmpdir_remove(&dir);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_environment_comes_before_the_files, clean),
		cmocka_unit_test_setup(profiles_are_found_in_both_files, clean),
		cmocka_unit_test_setup(what_is_not_built_is_refused_by_name, clean),
		cmocka_unit_test_setup(nothing_anywhere_says_where_it_looked, clean),
		cmocka_unit_test_setup(a_container_has_an_endpoint, clean),
		cmocka_unit_test_setup(an_instance_has_a_role, clean),
		cmocka_unit_test_setup(answers_of_the_services_are_checked, clean),
		cmocka_unit_test_setup(calls_are_signed_and_made_again_where_that_helps, clean),
		cmocka_unit_test_setup(failures_have_the_services_words, clean),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
