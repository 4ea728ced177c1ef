/* SPDX-License-Identifier: MIT */
/* Deep pause and deep resume: on one host, between two, interrupted anywhere. */
#include "config.h"

#include "tests/lib/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/file.h>
#include <base/random.h>
#include <base/spawn.h>
#include <base/strlist.h>
#include <host/cold/coldstore.h>
#include <sb/cold.h>
#include <sb/host-cold.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* Two hosts with one cold storage. */
struct two {
	struct hostfix a, b;
	char store[300], keys[320];
};

static int
setup(void **state)
{
	static unsigned n;
	struct two *t = calloc(1, sizeof *t);

	assert_non_null(t);
	if (!hostfix_has_snapshots()) {
		*state = t;
		return 0;
	}
	hostfix_prepare(&t->a);
	hostfix_prepare(&t->b);
	if (getenv("SB_TEST_COLD"))
		(void)snprintf(t->store, sizeof t->store, "%s/%u", getenv("SB_TEST_COLD"), ++n);
	else
		(void)snprintf(t->store, sizeof t->store, "%s/cold", t->a.t.path);
	t->a.o.cold_store = t->b.o.cold_store = t->store;
	hostfix_open(&t->a);
	hostfix_open(&t->b);
	*state = t;
	return 0;
}

static int
teardown(void **state)
{
	struct two *t = *state;

	if (t->a.h) {
		struct hostfix *v[2] = { malloc(sizeof t->a), malloc(sizeof t->b) };

		memcpy(v[0], &t->a, sizeof t->a);
		memcpy(v[1], &t->b, sizeof t->b);
		(void)hostfix_teardown((void **)&v[1]);
		(void)hostfix_teardown((void **)&v[0]);
	}
	free(t);
	return 0;
}

/* The test's two hosts, or a skip. */
static struct two *
hosts(void **state)
{
	struct two *t = *state;

	if (!t->a.h)
		skip_because("storage %s has no snapshots", hostfix_storage());
	return t;
}

static void
deep_pause(struct hostfix *f, const char *id)
{
	assert_ok(sb_host_session_deep_pause(f->h, id, NULL, &f->err), &f->err);
	assert_int_equal(hostfix_state(f, id), SB_HOST_COLD);
}

static void
deep_resume(struct hostfix *f, const char *id)
{
	struct sb_host_session s = { 0 };

	assert_ok(sb_host_session_deep_resume(f->h, id, NULL, &s, &f->err), &f->err);
	assert_int_equal(s.state, SB_HOST_ACTIVE);
	assert_string_equal(s.id, id);
	sb_host_session_clear(&s);
}

static void
fill(struct hostfix *f, const char *id, const char *name, size_t bytes)
{
	uint8_t *data = malloc(bytes);

	assert_non_null(data);
	assert_ok(sb_random(data, bytes, &f->err), &f->err);
	assert_ok(sb_file_replace(AT_FDCWD, hostfix_path(f, id, name), data, bytes, 0644, &f->err),
		&f->err);
	free(data);
}

static void
assert_same_file(const char *a, const char *b)
{
	const char *const argv[] = { "cmp", a, b, NULL };

	assert_int_equal(hostfix_run(argv), 0);
}

/* Every object of the store below a prefix, with what is in it. */
struct objects {
	struct sb_coldstore *st;
	struct sb_strlist keys;
	uint64_t bytes;
};

static int
on_object(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct objects *o = arg;

	(void)err;
	sb_strlist_add(&o->keys, e->key);
	o->bytes += e->size;
	return 0;
}

static void
objects_open(const struct two *t, const char *prefix, struct objects *o)
{
	const struct sb_log log = { 0 };
	struct sb_error err = { 0 };

	*o = (struct objects){ .st = sb_coldstore_open(t->store, &log, &err) };
	if (!o->st)
		fail_msg("%s", err.msg);
	assert_ok(o->st->ops->list(o->st, prefix, on_object, o, NULL, &err), &err);
}

static void
objects_close(struct objects *o)
{
	sb_strlist_free(&o->keys);
	sb_coldstore_close(o->st);
}

