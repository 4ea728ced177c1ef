/* SPDX-License-Identifier: MIT */
/* known_hosts, key files, the output of ssh -G, command lines of the ssh program. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/spawn.h>
#include <sync/ssh/ssh-config.h>
#include <sync/ssh/ssh-hash.h>
#include <sync/ssh/ssh-key.h>
#include <sync/ssh/ssh-known.h>

#include "tests/lib/tmpdir.h"

/* Two ed25519 keys and an ECDSA one that nobody has the other half of. */
#define KEY_A "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
#define KEY_E "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYA"

static size_t
blob_of(const char *base64, uint8_t out[200])
{
	ssize_t n = sb_ssh_hash_unbase64(base64, strlen(base64), out, 200);

	assert_true(n > 0);
	return (size_t)n;
}

static enum sb_ssh_known_answer
ask(const char *text, const char *host, int port, const char *key, size_t *line)
{
	sb_auto(sb_ssh_known) struct sb_ssh_known k = { 0 };
	struct sb_error err = { 0 };
	const struct sb_ssh_known_key *old;
	enum sb_ssh_known_answer a;
	uint8_t blob[200];
	size_t len = blob_of(key, blob);

	assert_ok(sb_ssh_known_parse(&k, text, strlen(text), "kh", host, port, &err), &err);
	a = sb_ssh_known_check(&k, blob, len, &old);
	if (line)
		*line = old ? old->line : 0;
	return a;
}

