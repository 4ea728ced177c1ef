/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/toolspec.h>

#include <stdio.h>
#include <string.h>

#define LINES 2000
#define GIT_LOG_MAX 100
#define RESULTS_MAX 100000
#define DAY_MS 86400000

/* clang-format off */
#define TEXT(n, al, need, h) { .name = n, .alias = al, .type = SB_TOOLSPEC_TEXT, \
	.required = need, .not_empty = need, .help = h }
#define ANY_TEXT(n, h) { .name = n, .type = SB_TOOLSPEC_TEXT, .required = true, .help = h }
#define INT(n, lo, hi, d, h) { .name = n, .type = SB_TOOLSPEC_INT, .min = lo, .max = hi, \
	.def = d, .help = h }
#define BOOL(n, h) { .name = n, .type = SB_TOOLSPEC_BOOL, .help = h }
#define TEXTS(n, al, need, h) { .name = n, .alias = al, .type = SB_TOOLSPEC_TEXTS, \
	.required = need, .help = h }
#define PARAMS(...) (const struct sb_toolspec_param[]){ __VA_ARGS__, { .name = NULL } }
#define NO_PARAMS (const struct sb_toolspec_param[]){ { .name = NULL } }
#define FILE_PATH TEXT("path", "file_path", true, \
	"The file, relative to the workspace or as an absolute path in it.")
#define REF TEXT("ref", NULL, false, "A commit, branch or range.")
#define REF_PATH TEXT("path", "file_path", false, "Only this file or directory.")
#define REMOTE_ARGS TEXTS("args", NULL, false, \
	"What git gets as operands, for example a remote and a branch. No options.")

const struct sb_toolspec sb_toolspec_table[] = {
	{ .name = "bash", .alias = "shell", .network = true,
		.help = "Runs a command line with bash in the workspace. Gives what it wrote, its "
			"exit code and how long it took. Whatever it leaves in the background ends "
			"with it.",
		.params = PARAMS(
			TEXT("cmd", "command", true, "The command line."),
			INT("timeout_ms", 1, DAY_MS, 120000,
				"After so many milliseconds it is killed.")) },
	{ .name = "read_file", .alias = "read", .reads = true,
		.help = "Reads lines of a text file; each comes with its number and a tab.",
		.params = PARAMS(FILE_PATH,
			INT("offset", 0, INT32_MAX, 0, "How many lines to leave out first."),
			INT("limit", 1, INT32_MAX, LINES, "At most so many lines.")) },
	{ .name = "write_file", .alias = "write",
		.help = "Makes a file, or replaces all of its content.",
		.params = PARAMS(FILE_PATH,
			ANY_TEXT("content", "The whole new content."),
			BOOL("create_dirs", "Make the directories that are missing above it.")) },
	{ .name = "edit_file", .alias = "edit",
		.help = "Replaces a piece of text in a file. The old text must occur exactly once, "
			"unless all occurrences are wanted.",
		.params = PARAMS(FILE_PATH,
			{ .name = "old_string", .type = SB_TOOLSPEC_TEXT, .required = true,
				.not_empty = true,
				.help = "The text as it is in the file, with its spaces and line "
					"ends." },
			ANY_TEXT("new_string", "What comes in its place."),
			BOOL("replace_all", "Replace every occurrence.")) },
	{ .name = "ls", .alias = "list_dir", .reads = true,
		.help = "Lists a directory: names with sizes, a slash behind directories, @ behind "
			"links.",
		.params = PARAMS(
			TEXT("path", "directory", false,
				"The directory; without it, the workspace."),
			INT("max_results", 1, RESULTS_MAX, 1000, "At most so many entries.")) },
	{ .name = "grep", .reads = true,
		.help = "Searches the lines of text files for a regular expression (RE2: Perl's "
			"syntax without back references). Leaves out directories that begin with a "
			"dot, and binary files.",
		.params = PARAMS(
			ANY_TEXT("pattern", "The expression."),
			TEXT("path", "directory", false,
				"Where to search; without it, everywhere."),
			TEXT("include", NULL, false, "Only files whose name fits this glob."),
			TEXT("exclude", NULL, false, "No files whose name fits this glob."),
			BOOL("literal", "The pattern is plain text."),
			INT("max_results", 1, RESULTS_MAX, 100, "At most so many matches."),
			INT("context_lines", 0, 20, 0,
				"So many lines before and after each match.")) },
	{ .name = "glob", .alias = "find", .reads = true,
		.help = "Finds files by the pattern of their path; ** stands for any number of "
			"directories. Leaves out directories that begin with a dot.",
		.params = PARAMS(
			ANY_TEXT("pattern", "For example **/*.c"),
			TEXT("path", "directory", false, "Where to look; without it, everywhere."),
			INT("max_results", 1, RESULTS_MAX, 200, "At most so many names.")) },
	{ .name = "git_status", .reads = true,
		.help = "Shows what changed in the workspace, as git status --porcelain does.",
		.params = NO_PARAMS },
	{ .name = "git_diff", .reads = true,
		.help = "Shows changes as a patch: of the workspace, of what is staged, or since a "
			"commit.",
		.params = PARAMS(REF, REF_PATH,
			BOOL("staged", "What is staged instead of what is not.")) },
	{ .name = "git_log", .reads = true,
		.help = "Lists commits, newest first: hash, author, date and subject.",
		.params = PARAMS(REF, REF_PATH,
			INT("n", 1, GIT_LOG_MAX, 10, "At most so many.")) },
	{ .name = "git_show", .reads = true,
		.help = "Shows a commit with its patch; without ref, the last one.",
		.params = PARAMS(REF, REF_PATH) },
	{ .name = "git_add",
		.help = "Stages files for the next commit.",
		.params = PARAMS(TEXTS("paths", "path", true, "Files and directories.")) },
	{ .name = "git_commit",
		.help = "Commits what is staged.",
		.params = PARAMS(TEXT("message", NULL, true, "The commit's message.")) },
	{ .name = "git_push", .network = true,
		.help = "Pushes to a remote repository.",
		.params = PARAMS(REMOTE_ARGS) },
	{ .name = "git_fetch", .network = true,
		.help = "Fetches from a remote repository.",
		.params = PARAMS(REMOTE_ARGS) },
	{ .name = "git_pull", .network = true,
		.help = "Fetches from a remote repository and merges.",
		.params = PARAMS(REMOTE_ARGS) },
	{ .name = "git_clone", .network = true,
		.help = "Clones a repository into the workspace.",
		.params = PARAMS(REMOTE_ARGS) },
	{ .name = NULL },
};
/* clang-format on */

