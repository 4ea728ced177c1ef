/* SPDX-License-Identifier: MIT */
/*
 * Which snapshot of a session came after which, branches, and turns that change nothing. On the
 * storage that tests/e2e/host-*.sh make.
 */
#include "config.h"

#include <sys/stat.h>

#include <host/host-priv.h>

#include "tests/lib/hostfix.h"

/* "name<parent" of each, and a star where the workspace stands, joined by spaces. */
static const char *
line_of(struct hostfix *f, const char *id)
{
	static char out[2048];
	struct sb_host_snapshot *v;
	size_t n, len = 0;

	assert_ok(sb_host_snapshot_list(f->h, id, NULL, &v, &n, &f->err), &f->err);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(out + len, sizeof out - len, "%s%s<%s%s", i ? " " : "",
			v[i].name, v[i].parent, v[i].current ? "*" : "");
	sb_host_snapshots_free(v, n);
	return out;
}

/* What is newer than the target stays, as a branch that can be gone back to. */
static void
a_rollback_keeps_a_branch(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_rolled r = { 0 };
	struct sb_host_snapshot sn;

	hostfix_session(f, "one");
	hostfix_turn(f, "one", 1);
	hostfix_write(f, "one", "work", "2");
	hostfix_turn(f, "one", 2);
	hostfix_turn(f, "one", 3);
	assert_string_equal(line_of(f, "one"),
		"turn-0001< turn-0002<turn-0001 turn-0003<turn-0002*");
	if (f->zfs) {
		assert_fails(
			sb_host_session_rollback(f->h, "one", "turn-0001", 0, NULL, &r, &f->err),
			SB_E_UNSUPPORTED, &f->err);
		assert_non_null(strstr(f->err.msg, "--drop-later"));
		assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
		assert_true(hostfix_holds(f, "one", "work", "2"));
		return;
	}
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0001", 0, NULL, &r, &f->err),
		&f->err);
	assert_int_equal(r.kept, 2);
	assert_int_equal(r.dropped, 0);
	assert_true(hostfix_holds(f, "one", "work", NULL));
	assert_int_equal(hostfix_turns(f, "one"), 1);
	hostfix_reopen(f);
	assert_int_equal(hostfix_turns(f, "one"), 1);
	hostfix_write(f, "one", "work", "b");
	assert_ok(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), &f->err);
	assert_string_equal(sn.name, "turn-0002-2");
	assert_int_equal(sn.turn, 2);
	sb_host_snapshot_clear(&sn);
	assert_string_equal(line_of(f, "one"),
		"turn-0001< turn-0002<turn-0001 turn-0003<turn-0002 turn-0002-2<turn-0001*");
	/* Over to the other branch, and back. */
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0003", 0, NULL, &r, &f->err),
		&f->err);
	assert_true(hostfix_holds(f, "one", "work", "2"));
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0002-2", 0, NULL, &r, &f->err),
		&f->err);
	assert_true(hostfix_holds(f, "one", "work", "b"));
	assert_ok(sb_host_session_rollback(f->h, "one", "turn-0001", SB_HOST_DROP_LATER, NULL, &r,
			  &f->err),
		&f->err);
	assert_int_equal(r.dropped, 3);
	assert_int_equal(r.kept, 0);
	assert_string_equal(line_of(f, "one"), "turn-0001<*");
}

static void
a_turn_without_changes_takes_nothing(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_snapshot sn;

	hostfix_session(f, "one");
	hostfix_turn(f, "one", 1);
	for (uint64_t i = 2; i <= 4; i++) {
		assert_ok(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), &f->err);
		assert_int_equal(sn.turn, i);
		assert_int_equal(sn.unchanged, f->h->st->ops->unchanged != NULL);
		if (sn.unchanged)
			assert_string_equal(sn.name, "turn-0001");
		sb_host_snapshot_clear(&sn);
	}
	assert_int_equal(hostfix_turns(f, "one"), 4);
	if (f->h->st->ops->unchanged)
		assert_string_equal(hostfix_snaps(f, "one"), "turn-0001");
	hostfix_reopen(f);
	assert_int_equal(hostfix_turns(f, "one"), 4);
	/* One byte, and one mode, are a change. */
	hostfix_turn(f, "one", 5);
	assert_int_equal(chmod(hostfix_path(f, "one", "hello"), 0600), 0);
	assert_ok(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), &f->err);
	assert_false(sn.unchanged);
	assert_string_equal(sn.name, "turn-0006");
	sb_host_snapshot_clear(&sn);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(a_rollback_keeps_a_branch),
		T(a_turn_without_changes_takes_nothing),
	};

	if (!hostfix_has_snapshots()) {
		print_message("1..0 # SKIP needs a storage: tests/e2e/host-*.sh\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
