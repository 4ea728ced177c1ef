/* SPDX-License-Identifier: MIT */
/*
 * The difference of two manifests: applying it leads from one to the other, and a damaged one is
 * refused.
 */
#include "tests/lib/unit.h"

#include <sync/tree/manifest.h>
#include <sync/tree/diff.h>

#include "tests/lib/randtree.h"

#define ROUNDS 500

static void
check_way(const struct sb_manifest *a, const struct sb_manifest *b)
{
	struct sb_error err = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 }, back = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_copy(a, &err);
	sb_auto(sb_buf) struct sb_buf buf;

	sb_buf_init(&buf, 1 << 24);
	assert_non_null(m);
	assert_ok(sb_diff_make(a, b, &d, &err), &err);
	if (sb_digest_eq(&a->id, &b->id))
		assert_int_equal(d.n, 0);
	else
		assert_true(d.n > 0);
	assert_ok(sb_diff_encode(&d, &buf, &err), &err);
	assert_ok(sb_diff_decode(buf.data, buf.len, NULL, &back, &err), &err);
	assert_int_equal(back.n, d.n);
	assert_ok(sb_diff_apply(m, &back, &err), &err);
	assert_same_tree(m, b, false);
}

static void
applying_the_difference_leads_there(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < ROUNDS; seed++) {
		uint64_t s = seed;
		struct sb_error err = { 0 };
		sb_auto(sb_manifest) struct sb_manifest *a =
			random_tree(&s, (unsigned)rnd_below(&s, 150));
		sb_auto(sb_manifest) struct sb_manifest *b = sb_manifest_copy(a, &err);
		sb_auto(sb_manifest) struct sb_manifest *other =
			random_tree(&s, (unsigned)rnd_below(&s, 150));

		assert_non_null(b);
		for (uint64_t i = rnd_below(&s, 12); i > 0; i--)
			mutate(b, &s);
		assert_ok(sb_manifest_finish(b, &err), &err);
		check_way(a, b);
		check_way(b, a);
		check_way(a, other);
		check_way(other, b);
		check_way(a, a);
	}
}

static const struct sb_entry a_dir = { .type = SB_ENTRY_DIR, .mode = 0755 };
static const struct sb_entry a_file = {
	.type = SB_ENTRY_FILE, .mode = 0644, .size = 1, .digest.b = { 1 }
};

static void
add(struct sb_diff *d, const char *path, const struct sb_entry *e)
{
	struct sb_error err = { 0 };

	assert_ok(sb_diff_add(d, path, !e, e, NULL, NULL, &err), &err);
}

