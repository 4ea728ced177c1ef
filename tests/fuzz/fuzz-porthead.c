/* SPDX-License-Identifier: MIT */
/* The head that clients of an exposed port send: read the same whole and in pieces. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <host/porthead.h>

#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	char all[SB_PORTHEAD_MAX], part[SB_PORTHEAD_MAX];
	size_t used = 0, n = 0;
	int r, k = 0;

	FUZZ_CHECK(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	r = sb_porthead_read(copy, size, &used, all);
	FUZZ_CHECK(r >= -1 && r <= 1);
	FUZZ_CHECK(r < 1 || (used <= size && used <= SB_PORTHEAD_MAX && *all));
	FUZZ_CHECK(r < 1 || memcmp(copy + used - 4, "\r\n\r\n", 4) == 0);
	for (size_t i = 0; i <= size && k == 0; i++) {
		/* The end of the piece is the end of what may be read. */
		char *piece = malloc(i + 1);

		FUZZ_CHECK(piece != NULL);
		memcpy(piece, copy, i);
		k = sb_porthead_read(piece, i, &n, part);
		free(piece);
		if (i > 600)
			break;
	}
	FUZZ_CHECK(k == 0 || (k == r && (r < 1 || (n == used && strcmp(all, part) == 0))));
	free(copy);
	return 0;
}
