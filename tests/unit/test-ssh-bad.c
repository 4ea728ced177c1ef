/* SPDX-License-Identifier: MIT */
/*
 * Servers and links that misbehave: the client must end in time, with a clean message, and keep
 * nothing.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <sync/ssh/ssh.h>
#include <sync/wire/transport.h>

#include "tests/lib/relay.h"
#include "tests/lib/sshd.h"
#include "tests/lib/unit.h"

/* For LeakSanitizer: libssh2 1.10 loses OpenSSL objects when a key exchange fails half-way. */
SB_API const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:libcrypto.so";
}

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
	return skips ? 0 : -1;
}

static int
stop_server(void **state)
{
	(void)state;
	test_sshd_stop(&sshd);
	return 0;
}

/* A TCP server that does one thing to whoever connects. */
struct fake {
	int fd;
	int port;
	pthread_t thread;
	void (*serve)(int fd, struct fake *f);
	const char *text;
	size_t text_len;
	_Atomic bool stop;
	struct sb_cancel *then_cancel; /* requested once a client is there */
};

static void *
fake_run(void *arg)
{
	struct fake *f = arg;

	for (;;) {
		int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return NULL;
		if (f->then_cancel)
			sb_cancel_request(f->then_cancel);
		f->serve(fd, f);
		(void)close(fd);
	}
}

static void
fake_start(struct fake *f)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;

	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(f->fd, 5), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&a, &len), 0);
	f->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
}

static void
fake_stop(struct fake *f)
{
	f->stop = true;
	(void)shutdown(f->fd, SHUT_RDWR);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->fd);
}

/* Waits for the client to go away. */
static void
drain(int fd)
{
	char buf[4096];

	while (read(fd, buf, sizeof buf) > 0)
		continue;
}

static void
say_text(int fd, struct fake *f)
{
	(void)sb_file_write_all(fd, f->text, f->text_len, NULL);
}

static void
say_text_and_wait(int fd, struct fake *f)
{
	say_text(fd, f);
	drain(fd);
}

static void
say_text_for_ever(int fd, struct fake *f)
{
	while (!f->stop && sb_file_write_nosig(fd, f->text, f->text_len) > 0)
		continue;
}

static void
fake_opts(const struct fake *f, struct sb_ssh_opts *o)
{
	*o = (struct sb_ssh_opts)SB_SSH_OPTS_INIT;
	o->host = "127.0.0.1";
	o->port = f->port;
	o->user = "me";
	o->new_key = SB_SSH_NEW_PASS;
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
	if (!sb_str_starts(err.msg, "me@127.0.0.1 port ") && !strstr(err.msg, "@127.0.0.1 port "))
		fail_msg("no name in \"%s\"", err.msg);
	for (const char *p = err.msg; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p == 0x7f)
			fail_msg("control character in \"%s\"", err.msg);
}

static void
fake_fails(struct fake *f, int handshake_ms, int code, const char *says)
{
	struct sb_ssh_opts o;

	fake_start(f);
	fake_opts(f, &o);
	if (handshake_ms)
		o.handshake_ms = handshake_ms;
	connect_fails(&o, code, says);
	fake_stop(f);
}

#define TEXT(s) .text = (s), .text_len = sizeof(s) - 1

static void
silent_server_meets_the_deadline(void **state)
{
	struct fake f = { .serve = say_text_and_wait, TEXT("") };

	(void)state;
	fake_fails(&f, 200, SB_E_TIMEOUT, "key exchange");
}

static void
closing_at_once(void **state)
{
	struct fake f = { .serve = say_text, TEXT("") };

	(void)state;
	fake_fails(&f, 0, SB_E_CLOSED, "key exchange");
}

static void
banner_flood(void **state)
{
	static char junk[65536];
	struct fake lines = { .serve = say_text_for_ever,
		TEXT("hello, \033[2J this is not ssh\r\n") };
	struct fake solid = { .serve = say_text_for_ever, .text = junk, .text_len = sizeof junk };

	(void)state;
	fake_fails(&lines, 0, SB_E_PROTO, "is this an SSH port?");
	/* One endless line; libssh2 gives up on it by itself, or we do. */
	memset(junk, 'x', sizeof junk);
	fake_fails(&solid, 5000, SB_E_PROTO, "");
}

static void
not_ssh_at_all(void **state)
{
	struct fake f = { .serve = say_text,
		TEXT("HTTP/1.1 400 Bad Request\r\n\033]0;title\007\r\n\r\n") };

	(void)state;
	fake_fails(&f, 3000, SB_E_PROTO, "not an SSH server");
}

static void
closing_in_the_key_exchange(void **state)
{
	/* A KEXINIT packet whose length is true and whose rest is missing. */
	static const char half[] =
		"SSH-2.0-fake\r\n\0\0\1\24\6\24abcdefghijklmnop\0\0\0\20curve25519-sha25";
	struct fake f = { .serve = say_text, .text = half, .text_len = sizeof half - 1 };
	struct fake stays = { .serve = say_text_and_wait,
		.text = half,
		.text_len = sizeof half - 1 };

	(void)state;
	fake_fails(&f, 3000, SB_E_CLOSED, "key exchange");
	fake_fails(&stays, 200, SB_E_TIMEOUT, "key exchange");
}

