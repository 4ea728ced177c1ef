/* SPDX-License-Identifier: MIT */
/*
 * The first byte chooses. Even: the rest is an encoded rule set; what decodes must
 * encode to the same bytes. Odd: the rest is a path, a newline and the text of an
 * ignore file; asked as a single path and step by step the answer must be the same.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <sync/scan/rules.h>

#include "fuzz.h"

static const char *const paths[] = { "a", "a/b", "a/b/c.o", "x/build/y",
	"aaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaa/aaaaaaab" };

static bool
excluded_by_walk(struct sb_rules *r, const char *path)
{
	const struct sb_rules_node *n = sb_rules_root(r);
	char part[512];
	size_t at = 0;

	for (;;) {
		size_t len = at + strcspn(path + at, "/");

		memcpy(part, path, len);
		part[len] = 0;
		if (!n || sb_rules_match(n, part, part + at, path[len] == '/'))
			return true;
		if (path[len] == 0)
			return false;
		n = sb_rules_enter(r, n, part);
		at = len + 1;
	}
}

static void
ask(struct sb_rules *r, const char *path)
{
	FUZZ_CHECK(sb_rules_excluded(r, path, false) == excluded_by_walk(r, path));
}

static void
decode_rules(const uint8_t *data, size_t size)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_decode(data, size, NULL);
	sb_auto(sb_buf) struct sb_buf again;

	sb_buf_init(&again, 64 << 20);
	if (!r)
		return;
	if (sb_rules_encode(r, &again, NULL) < 0)
		return;
	/*
	 * A varint from outside may be longer than it needs to be; nothing else may
	 * differ.
	 */
	FUZZ_CHECK(again.len < size || (again.len == size && memcmp(again.data, data, size) == 0));
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		ask(r, paths[i]);
}

static void
parse_rules(const char *data, size_t size)
{
	sb_auto(sb_rules) struct sb_rules *r = sb_rules_new(NULL);
	const char *nl = memchr(data, '\n', size);
	size_t len = nl ? (size_t)(nl - data) : size;
	char path[256];

	if (!r || len >= sizeof path)
		return;
	memcpy(path, data, len);
	path[len] = 0;
	data += len + (nl != NULL);
	size -= len + (nl != NULL);
	if (sb_rules_add_file(r, SB_RULES_GITIGNORE, "", data, size, NULL) < 0 ||
		sb_rules_add_file(r, SB_RULES_SBSYNCIGNORE, "a", data, size / 2, NULL) < 0)
		return;
	ask(r, path);
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		ask(r, paths[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2)
		parse_rules((const char *)data + 1, size - 1);
	else
		decode_rules(data + 1, size - 1);
	return 0;
}
