/* SPDX-License-Identifier: MIT */
/* sbctl host events: what happens on the host, until stopped. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>
#include <sb/log.h>

static void
on_event(struct host_run *r, const json_t *msg)
{
	static const char *const fields[] = { "Time", "Kind", "SessionID", "State", "Subject" };
	char buf[512];

	if (r->args.json)
		return;
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const json_t *v = json_object_get(msg, fields[i]);

		if (json_string_length(v) > 0)
			(void)printf("%s%s", i > 0 ? " " : "",
				sb_escape(json_string_value(v), json_string_length(v), buf,
					sizeof buf));
	}
	(void)printf("\n");
	(void)fflush(stdout);
}

static int
events_verb(struct host_run *r, json_t *in, struct sb_error *err)
{
	int code = host_call_stream(r, in, on_event, err);

	/* Ctrl-C is how one ends it. */
	return code == SB_E_CANCELED ? 0 : code;
}

const struct host_verb cmd_host_events = {
	.name = "events",
	.args = "[SESSION]",
	.help = "print events until stopped",
	.opts = "kind",
	.max_args = 1,
	.method = "StreamEvents",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(LIST, "Kinds", kinds)),
	.run = events_verb,
};
