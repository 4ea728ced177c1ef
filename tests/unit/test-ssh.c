/* SPDX-License-Identifier: MIT */
/* The libssh2 transport against a real sshd on loopback. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/spawn.h>
#include <sync/ssh/ssh-hash.h>
#include <sync/ssh/ssh.h>
#include <sync/wire/transport.h>

#include "tests/lib/sshd.h"
#include "tests/lib/unit.h"

static struct test_sshd sshd;
static bool no_sshd;
static char no_sshd_why[300];

#define NEED_SSHD() \
	do { \
		if (no_sshd) { \
			skip_because("%s", no_sshd_why); \
		} \
	} while (0)

static int
start_server(void **state)
{
	bool skips;

	(void)state;
	if (test_sshd_start(&sshd, "start", NULL, NULL, &skips, no_sshd_why, sizeof no_sshd_why))
		return 0;
	no_sshd = skips;
	if (!skips)
		print_message("# %s\n", no_sshd_why);
	return skips ? 0 : -1;
}

static int
stop_server(void **state)
{
	(void)state;
	test_sshd_stop(&sshd);
	return 0;
}

static struct sb_ssh *
connect_or_fail(const struct sb_ssh_opts *o)
{
	struct sb_error err = { 0 };
	struct sb_ssh *c = sb_ssh_connect(o, sb_deadline_in(60000), &err);

	if (!c)
		fail_msg("connect: %s (%d)", err.msg, err.code);
	return c;
}

static void
connect_fails(const struct sb_ssh_opts *o, int code, const char *says)
{
	struct sb_error err = { 0 };
	struct sb_ssh *c = sb_ssh_connect(o, sb_deadline_in(60000), &err);

	if (c)
		fail_msg("connected, want \"%s\"", says);
	if (err.code != code || !strstr(err.msg, says))
		fail_msg("got %d \"%s\", want %d \"%s\"", err.code, err.msg, code, says);
	if (!strstr(err.msg, o->host))
		fail_msg("the message does not name the host: \"%s\"", err.msg);
	for (const char *p = err.msg; *p; p++)
		if ((unsigned char)*p < ' ')
			fail_msg("control character in \"%s\"", err.msg);
}

/* Runs a command without input; returns its exit code. */
static int
run(struct sb_ssh *c, const char *command, struct sb_buf *out, struct sb_exit *e)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_ssh_exec(c, command, &err);
	char buf[65536];
	ssize_t n;

	if (!t)
		fail_msg("exec: %s", err.msg);
	assert_ok(t->ops->close_write(t, &err), &err);
	while ((n = read(t->rfd, buf, sizeof buf)) > 0)
		sb_buf_add(out, buf, (size_t)n);
	assert_ok(t->ops->wait(t, sb_deadline_in(30000), e, &err), &err);
	assert_true(e->known);
	return e->code;
}

static void
runs_a_command(void **state)
{
	struct sb_ssh_opts o;
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	sb_auto(sb_buf) struct sb_buf out;
	uint64_t up, down;
	struct sb_exit e;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	sb_buf_init(&out, 1000);
	c = connect_or_fail(&o);
	assert_int_equal(run(c, "echo out; printf 'oops\\033[1m' >&2; exit 42", &out, &e), 42);
	assert_string_equal((char *)out.data, "out\n");
	assert_string_equal(e.stderr_tail, "oops\\x1b[1m");
	/* The same connection again, and a death by signal. */
	assert_int_equal(run(c, "kill -TERM $$", &out, &e), 128 + SIGTERM);
	assert_int_equal(run(c, "true", &out, &e), 0);
	sb_ssh_wire_bytes(c, &up, &down);
	assert_true(up > 1000 && up < 20000 && down > 1000 && down < 20000);
	assert_ok(sb_ssh_check(c, NULL), (&(struct sb_error){ 0 }));
}

/* Writes a pattern in another thread; the far side sends it back. */
struct echo {
	struct sb_transport *t;
	size_t total;
	bool bad;
};

