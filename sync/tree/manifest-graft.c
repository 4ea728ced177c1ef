/* SPDX-License-Identifier: MIT */
/* Copies a part of one manifest into another. */
#include "config.h"

#include <sync/tree/manifest.h>

struct graft {
	struct sb_manifest *to;
	bool bare;
	struct sb_error *err;
};

static int
graft_one(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct graft *g = arg;
	struct sb_entry copy = *e;

	(void)len;
	copy.link = 0;
	if (g->bare) {
		copy.ino = 0;
		copy.ctime = 0;
		copy.flags = 0;
	}
	return sb_manifest_put(g->to, path, &copy,
		       e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL, g->err) ?
		0 :
		SB_E_NOMEM;
}

int
sb_manifest_graft_dir(struct sb_manifest *m, const char *path, const struct sb_dir *d, bool bare,
	struct sb_error *err)
{
	struct graft g = { .to = m, .bare = bare, .err = err };

	return sb_manifest_walk_dir(d, path, graft_one, &g);
}

int
sb_manifest_graft(struct sb_manifest *m, const char *path, const struct sb_entry *e,
	struct sb_error *err)
{
	struct graft g = { .to = m, .err = err };
	int r;

	(void)sb_manifest_remove(m, path);
	r = graft_one(path, strlen(path), (struct sb_entry *)(uintptr_t)e, &g);
	return r < 0 || e->type != SB_ENTRY_DIR ? r :
						  sb_manifest_walk_dir(e->dir, path, graft_one, &g);
}
