/* SPDX-License-Identifier: MIT */
/* Calls the members of a launcher, after what is common to all (declared in sb/launcher.h). */
#include "config.h"

#include <sb/launcher.h>

int
sb_launcher_launch(struct sb_launcher *l, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err)
{
	int r = sb_call_check(call, "launch", err);

	if (r < 0)
		return r;
	if (!(spec->argv && spec->argv[0]) && !(spec->command && spec->command[0]))
		return sb_fail(err, SB_E_INVAL, "launch: no command is given");
	return l->ops->launch(l, spec, call, out, err);
}

void
sb_launcher_free(struct sb_launcher *l)
{
	if (l)
		l->ops->free(l);
}