/* How many bytes of parts the store holds, and how many parts. */
static uint64_t
parts_bytes(const struct two *t, unsigned *n)
{
	struct objects o;
	uint64_t sum;

	objects_open(t, "default/parts/", &o);
	*n = (unsigned)o.keys.n;
	sum = o.bytes;
	objects_close(&o);
	return sum;
}

static void
goes_cold_and_comes_back(void **state)
{
	struct two *t = hosts(state);
	struct hostfix *f = &t->a;
	char copy[400];
	const char *cp[] = { "cp", NULL, copy, NULL };

	hostfix_session(f, "one");
	fill(f, "one", "big", 5 << 20);
	(void)snprintf(copy, sizeof copy, "%s/copy", f->t.path);
	cp[1] = hostfix_path(f, "one", "big");
	assert_int_equal(hostfix_run(cp), 0);
	hostfix_turn(f, "one", 1);
	hostfix_write(f, "one", "late", "not in a snapshot\n");
	deep_pause(f, "one");
	assert_int_equal(hostfix_storage_count(f), 0);
	assert_fails(sb_host_session_resume(f->h, "one", NULL, &f->err), SB_E_INVALID_STATE,
		&f->err);
	assert_non_null(strstr(f->err.msg, "deep-resume"));
	hostfix_reopen(f);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_COLD);
	deep_resume(f, "one");
	assert_same_file(copy, hostfix_path(f, "one", "big"));
	assert_true(hostfix_holds(f, "one", "late", "not in a snapshot\n"));
	assert_true(hostfix_holds(f, "one", "dir/deep", "deep\n"));
	assert_string_equal(hostfix_snaps(f, "one"), "turn-0001 cold-1");
	assert_int_equal(hostfix_turns(f, "one"), 1);
	hostfix_turn(f, "one", 2);
}

static void
moves_to_another_host(void **state)
{
	struct two *t = hosts(state);
	struct sb_host_label label = { (char *)"who", (char *)"me" };
	struct sb_host_session s = { 0 }, u = { 0 };
	struct sb_host_snapshot snap = { 0 };
	struct sb_error *err = &t->a.err;

	hostfix_session(&t->a, "m");
	assert_ok(sb_host_session_set_labels(t->a.h, "m", &label, 1, err), err);
	assert_ok(sb_host_snapshot_create(t->a.h, "m", "before", NULL, &snap, err), err);
	assert_ok(sb_host_snapshot_hold(t->a.h, "m", "before", "tag", NULL, err), err);
	hostfix_turn(&t->a, "m", 1);
	hostfix_turn(&t->a, "m", 2);
	hostfix_write(&t->a, "m", "x", "1\n");
	assert_ok(sb_host_session_get(t->a.h, "m", false, &s, err), err);
	deep_pause(&t->a, "m");
	deep_resume(&t->b, "m");
	assert_true(hostfix_holds(&t->b, "m", "x", "1\n"));
	assert_string_equal(hostfix_snaps(&t->b, "m"), "before turn-0001 turn-0002 cold-1");
	assert_int_equal(hostfix_turns(&t->b, "m"), 2);
	assert_ok(sb_host_session_get(t->b.h, "m", false, &u, err), err);
	assert_string_equal(s.nonce, u.nonce);
	assert_int_equal(s.created_ns, u.created_ns);
	assert_int_equal(u.n_labels, 1);
	assert_string_equal(u.labels[0].value, "me");
	/* The hold holds, and can be taken away. */
	assert_fails(sb_host_snapshot_delete(t->b.h, "m", "before", NULL, err), SB_E_SNAPSHOT_HELD,
		err);
	assert_ok(sb_host_snapshot_release(t->b.h, "m", "before", "tag", NULL, err), err);
	/* The snapshots are what they were. */
	assert_ok(sb_host_session_rollback(t->b.h, "m", "turn-0001", SB_HOST_DROP_LATER, NULL, NULL,
			  err),
		err);
	assert_true(hostfix_holds(&t->b, "m", "x", NULL));
	/* Nobody else has it: not the host that it came from, not by destroying it there. */
	assert_fails(sb_host_session_deep_resume(t->a.h, "m", NULL, &u, err), SB_E_CONFLICT, err);
	assert_int_equal(hostfix_state(&t->a, "m"), SB_HOST_COLD);
	assert_ok(sb_host_session_destroy(t->a.h, "m", true, NULL, err), err);
	hostfix_write(&t->b, "m", "y", "2\n");
	deep_pause(&t->b, "m");
	deep_resume(&t->a, "m");
	assert_true(hostfix_holds(&t->a, "m", "y", "2\n"));
	sb_host_snapshot_clear(&snap);
	sb_host_session_clear(&s);
	sb_host_session_clear(&u);
}

