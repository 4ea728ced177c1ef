/* SPDX-License-Identifier: MIT */
/*
 * Manifests: what is put is found, the id tells every visible change, and a damaged or hostile
 * encoding is refused.
 */
#include "tests/lib/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <base/file.h>
#include <sync/tree/manifest.h>

#include "tests/lib/randtree.h"
#include "tests/lib/tmpdir.h"

#define ROUNDS 300

static struct sb_entry
file_of(const char *content)
{
	return (struct sb_entry){ .type = SB_ENTRY_FILE,
		.mode = 0644,
		.mtime = 1000,
		.size = strlen(content),
		.digest = sb_digest_of(content, strlen(content)) };
}

static const struct sb_entry a_dir = { .type = SB_ENTRY_DIR, .mode = 0755, .mtime = 1000 };
static const struct sb_entry a_link = { .type = SB_ENTRY_LINK, .mode = 0777, .mtime = 1000 };

static struct sb_entry *
put(struct sb_manifest *m, const char *path, const struct sb_entry *e, const char *target)
{
	struct sb_error err = { 0 };
	struct sb_entry *at = sb_manifest_put(m, path, e, target, &err);

	if (!at)
		fail_msg("put %s: %s", path, err.msg);
	return at;
}

static struct sb_manifest *
sample(void)
{
	struct sb_error err = { 0 };
	struct sb_manifest *m = sb_manifest_new(&err);
	struct sb_entry f = file_of("hello");

	assert_non_null(m);
	put(m, "d", &a_dir, NULL);
	put(m, "d/f", &f, NULL);
	put(m, "d/e", &a_dir, NULL);
	put(m, "l", &a_link, "d/f");
	put(m, "a", &f, NULL);
	assert_ok(sb_manifest_finish(m, &err), &err);
	return m;
}

static struct sb_digest
id_of(struct sb_manifest *m)
{
	struct sb_error err = { 0 };

	assert_ok(sb_manifest_finish(m, &err), &err);
	return m->id;
}

