/* SPDX-License-Identifier: MIT */
/* Base images that belong to others than the sessions made from them. */
#include "config.h"

#include <sys/stat.h>

#include <host/storage/overlay-layer.h>
#include <host/storage/storage-overlay-priv.h>

#include "tests/lib/storagefix.h"

#define FIXTURE(f) \
	struct storagefix *f = *state; \
	if (!f) \
	skip()

#define OWNER 1879050000u

/* Who the file belongs to, and its group. */
static void
belongs(const char *path, uid_t owner)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, owner);
	assert_int_equal(st.st_gid, owner);
}

static void
create_owned(struct storagefix *f, const char *id)
{
	const struct sb_storage_source src = { .base = "img", .fd = -1, .owner = OWNER };
	char *path = NULL;

	assert_ok(f->st->ops->create(f->st, id, &src, NULL, &path, &f->err), &f->err);
	free(path);
}

/* Without a single file of it being copied, and wherever the session goes from there. */
static void
a_base_image_belongs_to_the_session(void **state)
{
	FIXTURE(f);
	struct sb_changes changes = { .max = 10 };
	char path[500];
	uint64_t used;
	FILE *all = tmpfile();
	char *at = NULL;

	assert_non_null(all);
	create_owned(f, "one");
	belongs(storagefix_path(f, "one", ""), OWNER);
	belongs(storagefix_path(f, "one", "hello"), OWNER);
	belongs(storagefix_path(f, "one", "dir/deep"), OWNER);
	belongs(storagefix_path(f, "one", "link"), OWNER);
	assert_ok(f->st->ops->used(f->st, "one", &used, &f->err), &f->err);
	assert_true(used < 65536);
	storagefix_snap(f, "one", "a");
	/* What is changed goes up as theirs. */
	assert_int_equal(chmod(storagefix_path(f, "one", "dir/deep"), 0751), 0);
	storagefix_snap(f, "one", "b");
	belongs(storagefix_path(f, "one", "dir/deep"), OWNER);
	assert_ok(f->st->ops->diff(f->st, "one", "a", "b", NULL, &changes, &f->err), &f->err);
	assert_int_equal(changes.n, 1);
	assert_string_equal(changes.v[0].path, "dir/deep");
	sb_changes_free(&changes);
	storagefix_fork(f, "two", "one", "a");
	belongs(storagefix_path(f, "two", "hello"), OWNER);
	storagefix_reopen(f);
	storagefix_rollback(f, "one", "a");
	belongs(storagefix_path(f, "one", "dir/deep"), OWNER);
	/* A stream has them as they are seen. */
	assert_ok(f->st->ops->send(f->st, "one", "b", NULL, fileno(all), NULL, &f->err), &f->err);
	rewind(all);
	assert_ok(f->st->ops->create(f->st, "three",
			  &(struct sb_storage_source){ .fd = fileno(all) }, NULL, &at, &f->err),
		&f->err);
	belongs(storagefix_path(f, "three", "hello"), OWNER);
	(void)fclose(all);
	free(at);
	(void)snprintf(path, sizeof path, "%s/img/hello", f->bases);
	belongs(path, 0);
}

static void
keep_text(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)component;
	if (level == SB_LOG_WARN)
		(void)snprintf(arg, 500, "%s", text);
}

/* Nothing shows several owners as one: the caller gives such an image away file by file. */
static void
an_image_of_several_owners_is_told(void **state)
{
	FIXTURE(f);
	char path[500], said[500] = "";

	(void)snprintf(path, sizeof path, "%s/img/dir/deep", f->bases);
	assert_int_equal(chown(path, 7, 7), 0);
	f->o.log = (struct sb_log){ .fn = keep_text, .arg = said, .level = SB_LOG_WARN };
	storagefix_reopen(f);
	create_owned(f, "one");
	belongs(storagefix_path(f, "one", "hello"), 0);
	belongs(storagefix_path(f, "one", "dir/deep"), 7);
	assert_non_null(strstr(said, "dir/deep does not belong to user 0"));
	/* Once is enough. */
	said[0] = '\0';
	create_owned(f, "two");
	assert_string_equal(said, "");
	f->o.log = (struct sb_log){ 0 };
	storagefix_reopen(f);
}

/* As kernels before 6.15 want it: the base in the file tree for a moment. */
static void
a_base_can_be_placed(void **state)
{
	FIXTURE(f);
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)f->st;
	const uint64_t stack[] = { sb_storage_overlay_new_id(o) };
	char place[500], path[600];
	struct sb_overlay_mount m = { .layers = o->layersfd,
		.stack = stack,
		.n = 1,
		.base_place = o->base_place,
		.place_base = true,
		.writable = true,
		.is_volatile = true };
	uint64_t ino;
	int64_t btime;

	m.base = sb_storage_overlay_base(o, "img", OWNER, &ino, &btime, &f->err);
	assert_true(m.base >= 0);
	assert_ok(sb_overlay_layer_make(o->layersfd, stack[0], -1, &f->err), &f->err);
	(void)snprintf(place, sizeof place, "%s/try", f->sessions);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_ok(sb_overlay_mount_at(&m, place, &f->err), &f->err);
	assert_int_equal(access(o->base_place, F_OK), -1);
	(void)close(m.base);
	(void)snprintf(path, sizeof path, "%s/hello", place);
	belongs(path, OWNER);
	assert_ok(sb_overlay_mount_leave(place, false, &f->err), &f->err);
	assert_int_equal(rmdir(place), 0);
	sb_storage_overlay_discard(o, stack[0]);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, storagefix_setup, storagefix_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_base_image_belongs_to_the_session),
		T(an_image_of_several_owners_is_told),
		T(a_base_can_be_placed),
	};

	return cmocka_run_group_tests(tests, storagefix_group_setup, storagefix_group_teardown);
}
