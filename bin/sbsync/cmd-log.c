/* SPDX-License-Identifier: MIT */
/* sbsync log: what the syncs of a session did. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bin/sbsync/options.h>

/* The time of the line, which is UTC, as this machine shows times. */
static void
local_time(const char *stamp, char *out, size_t size)
{
	struct tm tm = { 0 };
	const char *end = stamp ? strptime(stamp, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;

	if (end && !*end)
		(void)time_text(timegm(&tm), out, size);
	else
		(void)snprintf(out, size, "%s", stamp ? stamp : "");
}

static const char *
text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static long long
number(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void
show_names(const json_t *o)
{
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(o, "changes"), i, c)
	{
		(void)printf("    %s %-7s %s", strcmp(text(c, "side"), "local") == 0 ? "<-" : "->",
			text(c, "what"), text(c, "path"));
		if (json_object_get(c, "from"))
			(void)printf(" (from %s)", text(c, "from"));
		(void)putchar('\n');
	}
	json_array_foreach(json_object_get(o, "kept_aside"), i, c)(void)
		printf("    conflict %s\n", json_string_value(c));
	if (json_object_get(o, "more_changes"))
		(void)printf("    and %lld more\n", number(o, "more_changes"));
}

static void
show(const struct sync_args *a, const char *line)
{
	json_t *o = json_loads(line, 0, NULL);
	char t[32];

	if (!o) {
		(void)printf("%s", line);
		return;
	}
	local_time(text(o, "time"), t, sizeof t);
	if (text(o, "error")[0])
		(void)printf("%s  %-7s failed: %s\n", t, text(o, "reason"), text(o, "error"));
	else
		(void)printf("%s  %-7s %lld files, %lld deleted, %lld moved, %lld conflicts, %lld "
			     "errors, %.2f s\n",
			t, text(o, "reason"), number(o, "files_synced"), number(o, "files_deleted"),
			number(o, "files_moved"), number(o, "conflicts"), number(o, "errors"),
			(double)number(o, "duration_ms") / 1000);
	if (a->verbose)
		show_names(o);
	json_decref(o);
}

static int
log_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char *line = NULL;
	size_t room = 0;
	FILE *f = NULL;
	int fd, r = find_session(argc ? argv[0] : NULL, &s, &err);

	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	fd = sb_session_log_fd(&s, &err);
	if (fd < 0)
		complain("%s", err.msg);
	else
		f = fdopen(fd, "r");
	while (f && getline(&line, &room, f) > 0)
		if (a->json)
			(void)fputs(line, stdout);
		else
			show(a, line);
	if (f)
		(void)fclose(f);
	free(line);
	sb_session_free(&s);
	return fd < 0 ? exit_code(fd) : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPTIONS_VERBOSE,
	OPT_FLAG(0, "json", json, "print an object of JSON for each sync, a line each"),
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_log = {
	.name = "log",
	.args = "[SESSION]",
	.help = "show what the session's syncs did; with -v by name",
	.opts = options,
	.max_args = 1,
	.run = log_verb,
};