static void
finds_what_was_put(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	struct sb_error err = { 0 };
	struct sb_entry f = file_of("x");

	(void)state;
	assert_int_equal(m->count, 5);
	assert_ptr_equal(sb_manifest_find(m, ""), &m->root);
	assert_string_equal(sb_manifest_find(m, "d/f")->name, "f");
	assert_string_equal(sb_entry_target(sb_manifest_find(m, "l")), "d/f");
	assert_int_equal(sb_manifest_find(m, "l")->size, 3);
	assert_null(sb_manifest_find(m, "d/g"));
	assert_null(sb_manifest_find(m, "a/b"));
	assert_null(sb_manifest_find(m, "dd"));
	assert_null(sb_manifest_put(m, "a/b", &f, NULL, &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
	assert_null(sb_manifest_put(m, "nowhere/b", &f, NULL, &err));
	assert_null(sb_manifest_put(m, "../b", &f, NULL, &err));
	assert_int_equal(err.code, SB_E_ESCAPE);
	assert_null(sb_manifest_put(m, "", &f, NULL, &err));
	assert_int_equal(err.code, SB_E_INVAL);
}

static void
put_keeps_children_of_a_directory_only(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	struct sb_entry f = file_of("x"), d = a_dir;

	(void)state;
	d.mode = 0700;
	assert_int_equal(put(m, "d", &d, NULL)->mode, 0700);
	assert_non_null(sb_manifest_find(m, "d/f"));
	put(m, "d", &f, NULL);
	assert_null(sb_manifest_find(m, "d/f"));
	put(m, "d", &d, NULL);
	assert_null(sb_manifest_find(m, "d/f"));
	put(m, "d", &a_link, "elsewhere");
	assert_string_equal(sb_entry_target(sb_manifest_find(m, "d")), "elsewhere");
	put(m, "", &d, NULL);
	assert_int_equal(m->root.mode, 0700);
	assert_non_null(sb_manifest_find(m, "a"));
}

static void
remove_takes_the_subtree(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();

	(void)state;
	assert_true(sb_manifest_remove(m, "d"));
	assert_null(sb_manifest_find(m, "d/f"));
	assert_false(sb_manifest_remove(m, "d"));
	assert_false(sb_manifest_remove(m, "d/f"));
	assert_false(sb_manifest_remove(m, ""));
	id_of(m);
	assert_int_equal(m->count, 2);
}

static int
note_path(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct sb_buf *b = arg;

	assert_int_equal(strlen(path), len);
	sb_buf_addf(b, "%s;", path);
	if (strcmp(path, "stop") == 0)
		return -99;
	return strcmp(e->name, "skip") == 0;
}

static void
walk_is_preorder_and_can_skip(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_entry f = file_of("x");

	(void)state;
	sb_buf_init(&b, 4096);
	put(m, "d!", &f, NULL);
	put(m, "d/skip", &a_dir, NULL);
	put(m, "d/skip/x", &f, NULL);
	assert_int_equal(sb_manifest_walk(m, note_path, &b), 0);
	assert_string_equal((char *)b.data, "a;d;d/e;d/f;d/skip;d!;l;");
	sb_buf_reset(&b);
	put(m, "stop", &f, NULL);
	assert_int_equal(sb_manifest_walk(m, note_path, &b), -99);
	sb_buf_reset(&b);
	assert_int_equal(sb_manifest_walk_dir(sb_manifest_find(m, "d")->dir, "p/q", note_path, &b),
		0);
	assert_string_equal((char *)b.data, "p/q/e;p/q/f;p/q/skip;");
}

static void
sameness_looks_at_the_right_fields(void **state)
{
	struct sb_entry a = file_of("x"), b = a, l = a_link, k;

	(void)state;
	assert_true(sb_entry_same(&a, &b));
	b.ino = 7;
	b.ctime = 8;
	assert_true(sb_entry_same(&a, &b));
	b.mode = 0600;
	assert_true(sb_entry_same_content(&a, &b));
	assert_false(sb_entry_same(&a, &b));
	b = a;
	b.mtime++;
	assert_false(sb_entry_same(&a, &b));
	b = a;
	b.flags = SB_ENTRY_UNHASHED;
	assert_false(sb_entry_same_content(&a, &b));
	assert_false(sb_entry_same_content(&b, &b));
	l.digest = sb_digest_of("t", 1);
	k = l;
	k.mode = 0;
	assert_true(sb_entry_same(&l, &k));
	assert_false(sb_entry_same_content(&a, &l));
	assert_true(sb_entry_same_content(&a_dir, &a_dir));
}

static void
id_tells_every_visible_change(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	struct sb_digest before = m->id, now;
	struct sb_entry *e = sb_manifest_find(m, "d/f"), was = *e, f = file_of("world");
	struct sb_error err = { 0 };

	(void)state;
#define CHANGES(change, undo) \
	do { \
		change; \
		now = id_of(m); \
		if (sb_digest_eq(&now, &before)) \
			fail_msg("%s is not in the id", #change); \
		undo; \
		now = id_of(m); \
		if (!sb_digest_eq(&now, &before)) \
			fail_msg("the id does not come back after %s", #change); \
	} while (0)
	CHANGES(e->mode = 0600, *e = was);
	CHANGES(e->mtime = -1, *e = was);
	CHANGES(e->size = 6, *e = was);
	CHANGES(e->digest = f.digest, *e = was);
	CHANGES(put(m, "d/e", &f, NULL), put(m, "d/e", &a_dir, NULL));
	CHANGES(put(m, "d/e/x", &f, NULL), sb_manifest_remove(m, "d/e/x"));
	CHANGES(put(m, "new", &a_dir, NULL), sb_manifest_remove(m, "new"));
	CHANGES(put(m, "l", &a_link, "d/g"), put(m, "l", &a_link, "d/f"));
	CHANGES(assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "d/f"), "a", &err), &err);
		assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "a"), "a", &err), &err),
		sb_manifest_find(m, "a")->link = sb_manifest_find(m, "d/f")->link = 0);
#undef CHANGES
}