static bool
called(const char *name, const char *alias, const char *key)
{
	return strcmp(name, key) == 0 || (alias && strcmp(alias, key) == 0);
}

const struct sb_toolspec *
sb_toolspec_find(const char *name)
{
	for (const struct sb_toolspec *t = sb_toolspec_table; t->name; t++)
		if (called(t->name, t->alias, name))
			return t;
	return NULL;
}

const json_t *
sb_toolspec_value(const struct sb_toolspec_param *p, const json_t *given)
{
	const json_t *v = json_object_get(given, p->name);

	if (json_is_null(v))
		v = NULL;
	if (!v && p->alias)
		v = json_object_get(given, p->alias);
	return json_is_null(v) ? NULL : v;
}

static int
check_text(const struct sb_toolspec_param *p, const char *tool, const json_t *v,
	struct sb_error *err)
{
	const char *s = json_string_value(v);

	if (!s || strlen(s) != json_string_length(v))
		return sb_fail(err, SB_E_INVAL, "%s %s must be text", tool, p->name);
	return p->not_empty && !*s ? sb_fail(err, SB_E_INVAL, "%s %s is empty", tool, p->name) : 0;
}

static int
check_int(const struct sb_toolspec_param *p, const char *tool, const json_t *v,
	struct sb_error *err)
{
	double n = json_number_value(v);

	if (!json_is_number(v) || n < (double)p->min || n > (double)p->max)
		return sb_fail(err, SB_E_INVAL, "%s %s must be in range [%lld,%lld]", tool, p->name,
			(long long)p->min, (long long)p->max);
	return n == (double)(int64_t)n ?
		0 :
		sb_fail(err, SB_E_INVAL, "%s %s must be a whole number", tool, p->name);
}

static int
check_texts(const struct sb_toolspec_param *p, const char *tool, const json_t *v,
	struct sb_error *err)
{
	const json_t *item;
	size_t i;

	if (json_is_string(v))
		return check_text(p, tool, v, err);
	if (!json_is_array(v) || json_array_size(v) > SB_TOOLSPEC_TEXTS_MAX)
		return sb_fail(err, SB_E_INVAL, "%s %s must be a list of at most %d strings", tool,
			p->name, SB_TOOLSPEC_TEXTS_MAX);
	json_array_foreach(v, i, item)
	{
		if (check_text(p, tool, item, NULL) < 0)
			return sb_fail(err, SB_E_INVAL, "%s %s must be a list of strings", tool,
				p->name);
	}
	return 0;
}

