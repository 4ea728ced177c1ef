/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of the base fails once, and what comes of it is SB_E_NOMEM with nothing left
 * behind.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/opt.h>
#include <base/path.h>
#include <base/spawn.h>
#include <base/strlist.h>
#include <base/strmap.h>
#include <sb/cancel.h>
#include <sb/log.h>

#include "tests/lib/nomem.h"
#include "tests/lib/tmpdir.h"

static int
fill_buffer(void *arg, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	char block[1000] = { 0 };

	sb_buf_init(&b, 1 << 20);
	for (int i = 0; i < 50; i++) {
		sb_buf_add(&b, block, sizeof block);
		sb_buf_addf(&b, "%d %s", i, "text");
		sb_buf_add_varint(&b, UINT64_MAX);
	}
	return sb_buf_check(&b, "block", err);
}

static void
buffers_say_so_once_at_the_end(void **state)
{
	nomem_every(fill_buffer, NULL, 0);
}

static int
fill_lists(void *arg, struct sb_error *err)
{
	static const char *const more[] = { "a", "b", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	sb_auto(sb_strmap) struct sb_strmap m = { 0 };
	char key[16];
	int r = 0;

	for (int i = 0; i < 20 && r >= 0; i++) {
		size_t before = l.n;

		snprintf(key, sizeof key, "k%d", i % 7);
		sb_strlist_add(&l, "one");
		sb_strlist_addf(&l, "%d", i);
		sb_strlist_add_all(&l, more);
		sb_strlist_putf(&l, "key=%d", i);
		/* Nothing behind what failed: no list has a hole in it. */
		assert_true(l.failed || l.n == before + 4 + (i == 0));
		assert_true(!l.v || !l.v[l.n]);
		r = sb_strmap_set(&m, key, "value", err);
	}
	return r < 0 ? r : sb_strlist_check(&l, err);
}

static void
lists_and_maps_stay_whole(void **state)
{
	nomem_every(fill_lists, NULL, 0);
}

static int
set_twice(void *arg, struct sb_error *err)
{
	struct sb_strmap *m = arg;
	int r = sb_strmap_set(m, "key", "new", err);

	/* Back to the start, and to as many blocks as before. */
	if (r >= 0) {
		assert_string_equal(sb_strmap_get(m, "key"), "new");
		r = sb_strmap_set(m, "key", "old", err);
	}
	if (r < 0 && !strcmp(sb_strmap_get(m, "key"), "new"))
		memcpy(m->v[0].value, "old", 4);
	assert_string_equal(sb_strmap_get(m, "key"), "old");
	return r;
}

static void
a_map_keeps_the_old_value(void **state)
{
	sb_auto(sb_strmap) struct sb_strmap m = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_strmap_set(&m, "key", "old", &err), &err);
	nomem_every(set_twice, &m, 0);
}

static int
make_cancel(void *arg, struct sb_error *err)
{
	struct sb_cancel *c = sb_cancel_new(err);

	if (!c)
		return err->code;
	sb_cancel_free(c);
	return 0;
}

static void
a_cancel_token_is_made_or_not(void **state)
{
	nomem_every(make_cancel, NULL, 0);
}

static int
replace_file(void *arg, struct sb_error *err)
{
	const struct tmpdir *t = arg;
	sb_auto(sb_buf) struct sb_buf old;
	struct sb_error ignored;
	int r;

	r = sb_file_replace(t->fd, "sub/file", "new", 3, 0600, err);
	if (r < 0) {
		/* The file there was is untouched, whatever was short. */
		assert_ok(sb_file_read(t->fd, "sub/file", 100, &old, &ignored), &ignored);
		assert_string_equal(old.data, "old");
		return r;
	}
	return sb_file_read(t->fd, "sub/file", 100, &old, err);
}

static int
make_dirs(void *arg, struct sb_error *err)
{
	char path[512];

	snprintf(path, sizeof path, "%s/a/b/c", ((const struct tmpdir *)arg)->path);
	return sb_file_mkdirs(path, 0700, err);
}

