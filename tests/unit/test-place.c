/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes as folders of a machine: made once, found, and gone as a whole even when their removal
 * was cut.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tool/place.h>

#include "tests/lib/tmpdir.h"

static int
setup(void **state)
{
	int r = tmpdir_setup(state);

	(void)setenv("SBSYNC_BOX_DIR", ((struct tmpdir *)*state)->path, 1);
	return r;
}

static void
make(const char *instance, bool may_create, struct sb_place *out)
{
	struct sb_place_wish w = { .id = "one", .instance = instance, .may_create = may_create };
	struct sb_error err = { 0 };

	assert_ok(sb_place_prepare(&w, out, &err), &err);
}

static void
put(const char *dir, const char *name)
{
	char path[1300];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fclose(f);
}

static void
a_cut_removal_is_nobodys_tree(void **state)
{
	struct sb_place place = { 0 }, again = { 0 };
	struct sb_error err = { 0 };
	char folder[600], *slash;

	(void)state;
	make(NULL, true, &place);
	put(place.root, "half");
	(void)snprintf(folder, sizeof folder, "%s", place.root);
	slash = strrchr(folder, '/');
	*slash = '\0';
	put(folder, "doomed");
	/* What a sync would take for a tree with deletions is not found any more ... */
	assert_fails(sb_place_find("one", place.instance, NULL, &again, &err),
		SB_E_SANDBOX_NOT_FOUND, &err);
	/* ... the removal goes on whoever asks for it ... */
	assert_ok(sb_place_destroy("one", place.instance, &err), &err);
	assert_int_equal(access(folder, F_OK), -1);
	assert_ok(sb_place_destroy("one", place.instance, &err), &err);
	/* ... and a new one of that name has nothing of it. */
	make(NULL, true, &again);
	put(again.root, "half");
	put(folder, "doomed");
	sb_place_free(&again);
	make(NULL, true, &again);
	assert_string_not_equal(again.instance, place.instance);
	(void)snprintf(folder, sizeof folder, "%s/half", again.root);
	assert_int_equal(access(folder, F_OK), -1);
	sb_place_free(&place);
	sb_place_free(&again);
}

static void
another_instance_is_left_alone(void **state)
{
	struct sb_place place = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	make(NULL, true, &place);
	assert_ok(sb_place_destroy("one", "not-this-one", &err), &err);
	assert_int_equal(access(place.root, F_OK), 0);
	assert_ok(sb_place_destroy("one", place.instance, &err), &err);
	assert_int_equal(access(place.root, F_OK), -1);
	sb_place_free(&place);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cut_removal_is_nobodys_tree, setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(another_instance_is_left_alone, setup,
			tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
