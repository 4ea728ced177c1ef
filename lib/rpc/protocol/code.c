/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/code.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/buf.h>
#include <rpc/protocol/base64.h>

static const struct {
	const char *name;
	int http;
} codes[SB_RPC_CODES] = { [SB_RPC_OK] = { "ok", 200 },
#define SB_RPC_CODE_ROW(num, name, wire, http) [num] = { wire, http },
	SB_RPC_CODE_MAP(SB_RPC_CODE_ROW)
#undef SB_RPC_CODE_ROW
};

/* Every code of ours; what is missing here is "internal". */
static const struct {
	int sb;
	enum sb_rpc_code rpc;
} from_sb[] = {
	{ SB_E_NOMEM, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_INVAL, SB_RPC_INVALID_ARGUMENT },
	{ SB_E_USAGE, SB_RPC_INVALID_ARGUMENT },
	{ SB_E_ESCAPE, SB_RPC_INVALID_ARGUMENT },
	{ SB_E_STATE, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_VERSION, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_BRAKE, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_IDENTITY, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_UNSUPPORTED, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_TIMEOUT, SB_RPC_DEADLINE_EXCEEDED },
	{ SB_E_CANCELED, SB_RPC_CANCELED },
	{ SB_E_LIMIT, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_NOSPACE, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_FULL, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_CORRUPT, SB_RPC_DATA_LOSS },
	{ SB_E_LOCKED, SB_RPC_ABORTED },
	{ SB_E_CHANGED, SB_RPC_ABORTED },
	{ SB_E_CONFLICT, SB_RPC_ABORTED },
	{ SB_E_UNSTABLE, SB_RPC_ABORTED },
	{ SB_E_NOTFOUND, SB_RPC_NOT_FOUND },
	{ SB_E_EXISTS, SB_RPC_ALREADY_EXISTS },
	{ SB_E_DENIED, SB_RPC_PERMISSION_DENIED },
	{ SB_E_CONNECT, SB_RPC_UNAVAILABLE },
	{ SB_E_CLOSED, SB_RPC_UNAVAILABLE },
	{ SB_E_UNAVAILABLE, SB_RPC_UNAVAILABLE },
	{ SB_E_AUTH, SB_RPC_UNAUTHENTICATED },
	{ SB_E_HOSTKEY, SB_RPC_UNAUTHENTICATED },
	{ SB_E_SESSION_NOT_FOUND, SB_RPC_NOT_FOUND },
	{ SB_E_SESSION_EXISTS, SB_RPC_ALREADY_EXISTS },
	{ SB_E_SESSION_PAUSED, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_SESSION_DESTROYING, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_PROCESS_NOT_FOUND, SB_RPC_NOT_FOUND },
	{ SB_E_ROLLBACK_IN_PROGRESS, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_INVALID_STATE, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_MAX_SESSIONS, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_TOOLS_IN_FLIGHT, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_NO_SNAPSHOTS, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_SHUTTING_DOWN, SB_RPC_UNAVAILABLE },
	{ SB_E_SNAPSHOT_NOT_FOUND, SB_RPC_NOT_FOUND },
	{ SB_E_SNAPSHOT_EXISTS, SB_RPC_ALREADY_EXISTS },
	{ SB_E_SNAPSHOT_HELD, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_SNAPSHOT_IN_USE, SB_RPC_FAILED_PRECONDITION },
	{ SB_E_BASE_NOT_FOUND, SB_RPC_NOT_FOUND },
	{ SB_E_POOL_FULL, SB_RPC_RESOURCE_EXHAUSTED },
	{ SB_E_STORAGE_BUSY, SB_RPC_UNAVAILABLE },
	{ SB_E_HOLD_NOT_FOUND, SB_RPC_NOT_FOUND },
	{ SB_E_TOOL_UNKNOWN, SB_RPC_INVALID_ARGUMENT },
};

