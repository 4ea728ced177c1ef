/* SPDX-License-Identifier: MIT */
/*
 * What a client may send: the first byte says how the rest is wrapped (an envelope, gzip, base64,
 * or plain), then it is a message whose fields are read as every type, and an error answer as a
 * client would take it. Sizes stay within their bounds, mistakes are SB_E_INVAL or SB_E_LIMIT and
 * name themselves, and a token never passes.
 */
#include <string.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <base/strmap.h>
#include <rpc/server/auth.h>
#include <base/base64.h>
#include <rpc/protocol/failure.h>
#include <rpc/protocol/envelope.h>
#include <rpc/protocol/field.h>
#include <rpc/protocol/gzip.h>

#include "fuzz.h"

#define MESSAGE_MAX 65536

static void
check_error(const struct sb_error *err)
{
	FUZZ_CHECK(err->code == SB_E_INVAL || err->code == SB_E_LIMIT || err->code == SB_E_NOMEM);
	FUZZ_CHECK(err->msg[0] != '\0');
}

static void
read_fields(const json_t *msg)
{
	static const char *const names[] = { "SessionID", "Quota", "Labels", "Args", "Params",
		"a" };
	struct sb_error err = { 0 };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		sb_auto(sb_strlist) struct sb_strlist list = { 0 };
		sb_auto(sb_strmap) struct sb_strmap map = { 0 };
		struct sb_rpc_fields f[8];
		int64_t n;

		for (size_t k = 0; k < 8; k++)
			sb_rpc_fields_init(&f[k], msg);
		FUZZ_CHECK(strlen(sb_rpc_field_str(&f[0], names[i], 128, SB_RPC_REQUIRED)) <= 128);
		n = sb_rpc_field_int(&f[1], names[i], -5, 1000);
		FUZZ_CHECK(n >= -5 && n <= 1000);
		(void)sb_rpc_field_double(&f[2], names[i], 0, 1);
		(void)sb_rpc_field_bool(&f[3], names[i]);
		(void)sb_rpc_field_object(&f[4], names[i]);
		sb_rpc_field_list(&f[5], names[i], 16, 64, &list);
		sb_rpc_field_map(&f[6], names[i], 16, 32, 64, &map);
		sb_rpc_field_env(&f[7], names[i], 16, 64, &list);
		FUZZ_CHECK(list.n <= 32 && map.n <= 16);
		for (size_t k = 0; k < 8; k++)
			if (sb_rpc_fields_check(&f[k], &err) < 0)
				check_error(&err);
	}
}

static void
take_message(const uint8_t *data, size_t len)
{
	struct sb_error err = { 0 };
	json_t *msg = sb_rpc_json_parse(data, len, &err);
	json_t *text = sb_rpc_json_text((const char *)data, len);

	FUZZ_CHECK(json_is_string(text) && json_string_length(text) <= 3 * len);
	json_decref(text);
	if (!msg) {
		check_error(&err);
		return;
	}
	FUZZ_CHECK(json_is_object(msg));
	read_fields(msg);
	FUZZ_CHECK(sb_rpc_failure_parse(msg, 500, &err) < 0);
	json_decref(msg);
}

static void
take_token(const uint8_t *data, size_t len)
{
	static struct sb_rpc_auth *auth;
	sb_auto(sb_buf) struct sb_buf header;
	struct sb_rpc_who who;

	if (!auth) {
		auth = sb_rpc_auth_new(NULL);
		FUZZ_CHECK(auth &&
			sb_rpc_auth_set_key(auth, "0123456789abcdef0123456789abcdef", 32, NULL) ==
				0);
		FUZZ_CHECK(sb_rpc_auth_add(auth, "a", SB_RPC_ROLE_ADMIN, NULL, "sbs2.no.such.token",
				   NULL) == 0);
	}
	sb_buf_init(&header, MESSAGE_MAX);
	sb_buf_add_str(&header, "Bearer sbs2.");
	sb_buf_add(&header, data, len);
	FUZZ_CHECK(
		sb_rpc_auth_check(auth, (const char *)header.data, 1000, &who, NULL) == SB_E_AUTH);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf plain;
	const uint8_t *msg = NULL;
	struct sb_error err = { 0 };
	uint8_t flags = 0;
	size_t n = 0;

	sb_buf_init(&plain, MESSAGE_MAX);
	if (len == 0)
		return 0;
	switch (data[0] & 3) {
	case 0: take_message(data + 1, len - 1); break;
	case 1:
		if (sb_rpc_envelope_next(data + 1, len - 1, MESSAGE_MAX, &flags, &msg, &n, &err) >
			0) {
			FUZZ_CHECK(msg + n <= data + len);
			take_message(msg, n);
		}
		break;
	case 2:
		if (sb_rpc_gzip_inflate(data + 1, len - 1, &plain, &err) == 0)
			take_message(plain.data, plain.len);
		else
			check_error(&err);
		FUZZ_CHECK(plain.len <= MESSAGE_MAX);
		break;
	default:
		if (sb_base64_decode((const char *)data + 1, len - 1, &plain))
			take_message(plain.data, plain.len);
		take_token(data + 1, len - 1 < 1000 ? len - 1 : 1000);
	}
	return 0;
}