static void
id_does_not_see_local_knowledge(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	struct sb_digest before = m->id, now;
	struct sb_entry *e = sb_manifest_find(m, "d/f");

	(void)state;
	e->ino = 5;
	e->ctime = 6;
	e->flags = SB_ENTRY_RACY | SB_ENTRY_MARK;
	sb_manifest_find(m, "d")->dir->dev = 9;
	sb_manifest_find(m, "l")->mode = 0;
	m->root.mtime = 77;
	m->root.mode = 0700;
	now = id_of(m);
	assert_memory_equal(now.b, before.b, 16);
}

static void
groups_are_put_in_order(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_new(&err);
	struct sb_entry f = file_of("x"), g = file_of("y");
	static const char *const names[] = { "c", "d", "a", "lone", "b" };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		put(m, names[i], &f, NULL);
	for (size_t i = 0; i < 5; i++)
		assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, names[i]),
				  i < 2          ? "d" :
					  i == 3 ? "lone" :
						   "b",
				  &err),
			&err);
	id_of(m);
	assert_int_equal(m->n_leaders, 2);
	assert_string_equal(m->leaders[0], "a");
	assert_string_equal(m->leaders[1], "c");
	assert_int_equal(sb_manifest_find(m, "lone")->link, 0);
	assert_int_equal(sb_manifest_find(m, "b")->link, 1);
	assert_int_equal(sb_manifest_find(m, "d")->link, 2);

	/* Links cannot differ in content; one that does leaves, and one alone is no group. */
	put(m, "d", &g, NULL);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "d"), "c", &err), &err);
	sb_manifest_remove(m, "a");
	put(m, "b2", &f, NULL);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "b2"), "a", &err), &err);
	id_of(m);
	assert_int_equal(m->n_leaders, 1);
	assert_string_equal(m->leaders[0], "b");
	assert_int_equal(sb_manifest_find(m, "c")->link, 0);
	assert_int_equal(sb_manifest_find(m, "d")->link, 0);
	assert_fails(sb_manifest_set_link(m, &m->root, "b", &err), SB_E_INVAL, &err);
}

static void
many_groups_are_found_quickly(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_new(&err);
	struct sb_entry f = file_of("x");
	char name[32], leader[32];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		(void)snprintf(name, sizeof name, "f%06u", i);
		(void)snprintf(leader, sizeof leader, "f%06u", i & ~1u);
		assert_ok(sb_manifest_set_link(m, put(m, name, &f, NULL), leader, &err), &err);
	}
	id_of(m);
	assert_int_equal(m->n_leaders, 10000);
	assert_string_equal(m->leaders[9999], "f019998");
}

static struct sb_manifest *
recode(const struct sb_manifest *m, bool stat)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_error err = { 0 };
	struct sb_manifest *back;

	sb_buf_init(&b, 1 << 24);
	assert_ok(sb_manifest_encode(m, stat, &b, &err), &err);
	back = sb_manifest_decode(b.data, b.len, NULL, &err);
	if (!back)
		fail_msg("decode: %s", err.msg);
	return back;
}

static void
decoding_gives_back_what_was_encoded(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < ROUNDS; seed++) {
		uint64_t s = seed;
		struct sb_error err = { 0 };
		sb_auto(sb_manifest) struct sb_manifest *m =
			random_tree(&s, (unsigned)rnd_below(&s, 120));
		sb_auto(sb_manifest) struct sb_manifest *copy = NULL, *wire = NULL, *disk = NULL;

		m->root.mtime = (int64_t)rnd(&s);
		m->root.dir->dev = 42;
		wire = recode(m, false);
		assert_same_tree(m, wire, false);
		assert_int_equal(wire->root.mtime, m->root.mtime);
		assert_int_equal(wire->root.dir->dev, 0);
		disk = recode(m, true);
		assert_same_tree(m, disk, true);
		copy = sb_manifest_copy(m, &err);
		assert_non_null(copy);
		assert_same_tree(m, copy, true);
		mutate(copy, &s);
		assert_same_tree(m, disk, true);
	}
}

