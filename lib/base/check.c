/* SPDX-License-Identifier: MIT */
/* Whether a call may go on: neither cancelled nor past its deadline (declared in sb/cancel.h). */
#include "config.h"

#include <sb/cancel.h>

int
sb_check_alive(const struct sb_cancel *c, sb_deadline d, const char *what, struct sb_error *err)
{
	if (sb_cancel_requested(c))
		return sb_fail(err, SB_E_CANCELED, "%s: canceled", what);
	if (sb_deadline_passed(d))
		return sb_fail(err, SB_E_TIMEOUT, "%s: deadline passed", what);
	return 0;
}
