/* SPDX-License-Identifier: MIT */
/*
 * Decoding of manifests, whole and of a subtree. The input is the compact form without its
 * checksum, which is put behind it here. What is accepted must keep the rules of a manifest, and
 * must come back the same when encoded again.
 */
#include <string.h>

#include <base/path.h>
#include <sync/tree/manifest.h>

#include "fuzz.h"

static const struct sb_manifest_limits limits = { .max_entries = 100000,
	.max_depth = 50,
	.max_bytes = 1 << 20 };

static int
check_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	const struct sb_manifest *m = arg;

	FUZZ_CHECK(sb_path_check(path, len, NULL) == 0 && strlen(path) == len);
	FUZZ_CHECK(sb_manifest_find(m, path) == e);
	FUZZ_CHECK(e->mode <= 07777 && e->link <= m->n_leaders);
	FUZZ_CHECK(e->type == SB_ENTRY_FILE || !e->link);
	FUZZ_CHECK(sb_digest_known(&e->digest) || (e->flags & SB_ENTRY_UNHASHED));
	if (e->type == SB_ENTRY_LINK)
		FUZZ_CHECK(strlen(sb_entry_target(e)) == e->size && e->size <= 4095);
	if (e->type == SB_ENTRY_DIR) {
		for (uint32_t i = 1; i < e->dir->n; i++)
			FUZZ_CHECK(
				strcmp(e->dir->entries[i - 1].name, e->dir->entries[i].name) < 0);
	}
	return 0;
}

static void
check_whole(struct sb_manifest *m, bool stat)
{
	struct sb_manifest *back, *copy;
	struct sb_buf b;

	for (uint32_t i = 0; i < m->n_leaders; i++)
		FUZZ_CHECK(sb_manifest_find(m, m->leaders[i])->link == i + 1);
	sb_buf_init(&b, 64 << 20);
	FUZZ_CHECK(sb_manifest_encode(m, stat, &b, NULL) == 0);
	back = sb_manifest_decode(b.data, b.len, NULL, NULL);
	FUZZ_CHECK(back && sb_digest_eq(&back->id, &m->id) && back->count == m->count);
	copy = sb_manifest_copy(m, NULL);
	FUZZ_CHECK(copy && sb_manifest_finish(copy, NULL) == 0 && sb_digest_eq(&copy->id, &m->id));
	sb_manifest_free(back);
	sb_manifest_free(copy);
	sb_buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_manifest *whole, *part;
	struct sb_buf b;

	sb_buf_init(&b, 64 << 20);
	sb_buf_add(&b, data, len);
	sb_buf_add_u64(&b, XXH3_64bits(data, len));
	whole = sb_manifest_decode(b.data, b.len, &limits, NULL);
	part = sb_manifest_decode_dir(b.data, b.len, &limits, NULL);
	FUZZ_CHECK(!whole || !part);
	if (whole) {
		FUZZ_CHECK(whole->count <= limits.max_entries);
		FUZZ_CHECK(sb_manifest_walk(whole, check_entry, whole) == 0);
		check_whole(whole, false);
		check_whole(whole, true);
	}
	if (part)
		FUZZ_CHECK(sb_manifest_walk(part, check_entry, part) == 0);
	sb_manifest_free(whole);
	sb_manifest_free(part);
	sb_buf_free(&b);
	return 0;
}
