/* SPDX-License-Identifier: MIT */
/*
 * Decoding of lists of changes and applying them. The input is the compact form without its
 * checksum, which is put behind it here. What is accepted comes back the same when encoded again;
 * applied to a manifest it fits, which is then in order and differs from the old one by at most
 * that, or it is refused.
 */
#include <string.h>

#include <base/path.h>
#include <sync/tree/manifest.h>
#include <sync/tree/diff.h>

#include "fuzz.h"

static const struct sb_manifest_limits limits = { .max_entries = 100000,
	.max_depth = 50,
	.max_bytes = 1 << 20 };

static void
check_again(const struct sb_diff *d)
{
	struct sb_diff back = { 0 };
	struct sb_buf b;

	sb_buf_init(&b, 64 << 20);
	FUZZ_CHECK(sb_diff_encode(d, &b, NULL) == 0);
	FUZZ_CHECK(sb_diff_decode(b.data, b.len, NULL, &back, NULL) == 0);
	FUZZ_CHECK(back.n == d->n);
	for (size_t i = 0; i < d->n; i++) {
		const struct sb_change *x = &d->v[i], *y = &back.v[i];

		FUZZ_CHECK(strcmp(x->path, y->path) == 0 && x->del == y->del &&
			sb_path_check(x->path, strlen(x->path), NULL) == 0);
		FUZZ_CHECK(x->del ||
			(x->entry.type == y->entry.type && x->entry.mtime == y->entry.mtime));
		FUZZ_CHECK(!x->leader == !y->leader &&
			(!x->leader || strcmp(x->leader, y->leader) == 0));
	}
	sb_diff_free(&back);
	sb_buf_free(&b);
}

static struct sb_manifest *
sample(void)
{
	static const struct sb_entry dir = { .type = SB_ENTRY_DIR, .mode = 0755 };
	static const struct sb_entry file = { .type = SB_ENTRY_FILE,
		.mode = 0644,
		.digest.b = { 1 } };
	struct sb_manifest *m = sb_manifest_new(NULL);

	FUZZ_CHECK(m);
	FUZZ_CHECK(sb_manifest_put(m, "a", &dir, NULL, NULL));
	FUZZ_CHECK(sb_manifest_put(m, "a/b", &dir, NULL, NULL));
	FUZZ_CHECK(sb_manifest_put(m, "a/b/f", &file, NULL, NULL));
	FUZZ_CHECK(sb_manifest_put(m, "a/f", &file, NULL, NULL));
	FUZZ_CHECK(sb_manifest_put(m, "f", &file, NULL, NULL));
	FUZZ_CHECK(sb_manifest_set_link(m, sb_manifest_find(m, "a/f"), "a/f", NULL) == 0);
	FUZZ_CHECK(sb_manifest_set_link(m, sb_manifest_find(m, "f"), "a/f", NULL) == 0);
	FUZZ_CHECK(sb_manifest_finish(m, NULL) == 0);
	return m;
}

static void
check_apply(struct sb_manifest *m, const struct sb_diff *d)
{
	struct sb_manifest *before = sb_manifest_copy(m, NULL);
	struct sb_diff way = { 0 };

	FUZZ_CHECK(before);
	if (sb_diff_apply(m, d, NULL) == 0) {
		FUZZ_CHECK(sb_diff_make(before, m, &way, NULL) == 0);
		FUZZ_CHECK(sb_diff_apply(before, &way, NULL) == 0);
		FUZZ_CHECK(sb_digest_eq(&before->id, &m->id));
	}
	sb_diff_free(&way);
	sb_manifest_free(before);
	sb_manifest_free(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_diff d = { 0 };
	struct sb_buf b;

	sb_buf_init(&b, 64 << 20);
	sb_buf_add(&b, data, len);
	sb_buf_add_u64(&b, XXH3_64bits(data, len));
	if (sb_diff_decode(b.data, b.len, &limits, &d, NULL) == 0) {
		check_again(&d);
		check_apply(sb_manifest_new(NULL), &d);
		check_apply(sample(), &d);
	} else {
		FUZZ_CHECK(!d.v && !d.n && !d.arena);
	}
	sb_diff_free(&d);
	sb_buf_free(&b);
	return 0;
}
