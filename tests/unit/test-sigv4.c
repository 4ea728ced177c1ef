/* SPDX-License-Identifier: MIT */
/* Signatures of AWS: the vendor's published vectors, and what a signer easily gets wrong. */
#include "config.h"

#include <cloud/aws/sigv4.h>

#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* 2015-08-30T12:36:00Z */
#define THEN INT64_C(1440938160)

static const struct sb_sigv4_key example = { "AKIDEXAMPLE",
	"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", NULL };

static struct sb_sigv4_request
request(const char *method, const char *target)
{
	return (struct sb_sigv4_request){ .service = "service",
		.region = "us-east-1",
		.method = method,
		.host = "example.amazonaws.com",
		.target = target,
		.payload = NOTHING,
		.time_s = THEN };
}

static void
assert_signature(const struct sb_sigv4_request *q, const char *want)
{
	struct sb_strlist out = { 0 };
	struct sb_error err = { 0 };
	const char *got;

	assert_ok(sb_sigv4_sign(&example, q, &out, &err), &err);
	got = strstr(out.v[out.n - 1], "Signature=");
	assert_non_null(got);
	assert_string_equal(got + strlen("Signature="), want);
	sb_strlist_free(&out);
}

static void
published_vectors(void **state)
{
	struct sb_sigv4_request q = request("GET", "/");
	const struct sb_sigv4_header form = { "Content-Type", "application/x-www-form-urlencoded" };
	char hash[SB_SIGV4_HASH_MAX];

	(void)state;
	/* get-vanilla, post-vanilla, get-vanilla-query-order-key-case, post-x-www-form-urlencoded
	 */
	assert_signature(&q, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
	q = request("POST", "/");
	assert_signature(&q, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
	q = request("GET", "/?Param2=value2&Param1=value1");
	assert_signature(&q, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
	q = request("POST", "/");
	assert_ok(sb_sigv4_hash("Param1=value1", 13, hash, NULL), &(struct sb_error){ 0 });
	q.payload = hash;
	q.headers = &form;
	q.n_headers = 1;
	assert_signature(&q, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

static void
assert_canonical(const struct sb_sigv4_request *q, const char *part)
{
	struct sb_error err = { 0 };
	char *text = sb_sigv4_canonical(&example, q, &err);

	if (!text)
		fail_msg("%s", err.msg);
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
	free(text);
}

static void
queries_are_sorted_and_spelt_one_way(void **state)
{
	struct sb_sigv4_request q = request("GET", "/b/k?uploads");

	(void)state;
	assert_canonical(&q, "\nuploads=\n");
	/* Pairs are sorted, not texts: "q" comes before "q.x" though '=' is behind '.'. */
	q.target = "/?q.x=1&q=2&a=%2a&a=%2A0&b";
	assert_canonical(&q, "\na=%2A&a=%2A0&b=&q=2&q.x=1\n");
	q.target = "/?x=*'()!";
	assert_canonical(&q, "\nx=%2A%27%28%29%21\n");
}

static void
paths_are_encoded_once_for_s3_and_twice_for_others(void **state)
{
	struct sb_sigv4_request q = request("GET", "/b/a%20b//c/../%e2%82%ac");

	(void)state;
	assert_canonical(&q, "GET\n/b/a%2520b//c/../%25E2%2582%25AC\n");
	q.service = "s3";
	assert_canonical(&q, "GET\n/b/a%20b//c/../%E2%82%AC\n");
	assert_canonical(&q, "x-amz-content-sha256:" NOTHING "\n");
	q.target = "/trail/";
	assert_canonical(&q, "GET\n/trail/\n");
}

static void
headers_are_folded_and_sorted(void **state)
{
	struct sb_sigv4_request q = request("GET", "/");
	const struct sb_sigv4_header h[] = { { "X-Amz-Target", "  a   b\t c " },
		{ "Content-Type", "x" } };
	const struct sb_sigv4_header twice[] = { { "a", "1" }, { "A", "2" } };
	const struct sb_sigv4_header lines = { "a", "1\r\nb: 2" };
	struct sb_strlist out = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	q.headers = h;
	q.n_headers = 2;
	assert_canonical(&q,
		"\ncontent-type:x\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n"
		"x-amz-target:a b c\n\ncontent-type;host;x-amz-date;x-amz-target\n");
	q.headers = twice;
	assert_fails(sb_sigv4_sign(&example, &q, &out, &err), SB_E_INVAL, &err);
	q.headers = &lines;
	q.n_headers = 1;
	assert_fails(sb_sigv4_sign(&example, &q, &out, &err), SB_E_INVAL, &err);
	assert_int_equal(out.n, 0);
}

static void
tokens_are_sent_and_signed(void **state)
{
	struct sb_sigv4_key key = example;
	struct sb_sigv4_request q = request("GET", "/");
	struct sb_strlist out = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	key.token = "tok";
	assert_ok(sb_sigv4_sign(&key, &q, &out, &err), &err);
	assert_string_equal(out.v[0], "X-Amz-Date: 20150830T123600Z");
	assert_string_equal(out.v[1], "X-Amz-Security-Token: tok");
	assert_non_null(strstr(out.v[2], "SignedHeaders=host;x-amz-date;x-amz-security-token,"));
	sb_strlist_free(&out);
}

static void
what_is_not_encoded_is_refused(void **state)
{
	static const char *const bad[] = { "/a b", "/%", "/%4", "/%zz", "/?a=b+c", "x",
		"/\xc3\xa4" };
	struct sb_strlist out = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct sb_sigv4_request q = request("GET", bad[i]);

		assert_fails(sb_sigv4_sign(&example, &q, &out, &err), SB_E_INVAL, &err);
	}
	assert_int_equal(out.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(queries_are_sorted_and_spelt_one_way),
		cmocka_unit_test(paths_are_encoded_once_for_s3_and_twice_for_others),
		cmocka_unit_test(headers_are_folded_and_sorted),
		cmocka_unit_test(tokens_are_sent_and_signed),
		cmocka_unit_test(what_is_not_encoded_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