static void
branches_come_along(void **state)
{
	struct two *t = hosts(state);
	struct sb_error *err = &t->a.err;

	if (t->a.zfs)
		skip_because("zfs has no branches");
	hostfix_session(&t->a, "br");
	hostfix_write(&t->a, "br", "f", "1\n");
	hostfix_turn(&t->a, "br", 1);
	hostfix_write(&t->a, "br", "f", "2\n");
	hostfix_write(&t->a, "br", "g", "2\n");
	hostfix_turn(&t->a, "br", 2);
	assert_ok(sb_host_session_rollback(t->a.h, "br", "turn-0001", 0, NULL, NULL, err), err);
	hostfix_write(&t->a, "br", "f", "3\n");
	deep_pause(&t->a, "br");
	deep_resume(&t->b, "br");
	assert_true(hostfix_holds(&t->b, "br", "f", "3\n"));
	assert_true(hostfix_holds(&t->b, "br", "g", NULL));
	assert_ok(sb_host_session_rollback(t->b.h, "br", "turn-0002", 0, NULL, NULL, err), err);
	assert_true(hostfix_holds(&t->b, "br", "f", "2\n"));
	assert_true(hostfix_holds(&t->b, "br", "g", "2\n"));
	assert_ok(sb_host_session_rollback(t->b.h, "br", "cold-1", 0, NULL, NULL, err), err);
	assert_true(hostfix_holds(&t->b, "br", "f", "3\n"));
}

static void
a_second_time_costs_what_changed(void **state)
{
	struct two *t = hosts(state);
	uint64_t first, both;
	unsigned n, m;

	hostfix_session(&t->a, "inc");
	fill(&t->a, "inc", "big", 24 << 20);
	deep_pause(&t->a, "inc");
	first = parts_bytes(t, &n);
	assert_true(first > (24u << 20) && n >= 2);
	deep_resume(&t->b, "inc");
	fill(&t->b, "inc", "small", 200000);
	deep_pause(&t->b, "inc");
	both = parts_bytes(t, &m);
	assert_true(both - first < first * 3 / 100);
	assert_true(m > n);
	deep_resume(&t->a, "inc");
}

/* Sets the keys of a host and opens it again. */
static void
rekey(struct two *t, struct hostfix *f, const char *keys)
{
	(void)snprintf(t->keys, sizeof t->keys, "%s/keys", t->a.t.path);
	assert_ok(sb_file_replace(AT_FDCWD, t->keys, keys, strlen(keys), 0600, &f->err), &f->err);
	f->o.cold_key_file = t->keys;
	hostfix_reopen(f);
}

static bool
store_has(const struct two *t, const char *text)
{
	struct objects o;
	bool found = false;

	objects_open(t, "default/", &o);
	for (size_t i = 0; i < o.keys.n && !found; i++) {
		size_t len;
		uint8_t *data = sb_coldstore_read(o.st, o.keys.v[i], 64 << 20, &len, NULL, NULL);

		assert_non_null(data);
		found = memmem(data, len, text, strlen(text)) != NULL;
		free(data);
	}
	objects_close(&o);
	return found;
}

