/* SPDX-License-Identifier: MIT */
/*
 * Listings of a machine without an agent: the first byte chooses the form (find -printf or stat).
 * What is accepted is a tree: a root, every path valid, once and in a directory that is listed
 * before it, in order, and found by its path.
 */
#include <string.h>

#include <base/path.h>
#include <sync/remote/agentless.h>

#include "fuzz.h"

static void
check_entry(const struct sb_agentless_list *l, size_t i)
{
	const struct sb_agentless_entry *e = &l->v[i], *up;
	const char *slash = strrchr(e->path, '/');
	sb_autofree char *dir = strndup(e->path, slash ? (size_t)(slash - e->path) : 0);

	FUZZ_CHECK(sb_path_check(e->path, strlen(e->path), NULL) >= 0);
	FUZZ_CHECK(strchr("fdlo", e->type) && e->mode <= 07777);
	FUZZ_CHECK((e->type == 'l') == (e->target != NULL));
	FUZZ_CHECK(sb_agentless_list_find(l, e->path) == e);
	if (!i)
		return;
	up = dir ? sb_agentless_list_find(l, dir) : NULL;
	FUZZ_CHECK(!dir || (up && up->type == 'd' && up < e));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list l = { 0 };
	struct sb_error err = { 0 };

	if (!size)
		return 0;
	if (sb_agentless_list_parse(data[0] & 1 ? "stat" : "printf", (const char *)data + 1,
		    size - 1, &l, &err) < 0) {
		FUZZ_CHECK(err.msg[0] != 0);
		return 0;
	}
	FUZZ_CHECK(l.n > 0 && l.v[0].path[0] == 0 && l.v[0].type == 'd');
	for (size_t i = 0; i < l.n; i++)
		check_entry(&l, i);
	return 0;
}
