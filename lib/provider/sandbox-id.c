/* SPDX-License-Identifier: MIT */
/* The ids of sandboxes (declared in sb/state.h). */
#include "config.h"

#include <sb/state.h>

#include <stdio.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>

bool
sb_sandbox_id_ok(const char *id)
{
	size_t n = id ? strlen(id) : 0;

	return n > 0 && n <= SB_SANDBOX_ID_MAX && id[0] != '.' && id[0] != '-' &&
		strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		n;
}

int
sb_sandbox_id_new(char out[SB_SANDBOX_ID_MAX + 1], struct sb_error *err)
{
	uint8_t raw[8];
	char hex[17];
	int r = sb_random(raw, sizeof raw, err);

	if (r == 0)
		(void)snprintf(out, SB_SANDBOX_ID_MAX + 1, "sb-%s",
			sb_str_hex(raw, sizeof raw, hex));
	return r;
}