static int
check_value(const struct sb_toolspec_param *p, const char *tool, const json_t *v,
	struct sb_error *err)
{
	switch (p->type) {
	case SB_TOOLSPEC_TEXT: return check_text(p, tool, v, err);
	case SB_TOOLSPEC_INT: return check_int(p, tool, v, err);
	case SB_TOOLSPEC_TEXTS: return check_texts(p, tool, v, err);
	case SB_TOOLSPEC_BOOL: break;
	}
	return json_is_boolean(v) ?
		0 :
		sb_fail(err, SB_E_INVAL, "%s %s must be true or false", tool, p->name);
}

/* A parameter that is not known, with those that are. */
static int
unknown(const struct sb_toolspec *t, const char *tool, const char *key, struct sb_error *err)
{
	char have[256] = "none";
	size_t n = 0;

	for (const struct sb_toolspec_param *p = t->params; p->name && n < sizeof have; p++)
		n += (size_t)snprintf(have + n, sizeof have - n, "%s%s", n ? ", " : "", p->name);
	return sb_fail(err, SB_E_INVAL, "%s has no parameter \"%.80s\" (it has %s)", tool, key,
		have);
}

int
sb_toolspec_check(const struct sb_toolspec *t, const char *tool, const json_t *given,
	struct sb_error *err)
{
	const char *key;
	const json_t *v;
	int r = 0;

	/* An object of Jansson's can be looked through only where it could be changed. */
	json_object_foreach((json_t *)(uintptr_t)given, key, v)
	{
		const struct sb_toolspec_param *p = t->params;

		while (p->name && !called(p->name, p->alias, key))
			p++;
		if (!p->name)
			return unknown(t, tool, key, err);
	}
	for (const struct sb_toolspec_param *p = t->params; p->name && r == 0; p++) {
		v = sb_toolspec_value(p, given);
		if (v && p->alias && json_object_get(given, p->name) == v &&
			json_object_get(given, p->alias) &&
			!json_is_null(json_object_get(given, p->alias)))
			return sb_fail(err, SB_E_INVAL, "%s %s is given twice, also as %s", tool,
				p->name, p->alias);
		if (v)
			r = check_value(p, tool, v, err);
		else if (p->required)
			r = sb_fail(err, SB_E_INVAL, "%s %s is required", tool, p->name);
	}
	return r;
}

static json_t *
param_schema(const struct sb_toolspec_param *p)
{
	json_t *o = json_object();

	switch (p->type) {
	case SB_TOOLSPEC_TEXT:
		(void)json_object_set_new(o, "type", json_string("string"));
		if (p->not_empty)
			(void)json_object_set_new(o, "minLength", json_integer(1));
		break;
	case SB_TOOLSPEC_INT:
		(void)json_object_set_new(o, "type", json_string("integer"));
		(void)json_object_set_new(o, "minimum", json_integer(p->min));
		(void)json_object_set_new(o, "maximum", json_integer(p->max));
		(void)json_object_set_new(o, "default", json_integer(p->def));
		break;
	case SB_TOOLSPEC_BOOL:
		(void)json_object_set_new(o, "type", json_string("boolean"));
		(void)json_object_set_new(o, "default", json_false());
		break;
	case SB_TOOLSPEC_TEXTS:
		(void)json_object_set_new(o, "type", json_string("array"));
		(void)json_object_set_new(o, "items", json_pack("{s:s}", "type", "string"));
		(void)json_object_set_new(o, "maxItems", json_integer(SB_TOOLSPEC_TEXTS_MAX));
		break;
	}
	(void)json_object_set_new(o, "description", json_string(p->help));
	return o;
}

json_t *
sb_toolspec_schema(const struct sb_toolspec *t)
{
	json_t *all = json_object(), *needed = json_array(), *o = json_object();

	for (const struct sb_toolspec_param *p = t->params; p->name; p++) {
		(void)json_object_set_new(all, p->name, param_schema(p));
		if (p->required)
			(void)json_array_append_new(needed, json_string(p->name));
	}
	(void)json_object_set_new(o, "type", json_string("object"));
	(void)json_object_set_new(o, "properties", all);
	if (json_array_size(needed) > 0)
		(void)json_object_set_new(o, "required", needed);
	else
		json_decref(needed);
	if (o && json_object_set_new(o, "additionalProperties", json_false()) < 0) {
		json_decref(o);
		o = NULL;
	}
	return o;
}