static void
unhashed_files_travel(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	sb_auto(sb_manifest) struct sb_manifest *back = NULL;
	struct sb_entry *e = sb_manifest_find(m, "d/f");

	(void)state;
	e->flags = SB_ENTRY_UNHASHED;
	e->digest = (struct sb_digest){ 0 };
	id_of(m);
	back = recode(m, false);
	assert_int_equal(sb_manifest_find(back, "d/f")->flags, SB_ENTRY_UNHASHED);
	assert_int_equal(sb_manifest_find(back, "d/f")->size, 5);
	assert_int_equal(sb_manifest_find(back, "a")->flags, 0);
}

/* Puts a right checksum behind damaged bytes, so that the checks behind it are reached. */
static void
reseal(uint8_t *data, size_t len)
{
	uint64_t sum = XXH3_64bits(data, len - 8);

	for (unsigned i = 0; i < 8; i++)
		data[len - 8 + i] = (uint8_t)(sum >> (8 * i));
}

static void
damage_is_found(void **state)
{
	uint64_t s = 7;
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = random_tree(&s, 100);
	sb_auto(sb_buf) struct sb_buf b;
	unsigned refused = 0;

	(void)state;
	sb_buf_init(&b, 1 << 24);
	assert_ok(sb_manifest_encode(m, true, &b, &err), &err);
	for (size_t i = 0; i < b.len; i++) {
		sb_auto(sb_manifest) struct sb_manifest *x =
			sb_manifest_decode(b.data, i, NULL, &err);

		assert_null(x);
		assert_int_equal(err.code, SB_E_CORRUPT);
	}
	for (size_t i = 0; i < b.len; i++) {
		uint8_t was = b.data[i];
		sb_auto(sb_manifest) struct sb_manifest *x = NULL, *y = NULL;

		b.data[i] ^= (uint8_t)(1u << rnd_below(&s, 8));
		x = sb_manifest_decode(b.data, b.len, NULL, &err);
		assert_null(x);
		assert_true(err.code == SB_E_CORRUPT || err.code == SB_E_VERSION);
		reseal(b.data, b.len);
		y = sb_manifest_decode(b.data, b.len, NULL, &err);
		refused += !y;
		b.data[i] = was;
		reseal(b.data, b.len);
	}
	assert_true(refused > 20);
}

/*
 * A manifest of files in the root, made by hand: names as the column has them, the rest the same
 * for all.
 */
static int
decode_names(const char *names, size_t len, unsigned n, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_manifest *m;

	sb_buf_init(&b, 1 << 16);
	sb_buf_add(&b, "SBMT\1\0", 6);
	sb_buf_add_varint(&b, n);
	sb_buf_add_varint(&b, 1);
	sb_buf_add_varint(&b, 0);
	sb_buf_add_varint(&b, 0755);
	sb_buf_add_varint(&b, 0);
	sb_buf_add_u64(&b, 1);
	sb_buf_add_varint(&b, n);
	sb_buf_add_u64(&b, len);
	sb_buf_add(&b, names, len);
	sb_buf_add_u64(&b, n); /* kinds */
	for (unsigned i = 0; i < n; i++)
		sb_buf_add_u8(&b, SB_ENTRY_FILE | 1 << 3 | 1 << 5);
	sb_buf_add_u64(&b, 0);
	for (unsigned col = 0; col < 2; col++) { /* mtimes, sizes */
		sb_buf_add_u64(&b, n);
		for (unsigned i = 0; i < n; i++)
			sb_buf_add_u8(&b, 0);
	}
	for (unsigned col = 0; col < 4; col++)
		sb_buf_add_u64(&b, 0);
	sb_buf_add_u64(&b, 0);
	reseal(b.data, b.len);
	err->code = 0;
	m = sb_manifest_decode(b.data, b.len, NULL, err);
	sb_manifest_free(m);
	return err->code;
}

