/* SPDX-License-Identifier: MIT */
/* Consent to project files: by content, by place, in a folder of the user's own. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <provider/trust.h>

#include "tests/lib/tmpdir.h"

#define TEXT(s) s, strlen(s)

struct place {
	char dir[300], file[320], state[300];
};

static struct place
place_of(const struct tmpdir *t, const char *dir)
{
	struct place p;

	(void)snprintf(p.dir, sizeof p.dir, "%s/%s", t->path, dir);
	(void)snprintf(p.file, sizeof p.file, "%s/.sandbox.yaml", p.dir);
	(void)snprintf(p.state, sizeof p.state, "%s/state", t->path);
	(void)mkdir(p.dir, 0755);
	return p;
}

static enum sb_trust
look(const struct place *p, const char *text)
{
	struct sb_error err = { 0 };
	enum sb_trust out = SB_TRUST_NEW;

	assert_ok(sb_trust_check(p->state, p->file, text, strlen(text), &out, &err), &err);
	return out;
}

static void
consent_is_for_one_content_in_one_place(void **state)
{
	struct place p = place_of(*state, "a"), q = place_of(*state, "b");
	struct sb_error err = { 0 };

	assert_int_equal(look(&p, "one"), SB_TRUST_NEW);
	assert_ok(sb_trust_give(p.state, p.file, TEXT("one"), &err), &err);
	assert_int_equal(look(&p, "one"), SB_TRUST_GIVEN);
	assert_int_equal(look(&p, "One"), SB_TRUST_CHANGED);
	assert_int_equal(look(&p, ""), SB_TRUST_CHANGED);
	assert_int_equal(look(&q, "one"), SB_TRUST_NEW);
	assert_ok(sb_trust_give(p.state, p.file, TEXT("two"), &err), &err);
	assert_int_equal(look(&p, "one"), SB_TRUST_GIVEN);
}

static void
another_name_of_the_directory_is_the_same_place(void **state)
{
	const struct tmpdir *t = *state;
	struct place p = place_of(t, "a"), link = p;
	struct sb_error err = { 0 };

	(void)snprintf(link.file, sizeof link.file, "%s/link/../link/.sandbox.yaml", t->path);
	(void)snprintf(link.dir, sizeof link.dir, "%s/link", t->path);
	assert_int_equal(symlink("a", link.dir), 0);
	assert_ok(sb_trust_give(p.state, link.file, TEXT("one"), &err), &err);
	assert_int_equal(look(&p, "one"), SB_TRUST_GIVEN);
}

static void
consent_is_listed_and_taken_back(void **state)
{
	struct place p = place_of(*state, "a"), q = place_of(*state, "b\nc");
	struct sb_trust_entry *v = NULL;
	struct sb_error err = { 0 };
	size_t n = 7, gone = 0;

	assert_ok(sb_trust_list(p.state, &v, &n, &err), &err);
	assert_int_equal(n, 0);
	assert_ok(sb_trust_give(p.state, p.file, TEXT("one"), &err), &err);
	assert_ok(sb_trust_give(p.state, p.file, TEXT("two"), &err), &err);
	assert_ok(sb_trust_give(q.state, q.file, TEXT("two"), &err), &err);
	assert_ok(sb_trust_list(p.state, &v, &n, &err), &err);
	assert_int_equal(n, 3);
	assert_string_equal(v[0].file, p.file);
	assert_string_equal(v[2].file, q.file);
	assert_true(v[0].at_s > 1600000000);
	sb_trust_entries_free(v, n);
	assert_ok(sb_trust_revoke(p.state, p.file, &gone, &err), &err);
	assert_int_equal(gone, 2);
	assert_int_equal(look(&p, "one"), SB_TRUST_NEW);
	assert_int_equal(look(&q, "two"), SB_TRUST_GIVEN);
	/* Also when the place is gone. */
	assert_int_equal(rmdir(q.dir), 0);
	assert_ok(sb_trust_revoke(q.state, q.file, &gone, &err), &err);
	assert_int_equal(gone, 1);
}

static void
a_record_that_others_could_write_proves_nothing(void **state)
{
	struct place p = place_of(*state, "a");
	struct sb_error err = { 0 };
	enum sb_trust out;
	char path[400];

	assert_ok(sb_trust_give(p.state, p.file, TEXT("one"), &err), &err);
	(void)snprintf(path, sizeof path, "%s/trust", p.state);
	assert_int_equal(chmod(path, 0777), 0);
	assert_fails(sb_trust_check(p.state, p.file, TEXT("one"), &out, &err), SB_E_DENIED, &err);
	assert_non_null(strstr(err.msg, "chmod 700"));
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(look(&p, "one"), SB_TRUST_GIVEN);
}

static void
a_record_in_the_workspace_proves_nothing(void **state)
{
	struct place p = place_of(*state, "a");
	struct sb_error err = { 0 };

	(void)snprintf(p.state, sizeof p.state, "%.280s/.state", p.dir);
	assert_fails(sb_trust_give(p.state, p.file, TEXT("one"), &err), SB_E_DENIED, &err);
	assert_non_null(strstr(err.msg, "SBSYNC_STATE_DIR"));
}

/* Records are found by their name, so one that was copied or altered does not count. */
static void
a_forged_record_does_not_count(void **state)
{
	const struct tmpdir *t = *state;
	struct place p = place_of(t, "a");
	struct sb_error err = { 0 };
	char text[800], name[200], digest[65];

	assert_ok(sb_trust_digest(TEXT("evil"), digest, &err), &err);
	assert_ok(sb_trust_give(p.state, p.file, TEXT("one"), &err), &err);
	(void)snprintf(name, sizeof name, "state/trust/%064d", 1);
	(void)snprintf(text, sizeof text, "%s\n1700000000\n%s", digest, p.file);
	tmpdir_file(t, name, text);
	assert_int_equal(look(&p, "evil"), SB_TRUST_CHANGED);
}

static void
only_records_are_read(void **state)
{
	static const char good[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n12\n/a\nb";
	struct sb_trust_entry e = { 0 };
	char bad[sizeof good];

	(void)state;
	assert_true(sb_trust_parse(good, sizeof good - 1, &e));
	assert_string_equal(e.file, "/a\nb");
	assert_int_equal(e.at_s, 12);
	free(e.file);
	for (size_t n = 0; n < 69; n++)
		assert_false(sb_trust_parse(good, n, &e));
	for (size_t i = 0; i < 69; i++) {
		memcpy(bad, good, sizeof bad);
		bad[i] = 'x';
		assert_false(sb_trust_parse(bad, sizeof bad - 1, &e));
	}
}

int
main(void)
{
#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		ON_DISK(consent_is_for_one_content_in_one_place),
		ON_DISK(another_name_of_the_directory_is_the_same_place),
		ON_DISK(consent_is_listed_and_taken_back),
		ON_DISK(a_record_that_others_could_write_proves_nothing),
		ON_DISK(a_record_in_the_workspace_proves_nothing),
		ON_DISK(a_forged_record_does_not_count),
		cmocka_unit_test(only_records_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
