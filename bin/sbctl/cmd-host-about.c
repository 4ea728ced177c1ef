/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl host` about the host itself: tiny ones, so one file holds them all. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>

static void
show_bases(const json_t *out)
{
	const json_t *bases = json_object_get(out, "Bases");
	char buf[4096];

	for (size_t i = 0; i < json_array_size(bases); i++)
		(void)printf("%s\n", host_print_cell(json_array_get(bases, i), buf, sizeof buf));
}

/* Each tool with its parameters; * marks those that must be given. */
static void
show_tools(const json_t *out)
{
	const json_t *tools = json_object_get(out, "Tools"), *t, *schema;
	char buf[4096];
	size_t i;

	json_array_foreach(tools, i, t)
	{
		const char *key;
		json_t *p;

		schema = json_object_get(t, "InputSchema");
		(void)printf("%s", host_print_cell(json_object_get(t, "Name"), buf, sizeof buf));
		json_object_foreach(json_object_get(schema, "properties"), key, p)
		{
			json_t *name = json_string(key);
			const json_t *needed = json_object_get(schema, "required");
			bool must = false;

			for (size_t k = 0; k < json_array_size(needed); k++)
				must |= json_equal(json_array_get(needed, k), name);
			(void)printf(" %s%s", host_print_cell(name, buf, sizeof buf),
				must ? "*" : "");
			json_decref(name);
		}
		(void)printf("\n    %s\n",
			host_print_cell(json_object_get(t, "Description"), buf, sizeof buf));
	}
}

const struct host_verb cmd_host_tools = {
	.name = "tools",
	.args = "",
	.help = "list the tools that sessions have, and their parameters",
	.method = "ListTools",
	.show = show_tools,
};

const struct host_verb cmd_host_health = {
	.name = "health",
	.args = "",
	.help = "show whether the host is well and how full it is",
	.method = "HealthCheck",
	.show = host_print_fields,
};

const struct host_verb cmd_host_capabilities = {
	.name = "capabilities",
	.args = "",
	.help = "show what the host can do",
	.method = "GetCapabilities",
	.show = host_print_fields,
};

const struct host_verb cmd_host_bases = {
	.name = "bases",
	.args = "",
	.help = "list base images",
	.method = "ListBases",
	.show = show_bases,
};
