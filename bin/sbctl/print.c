/* SPDX-License-Identifier: MIT */
/* Small things that several verbs print with. */
#include "config.h"

#include <string.h>

#include <bin/sbctl/ctl.h>

void
ctl_print_json(const json_t *j, FILE *f)
{
	(void)json_dumpf(j, f, JSON_INDENT(2));
	(void)fputc('\n', f);
}

const char *
ctl_safe(const char *s, char *buf)
{
	return sb_escape(s ? s : "", s ? strlen(s) : 0, buf, CTL_SHOWN);
}
