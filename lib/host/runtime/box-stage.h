/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_STAGE_H
#define SB_HOST_BOX_STAGE_H

#include <base/strlist.h>
#include <host/runtime/box.h>

/*
 * What a box shows of the host, for who may not search the host's directories: the user that the
 * box belongs to. `sb-box place` binds each file to a name that everybody may reach, in a mount
 * namespace of its own. A box that belongs to the host's own user needs none of it.
 */
struct sb_box_stage {
	const char *dir; /* NULL: none is needed */
	uid_t owner;     /* 0: the host's own user */
	struct sb_strlist from;
	size_t work; /* one behind the number of the workspace */
	char path[64];
};

/* Who the box of `cmd` belongs to, and where its files will be. */
int sb_box_stage_begin(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd,
	struct sb_box_stage *out, struct sb_error *err);
/* The name by which the box's maker finds `from`; good until the next one. */
const char *sb_box_stage_add(struct sb_box_stage *s, const char *from);
/* The same for the workspace: its set-id bits and devices mean nothing there. */
const char *sb_box_stage_add_work(struct sb_box_stage *s, const char *from);
/* Adds `sb-box place` with everything, also the groups of the box, up to the program. */
void sb_box_stage_argv(const struct sb_box_runtime *b, const struct sb_box *box,
	const struct sb_box_stage *s, struct sb_strlist *l);
void sb_box_stage_free(struct sb_box_stage *s);
SB_CLEANUP_VALUE(sb_box_stage, sb_box_stage_free)

#endif
