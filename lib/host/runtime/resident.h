/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_RESIDENT_H
#define SB_HOST_RESIDENT_H

#include <base/spawn.h>
#include <host/runtime/runtime.h>

/*
 * A helper that stays in a box and starts commands there when asked
 * (`lib/host/runtime/helper-wire.h`): leading into a box costs more than most commands do. The host
 * hands the command's descriptors to the helper, so output comes straight from the command. On the
 * host a small process stands for the command: it ends with the command's exit code, and the
 * command with it. The helper ends with the host. The host does not trust what the box says; a box
 * can only lie about its own commands.
 */
struct sb_resident {
	struct sb_child led; /* what leads into the box */
	int control;         /* -1: there is none */
};
#define SB_RESIDENT_INIT \
	{ \
		.led = SB_CHILD_INIT, .control = -1 \
	}

/*
 * `argv` leads into the box and starts the helper. SB_E_UNSUPPORTED: descriptors do not get through
 * to it.
 */
int sb_resident_start(struct sb_resident *s, const char *const *argv, struct sb_error *err);
void sb_resident_stop(struct sb_resident *s);

/*
 * Starts the command with `env`; `helper` is sb-box on the host, `user` who it is inside.
 * SB_E_CLOSED: the helper is gone and nothing was started.
 */
int sb_resident_call(struct sb_resident *s, const char *helper, const struct sb_runtime_cmd *cmd,
	uid_t user, const struct sb_strlist *env, const struct sb_spawn_opts *io,
	struct sb_child *out, struct sb_error *err);

#endif
