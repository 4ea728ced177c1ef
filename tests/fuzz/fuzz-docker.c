/* SPDX-License-Identifier: MIT */
/*
 * The list of sandboxes that sbx and docker sandbox print. Every name that is accepted may stand in
 * a command line; what is refused leaves nothing behind.
 */
#include "config.h"

#include <string.h>

#include <docker/name.h>
#include <sb/docker.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_docker_list l;
	struct sb_error err = { 0 };
	int r = sb_docker_list_parse((const char *)data, size, &l, &err);

	FUZZ_CHECK(r == 0 || (r == SB_E_PROTO && l.n == 0 && err.msg[0]));
	for (size_t i = 0; i < l.n; i++) {
		FUZZ_CHECK(l.v[i].name && sb_name_ok(l.v[i].name));
		if (l.v[i].workspaces.n)
			FUZZ_CHECK(sb_docker_sandbox_has(&l.v[i], l.v[i].workspaces.v[0]));
	}
	sb_docker_list_free(&l);
	return 0;
}
