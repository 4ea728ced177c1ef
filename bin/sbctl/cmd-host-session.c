/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl host` about sessions: tiny ones, so one file holds them all. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>

static void
show_session(const json_t *out)
{
	host_print_fields(json_object_get(out, "Session"));
}

const struct host_verb cmd_host_create = {
	.name = "create",
	.args = "",
	.help = "make a session and print it",
	.opts = "id,base,empty,quota,label,runtime,network,allow,deny",
	.method = "CreateSession",
	.fields = FIELDS(FIELD(TEXT, "SessionID", id), FIELD(TEXT, "BaseSnapshot", base),
		FIELD(SIZE, "Quota", quota), FIELD(FLAG, "Empty", empty),
		FIELD(TEXT, "Runtime", runtime), FIELD(TEXT, "Network", network),
		FIELD(LIST, "Allow", allow), FIELD(LIST, "Deny", deny),
		FIELD(PAIRS, "Labels", labels)),
	.show = show_session,
};

static void
show_sessions(const json_t *out)
{
	static const struct host_column c[] = { { "ID", "ID" }, { "State", "STATE" },
		{ "TurnCount", "TURNS" }, { "SnapCount", "SNAPS" }, { "SpaceUsed", "USED" },
		{ "Created", "CREATED" }, { "Labels", "LABELS" } };
	const char *after = json_string_value(json_object_get(out, "NextAfter"));

	host_print_table(json_object_get(out, "Sessions"), c, sizeof c / sizeof c[0]);
	if (after && after[0])
		(void)fprintf(stderr, "sbctl: there are more sessions\n");
}

const struct host_verb cmd_host_ls = {
	.name = "ls",
	.args = "",
	.help = "list sessions",
	.opts = "label,state,limit",
	.method = "ListSessions",
	.fields = FIELDS(FIELD(LIST, "States", states), FIELD(INT, "Limit", limit),
		FIELD(PAIRS, "Labels", labels)),
	.show = show_sessions,
};

const struct host_verb cmd_host_get = {
	.name = "get",
	.args = "SESSION",
	.help = "print a session",
	.opts = "measure",
	.min_args = 1,
	.max_args = 1,
	.method = "GetSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(FLAG, "Measure", measure)),
	.show = show_session,
};

const struct host_verb cmd_host_label = {
	.name = "label",
	.args = "SESSION [KEY=VALUE]...",
	.help = "replace a session's labels",
	.min_args = 1,
	.max_args = -1,
	.method = "SetLabels",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND_PAIRS("Labels", 1)),
	.show = show_session,
};

const struct host_verb cmd_host_network = {
	.name = "network",
	.args = "SESSION",
	.help = "replace what a session with network outbound may reach",
	.opts = "allow,deny",
	.min_args = 1,
	.max_args = 1,
	.method = "SetNetworkPolicy",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(LIST, "Allow", allow),
		FIELD(LIST, "Deny", deny)),
	.show = host_print_fields,
};

const struct host_verb cmd_host_pause = {
	.name = "pause",
	.args = "SESSION",
	.help = "wait for tools to end, then freeze processes",
	.min_args = 1,
	.max_args = 1,
	.method = "PauseSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
};

const struct host_verb cmd_host_resume = {
	.name = "resume",
	.args = "SESSION",
	.help = "go on with a paused session",
	.min_args = 1,
	.max_args = 1,
	.method = "ResumeSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
};

const struct host_verb cmd_host_deep_pause = {
	.name = "deep-pause",
	.args = "SESSION",
	.help = "move a session to cold storage",
	.min_args = 1,
	.max_args = 1,
	.method = "DeepPauseSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
};

const struct host_verb cmd_host_deep_resume = {
	.name = "deep-resume",
	.args = "SESSION",
	.help = "take a session back from cold storage",
	.min_args = 1,
	.max_args = 1,
	.method = "DeepResumeSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.show = show_session,
};

const struct host_verb cmd_host_destroy = {
	.name = "destroy",
	.args = "SESSION",
	.help = "remove a session and its workspace",
	.opts = "force",
	.min_args = 1,
	.max_args = 1,
	.method = "DestroySession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(FLAG, "Force", force)),
};

const struct host_verb cmd_host_fork = {
	.name = "fork",
	.args = "SESSION",
	.help = "make a session from a snapshot, or from what is there now",
	.opts = "snapshot,id,quota,label",
	.min_args = 1,
	.max_args = 1,
	.method = "Fork",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(TEXT, "SnapshotID", snapshot),
		FIELD(TEXT, "NewSessionID", id), FIELD(SIZE, "Quota", quota),
		FIELD(PAIRS, "Labels", labels)),
	.show = show_session,
};

static void
show_token(const json_t *out)
{
	const char *token = json_string_value(json_object_get(out, "Token"));

	(void)printf("%s\n", token ? token : "");
}

const struct host_verb cmd_host_token = {
	.name = "token",
	.args = "SESSION",
	.help = "make a bearer token for this session only",
	.opts = "ttl",
	.min_args = 1,
	.max_args = 1,
	.method = "IssueSessionToken",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(TIME, "TTL", ttl)),
	.show = show_token,
};
