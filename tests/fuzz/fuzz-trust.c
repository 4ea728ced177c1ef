/* SPDX-License-Identifier: MIT */
/* Records of consent. What is accepted is written again as the same bytes. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <provider/trust.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_trust_entry e = { 0 };
	char *text = NULL;
	int n;

	if (!sb_trust_parse((const char *)data, len, &e))
		return 0;
	n = asprintf(&text, "%s\n%lld\n%s", e.digest, (long long)e.at_s, e.file);
	FUZZ_CHECK(n > 0 && (size_t)n == len && memcmp(text, data, len) == 0);
	FUZZ_CHECK(e.file[0] == '/' && strlen(e.digest) == 64);
	free(text);
	free(e.file);
	return 0;
}
