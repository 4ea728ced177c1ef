/* SPDX-License-Identifier: MIT */
/* Tokens of a sandbox host: the role each gives, and what is refused. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <rpc/server/auth.h>
#include <tests/lib/unit.h>

#define ADMIN "admin-token-0123456789"
#define AGENT "agent-token-0123456789"

static struct sb_rpc_auth *
two_tokens(void)
{
	struct sb_error err = { 0 };
	struct sb_rpc_auth *a = sb_rpc_auth_new(&err);

	assert_non_null(a);
	assert_ok(sb_rpc_auth_add(a, "ops", SB_RPC_ROLE_ADMIN, NULL, ADMIN, &err), &err);
	assert_ok(sb_rpc_auth_add(a, "agent", SB_RPC_ROLE_SESSION, "s.1", AGENT, &err), &err);
	return a;
}

static int
check(const struct sb_rpc_auth *a, const char *header, struct sb_rpc_who *who)
{
	*who = (struct sb_rpc_who){ 0 };
	return sb_rpc_auth_check(a, header, 1000, who, NULL);
}

static void
a_token_gives_its_role(void **state)
{
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = two_tokens();
	struct sb_rpc_who who;

	(void)state;
	assert_int_equal(sb_rpc_auth_count(a), 2);
	assert_int_equal(check(a, "Bearer " ADMIN, &who), 0);
	assert_int_equal(who.role, SB_RPC_ROLE_ADMIN);
	assert_string_equal(who.name, "ops");
	assert_int_equal(check(a, "bearer " AGENT, &who), 0);
	assert_int_equal(who.role, SB_RPC_ROLE_SESSION);
	assert_string_equal(who.session, "s.1");
}

static void
anything_else_is_refused(void **state)
{
	static const char *const bad[] = { NULL, "", "Bearer", "Bearer ", "Basic " ADMIN, ADMIN,
		"Bearer " ADMIN "x", "Bearer admin-token-012345678", "Bearer  " ADMIN,
		"Bearer " ADMIN " " };
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = two_tokens();
	struct sb_rpc_who who;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(check(a, bad[i], &who), SB_E_AUTH);
		assert_int_equal(who.role, SB_RPC_ROLE_NONE);
	}
}

static void
a_digest_stands_for_its_token(void **state)
{
	/* printf %s admin-token-0123456789 | sha256sum */
	static const char hex[] =
		"ca8d40e6ce4716b552f1c69863335b502f2afb57ffae171d6675fd56d91ca5b2";
	struct sb_error err = { 0 };
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = sb_rpc_auth_new(&err);
	struct sb_rpc_who who;

	(void)state;
	assert_ok(sb_rpc_auth_add_sha256(a, "ops", SB_RPC_ROLE_MONITOR, NULL, hex, &err), &err);
	assert_int_equal(check(a, "Bearer " ADMIN, &who), 0);
	assert_int_equal(who.role, SB_RPC_ROLE_MONITOR);
	assert_int_equal(check(a, "Bearer " AGENT, &who), SB_E_AUTH);
}

static void
bad_tokens_are_not_taken(void **state)
{
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = two_tokens();
	struct sb_error err = { 0 };

	(void)state;
	assert_fails(sb_rpc_auth_add(a, "x", SB_RPC_ROLE_ADMIN, NULL, "short", &err), SB_E_INVAL,
		&err);
	assert_null(strstr(err.msg, "short"));
	assert_fails(sb_rpc_auth_add(a, "x", SB_RPC_ROLE_ADMIN, NULL, "with a blank in it", &err),
		SB_E_INVAL, &err);
	assert_fails(sb_rpc_auth_add(a, "x", SB_RPC_ROLE_ADMIN, NULL, ADMIN, &err), SB_E_EXISTS,
		&err);
	assert_fails(sb_rpc_auth_add(a, "x", SB_RPC_ROLE_SESSION, NULL, "0123456789abcdef", &err),
		SB_E_INVAL, &err);
	assert_fails(sb_rpc_auth_add(a, "x", SB_RPC_ROLE_ADMIN, "s", "0123456789abcdef", &err),
		SB_E_INVAL, &err);
	assert_fails(sb_rpc_auth_add_sha256(a, "x", SB_RPC_ROLE_ADMIN, NULL, "abc", &err),
		SB_E_INVAL, &err);
}

static void
issued_tokens_are_for_one_session_and_a_time(void **state)
{
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = two_tokens();
	struct sb_error err = { 0 };
	char token[SB_RPC_ISSUED_MAX], header[SB_RPC_ISSUED_MAX + 8];
	struct sb_rpc_who who;

	(void)state;
	assert_fails(sb_rpc_auth_issue(a, "s.2", "0af9", 2000, token, &err), SB_E_UNSUPPORTED,
		&err);
	assert_fails(sb_rpc_auth_set_key(a, "short", 5, &err), SB_E_INVAL, &err);
	assert_ok(sb_rpc_auth_set_key(a, "0123456789abcdef0123456789abcdef", 32, &err), &err);
	assert_fails(sb_rpc_auth_issue(a, "s.2", "", 2000, token, &err), SB_E_INVAL, &err);
	assert_fails(sb_rpc_auth_issue(a, "s.2", "a.b", 2000, token, &err), SB_E_INVAL, &err);
	assert_ok(sb_rpc_auth_issue(a, "s.2", "0af9", 2000, token, &err), &err);
	(void)snprintf(header, sizeof header, "Bearer %s", token);
	assert_int_equal(check(a, header, &who), 0);
	assert_int_equal(who.role, SB_RPC_ROLE_SESSION);
	assert_string_equal(who.session, "s.2");
	assert_string_equal(who.nonce, "0af9");

	/* Every changed byte is refused, and so is the time after. */
	for (size_t i = 7; i < strlen(header); i++) {
		char keep = header[i];

		header[i] = keep == '1' ? '2' : '1';
		assert_int_equal(check(a, header, &who), SB_E_AUTH);
		header[i] = keep;
	}
	assert_int_equal(sb_rpc_auth_check(a, header, 2000, &who, &err), SB_E_AUTH);

	/* So is one made with another key. */
	assert_ok(sb_rpc_auth_set_key(a, "0123456789abcdef0123456789abcdeX", 32, &err), &err);
	assert_int_equal(check(a, header, &who), SB_E_AUTH);
}

static void
an_endless_token_is_refused(void **state)
{
	sb_auto(sb_rpc_auth) struct sb_rpc_auth *a = two_tokens();
	static char header[100000];
	struct sb_rpc_who who;
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_rpc_auth_set_key(a, "0123456789abcdef0123456789abcdef", 32, &err), &err);
	memset(header, '.', sizeof header - 1);
	memcpy(header, "Bearer sbs2.", 12);
	assert_int_equal(check(a, header, &who), SB_E_AUTH);
	header[2000] = '\0';
	assert_int_equal(check(a, header, &who), SB_E_AUTH);
	header[40] = '\0';
	assert_int_equal(check(a, header, &who), SB_E_AUTH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_gives_its_role),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(a_digest_stands_for_its_token),
		cmocka_unit_test(bad_tokens_are_not_taken),
		cmocka_unit_test(issued_tokens_are_for_one_session_and_a_time),
		cmocka_unit_test(an_endless_token_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
