/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/work.h>

static _Thread_local const struct sb_cancel *token;

const struct sb_cancel *
sb_work_under(const struct sb_cancel *c)
{
	const struct sb_cancel *before = token;

	token = c;
	return before;
}

int
sb_work_alive(struct sb_error *err)
{
	return sb_cancel_requested(token) ? sb_fail(err, SB_E_CANCELED, "canceled") : 0;
}
