/* SPDX-License-Identifier: MIT */
/* A session's files made by other versions, and damaged ones. */
#include "tests/lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <sync/tree/digest.h>
#include <sync/session/session-hold.h>
#include <sync/session/session-store.h>

#include "tests/lib/tmpdir.h"

static const char body[] =
	"name old\nstate unsynced\nidentity 000102030405060708090a0b0c0d0e0f\ncreated "
	"1000\nlast_sync 2000\n"
	"owner 0 0\nfailures 3\nnext_try 0\npair 101112131415161718191a1b1c1d1e1f\nlocal "
	"/no\\x20where\nremote box:proj\nport 22\n";

/* A session's file with a good sum. */
static void
make_session(const struct tmpdir *t, const char *name, const char *first, const char *lines)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest d;
	char hex[33], path[512];

	(void)snprintf(path, sizeof path, "%s/sessions/%s", t->path, name);
	assert_ok(sb_file_mkdirs(path, 0700, &err), &err);
	sb_buf_init(&b, 1u << 20);
	sb_buf_addf(&b, "%s\n%s", first, lines);
	d = sb_digest_of(b.data, b.len);
	sb_buf_addf(&b, "sum %s\n", sb_str_hex(d.b, 16, hex));
	(void)snprintf(path, sizeof path, "sessions/%s/session", name);
	assert_ok(sb_file_replace(t->fd, path, b.data, b.len, 0600, &err), &err);
}

static void
read_text(const struct tmpdir *t, const char *name, struct sb_buf *b)
{
	struct sb_error err = { 0 };

	assert_ok(sb_file_read(t->fd, name, 1u << 20, b, &err), &err);
}

static void
a_session_of_version_1_is_upgraded(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_session) struct sb_session s = { 0 };
	struct sb_session_saved_list l = { 0 };
	struct sb_session_held h;
	sb_auto(sb_buf) struct sb_buf b = { 0 }, row = { 0 };

	make_session(t, "old", "sbsync-session 1", body);
	/*
	 * The list of conflicts of that version: four fields a row. The second version is gone
	 * since.
	 */
	sb_buf_init(&row, 4096);
	sb_buf_addf(&row, "1234%c%s%cfile%cfile.saved%c", 0, t->path, 0, 0, 0);
	sb_buf_addf(&row, "1235%c%s%cgone%cgone.saved%c", 0, t->path, 0, 0, 0);
	assert_ok(sb_file_replace(t->fd, "sessions/old/conflicts", row.data, row.len, 0600, &err),
		&err);
	tmpdir_file(t, "file.saved", "12345");

	assert_ok(sb_session_load(t->path, "old", NULL, &s, &err), &err);
	assert_string_equal(s.pairs[0].local, "/no where");
	assert_int_equal(s.conflict, SB_SESSION_KEEP_BOTH);
	assert_int_equal(s.n_rules, 0);
	assert_int_equal(s.failures, 3);

	assert_ok(sb_session_hold(t->path, "old", false, &h, &err), &err);
	sb_session_let_go(&h);
	read_text(t, "sessions/old/session", &b);
	assert_memory_equal(b.data, "sbsync-session 2\n", 17);
	sb_session_free(&s);
	assert_ok(sb_session_load(t->path, "old", NULL, &s, &err), &err);
	assert_int_equal(s.state, SB_SESSION_UNSYNCED);
	assert_int_equal(s.last_sync, 2000);
	assert_ok(sb_session_conflicts(&s, t->path, &l, &err), &err);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].path, "file");
	assert_int_equal(l.v[0].when, 1234);
	assert_int_equal(l.v[0].size, 5);
	sb_session_saved_free(&l);
}

