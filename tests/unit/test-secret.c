/* SPDX-License-Identifier: MIT */
/* The one rule for names of variables that look like secrets. */
#include "config.h"

#include <string.h>

#include <base/secret.h>

#include "tests/lib/unit.h"

static const struct {
	const char *name;
	bool secret;
} table[] = {
	{ "API_KEY", true },
	{ "my_api_key", true },
	{ "MY_apikey_2", true },
	{ "AWS_ACCESS_KEY_ID", true },
	{ "DEPLOY_PRIVATE_KEY_2", true },
	{ "PRIVATEKEY", true },
	{ "GITHUB_TOKEN", true },
	{ "TOKEN_URL", true }, /* an address may carry what it gives access to */
	{ "CLIENT_SECRET", true },
	{ "DB_PASSWORD", true },
	{ "X_PASSWD", true },
	{ "GOOGLE_APPLICATION_CREDENTIALS", true },
	{ "SSH_AUTH_SOCK", true },
	{ "HTTP_AUTHORIZATION", true },
	{ "GITHUB_OAUTH", true },
	{ "BEARER", true },
	{ "Cookie", true },
	{ "SESSION_ID", true },
	{ "MY_KEY", true },
	{ "GIT_AUTHOR_NAME", false },
	{ "AUTHOR", false },
	{ "AUTHOR_AUTH", true },
	{ "TOKEN_FILE", false },
	{ "secret_path", false },
	{ "CREDENTIALS_DIR", false },
	{ "TOKEN_FILES", true },
	{ "PATH", false },
	{ "HOME", false },
	{ "KEYBOARD", false },
	{ "LANG", false },
	{ "KEY", false },
	{ "", false },
};

static void
names_of_secrets_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (sb_secret_name_looks(table[i].name, strlen(table[i].name)) != table[i].secret)
			fail_msg("%s is %staken for a secret", table[i].name,
				table[i].secret ? "not " : "");
}

/* The name is the front of "NAME=value"; what comes behind it does not count. */
static void
only_the_name_counts(void **state)
{
	(void)state;
	assert_false(sb_secret_name_looks("HOME=TOKEN", 4));
	assert_false(sb_secret_name_looks("MY_KEYS", 5));
	assert_true(sb_secret_name_looks("MY_KEY=x_FILE", 6));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_secrets_are_known),
		cmocka_unit_test(only_the_name_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