static void
changes_are_few_and_in_order(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *a = sb_manifest_new(&err),
						*b = sb_manifest_new(&err);
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_buf) struct sb_buf text;

	(void)state;
	sb_buf_init(&text, 4096);
	assert_non_null(sb_manifest_put(a, "gone", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(a, "gone/x", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(a, "kind", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(a, "kind/x", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(a, "same", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(a, "same/x", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(b, "kind", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(b, "same", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(b, "same/x", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(b, "n", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(b, "n/x", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(b, "n!", &a_file, NULL, &err));
	assert_ok(sb_manifest_finish(a, &err), &err);
	assert_ok(sb_manifest_finish(b, &err), &err);
	assert_ok(sb_diff_make(a, b, &d, &err), &err);
	for (size_t i = 0; i < d.n; i++)
		sb_buf_addf(&text, "%c%s;", d.v[i].del ? '-' : '+', d.v[i].path);
	assert_string_equal((char *)text.data, "-gone;-kind;+kind;+n;+n/x;+n!;");
	assert_string_equal(d.v[4].entry.name, "x");
	assert_null(d.v[3].entry.dir);
}

/* Only the leader's going changes the group of the others; each of them is a change then. */
static void
a_new_leader_is_a_change_of_all_members(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *a = sb_manifest_new(&err), *b = NULL;
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	static const char *const names[] = { "a", "d", "d/b", "d/c", "e" };

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct sb_entry *e =
			sb_manifest_put(a, names[i], i == 1 ? &a_dir : &a_file, NULL, &err);

		assert_non_null(e);
		if (i != 1)
			assert_ok(sb_manifest_set_link(a, e, "a", &err), &err);
	}
	assert_ok(sb_manifest_finish(a, &err), &err);
	b = sb_manifest_copy(a, &err);
	assert_non_null(b);
	assert_true(sb_manifest_remove(b, "a"));
	assert_ok(sb_manifest_finish(b, &err), &err);
	assert_ok(sb_diff_make(a, b, &d, &err), &err);
	assert_int_equal(d.n, 4);
	assert_string_equal(d.v[1].path, "d/b");
	assert_string_equal(d.v[1].leader, "d/b");
	assert_string_equal(d.v[3].path, "e");
	assert_string_equal(d.v[3].leader, "d/b");
}

static int
apply_one(const char *path, const struct sb_entry *e, const char *path2, const struct sb_entry *e2)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_new(&err);
	sb_auto(sb_diff) struct sb_diff d = { 0 };

	assert_non_null(sb_manifest_put(m, "d", &a_dir, NULL, &err));
	assert_non_null(sb_manifest_put(m, "d/f", &a_file, NULL, &err));
	assert_non_null(sb_manifest_put(m, "f", &a_file, NULL, &err));
	add(&d, path, e);
	if (path2)
		add(&d, path2, e2);
	return sb_diff_apply(m, &d, &err);
}

static void
misfits_are_refused(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(apply_one("d", NULL, "d", &a_file), &err);
	assert_ok(apply_one("d/f", &a_file, "f", NULL), &err);
	assert_int_equal(apply_one("x", NULL, NULL, NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("x/y", &a_file, NULL, NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("f/y", &a_file, NULL, NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("d", &a_file, NULL, NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("f", &a_dir, NULL, NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("d", NULL, "d/f", &a_file), SB_E_CORRUPT);
	assert_int_equal(apply_one("f", NULL, "f", NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("f", &a_file, "f", &a_file), SB_E_CORRUPT);
	assert_int_equal(apply_one("f", &a_file, "d", NULL), SB_E_CORRUPT);
	assert_int_equal(apply_one("f", &a_file, "d/f", &a_file), SB_E_CORRUPT);
}

static int
decode_paths(const char *const *paths, const bool *del, unsigned n, struct sb_error *err)
{
	sb_auto(sb_diff) struct sb_diff d = { 0 }, back = { 0 };
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 1 << 16);
	for (unsigned i = 0; i < n; i++)
		add(&d, paths[i], del[i] ? NULL : &a_file);
	assert_ok(sb_diff_encode(&d, &b, err), err);
	return sb_diff_decode(b.data, b.len, NULL, &back, err);
}

static void
order_and_paths_are_checked(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
#define PATHS(a, da, b, db) \
	decode_paths((const char *const[]){ a, b }, (const bool[]){ da, db }, 2, &err)
	assert_ok(PATHS("a", 0, "b", 0), &err);
	assert_ok(PATHS("a", 1, "a", 0), &err);
	assert_ok(PATHS("a/b", 0, "a!", 0), &err);
	assert_ok(PATHS("a", 0, "a/b", 0), &err);
	assert_ok(PATHS("a/\xff", 0, "a\001", 0), &err);
	assert_fails(PATHS("a!", 0, "a/b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a", 0, "a", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a", 0, "a", 1), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a", 1, "a", 1), SB_E_CORRUPT, &err);
	assert_fails(PATHS("b", 0, "a", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a/b", 0, "a", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("../a", 0, "b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("", 0, "b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("/a", 0, "b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a//c", 0, "b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a/", 0, "b", 0), SB_E_CORRUPT, &err);
	assert_fails(PATHS("a/.", 0, "b", 0), SB_E_CORRUPT, &err);
#undef PATHS
}

static void
damage_is_found(void **state)
{
	uint64_t s = 11;
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *a = random_tree(&s, 80), *b = random_tree(&s, 80);
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_buf) struct sb_buf buf;
	unsigned refused = 0;

	(void)state;
	sb_buf_init(&buf, 1 << 20);
	assert_ok(sb_diff_make(a, b, &d, &err), &err);
	assert_ok(sb_diff_encode(&d, &buf, &err), &err);
	for (size_t i = 0; i < buf.len; i++) {
		sb_auto(sb_diff) struct sb_diff x = { 0 }, y = { 0 }, z = { 0 };
		uint8_t was = buf.data[i];
		uint64_t sum;

		assert_fails(sb_diff_decode(buf.data, i, NULL, &x, &err), SB_E_CORRUPT, &err);
		buf.data[i] ^= (uint8_t)(1u << rnd_below(&s, 8));
		assert_true(sb_diff_decode(buf.data, buf.len, NULL, &y, &err) < 0);
		sum = XXH3_64bits(buf.data, buf.len - 8);
		buf.len -= 8;
		sb_buf_add_u64(&buf, sum);
		refused += sb_diff_decode(buf.data, buf.len, NULL, &z, &err) < 0;
		if (i < buf.len - 8)
			buf.data[i] = was;
		sum = XXH3_64bits(buf.data, buf.len - 8);
		buf.len -= 8;
		sb_buf_add_u64(&buf, sum);
	}
	assert_true(refused > 20);
}

static void
limits_are_kept(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 }, back = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_manifest_limits l = SB_MANIFEST_LIMITS_INIT;

	(void)state;
	sb_buf_init(&b, 1 << 16);
	add(&d, "a", &a_dir);
	add(&d, "a/b", &a_dir);
	add(&d, "a/b/c", &a_file);
	assert_ok(sb_diff_encode(&d, &b, &err), &err);
	l.max_depth = 2;
	assert_fails(sb_diff_decode(b.data, b.len, &l, &back, &err), SB_E_LIMIT, &err);
	l.max_depth = 3;
	l.max_entries = 2;
	assert_fails(sb_diff_decode(b.data, b.len, &l, &back, &err), SB_E_LIMIT, &err);
	l.max_entries = 3;
	l.max_bytes = b.len - 1;
	assert_fails(sb_diff_decode(b.data, b.len, &l, &back, &err), SB_E_LIMIT, &err);
	l.max_bytes++;
	assert_ok(sb_diff_decode(b.data, b.len, &l, &back, &err), &err);
}

/* A list whose paths share nearly all of a long prefix: small to send, huge in memory. */
static void
a_path_bomb_is_refused(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_diff) struct sb_diff back = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_manifest_limits l = SB_MANIFEST_LIMITS_INIT;
	const unsigned n = 2000;
	size_t len = 0;

	(void)state;
	l.max_depth = UINT32_MAX;
	sb_buf_init(&b, 1 << 24);
	sb_buf_add(&b, "SBDF\1", 5);
	sb_buf_add_varint(&b, n);
	sb_buf_add_u8(&b, 0);
	sb_buf_add_varint(&b, 0);
	sb_buf_add_varint(&b, 1 << 20);
	while (len < 1 << 20)
		len += 2, sb_buf_add(&b, "x/", 2);
	b.data[b.len - 1] = 'x';
	for (unsigned i = 1; i < n; i++) {
		sb_buf_add_u8(&b, 0);
		sb_buf_add_varint(&b, (1 << 20) - 2 + (i > 1 ? 2 * (i - 1) : 0) + 2);
		sb_buf_add_bytes(&b, "/x", 2);
	}
	sb_buf_add_u64(&b, XXH3_64bits(b.data, b.len));
	assert_fails(sb_diff_decode(b.data, b.len, &l, &back, &err), SB_E_LIMIT, &err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applying_the_difference_leads_there),
		cmocka_unit_test(changes_are_few_and_in_order),
		cmocka_unit_test(a_new_leader_is_a_change_of_all_members),
		cmocka_unit_test(misfits_are_refused),
		cmocka_unit_test(order_and_paths_are_checked),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(a_path_bomb_is_refused),
	};

	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
