/* SPDX-License-Identifier: MIT */
/* Opens the keeper of a state directory (declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/str.h>
#include <provider/state-dir.h>

struct sb_keeper *
sb_keeper_new(const struct sb_keeper_opts *o, struct sb_error *err)
{
	struct sb_keeper *k = calloc(1, sizeof *k);
	sb_autoclose int fd = -1;

	if (!k) {
		(void)sb_fail(err, SB_E_NOMEM, "keeper: out of memory");
		return NULL;
	}
	k->registry = o->registry;
	k->on_event = o->on_event;
	k->event_arg = o->event_arg;
	k->hooks = o->hooks;
	k->n_hooks = o->n_hooks;
	k->log = o->log;
	k->state_dir = o->state_dir ? strdup(o->state_dir) : sb_state_dir_default(err);
	k->dir = k->state_dir ? sb_str_printf("%s/sandboxes", k->state_dir) : NULL;
	if (!k->dir) {
		if (k->state_dir || o->state_dir)
			(void)sb_fail(err, SB_E_NOMEM, "keeper: out of memory");
		sb_keeper_free(k);
		return NULL;
	}
	fd = sb_owndir_open(k->state_dir, "sandboxes", true, err);
	if (fd < 0) {
		(void)sb_wrap(err, err ? err->code : SB_E_SYS, "state of sandboxes");
		sb_keeper_free(k);
		return NULL;
	}
	return k;
}

void
sb_keeper_free(struct sb_keeper *k)
{
	if (!k)
		return;
	free(k->dir);
	free(k->state_dir);
	free(k);
}
