/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of a sandbox host: rollback, turns, retention, holds, forks and differences. On the
 * storage that tests/e2e/host-*.sh make.
 */
#include "config.h"

#include <sys/stat.h>

#include <host/host-priv.h>

#include "tests/lib/hostfix.h"

static void
snap(struct hostfix *f, const char *id, const char *name)
{
	struct sb_host_snapshot sn;

	assert_ok(sb_host_snapshot_create(f->h, id, name, NULL, &sn, &f->err), &f->err);
	assert_string_equal(sn.name, name);
	sb_host_snapshot_clear(&sn);
}

static void
rollback_brings_everything_back(void **state)
{
	struct hostfix *f = *state;
	const char *argv[] = { "rm", "-rf", NULL, NULL, NULL };
	char dir[1024];

	hostfix_session(f, "one");
	hostfix_write(f, "one", "work", "1");
	snap(f, "one", "good");
	(void)snprintf(dir, sizeof dir, "%s", hostfix_path(f, "one", "dir"));
	argv[2] = dir;
	argv[3] = hostfix_path(f, "one", "work");
	assert_int_equal(hostfix_run(argv), 0);
	hostfix_write(f, "one", "junk", "2");
	assert_ok(sb_host_session_rollback(f->h, "one", "good", 0, NULL, NULL, &f->err), &f->err);
	assert_true(hostfix_holds(f, "one", "work", "1"));
	assert_true(hostfix_holds(f, "one", "dir/deep", "deep\n"));
	assert_true(hostfix_holds(f, "one", "junk", NULL));
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
}