static void
files_are_old_or_new(void **state)
{
	struct tmpdir *t = *state;

	assert_int_equal(mkdirat(t->fd, "sub", 0700), 0);
	tmpdir_file(t, "sub/file", "old");
	nomem_every(replace_file, t, 0);
	nomem_every(make_dirs, t, 0);
}

static int
remove_deep(void *arg, struct sb_error *err)
{
	const struct tmpdir *t = arg;
	struct sb_error ignored;
	char path[256] = "d";
	int r;

	for (int i = 0; i < 40; i++)
		strncat(path, "/d", sizeof path - strlen(path) - 1);
	/*
	 * What an earlier run left of the tree is made whole again; that has to work without
	 * memory.
	 */
	assert_ok(sb_path_mkdirs(t->fd, path, 0700, &ignored), &ignored);
	r = sb_path_remove_tree(t->fd, "d", err);
	if (r >= 0)
		assert_fails(sb_path_stat(t->fd, "d", &(struct stat){ 0 }, &ignored), SB_E_NOTFOUND,
			&ignored);
	return r;
}

static void
a_tree_is_removed_or_an_error_said(void **state)
{
	nomem_every(remove_deep, *state, 0);
}

struct values {
	struct sb_opt_list list;
	const char *name;
};

static int
parse_options(void *arg, struct sb_error *err)
{
	static const struct sb_opt opts[] = {
		{ 'x', "exclude", SB_OPT_LIST, offsetof(struct values, list), "P", "x", NULL, 0,
			0 },
		{ 'n', "name", SB_OPT_STRING, offsetof(struct values, name), "N", "n", NULL, 0, 0 },
		{ 0 },
	};
	const char *argv[] = { "prog", "-xa", "op", "--exclude", "b", "-n", "c", "--exclude=d",
		NULL };
	struct values v = { 0 };
	char **args;
	int n, r;

	r = sb_opt_parse(opts, 8, (char **)argv, false, &v, &args, &n, err);
	sb_opt_list_free(&v.list);
	return r;
}

static void
options_are_parsed_or_an_error_said(void **state)
{
	nomem_every(parse_options, NULL, 0);
}

static int
run_child(void *arg, struct sb_error *err)
{
	static const char *const argv[] = { "/bin/sh", "-c", "cat; echo problem >&2", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf complaints;
	int r;

	sb_buf_init(&out, 1 << 16);
	sb_buf_init(&complaints, 1 << 16);
	r = sb_child_run(argv, &o, "hello", 5, &out, &complaints, NULL, sb_deadline_in(30000), err);
	if (r >= 0)
		r = sb_buf_check(&out, "output", err);
	if (r >= 0)
		r = sb_buf_check(&complaints, "complaints", err);
	return r;
}

static void
a_child_is_run_and_reaped(void **state)
{
	nomem_every(run_child, NULL, 0);
}

static void
take_line(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	assert_true(strlen(text) > 0);
	++*(int *)arg;
}

static int
log_long(void *arg, struct sb_error *err)
{
	int lines = 0;
	struct sb_log log = { .fn = take_line, .arg = &lines, .level = SB_LOG_INFO };

	sb_log(&log, SB_LOG_INFO, "test", "%04000d", 7);
	assert_int_equal(lines, 1);
	return 0;
}

static void
a_long_message_is_logged_all_the_same(void **state)
{
	nomem_every(log_long, NULL, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_say_so_once_at_the_end),
		cmocka_unit_test(lists_and_maps_stay_whole),
		cmocka_unit_test(a_map_keeps_the_old_value),
		cmocka_unit_test(a_cancel_token_is_made_or_not),
		cmocka_unit_test_setup_teardown(files_are_old_or_new, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(a_tree_is_removed_or_an_error_said, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test(options_are_parsed_or_an_error_said),
		cmocka_unit_test(a_child_is_run_and_reaped),
		cmocka_unit_test(a_long_message_is_logged_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
