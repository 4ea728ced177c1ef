/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl host` about processes: tiny ones, so one file holds them all. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>

static void
show_process(const json_t *out)
{
	const json_t *address = json_object_get(out, "Address");
	char buf[256];

	(void)printf("%s", host_print_cell(json_object_get(out, "ProcessID"), buf, sizeof buf));
	if (json_string_length(address) > 0)
		(void)printf(" %s", host_print_cell(address, buf, sizeof buf));
	(void)printf("\n");
}

static void
show_processes(const json_t *out)
{
	static const struct host_column c[] = { { "ProcessID", "ID" }, { "Status", "STATUS" },
		{ "ExitCode", "EXIT" }, { "Address", "ADDRESS" }, { "Started", "STARTED" },
		{ "Binary", "BINARY" } };

	host_print_table(json_object_get(out, "Processes"), c, sizeof c / sizeof c[0]);
}

const struct host_verb cmd_host_launch = {
	.name = "launch",
	.args = "SESSION BINARY [ARG]...",
	.help = "start a process in the background",
	.opts = "env,expose-port,ready",
	.min_args = 2,
	.max_args = -1,
	.method = "LaunchProcess",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("Binary", 1),
		FIELD_OPERANDS("Args", 2), FIELD(INT, "ExposePort", expose_port),
		FIELD(TIME, "ReadyTimeout", ready), FIELD(PAIRS, "Env", env)),
	.show = show_process,
};

const struct host_verb cmd_host_status = {
	.name = "status",
	.args = "SESSION PROCESS",
	.help = "show whether a process runs",
	.min_args = 2,
	.max_args = 2,
	.method = "GetProcessStatus",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("ProcessID", 1)),
	.show = host_print_fields,
};

const struct host_verb cmd_host_kill = {
	.name = "kill",
	.args = "SESSION PROCESS",
	.help = "signal a process",
	.opts = "signal",
	.min_args = 2,
	.max_args = 2,
	.method = "KillProcess",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("ProcessID", 1),
		FIELD(INT, "Signal", signal)),
};

const struct host_verb cmd_host_ps = {
	.name = "ps",
	.args = "SESSION",
	.help = "list processes",
	.min_args = 1,
	.max_args = 1,
	.method = "ListProcesses",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.show = show_processes,
};