static void *
echo_write(void *arg)
{
	struct echo *e = arg;
	uint8_t buf[30011];

	for (size_t at = 0; at < e->total;) {
		size_t n = e->total - at < sizeof buf ? e->total - at : sizeof buf;

		for (size_t i = 0; i < n; i++)
			buf[i] = (uint8_t)((at + i) * 2654435761u >> 13);
		if (sb_file_write_all(e->t->wfd, buf, n, NULL) < 0)
			break;
		at += n;
	}
	(void)e->t->ops->close_write(e->t, NULL);
	return NULL;
}

static void
echo_through(struct sb_ssh *c, size_t total)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_ssh_exec(c, "exec cat", &err);
	struct echo e = { .t = t, .total = total };
	struct sb_exit ex;
	uint8_t buf[65536];
	size_t at = 0;
	pthread_t th;
	ssize_t n;

	assert_non_null(t);
	assert_int_equal(pthread_create(&th, NULL, echo_write, &e), 0);
	while ((n = read(t->rfd, buf, sizeof buf)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (buf[i] != (uint8_t)(at * 2654435761u >> 13))
				e.bad = true;
	assert_int_equal(pthread_join(th, NULL), 0);
	assert_ok(t->ops->wait(t, sb_deadline_in(30000), &ex, &err), &err);
	assert_false(e.bad);
	assert_int_equal(at, total);
	assert_int_equal(ex.code, 0);
}

static void *
echo_thread(void *arg)
{
	echo_through(arg, 3 << 20);
	return NULL;
}

static void
many_commands_at_once(void **state)
{
	struct sb_ssh_opts o;
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	pthread_t th[8];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	c = connect_or_fail(&o);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&th[i], NULL, echo_thread, c), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(th[i], NULL), 0);
}

static void
too_many_sessions_is_one_clear_error(void **state)
{
	struct sb_ssh_opts o;
	struct sb_error err = { 0 };
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	struct sb_transport *t[11];
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_exit e;
	char buf[8];
	int refused = 0;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	sb_buf_init(&out, 1000);
	c = connect_or_fail(&o);
	for (int i = 0; i < 11; i++)
		t[i] = sb_ssh_exec(c, "echo up; exec cat", &err);
	for (int i = 0; i < 11; i++) {
		if (read(t[i]->rfd, buf, sizeof buf) > 0)
			continue;
		assert_fails(t[i]->ops->wait(t[i], sb_deadline_in(20000), &e, &err), SB_E_PEER,
			&err);
		assert_non_null(strstr(err.msg, "another session"));
		refused++;
	}
	for (int i = 0; i < 11; i++)
		sb_transport_free(t[i]);
	assert_int_equal(refused, 1);
	/* And the connection still works. */
	assert_int_equal(run(c, "true", &out, &e), 0);
}

static void
survives_rekeying(void **state)
{
	static const char *const lines[] = { "RekeyLimit 1M", NULL };
	struct test_sshd server;
	struct sb_ssh_opts o;
	struct sb_ssh *c;
	char why[200];
	bool skips;

	(void)state;
	NEED_SSHD();
	if (!test_sshd_start(&server, "start", NULL, lines, &skips, why, sizeof why))
		fail_msg("%s", why);
	test_sshd_opts(&server, &o);
	c = connect_or_fail(&o);
	echo_through(c, 25 << 20);
	echo_through(c, 1000);
	sb_ssh_free(c);
	test_sshd_stop(&server);
}

static void
unknown_host_is_refused(void **state)
{
	struct sb_ssh_opts o;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	o.n_known_hosts = 0;
	connect_fails(&o, SB_E_HOSTKEY, "--accept-new-host-key");
	connect_fails(&o, SB_E_HOSTKEY, "SHA256:");
	/* Known under another name only. */
	test_sshd_opts(&sshd, &o);
	o.known_name = "elsewhere";
	connect_fails(&o, SB_E_HOSTKEY, "is not in");
}

