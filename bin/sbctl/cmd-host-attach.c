/* SPDX-License-Identifier: MIT */
/* sbctl host attach: a command in a session with our stdin, stdout and stderr. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>

#include <bin/sbctl/host.h>

/* Our streams are the command's; only a signal ends it early. */
static int
attach_verb(struct host_run *r, json_t *in, struct sb_error *err)
{
	static const int fds[3] = { 0, 1, 2 };
	struct sb_rpc_wait wait = { r->wait.cancel, SB_NEVER };
	sb_autofree char *text = NULL;
	sb_auto(sb_buf) struct sb_buf cmd;
	int code = host_request_command(&r->args, &cmd, err);

	(void)signal(SIGPIPE, SIG_IGN);
	if (code == 0 &&
		json_object_set_new(in, "Command", json_string((const char *)cmd.data)) < 0)
		code = sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	if (code == 0) {
		text = json_dumps(in, JSON_COMPACT);
		code = text ? sb_rpc_attach(&r->how, text, fds, &wait, &r->status, err) :
			      sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	json_decref(in);
	return code;
}

const struct host_verb cmd_host_attach = {
	.name = "attach",
	.args = "SESSION COMMAND [ARG]...",
	.help = "run a command with our stdin, stdout and stderr",
	.opts = "env",
	.min_args = 2,
	.max_args = -1,
	.method = "Attach",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(PAIRS, "Env", env)),
	.run = attach_verb,
};