static const struct {
	enum sb_rpc_code rpc;
	int sb;
} to_sb[] = {
	{ SB_RPC_CANCELED, SB_E_CANCELED },
	{ SB_RPC_INVALID_ARGUMENT, SB_E_INVAL },
	{ SB_RPC_OUT_OF_RANGE, SB_E_INVAL },
	{ SB_RPC_DEADLINE_EXCEEDED, SB_E_TIMEOUT },
	{ SB_RPC_NOT_FOUND, SB_E_NOTFOUND },
	{ SB_RPC_ALREADY_EXISTS, SB_E_EXISTS },
	{ SB_RPC_PERMISSION_DENIED, SB_E_DENIED },
	{ SB_RPC_RESOURCE_EXHAUSTED, SB_E_LIMIT },
	{ SB_RPC_FAILED_PRECONDITION, SB_E_STATE },
	{ SB_RPC_ABORTED, SB_E_CHANGED },
	{ SB_RPC_UNIMPLEMENTED, SB_E_UNSUPPORTED },
	{ SB_RPC_UNAVAILABLE, SB_E_UNAVAILABLE },
	{ SB_RPC_DATA_LOSS, SB_E_CORRUPT },
	{ SB_RPC_UNAUTHENTICATED, SB_E_AUTH },
};

const char *
sb_rpc_code_name(enum sb_rpc_code c)
{
	if ((unsigned)c >= SB_RPC_CODES)
		c = SB_RPC_UNKNOWN;
	return codes[c].name;
}

enum sb_rpc_code
sb_rpc_code_parse(const char *name)
{
	for (int i = 1; i < SB_RPC_CODES; i++)
		if (strcmp(codes[i].name, name) == 0)
			return (enum sb_rpc_code)i;
	return SB_RPC_UNKNOWN;
}

int
sb_rpc_code_http(enum sb_rpc_code c)
{
	if ((unsigned)c >= SB_RPC_CODES)
		c = SB_RPC_UNKNOWN;
	return codes[c].http;
}

enum sb_rpc_code
sb_rpc_code_from_http(int status)
{
	switch (status) {
	case 200: return SB_RPC_OK;
	case 400: return SB_RPC_INTERNAL;
	case 401: return SB_RPC_UNAUTHENTICATED;
	case 403: return SB_RPC_PERMISSION_DENIED;
	case 404: return SB_RPC_UNIMPLEMENTED;
	case 413: return SB_RPC_RESOURCE_EXHAUSTED;
	case 429: return SB_RPC_UNAVAILABLE;
	case 502: return SB_RPC_UNAVAILABLE;
	case 503: return SB_RPC_UNAVAILABLE;
	case 504: return SB_RPC_UNAVAILABLE;
	default: return SB_RPC_UNKNOWN;
	}
}

enum sb_rpc_code
sb_rpc_code_from_sb(int code)
{
	if (code >= 0)
		return SB_RPC_OK;
	for (size_t i = 0; i < sizeof from_sb / sizeof from_sb[0]; i++)
		if (from_sb[i].sb == code)
			return from_sb[i].rpc;
	return SB_RPC_INTERNAL;
}

int
sb_rpc_code_to_sb(enum sb_rpc_code c)
{
	if (c == SB_RPC_OK)
		return 0;
	for (size_t i = 0; i < sizeof to_sb / sizeof to_sb[0]; i++)
		if (to_sb[i].rpc == c)
			return to_sb[i].sb;
	return SB_E_PEER;
}

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

/*
 * Bytes of the UTF-8 sequence at `s`, 0 when it is none (overlong, surrogate, cut, beyond
 * U+10FFFF).
 */
static size_t
utf8_len(const unsigned char *s, size_t len)
{
	static const struct {
		unsigned char lo, hi, next_lo, next_hi;
		size_t n;
	} rows[] = {
		{ 0x00, 0x7f, 0, 0, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (s[0] < rows[i].lo || s[0] > rows[i].hi)
			continue;
		if (rows[i].n > len)
			return 0;
		if (rows[i].n > 1 && (s[1] < rows[i].next_lo || s[1] > rows[i].next_hi))
			return 0;
		for (size_t k = 2; k < rows[i].n; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return rows[i].n;
	}
	return 0;
}

json_t *
sb_rpc_json_text(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	sb_auto(sb_buf) struct sb_buf b;
	size_t i = 0, n;

	sb_buf_init(&b, 3 * len + 1);
	while (i < len && (n = utf8_len(p + i, len - i)) > 0)
		i += n;
	if (i == len)
		return json_stringn_nocheck(s, len);
	sb_buf_add(&b, s, i);
	while (i < len) {
		n = utf8_len(p + i, len - i);
		if (n > 0)
			sb_buf_add(&b, s + i, n);
		else
			sb_buf_add_str(&b, "\xef\xbf\xbd");
		i += n > 0 ? n : 1;
	}
	if (b.failed)
		return NULL;
	return json_stringn_nocheck((const char *)b.data, b.len);
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
	if (raw.failed || !sb_rpc_base64_encode(raw.data, raw.len, text, sizeof text))
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