static void
new_key_is_recorded_once_wanted(void **state)
{
	struct sb_ssh_opts o;
	const char *file[1];

	(void)state;
	NEED_SSHD();
	for (int hashed = 0; hashed < 2; hashed++) {
		sb_auto(sb_buf) struct sb_buf b;

		sb_buf_init(&b, 0);
		test_sshd_opts(&sshd, &o);
		file[0] = test_sshd_path(&sshd,
			hashed ? "new/known_hosts_hashed" : "new/known_hosts");
		o.known_hosts = file;
		o.new_key = SB_SSH_NEW_ADD;
		o.hash_known_hosts = hashed != 0;
		sb_ssh_free(connect_or_fail(&o));
		assert_ok(sb_file_read(AT_FDCWD, file[0], 10000, &b, NULL),
			(&(struct sb_error){ 0 }));
		assert_int_equal(strstr((char *)b.data, "127.0.0.1") == NULL, hashed);
		o.new_key = SB_SSH_NEW_REFUSE;
		sb_ssh_free(connect_or_fail(&o));
	}
}

static void
write_known(const char *file, const char *prefix, const char *pub)
{
	sb_auto(sb_buf) struct sb_buf b;
	sb_auto(sb_buf) struct sb_buf line;

	sb_buf_init(&b, 0);
	sb_buf_init(&line, 10000);
	assert_ok(sb_file_read(AT_FDCWD, pub, 10000, &b, NULL), (&(struct sb_error){ 0 }));
	sb_buf_addf(&line, "%s[127.0.0.1]:%d %s", prefix, sshd.port, (char *)b.data);
	assert_ok(sb_file_replace(AT_FDCWD, file, line.data, line.len, 0600, NULL),
		(&(struct sb_error){ 0 }));
}

/* "SHA256:..." of a .pub file, by ssh-keygen. */
static void
fingerprint(const char *pub, char out[100])
{
	const char *argv[] = { "ssh-keygen", "-lf", pub, NULL };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf b;
	const char *at;

	sb_buf_init(&b, 4096);
	so.search_path = true;
	assert_int_equal(
		sb_child_run(argv, &so, NULL, 0, &b, NULL, NULL, sb_deadline_in(20000), NULL), 0);
	at = strstr((char *)b.data, "SHA256:");
	assert_non_null(at);
	(void)snprintf(out, 100, "%.*s", (int)strcspn(at, " "), at);
}

static void
changed_key_is_refused_with_both_fingerprints(void **state)
{
	struct sb_ssh_opts o;
	const char *file[1];
	char old[100], new[100];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	file[0] = test_sshd_path(&sshd, "known_changed");
	o.known_hosts = file;
	o.new_key = SB_SSH_NEW_ADD; /* does not help */
	write_known(file[0], "", test_sshd_path(&sshd, "other.pub"));
	fingerprint(test_sshd_path(&sshd, "other.pub"), old);
	fingerprint(test_sshd_path(&sshd, "host_ed25519.pub"), new);
	connect_fails(&o, SB_E_HOSTKEY, old);
	connect_fails(&o, SB_E_HOSTKEY, new);
	connect_fails(&o, SB_E_HOSTKEY, "ssh-keygen -R '[127.0.0.1]:");
	write_known(file[0], "@revoked ", test_sshd_path(&sshd, "host_ed25519.pub"));
	connect_fails(&o, SB_E_HOSTKEY, "@revoked");
}

/* With only an ECDSA key known, the server is made to show that one. */
static void
known_key_type_is_asked_for(void **state)
{
	struct sb_ssh_opts o;
	const char *file[1];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	file[0] = test_sshd_path(&sshd, "known_ecdsa");
	o.known_hosts = file;
	write_known(file[0], "", test_sshd_path(&sshd, "host_ecdsa.pub"));
	sb_ssh_free(connect_or_fail(&o));
}