static void
keys_encrypt_and_rotate(void **state)
{
	struct two *t = hosts(state);
	struct sb_host_session s = { 0 };
	struct sb_error *err = &t->b.err;

	hostfix_session(&t->a, "plain-name");
	deep_pause(&t->a, "plain-name");
	deep_resume(&t->a, "plain-name");
	rekey(t, &t->a, KEY "\n");
	hostfix_session(&t->a, "enc");
	hostfix_write(&t->a, "enc", "f", "a secret in cold storage\n");
	deep_pause(&t->a, "enc");
	assert_false(store_has(t, "turn-0001"));
	assert_false(store_has(t, "\"streams\""));
	/* Who has no key is told which one is missing, and the session stays cold for who has it.
	 */
	assert_fails(sb_host_session_deep_resume(t->b.h, "enc", NULL, &s, err), SB_E_AUTH, err);
	rekey(t, &t->b, OTHER "\n");
	assert_fails(sb_host_session_deep_resume(t->b.h, "enc", NULL, &s, err), SB_E_AUTH, err);
	rekey(t, &t->b, "# the new one first\n" OTHER "\n" KEY "\n");
	deep_resume(&t->b, "enc");
	assert_true(hostfix_holds(&t->b, "enc", "f", "a secret in cold storage\n"));
	/* Written with the new key from here on; nothing of the old one is shared. */
	deep_pause(&t->b, "enc");
	rekey(t, &t->b, OTHER "\n");
	deep_resume(&t->b, "enc");
	assert_true(hostfix_holds(&t->b, "enc", "f", "a secret in cold storage\n"));
}

/* Flips a bit of every part, makes it shorter, or removes it. */
static void
damage(const struct two *t, int how)
{
	struct sb_error err = { 0 };
	struct objects o;

	objects_open(t, "default/parts/", &o);
	assert_true(o.keys.n > 0);
	for (size_t i = 0; i < o.keys.n; i++) {
		const char *key = o.keys.v[i];
		size_t len;
		uint8_t *data = sb_coldstore_read(o.st, key, 64 << 20, &len, NULL, &err);

		assert_non_null(data);
		assert_true(len > 60);
		data[50] ^= 1;
		assert_ok(o.st->ops->remove(o.st, key, NULL, &err), &err);
		if (how < 2)
			assert_ok(o.st->ops->put(o.st, key, data, len - (size_t)how, NULL, &err),
				&err);
		free(data);
	}
	objects_close(&o);
}

/* Not even logs are left. */
static void
empty_store(const struct two *t)
{
	struct sb_error err = { 0 };
	struct objects o;

	objects_open(t, "default/", &o);
	for (size_t i = 0; i < o.keys.n; i++)
		assert_ok(o.st->ops->remove(o.st, o.keys.v[i], NULL, &err), &err);
	objects_close(&o);
}

static int
count_wrong(const struct sb_cold_entry *e, void *arg, struct sb_error *err)
{
	unsigned *n = arg;

	(void)err;
	n[0]++;
	n[1] += e->wrong != NULL;
	return 0;
}

static void
check(const struct two *t, unsigned want, unsigned wrong)
{
	struct sb_cold_opts o = SB_COLD_OPTS_INIT;
	struct sb_error err = { 0 };
	unsigned n[2] = { 0, 0 };
	struct sb_cold *c;

	o.url = t->store;
	c = sb_cold_open(&o, &err);
	assert_non_null(c);
	assert_ok(sb_cold_list(c, NULL, true, NULL, count_wrong, n, &err), &err);
	assert_int_equal(n[0], want);
	assert_int_equal(n[1], wrong);
	sb_cold_close(c);
}

static void
damage_is_found_and_leaves_it_cold(void **state)
{
	struct two *t = hosts(state);
	struct sb_host_session s = { 0 };
	struct sb_error *err = &t->b.err;

	for (int how = 0; how < 3; how++) {
		char id[8];

		(void)snprintf(id, sizeof id, "d%d", how);
		hostfix_session(&t->a, id);
		deep_pause(&t->a, id);
		check(t, 1, 0);
		damage(t, how);
		check(t, 1, 1);
		assert_true(sb_host_session_deep_resume(t->b.h, id, NULL, &s, err) < 0);
		assert_int_equal(hostfix_state(&t->b, id), SB_HOST_COLD);
		assert_int_equal(hostfix_storage_count(&t->b), 0);
		/* The claim was given back: the first host fails for the same reason, no other. */
		assert_true(
			sb_host_session_deep_resume(t->a.h, id, NULL, &s, err) != SB_E_CONFLICT);
		assert_ok(sb_host_session_destroy(t->a.h, id, false, NULL, err), err);
		assert_ok(sb_host_session_destroy(t->b.h, id, false, NULL, err), err);
		/* Its log still says that it is gone. */
		check(t, 1, 0);
		empty_store(t);
	}
}