static void
nonsense_packets(void **state)
{
	static const char huge[] =
		"SSH-2.0-fake\r\n\x7f\xff\xff\xff\x08garbage garbage garbage garbage";
	static const char tiny[] =
		"SSH-2.0-fake\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	static const char bye[] =
		"SSH-2.0-fake\r\n\0\0\0\54\4\1\0\0\0\2\0\0\0\30go \033[31maway now please!!\0\0\0\0"
		"\0\0\0\0\0";
	struct fake f1 = { .serve = say_text_and_wait, .text = huge, .text_len = sizeof huge - 1 };
	struct fake f2 = { .serve = say_text_and_wait, .text = tiny, .text_len = sizeof tiny - 1 };
	struct fake f3 = { .serve = say_text_and_wait, .text = bye, .text_len = sizeof bye - 1 };
	struct sb_ssh_opts o;
	struct sb_error err = { 0 };

	(void)state;
	fake_fails(&f1, 3000, SB_E_PROTO, "key exchange failed");
	fake_start(&f2);
	fake_opts(&f2, &o);
	o.handshake_ms = 500;
	assert_null(sb_ssh_connect(&o, SB_NEVER, &err));
	fake_stop(&f2);
	fake_fails(&f3, 3000, SB_E_CLOSED, "go \\x1b[31maway");
}

static void
cancel_ends_every_stage(void **state)
{
	struct fake f = { .serve = say_text_and_wait, TEXT("") };
	struct fake later = { .serve = say_text_and_wait, TEXT("SSH-2.0-fake\r\n") };
	struct sb_error err = { 0 };
	struct sb_ssh_opts o;

	(void)state;
	f.then_cancel = sb_cancel_new(&err);
	fake_start(&f);
	fake_opts(&f, &o);
	o.cancel = f.then_cancel;
	connect_fails(&o, SB_E_CANCELED, "");
	/* Requested before anything began. */
	connect_fails(&o, SB_E_CANCELED, "");
	fake_stop(&f);
	sb_cancel_free(f.then_cancel);
	later.then_cancel = sb_cancel_new(&err);
	fake_start(&later);
	fake_opts(&later, &o);
	o.cancel = later.then_cancel;
	connect_fails(&o, SB_E_CANCELED, "");
	fake_stop(&later);
	sb_cancel_free(later.then_cancel);
}

/* A relay between us and a good server; the host key is the server's. */
static struct relay *
relay_opts(const struct relay_opts *ro, struct sb_ssh_opts *o)
{
	struct relay *r = relay_start(ro);

	assert_non_null(r);
	test_sshd_opts(&sshd, o);
	o->port = r->port;
	o->n_known_hosts = 0;
	o->new_key = SB_SSH_NEW_PASS;
	return r;
}

/* Cut, stall or corruption at many positions of the set-up: always an error, never a hang. */
static void
broken_set_up(void **state)
{
	static const int64_t at[] = { 0, 5, 21, 22, 600, 1200, 1500, 1900, 2300, 2600 };

	(void)state;
	NEED_SSHD();
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		for (int kind = 0; kind < 3; kind++) {
			struct relay_opts ro = RELAY_OPTS_INIT;
			struct sb_error err = { 0 };
			struct sb_ssh_opts o;
			struct relay *r;
			struct sb_ssh *c;
			int64_t *field[] = { &ro.cut_down, &ro.corrupt_down, &ro.cut_up };

			ro.to_port = sshd.port;
			*field[kind] = at[i];
			r = relay_opts(&ro, &o);
			o.handshake_ms = 4000;
			c = sb_ssh_connect(&o, SB_NEVER, &err);
			/* Past the end of the set-up it may succeed. */
			if (c)
				sb_ssh_free(c);
			else if (err.code >= 0 || !err.msg[0])
				fail_msg("no error at %d of kind %d", (int)at[i], kind);
			if (c && at[i] < 1200)
				fail_msg("connected although broken at %d (%d)", (int)at[i], kind);
			relay_stop(r);
		}
	}
}

struct stream {
	uint64_t got;
	bool bad;
	int code;
	char msg[SB_ERROR_MSG_MAX];
	struct sb_exit exit;
};