static void
log_in_is_refused_with_advice(void **state)
{
	struct sb_ssh_opts o;
	const char *keys[2];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	keys[0] = test_sshd_path(&sshd, "other");
	keys[1] = test_sshd_path(&sshd, "no-such-key");
	o.identities = keys;
	o.n_identities = 2;
	connect_fails(&o, SB_E_AUTH, "authorized_keys");
	connect_fails(&o, SB_E_AUTH, "other");
	connect_fails(&o, SB_E_AUTH, o.user);
	o.n_identities = 0;
	connect_fails(&o, SB_E_AUTH, "tried no key");
	test_sshd_opts(&sshd, &o);
	keys[0] = test_sshd_path(&sshd, "id_rsa");
	o.identities = keys;
	if (sb_ssh_can_rsa())
		sb_ssh_free(connect_or_fail(&o));
	else
		connect_fails(&o, SB_E_AUTH, "--rsh ssh");
	assert_int_equal(chmod(test_sshd_path(&sshd, "other"), 0644), 0);
	keys[0] = test_sshd_path(&sshd, "other");
	connect_fails(&o, SB_E_AUTH, "chmod 600");
	assert_int_equal(chmod(test_sshd_path(&sshd, "other"), 0600), 0);
}

struct asker {
	const char *answers[4];
	int n;
	int asked;
	char text[200];
};

static int
answer(enum sb_ssh_ask kind, const char *text, bool echo, char *out, size_t size, void *arg)
{
	struct asker *a = arg;

	assert_false(echo);
	(void)snprintf(a->text, sizeof a->text, "%s", text);
	if (a->asked++ >= a->n)
		return SB_E_CANCELED;
	(void)snprintf(out, size, "%s", a->answers[a->asked - 1]);
	return 0;
}

static void
encrypted_key_asks_for_its_passphrase(void **state)
{
	struct sb_ssh_opts o;
	const char *keys[1];
	struct asker a = { .answers = { "wrong", "open sesame" }, .n = 2 };

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	keys[0] = test_sshd_path(&sshd, "id_locked");
	o.identities = keys;
	connect_fails(&o, SB_E_AUTH, "nobody to ask");
	o.ask = answer;
	o.ask_arg = &a;
	sb_ssh_free(connect_or_fail(&o));
	assert_int_equal(a.asked, 2);
	assert_non_null(strstr(a.text, "id_locked"));
	a = (struct asker){ .answers = { "a", "b", "c" }, .n = 3 };
	connect_fails(&o, SB_E_AUTH, "wrong passphrase");
	assert_int_equal(a.asked, 3);
}

/* The server is asked first: a passphrase for a key it does not take is not wanted. */
static void
no_passphrase_for_a_key_that_does_not_help(void **state)
{
	/* The first value of a keyword counts, so the line goes into a Match block. */
	static const char *const lines[] = { "Match all", "AuthorizedKeysFile none", NULL };
	struct test_sshd server;
	struct sb_ssh_opts o;
	const char *keys[1];
	struct asker a = { .n = 0 };
	char why[200];
	bool skips;

	(void)state;
	NEED_SSHD();
	if (!test_sshd_start(&server, "start", NULL, lines, &skips, why, sizeof why))
		fail_msg("%s", why);
	test_sshd_opts(&server, &o);
	keys[0] = test_sshd_path(&server, "id_locked");
	o.identities = keys;
	o.ask = answer;
	o.ask_arg = &a;
	connect_fails(&o, SB_E_AUTH, "log-in refused");
	assert_int_equal(a.asked, 0);
	test_sshd_stop(&server);
}

static void
wrong_password_is_refused(void **state)
{
	struct sb_ssh_opts o;
	struct asker a = { .answers = { "x", "y", "z" }, .n = 3 };

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	o.n_identities = 0;
	o.ask = answer;
	o.ask_arg = &a;
	connect_fails(&o, SB_E_AUTH, "log-in refused");
	assert_int_equal(a.asked, 0); /* not unless asked to */
	o.use_password = true;
	connect_fails(&o, SB_E_AUTH, "a password");
	assert_int_equal(a.asked, 3);
	assert_non_null(strstr(a.text, "127.0.0.1"));
	a.n = a.asked = 0;
	connect_fails(&o, SB_E_AUTH, "log-in refused");
}

/* Somebody listens at the socket: its name alone is there a moment before that. */
static bool
listens(const char *sock)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	sb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", sock);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
}

