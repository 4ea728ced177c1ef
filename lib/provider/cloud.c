/* SPDX-License-Identifier: MIT */
/* What backends in clouds have beside a provider's members (declared in sb/cloud.h). */
#include "config.h"

#include <sb/cloud.h>

#include <provider/e2blink.h>

int
sb_cloud_e2b_attach(const char *const *options, const char *id, const char *command,
	const int fds[3], const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_error own = { 0 };
	sb_auto(sb_e2blink) struct sb_e2blink *l = sb_e2blink_open(options, NULL, err ? err : &own);

	if (!l)
		return err ? err->code : own.code;
	return sb_e2blink_attach(l, id, command, fds, cancel, err);
}
