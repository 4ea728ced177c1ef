/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/code.h>

#include <string.h>

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
	{ SB_E_FENCED, SB_RPC_FAILED_PRECONDITION },
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
