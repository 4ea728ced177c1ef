/* SPDX-License-Identifier: MIT */
/* What a terminal of a tool host printed (declared in sb/toolhost.h). */
#include "config.h"

#include <sb/toolhost.h>

#include <stdlib.h>

void
sb_terminal_output_free(struct sb_terminal_output *o)
{
	free(o->text);
	*o = (struct sb_terminal_output){ 0 };
}