static void
names_and_patterns(void **state)
{
	static const struct {
		const char *names;
		const char *host;
		int port;
		bool match;
	} rows[] = {
		{ "box", "box", 22, true },
		{ "box", "BOX", 22, true },
		{ "box", "box2", 22, false },
		{ "a,box,c", "box", 22, true },
		{ "*.example.com", "a.b.example.com", 22, true },
		{ "*.example.com", "example.com", 22, false },
		{ "b?x", "box", 22, true },
		{ "*,!box", "box", 22, false },
		{ "*,!box", "other", 22, true },
		{ "[box]:2222", "box", 2222, true },
		{ "[box]:2222", "box", 22, false },
		{ "[box]:2222", "box", 2223, false },
		{ "[*]:2222", "box", 2222, true },
		{ "10.0.0.1", "10.0.0.1", 22, true },
		{ "::1", "::1", 22, true },
		{ "|1|n3LMX08Tqn7p1mZ5n8yZVn7YVn0=|X", "box", 22, false },
		{ "|1|", "box", 22, false },
		{ "|1|!!|!!", "box", 22, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[300];
		bool got;

		(void)snprintf(text, sizeof text,
			"# comment\n\n%s ssh-ed25519 " KEY_A " remark\r\n", rows[i].names);
		got = ask(text, rows[i].host, rows[i].port, KEY_A, NULL) == SB_SSH_KNOWN_MATCH;
		if (got != rows[i].match)
			fail_msg("%s for %s port %d: %d", rows[i].names, rows[i].host, rows[i].port,
				got);
	}
}

static void
hashed_names_as_ssh_keygen_makes_them(void **state)
{
	static const char plain[] = "box ssh-ed25519 " KEY_A "\n[box]:2222 ssh-ed25519 " KEY_B "\n";
	struct tmpdir t;
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	char file[300];
	bool made;
	const char *argv[] = { "ssh-keygen", "-q", "-H", "-f", file, NULL };

	(void)state;
	sb_buf_init(&b, 0);
	tmpdir_make(&t);
	tmpdir_file(&t, "kh", plain);
	(void)snprintf(file, sizeof file, "%s/kh", t.path);
	so.search_path = true;
	made = sb_child_run(argv, &so, NULL, 0, NULL, NULL, NULL, sb_deadline_in(20000), &err) == 0;
	if (made)
		assert_ok(sb_file_read(t.fd, "kh", 10000, &b, &err), &err);
	tmpdir_remove(&t);
	if (!made)
		skip_because("no ssh-keygen");
	assert_null(strstr((char *)b.data, "box"));
	assert_int_equal(ask((char *)b.data, "box", 22, KEY_A, NULL), SB_SSH_KNOWN_MATCH);
	assert_int_equal(ask((char *)b.data, "Box", 2222, KEY_B, NULL), SB_SSH_KNOWN_MATCH);
	assert_int_equal(ask((char *)b.data, "box", 2222, KEY_E, NULL), SB_SSH_KNOWN_CHANGED);
	assert_int_equal(ask((char *)b.data, "bix", 22, KEY_A, NULL), SB_SSH_KNOWN_NEW);
}

static void
answers(void **state)
{
	size_t line;

	(void)state;
	assert_int_equal(ask("", "box", 22, KEY_A, &line), SB_SSH_KNOWN_NEW);
	assert_int_equal(line, 0);
	assert_int_equal(ask("box ssh-ed25519 " KEY_B "\n", "box", 22, KEY_A, &line),
		SB_SSH_KNOWN_CHANGED);
	assert_int_equal(line, 1);
	/* Two keys of one type: either is good. */
	assert_int_equal(ask("box ssh-ed25519 " KEY_B "\nbox ssh-ed25519 " KEY_A "\n", "box", 22,
				 KEY_A, &line),
		SB_SSH_KNOWN_MATCH);
	assert_int_equal(line, 2);
	/* Only another type is known: not simply new. */
	assert_int_equal(ask("box ecdsa-sha2-nistp256 " KEY_E "\n", "box", 22, KEY_A, &line),
		SB_SSH_KNOWN_CHANGED);
	/* Revoked beats everything, for this key only. */
	assert_int_equal(ask("box ssh-ed25519 " KEY_A "\n@revoked * ssh-ed25519 " KEY_A "\n", "box",
				 22, KEY_A, &line),
		SB_SSH_KNOWN_REVOKED);
	assert_int_equal(ask("box ssh-ed25519 " KEY_A "\n@revoked * ssh-ed25519 " KEY_B "\n", "box",
				 22, KEY_A, &line),
		SB_SSH_KNOWN_MATCH);
	/* Under the name without the port: good if it matches, no evidence if not. */
	assert_int_equal(ask("box ssh-ed25519 " KEY_A "\n", "box", 2222, KEY_A, &line),
		SB_SSH_KNOWN_MATCH);
	assert_int_equal(ask("box ssh-ed25519 " KEY_B "\n", "box", 2222, KEY_A, &line),
		SB_SSH_KNOWN_NEW);
	/*
	 * A key whose blob is of another type than its name, a broken one, a word missing: no
	 * entry.
	 */
	assert_int_equal(
		ask("box ssh-rsa " KEY_A
		    "\nbox ssh-ed25519 AAA\nbox\nbox ssh-ed25519\n@what box ssh-ed25519 " KEY_A
		    "\n",
			"box", 22, KEY_A, &line),
		SB_SSH_KNOWN_NEW);
}

static void
authorities_are_noticed(void **state)
{
	static const char text[] = "@cert-authority *.example.com ssh-ed25519 " KEY_A "\n";
	sb_auto(sb_ssh_known) struct sb_ssh_known k = { 0 };

	(void)state;
	assert_int_equal(
		sb_ssh_known_parse(&k, text, strlen(text), "kh", "a.example.com", 22, NULL), 0);
	assert_true(k.has_ca);
	assert_int_equal(k.n, 0);
}

static void
added_lines_are_found_again(void **state)
{
	struct tmpdir t;
	struct sb_error err = { 0 };
	uint8_t blob[200];
	size_t len = blob_of(KEY_A, blob);
	char file[300];
	const char *files[] = { file };
	struct stat st;

	(void)state;
	tmpdir_make(&t);
	(void)snprintf(file, sizeof file, "%s/ssh/kh", t.path);
	for (int i = 0; i < 2; i++) {
		sb_auto(sb_ssh_known) struct sb_ssh_known k = { 0 };

		assert_ok(sb_ssh_known_add(file, "Box", 2222, i != 0, blob, len, &err), &err);
		assert_ok(sb_ssh_known_load(&k, files, 1, "box", 2222, &err), &err);
		assert_int_equal(k.n, i + 1);
		assert_int_equal(sb_ssh_known_check(&k, blob, len, NULL), SB_SSH_KNOWN_MATCH);
	}
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* A file whose last line was left without an end. */
	assert_ok(sb_file_replace(AT_FDCWD, file, "torn", 4, 0600, &err), &err);
	{
		sb_auto(sb_ssh_known) struct sb_ssh_known k = { 0 };

		assert_ok(sb_ssh_known_add(file, "h", 22, false, blob, len, &err), &err);
		assert_ok(sb_ssh_known_load(&k, files, 1, "h", 22, &err), &err);
		assert_int_equal(k.n, 1);
		assert_int_equal(k.keys[0].line, 2);
	}
	tmpdir_remove(&t);
}

#define DUMP \
	"host box\nhostname 10.1.2.3\nuser me\nport 2222\naddressfamily inet6\nidentityfile " \
	"~/.ssh/id_%r@%h\n" \
	"identityfile /keys/%%x\nidentityfile /k/%q\nidentitiesonly yes\nglobalknownhostsfile " \
	"/etc/g1 /etc/g2\n" \
	"userknownhostsfile /u/known /u/known2\nstricthostkeychecking accept-new\nhashknownhosts " \
	"yes\n" \
	"connecttimeout 7\nproxyjump none\nidentityagent none\nhostkeyalias alias\n"

static void
output_of_ssh_G(void **state)
{
	char text[] = DUMP;
	sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };
	struct sb_error err = { 0 };
	const char *tail;

	(void)state;
	assert_ok(sb_ssh_config_parse(text, &c, &err), &err);
	assert_string_equal(c.host, "10.1.2.3");
	assert_string_equal(c.user, "me");
	assert_int_equal(c.port, 2222);
	assert_int_equal(c.family, AF_INET6);
	assert_int_equal(c.connect_ms, 7000);
	assert_string_equal(c.known_name, "alias");
	assert_true(c.identities_only && c.hash_known_hosts);
	assert_int_equal(c.new_key, SB_SSH_NEW_ADD);
	assert_null(c.agent);
	assert_int_equal(c.known_hosts.n, 4);
	assert_string_equal(c.known_hosts.v[0], "/u/known");
	assert_string_equal(c.known_hosts.v[3], "/etc/g2");
	assert_int_equal(c.identities.n, 2);
	tail = strstr(c.identities.v[0], "/.ssh/id_me@10.1.2.3");
	assert_non_null(tail);
	assert_true(c.identities.v[0][0] == '/');
	assert_string_equal(c.identities.v[1], "/keys/%x");
	assert_string_equal(c.needs, "");
}

