/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/tool-table.h>

#include <string.h>

const struct sb_tool *
sb_tool_table_find(const char *name)
{
	const struct sb_toolspec *spec = sb_toolspec_find(name);
	static const struct sb_tool *const tables[] = { sb_tool_shell_table, sb_tool_files_table,
		sb_tool_git_table };

	for (size_t i = 0; spec && i < sizeof tables / sizeof tables[0]; i++)
		for (const struct sb_tool *t = tables[i]; t->name; t++)
			if (strcmp(t->name, spec->name) == 0)
				return t;
	return NULL;
}