static void
a_misspelt_target_harms_nothing(void **state)
{
	struct hostfix *f = *state;

	hostfix_session(f, "one");
	hostfix_write(f, "one", "work", "1");
	snap(f, "one", "good");
	assert_fails(sb_host_session_rollback(f->h, "one", "goood", false, NULL, NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_fails(sb_host_session_rollback(f->h, "one", "a/b@c", false, NULL, NULL, &f->err),
		SB_E_INVAL, &f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
	assert_true(hostfix_holds(f, "one", "work", "1"));
}

/* Removed behind our back: the storage says so before it touches anything. */
static void
a_vanished_target_harms_nothing(void **state)
{
	struct hostfix *f = *state;

	hostfix_session(f, "one");
	snap(f, "one", "good");
	hostfix_write(f, "one", "work", "1");
	assert_ok(f->h->st->ops->snapshot_delete(f->h->st, "one", "good", &f->err), &f->err);
	assert_fails(sb_host_session_rollback(f->h, "one", "good", false, NULL, NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
	assert_true(hostfix_holds(f, "one", "work", "1"));
	hostfix_reopen(f);
	assert_string_equal(hostfix_snaps(f, "one"), "");
}

/* Limit 3, turns 3 to 5 kept, back to 4: the next turn is 5 and works. */
static void
turn_numbers_never_collide(void **state)
{
	struct hostfix *f = *state;

	sb_host_close(f->h);
	f->o.keep_turn = 3;
	hostfix_open(f);
	hostfix_session(f, "one");
	for (uint64_t i = 1; i <= 5; i++)
		hostfix_turn(f, "one", i);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0003 turn-0004 turn-0005");
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0004", SB_HOST_DROP_LATER, NULL, NULL,
			  &f->err),
		&f->err);
	assert_int_equal(hostfix_turns(f, "one"), 4);
	hostfix_turn(f, "one", 5);
	hostfix_reopen(f);
	hostfix_turn(f, "one", 6);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0004 turn-0005 turn-0006");
	assert_int_equal(hostfix_turns(f, "one"), 6);
}

static void
retention_is_per_kind_and_spares_holds_and_forks(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	sb_host_close(f->h);
	f->o.keep_turn = 1;
	f->o.keep_named = 1;
	hostfix_open(f);
	hostfix_session(f, "one");
	snap(f, "one", "mine");
	hostfix_turn(f, "one", 1);
	assert_ok(sb_host_snapshot_hold(f->h, "one", "turn-0001", "keep", NULL, &f->err), &f->err);
	hostfix_turn(f, "one", 2);
	o.id = "two";
	assert_ok(sb_host_session_fork(f->h, "one", "turn-0002", &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	hostfix_turn(f, "one", 3);
	hostfix_turn(f, "one", 4);
	assert_string_equal(hostfix_snaps(f, "one"), "mine turn-0001 turn-0002 turn-0004");
	snap(f, "one", "mine2");
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 turn-0002 turn-0004 mine2");
	assert_ok(sb_host_snapshot_release(f->h, "one", "turn-0001", "keep", NULL, &f->err),
		&f->err);
}

static void
snapshot_names_are_checked(void **state)
{
	static const char *const bad[] = { "", "a/b", "a@b", "-x", ".x", "a b", "turn-0001",
		"turn-7", "tool-x", "fork-1" };
	struct hostfix *f = *state;
	struct sb_host_snapshot sn;
	char big[SB_HOST_NAME_MAX + 1];

	hostfix_session(f, "one");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_fails(sb_host_snapshot_create(f->h, "one", bad[i], NULL, &sn, &f->err),
			SB_E_INVAL, &f->err);
	assert_fails(sb_host_snapshot_create(f->h, "one", NULL, NULL, &sn, &f->err), SB_E_INVAL,
		&f->err);
	/* A name of legal length that is too long for ZFS together with its dataset. */
	memset(big, 'n', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	if (f->zfs) {
		assert_fails(sb_host_snapshot_create(f->h, "one", big, NULL, &sn, &f->err),
			SB_E_INVAL, &f->err);
	} else {
		snap(f, "one", big);
		assert_ok(sb_host_snapshot_delete(f->h, "one", big, NULL, &f->err), &f->err);
	}
	snap(f, "one", "turn-about");
	assert_fails(sb_host_snapshot_create(f->h, "one", "turn-about", NULL, &sn, &f->err),
		SB_E_SNAPSHOT_EXISTS, &f->err);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-about");
}

/* Something foreign has the name of the next turn: the turn takes another. */
static void
a_foreign_snapshot_does_not_stop_turns(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_snapshot sn;

	hostfix_session(f, "one");
	assert_ok(f->h->st->ops->snapshot(f->h->st, "one", "turn-0001", &f->err), &f->err);
	assert_ok(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), &f->err);
	assert_string_equal(sn.name, "turn-0001-2");
	assert_int_equal(sn.turn, 1);
	sb_host_snapshot_clear(&sn);
	hostfix_reopen(f);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 turn-0001-2");
	hostfix_turn(f, "one", 2);
}

static void
holds_protect(void **state)
{
	struct hostfix *f = *state;

	hostfix_session(f, "one");
	snap(f, "one", "a");
	snap(f, "one", "b");
	assert_ok(sb_host_snapshot_hold(f->h, "one", "b", "t1", NULL, &f->err), &f->err);
	assert_fails(sb_host_snapshot_hold(f->h, "one", "b", "t1", NULL, &f->err), SB_E_EXISTS,
		&f->err);
	assert_ok(sb_host_snapshot_hold(f->h, "one", "b", "t2", NULL, &f->err), &f->err);
	assert_fails(sb_host_snapshot_hold(f->h, "one", "c", "t1", NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_fails(sb_host_snapshot_hold(f->h, "one", "b", "t/1", NULL, &f->err), SB_E_INVAL,
		&f->err);
	assert_fails(sb_host_snapshot_delete(f->h, "one", "b", NULL, &f->err), SB_E_SNAPSHOT_HELD,
		&f->err);
	assert_fails(
		sb_host_session_rollback(f->h, "one", "a", SB_HOST_DROP_LATER, NULL, NULL, &f->err),
		SB_E_SNAPSHOT_HELD, &f->err);
	assert_fails(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), SB_E_SNAPSHOT_HELD,
		&f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
	hostfix_reopen(f);
	assert_ok(sb_host_snapshot_release(f->h, "one", "b", "t1", NULL, &f->err), &f->err);
	assert_fails(sb_host_snapshot_release(f->h, "one", "b", "t1", NULL, &f->err),
		SB_E_HOLD_NOT_FOUND, &f->err);
	assert_fails(sb_host_snapshot_delete(f->h, "one", "b", NULL, &f->err), SB_E_SNAPSHOT_HELD,
		&f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", true, NULL, &f->err), &f->err);
	assert_int_equal(hostfix_storage_count(f), 0);
}

static void
snapshots_are_deleted_once(void **state)
{
	struct hostfix *f = *state;

	hostfix_session(f, "one");
	snap(f, "one", "a");
	assert_ok(sb_host_snapshot_delete(f->h, "one", "a", NULL, &f->err), &f->err);
	assert_fails(sb_host_snapshot_delete(f->h, "one", "a", NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	snap(f, "one", "a");
	assert_string_equal(hostfix_snaps(f, "one"), "a");
}

static void
forks_live_on(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	hostfix_session(f, "one");
	hostfix_write(f, "one", "work", "1");
	hostfix_turn(f, "one", 1);
	hostfix_write(f, "one", "work", "2");
	o.id = "two";
	assert_ok(sb_host_session_fork(f->h, "one", "turn-0001", &o, NULL, &s, &f->err), &f->err);
	assert_string_equal(s.parent, "one@turn-0001");
	assert_int_equal(s.turn_count, 1);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "two", "work", "1"));
	o.id = "three";
	assert_ok(sb_host_session_fork(f->h, "one", NULL, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "three", "work", "2"));
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 fork-1");
	assert_fails(sb_host_session_fork(f->h, "one", "nope", &o, NULL, &s, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_fails(sb_host_session_fork(f->h, "one", NULL, &o, NULL, &s, &f->err),
		SB_E_SESSION_EXISTS, &f->err);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 fork-1");
	assert_fails(sb_host_snapshot_delete(f->h, "one", "turn-0001", NULL, &f->err),
		SB_E_SNAPSHOT_IN_USE, &f->err);
	/* The source goes, its forks do not notice; its id is free again. */
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_true(hostfix_holds(f, "two", "work", "1"));
	hostfix_turn(f, "two", 2);
	hostfix_session(f, "one");
	hostfix_reopen(f);
	assert_true(hostfix_holds(f, "three", "work", "2"));
	assert_ok(sb_host_session_destroy(f->h, "two", false, NULL, &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "three", false, NULL, &f->err), &f->err);
	/*
	 * With the last fork the data kept aside is gone too, at the latest when the storage is not
	 * busy any more.
	 */
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	for (int i = 0; i < 300 && hostfix_storage_count(f) > 1; i++)
		(void)usleep(50000);
	assert_int_equal(hostfix_storage_count(f), 1);
}

/*
 * A fork whose files are open, as those of anything that runs in it. Its mount stays the same all
 * the time.
 */
static int
open_fork(struct hostfix *f, const char *from, const char *id)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	int fd;

	o.id = id;
	assert_ok(sb_host_session_fork(f->h, from, NULL, &o, NULL, &s, &f->err), &f->err);
	fd = open(s.mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	sb_host_session_clear(&s);
	return fd;
}

/* A host that died after the storage was set aside and before its record was gone. */
static void
a_destroy_that_was_cut_off_is_finished(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;
	struct sb_storage *st;
	int fd;

	hostfix_session(f, "one");
	snap(f, "one", "a");
	assert_ok(sb_host_snapshot_hold(f->h, "one", "a", "t", NULL, &f->err), &f->err);
	fd = open_fork(f, "one", "two");
	st = f->h->st;
	assert_ok(st->ops->release(st, "one", "a", "t", &f->err), &f->err);
	assert_ok(st->ops->destroy(st, "one", &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", true, NULL, &f->err), &f->err);
	assert_fails(sb_host_session_get(f->h, "one", false, &s, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_int_equal(close(fd), 0);
}

static void
same_place(struct hostfix *f, const char *id, int fd)
{
	struct stat was, is;

	assert_int_equal(fstat(fd, &was), 0);
	assert_int_equal(stat(hostfix_path(f, id, "."), &is), 0);
	assert_int_equal(is.st_dev, was.st_dev);
}

/* The new owner of an id that was used before does everything a session does. */
static void
use_again(struct hostfix *f, const char *id)
{
	struct sb_host_change *v;
	struct sb_host_session s;
	bool more;
	size_t n;

	hostfix_session(f, id);
	assert_true(hostfix_holds(f, id, "work", NULL));
	hostfix_write(f, id, "work", "new");
	hostfix_turn(f, id, 1);
	hostfix_write(f, id, "work", "newer");
	assert_ok(
		sb_host_snapshot_diff(f->h, id, "turn-0001", NULL, 0, NULL, &v, &n, &more, &f->err),
		&f->err);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].path, "work");
	sb_host_changes_free(v, n);
	assert_ok(sb_host_session_rollback(f->h, id, "turn-0001", SB_HOST_DROP_LATER, NULL, NULL,
			  &f->err),
		&f->err);
	assert_true(hostfix_holds(f, id, "work", "new"));
	assert_ok(sb_host_session_get(f->h, id, true, &s, &f->err), &f->err);
	assert_true(s.space_used > 0);
	sb_host_session_clear(&s);
}

static void
a_source_goes_while_its_forks_are_in_use(void **state)
{
	struct hostfix *f = *state;
	int two, three;

	hostfix_session(f, "one");
	hostfix_write(f, "one", "work", "first");
	two = open_fork(f, "one", "two");
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	same_place(f, "two", two);
	use_again(f, "one");
	/* The same once more, with a dead one before it, and through a restart. */
	three = open_fork(f, "one", "three");
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	use_again(f, "one");
	hostfix_reopen(f);
	same_place(f, "two", two);
	same_place(f, "three", three);
	assert_true(hostfix_holds(f, "two", "work", "first"));
	assert_true(hostfix_holds(f, "three", "work", "new"));
	assert_true(hostfix_holds(f, "one", "work", "new"));
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001");
	(void)close(two);
	(void)close(three);
	assert_ok(sb_host_session_destroy(f->h, "two", false, NULL, &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_true(hostfix_holds(f, "three", "work", "new"));
	assert_ok(sb_host_session_destroy(f->h, "three", false, NULL, &f->err), &f->err);
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	for (int i = 0; i < 300 && hostfix_storage_count(f) > 0; i++)
		(void)usleep(50000);
	assert_int_equal(hostfix_storage_count(f), 0);
}

/*
 * Somebody outside reads a file of the session: it goes when the file is closed (on ZFS), or at
 * once with the file left to its reader, and nobody else waits for that.
 */
static void
a_session_goes_when_its_files_are_closed(void **state)
{
	struct hostfix *f = *state;
	char text[8] = "";
	int fd;

	hostfix_session(f, "one");
	hostfix_session(f, "two");
	hostfix_write(f, "one", "work", "first");
	fd = open(hostfix_path(f, "one", "work"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	if (f->zfs) {
		assert_fails(sb_host_session_destroy(f->h, "one", false, NULL, &f->err),
			SB_E_STORAGE_BUSY, &f->err);
		assert_int_equal(hostfix_state(f, "one"), SB_HOST_DESTROYING);
	} else {
		assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	}
	assert_int_equal(read(fd, text, sizeof text), 5);
	hostfix_turn(f, "two", 1);
	(void)close(fd);
	for (int i = 0; i < 300 && hostfix_storage_count(f) > 1; i++)
		(void)usleep(50000);
	assert_int_equal(hostfix_storage_count(f), 1);
	hostfix_turn(f, "two", 2);
}

static void
a_forked_snapshot_goes_with_its_fork(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	hostfix_session(f, "one");
	hostfix_turn(f, "one", 1);
	o.id = "two";
	assert_ok(sb_host_session_fork(f->h, "one", "", &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	assert_fails(sb_host_session_rollback(f->h, "one", "turn-0001", SB_HOST_DROP_LATER, NULL,
			     NULL, &f->err),
		SB_E_SNAPSHOT_IN_USE, &f->err);
	assert_ok(sb_host_session_destroy(f->h, "two", false, NULL, &f->err), &f->err);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001");
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0001", SB_HOST_DROP_LATER, NULL, NULL,
			  &f->err),
		&f->err);
}

static void
states_refuse_with_their_errors(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_snapshot sn;

	hostfix_session(f, "one");
	snap(f, "one", "a");
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_fails(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), SB_E_SESSION_PAUSED,
		&f->err);
	assert_fails(
		sb_host_session_rollback(f->h, "one", "a", SB_HOST_DROP_LATER, NULL, NULL, &f->err),
		SB_E_SESSION_PAUSED, &f->err);
	snap(f, "one", "b");
	assert_string_equal(hostfix_snaps(f, "one"), "a b");
}

static const char *
change(const struct sb_host_change *c)
{
	static char line[600];

	(void)snprintf(line, sizeof line, "%s %c %s%s%s", sb_host_change_name(c->kind), c->type,
		c->path, c->from ? " from " : "", c->from ? c->from : "");
	return line;
}

static void
diff_tells_what_changed(void **state)
{
	/* A file of a lower layer is copied by a rename: overlayfs keeps no trace of it. */
	static const char *const copied[] = { "removed f dir/deep", "modified f hello",
		"added f moved", "added f new", "removed f old", "added d sub", "added f sub/x" };
	static const char *const renamed[] = { "removed f dir/deep", "modified f hello",
		"renamed f moved from old", "added f new", "added d sub", "added f sub/x" };
	struct hostfix *f = *state;
	const bool copies = f->o.storage == SB_HOST_OVERLAY;
	const char *const *want = copies ? copied : renamed;
	const size_t n_want = copies ? 7 : 6;
	struct sb_host_change *v;
	char a[1024];
	bool more;
	size_t n;

	hostfix_session(f, "one");
	hostfix_write(f, "one", "old", "o");
	snap(f, "one", "a");
	(void)snprintf(a, sizeof a, "%s", hostfix_path(f, "one", "old"));
	assert_int_equal(rename(a, hostfix_path(f, "one", "moved")), 0);
	hostfix_write(f, "one", "hello", "hullo\n");
	hostfix_write(f, "one", "new", "n");
	assert_int_equal(mkdir(hostfix_path(f, "one", "sub"), 0755), 0);
	hostfix_write(f, "one", "sub/x", "x");
	assert_int_equal(unlink(hostfix_path(f, "one", "dir/deep")), 0);
	snap(f, "one", "b");
	for (int round = 0; round < 2; round++) {
		assert_ok(sb_host_snapshot_diff(f->h, "one", "a", round ? "b" : NULL, 0, NULL, &v,
				  &n, &more, &f->err),
			&f->err);
		assert_false(more);
		for (size_t i = 0; i < n && i < n_want; i++)
			assert_string_equal(change(&v[i]), want[i]);
		assert_int_equal(n, n_want);
		sb_host_changes_free(v, n);
	}
	assert_ok(sb_host_snapshot_diff(f->h, "one", "b", NULL, 0, NULL, &v, &n, &more, &f->err),
		&f->err);
	assert_int_equal(n, 0);
	sb_host_changes_free(v, n);
	assert_ok(sb_host_snapshot_diff(f->h, "one", "a", NULL, 2, NULL, &v, &n, &more, &f->err),
		&f->err);
	assert_int_equal(n, 2);
	assert_true(more);
	sb_host_changes_free(v, n);
	assert_fails(
		sb_host_snapshot_diff(f->h, "one", "zz", NULL, 0, NULL, &v, &n, &more, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	/* The clones made to read snapshots are gone, or with the next open. */
	if (hostfix_storage_count(f) != 1)
		hostfix_reopen(f);
	assert_int_equal(hostfix_storage_count(f), 1);
}

static const struct sb_host_change *
change_of(const struct sb_host_change *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].path, path) == 0)
			return &v[i];
	fail_msg("%s did not change", path);
	return NULL;
}

static void
contents_of_what_changed(void **state)
{
	struct hostfix *f = *state;
	const struct sb_host_change *c;
	struct sb_host_change *v;
	size_t n;
	bool more;

	hostfix_session(f, "one");
	snap(f, "one", "a");
	hostfix_write(f, "one", "hello", "other");
	hostfix_write(f, "one", "new", "1");
	assert_int_equal(unlink(hostfix_path(f, "one", "link")), 0);
	/* What is too large, and what must not be waited for, is only named. */
	hostfix_write(f, "one", "large", "");
	assert_int_equal(truncate(hostfix_path(f, "one", "large"), SB_HOST_CONTENT_MAX + 1), 0);
	assert_int_equal(mkfifo(hostfix_path(f, "one", "fifo"), 0600), 0);
	for (int round = 0; round < 2; round++) {
		const char *to = round ? "b" : NULL;

		assert_ok(sb_host_snapshot_diff(f->h, "one", "a", to, 0, NULL, &v, &n, &more,
				  &f->err),
			&f->err);
		assert_ok(sb_host_snapshot_contents(f->h, "one", "a", to, NULL, v, n, &f->err),
			&f->err);
		c = change_of(v, n, "hello");
		assert_int_equal(c->old_len, 6);
		assert_memory_equal(c->old_data, "hello\n", 6);
		assert_int_equal(c->new_len, 5);
		assert_memory_equal(c->new_data, "other", 5);
		c = change_of(v, n, "new");
		assert_null(c->old_data);
		assert_memory_equal(c->new_data, "1", 1);
		c = change_of(v, n, "link");
		assert_non_null(c->old_data);
		assert_null(c->new_data);
		c = change_of(v, n, "large");
		assert_null(c->new_data);
		assert_string_equal(c->unread, "too large");
		assert_null(change_of(v, n, "fifo")->new_data);
		sb_host_changes_free(v, n);
		if (round == 0)
			snap(f, "one", "b");
	}
}

static void
send_and_receive(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	char path[400];
	off_t len;
	int fd;

	hostfix_session(f, "one");
	hostfix_write(f, "one", "work", "1");
	snap(f, "one", "a");
	(void)snprintf(path, sizeof path, "%s/stream", f->t.path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_fails(sb_host_snapshot_send(f->h, "one", "zz", NULL, fd, NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_ok(sb_host_snapshot_send(f->h, "one", "a", NULL, fd, NULL, &f->err), &f->err);
	len = lseek(fd, 0, SEEK_END);
	assert_true(len > 100);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	o.id = "copy";
	assert_ok(sb_host_session_receive(f->h, &o, fd, NULL, &s, &f->err), &f->err);
	assert_int_equal(s.snap_count, 1);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "copy", "work", "1"));
	assert_string_equal(hostfix_snaps(f, "copy"), "a");
	hostfix_write(f, "copy", "work", "2");
	assert_ok(sb_host_session_rollback(f->h, "copy", "a", false, NULL, NULL, &f->err), &f->err);
	assert_true(hostfix_holds(f, "copy", "work", "1"));
	/* A stream that is cut leaves nothing. */
	assert_int_equal(ftruncate(fd, len * 2 / 3), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	o.id = "cut";
	assert_true(sb_host_session_receive(f->h, &o, fd, NULL, &s, &f->err) < 0);
	assert_fails(sb_host_session_get(f->h, "cut", false, &s, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_int_equal(hostfix_storage_count(f), 2);
	(void)close(fd);
}

static void
bases_come_from_the_bases_only(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	char name[400];

	hostfix_session(f, "one");
	snap(f, "one", "secret");
	o.id = "thief";
	o.base = name;
	(void)snprintf(name, sizeof name, "%s/one@secret", f->sessions);
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err),
		f->zfs ? SB_E_DENIED : SB_E_INVAL, &f->err);
	(void)snprintf(name, sizeof name, "../%s/one@secret", f->sessions);
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL, &f->err);
	if (!f->zfs)
		return;
	(void)snprintf(name, sizeof name, "%sx/img@initial", f->bases);
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_DENIED, &f->err);
	/* The full name of a base is fine. */
	(void)snprintf(name, sizeof name, "%s/img@initial", f->bases);
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
}

static void
a_full_pool_admits_nobody(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_health he;
	struct sb_host_session s;

	sb_host_close(f->h);
	f->o.warn_at = f->o.critical_at = 0.0001;
	hostfix_open(f);
	o.base = f->base;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_POOL_FULL, &f->err);
	sb_host_health(f->h, NULL, &he);
	assert_int_equal(he.status, SB_HOST_UNHEALTHY);
	assert_int_equal(he.n_reasons, 1);
	sb_host_close(f->h);
	f->o.critical_at = 0.95;
	hostfix_open(f);
	sb_host_health(f->h, NULL, &he);
	assert_int_equal(he.status, SB_HOST_DEGRADED);
}

static void
snapshots_survive_a_lost_database(void **state)
{
	struct hostfix *f = *state;
	char db[400];

	hostfix_session(f, "one");
	hostfix_turn(f, "one", 1);
	snap(f, "one", "mine");
	hostfix_turn(f, "one", 2);
	sb_host_close(f->h);
	f->h = NULL;
	(void)snprintf(db, sizeof db, "%s/host.db", f->state_dir);
	assert_int_equal(unlink(db), 0);
	hostfix_open(f);
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 mine turn-0002");
	assert_int_equal(hostfix_turns(f, "one"), 2);
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	hostfix_turn(f, "one", 3);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(rollback_brings_everything_back),
		T(a_misspelt_target_harms_nothing),
		T(a_vanished_target_harms_nothing),
		T(turn_numbers_never_collide),
		T(retention_is_per_kind_and_spares_holds_and_forks),
		T(snapshot_names_are_checked),
		T(a_foreign_snapshot_does_not_stop_turns),
		T(holds_protect),
		T(snapshots_are_deleted_once),
		T(forks_live_on),
		T(a_destroy_that_was_cut_off_is_finished),
		T(a_source_goes_while_its_forks_are_in_use),
		T(a_session_goes_when_its_files_are_closed),
		T(a_forked_snapshot_goes_with_its_fork),
		T(states_refuse_with_their_errors),
		T(diff_tells_what_changed),
		T(contents_of_what_changed),
		T(send_and_receive),
		T(bases_come_from_the_bases_only),
		T(a_full_pool_admits_nobody),
		T(snapshots_survive_a_lost_database),
	};

	if (!hostfix_has_snapshots()) {
		print_message("1..0 # SKIP needs a storage: tests/e2e/host-*.sh\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
