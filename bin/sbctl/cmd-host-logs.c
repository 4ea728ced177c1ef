/* SPDX-License-Identifier: MIT */
/* sbctl host logs: what a process printed. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <base/base64.h>
#include <bin/sbctl/host.h>

static void
on_log(struct host_run *r, const json_t *msg)
{
	const char *name = json_string_value(json_object_get(msg, "Stream"));
	const json_t *data = json_object_get(msg, "Data");
	sb_auto(sb_buf) struct sb_buf raw;

	sb_buf_init(&raw, json_string_length(data) + 1);
	if (r->args.json || !json_is_string(data) ||
		!sb_base64_decode(json_string_value(data), json_string_length(data), &raw))
		return;
	(void)fwrite(raw.data, 1, raw.len, name && strcmp(name, "stderr") == 0 ? stderr : stdout);
	(void)fflush(stdout);
}

static int
logs_verb(struct host_run *r, json_t *in, struct sb_error *err)
{
	return host_call_stream(r, in, on_log, err);
}

const struct host_verb cmd_host_logs = {
	.name = "logs",
	.args = "SESSION PROCESS",
	.help = "print what a process printed",
	.opts = "follow,stream",
	.min_args = 2,
	.max_args = 2,
	.method = "StreamProcessLogs",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("ProcessID", 1),
		FIELD(FLAG, "Follow", follow), FIELD(TEXT, "Stream", stream)),
	.run = logs_verb,
};
