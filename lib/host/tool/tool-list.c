/* SPDX-License-Identifier: MIT */
/* What tools a session has, as ListTools and a model are told. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <host/files/toolspec.h>
#include <sb/host-exec.h>

void
sb_host_tools_free(struct sb_host_tool *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		free(v[i].name);
		free(v[i].description);
		free(v[i].schema);
	}
	free(v);
}

static bool
fill(const struct sb_toolspec *t, struct sb_host_tool *out)
{
	json_t *schema = sb_toolspec_schema(t);

	out->name = strdup(t->name);
	out->description = strdup(t->help);
	out->schema = schema ? json_dumps(schema, JSON_COMPACT) : NULL;
	out->reads = t->reads;
	out->network = t->network;
	json_decref(schema);
	return out->name && out->description && out->schema;
}

int
sb_host_tool_list(struct sb_host_tool **out, size_t *out_n, struct sb_error *err)
{
	struct sb_host_tool *v;
	size_t n = 0;

	while (sb_toolspec_table[n].name)
		n++;
	v = calloc(n, sizeof *v);
	for (size_t i = 0; i < n; i++)
		if (!v || !fill(&sb_toolspec_table[i], &v[i])) {
			sb_host_tools_free(v, n);
			return sb_fail(err, SB_E_NOMEM, "list of tools");
		}
	*out = v;
	*out_n = n;
	return 0;
}
