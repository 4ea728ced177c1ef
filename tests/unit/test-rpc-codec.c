/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the RPC protocol: status codes, errors, envelopes, gzip, base64 and the fields of
 * messages.
 */
#include "config.h"

#include <string.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <base/strmap.h>
#include <base/base64.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/field.h>
#include <rpc/protocol/gzip.h>
#include <tests/lib/unit.h>

static void
codes_have_the_statuses_of_the_protocol(void **state)
{
	static const struct {
		const char *name;
		int http;
	} want[] = {
		{ "canceled", 499 },
		{ "unknown", 500 },
		{ "invalid_argument", 400 },
		{ "deadline_exceeded", 504 },
		{ "not_found", 404 },
		{ "already_exists", 409 },
		{ "permission_denied", 403 },
		{ "resource_exhausted", 429 },
		{ "failed_precondition", 400 },
		{ "aborted", 409 },
		{ "out_of_range", 400 },
		{ "unimplemented", 501 },
		{ "internal", 500 },
		{ "unavailable", 503 },
		{ "data_loss", 500 },
		{ "unauthenticated", 401 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		assert_string_equal(sb_rpc_code_name((enum sb_rpc_code)(i + 1)), want[i].name);
		assert_int_equal(sb_rpc_code_parse(want[i].name), i + 1);
		assert_int_equal(sb_rpc_code_http((enum sb_rpc_code)(i + 1)), want[i].http);
	}
	assert_int_equal(sb_rpc_code_parse("nonsense"), SB_RPC_UNKNOWN);
	assert_string_equal(sb_rpc_code_name((enum sb_rpc_code)99), "unknown");
}

static void
causes_map_to_the_corrected_codes(void **state)
{
	static const struct {
		int sb;
		enum sb_rpc_code rpc;
	} want[] = {
		{ SB_E_INVAL, SB_RPC_INVALID_ARGUMENT },
		{ SB_E_MAX_SESSIONS, SB_RPC_RESOURCE_EXHAUSTED },
		{ SB_E_POOL_FULL, SB_RPC_RESOURCE_EXHAUSTED },
		{ SB_E_NO_SNAPSHOTS, SB_RPC_FAILED_PRECONDITION },
		{ SB_E_SESSION_NOT_FOUND, SB_RPC_NOT_FOUND },
		{ SB_E_SESSION_EXISTS, SB_RPC_ALREADY_EXISTS },
		{ SB_E_SESSION_PAUSED, SB_RPC_FAILED_PRECONDITION },
		{ SB_E_TOOLS_IN_FLIGHT, SB_RPC_FAILED_PRECONDITION },
		{ SB_E_CANCELED, SB_RPC_CANCELED },
		{ SB_E_TIMEOUT, SB_RPC_DEADLINE_EXCEEDED },
		{ SB_E_SHUTTING_DOWN, SB_RPC_UNAVAILABLE },
		{ SB_E_STORAGE, SB_RPC_INTERNAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
		assert_int_equal(sb_rpc_code_from_sb(want[i].sb), want[i].rpc);
	assert_int_equal(sb_rpc_code_from_sb(0), SB_RPC_OK);
}

static void
every_error_survives_the_wire(void **state)
{
	static const int all[] = {
#define ROW(num, name, text) num,
		SB_CODE_MAP(ROW)
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct sb_error in = { 0 }, out = { 0 };
		struct sb_rpc_failure f;
		json_t *obj;

		(void)sb_fail(&in, all[i], "why %s", sb_code_name(all[i]));
		sb_rpc_failure_from_error(&f, &in);
		obj = sb_rpc_failure_json(&f);
		assert_non_null(obj);
		assert_int_equal(sb_rpc_failure_parse(obj, sb_rpc_code_http(f.code), &out), all[i]);
		assert_string_equal(out.msg, in.msg);
		json_decref(obj);
	}
}

static void
error_details_are_a_protobuf_message(void **state)
{
	struct sb_rpc_failure f = { .code = SB_RPC_INVALID_ARGUMENT,
		.reason = "INVAL",
		.field = "Quota",
		.msg = "Quota: bad" };
	json_t *obj = sb_rpc_failure_json(&f);
	const json_t *d = json_array_get(json_object_get(obj, "details"), 0);
	const char *value = json_string_value(json_object_get(d, "value"));
	sb_auto(sb_buf) struct sb_buf raw;

	(void)state;
	sb_buf_init(&raw, 100);
	assert_string_equal(json_string_value(json_object_get(d, "type")), "rpc.v1.ErrorInfo");
	assert_true(sb_base64_decode(value, strlen(value), &raw));
	assert_int_equal(raw.len, 14);
	assert_memory_equal(raw.data, "\x0a\x05INVAL\x12\x05Quota", 14);
	json_decref(obj);
}

static void
a_foreign_error_is_read_too(void **state)
{
	struct sb_error err = { 0 };
	json_t *obj = json_pack("{s:s}", "code", "unavailable");

	(void)state;
	assert_int_equal(sb_rpc_failure_parse(obj, 503, &err), SB_E_UNAVAILABLE);
	assert_string_equal(err.msg, "unavailable");
	assert_int_equal(sb_rpc_failure_parse(NULL, 502, &err), SB_E_UNAVAILABLE);
	assert_string_equal(err.msg, "HTTP status 502");
	/* A reason that does not fit the code is not believed. */
	json_object_set_new(obj, "details",
		json_pack("[{s:{s:s}}]", "debug", "Reason", "SESSION_PAUSED"));
	assert_int_equal(sb_rpc_failure_parse(obj, 503, &err), SB_E_UNAVAILABLE);
	json_decref(obj);
}

static void
text_that_is_not_utf8_becomes_json(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		const char *want;
	} rows[] = {
		{ "plain \xc3\xa4", 8, "plain \xc3\xa4" },
		{ "a\xff"
		  "b",
			3,
			"a\xef\xbf\xbd"
			"b" },
		{ "\xc3", 1, "\xef\xbf\xbd" },
		{ "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" },
		{ "\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *v = sb_rpc_json_text(rows[i].in, rows[i].len);

		assert_non_null(v);
		assert_string_equal(json_string_value(v), rows[i].want);
		json_decref(v);
	}
}

static void
base64_goes_both_ways(void **state)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg" }, { "fo", "Zm8" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg" }, { "\xfb\xff", "+/8" } };
	char text[16];

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		sb_auto(sb_buf) struct sb_buf b;

		sb_buf_init(&b, 16);
		assert_true(sb_base64_encode(pairs[i][0], strlen(pairs[i][0]), text, sizeof text));
		assert_string_equal(text, pairs[i][1]);
		assert_true(sb_base64_decode(text, strlen(text), &b));
		assert_int_equal(b.len, strlen(pairs[i][0]));
		assert_memory_equal(b.data, pairs[i][0], b.len);
	}
	assert_true(sb_base64_encode_padded("f", 1, text, 5));
	assert_string_equal(text, "Zg==");
	assert_true(sb_base64_encode_padded("fo", 2, text, 5));
	assert_string_equal(text, "Zm8=");
	assert_true(sb_base64_encode_padded("foo", 3, text, 5));
	assert_string_equal(text, "Zm9v");
	assert_true(sb_base64_encode_padded("", 0, text, 1));
	assert_string_equal(text, "");
	assert_false(sb_base64_encode_padded("f", 1, text, 4));
	assert_false(sb_base64_encode("foobar", 6, text, 8));
	for (int i = 0; i < 4; i++) {
		static const char *const bad[] = { "Z", "Zg=a", "Z g", "Zm9v=b" };
		sb_auto(sb_buf) struct sb_buf b;

		sb_buf_init(&b, 16);
		assert_false(sb_base64_decode(bad[i], strlen(bad[i]), &b));
	}
}

