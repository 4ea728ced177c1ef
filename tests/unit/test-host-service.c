/* SPDX-License-Identifier: MIT */
/*
 * The sessions of a sandbox host from creation to destruction, over restarts, with damaged records
 * and bad requests.
 */
#include "config.h"

#include <sys/stat.h>

#include <base/file.h>

#include <host/host-priv.h>

#include "tests/lib/hostfix.h"

static void
a_session_starts_from_its_base(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;
	struct stat st;

	hostfix_create(f, "one", &s);
	assert_int_equal(s.state, SB_HOST_ACTIVE);
	assert_string_equal(s.id, "one");
	assert_string_equal(s.base, f->base);
	assert_int_equal(s.turn_count, 0);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "one", "hello", "hello\n"));
	assert_true(hostfix_holds(f, "one", "dir/deep", "deep\n"));
	assert_int_equal(lstat(hostfix_path(f, "one", "link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(hostfix_path(f, "one", "dir/deep"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
made_ids_are_random(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session a, b;

	hostfix_create(f, NULL, &a);
	hostfix_create(f, "", &b);
	assert_int_equal(strncmp(a.id, "sess-", 5), 0);
	assert_true(strlen(a.id) >= 5 + 16);
	assert_string_not_equal(a.id, b.id);
	sb_host_session_clear(&a);
	sb_host_session_clear(&b);
}

static void
creation_is_refused_for_bad_requests(void **state)
{
	static const char *const bad[] = { "../x", "a/b", "a@b", "a..b", ".x", "_dead-1", "a b" };
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	o.base = f->base;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		o.id = bad[i];
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL,
			&f->err);
	}
	o.id = "x";
	o.base = f->zfs ? "nosuch@initial" : "nosuch";
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_BASE_NOT_FOUND,
		&f->err);
	o.base = f->zfs ? "img@nosuch" : "../sessions";
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err),
		f->zfs ? SB_E_BASE_NOT_FOUND : SB_E_INVAL, &f->err);
	o.base = f->zfs ? "img" : "a/b";
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL, &f->err);
	/* Nothing of it is left. */
	assert_fails(sb_host_session_get(f->h, "x", false, &s, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_int_equal(hostfix_storage_count(f), 0);
}

static void
duplicate_and_unknown_ids(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	hostfix_write(f, "one", "mine", "1");
	o.id = "one";
	o.base = f->base;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_SESSION_EXISTS,
		&f->err);
	assert_string_equal(f->err.msg, "sandbox: session already exists: one");
	assert_true(hostfix_holds(f, "one", "mine", "1"));
	assert_fails(sb_host_session_get(f->h, "two", false, &s, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_string_equal(f->err.msg, "sandbox: session not found: two");
	assert_fails(sb_host_session_pause(f->h, "two", NULL, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_fails(sb_host_session_resume(f->h, "two", NULL, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_fails(sb_host_session_destroy(f->h, "two", false, NULL, &f->err),
		SB_E_SESSION_NOT_FOUND, &f->err);
	assert_fails(sb_host_session_set_labels(f->h, "two", NULL, 0, &f->err),
		SB_E_SESSION_NOT_FOUND, &f->err);
}

static void
capacity_comes_before_the_id(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	sb_host_close(f->h);
	f->o.max_sessions = 1;
	hostfix_open(f);
	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	o.id = "one";
	o.base = f->base;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_MAX_SESSIONS,
		&f->err);
	assert_string_equal(f->err.msg, "sandbox: max sessions reached");
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	hostfix_create(f, "two", &s);
	sb_host_session_clear(&s);
}

static void
pause_and_resume(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	assert_fails(sb_host_session_resume(f->h, "one", NULL, &f->err), SB_E_INVALID_STATE,
		&f->err);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_PAUSED);
	assert_fails(sb_host_session_pause(f->h, "one", NULL, &f->err), SB_E_SESSION_PAUSED,
		&f->err);
	hostfix_reopen(f);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_PAUSED);
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
}

static void
everything_is_there_after_a_restart(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_label labels[] = { { (char *)"task", (char *)"t1" },
		{ (char *)"user", (char *)"ann" } };
	struct sb_host_session s, t;

	hostfix_create(f, "one", &s);
	assert_ok(sb_host_session_set_labels(f->h, "one", labels, 2, &f->err), &f->err);
	hostfix_write(f, "one", "work", "done");
	hostfix_reopen(f);
	assert_ok(sb_host_session_get(f->h, "one", true, &t, &f->err), &f->err);
	assert_int_equal(t.state, SB_HOST_ACTIVE);
	assert_string_equal(t.mountpoint, s.mountpoint);
	assert_int_equal(t.created_ns, s.created_ns);
	assert_int_equal(t.n_labels, 2);
	assert_string_equal(t.labels[0].key, "task");
	assert_string_equal(t.labels[0].value, "t1");
	assert_true(t.space_used > 0);
	assert_true(hostfix_holds(f, "one", "work", "done"));
	sb_host_session_clear(&s);
	sb_host_session_clear(&t);
}

static void
shutdown_pauses_and_the_next_start_resumes(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	hostfix_create(f, "run", &s);
	sb_host_session_clear(&s);
	hostfix_create(f, "rest", &s);
	sb_host_session_clear(&s);
	assert_ok(sb_host_session_pause(f->h, "rest", NULL, &f->err), &f->err);
	assert_ok(sb_host_shutdown(f->h, NULL, &f->err), &f->err);
	assert_int_equal(hostfix_state(f, "run"), SB_HOST_PAUSED);
	o.base = f->base;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_SHUTTING_DOWN,
		&f->err);
	assert_ok(sb_host_shutdown(f->h, NULL, &f->err), &f->err);
	hostfix_reopen(f);
	assert_int_equal(hostfix_state(f, "run"), SB_HOST_ACTIVE);
	assert_int_equal(hostfix_state(f, "rest"), SB_HOST_PAUSED);
}

static void
no_resume_leaves_them_paused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;

	hostfix_create(f, "run", &s);
	sb_host_session_clear(&s);
	assert_ok(sb_host_shutdown(f->h, NULL, &f->err), &f->err);
	f->o.no_resume = true;
	hostfix_reopen(f);
	assert_int_equal(hostfix_state(f, "run"), SB_HOST_PAUSED);
	assert_ok(sb_host_session_resume(f->h, "run", NULL, &f->err), &f->err);
}

static void
lists_are_filtered_and_paged(void **state)
{
	static const char *const ids[] = { "c", "a", "b" };
	struct hostfix *f = *state;
	struct sb_host_label want = { (char *)"k", (char *)"odd" };
	struct sb_host_filter fl = SB_HOST_FILTER_INIT;
	struct sb_host_session *v, s;
	size_t n;

	for (size_t i = 0; i < 3; i++) {
		struct sb_host_label l = { (char *)"k", (char *)(i % 2 ? "odd" : "even") };

		hostfix_create(f, ids[i], &s);
		sb_host_session_clear(&s);
		assert_ok(sb_host_session_set_labels(f->h, ids[i], &l, 1, &f->err), &f->err);
	}
	assert_ok(sb_host_session_list(f->h, NULL, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 3);
	assert_string_equal(v[0].id, "a");
	assert_string_equal(v[2].id, "c");
	sb_host_sessions_free(v, n);
	fl.labels = &want;
	fl.n_labels = 1;
	assert_ok(sb_host_session_list(f->h, &fl, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].id, "a");
	sb_host_sessions_free(v, n);
	want.value = (char *)"";
	fl.after = "a";
	fl.limit = 1;
	assert_ok(sb_host_session_list(f->h, &fl, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 1);
	assert_string_equal(v[0].id, "b");
	sb_host_sessions_free(v, n);
	fl.after = NULL;
	fl.limit = 0;
	fl.states = 1u << SB_HOST_PAUSED;
	assert_ok(sb_host_session_list(f->h, &fl, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 0);
	sb_host_sessions_free(v, n);
}

static void
destroy_leaves_nothing(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_fails(sb_host_session_get(f->h, "one", false, &s, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
	assert_int_equal(access(s.mountpoint, F_OK), -1);
	assert_int_equal(hostfix_storage_count(f), 0);
	sb_host_session_clear(&s);
	/* The id is free again. */
	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "one", "hello", "hello\n"));
}

static void
a_workspace_without_a_record_is_adopted(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;
	char db[400];

	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	hostfix_write(f, "one", "work", "done");
	sb_host_close(f->h);
	f->h = NULL;
	(void)snprintf(db, sizeof db, "%s/host.db", f->state_dir);
	assert_int_equal(unlink(db), 0);
	hostfix_open(f);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_PAUSED);
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	assert_true(hostfix_holds(f, "one", "work", "done"));
}

static void
a_record_without_a_workspace_is_failed(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	assert_ok(f->h->st->ops->destroy(f->h->st, "one", &f->err), &f->err);
	sb_host_close(f->h);
	f->h = NULL;
	sb_host_session_clear(&s);
	hostfix_open(f);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_FAILED);
	assert_fails(sb_host_session_pause(f->h, "one", NULL, &f->err), SB_E_INVALID_STATE,
		&f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
}

static void
one_host_a_state_directory(void **state)
{
	struct hostfix *f = *state;

	assert_null(sb_host_open(&f->o, &f->err));
	assert_int_equal(f->err.code, SB_E_LOCKED);
}

static void
a_damaged_or_newer_database_is_refused(void **state)
{
	struct hostfix *f = *state;
	char path[400], sql[500];
	const char *const argv[] = { "sqlite3", path, sql, NULL };

	sb_host_close(f->h);
	f->h = NULL;
	(void)snprintf(path, sizeof path, "%s/host.db", f->state_dir);
	(void)snprintf(sql, sizeof sql, "PRAGMA user_version=99");
	if (hostfix_run(argv) == 0) {
		assert_null(sb_host_open(&f->o, &f->err));
		assert_int_equal(f->err.code, SB_E_VERSION);
	}
	assert_ok(sb_file_replace(AT_FDCWD, path, "not a database, but long enough to be looked at",
			  47, 0600, &f->err),
		&f->err);
	assert_null(sb_host_open(&f->o, &f->err));
	assert_int_equal(f->err.code, SB_E_CORRUPT);
	assert_int_equal(unlink(path), 0);
	hostfix_open(f);
}

static void
bad_options_are_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_opts o;

	sb_host_close(f->h);
	f->h = NULL;
	o = f->o;
	o.state_dir = "relative";
	assert_null(sb_host_open(&o, &f->err));
	assert_int_equal(f->err.code, SB_E_INVAL);
	o = f->o;
	o.warn_at = 0.99;
	assert_null(sb_host_open(&o, &f->err));
	assert_int_equal(f->err.code, SB_E_INVAL);
	o = f->o;
	o.snapshot_prefix = "a/b";
	assert_null(sb_host_open(&o, &f->err));
	assert_int_equal(f->err.code, SB_E_INVAL);
	o = f->o;
	o.sessions_dataset = o.sessions_root_dir = NULL;
	assert_null(sb_host_open(&o, &f->err));
	assert_int_equal(f->err.code, SB_E_INVAL);
	if (f->zfs) {
		o = f->o;
		o.bases_dataset = f->sessions;
		assert_null(sb_host_open(&o, &f->err));
		assert_int_equal(f->err.code, SB_E_INVAL);
	} else if (!f->quota) {
		o = f->o;
		o.default_quota = 1;
		assert_null(sb_host_open(&o, &f->err));
		assert_int_equal(f->err.code, SB_E_UNSUPPORTED);
	}
	hostfix_open(f);
}

static void
bases_are_listed(void **state)
{
	struct hostfix *f = *state;
	struct sb_strlist bases = { 0 };

	assert_ok(sb_host_base_list(f->h, &bases, &f->err), &f->err);
	assert_int_equal(bases.n, 1);
	assert_string_equal(bases.v[0], f->base);
	sb_strlist_free(&bases);
}

static void
health_and_stats(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_capabilities c;
	struct sb_host_health he;
	struct sb_host_stats st;
	struct sb_host_session s;

	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	sb_host_health(f->h, NULL, &he);
	assert_int_equal(he.sessions, 1);
	assert_true(he.size > 0 && he.capacity > 0 && he.capacity < 1);
	assert_string_equal(he.pool_state, f->snaps ? "ONLINE" : "");
	assert_string_equal(he.storage, hostfix_storage());
	assert_string_equal(he.storage_why, "it is configured");
	if (f->snaps)
		assert_int_equal(he.status, SB_HOST_HEALTHY);
	sb_host_capabilities(f->h, &c);
	assert_int_equal(c.snapshots, f->snaps);
	if (!f->snaps || f->zfs)
		assert_int_equal(c.quota, f->zfs);
	assert_false(c.isolation);
	assert_string_equal(c.storage, hostfix_storage());
	sb_host_stats(f->h, &st);
	assert_int_equal(st.created, 1);
	assert_int_equal(st.sessions[SB_HOST_ACTIVE], 1);
}

static void
an_empty_session_needs_no_base(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	o.id = "none";
	if (f->zfs) {
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL,
			&f->err);
		assert_string_equal(f->err.msg, "base snapshot is required for ZFS backend");
	} else {
		assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
		sb_host_session_clear(&s);
		assert_ok(sb_host_session_destroy(f->h, "none", false, NULL, &f->err), &f->err);
	}
	o.empty = true;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "none", "hello", NULL));
	hostfix_write(f, "none", "x", "1");
}

