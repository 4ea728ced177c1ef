/* SPDX-License-Identifier: MIT */
/* Which sandbox is meant when none is named. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/ctl.h>

static bool
below(const char *dir, const char *root)
{
	size_t n = strlen(root);

	return strncmp(dir, root, n) == 0 && (!dir[n] || dir[n] == '/' || n == 1);
}

char *
ctl_pick(struct ctl *ctl, const char *named, struct sb_error *err)
{
	sb_autofree char *here = realpath(".", NULL);
	struct sb_state *v = NULL;
	char *id = NULL;
	size_t n = 0, hits = 0;

	if (named) {
		id = strdup(named);
		if (!id)
			(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return id;
	}
	if (!here || sb_keeper_list(ctl->keeper, &v, &n, err) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].life != SB_LIFE_DESTROYED && v[i].local_root &&
			below(here, v[i].local_root)) {
			free(id);
			id = strdup(v[i].sandbox_id);
			hits++;
		}
	sb_states_free(v, n);
	if (hits == 1 && id)
		return id;
	free(id);
	(void)sb_fail(err, SB_E_USAGE,
		hits ? "%zu sandboxes belong to this directory: name one (sbctl ls)" :
		       "no sandbox belongs to this directory: name one (sbctl ls)",
		hits);
	return NULL;
}
