/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/host.h>

#include <stdio.h>
#include <string.h>

#include <sb/log.h>

#define COLUMNS_MAX 8
#define CELL 256

/* A column: the field and its heading. Numbers of bytes are printed as they are. */
struct column {
	const char *field, *heading;
};

/* A value as one line of safe text. */
static const char *
cell(const json_t *v, char *out, size_t size)
{
	char *text;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_STRING:
		if (json_string_length(v) == 0)
			return "-";
		return sb_escape(json_string_value(v), json_string_length(v), out, size);
	case JSON_INTEGER:
		(void)snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return out;
	case JSON_REAL: (void)snprintf(out, size, "%.4g", json_real_value(v)); return out;
	case JSON_TRUE: return "yes";
	case JSON_FALSE: return "no";
	case JSON_NULL: return "-";
	default: break;
	}
	text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	(void)sb_escape(text ? text : "", text ? strlen(text) : 0, out, size);
	free(text);
	return out;
}

static void
print_table(const json_t *rows, const struct column *c, size_t n)
{
	int width[COLUMNS_MAX];
	char buf[CELL];
	const json_t *row;
	size_t i;

	for (size_t k = 0; k < n; k++)
		width[k] = (int)strlen(c[k].heading);
	json_array_foreach(rows, i, row) for (size_t k = 0; k < n; k++)
	{
		int w = (int)strlen(cell(json_object_get(row, c[k].field), buf, sizeof buf));

		width[k] = w > width[k] ? w : width[k];
	}
	for (size_t k = 0; k < n; k++)
		(void)printf("%-*s%s", k + 1 < n ? width[k] : 0, c[k].heading,
			k + 1 < n ? "  " : "\n");
	json_array_foreach(rows, i, row) for (size_t k = 0; k < n; k++)(void) printf("%-*s%s",
		k + 1 < n ? width[k] : 0, cell(json_object_get(row, c[k].field), buf, sizeof buf),
		k + 1 < n ? "  " : "\n");
}

/* An answer with one object in it is that object. */
static const json_t *
inner(const json_t *out)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)out, key,
		v) if (json_object_size(out) == 1 && json_is_object(v)) return v;
	return out;
}

void
host_show_fields(const json_t *out)
{
	char buf[4096];
	const char *key;
	json_t *v;

	out = inner(out);
	json_object_foreach((json_t *)(uintptr_t)out, key, v)
	{
		if (strcmp(key, "Uptime") == 0)
			(void)printf("%-18s %.3f s\n", key, (double)json_integer_value(v) / 1e9);
		else
			(void)printf("%-18s %s\n", key, cell(v, buf, sizeof buf));
	}
}

void
host_show_session(const json_t *out)
{
	host_show_fields(json_object_get(out, "Session"));
}

void
host_show_sessions(const json_t *out)
{
	static const struct column c[] = { { "ID", "ID" }, { "State", "STATE" },
		{ "TurnCount", "TURNS" }, { "SnapCount", "SNAPS" }, { "SpaceUsed", "USED" },
		{ "Created", "CREATED" }, { "Labels", "LABELS" } };
	const char *after = json_string_value(json_object_get(out, "NextAfter"));

	print_table(json_object_get(out, "Sessions"), c, sizeof c / sizeof c[0]);
	if (after && after[0])
		(void)fprintf(stderr, "sbctl: there are more sessions\n");
}

void
host_show_snapshot(const json_t *out)
{
	char buf[CELL];

	(void)printf("%s\n", cell(json_object_get(out, "SnapshotID"), buf, sizeof buf));
}

void
host_show_snapshots(const json_t *out)
{
	static const struct column c[] = { { "Name", "NAME" }, { "Kind", "KIND" },
		{ "Turn", "TURN" }, { "Used", "USED" }, { "Refer", "REFER" }, { "Holds", "HOLDS" },
		{ "Forks", "FORKS" }, { "CreatedAt", "CREATED" } };

	print_table(json_object_get(out, "Snapshots"), c, sizeof c / sizeof c[0]);
}

void
host_show_changes(const json_t *out)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(out, "Changes"), i, row)
	{
		char path[8192], from[8192], kind[CELL];
		const json_t *f = json_object_get(row, "From");

		(void)printf("%-9s %s", cell(json_object_get(row, "Kind"), kind, sizeof kind),
			cell(json_object_get(row, "Path"), path, sizeof path));
		if (json_string_length(f) > 0)
			(void)printf(" (was %s)", cell(f, from, sizeof from));
		(void)printf("\n");
	}
	if (json_is_true(json_object_get(out, "More")))
		(void)fprintf(stderr, "sbctl: there are more changes: raise --limit\n");
}

void
host_show_process(const json_t *out)
{
	const json_t *address = json_object_get(out, "Address");
	char buf[CELL];

	(void)printf("%s", cell(json_object_get(out, "ProcessID"), buf, sizeof buf));
	if (json_string_length(address) > 0)
		(void)printf(" %s", cell(address, buf, sizeof buf));
	(void)printf("\n");
}

void
host_show_processes(const json_t *out)
{
	static const struct column c[] = { { "ProcessID", "ID" }, { "Status", "STATUS" },
		{ "ExitCode", "EXIT" }, { "Address", "ADDRESS" }, { "Started", "STARTED" },
		{ "Binary", "BINARY" } };

	print_table(json_object_get(out, "Processes"), c, sizeof c / sizeof c[0]);
}

void
host_show_bases(const json_t *out)
{
	const json_t *v;
	char buf[4096];
	size_t i;

	json_array_foreach(json_object_get(out, "Bases"), i, v)(void)
		printf("%s\n", cell(v, buf, sizeof buf));
}

void
host_show_token(const json_t *out)
{
	const char *token = json_string_value(json_object_get(out, "Token"));

	(void)printf("%s\n", token ? token : "");
}
