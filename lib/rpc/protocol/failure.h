/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_FAILURE_H
#define SB_RPC_FAILURE_H

#include <jansson.h>

#include <rpc/protocol/code.h>
#include <sb/error.h>

#define SB_RPC_FIELD_MAX 64

/* A failure as it goes over the wire. */
struct sb_rpc_failure {
	enum sb_rpc_code code;
	int http;                     /* status other than the code's, 0: the code's */
	const char *reason;           /* static: the name of our code ("SESSION_PAUSED"), or NULL */
	char field[SB_RPC_FIELD_MAX]; /* the request field that was wrong, or "" */
	char msg[SB_ERROR_MSG_MAX];
};

void sb_rpc_failure_set(struct sb_rpc_failure *f, enum sb_rpc_code code, const char *fmt, ...)
	SB_PRINTF(3, 4);
void sb_rpc_failure_from_error(struct sb_rpc_failure *f, const struct sb_error *err);

/*
 * {"code","message","details":[{"type":"rpc.v1.ErrorInfo","value":base64 of the
 * message,"debug":{...}}]}; details only when there is a reason or a field. NULL: out of memory.
 */
json_t *sb_rpc_failure_json(const struct sb_rpc_failure *f);

/*
 * The other way, for a client: fills `err` from such an object and returns the code. `http` is the
 * status the object came with. A reason in the details gives our exact code back.
 */
int sb_rpc_failure_parse(const json_t *obj, int http, struct sb_error *err);

#endif