static void
settings_beyond_libssh2(void **state)
{
	static const struct {
		const char *line;
		const char *needs;
	} rows[] = {
		{ "proxyjump bastion", "ProxyJump" },
		{ "proxycommand nc %h %p", "ProxyCommand" },
		{ "certificatefile /x-cert.pub", "CertificateFile" },
		{ "pkcs11provider /lib/x.so", "PKCS11Provider" },
		{ "hostbasedauthentication no", "" },
		{ "proxycommand none", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };
		struct sb_error err = { 0 };
		char text[200];

		(void)snprintf(text, sizeof text, "hostname h\nuser u\n%s\n", rows[i].line);
		assert_ok(sb_ssh_config_parse(text, &c, &err), &err);
		assert_string_equal(c.needs, rows[i].needs);
	}
}

static void
without_an_ssh_program(void **state)
{
	static const char *const mine[] = { "/my/key" };
	struct sb_ssh_query q = { .program = "sbsync-no-such-ssh",
		.host = "box",
		.port = 99,
		.identities = mine,
		.n_identities = 1,
		.known_hosts = "/my/known",
		.accept_new = true };
	sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_ssh_config_load(&q, NULL, SB_NEVER, &c, &err), &err);
	assert_false(c.have_program);
	assert_string_equal(c.host, "box");
	assert_string_equal(c.known_name, "box");
	assert_int_equal(c.port, 99);
	assert_string_equal(c.identities.v[0], "/my/key");
	assert_true(c.identities.n == 4);
	assert_int_equal(c.known_hosts.n, 1);
	assert_string_equal(c.known_hosts.v[0], "/my/known");
	assert_int_equal(c.new_key, SB_SSH_NEW_ADD);
}