static void
agent_keys_work(void **state)
{
	const char *sock = NULL;
	const char *add[] = { "ssh-add", "-q", NULL, NULL, NULL };
	const char *agent[] = { "ssh-agent", "-D", "-a", NULL, NULL };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	struct sb_child child;
	struct sb_error err = { 0 };
	struct sb_ssh_opts o;
	sb_deadline d = sb_deadline_in(60000);
	const char *keys[1];

	(void)state;
	NEED_SSHD();
	sock = test_sshd_path(&sshd, "agent.sock");
	agent[3] = sock;
	so.search_path = true;
	assert_ok(sb_spawn(agent, &so, &child, &err), &err);
	while (!listens(sock) && !sb_deadline_passed(d))
		(void)usleep(10000);
	(void)setenv("SSH_AUTH_SOCK", sock, 1);
	add[2] = test_sshd_path(&sshd, "other");
	add[3] = test_sshd_path(&sshd, "id_ed25519");
	assert_int_equal(sb_child_run(add, &so, NULL, 0, NULL, NULL, NULL, d, &err), 0);
	test_sshd_opts(&sshd, &o);
	o.n_identities = 0;
	o.agent = sock;
	sb_ssh_free(connect_or_fail(&o));
	/* IdentitiesOnly: only agent keys that are named. The private half may be gone. */
	o.identities_only = true;
	connect_fails(&o, SB_E_AUTH, "log-in refused");
	assert_int_equal(
		rename(test_sshd_path(&sshd, "id_ed25519"), test_sshd_path(&sshd, "moved")), 0);
	keys[0] = test_sshd_path(&sshd, "id_ed25519");
	o.identities = keys;
	o.n_identities = 1;
	sb_ssh_free(connect_or_fail(&o));
	assert_int_equal(
		rename(test_sshd_path(&sshd, "moved"), test_sshd_path(&sshd, "id_ed25519")), 0);
	o.agent = "/nonexistent/agent";
	o.identities_only = false;
	sb_ssh_free(connect_or_fail(&o));
	sb_child_stop(&child, 1000);
	(void)unsetenv("SSH_AUTH_SOCK");
}

static void
endless_output_can_be_left(void **state)
{
	struct sb_ssh_opts o;
	struct sb_error err = { 0 };
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_transport *t;
	struct sb_exit e;
	char buf[65536];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	sb_buf_init(&out, 1000);
	c = connect_or_fail(&o);
	t = sb_ssh_exec(c, "yes; yes >&2", &err);
	assert_non_null(t);
	for (size_t n = 0; n < 5 << 20;) {
		ssize_t r = read(t->rfd, buf, sizeof buf);

		assert_true(r > 0);
		n += (size_t)r;
	}
	t->ops->cancel(t);
	assert_fails(t->ops->wait(t, sb_deadline_in(20000), &e, &err), SB_E_CANCELED, &err);
	assert_int_equal(run(c, "true", &out, &e), 0);
	sb_transport_free(t);
	/* Freed in the middle, without a word. */
	t = sb_ssh_exec(c, "yes", &err);
	assert_true(read(t->rfd, buf, sizeof buf) > 0);
	sb_transport_free(t);
	assert_int_equal(run(c, "echo still", &out, &e), 0);
	assert_string_equal((char *)out.data, "still\n");
}

/* A reader who does not read must not stop others, and a flood of stderr stops nobody. */
static void
slow_reader_does_not_block_others(void **state)
{
	struct sb_ssh_opts o;
	struct sb_error err = { 0 };
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	sb_auto(sb_transport) struct sb_transport *t = NULL;
	sb_auto(sb_transport) struct sb_transport *noisy = NULL;
	struct sb_exit e;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	c = connect_or_fail(&o);
	t = sb_ssh_exec(c, "yes", &err);
	noisy = sb_ssh_exec(c, "head -c 20000000 /dev/zero | tr '\\0' x >&2; echo end >&2", &err);
	assert_non_null(t);
	assert_non_null(noisy);
	echo_through(c, 10 << 20);
	assert_ok(noisy->ops->wait(noisy, sb_deadline_in(30000), &e, &err), &err);
	assert_non_null(strstr(e.stderr_tail, "xend"));
}

