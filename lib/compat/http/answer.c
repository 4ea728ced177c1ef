/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/answer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rpc/protocol/json.h>

int
sb_answer_json(struct sb_rpc_call *call, int status, json_t *o, struct sb_error *err)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(o);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_rpc_http_reply(call, status, "application/json", text, strlen(text));
	free(text);
	return 0;
}

json_t *
sb_answer_body(struct sb_rpc_call *call, struct sb_error *err)
{
	size_t len;
	const char *text = sb_rpc_http_body(call, &len);

	return sb_rpc_json_parse(text, len, err);
}

json_t *
sb_answer_time(int64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	char day[32], text[64];
	struct tm tm;

	(void)gmtime_r(&s, &tm);
	(void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text, sizeof text, "%s.%06dZ", day, (int)(ns % 1000000000 / 1000));
	return json_string(text);
}

json_t *
sb_answer_text(const char *s)
{
	return sb_rpc_json_text(s, strlen(s));
}

struct sb_host_call
sb_answer_limits(struct sb_rpc_call *call)
{
	return (struct sb_host_call){ .cancel = sb_rpc_call_cancel(call),
		.deadline = sb_rpc_call_deadline(call) };
}