static void
envelopes_are_found_at_every_cut(void **state)
{
	uint8_t wire[32] = { 0 };
	const uint8_t *msg;
	struct sb_error err = { 0 };
	uint8_t flags;
	size_t len;

	(void)state;
	sb_rpc_envelope_head(wire, SB_RPC_FLAG_END, 7);
	memcpy(wire + 5, "seven b", 7);
	for (size_t n = 0; n < 12; n++)
		assert_int_equal(sb_rpc_envelope_next(wire, n, 100, &flags, &msg, &len, &err), 0);
	for (size_t n = 12; n < 20; n++) {
		assert_int_equal(sb_rpc_envelope_next(wire, n, 100, &flags, &msg, &len, &err), 1);
		assert_int_equal(flags, SB_RPC_FLAG_END);
		assert_int_equal(len, 7);
		assert_memory_equal(msg, "seven b", 7);
	}
	assert_fails(sb_rpc_envelope_next(wire, 5, 6, &flags, &msg, &len, &err), SB_E_LIMIT, &err);
	wire[0] = 0x80;
	assert_fails(sb_rpc_envelope_next(wire, 1, 100, &flags, &msg, &len, &err), SB_E_INVAL,
		&err);
	memset(wire, 0xff, 5);
	wire[0] = 0;
	assert_fails(sb_rpc_envelope_next(wire, 5, SIZE_MAX >> 40, &flags, &msg, &len, &err),
		SB_E_LIMIT, &err);
}

