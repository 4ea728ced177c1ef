/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl host` about snapshots: tiny ones, so one file holds them all. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/host.h>

static void
show_snapshots(const json_t *out)
{
	static const struct host_column c[] = { { "Name", "NAME" }, { "Kind", "KIND" },
		{ "Turn", "TURN" }, { "Used", "USED" }, { "Refer", "REFER" }, { "Holds", "HOLDS" },
		{ "Forks", "FORKS" }, { "CreatedAt", "CREATED" } };

	host_print_table(json_object_get(out, "Snapshots"), c, sizeof c / sizeof c[0]);
}

const struct host_verb cmd_host_snapshots = {
	.name = "snapshots",
	.args = "SESSION",
	.help = "list snapshots",
	.min_args = 1,
	.max_args = 1,
	.method = "ListSnapshots",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.show = show_snapshots,
};

static const char *
text_of(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

/* The snapshots that came after `parent`, each with what came after it: a tree of lines. */
static void
show_after(const json_t *rows, const char *parent, int depth)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < json_array_size(rows); i++)
		n += strcmp(text_of(json_array_get(rows, i), "Parent"), parent) == 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		char name[300], at[64];

		if (strcmp(text_of(row, "Parent"), parent) != 0)
			continue;
		/* The newest goes straight on; the others are branches beside it. */
		(void)printf("%*s%s %s  %s%s\n", depth * 2, "", ++k < n ? "+" : "|",
			host_print_cell(json_object_get(row, "Name"), name, sizeof name),
			host_print_cell(json_object_get(row, "CreatedAt"), at, sizeof at),
			json_is_true(json_object_get(row, "Current")) ? "  <- the workspace" : "");
		show_after(rows, text_of(row, "Name"), depth + (k < n));
	}
}

static void
show_timeline(const json_t *out)
{
	show_after(json_object_get(out, "Snapshots"), "", 0);
}

const struct host_verb cmd_host_timeline = {
	.name = "timeline",
	.args = "SESSION",
	.help = "show which snapshot came after which, and where the workspace stands",
	.min_args = 1,
	.max_args = 1,
	.method = "ListSnapshots",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.show = show_timeline,
};

static void
show_snapshot(const json_t *out)
{
	if (!*text_of(out, "SnapshotID")) {
		(void)fprintf(stderr,
			"sbctl: the storage of this host has no snapshots: the turn is over, "
			"nothing was "
			"kept\n");
		return;
	}
	host_print_line(out, "SnapshotID");
	if (json_is_true(json_object_get(out, "Unchanged")))
		(void)fprintf(stderr, "sbctl: nothing changed since the snapshot before\n");
}

const struct host_verb cmd_host_turn = {
	.name = "turn",
	.args = "SESSION",
	.help = "end a turn and take its snapshot",
	.min_args = 1,
	.max_args = 1,
	.method = "TurnComplete",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.show = show_snapshot,
};

const struct host_verb cmd_host_snapshot = {
	.name = "snapshot",
	.args = "SESSION NAME",
	.help = "take a snapshot",
	.min_args = 2,
	.max_args = 2,
	.method = "CreateSnapshot",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("Name", 1)),
	.show = show_snapshot,
};

static void
show_rolled(const json_t *out)
{
	long long kept = json_integer_value(json_object_get(out, "Kept"));

	if (kept > 0)
		(void)fprintf(stderr,
			"sbctl: %lld newer snapshots stay as a branch: see timeline\n", kept);
	if (json_is_true(json_object_get(out, "BoxRestarted")))
		(void)fprintf(stderr, "sbctl: the box of the session was restarted\n");
}

const struct host_verb cmd_host_rollback = {
	.name = "rollback",
	.args = "SESSION SNAPSHOT",
	.help = "put the workspace back; later snapshots stay as a branch",
	.opts = "kill-tools,drop-later",
	.min_args = 2,
	.max_args = 2,
	.method = "RollbackSession",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("SnapshotID", 1),
		FIELD(FLAG, "KillTools", kill_tools), FIELD(FLAG, "DropLater", drop_later)),
	.show = show_rolled,
};

static void
show_changes(const json_t *out)
{
	const json_t *rows = json_object_get(out, "Changes");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *f = json_object_get(row, "From");
		char path[8192], from[8192], kind[256];

		(void)printf("%-9s %s",
			host_print_cell(json_object_get(row, "Kind"), kind, sizeof kind),
			host_print_cell(json_object_get(row, "Path"), path, sizeof path));
		if (json_string_length(f) > 0)
			(void)printf(" (was %s)", host_print_cell(f, from, sizeof from));
		(void)printf("\n");
		host_content_print(row);
	}
	if (json_is_true(json_object_get(out, "More")))
		(void)fprintf(stderr, "sbctl: there are more changes: raise --limit\n");
}

const struct host_verb cmd_host_diff = {
	.name = "diff",
	.args = "SESSION FROM [TO]",
	.help = "list paths that changed between snapshots, or until now",
	.opts = "limit,content",
	.min_args = 2,
	.max_args = 3,
	.method = "DiffSnapshots",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("From", 1),
		FIELD_OPERAND("To", 2), FIELD(INT, "Limit", limit),
		FIELD(FLAG, "Content", content)),
	.show = show_changes,
};

const struct host_verb cmd_host_rm_snapshot = {
	.name = "rm-snapshot",
	.args = "SESSION SNAPSHOT",
	.help = "delete a snapshot",
	.min_args = 2,
	.max_args = 2,
	.method = "DeleteSnapshot",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("SnapshotID", 1)),
};

const struct host_verb cmd_host_hold = {
	.name = "hold",
	.args = "SESSION SNAPSHOT TAG",
	.help = "keep a snapshot from being deleted",
	.min_args = 3,
	.max_args = 3,
	.method = "HoldSnapshot",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("SnapshotID", 1),
		FIELD_OPERAND("Tag", 2)),
};

const struct host_verb cmd_host_release = {
	.name = "release",
	.args = "SESSION SNAPSHOT TAG",
	.help = "remove a hold",
	.min_args = 3,
	.max_args = 3,
	.method = "ReleaseSnapshot",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("SnapshotID", 1),
		FIELD_OPERAND("Tag", 2)),
};