static void
names_are_checked(void **state)
{
	struct sb_error err = { 0 };
	char longest[260] = "\0\xff\1";

	(void)state;
#define NAMES(text, n) decode_names(text, sizeof text - 1, n, &err)
	assert_ok(NAMES("\0\1a\0\1b", 2), &err);
	assert_ok(NAMES("\0\1a\1\1b", 2), &err);
	assert_ok(NAMES("\0\1\x7f\0\1\x80", 2), &err);
	assert_ok(NAMES("\0\3...", 1), &err);
	assert_fails(NAMES("\0\1b\0\1a", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1\x80\0\1\x7f", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1a\0\1a", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1a\1\0", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\2ab\0\1a", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\1\1a", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1a\2\1b", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\0", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1.", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\2..", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1.\1\1.", 2), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\3a/b", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\3a\0b", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1a\0\1b", 1), SB_E_CORRUPT, &err);
	assert_fails(NAMES("\0\1a", 2), SB_E_CORRUPT, &err);
#undef NAMES
	memset(longest + 3, 'x', 255);
	assert_ok(decode_names(longest, 3 + 255, 1, &err), &err);
	longest[1] = (char)0x80; /* 256 bytes */
	longest[2] = 2;
	assert_fails(decode_names(longest, 3 + 256, 1, &err), SB_E_CORRUPT, &err);
}

/* What no finished manifest holds: a file linked to nothing, links that differ. */
static void
impossible_links_are_refused(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	for (int members = 1; members <= 2; members++) {
		sb_auto(sb_manifest) struct sb_manifest *m = sample();
		sb_auto(sb_buf) struct sb_buf b;

		sb_buf_init(&b, 1 << 16);
		assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "a"), "a", &err), &err);
		if (members == 2) {
			assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "d/f"), "a", &err),
				&err);
			sb_manifest_find(m, "d/f")->size++;
		}
		assert_ok(sb_manifest_encode(m, false, &b, &err), &err);
		assert_null(sb_manifest_decode(b.data, b.len, NULL, &err));
		assert_int_equal(err.code, SB_E_CORRUPT);
	}
}

static struct sb_manifest *
chain(unsigned depth)
{
	struct sb_error err = { 0 };
	struct sb_manifest *m = sb_manifest_new(&err);
	struct sb_dir *d = m->root.dir;
	struct sb_entry e = a_dir;

	/* Not by sb_manifest_put, which would look at 50 million components. */
	for (unsigned i = 0; i < depth; i++) {
		e.name = "x";
		e.dir = sb_manifest_alloc(m, sizeof *e.dir);
		*e.dir = (struct sb_dir){ 0 };
		d->entries = sb_manifest_alloc(m, sizeof e);
		d->entries[0] = e;
		d->n = d->cap = 1;
		d = e.dir;
	}
	assert_ok(sb_manifest_finish(m, &err), &err);
	return m;
}

static void
limits_are_kept(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = chain(20);
	sb_auto(sb_manifest) struct sb_manifest *ok = NULL;
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_manifest_limits l = SB_MANIFEST_LIMITS_INIT;

	(void)state;
	sb_buf_init(&b, 1 << 16);
	assert_ok(sb_manifest_encode(m, false, &b, &err), &err);
	l.max_depth = 19;
	assert_null(sb_manifest_decode(b.data, b.len, &l, &err));
	assert_int_equal(err.code, SB_E_LIMIT);
	l.max_depth = 20;
	l.max_entries = 19;
	assert_null(sb_manifest_decode(b.data, b.len, &l, &err));
	assert_int_equal(err.code, SB_E_LIMIT);
	l.max_entries = 20;
	l.max_bytes = b.len - 1;
	assert_null(sb_manifest_decode(b.data, b.len, &l, &err));
	assert_int_equal(err.code, SB_E_LIMIT);
	l.max_bytes++;
	ok = sb_manifest_decode(b.data, b.len, &l, &err);
	assert_non_null(ok);
	b.data[4] = 9;
	assert_null(sb_manifest_decode(b.data, b.len, &l, &err));
	assert_int_equal(err.code, SB_E_VERSION);
}

static int
count_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)e;
	*(size_t *)arg = len;
	return 0;
}