static void
gzip_is_bounded_and_checked(void **state)
{
	sb_auto(sb_buf) struct sb_buf packed, plain;
	static uint8_t zeros[1 << 20];
	struct sb_error err = { 0 };

	(void)state;
	sb_buf_init(&packed, 1 << 16);
	sb_buf_init(&plain, sizeof zeros);
	packed.max = 2 << 20;
	assert_ok(sb_rpc_gzip_deflate(zeros, sizeof zeros, &packed, &err), &err);
	assert_true(packed.len < 8192);
	assert_ok(sb_rpc_gzip_inflate(packed.data, packed.len, &plain, &err), &err);
	assert_int_equal(plain.len, sizeof zeros);
	assert_memory_equal(plain.data, zeros, sizeof zeros);

	/* One byte less than it holds. */
	sb_buf_reset(&plain);
	plain.max = sizeof zeros - 1;
	assert_fails(sb_rpc_gzip_inflate(packed.data, packed.len, &plain, &err), SB_E_LIMIT, &err);
	plain.max = sizeof zeros;
	for (size_t cut = 0; cut < packed.len; cut += 97) {
		sb_buf_reset(&plain);
		assert_fails(sb_rpc_gzip_inflate(packed.data, cut, &plain, &err), SB_E_INVAL, &err);
	}
	sb_buf_reset(&plain);
	sb_buf_add_str(&packed, "tail");
	assert_fails(sb_rpc_gzip_inflate(packed.data, packed.len, &plain, &err), SB_E_INVAL, &err);
	sb_buf_reset(&plain);
	assert_fails(sb_rpc_gzip_inflate("not gzip at all", 15, &plain, &err), SB_E_INVAL, &err);
}

static json_t *
parse(const char *text, struct sb_error *err)
{
	return sb_rpc_json_parse(text, strlen(text), err);
}

static void
messages_must_be_small_flat_objects(void **state)
{
	static const char *const bad[] = { "[]", "1", "\"x\"", "{", "{\"a\":}",
		"{\"a\":\"\\u0000\"}", "nul", "{} {}", "{\"a\":\"\xff\"}" };
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf deep;
	json_t *v;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_null(parse(bad[i], &err));
		assert_int_equal(err.code, SB_E_INVAL);
	}
	v = sb_rpc_json_parse("", 0, &err);
	assert_int_equal(json_object_size(v), 0);
	json_decref(v);
	sb_buf_init(&deep, 1 << 20);
	sb_buf_add_str(&deep, "{\"a\":");
	for (int i = 0; i < 100000; i++)
		sb_buf_add_char(&deep, '[');
	assert_null(sb_rpc_json_parse(deep.data, deep.len, &err));
	assert_non_null(strstr(err.msg, "nested deeper"));
	sb_buf_reset(&deep);
	sb_buf_add_str(&deep, "{\"a\":[0");
	for (int i = 0; i < SB_RPC_JSON_VALUES; i++)
		sb_buf_add_str(&deep, ",0");
	sb_buf_add_str(&deep, "]}");
	assert_null(sb_rpc_json_parse(deep.data, deep.len, &err));
	assert_int_equal(err.code, SB_E_LIMIT);
	/* Brackets in strings are text. */
	v = parse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		  "\\\"[[\"}",
		&err);
	assert_non_null(v);
	json_decref(v);
}

static void
fields_are_found_under_every_spelling(void **state)
{
	static const char *const names[] = { "SessionID", "sessionId", "session_id", "SESSIONID",
		"sessionid" };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		json_t *v = json_pack("{s:s, s:s}", "Session", "no", names[i], "x");
		struct sb_rpc_fields f;

		sb_rpc_fields_init(&f, v);
		assert_string_equal(sb_rpc_field_str(&f, "SessionID", 10, SB_RPC_REQUIRED), "x");
		assert_ok(sb_rpc_fields_check(&f, &err), &err);
		json_decref(v);
	}
}

