/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOL_TABLE_H
#define SB_HOST_TOOL_TABLE_H

#include <host/tool/toolcall.h>

/* The tools of a session by name. */
struct sb_tool {
	const char *name;
	/*
	 * Whether the parameters are read here, before anything is admitted; else whoever runs the
	 * tool reads them, elsewhere.
	 */
	bool parse;
	/* What the tool's table (host/files/toolspec.h) cannot say of them; may be NULL. */
	int (*check)(const struct sb_toolcall *c, struct sb_error *err);
	/* Runs the tool. What goes wrong in the tool is its result, not an error. */
	int (*run)(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err);
	/* It changes nothing and can be called again: who needs the session ends it at once. */
	bool again;
};

/* An empty entry ends each table. */
extern const struct sb_tool sb_tool_shell_table[];
extern const struct sb_tool sb_tool_files_table[];
extern const struct sb_tool sb_tool_git_table[];

/* The tool of that name or alias, or NULL. */
const struct sb_tool *sb_tool_table_find(const char *name);

#endif