static void
depth_needs_no_stack(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = chain(100000);
	sb_auto(sb_manifest) struct sb_manifest *copy = sb_manifest_copy(m, &err), *back = NULL;
	size_t longest = 0;

	assert_int_equal(sb_manifest_walk(m, count_entry, &longest), 0);
	assert_int_equal(longest, 199999);
	assert_non_null(copy);
	assert_ok(sb_manifest_save(m, true, false, t->fd, "m", &err), &err);
	back = sb_manifest_load(t->fd, "m", &err);
	assert_non_null(back);
	assert_memory_equal(back->id.b, m->id.b, 16);
}

static void
files_are_saved_and_loaded(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	uint64_t s = 3;
	sb_auto(sb_manifest) struct sb_manifest *m = random_tree(&s, 100);
	sb_auto(sb_manifest) struct sb_manifest *a = NULL, *b = NULL;
	uint8_t byte;
	int fd;

	assert_null(sb_manifest_load(t->fd, "m", &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
	assert_ok(sb_manifest_save(m, false, true, t->fd, "m", &err), &err);
	a = sb_manifest_load(t->fd, "m", &err);
	assert_non_null(a);
	assert_same_tree(m, a, false);
	assert_ok(sb_manifest_save(m, true, false, t->fd, "m", &err), &err);
	b = sb_manifest_load(t->fd, "m", &err);
	assert_non_null(b);
	assert_same_tree(m, b, true);
	fd = openat(t->fd, "m", O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, 20), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 20), 1);
	(void)close(fd);
	assert_null(sb_manifest_load(t->fd, "m", &err));
	assert_int_equal(err.code, SB_E_CORRUPT);
	assert_int_equal(unlinkat(t->fd, "m", 0), 0);
	assert_int_equal(mkdirat(t->fd, "m", 0700), 0);
	assert_true(sb_manifest_save(m, true, false, t->fd, "m", &err) < 0);
	assert_int_equal(unlinkat(t->fd, "m", AT_REMOVEDIR), 0);
}

static void
subtrees_keep_their_leaders(void **state)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sample();
	sb_auto(sb_manifest) struct sb_manifest *back = NULL;
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_error err = { 0 };
	struct sb_entry f = file_of("hello"), *d;

	(void)state;
	put(m, "0", &f, NULL);
	put(m, "1", &f, NULL);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "0"), "0", &err), &err);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "1"), "0", &err), &err);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "a"), "a", &err), &err);
	assert_ok(sb_manifest_set_link(m, sb_manifest_find(m, "d/f"), "a", &err), &err);
	id_of(m);
	assert_int_equal(m->n_leaders, 2);
	d = sb_manifest_find(m, "d");
	sb_buf_init(&b, 1 << 16);
	assert_fails(sb_manifest_encode_dir(m, d->dir, "d/e", &b, &err), SB_E_INVAL, &err);
	assert_ok(sb_manifest_encode_dir(m, d->dir, "d", &b, &err), &err);
	assert_null(sb_manifest_decode(b.data, b.len, NULL, &err));
	assert_int_equal(err.code, SB_E_CORRUPT);
	back = sb_manifest_decode_dir(b.data, b.len, NULL, &err);
	if (!back)
		fail_msg("%s", err.msg);
	assert_memory_equal(back->root.digest.b, d->digest.b, 16);
	assert_int_equal(back->count, 2);
	assert_int_equal(back->n_leaders, 1);
	assert_int_equal(sb_manifest_find(back, "f")->link, 1);
	assert_string_equal(back->leaders[0], "a");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_put),
		cmocka_unit_test(put_keeps_children_of_a_directory_only),
		cmocka_unit_test(remove_takes_the_subtree),
		cmocka_unit_test(walk_is_preorder_and_can_skip),
		cmocka_unit_test(sameness_looks_at_the_right_fields),
		cmocka_unit_test(id_tells_every_visible_change),
		cmocka_unit_test(id_does_not_see_local_knowledge),
		cmocka_unit_test(groups_are_put_in_order),
		cmocka_unit_test(many_groups_are_found_quickly),
		cmocka_unit_test(decoding_gives_back_what_was_encoded),
		cmocka_unit_test(unhashed_files_travel),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(impossible_links_are_refused),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test_setup_teardown(depth_needs_no_stack, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(files_are_saved_and_loaded, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test(subtrees_keep_their_leaders),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