static void
check_bad(const char *text, const char *want)
{
	struct sb_error err = { 0 };
	json_t *v = parse(text, &err);
	struct sb_rpc_fields f;
	sb_auto(sb_strlist) struct sb_strlist list = { 0 };
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };

	assert_non_null(v);
	sb_rpc_fields_init(&f, v);
	(void)sb_rpc_field_str(&f, "S", 4, SB_RPC_REQUIRED);
	(void)sb_rpc_field_int(&f, "I", -5, 5);
	(void)sb_rpc_field_double(&f, "D", 0, 1);
	(void)sb_rpc_field_bool(&f, "B");
	(void)sb_rpc_field_object(&f, "O");
	sb_rpc_field_list(&f, "L", 2, 3, &list);
	sb_rpc_field_map(&f, "M", 2, 3, 3, &map);
	sb_rpc_field_env(&f, "E", 2, 3, &list);
	if (!want[0]) {
		assert_ok(sb_rpc_fields_check(&f, &err), &err);
	} else {
		assert_fails(sb_rpc_fields_check(&f, &err), SB_E_INVAL, &err);
		assert_string_equal(err.msg, want);
	}
	json_decref(v);
}

static void
mistakes_name_field_and_expectation(void **state)
{
	(void)state;
	check_bad("{\"S\":\"x\"}", "");
	check_bad("{\"S\":\"x\",\"I\":\"-5\",\"D\":1,\"B\":false,\"O\":{},\"L\":[\"a\"],\"M\":{"
		  "\"k\":\"v\"},\"E\":null}",
		"");
	check_bad("{\"S\":\"x\",\"I\":5.0}", "");
	check_bad("{}", "S: is required");
	check_bad("{\"S\":null}", "S: is required");
	check_bad("{\"S\":\"\"}", "S: is required");
	check_bad("{\"S\":7}", "S: must be a string, not 7");
	check_bad("{\"S\":[]}", "S: must be a string, not an array");
	check_bad("{\"S\":\"12345\"}", "S: must be at most 4 bytes, not 5");
	check_bad("{\"S\":\"x\",\"I\":6}", "I: must be in [-5, 5], not 6");
	check_bad("{\"S\":\"x\",\"I\":1.5}", "I: must be a whole number, not 1.5");
	check_bad("{\"S\":\"x\",\"I\":1e30}", "I: must be a whole number, not 1e+30");
	check_bad("{\"S\":\"x\",\"I\":\"1x\"}", "I: must be a whole number, not \"1x\"");
	check_bad("{\"S\":\"x\",\"D\":2}", "D: must be in [0, 1], not 2");
	check_bad("{\"S\":\"x\",\"D\":\"1\"}", "D: must be a number, not \"1\"");
	check_bad("{\"S\":\"x\",\"B\":1}", "B: must be true or false, not 1");
	check_bad("{\"S\":\"x\",\"O\":[]}", "O: must be an object, not an array");
	check_bad("{\"S\":\"x\",\"L\":{}}", "L: must be an array of strings, not an object");
	check_bad("{\"S\":\"x\",\"L\":[\"a\",\"b\",\"c\"]}", "L: must have at most 2 items, not 3");
	check_bad("{\"S\":\"x\",\"L\":[\"a\",2]}", "L[1]: must be a string, not 2");
	check_bad("{\"S\":\"x\",\"L\":[\"abcd\"]}", "L[0]: must be at most 3 bytes, not 4");
	check_bad("{\"S\":\"x\",\"M\":{\"k\":1}}", "M[k]: must be a string, not 1");
	check_bad("{\"S\":\"x\",\"M\":{\"\":\"\"}}", "M[]: key must have 1 to 3 bytes");
	check_bad("{\"S\":\"x\",\"E\":{\"a=\":\"\"}}", "E: a name may not contain '='");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_have_the_statuses_of_the_protocol),
		cmocka_unit_test(causes_map_to_the_corrected_codes),
		cmocka_unit_test(every_error_survives_the_wire),
		cmocka_unit_test(error_details_are_a_protobuf_message),
		cmocka_unit_test(a_foreign_error_is_read_too),
		cmocka_unit_test(text_that_is_not_utf8_becomes_json),
		cmocka_unit_test(base64_goes_both_ways),
		cmocka_unit_test(envelopes_are_found_at_every_cut),
		cmocka_unit_test(gzip_is_bounded_and_checked),
		cmocka_unit_test(messages_must_be_small_flat_objects),
		cmocka_unit_test(fields_are_found_under_every_spelling),
		cmocka_unit_test(mistakes_name_field_and_expectation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