static void
snapshot_calls_say_so_on_local_disk(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_snapshot *v, sn;
	struct sb_host_change *ch;
	struct sb_host_session s;
	bool more;
	size_t n;

	if (f->snaps)
		skip_because("the storage that this runs on has snapshots");
	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	assert_fails(sb_host_snapshot_create(f->h, "one", "x", NULL, &sn, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_string_equal(f->err.msg,
		"sandbox: snapshots not available (storage local-disk has none)");
	assert_fails(sb_host_snapshot_list(f->h, "one", NULL, &v, &n, &f->err), SB_E_NO_SNAPSHOTS,
		&f->err);
	assert_fails(sb_host_session_rollback(f->h, "one", "x", false, NULL, NULL, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_fails(sb_host_snapshot_delete(f->h, "one", "x", NULL, &f->err), SB_E_NO_SNAPSHOTS,
		&f->err);
	assert_fails(sb_host_snapshot_hold(f->h, "one", "x", "t", NULL, &f->err), SB_E_NO_SNAPSHOTS,
		&f->err);
	assert_fails(sb_host_snapshot_release(f->h, "one", "x", "t", NULL, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_fails(sb_host_session_fork(f->h, "one", "x", NULL, NULL, &s, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_fails(
		sb_host_snapshot_diff(f->h, "one", "x", NULL, 0, NULL, &ch, &n, &more, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_fails(sb_host_snapshot_send(f->h, "one", "x", NULL, 1, NULL, &f->err),
		SB_E_NO_SNAPSHOTS, &f->err);
	assert_fails(sb_host_session_receive(f->h, NULL, 0, NULL, &s, &f->err), SB_E_NO_SNAPSHOTS,
		&f->err);
	assert_fails(sb_host_snapshot_create(f->h, "nope", "x", NULL, &sn, &f->err),
		SB_E_SESSION_NOT_FOUND, &f->err);
	/* A turn ends everywhere; here it leaves nothing to go back to. */
	assert_ok(sb_host_turn_complete(f->h, "one", NULL, &sn, &f->err), &f->err);
	assert_string_equal(sn.name, "");
	assert_int_equal(sn.turn, 0);
	assert_fails(sb_host_turn_complete(f->h, "nope", NULL, &sn, &f->err),
		SB_E_SESSION_NOT_FOUND, &f->err);
}

static void
quota_is_kept_or_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	static char block[1 << 20];
	struct sb_host_session s;
	const char *path;
	int fd;
	bool full = false;

	o.id = "one";
	o.base = f->base;
	o.quota = 8 << 20;
	if (!f->quota) {
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_UNSUPPORTED,
			&f->err);
		return;
	}
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	assert_int_equal(s.quota, 8 << 20);
	sb_host_session_clear(&s);
	memset(block, 'x', sizeof block);
	path = hostfix_path(f, "one", "big");
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	for (int i = 0; i < 24 && !full; i++)
		full = write(fd, block, sizeof block) != (ssize_t)sizeof block || fsync(fd) < 0;
	(void)close(fd);
	assert_true(full);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(a_session_starts_from_its_base),
		T(made_ids_are_random),
		T(creation_is_refused_for_bad_requests),
		T(duplicate_and_unknown_ids),
		T(capacity_comes_before_the_id),
		T(pause_and_resume),
		T(everything_is_there_after_a_restart),
		T(shutdown_pauses_and_the_next_start_resumes),
		T(no_resume_leaves_them_paused),
		T(lists_are_filtered_and_paged),
		T(destroy_leaves_nothing),
		T(a_workspace_without_a_record_is_adopted),
		T(a_record_without_a_workspace_is_failed),
		T(one_host_a_state_directory),
		T(a_damaged_or_newer_database_is_refused),
		T(bad_options_are_refused),
		T(bases_are_listed),
		T(health_and_stats),
		T(an_empty_session_needs_no_base),
		T(snapshot_calls_say_so_on_local_disk),
		T(quota_is_kept_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
