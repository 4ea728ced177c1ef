/* SPDX-License-Identifier: MIT */
/*
 * Ways to log in other than keys, against servers with an account of their own: tokens, passwords,
 * questions.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sync/ssh/ssh.h>
#include <sync/wire/transport.h>

#include "tests/lib/sshd.h"
#include "tests/lib/unit.h"

/* A user name of the kind providers hand out: the secret is the name. */
#define TOKEN "tk-5f0c2e9d81b74a36"
#define PASSWORD "correct horse"

struct asker {
	const char *answer;
	int asked;
	enum sb_ssh_ask kind;
	char text[200];
};

static int
answer(enum sb_ssh_ask kind, const char *text, bool echo, char *out, size_t size, void *arg)
{
	struct asker *a = arg;

	(void)echo;
	a->asked++;
	a->kind = kind;
	(void)snprintf(a->text, sizeof a->text, "%s", text);
	if (!a->answer)
		return SB_E_CANCELED;
	(void)snprintf(out, size, "%s", a->answer);
	return 0;
}

/* Starts a server or ends the test as skipped. */
static void
start(struct test_sshd *s, const char *verb, const char *account, const char *const *lines)
{
	char why[300];
	bool skips;

	if (test_sshd_start(s, verb, account, lines, &skips, why, sizeof why))
		return;
	if (!skips)
		fail_msg("%s", why);
	skip_because("%s", why);
}

static void
logs_in(const struct sb_ssh_opts *o)
{
	struct sb_error err = { 0 };
	struct sb_ssh *c = sb_ssh_connect(o, sb_deadline_in(30000), &err);
	struct sb_transport *t;
	struct sb_exit e;

	if (!c)
		fail_msg("%s", err.msg);
	t = sb_ssh_exec(c, "exit 4", &err);
	if (!t)
		fail_msg("%s", err.msg);
	assert_ok(t->ops->wait(t, sb_deadline_in(20000), &e, &err), &err);
	assert_int_equal(e.code, 4);
	sb_transport_free(t);
	sb_ssh_free(c);
}

static void
is_refused(const struct sb_ssh_opts *o, const char *says)
{
	struct sb_error err = { 0 };
	struct sb_ssh *c = sb_ssh_connect(o, sb_deadline_in(30000), &err);

	assert_null(c);
	assert_int_equal(err.code, SB_E_AUTH);
	if (!strstr(err.msg, says) || !strstr(err.msg, "@127.0.0.1 port "))
		fail_msg("%s", err.msg);
}

/* No key, no password: the user name alone opens the door where the server allows that. */
static void
token_opens(const char *verb, const char *const *lines)
{
	struct test_sshd s;
	struct sb_ssh_opts o;

	start(&s, verb, TOKEN, lines);
	test_sshd_opts(&s, &o);
	o.n_identities = 0;
	o.use_none = true;
	logs_in(&o);
	test_sshd_stop(&s);
}

static void
token_as_user_name(void **state)
{
	static const char *const lines[] = { "PermitEmptyPasswords yes",
		"PasswordAuthentication yes", NULL };

	(void)state;
	token_opens("start", lines);
}

static void
token_as_user_name_with_dropbear(void **state)
{
	static const char *const lines[] = { "-B", NULL };

	(void)state;
	token_opens("start-dropbear", lines);
}

/* A server that does not want it says no, and the token is not shown whole. */
static void
token_is_refused_where_it_is_none(void **state)
{
	struct test_sshd s;
	struct sb_ssh_opts o;
	char token[80];

	(void)state;
	start(&s, "start", NULL, NULL);
	test_sshd_opts(&s, &o);
	(void)snprintf(token, sizeof token, "%s",
		"tk-0123456789012345678901234567890123456789-secret");
	o.user = token;
	o.n_identities = 0;
	o.use_none = true;
	is_refused(&o, "log-in refused");
	{
		struct sb_error err = { 0 };

		assert_null(sb_ssh_connect(&o, sb_deadline_in(30000), &err));
		assert_null(strstr(err.msg, "secret"));
	}
	test_sshd_stop(&s);
}

/* Puts a password into the account's shadow entry before the server starts. */
#define SET_PASSWORD \
	"h=$(openssl passwd -6 '" PASSWORD "') && sed -i \"s|^" TOKEN "::|" TOKEN \
	":$h:|\" \"$0/shadow\" && sed -i 's|^" TOKEN "::|" TOKEN ":x:|' \"$0/passwd\"; " \
	"umount /etc/shadow /etc/passwd; mount --bind \"$0/passwd\" /etc/passwd; mount --bind " \
	"\"$0/shadow\" /etc/shadow; "

static void
asked_and_let_in(const char *pam, const char *setup, const char *const *lines, enum sb_ssh_ask kind)
{
	struct asker a = { .answer = PASSWORD };
	struct test_sshd s;
	struct sb_ssh_opts o;

	(void)setenv("SSHD_PAM", pam, 1);
	(void)setenv("SSHD_SETUP", setup, 1);
	start(&s, "start", TOKEN, lines);
	(void)unsetenv("SSHD_SETUP");
	(void)unsetenv("SSHD_PAM");
	test_sshd_opts(&s, &o);
	o.n_identities = 0;
	o.ask = answer;
	o.ask_arg = &a;
	is_refused(&o, "log-in refused");
	assert_int_equal(a.asked, 0); /* passwords only when wanted */
	o.use_password = true;
	logs_in(&o);
	assert_int_equal(a.asked, 1);
	assert_int_equal(a.kind, kind);
	a.answer = "wrong";
	is_refused(&o, "log-in refused");
	test_sshd_stop(&s);
}

static void
password_lets_in(void **state)
{
	static const char *const lines[] = { "PasswordAuthentication yes", NULL };

	(void)state;
	asked_and_let_in("no", SET_PASSWORD, lines, SB_SSH_ASK_PASSWORD);
}

static void
questions_are_answered(void **state)
{
	static const char *const lines[] = { "PasswordAuthentication no",
		"KbdInteractiveAuthentication yes", NULL };

	(void)state;
	if (access("/etc/pam.d/sshd", R_OK) < 0)
		skip_because("sshd has no PAM configuration here");
	asked_and_let_in("yes",
		SET_PASSWORD "printf 'auth required pam_unix.so\\naccount required "
			     "pam_permit.so\\nsession required pam_permit.so\\n' >\"$0/pam\" && "
			     "mount --bind \"$0/pam\" /etc/pam.d/sshd",
		lines, SB_SSH_ASK_ANSWER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(token_as_user_name),
		cmocka_unit_test(token_as_user_name_with_dropbear),
		cmocka_unit_test(token_is_refused_where_it_is_none),
		cmocka_unit_test(password_lets_in),
		cmocka_unit_test(questions_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
