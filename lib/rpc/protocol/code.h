/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_CODE_H
#define SB_RPC_CODE_H

#include <sb/error.h>

/*
 * The codes of the Connect protocol: number, our name, name on the wire, HTTP status of a unary
 * answer.
 */
#define SB_RPC_CODE_MAP(X) \
	X(1, CANCELED, "canceled", 499) \
	X(2, UNKNOWN, "unknown", 500) \
	X(3, INVALID_ARGUMENT, "invalid_argument", 400) \
	X(4, DEADLINE_EXCEEDED, "deadline_exceeded", 504) \
	X(5, NOT_FOUND, "not_found", 404) \
	X(6, ALREADY_EXISTS, "already_exists", 409) \
	X(7, PERMISSION_DENIED, "permission_denied", 403) \
	X(8, RESOURCE_EXHAUSTED, "resource_exhausted", 429) \
	X(9, FAILED_PRECONDITION, "failed_precondition", 400) \
	X(10, ABORTED, "aborted", 409) \
	X(11, OUT_OF_RANGE, "out_of_range", 400) \
	X(12, UNIMPLEMENTED, "unimplemented", 501) \
	X(13, INTERNAL, "internal", 500) \
	X(14, UNAVAILABLE, "unavailable", 503) \
	X(15, DATA_LOSS, "data_loss", 500) \
	X(16, UNAUTHENTICATED, "unauthenticated", 401)

enum sb_rpc_code {
	SB_RPC_OK = 0,
#define SB_RPC_CODE_ENUM(num, name, wire, http) SB_RPC_##name = num,
	SB_RPC_CODE_MAP(SB_RPC_CODE_ENUM)
#undef SB_RPC_CODE_ENUM
		SB_RPC_CODES = 17,
};

/* "ok" for SB_RPC_OK; never NULL. */
const char *sb_rpc_code_name(enum sb_rpc_code c);
/* SB_RPC_UNKNOWN for a name nobody knows. */
enum sb_rpc_code sb_rpc_code_parse(const char *name);
int sb_rpc_code_http(enum sb_rpc_code c);
/* What a client makes of an HTTP status without a Connect error in its body. */
enum sb_rpc_code sb_rpc_code_from_http(int status);

/* Between our codes and Connect's. */
enum sb_rpc_code sb_rpc_code_from_sb(int code);
int sb_rpc_code_to_sb(enum sb_rpc_code c);

#endif
