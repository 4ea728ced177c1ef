/* SPDX-License-Identifier: MIT */
/* Provisioners: what each of them must do, on machines that are there and on processes of ours. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/str.h>
#include <control/instrec.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

static const char *const mine[] = { "owner=me", "name=a b=c", NULL },
			 *const theirs[] = { "owner=you", NULL }, *const none[] = { NULL };

static struct sb_control_call
soon(void)
{
	return (struct sb_control_call){ .deadline = sb_deadline_in(60000) };
}

static struct sb_provisioner *
open_static(const char *dir)
{
	static const char *const options[] = { "addresses=http://a:1,https://[::1]:2", NULL };
	struct sb_error err = { 0 };
	struct sb_provisioner *p = sb_instance_static(dir, options, NULL, &err);

	assert_non_null(p);
	return p;
}

static size_t
count(struct sb_provisioner *p, const char *const *tags, unsigned states)
{
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	struct sb_control_call call = soon();
	struct sb_instance *v = NULL;
	struct sb_error err = { 0 };
	size_t n = 0;

	f.tags = tags;
	f.states = states;
	assert_ok(sb_instance_list(p, &f, &call, &v, &n, &err), &err);
	sb_instance_list_free(v, n);
	return n;
}

static void
what_has_no_tags_is_refused(void **state)
{
	struct tmpdir *t = *state;
	struct sb_provisioner *p = open_static(t->path);
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	struct sb_control_call call = soon();
	struct sb_instance i, *v;
	struct sb_error err = { 0 };
	size_t n;

	assert_fails(sb_instance_list(p, &f, &call, &v, &n, &err), SB_E_INVAL, &err);
	f.tags = none;
	assert_fails(sb_instance_list(p, &f, &call, &v, &n, &err), SB_E_INVAL, &err);
	l.token = "t";
	assert_fails(sb_instance_launch(p, &l, &call, &i, &err), SB_E_INVAL, &err);
	l.tags = mine;
	l.token = NULL;
	assert_fails(sb_instance_launch(p, &l, &call, &i, &err), SB_E_INVAL, &err);
	l.token = "t";
	l.cpus = 1;
	assert_fails(sb_instance_launch(p, &l, &call, &i, &err), SB_E_UNSUPPORTED, &err);
	l.cpus = 0;
	l.image = "debian";
	assert_fails(sb_instance_launch(p, &l, &call, &i, &err), SB_E_UNSUPPORTED, &err);
	sb_instance_close(p);
}

static void
each_machine_goes_to_one_at_a_time(void **state)
{
	struct tmpdir *t = *state;
	struct sb_provisioner *p = open_static(t->path);
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	struct sb_control_call call = soon();
	sb_auto(sb_instance) struct sb_instance a = { 0 }, again = { 0 }, b = { 0 }, c = { 0 };
	struct sb_error err = { 0 };

	l.token = "one";
	l.tags = mine;
	assert_ok(sb_instance_launch(p, &l, &call, &a, &err), &err);
	assert_string_equal(a.url, "http://a:1");
	assert_int_equal(a.state, SB_INSTANCE_RUNNING);
	assert_ok(sb_instance_launch(p, &l, &call, &again, &err), &err);
	assert_string_equal(a.id, again.id);
	l.token = "two";
	l.tags = theirs;
	/* Another process knows who has which. */
	sb_instance_close(p);
	p = open_static(t->path);
	assert_ok(sb_instance_launch(p, &l, &call, &b, &err), &err);
	assert_string_equal(b.url, "https://[::1]:2");
	l.token = "three";
	assert_fails(sb_instance_launch(p, &l, &call, &c, &err), SB_E_LIMIT, &err);
	assert_int_equal(count(p, mine, 0), 1);
	assert_int_equal(count(p, theirs, 0), 1);
	assert_int_equal(count(p, mine, 1u << SB_INSTANCE_STOPPED), 0);
	assert_fails(sb_instance_stop(p, a.id, &call, &err), SB_E_UNSUPPORTED, &err);
	assert_ok(sb_instance_terminate(p, a.id, &call, &err), &err);
	assert_ok(sb_instance_terminate(p, a.id, &call, &err), &err);
	assert_fails(sb_instance_describe(p, a.id, &call, &c, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_instance_describe(p, "../x", &call, &c, &err), SB_E_NOTFOUND, &err);
	assert_ok(sb_instance_launch(p, &l, &call, &c, &err), &err);
	assert_string_equal(c.url, "http://a:1");
	sb_instance_close(p);
}

