/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/failure.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/base64.h>
#include <base/buf.h>
#include <rpc/protocol/json.h>

void
sb_rpc_failure_set(struct sb_rpc_failure *f, enum sb_rpc_code code, const char *fmt, ...)
{
	va_list ap;

	*f = (struct sb_rpc_failure){ .code = code };
	va_start(ap, fmt);
	(void)vsnprintf(f->msg, sizeof f->msg, fmt, ap);
	va_end(ap);
}

void
sb_rpc_failure_from_error(struct sb_rpc_failure *f, const struct sb_error *err)
{
	int code = err->code < 0 ? err->code : SB_E_SYS;

	*f = (struct sb_rpc_failure){ .code = sb_rpc_code_from_sb(code),
		.reason = sb_code_name(code) };
	(void)snprintf(f->msg, sizeof f->msg, "%s", err->msg[0] ? err->msg : sb_code_text(code));
}

/* One string field of a protobuf message; numbers below 16 and lengths below 128 * 128 only. */
static void
add_proto_string(struct sb_buf *b, unsigned number, const char *s)
{
	if (!s || !s[0])
		return;
	sb_buf_add_u8(b, (uint8_t)(number << 3 | 2));
	sb_buf_add_bytes(b, s, strlen(s));
}

/* rpc.v1.ErrorInfo { string reason = 1; string field = 2; } */
static json_t *
error_info(const struct sb_rpc_failure *f)
{
	sb_auto(sb_buf) struct sb_buf raw;
	char text[512];
	json_t *debug;

	sb_buf_init(&raw, 256);
	add_proto_string(&raw, 1, f->reason);
	add_proto_string(&raw, 2, f->field);
	if (raw.failed || !sb_base64_encode(raw.data, raw.len, text, sizeof text))
		return NULL;
	debug = json_object();
	if (f->reason)
		json_object_set_new(debug, "Reason", json_string(f->reason));
	if (f->field[0])
		json_object_set_new(debug, "Field", sb_rpc_json_text(f->field, strlen(f->field)));
	return json_pack("{s:s, s:s, s:o}", "type", "rpc.v1.ErrorInfo", "value", text, "debug",
		debug);
}

json_t *
sb_rpc_failure_json(const struct sb_rpc_failure *f)
{
	json_t *obj = json_pack("{s:s, s:o}", "code", sb_rpc_code_name(f->code), "message",
		sb_rpc_json_text(f->msg, strlen(f->msg)));

	if (obj && (f->reason || f->field[0]))
		json_object_set_new(obj, "details", json_pack("[o]", error_info(f)));
	return obj;
}

/* The code of ours whose name is in the details' debug object, or 0. */
static int
reason_code(const json_t *obj)
{
	static const struct {
		const char *name;
		int code;
	} names[] = {
#define SB_CODE_ROW(num, name, text) { #name, num },
		SB_CODE_MAP(SB_CODE_ROW)
#undef SB_CODE_ROW
	};
	const json_t *detail;
	size_t k;

	json_array_foreach(json_object_get(obj, "details"), k, detail)
	{
		const char *reason = json_string_value(
			json_object_get(json_object_get(detail, "debug"), "Reason"));

		for (size_t i = 0; reason && i < sizeof names / sizeof names[0]; i++)
			if (strcmp(names[i].name, reason) == 0)
				return names[i].code;
	}
	return 0;
}

int
sb_rpc_failure_parse(const json_t *obj, int http, struct sb_error *err)
{
	const char *name = json_string_value(json_object_get(obj, "code"));
	const char *msg = json_string_value(json_object_get(obj, "message"));
	enum sb_rpc_code c = name ? sb_rpc_code_parse(name) : sb_rpc_code_from_http(http);
	int code = reason_code(obj);

	if (code == 0 || sb_rpc_code_from_sb(code) != c)
		code = sb_rpc_code_to_sb(c);
	if (code == 0)
		code = SB_E_PROTO;
	if (msg && msg[0])
		return sb_fail(err, code, "%s", msg);
	if (name)
		return sb_fail(err, code, "%s", sb_rpc_code_name(c));
	return sb_fail(err, code, "HTTP status %d", http);
}
