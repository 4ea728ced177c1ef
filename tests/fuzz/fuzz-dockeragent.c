/* SPDX-License-Identifier: MIT */
/*
 * An agent's file. Every name that it asks for may stand in a command line and in an environment,
 * and stands in each of the two groups once.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include <base/strlist.h>
#include <sb/docker.h>

#include "fuzz.h"

static const char *
nothing(const char *name, void *arg)
{
	(void)name;
	(void)arg;
	return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	struct sb_error err = { 0 };
	int r = sb_docker_agent_parse((const char *)data, size, nothing, NULL, &names, &err);

	FUZZ_CHECK(r == 0 || (r == SB_E_INVAL && names.n == 0 && err.msg[0]));
	for (size_t i = 0; i < names.n; i++) {
		const char *p = names.v[i];

		FUZZ_CHECK(*p && !isdigit((unsigned char)*p));
		FUZZ_CHECK(strspn(p,
				   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				   "0123456789") == strlen(p));
		FUZZ_CHECK(i == 0 || strcmp(p, names.v[i - 1]) != 0);
	}
	return 0;
}
