/* SPDX-License-Identifier: MIT */
/*
 * What keeps a host from hurting its sessions and its machine: one owner of a storage, no mass
 * destruction by a wrong state directory, a log of what went, room that is kept free.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/hostfix.h"
#include "tests/lib/unit.h"

/* What the host logs at info and above. */
static struct {
	pthread_mutex_t mu;
	char text[65536];
	size_t len;
} lines = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void
on_line(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)component;
	(void)arg;
	(void)pthread_mutex_lock(&lines.mu);
	if (level <= SB_LOG_INFO && lines.len + strlen(text) + 2 < sizeof lines.text)
		lines.len += (size_t)snprintf(lines.text + lines.len, sizeof lines.text - lines.len,
			"%s\n", text);
	(void)pthread_mutex_unlock(&lines.mu);
}

/* How often the text was logged since forget(). */
static unsigned
logged(const char *text)
{
	unsigned n = 0;

	(void)pthread_mutex_lock(&lines.mu);
	for (const char *p = lines.text; (p = strstr(p, text)); p++)
		n++;
	(void)pthread_mutex_unlock(&lines.mu);
	return n;
}

static void
forget(void)
{
	(void)pthread_mutex_lock(&lines.mu);
	lines.len = 0;
	lines.text[0] = '\0';
	(void)pthread_mutex_unlock(&lines.mu);
}

static int
setup(void **state)
{
	struct hostfix *f = calloc(1, sizeof *f);

	if (!f)
		return -1;
	hostfix_prepare(f);
	f->o.log = (struct sb_log){ .fn = on_line, .level = SB_LOG_INFO };
	forget();
	hostfix_open(f);
	*state = f;
	return 0;
}

static void
make(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

static void
a_storage_has_one_owner(void **state)
{
	static const enum sb_host_orphans ways[] = { SB_HOST_ORPHANS_ADOPT, SB_HOST_ORPHANS_REPORT,
		SB_HOST_ORPHANS_DESTROY };
	struct hostfix *f = *state;
	struct sb_host_opts o = f->o;
	struct sb_error err = { 0 };
	char other[320];

	make(f, "live");
	(void)snprintf(other, sizeof other, "%s/other-state", f->t.path);
	o.state_dir = other;
	for (size_t i = 0; i < 3; i++) {
		o.orphans = ways[i];
		assert_null(sb_host_open(&o, &err));
		assert_int_equal(err.code, SB_E_LOCKED);
		assert_non_null(strstr(err.msg, "another host has the sessions"));
	}
	assert_true(hostfix_holds(f, "live", "hello", "hello\n"));
	/* It is free again when its owner is gone. */
	sb_host_close(f->h);
	o.orphans = SB_HOST_ORPHANS_REPORT;
	f->h = sb_host_open(&o, &err);
	if (!f->h)
		fail_msg("%s", err.msg);
	sb_host_close(f->h);
	f->h = NULL;
	hostfix_open(f);
	assert_int_equal(hostfix_state(f, "live"), SB_HOST_ACTIVE);
}

static void
a_new_state_destroys_nothing(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_opts o = f->o;
	struct sb_error err = { 0 };
	char other[320];

	make(f, "kept");
	sb_host_close(f->h);
	f->h = NULL;
	(void)snprintf(other, sizeof other, "%s/other-state", f->t.path);
	o.state_dir = other;
	o.orphans = SB_HOST_ORPHANS_DESTROY;
	assert_null(sb_host_open(&o, &err));
	assert_int_equal(err.code, SB_E_INVAL);
	assert_non_null(strstr(err.msg, "is it the right directory?"));
	o.orphans = SB_HOST_ORPHANS_REPORT;
	f->h = sb_host_open(&o, &err);
	if (!f->h)
		fail_msg("%s", err.msg);
	assert_int_equal(logged("kept is in the storage, but no session"), 1);
	sb_host_close(f->h);
	/* Known by now, it is the operator's will, and it is written down. */
	o.orphans = SB_HOST_ORPHANS_DESTROY;
	f->h = sb_host_open(&o, &err);
	if (!f->h)
		fail_msg("%s", err.msg);
	assert_int_equal(logged("kept, which was no session of this host: destroyed"), 1);
	assert_int_equal(hostfix_storage_count(f), 0);
	sb_host_close(f->h);
	f->h = NULL;
}

static void
what_comes_and_goes_is_logged(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	make(f, "one");
	assert_int_equal(logged("session one: created, runtime none"), 1);
	o.id = "two";
	o.base = f->zfs ? "no-such@base" : "no-such-base";
	assert_true(sb_host_session_create(f->h, &o, NULL, &s, &f->err) < 0);
	assert_int_equal(logged("session two: not created: "), 1);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_int_equal(logged("session one: destroyed"), 1);
}

/* Until the line was logged so often. */
static void
until_logged(const char *text, unsigned n)
{
	for (int i = 0; i < 4000 && logged(text) < n; i++)
		(void)usleep(2000);
	assert_int_equal(logged(text), n);
}

static void
critical_space_is_kept_free(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_health he;
	struct sb_host_session s;

	make(f, "one");
	assert_true(sb_host_health_ready(f->h));
	sb_host_close(f->h);
	f->o.warn_at = f->o.critical_at = 1e-9;
	f->o.health_interval_ms = 100;
	f->h = NULL;
	forget();
	hostfix_open(f);
	o.id = "two";
	o.base = f->base;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_POOL_FULL, &f->err);
	if (f->zfs) {
		struct sb_host_snapshot sn;

		assert_fails(sb_host_snapshot_create(f->h, "one", "x", NULL, &sn, &f->err),
			SB_E_POOL_FULL, &f->err);
	}
	sb_host_health(f->h, NULL, &he);
	assert_int_equal(he.status, SB_HOST_UNHEALTHY);
	/* The worker finds out, says so once however often it looks, and the host is not ready. */
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	until_logged("unhealthy: ", 1);
	(void)usleep(350000);
	assert_int_equal(logged("unhealthy: "), 1);
	assert_false(sb_host_health_ready(f->h));
	/* What is there can go. */
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
}

/* A workspace that is full, and in a snapshot too, can be emptied, and be filled again. */
static void
a_full_workspace_can_be_emptied(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_snapshot sn;
	struct sb_host_session s;
	char out[2000];

	o.id = "full";
	o.base = f->base;
	o.quota = 16 << 20;
	if (!f->zfs) {
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_UNSUPPORTED,
			&f->err);
		return;
	}
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	for (int round = 0; round < 2; round++) {
		const char *name = round ? "b" : "a";

		assert_int_not_equal(
			hostfix_bash(f, "full",
				"dd if=/dev/urandom of=big bs=65536 count=1000 conv=fsync 2>&1",
				out, sizeof out),
			0);
		assert_ok(sb_host_snapshot_create(f->h, "full", name, NULL, &sn, &f->err), &f->err);
		sb_host_snapshot_clear(&sn);
		if (hostfix_bash(f, "full", "rm big && sync && echo new >small", out, sizeof out) !=
			0)
			fail_msg("round %d: %s", round, out);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, hostfix_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_storage_has_one_owner),
		T(a_new_state_destroys_nothing),
		T(what_comes_and_goes_is_logged),
		T(critical_space_is_kept_free),
		T(a_full_workspace_can_be_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
