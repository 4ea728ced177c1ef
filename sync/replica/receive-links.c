/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/receive-links.h>

#include <stdlib.h>

struct links_work {
	struct sb_manifest *m;
	bool *touched; /* by group */
	bool any;
};

/* Something is done to this name, or to the file that it is. */
static void
touch(struct links_work *w, const char *path)
{
	struct sb_entry *e = path ? sb_manifest_find(w->m, path) : NULL;

	if (!e || e->type != SB_ENTRY_FILE)
		return;
	e->ctime = 0;
	if (e->link) {
		w->touched[e->link - 1] = true;
		w->any = true;
	}
}

static int
forget(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct links_work *w = arg;

	(void)path;
	(void)len;
	if (e->type == SB_ENTRY_FILE && e->link && w->touched[e->link - 1])
		e->ctime = 0;
	return 0;
}

int
sb_receive_links_forget(const struct sb_journal *ops, struct sb_manifest *m, struct sb_error *err)
{
	struct links_work w = { .m = m };
	int r = 0;

	w.touched = calloc((size_t)m->n_leaders + 1, sizeof *w.touched);
	if (!w.touched)
		return sb_fail(err, SB_E_NOMEM, "commit: out of memory");
	for (size_t i = 0; i < ops->n; i++) {
		const struct sb_op *op = &ops->v[i];

		/* What a new name was given to has one more now, linked before or not. */
		if (op->kind == SB_OP_LINK)
			touch(&w, op->from);
		if (!m->n_leaders || op->kind == SB_OP_DIRMETA)
			continue;
		touch(&w, op->path);
		if (op->kind == SB_OP_MOVE)
			touch(&w, op->from);
	}
	if (w.any)
		r = sb_manifest_walk(m, forget, &w);
	free(w.touched);
	return r;
}
