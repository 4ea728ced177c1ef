/* SPDX-License-Identifier: MIT */
/*
 * Manifests kept in memory between the syncs of one process: an unchanged file is not loaded again.
 */
#include "config.h"

#include "tests/lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sync/replica/recall.h>

#include "tests/lib/tmpdir.h"

/* A manifest with `n` files. */
static struct sb_manifest *
make(unsigned n)
{
	struct sb_error err = { 0 };
	struct sb_manifest *m = sb_manifest_new(&err);
	struct sb_entry e = { .type = SB_ENTRY_FILE,
		.mode = 0644,
		.size = 1,
		.digest = { .b = { 1 } } };

	assert_non_null(m);
	for (unsigned i = 0; i < n; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "f%07u", i);
		assert_non_null(sb_manifest_put(m, name, &e, NULL, &err));
	}
	assert_ok(sb_manifest_finish(m, &err), &err);
	return m;
}

static void
save(int dir, const char *name, unsigned n)
{
	struct sb_error err = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *m = make(n);

	assert_ok(sb_manifest_save(m, false, false, dir, name, &err), &err);
}

static void
an_unchanged_file_is_not_loaded_again(void **state)
{
	struct tmpdir t;
	struct sb_error err = { 0 };
	struct sb_recall_tag tag;
	sb_auto(sb_recall) struct sb_recall *c = sb_recall_new();
	struct sb_manifest *first, *second;

	(void)state;
	tmpdir_make(&t);
	save(t.fd, "base", 3);
	first = sb_recall_load(c, t.fd, "base", &tag, &err);
	assert_non_null(first);
	assert_true(tag.set);
	sb_recall_give(c, &tag, first);
	assert_false(tag.set);
	second = sb_recall_load(c, t.fd, "base", &tag, &err);
	assert_ptr_equal(second, first);
	/* It is out now: whoever asks meanwhile has his own. */
	first = sb_recall_load(c, t.fd, "base", &tag, &err);
	assert_ptr_not_equal(second, first);
	assert_int_equal(first->count, 3);
	sb_manifest_free(first);
	sb_manifest_free(second);
	tmpdir_remove(&t);
}

static void
a_replaced_file_is_loaded(void **state)
{
	struct tmpdir t;
	struct sb_error err = { 0 };
	struct sb_recall_tag tag;
	sb_auto(sb_recall) struct sb_recall *c = sb_recall_new();
	struct sb_manifest *m;

	(void)state;
	tmpdir_make(&t);
	for (unsigned n = 1; n < 20; n++) {
		save(t.fd, "base", n);
		m = sb_recall_load(c, t.fd, "base", &tag, &err);
		assert_non_null(m);
		assert_int_equal(m->count, n);
		sb_recall_give(c, &tag, m);
	}
	/* Of the same size, in the same instant, under another number. */
	save(t.fd, "x", 5);
	m = sb_recall_load(c, t.fd, "x", &tag, &err);
	sb_recall_give(c, &tag, m);
	save(t.fd, "x", 5);
	m = sb_recall_load(c, t.fd, "x", &tag, &err);
	assert_int_equal(m->count, 5);
	sb_manifest_free(m);
	assert_int_equal(unlinkat(t.fd, "base", 0), 0);
	assert_null(sb_recall_load(c, t.fd, "base", &tag, &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
	assert_false(tag.set);
	tmpdir_remove(&t);
}

static void
large_ones_and_strangers_are_not_kept(void **state)
{
	struct tmpdir t;
	struct sb_error err = { 0 };
	struct sb_recall_tag tag, none = { 0 };
	sb_auto(sb_recall) struct sb_recall *c = sb_recall_new();
	struct sb_manifest *m;

	(void)state;
	tmpdir_make(&t);
	save(t.fd, "large", 2);
	m = sb_recall_load(c, t.fd, "large", &tag, &err);
	assert_non_null(m);
	m->count = SB_RECALL_ENTRIES_MAX + 1;
	sb_recall_give(c, &tag, m);
	m = sb_recall_load(c, t.fd, "large", &tag, &err);
	assert_int_equal(m->count, 2);
	sb_recall_give(c, &none, m);
	sb_recall_give(c, &none, NULL);
	m = sb_recall_load(NULL, t.fd, "large", &tag, &err);
	assert_int_equal(m->count, 2);
	assert_false(tag.set);
	sb_recall_give(NULL, &tag, m);
	tmpdir_remove(&t);
}

static void
more_than_fit_push_the_oldest_out(void **state)
{
	struct tmpdir t;
	struct sb_error err = { 0 };
	struct sb_recall_tag tag;
	sb_auto(sb_recall) struct sb_recall *c = sb_recall_new();

	(void)state;
	tmpdir_make(&t);
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < 20; i++) {
			struct sb_manifest *m;
			char name[16];

			(void)snprintf(name, sizeof name, "m%u", i);
			if (!round)
				save(t.fd, name, i + 1);
			m = sb_recall_load(c, t.fd, name, &tag, &err);
			assert_non_null(m);
			assert_int_equal(m->count, i + 1);
			sb_recall_give(c, &tag, m);
		}
	tmpdir_remove(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unchanged_file_is_not_loaded_again),
		cmocka_unit_test(a_replaced_file_is_loaded),
		cmocka_unit_test(large_ones_and_strangers_are_not_kept),
		cmocka_unit_test(more_than_fit_push_the_oldest_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
