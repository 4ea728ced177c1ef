/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_ANSWER_H
#define SB_COMPAT_ANSWER_H

#include <stdint.h>

#include <jansson.h>

#include <rpc/server/http.h>
#include <sb/host.h>

/* What handlers of every vendor's API do with requests and answers in JSON. */

/* Answers with `o`, which it takes (NULL: out of memory). */
int sb_answer_json(struct sb_rpc_call *call, int status, json_t *o, struct sb_error *err);
/* The body as an object; NULL: SB_E_INVAL. */
json_t *sb_answer_body(struct sb_rpc_call *call, struct sb_error *err);
/* "2026-11-18T20:15:00.000000Z" */
json_t *sb_answer_time(int64_t ns);
/* A text as JSON; what is not UTF-8 is replaced. */
json_t *sb_answer_text(const char *s);
/* How long a call of the host may take for it. */
struct sb_host_call sb_answer_limits(struct sb_rpc_call *call);

#endif