static void
collect(const struct two *t, int64_t age, uint64_t want_removed)
{
	struct sb_cold_opts o = SB_COLD_OPTS_INIT;
	struct sb_cold_collected got;
	struct sb_error err = { 0 };
	struct sb_cold *c;

	o.url = t->store;
	c = sb_cold_open(&o, &err);
	assert_non_null(c);
	assert_ok(sb_cold_collect(c, age, NULL, &got, &err), &err);
	assert_int_equal(got.removed, want_removed);
	sb_cold_close(c);
}

static void
the_collector_removes_what_nobody_names(void **state)
{
	struct two *t = hosts(state);
	struct sb_error *err = &t->a.err;
	unsigned n;

	hostfix_session(&t->a, "keep");
	fill(&t->a, "keep", "f", 1 << 20);
	deep_pause(&t->a, "keep");
	hostfix_session(&t->a, "go");
	fill(&t->a, "go", "f", 1 << 20);
	deep_pause(&t->a, "go");
	(void)parts_bytes(t, &n);
	assert_int_equal(n, 2);
	assert_ok(sb_host_session_destroy(t->a.h, "go", false, NULL, err), err);
	collect(t, 3600, 0);
	collect(t, -10, 1);
	collect(t, -10, 0);
	check(t, 2, 0);
	deep_resume(&t->a, "keep");
}

/* A cancel from another thread, after a while. */
struct canceler {
	struct sb_cancel *c;
	int after_ms;
};

static void *
cancel_soon(void *arg)
{
	struct canceler *x = arg;
	const struct timespec ts = { .tv_nsec = x->after_ms * 1000000L };

	(void)nanosleep(&ts, NULL);
	sb_cancel_request(x->c);
	return NULL;
}

/* It may not even be known there. */
static bool
is_paused(struct hostfix *f, const char *id)
{
	struct sb_host_session s = { 0 };
	bool yes = sb_host_session_get(f->h, id, false, &s, NULL) == 0 &&
		s.state == SB_HOST_PAUSED;

	sb_host_session_clear(&s);
	return yes;
}

static void
can_be_canceled_at_any_time(void **state)
{
	struct two *t = hosts(state);
	struct hostfix *f = &t->a;

	hostfix_session(f, "can");
	fill(f, "can", "big", 16 << 20);
	for (int ms = 1; ms < 200; ms = ms * 2 + 1) {
		struct canceler x = { sb_cancel_new(NULL), ms };
		struct sb_host_call call = { .cancel = x.c, .deadline = SB_NEVER };
		struct sb_host_session s = { 0 };
		pthread_t th;
		int r;

		assert_int_equal(pthread_create(&th, NULL, cancel_soon, &x), 0);
		r = sb_host_session_deep_pause(f->h, "can", &call, &f->err);
		assert_int_equal(pthread_join(th, NULL), 0);
		if (r < 0) {
			enum sb_host_state now = hostfix_state(f, "can");

			assert_int_equal(r, SB_E_CANCELED);
			assert_true(now == SB_HOST_PAUSED || now == SB_HOST_ACTIVE);
			deep_pause(f, "can");
		}
		sb_cancel_free(x.c);
		x.c = sb_cancel_new(NULL);
		call.cancel = x.c;
		assert_int_equal(pthread_create(&th, NULL, cancel_soon, &x), 0);
		r = sb_host_session_deep_resume(t->b.h, "can", &call, &s, &f->err);
		assert_int_equal(pthread_join(th, NULL), 0);
		sb_host_session_clear(&s);
		/* Canceled or not, exactly one has it, whole. */
		if (r == 0 || is_paused(&t->b, "can"))
			deep_pause(&t->b, "can");
		deep_resume(f, "can");
		sb_cancel_free(x.c);
	}
}

