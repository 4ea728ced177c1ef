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
