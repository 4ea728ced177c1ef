/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/secret.h>

#include <string.h>

static bool
ends(const char *name, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && strncasecmp(name + len - n, with, n) == 0;
}

/* Is `word` at the front of the `left` bytes? An author is nobody's secret. */
static bool
starts(const char *at, size_t left, const char *word)
{
	size_t n = strlen(word);

	if (left < n || strncasecmp(at, word, n) != 0)
		return false;
	return strcmp(word, "AUTH") != 0 || !starts(at, left, "AUTHOR") ||
		starts(at, left, "AUTHORIZ");
}

bool
sb_secret_name_looks(const char *name, size_t len)
{
	static const char *const places[] = { "_FILE", "_PATH", "_DIR" };
	static const char *const words[] = { "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY",
		"PRIVATEKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH",
		"BEARER", "COOKIE", "SESSION" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (ends(name, len, places[i]))
			return false;
	for (size_t at = 0; at < len; at++)
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (starts(name + at, len - at, words[i]))
				return true;
	return ends(name, len, "_KEY");
}
