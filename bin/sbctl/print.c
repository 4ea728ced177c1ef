/* SPDX-License-Identifier: MIT */
/* Small things that several verbs print with. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
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

json_t *
ctl_json_text(const char *s)
{
	json_t *j = json_string(s);
	size_t len = strlen(s);
	sb_autofree char *hex = j ? NULL : malloc(2 * len + 1);

	if (hex)
		j = json_pack("{s:s}", "hex", sb_str_hex((const uint8_t *)s, len, hex));
	return j;
}
