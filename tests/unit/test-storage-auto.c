/* SPDX-License-Identifier: MIT */
/*
 * Which storage a host chooses. In the directory SB_TEST_PLACE of storage SB_TEST_STORAGE when they
 * are set (tests/e2e/host-*.sh), else in a scratch directory; then as root and as somebody else.
 */
#include "config.h"

#include <dirent.h>
#include <sys/stat.h>

#include <base/file.h>
#include <host/host-priv.h>

#include "tests/lib/hostfix.h"

#define NOBODY 65534

struct fix {
	struct tmpdir t;
	char state[300], root[300];
	struct sb_host_opts o;
	struct sb_host *h;
	struct sb_error err;
};

static int
setup(void **state)
{
	static unsigned n;
	struct fix *f = calloc(1, sizeof *f);
	const char *place = getenv("SB_TEST_PLACE");

	assert_non_null(f);
	tmpdir_make(&f->t);
	(void)snprintf(f->state, sizeof f->state, "%s/state", f->t.path);
	(void)snprintf(f->root, sizeof f->root, "%s/auto%u", place ? place : f->t.path, n++);
	f->o = (struct sb_host_opts)SB_HOST_OPTS_INIT;
	f->o.runtime = SB_HOST_RUNTIME_NONE;
	f->o.state_dir = f->state;
	f->o.sessions_root_dir = f->root;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;
	const char *const argv[] = { "rm", "-rf", f->root, NULL };

	sb_host_close(f->h);
	assert_int_equal(hostfix_run(argv), 0);
	tmpdir_remove(&f->t);
	free(f);
	return 0;
}

static void
open_host(struct fix *f)
{
	sb_host_close(f->h);
	f->h = sb_host_open(&f->o, &f->err);
	if (!f->h)
		fail_msg("%s", f->err.msg);
}

static void
refused(struct fix *f, int code, const char *text)
{
	sb_host_close(f->h);
	f->h = NULL;
	assert_null(sb_host_open(&f->o, &f->err));
	assert_int_equal(f->err.code, code);
	if (!strstr(f->err.msg, text))
		fail_msg("\"%s\" is not in: %s", text, f->err.msg);
}

static void
on(struct fix *f, const char *storage, const char *why)
{
	struct sb_host_capabilities c;
	struct sb_host_health he;

	open_host(f);
	sb_host_capabilities(f->h, &c);
	sb_host_health(f->h, NULL, &he);
	assert_string_equal(c.storage, storage);
	assert_string_equal(he.storage, storage);
	assert_string_equal(he.storage_why, c.storage_why);
	if (!strstr(c.storage_why, why))
		fail_msg("\"%s\" is not in: %s", why, c.storage_why);
}

static void
create(struct fix *f, const char *id)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	o.id = id;
	o.empty = true;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
}

static void
destroy(struct fix *f, const char *id)
{
	assert_ok(sb_host_session_destroy(f->h, id, false, NULL, &f->err), &f->err);
}

/* What storage `auto` is in a new directory. */
static const char *
best(void)
{
	return hostfix_has_snapshots() ? hostfix_storage() :
		geteuid() == 0         ? "overlay" :
					 "local-disk";
}

static void
the_best_that_works_is_taken_and_kept(void **state)
{
	struct fix *f = *state;
	const bool plain = strcmp(best(), "local-disk") == 0;

	on(f, best(),
		plain ? "no storage with snapshots works: storage overlay does not work on" :
			strcmp(best(), "btrfs") == 0 ? "is on btrfs" :
						       "overlays work on");
	create(f, "one");
	on(f, best(), "this host's sessions are on it");
	f->o.storage = plain ? SB_HOST_OVERLAY : SB_HOST_LOCAL_DISK;
	refused(f, SB_E_INVAL, "this host has 1 sessions on storage");
	f->o.storage = SB_HOST_STORAGE_AUTO;
	open_host(f);
	destroy(f, "one");
	/* Another host that comes to this directory. */
	(void)snprintf(f->state, sizeof f->state, "%s/state2", f->t.path);
	if (!plain)
		on(f, best(), "has what storage");
}

static void
a_directory_of_local_disk_is_not_switched(void **state)
{
	struct fix *f = *state;

	f->o.storage = SB_HOST_LOCAL_DISK;
	on(f, "local-disk", "it is configured");
	create(f, "one");
	f->o.storage = SB_HOST_STORAGE_AUTO;
	on(f, "local-disk", "this host's sessions are on it");
	sb_host_close(f->h);
	f->h = NULL;
	/* As a host that is older than the note left it. */
	(void)snprintf(f->state, sizeof f->state, "%s/state/storage", f->t.path);
	assert_int_equal(unlink(f->state), 0);
	(void)snprintf(f->state, sizeof f->state, "%s/state", f->t.path);
	on(f, "local-disk", "has what storage local-disk keeps");
	f->o.storage = SB_HOST_OVERLAY;
	refused(f, SB_E_INVAL, "1 sessions on storage local-disk");
	(void)snprintf(f->state, sizeof f->state, "%s/state2", f->t.path);
	refused(f, SB_E_INVAL, "use storage local-disk, or another directory for overlay");
	(void)snprintf(f->state, sizeof f->state, "%s/state", f->t.path);
	f->o.storage = SB_HOST_STORAGE_AUTO;
	open_host(f);
	destroy(f, "one");
	/* Without sessions it may be another. */
	on(f, best(), "");
}

/* A session directory that is on no storage with snapshots, and nothing is left of the attempts. */
static void
without_root_it_is_local_disk(void **state)
{
	struct fix *f = *state;
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	if (geteuid() != 0)
		skip_because("becoming another user needs root");
	if (hostfix_has_snapshots())
		skip_because("others do not reach SB_TEST_PLACE");
	assert_int_equal(chmod(f->t.path, 0777), 0);
	assert_int_equal(mkdir(f->root, 0777), 0);
	assert_int_equal(chown(f->root, NOBODY, NOBODY), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	f->h = sb_host_open(&f->o, &f->err);
	assert_int_equal(seteuid(0), 0);
	if (!f->h)
		fail_msg("%s", f->err.msg);
	assert_string_equal(f->h->st->ops->name, "local-disk");
	assert_non_null(strstr(f->h->storage_why, "no storage with snapshots works"));
	d = opendir(f->root);
	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(d);
	assert_int_equal(n, 0);
}

static void
the_default_place_is_in_the_state_directory(void **state)
{
	struct fix *f = *state;

	if (hostfix_has_snapshots())
		skip_because("the state directory is not on the disk that this is about");
	f->o.sessions_root_dir = NULL;
	on(f, best(), "");
	create(f, "one");
	open_host(f);
	destroy(f, "one");
	(void)snprintf(f->root, sizeof f->root, "%s/state/sessions", f->t.path);
	assert_int_equal(access(f->root, F_OK), 0);
}

static void
a_pool_is_zfs(void **state)
{
	struct fix *f = *state;

	f->o.pool = "nosuchpool";
	f->o.bases_dataset = "nosuchpool/bases";
	f->o.sessions_dataset = "nosuchpool/sessions";
	assert_null(sb_host_open(&f->o, &f->err));
	assert_true(f->err.code != SB_E_INVAL);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_best_that_works_is_taken_and_kept),
		T(a_directory_of_local_disk_is_not_switched),
		T(without_root_it_is_local_disk),
		T(the_default_place_is_in_the_state_directory),
		T(a_pool_is_zfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
