/* SPDX-License-Identifier: MIT */
/* git's index: paths have their length and no NUL, names of shared indexes are hex digits. */
#include <string.h>

#include <sync/scan/gitindex.h>

#include "fuzz.h"

static int
look(const struct sb_gitindex_entry *e, void *arg)
{
	size_t *n = arg;

	FUZZ_CHECK(e->len > 0 && e->len < 4097 && strlen(e->path) == e->len);
	FUZZ_CHECK(e->path[e->len - 1] != '/');
	return ++*n > 1000000 ? -1 : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char shared[65];
	size_t n = 0;

	for (size_t hash = 20; hash <= 32; hash += 12) {
		n = 0;
		(void)sb_gitindex_read(data, len, hash, look, &n, shared, NULL);
		FUZZ_CHECK(n <= len / (42 + hash));
		FUZZ_CHECK(strspn(shared, "0123456789abcdef") == strlen(shared));
		FUZZ_CHECK(!shared[0] || strlen(shared) == hash * 2);
	}
	return 0;
}
