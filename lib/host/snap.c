/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/snap.h>

#include <stdlib.h>
#include <string.h>

struct sb_snap *
sb_snap_new(const char *name, enum sb_host_snap_kind kind, struct sb_error *err)
{
	struct sb_snap *snap = calloc(1, sizeof *snap);

	if (snap)
		snap->name = strdup(name);
	if (!snap || !snap->name) {
		free(snap);
		(void)sb_fail(err, SB_E_NOMEM, "snapshot %s", name);
		return NULL;
	}
	snap->kind = kind;
	return snap;
}

void
sb_snap_free(struct sb_snap *snap)
{
	if (!snap)
		return;
	for (size_t i = 0; i < snap->n_holds; i++)
		free(snap->holds[i].tag);
	free(snap->holds);
	free(snap->name);
	free(snap);
}

int
sb_snap_hold_add(struct sb_snap *snap, const char *tag, enum sb_intent intent, struct sb_error *err)
{
	struct sb_hold *v = reallocarray(snap->holds, snap->n_holds + 1, sizeof *v);
	char *copy = strdup(tag);

	if (v)
		snap->holds = v;
	if (!v || !copy) {
		free(copy);
		return sb_fail(err, SB_E_NOMEM, "hold %s", tag);
	}
	v[snap->n_holds++] = (struct sb_hold){ .tag = copy, .intent = intent };
	return 0;
}

struct sb_hold *
sb_snap_hold_find(const struct sb_snap *snap, const char *tag)
{
	for (size_t i = 0; i < snap->n_holds; i++)
		if (strcmp(snap->holds[i].tag, tag) == 0)
			return &snap->holds[i];
	return NULL;
}

void
sb_snap_hold_drop(struct sb_snap *snap, struct sb_hold *hold)
{
	size_t i = (size_t)(hold - snap->holds);

	free(hold->tag);
	snap->n_holds--;
	memmove(snap->holds + i, snap->holds + i + 1, (snap->n_holds - i) * sizeof *hold);
}

unsigned
sb_snap_holds(const struct sb_snap *snap)
{
	unsigned n = 0;

	for (size_t i = 0; i < snap->n_holds; i++)
		n += snap->holds[i].intent != SB_INTENT_REMOVE;
	return n;
}