static void
lost_server_is_no_exit_status(void **state)
{
	struct sb_ssh_opts o;
	struct sb_error err = { 0 };
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	sb_auto(sb_transport) struct sb_transport *t = NULL;
	struct sb_exit e;
	char buf[100];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	c = connect_or_fail(&o);
	/* The command's parent is the sshd process of this connection. */
	t = sb_ssh_exec(c, "echo here; kill -9 $PPID", &err);
	assert_non_null(t);
	while (read(t->rfd, buf, sizeof buf) > 0)
		continue;
	assert_fails(t->ops->wait(t, sb_deadline_in(20000), &e, &err), SB_E_CLOSED, &err);
	assert_false(e.known);
	assert_non_null(strstr(err.msg, "connection lost"));
	assert_int_equal(sb_ssh_check(c, &err), SB_E_CLOSED);
	assert_null(sb_ssh_exec(c, "true", &err));
	assert_int_equal(err.code, SB_E_CLOSED);
}

static void
idle_connection_answers_the_server(void **state)
{
	static const char *const lines[] = { "ClientAliveInterval 1", "ClientAliveCountMax 2",
		NULL };
	struct test_sshd server;
	struct sb_ssh_opts o;
	struct sb_ssh *c;
	sb_deadline d = sb_deadline_in(30000);
	sb_auto(sb_buf) struct sb_buf out;
	uint64_t up, down = 0;
	struct sb_exit e;
	char why[200];
	bool skips;

	(void)state;
	NEED_SSHD();
	sb_buf_init(&out, 100);
	if (!test_sshd_start(&server, "start", NULL, lines, &skips, why, sizeof why))
		fail_msg("%s", why);
	test_sshd_opts(&server, &o);
	o.alive_ms = 0;
	c = connect_or_fail(&o);
	/*
	 * The server asks every second and gives up on a client that did not answer twice: let it
	 * ask four times.
	 */
	for (int asked = 0; asked < 4;) {
		uint64_t now;

		sb_ssh_wire_bytes(c, &up, &now);
		asked += now != down;
		down = now;
		assert_int_equal(sb_ssh_check(c, NULL), 0);
		assert_false(sb_deadline_passed(d));
		(void)usleep(20000);
	}
	assert_int_equal(run(c, "true", &out, &e), 0);
	sb_ssh_free(c);
	test_sshd_stop(&server);
}

static void
bandwidth_is_limited(void **state)
{
	struct sb_ssh_opts o;
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	int64_t t0;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	o.bwlimit = 200 << 10;
	c = connect_or_fail(&o);
	t0 = sb_now_ms();
	echo_through(c, 200 << 10);
	/* One second's worth, less what the bucket holds at the start. */
	assert_true(sb_now_ms() - t0 >= 850);
}

static void
nobody_listens(void **state)
{
	struct sb_ssh_opts o = SB_SSH_OPTS_INIT;

	(void)state;
	o.host = "127.0.0.1";
	o.user = "me";
	o.port = 1;
	connect_fails(&o, SB_E_CONNECT, "me@127.0.0.1 port 1: ");
	connect_fails(&o, SB_E_CONNECT, "is sshd running there");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_a_command),
		cmocka_unit_test(many_commands_at_once),
		cmocka_unit_test(too_many_sessions_is_one_clear_error),
		cmocka_unit_test(survives_rekeying),
		cmocka_unit_test(unknown_host_is_refused),
		cmocka_unit_test(new_key_is_recorded_once_wanted),
		cmocka_unit_test(changed_key_is_refused_with_both_fingerprints),
		cmocka_unit_test(known_key_type_is_asked_for),
		cmocka_unit_test(log_in_is_refused_with_advice),
		cmocka_unit_test(encrypted_key_asks_for_its_passphrase),
		cmocka_unit_test(no_passphrase_for_a_key_that_does_not_help),
		cmocka_unit_test(wrong_password_is_refused),
		cmocka_unit_test(agent_keys_work),
		cmocka_unit_test(endless_output_can_be_left),
		cmocka_unit_test(slow_reader_does_not_block_others),
		cmocka_unit_test(lost_server_is_no_exit_status),
		cmocka_unit_test(idle_connection_answers_the_server),
		cmocka_unit_test(bandwidth_is_limited),
		cmocka_unit_test(nobody_listens),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
