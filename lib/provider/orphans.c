/* SPDX-License-Identifier: MIT */
/* Containers that were made for sandboxes, whether or not somebody still knows them (sb/docker.h).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <docker/name.h>
#include <provider/dockerlink.h>
#include <provider/state-dir.h>

int
sb_orphans_list(const char *program, const char *state_dir, const struct sb_call *call,
	struct sb_strlist *out, struct sb_error *err)
{
	sb_autofree char *dir = state_dir ? strdup(state_dir) : sb_state_dir_default(err);
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	sb_auto(sb_engine) struct sb_engine e = { 0 };
	int r = sb_engine_open(program, &e, err);

	if (!dir)
		return SB_E_NOMEM;
	sb_strlist_addf(&labels, SB_DOCKERLINK_OWNER "=%u:%s/docker", (unsigned)geteuid(), dir);
	if (r == 0)
		r = sb_strlist_check(&labels, err);
	return r < 0 ?
		r :
		sb_engine_all(&e, sb_strlist_borrow(&labels), SB_LABEL_SANDBOX, call, out, err);
}

int
sb_orphans_remove(const char *program, const char *container, const struct sb_call *call,
	struct sb_error *err)
{
	sb_autofree char *volume = sb_str_printf("%s-work", container);
	sb_auto(sb_engine) struct sb_engine e = { 0 };
	int r = sb_engine_open(program, &e, err);

	if (r == 0 && (!volume || !sb_name_ok(container)))
		r = sb_fail(err, SB_E_INVAL, "'%s' is no name of a container", container);
	if (r == 0)
		r = sb_engine_remove(&e, container, call, err);
	return r < 0 ? r : sb_engine_remove_volume(&e, volume, call, err);
}
