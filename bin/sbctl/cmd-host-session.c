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

static const struct host_field one_session[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD_END,
};

static const struct host_field create_fields[] = {
	FIELD(TEXT, "SessionID", id),
	FIELD(TEXT, "BaseSnapshot", base),
	FIELD(SIZE, "Quota", quota),
	FIELD(FLAG, "Empty", empty),
	FIELD(TEXT, "Runtime", runtime),
	FIELD(TEXT, "Network", network),
	FIELD(PAIRS, "Labels", labels),
	FIELD_END,
};

const struct host_verb cmd_host_create = {
	.name = "create",
	.args = "",
	.help = "make a session and print it",
	.opts = "id,base,empty,quota,label,runtime,network",
	.method = "CreateSession",
	.fields = create_fields,
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

static const struct host_field ls_fields[] = {
	FIELD(LIST, "States", states),
	FIELD(INT, "Limit", limit),
	FIELD(PAIRS, "Labels", labels),
	FIELD_END,
};

const struct host_verb cmd_host_ls = {
	.name = "ls",
	.args = "",
	.help = "list sessions",
	.opts = "label,state,limit",
	.method = "ListSessions",
	.fields = ls_fields,
	.show = show_sessions,
};

static const struct host_field get_fields[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD(FLAG, "Measure", measure),
	FIELD_END,
};

const struct host_verb cmd_host_get = {
	.name = "get",
	.args = "SESSION",
	.help = "print a session",
	.opts = "measure",
	.min_args = 1,
	.max_args = 1,
	.method = "GetSession",
	.fields = get_fields,
	.show = show_session,
};

static const struct host_field label_fields[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD_OPERAND_PAIRS("Labels", 1),
	FIELD_END,
};

const struct host_verb cmd_host_label = {
	.name = "label",
	.args = "SESSION [KEY=VALUE]...",
	.help = "replace a session's labels",
	.min_args = 1,
	.max_args = -1,
	.method = "SetLabels",
	.fields = label_fields,
	.show = show_session,
};

const struct host_verb cmd_host_pause = {
	.name = "pause",
	.args = "SESSION",
	.help = "let tools end, freeze processes",
	.min_args = 1,
	.max_args = 1,
	.method = "PauseSession",
	.fields = one_session,
};

const struct host_verb cmd_host_resume = {
	.name = "resume",
	.args = "SESSION",
	.help = "go on after pause",
	.min_args = 1,
	.max_args = 1,
	.method = "ResumeSession",
	.fields = one_session,
};

static const struct host_field destroy_fields[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD(FLAG, "Force", force),
	FIELD_END,
};

const struct host_verb cmd_host_destroy = {
	.name = "destroy",
	.args = "SESSION",
	.help = "remove a session and its workspace",
	.opts = "force",
	.min_args = 1,
	.max_args = 1,
	.method = "DestroySession",
	.fields = destroy_fields,
};

static const struct host_field fork_fields[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD(TEXT, "SnapshotID", snapshot),
	FIELD(TEXT, "NewSessionID", id),
	FIELD(SIZE, "Quota", quota),
	FIELD(PAIRS, "Labels", labels),
	FIELD_END,
};

const struct host_verb cmd_host_fork = {
	.name = "fork",
	.args = "SESSION",
	.help = "a new session from a snapshot or from now",
	.opts = "snapshot,id,quota,label",
	.min_args = 1,
	.max_args = 1,
	.method = "Fork",
	.fields = fork_fields,
	.show = show_session,
};

static void
show_token(const json_t *out)
{
	const char *token = json_string_value(json_object_get(out, "Token"));

	(void)printf("%s\n", token ? token : "");
}

static const struct host_field token_fields[] = {
	FIELD_OPERAND("SessionID", 0),
	FIELD(TIME, "TTL", ttl),
	FIELD_END,
};

const struct host_verb cmd_host_token = {
	.name = "token",
	.args = "SESSION",
	.help = "a bearer token for this session only",
	.opts = "ttl",
	.min_args = 1,
	.max_args = 1,
	.method = "IssueSessionToken",
	.fields = token_fields,
	.show = show_token,
};