/* The real program with a configuration file of our own. */
static void
with_the_ssh_program(void **state)
{
	static const char text[] = "Host short\n HostName long.example\n User them\n Port 77\n"
				   "Host jump\n ProxyJump other\nHost bad\n Port x\n";
	struct tmpdir t;
	char file[300];
	struct sb_ssh_query q = { .host = "short", .config_file = file };
	struct sb_error err = { 0 };

	(void)state;
	tmpdir_make(&t);
	(void)snprintf(file, sizeof file, "%s/config", t.path);
	assert_ok(
		sb_file_replace(AT_FDCWD, file, text, strstr(text, "Host bad") - text, 0600, &err),
		&err);
	{
		sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };

		assert_ok(sb_ssh_config_load(&q, NULL, sb_deadline_in(20000), &c, &err), &err);
		if (!c.have_program) {
			tmpdir_remove(&t);
			skip_because("no ssh program");
		}
		assert_string_equal(c.host, "long.example");
		assert_string_equal(c.user, "them");
		assert_int_equal(c.port, 77);
		assert_string_equal(c.known_name, "long.example");
		assert_string_equal(c.needs, "");
	}
	{
		sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };

		q.host = "jump";
		q.user = "i";
		q.port = 5;
		assert_ok(sb_ssh_config_load(&q, NULL, sb_deadline_in(20000), &c, &err), &err);
		assert_string_equal(c.needs, "ProxyJump");
		assert_string_equal(c.user, "i");
		assert_int_equal(c.port, 5);
	}
	{
		struct sb_ssh_config c = { 0 };

		assert_ok(sb_file_replace(AT_FDCWD, file, text, strlen(text), 0600, &err), &err);
		q.host = "bad";
		assert_fails(sb_ssh_config_load(&q, NULL, sb_deadline_in(20000), &c, &err),
			SB_E_INVAL, &err);
		assert_non_null(strstr(err.msg, "your ssh configuration"));
		q.host = "-oProxyCommand=x";
		assert_fails(sb_ssh_config_load(&q, NULL, SB_NEVER, &c, &err), SB_E_USAGE, &err);
	}
	tmpdir_remove(&t);
}

static void
argv_is(const struct sb_ssh_query *q, const char *rsh, bool batch, const char *want)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_error err = { 0 };

	sb_buf_init(&b, 2000);
	assert_ok(sb_ssh_config_argv(q, rsh, batch, "the command", &l, &err), &err);
	for (size_t i = 0; i < l.n; i++)
		sb_buf_addf(&b, "%s|", l.v[i]);
	assert_string_equal((char *)b.data, want);
}

static void
command_lines_of_the_program(void **state)
{
	static const char *const mine[] = { "/my/key" };
	struct sb_ssh_query q = { .host = "box" };
	struct sb_strlist l = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	argv_is(&q, NULL, false,
		"ssh|-T|-oServerAliveInterval=10|-oServerAliveCountMax=3|--|box|the command|");
	q.user = "me";
	q.port = 22;
	q.identities = mine;
	q.n_identities = 1;
	q.accept_new = true;
	q.known_hosts = "/k h";
	q.config_file = "/c";
	argv_is(&q, "/usr/bin/ssh -o 'X y' -v", true,
		"/usr/bin/ssh|-o|X "
		"y|-v|-T|-oBatchMode=yes|-oServerAliveInterval=10|-oServerAliveCountMax=3|"
		"-i|/my/key|-oUserKnownHostsFile=\"/k "
		"h\"|-oStrictHostKeyChecking=accept-new|-F|/c|-p22|-l|me|--|box|"
		"the command|");
	argv_is(&q, "mine \"a b\" c\\ d ''", false, "mine|a b|c d||-p22|-l|me|box|the command|");
	assert_fails(sb_ssh_config_argv(&q, "ssh 'x", false, "c", &l, &err), SB_E_USAGE, &err);
	sb_strlist_free(&l);
	l = (struct sb_strlist){ 0 };
	assert_fails(sb_ssh_config_argv(&q, "  ", false, "c", &l, &err), SB_E_USAGE, &err);
	sb_strlist_free(&l);
}

