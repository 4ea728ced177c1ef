/* SPDX-License-Identifier: MIT */
/*
 * Calls of a sandbox host that meet each other: sessions are created, destroyed and listed by many
 * threads at once.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tests/lib/hostfix.h"

/* Fewer rounds on ZFS, where each costs commands. */
static int
rounds(int local, int zfs)
{
	return hostfix_is_zfs() ? zfs : local;
}

struct race {
	struct hostfix *f;
	int r;
	struct sb_error err;
	struct sb_host_session s;
};

static void *
create_thread(void *arg)
{
	struct race *c = arg;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;

	o.id = "x";
	o.base = c->f->base;
	c->r = sb_host_session_create(c->f->h, &o, NULL, &c->s, &c->err);
	return NULL;
}

/* A destroy that meets a creation half-way leaves no session, no workspace and no wrong answer. */
static void
destroy_during_creation(void **state)
{
	struct hostfix *f = *state;
	int won = 0;

	for (int i = 0; i < rounds(150, 8); i++) {
		struct race c = { .f = f };
		struct sb_host_session s;
		pthread_t t;
		int r;

		assert_int_equal(pthread_create(&t, NULL, create_thread, &c), 0);
		do
			r = sb_host_session_destroy(f->h, "x", false, NULL, &f->err);
		while (r == SB_E_SESSION_NOT_FOUND);
		assert_int_equal(r, 0);
		assert_int_equal(pthread_join(t, NULL), 0);
		if (c.r != 0 && c.r != SB_E_SESSION_DESTROYING)
			fail_msg("create: %d %s", c.r, c.err.msg);
		won += c.r == 0;
		if (c.r == 0)
			sb_host_session_clear(&c.s);
		assert_fails(sb_host_session_get(f->h, "x", false, &s, &f->err),
			SB_E_SESSION_NOT_FOUND, &f->err);
		assert_int_equal(hostfix_storage_count(f), 0);
	}
	print_message("# create won %d times\n", won);
}

/* Two creations of one id: one session. */
static void
one_id_is_created_once(void **state)
{
	struct hostfix *f = *state;

	for (int i = 0; i < rounds(50, 5); i++) {
		struct race c[4];
		pthread_t t[4];
		int made = 0;

		for (int j = 0; j < 4; j++) {
			c[j] = (struct race){ .f = f };
			assert_int_equal(pthread_create(&t[j], NULL, create_thread, &c[j]), 0);
		}
		for (int j = 0; j < 4; j++) {
			assert_int_equal(pthread_join(t[j], NULL), 0);
			if (c[j].r != 0 && c[j].r != SB_E_SESSION_EXISTS)
				fail_msg("create: %d %s", c[j].r, c[j].err.msg);
			made += c[j].r == 0;
			if (c[j].r == 0)
				sb_host_session_clear(&c[j].s);
		}
		assert_int_equal(made, 1);
		assert_int_equal(hostfix_state(f, "x"), SB_HOST_ACTIVE);
		assert_int_equal(hostfix_storage_count(f), 1);
		assert_ok(sb_host_session_destroy(f->h, "x", false, NULL, &f->err), &f->err);
	}
}

static void *
destroy_thread(void *arg)
{
	struct race *c = arg;

	c->r = sb_host_session_destroy(c->f->h, "x", false, NULL, &c->err);
	return NULL;
}

/* Everybody who destroys waits for the one destroy, or comes too late. */
static void
destroyed_once(void **state)
{
	struct hostfix *f = *state;

	for (int i = 0; i < rounds(50, 4); i++) {
		struct race c[4];
		pthread_t t[4];
		struct sb_host_session s;
		int done = 0;

		hostfix_create(f, "x", &s);
		sb_host_session_clear(&s);
		for (int j = 0; j < 4; j++) {
			c[j] = (struct race){ .f = f };
			assert_int_equal(pthread_create(&t[j], NULL, destroy_thread, &c[j]), 0);
		}
		for (int j = 0; j < 4; j++) {
			assert_int_equal(pthread_join(t[j], NULL), 0);
			if (c[j].r != 0 && c[j].r != SB_E_SESSION_NOT_FOUND)
				fail_msg("destroy: %d %s", c[j].r, c[j].err.msg);
			done += c[j].r == 0;
		}
		assert_true(done >= 1);
		assert_int_equal(hostfix_storage_count(f), 0);
	}
}