static void
a_session_of_a_newer_version_is_refused_and_kept(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct sb_session s = { 0 };
	struct sb_session_list all = { 0 };
	struct sb_session_held h;
	sb_auto(sb_buf) struct sb_buf before = { 0 }, after = { 0 };

	make_session(t, "new", "sbsync-session 3", body);
	make_session(t, "old", "sbsync-session 1", body);
	read_text(t, "sessions/new/session", &before);
	assert_fails(sb_session_load(t->path, "new", NULL, &s, &err), SB_E_VERSION, &err);
	assert_non_null(strstr(err.msg, "newer sbsync"));
	assert_fails(sb_session_hold(t->path, "new", false, &h, &err), SB_E_VERSION, &err);
	read_text(t, "sessions/new/session", &after);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, after.len);
	/* It is not passed over in silence either. */
	assert_ok(sb_session_load_all(t->path, &all, &err), &err);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.bad.n, 1);
	assert_non_null(strstr(all.bad.v[0], "'new'"));
	sb_session_list_free(&all);
}

static void
damage_is_noticed(void **state)
{
	static const char *const bad[] = { "", "\n", "sum ", "sbsync-session",
		"sbsync-session 0\nsum 00\n", "sbsync-session -1\n",
		"sbsync-session 2\nname d\nsum 00112233445566778899aabbccddeeff\n" };
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct sb_session s = { 0 };
	struct sb_session_held h;

	assert_int_equal(mkdirat(t->fd, "sessions", 0700), 0);
	assert_int_equal(mkdirat(t->fd, "sessions/d", 0700), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		tmpdir_file(t, "sessions/d/session", bad[i]);
		assert_fails(sb_session_load(t->path, "d", NULL, &s, &err), SB_E_CORRUPT, &err);
		assert_fails(sb_session_hold(t->path, "d", false, &h, &err), SB_E_CORRUPT, &err);
	}
	/* A good sum over bad lines, and over another name. */
	make_session(t, "d", "sbsync-session 2", "name d\nstate flying\n");
	assert_fails(sb_session_load(t->path, "d", NULL, &s, &err), SB_E_CORRUPT, &err);
	make_session(t, "d", "sbsync-session 2", body);
	assert_fails(sb_session_load(t->path, "d", NULL, &s, &err), SB_E_CORRUPT, &err);
}

static void
rules_and_owner_survive_saving(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_session) struct sb_session s = { 0 }, back = { 0 };
	struct sb_session_held h;

	make_session(t, "old", "sbsync-session 1", body);
	assert_ok(sb_session_load(t->path, "old", NULL, &s, &err), &err);
	assert_ok(sb_session_add_rule(&s, "*.lock \\ x", SB_SESSION_TAKE_RUNTIME, &err), &err);
	assert_ok(sb_session_add_rule(&s, "/doc", SB_SESSION_MERGE, &err), &err);
	s.conflict = SB_SESSION_TAKE_LOCAL;
	assert_ok(sb_session_hold(t->path, "old", false, &h, &err), &err);
	assert_ok(sb_session_save(h.dirfd, &s, &err), &err);
	sb_session_let_go(&h);
	assert_ok(sb_session_load(t->path, "old", NULL, &back, &err), &err);
	assert_int_equal(back.n_rules, 2);
	assert_string_equal(back.rules[0].pattern, "*.lock \\ x");
	assert_int_equal(back.rules[0].how, SB_SESSION_TAKE_RUNTIME);
	assert_int_equal(back.rules[1].how, SB_SESSION_MERGE);
	assert_int_equal(back.conflict, SB_SESSION_TAKE_LOCAL);
	/* No process owns it: its heartbeat does. */
	assert_false(sb_session_owned(&back));
	assert_ok(sb_session_beat(&back, t->path, &err), &err);
	sb_session_free(&back);
	assert_ok(sb_session_load(t->path, "old", NULL, &back, &err), &err);
	assert_true(sb_session_owned(&back));
	back.heartbeat -= SB_SESSION_HEARTBEAT_S;
	assert_false(sb_session_owned(&back));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_session_of_version_1_is_upgraded, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(a_session_of_a_newer_version_is_refused_and_kept,
			tmpdir_setup, tmpdir_teardown),
		cmocka_unit_test_setup_teardown(damage_is_noticed, tmpdir_setup, tmpdir_teardown),
		cmocka_unit_test_setup_teardown(rules_and_owner_survive_saving, tmpdir_setup,
			tmpdir_teardown),
	};

	return cmocka_run_group_tests_name("session-store", tests, NULL, NULL);
}
