/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <session/keeper.h>

#include <string.h>

/* Shorter values would blot out ordinary text and hide nothing. */
#define VALUE_MIN 4

void
sb_secret_redact(char *text, const char *const *secrets)
{
	for (size_t i = 0; secrets && secrets[i]; i++) {
		const char *value = strchr(secrets[i], '=');
		size_t len = value ? strlen(value + 1) : 0;
		char *at = text;

		if (len < VALUE_MIN)
			continue;
		while ((at = strstr(at, value + 1))) {
			memset(at, '*', len);
			at += len;
		}
	}
}
