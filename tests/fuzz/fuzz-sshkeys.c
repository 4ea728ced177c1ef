/* SPDX-License-Identifier: MIT */
/* A file of public keys: only a whole word of a line without options is ever found in it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/base64.h>
#include <compat/ssh/sshkeys.h>

#include "fuzz.h"

/* The first line is the key that is looked for, the rest is the file. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *nl = len ? memchr(data, '\n', len) : NULL;
	size_t n = nl ? (size_t)(nl - data) : len;
	const char *text = (const char *)data + (nl ? n + 1 : n);
	size_t text_len = len - (nl ? n + 1 : n);
	char *key = malloc(n + 1);
	unsigned bad;

	FUZZ_CHECK(key != NULL);
	memcpy(key, data, n);
	key[n] = '\0';
	if (sb_sshkeys_find(text, text_len, key, &bad)) {
		sb_auto(sb_buf) struct sb_buf raw;

		sb_buf_init(&raw, 1 << 20);
		FUZZ_CHECK(*key && memmem(text, text_len, key, strlen(key)) != NULL);
		FUZZ_CHECK(sb_base64_decode(key, strlen(key), &raw) && raw.len > 4);
	}
	FUZZ_CHECK(!sb_sshkeys_find(text, text_len, "", NULL));
	free(key);
	return 0;
}