static void
a_damaged_record_is_told_and_left(void **state)
{
	struct tmpdir *t = *state;
	struct sb_provisioner *p = open_static(t->path);
	struct sb_control_call call = soon();
	struct sb_instance i;
	struct sb_error err = { 0 };
	char path[600];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/static-001", t->path);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/static-001/record", t->path);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("{\"state\": \"running\"}", f);
	(void)fclose(f);
	assert_fails(sb_instance_describe(p, "static-001", &call, &i, &err), SB_E_CORRUPT, &err);
	assert_int_equal(count(p, mine, 0), 0);
	sb_instance_close(p);
}

static void
wait_for_state(struct sb_provisioner *p, const char *id, enum sb_instance_state want)
{
	struct sb_control_call call = soon();
	struct sb_error err = { 0 };

	for (;;) {
		sb_auto(sb_instance) struct sb_instance i = { 0 };

		assert_ok(sb_instance_describe(p, id, &call, &i, &err), &err);
		if (i.state == want)
			return;
		assert_false(sb_deadline_passed(call.deadline));
		(void)poll(NULL, 0, 20);
	}
}

static void
a_process_is_launched_stopped_started_and_terminated(void **state)
{
	struct tmpdir *t = *state;
	const char *top = getenv("SB_TOP_BUILDDIR");
	sb_autofree char *program = sb_str_printf("sbhostd=%s/sbhostd", top ? top : ".");
	const char *options[] = { program, "runtime=none", "storage=local-disk", NULL };
	struct sb_error err = { 0 };
	struct sb_provisioner *p = sb_instance_local(t->path, options, NULL, &err), *q;
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	struct sb_control_call call = soon();
	sb_auto(sb_instance) struct sb_instance a = { 0 }, again = { 0 }, gone = { 0 };

	assert_non_null(p);
	l.token = "one";
	l.tags = mine;
	assert_ok(sb_instance_launch(p, &l, &call, &a, &err), &err);
	/* Another controller launches the same, and finds it. */
	q = sb_instance_local(t->path, options, NULL, &err);
	assert_ok(sb_instance_launch(q, &l, &call, &again, &err), &err);
	assert_string_equal(a.id, again.id);
	assert_int_equal(count(q, mine, 0), 1);
	assert_int_equal(count(q, theirs, 0), 0);
	wait_for_state(q, a.id, SB_INSTANCE_RUNNING);
	assert_ok(sb_instance_stop(q, a.id, &call, &err), &err);
	wait_for_state(p, a.id, SB_INSTANCE_STOPPED);
	assert_int_equal(count(p, mine, 1u << SB_INSTANCE_RUNNING), 0);
	assert_ok(sb_instance_start(p, a.id, &call, &err), &err);
	wait_for_state(p, a.id, SB_INSTANCE_RUNNING);
	assert_ok(sb_instance_start(p, a.id, &call, &err), &err);
	assert_ok(sb_instance_terminate(p, a.id, &call, &err), &err);
	assert_ok(sb_instance_terminate(p, a.id, &call, &err), &err);
	assert_fails(sb_instance_describe(p, a.id, &call, &gone, &err), SB_E_NOTFOUND, &err);
	sb_instance_close(q);
	sb_instance_close(p);
	sb_instance_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_has_no_tags_is_refused, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(each_machine_goes_to_one_at_a_time, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_record_is_told_and_left, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(
			a_process_is_launched_stopped_started_and_terminated, tmpdir_setup,
			tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