static atomic_bool stop;

static void *
churn_thread(void *arg)
{
	struct race *c = arg;
	struct sb_error err;
	unsigned seed = (unsigned)(uintptr_t)c;

	while (!atomic_load(&stop)) {
		struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
		struct sb_host_snapshot sn = { 0 };
		struct sb_host_session s, *v;
		char id[2] = { (char)('a' + rand_r(&seed) % 3), '\0' };
		size_t n;
		int r = 0;

		o.id = id;
		o.base = c->f->base;
		switch (rand_r(&seed) % 8) {
		case 0:
		case 1:
			r = sb_host_session_create(c->f->h, &o, NULL, &s, &err);
			if (r == 0)
				sb_host_session_clear(&s);
			break;
		case 2: r = sb_host_session_destroy(c->f->h, id, false, NULL, &err); break;
		case 3: r = sb_host_session_pause(c->f->h, id, NULL, &err); break;
		case 4: r = sb_host_session_resume(c->f->h, id, NULL, &err); break;
		case 5:
			r = sb_host_turn_complete(c->f->h, id, NULL, &sn, &err);
			if (r == 0)
				sb_host_snapshot_clear(&sn);
			break;
		case 6:
			r = sb_host_session_list(c->f->h, NULL, &v, &n, &err);
			if (r == 0)
				sb_host_sessions_free(v, n);
			break;
		case 7:
			r = sb_host_session_rollback(c->f->h, id, "turn-0001", SB_HOST_DROP_LATER,
				NULL, NULL, &err);
			break;
		}
		switch (r) {
		case 0:
		case SB_E_SESSION_NOT_FOUND:
		case SB_E_SESSION_EXISTS:
		case SB_E_SESSION_DESTROYING:
		case SB_E_SESSION_PAUSED:
		case SB_E_INVALID_STATE:
		case SB_E_SNAPSHOT_NOT_FOUND:
		case SB_E_NO_SNAPSHOTS:
		case SB_E_ROLLBACK_IN_PROGRESS: break;
		default: c->r = r; c->err = err;
		}
	}
	return NULL;
}

/* Anything against anything: only errors of the contract, and the books balance at the end. */
static void
churn(void **state)
{
	struct hostfix *f = *state;
	struct race c[6];
	pthread_t t[6];
	struct sb_host_session *v;
	struct timespec ts = { .tv_sec = 2 };
	size_t n;

	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	atomic_store(&stop, false);
	for (int j = 0; j < 6; j++) {
		c[j] = (struct race){ .f = f };
		assert_int_equal(pthread_create(&t[j], NULL, churn_thread, &c[j]), 0);
	}
	(void)nanosleep(&ts, NULL);
	atomic_store(&stop, true);
	for (int j = 0; j < 6; j++) {
		assert_int_equal(pthread_join(t[j], NULL), 0);
		if (c[j].r != 0)
			fail_msg("%d %s", c[j].r, c[j].err.msg);
	}
	hostfix_reopen(f);
	assert_ok(sb_host_session_list(f->h, NULL, &v, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		assert_true(v[i].state == SB_HOST_ACTIVE || v[i].state == SB_HOST_PAUSED);
	sb_host_sessions_free(v, n);
	assert_int_equal(hostfix_storage_count(f), n);
}

static void
count_event(const struct sb_host_event *ev, void *arg)
{
	uint64_t *last = arg;

	if (ev->seq <= last[0])
		last[1]++;
	last[0] = ev->seq;
	last[2]++;
}

static void
events_come_in_order(void **state)
{
	struct hostfix *f = *state;
	uint64_t seen[3] = { 0 };
	struct sb_host_session s;

	sb_host_close(f->h);
	f->o.on_event = count_event;
	f->o.event_arg = seen;
	hostfix_open(f);
	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	assert_ok(sb_host_session_pause(f->h, "one", NULL, &f->err), &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	sb_host_close(f->h);
	f->h = NULL;
	/* active, created, pausing, paused, destroying, destroyed */
	assert_int_equal(seen[2], 6);
	assert_int_equal(seen[1], 0);
	f->o.on_event = NULL;
	hostfix_open(f);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(destroy_during_creation),
		T(one_id_is_created_once),
		T(destroyed_once),
		T(churn),
		T(events_come_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