static void
key_files(void **state)
{
	static const char *const types[] = { "ed25519", "ecdsa", "rsa" };
	struct tmpdir t;
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	char file[300], pub[310];

	(void)state;
	tmpdir_make(&t);
	so.search_path = true;
	(void)snprintf(file, sizeof file, "%s/key", t.path);
	(void)snprintf(pub, sizeof pub, "%s.pub", file);
	for (int i = 0; i < 12; i++) {
		sb_auto(sb_ssh_key) struct sb_ssh_key k = { 0 };
		const char *argv[] = { "ssh-keygen", "-q", "-t", types[i % 3], "-N",
			i / 3 % 2 ? "secret" : "", "-f", file, i >= 6 && i % 3 ? "-m" : NULL, "PEM",
			NULL };

		if (sb_child_run(argv, &so, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000),
			    &err) != 0) {
			tmpdir_remove(&t);
			skip_because("no ssh-keygen");
		}
		assert_ok(sb_ssh_key_inspect(file, &k, &err), &err);
		assert_int_equal(k.encrypted, i / 3 % 2);
		assert_non_null(k.blob);
		assert_non_null(strstr(k.type, types[i % 3]));
		assert_int_equal(sb_ssh_key_needs_program(k.type), i % 3 == 2 && !sb_ssh_can_rsa());
		(void)unlink(file);
		(void)unlink(pub);
	}
	{
		struct sb_ssh_key k = { 0 };

		assert_fails(sb_ssh_key_inspect(file, &k, &err), SB_E_NOTFOUND, &err);
		assert_ok(sb_file_replace(AT_FDCWD, file, "hello", 5, 0600, &err), &err);
		assert_fails(sb_ssh_key_inspect(file, &k, &err), SB_E_INVAL, &err);
		assert_int_equal(chmod(file, 0644), 0);
		assert_fails(sb_ssh_key_inspect(file, &k, &err), SB_E_DENIED, &err);
		assert_true(sb_ssh_key_needs_program("sk-ssh-ed25519@openssh.com"));
		assert_true(sb_ssh_key_needs_program("ssh-ed25519-cert-v01@openssh.com"));
		assert_false(sb_ssh_key_needs_program("ssh-ed25519"));
	}
	tmpdir_remove(&t);
}

static void
base64_is_strict(void **state)
{
	uint8_t out[8];
	char text[16];

	(void)state;
	assert_int_equal(sb_ssh_hash_unbase64("", 0, out, 8), 0);
	assert_int_equal(sb_ssh_hash_unbase64("QUI=", 4, out, 8), 2);
	assert_memory_equal(out, "AB", 2);
	assert_int_equal(sb_ssh_hash_unbase64("QUI", 3, out, 8), -1);
	assert_int_equal(sb_ssh_hash_unbase64("Q=I=", 4, out, 8), -1);
	assert_int_equal(sb_ssh_hash_unbase64("QUI=QUI=", 8, out, 8), -1);
	assert_int_equal(sb_ssh_hash_unbase64("QUJD", 4, out, 2), -1);
	assert_string_equal(sb_ssh_hash_base64((const uint8_t *)"ABCD", 4, text), "QUJDRA==");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_patterns),
		cmocka_unit_test(hashed_names_as_ssh_keygen_makes_them),
		cmocka_unit_test(answers),
		cmocka_unit_test(authorities_are_noticed),
		cmocka_unit_test(added_lines_are_found_again),
		cmocka_unit_test(output_of_ssh_G),
		cmocka_unit_test(settings_beyond_libssh2),
		cmocka_unit_test(without_an_ssh_program),
		cmocka_unit_test(with_the_ssh_program),
		cmocka_unit_test(command_lines_of_the_program),
		cmocka_unit_test(key_files),
		cmocka_unit_test(base64_is_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
