/* SPDX-License-Identifier: MIT */
/* Errors: codes, their names and texts, and the context that callers add. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"

static void
wrap_prepends_context(void **state)
{
	struct sb_error err = { 0 };
	int r = sb_wrap(&err, sb_fail(&err, SB_E_PROTO, "bad tag %d", 7), "peer %s", "b");

	(void)state;
	assert_int_equal(r, SB_E_PROTO);
	assert_string_equal(err.msg, "peer b: bad tag 7");
}

static void
errno_gives_code_and_text(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	errno = ENOENT;
	assert_int_equal(sb_fail_errno(&err, "open %s", "x"), SB_E_NOTFOUND);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.msg, "open x: No such file or directory");
}

static void
errno_values_have_their_codes(void **state)
{
	static const struct {
		int sys;
		int code;
	} map[] = {
		{ ENOMEM, SB_E_NOMEM },
		{ ENOSPC, SB_E_NOSPACE },
		{ EDQUOT, SB_E_NOSPACE },
		{ ENOENT, SB_E_NOTFOUND },
		{ EEXIST, SB_E_EXISTS },
		{ EACCES, SB_E_DENIED },
		{ EPERM, SB_E_DENIED },
		{ EROFS, SB_E_DENIED },
		{ ETIMEDOUT, SB_E_TIMEOUT },
		{ ECANCELED, SB_E_CANCELED },
		{ EIO, SB_E_SYS },
		{ 0, SB_E_SYS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		assert_int_equal(sb_code_from_errno(map[i].sys), map[i].code);
}

static void
null_error_is_allowed(void **state)
{
	(void)state;
	errno = EIO;
	assert_int_equal(sb_fail(NULL, SB_E_INVAL, "x"), SB_E_INVAL);
	assert_int_equal(sb_fail_errno(NULL, "x"), SB_E_SYS);
	assert_int_equal(sb_wrap(NULL, SB_E_LIMIT, "x"), SB_E_LIMIT);
}

static void
long_messages_are_cut_not_overrun(void **state)
{
	struct sb_error err = { 0 };
	char text[2 * SB_ERROR_MSG_MAX];

	(void)state;
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	sb_fail(&err, SB_E_INVAL, "%s", text);
	assert_int_equal(strlen(err.msg), SB_ERROR_MSG_MAX - 1);
	sb_wrap(&err, SB_E_INVAL, "ctx");
	assert_int_equal(strncmp(err.msg, "ctx: aaa", 8), 0);
	assert_int_equal(strlen(err.msg), SB_ERROR_MSG_MAX - 1);
	/*
	 * A context that leaves room for nothing, for half of the colon, for all of it, and for one
	 * character more.
	 */
	for (int len = SB_ERROR_MSG_MAX - 4; len <= SB_ERROR_MSG_MAX; len++) {
		sb_fail(&err, SB_E_INVAL, "zz");
		sb_wrap(&err, SB_E_INVAL, "%.*s", len, text);
		assert_int_equal(strlen(err.msg), SB_ERROR_MSG_MAX - 1);
		assert_int_equal(strspn(err.msg, "a"),
			len < SB_ERROR_MSG_MAX ? len : SB_ERROR_MSG_MAX - 1);
	}
}

static void
every_code_has_name_and_text(void **state)
{
	(void)state;
#define CHECK(num, name, text) \
	assert_string_equal(sb_code_name(num), #name); \
	assert_string_equal(sb_code_text(num), text);
	SB_CODE_MAP(CHECK)
	assert_string_equal(sb_code_name(-9999), "UNKNOWN");
	assert_string_equal(sb_code_text(-9999), "unknown error");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrap_prepends_context),
		cmocka_unit_test(errno_gives_code_and_text),
		cmocka_unit_test(errno_values_have_their_codes),
		cmocka_unit_test(null_error_is_allowed),
		cmocka_unit_test(long_messages_are_cut_not_overrun),
		cmocka_unit_test(every_code_has_name_and_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
