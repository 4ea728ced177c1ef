/* SPDX-License-Identifier: MIT */
/*
 * What zfs prints about files that a session named: lines, fields and escapes stay within the text,
 * and unescaping never makes a text longer.
 */
#include <string.h>

#include <host/storage/zfs.h>

#include "fuzz.h"

static int
on_line(char **field, size_t n, void *arg, struct sb_error *err)
{
	uint64_t size;
	double share;

	(void)arg;
	(void)err;
	FUZZ_CHECK(n >= 1 && n <= 4);
	for (size_t i = 0; i < n; i++) {
		size_t before = strlen(field[i]);

		if (sb_zfs_parse_percent(field[i], &share))
			FUZZ_CHECK(share <= 1e18);
		(void)sb_zfs_parse_size(field[i], &size);
		sb_zfs_unescape(field[i]);
		FUZZ_CHECK(strlen(field[i]) <= before);
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	FUZZ_CHECK(text);
	memcpy(text, data, len);
	text[len] = '\0';
	FUZZ_CHECK(sb_zfs_classify(1, text) < 0);
	(void)sb_zfs_lines(text, 4, on_line, NULL, NULL);
	free(text);
	return 0;
}