/* Reads zeros until they end; the outcome says why. */
static void
read_stream(const struct sb_ssh_opts *o, const char *command, struct stream *s)
{
	struct sb_error err = { 0 };
	struct sb_ssh *c = sb_ssh_connect(o, sb_deadline_in(30000), &err);
	struct sb_transport *t;
	char buf[65536];
	ssize_t n;

	memset(s, 0, sizeof *s);
	if (!c)
		fail_msg("connect: %s", err.msg);
	t = sb_ssh_exec(c, command, &err);
	assert_non_null(t);
	while ((n = read(t->rfd, buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			s->bad |= buf[i] != 0;
		s->got += (uint64_t)n;
	}
	s->code = t->ops->wait(t, sb_deadline_in(20000), &s->exit, &err);
	(void)snprintf(s->msg, sizeof s->msg, "%s", err.msg);
	sb_transport_free(t);
	sb_ssh_free(c);
}

#define MB5 "head -c 5000000 /dev/zero"

static void
broken_transfer(void **state)
{
	struct relay_opts cut = RELAY_OPTS_INIT, corrupt = RELAY_OPTS_INIT, stall = RELAY_OPTS_INIT;
	struct sb_ssh_opts o;
	struct relay *r;
	struct stream s;

	(void)state;
	NEED_SSHD();
	cut.to_port = corrupt.to_port = stall.to_port = sshd.port;
	cut.cut_down = corrupt.corrupt_down = stall.stall_down = 2000000;
	r = relay_opts(&cut, &o);
	read_stream(&o, MB5, &s);
	relay_stop(r);
	assert_int_equal(s.code, SB_E_CLOSED);
	assert_false(s.exit.known);
	assert_false(s.bad);
	assert_true(s.got < 5000000);
	assert_non_null(strstr(s.msg, "connection lost"));

	r = relay_opts(&corrupt, &o);
	read_stream(&o, MB5, &s);
	relay_stop(r);
	assert_true(s.code < 0);
	assert_false(s.bad);
	assert_true(s.got < 5000000);

	r = relay_opts(&stall, &o);
	o.stall_ms = 600;
	o.alive_ms = 200;
	read_stream(&o, MB5, &s);
	relay_stop(r);
	assert_int_equal(s.code, SB_E_TIMEOUT);
	assert_non_null(strstr(s.msg, "no sign of life"));
}

static void *
cancel_soon(void *arg)
{
	sb_cancel_request(arg);
	return NULL;
}

static void
cancel_ends_a_transfer(void **state)
{
	struct sb_error err = { 0 };
	struct sb_ssh_opts o;
	struct sb_cancel *cancel;
	struct sb_transport *t;
	struct sb_ssh *c;
	struct sb_exit e;
	pthread_t th;
	char buf[4096];

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	cancel = sb_cancel_new(&err);
	o.cancel = cancel;
	c = sb_ssh_connect(&o, SB_NEVER, &err);
	if (!c)
		fail_msg("%s", err.msg);
	t = sb_ssh_exec(c, "sleep 1000", &err);
	assert_non_null(t);
	assert_int_equal(pthread_create(&th, NULL, cancel_soon, cancel), 0);
	assert_true(read(t->rfd, buf, sizeof buf) <= 0);
	assert_fails(t->ops->wait(t, sb_deadline_in(20000), &e, &err), SB_E_CANCELED, &err);
	assert_int_equal(pthread_join(th, NULL), 0);
	sb_transport_free(t);
	sb_ssh_free(c);
	sb_cancel_free(cancel);
}

/* Freed while commands are in every state. */
static void
freed_in_the_middle(void **state)
{
	struct sb_error err = { 0 };
	struct sb_ssh_opts o;

	(void)state;
	NEED_SSHD();
	test_sshd_opts(&sshd, &o);
	for (int i = 0; i < 5; i++) {
		struct sb_ssh *c = sb_ssh_connect(&o, SB_NEVER, &err);
		struct sb_transport *t[4];

		if (!c)
			fail_msg("%s", err.msg);
		for (int k = 0; k < 4; k++)
			t[k] = sb_ssh_exec(c, k % 2 ? "yes" : "cat", &err);
		if (i > 1) {
			char b[10];

			(void)!read(t[1]->rfd, b, sizeof b);
		}
		for (int k = 0; k < 4; k++)
			sb_transport_free(t[k]);
		sb_ssh_free(c);
	}
}

/* Delay costs round trips, nothing else: data arrives whole and in order. */
static void
slow_link(void **state)
{
	struct relay_opts ro = RELAY_OPTS_INIT;
	struct sb_ssh_opts o;
	struct relay *r;
	struct stream s;

	(void)state;
	NEED_SSHD();
	ro.to_port = sshd.port;
	ro.delay_ms = 20;
	r = relay_opts(&ro, &o);
	read_stream(&o, MB5, &s);
	relay_stop(r);
	assert_int_equal(s.code, 0);
	assert_int_equal(s.got, 5000000);
	assert_false(s.bad);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_server_meets_the_deadline),
		cmocka_unit_test(closing_at_once),
		cmocka_unit_test(banner_flood),
		cmocka_unit_test(not_ssh_at_all),
		cmocka_unit_test(closing_in_the_key_exchange),
		cmocka_unit_test(nonsense_packets),
		cmocka_unit_test(cancel_ends_every_stage),
		cmocka_unit_test(broken_set_up),
		cmocka_unit_test(broken_transfer),
		cmocka_unit_test(cancel_ends_a_transfer),
		cmocka_unit_test(freed_in_the_middle),
		cmocka_unit_test(slow_link),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