static void
what_was_paused_for_long_goes_by_itself(void **state)
{
	struct two *t = hosts(state);
	struct hostfix *f = &t->a;

	f->o.cold_after_ms = 50;
	hostfix_reopen(f);
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	hostfix_session(f, "idle");
	hostfix_session(f, "busy");
	assert_ok(sb_host_session_pause(f->h, "idle", NULL, &f->err), &f->err);
	for (int i = 0; i < 2400 && hostfix_state(f, "idle") != SB_HOST_COLD; i++)
		(void)usleep(50000);
	assert_int_equal(hostfix_state(f, "idle"), SB_HOST_COLD);
	assert_int_equal(hostfix_state(f, "busy"), SB_HOST_ACTIVE);
}

static void
without_cold_storage_it_is_refused(void **state)
{
	struct two *t = hosts(state);
	struct hostfix *f = &t->a;

	f->o.cold_store = NULL;
	hostfix_reopen(f);
	hostfix_session(f, "no");
	assert_fails(sb_host_session_deep_pause(f->h, "no", NULL, &f->err), SB_E_UNSUPPORTED,
		&f->err);
	assert_int_equal(hostfix_state(f, "no"), SB_HOST_ACTIVE);
}

/* Kills the deep pause or resume of a child at a moment of its own, again and again. */
static void
die_somewhere(struct two *t, bool pause, int ms)
{
	struct hostfix *f = &t->a;
	pid_t pid;
	int status;

	sb_host_close(f->h);
	f->h = NULL;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct sb_host_session s = { 0 };

		f->h = sb_host_open(&f->o, &f->err);
		if (!f->h)
			_exit(1);
		if (pause)
			(void)sb_host_session_deep_pause(f->h, "kill", NULL, &f->err);
		else
			(void)sb_host_session_deep_resume(f->h, "kill", NULL, &s, &f->err);
		_exit(0);
	}
	(void)usleep((useconds_t)ms * 1000);
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	hostfix_open(f);
}

static void
a_kill_leaves_it_here_or_there(void **state)
{
	struct two *t = hosts(state);
	struct hostfix *f = &t->a;
	struct sb_host_session s = { 0 };

	hostfix_session(f, "kill");
	fill(f, "kill", "big", 8 << 20);
	hostfix_write(f, "kill", "mark", "here\n");
	for (int ms = 1; ms < 400; ms += ms / 2 + 3) {
		enum sb_host_state now;

		die_somewhere(t, true, ms);
		now = hostfix_state(f, "kill");
		assert_true(now == SB_HOST_ACTIVE || now == SB_HOST_PAUSED || now == SB_HOST_COLD);
		if (now != SB_HOST_COLD) {
			/* Here, so nobody else can have it. */
			assert_true(sb_host_session_deep_resume(t->b.h, "kill", NULL, &s,
					    &t->b.err) < 0);
			assert_true(hostfix_holds(f, "kill", "mark", "here\n"));
			deep_pause(f, "kill");
		}
		die_somewhere(t, false, ms);
		now = hostfix_state(f, "kill");
		assert_true(now == SB_HOST_ACTIVE || now == SB_HOST_PAUSED || now == SB_HOST_COLD);
		if (now == SB_HOST_COLD)
			deep_resume(f, "kill");
		assert_true(hostfix_holds(f, "kill", "mark", "here\n"));
		if (hostfix_state(f, "kill") == SB_HOST_PAUSED)
			assert_ok(sb_host_session_resume(f->h, "kill", NULL, &f->err), &f->err);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(goes_cold_and_comes_back),
		T(moves_to_another_host),
		T(branches_come_along),
		T(a_second_time_costs_what_changed),
		T(keys_encrypt_and_rotate),
		T(damage_is_found_and_leaves_it_cold),
		T(the_collector_removes_what_nobody_names),
		T(can_be_canceled_at_any_time),
		T(what_was_paused_for_long_goes_by_itself),
		T(without_cold_storage_it_is_refused),
		T(a_kill_leaves_it_here_or_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
