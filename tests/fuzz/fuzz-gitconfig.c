/* SPDX-License-Identifier: MIT */
/*
 * git's configuration files, and what the guard takes from them: names are lower case and bounded,
 * no text is longer than what was read, lists keep their limit.
 */
#include <ctype.h>
#include <string.h>

#include <sync/plan/guard-config.h>
#include <sync/scan/gitconfig.h>

#include "fuzz.h"

static int
look(const struct sb_gitconfig_var *v, void *arg)
{
	size_t len = *(size_t *)arg;

	FUZZ_CHECK(*v->section && *v->name && strlen(v->section) < 1024 && strlen(v->name) < 1024);
	FUZZ_CHECK(strlen(v->section) + strlen(v->name) <= len);
	for (const char *p = v->name; *p; p++)
		FUZZ_CHECK(
			*p == '-' || (isalnum((unsigned char)*p) && !isupper((unsigned char)*p)));
	FUZZ_CHECK(!v->value || strlen(v->value) <= len);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_guard_config) struct sb_guard_config c = { 0 };

	FUZZ_CHECK(sb_gitconfig_read((const char *)data, len, look, &len, NULL) == 0);
	FUZZ_CHECK(sb_guard_config_read(&c, (const char *)data, len, NULL) == 0);
	FUZZ_CHECK(c.includes.n + c.hooks.n + c.words.n + c.tops.n <= 4096);
	for (size_t i = 0; i < c.words.n; i++)
		FUZZ_CHECK(*c.words.v[i] && *c.words.v[i] != '-' && !strchr(c.words.v[i], ' '));
	return 0;
}
