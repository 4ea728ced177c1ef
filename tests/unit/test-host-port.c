/* SPDX-License-Identifier: MIT */
/* Exposed ports that are unix sockets. test-host-exec.c has those on TCP. */
#include "config.h"

#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"
#include "tests/lib/unit.h"

/* A server that says back what it hears, and "end" at the end. */
static const char server[] = "import socket, sys\n"
			     "s = socket.socket()\n"
			     "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
			     "s.bind(('127.0.0.1', int(sys.argv[1])))\n"
			     "s.listen()\n"
			     "while True:\n"
			     "    c = s.accept()[0]\n"
			     "    while True:\n"
			     "        b = c.recv(4096)\n"
			     "        if not b: break\n"
			     "        c.sendall(b)\n"
			     "    c.sendall(b'end\\n')\n"
			     "    c.close()\n";

static void
make(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

/* A port where nobody listens. */
static unsigned
free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	(void)close(fd);
	return ntohs(a.sin_port);
}

static void
serve_in(struct hostfix *f, struct sb_host_process *out)
{
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	unsigned port = free_port();
	char number[16];
	const char *args[] = { "-c", server, number, NULL };

	(void)snprintf(number, sizeof number, "%u", port);
	l.session = "one";
	l.binary = "/usr/bin/python3";
	l.args = args;
	l.expose_port = (int)port;
	l.ready_timeout_ms = 20000;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, out, &f->err), &f->err);
}

static bool
talk_unix(const char *address, const char *text, char *buf, size_t size)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t got = 0;
	ssize_t n;

	assert_true(fd >= 0 && strlen(address) < sizeof a.sun_path);
	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", address + 5);
	if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0) {
		(void)close(fd);
		return false;
	}
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += (size_t)n;
	buf[got] = '\0';
	(void)close(fd);
	return true;
}

/* Instead of a port that everybody on the machine can reach. */
static void
a_port_can_be_a_socket_of_ones_own(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_process p, q;
	char buf[200], where[320];
	struct stat st;

	if (access("/usr/bin/python3", X_OK) < 0)
		skip_because("there is no python3");
	(void)snprintf(where, sizeof where, "unix:%s/p", f->t.path);
	f->o.advertise_addr = where;
	hostfix_reopen(f);
	make(f, "one");
	serve_in(f, &p);
	assert_int_equal(strncmp(p.address, where, strlen(where)), 0);
	assert_int_equal(stat(p.address + 5, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_int_equal(stat(where + 5, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(talk_unix(p.address, "hello", buf, sizeof buf));
	assert_string_equal(buf, "helloend\n");
	hostfix_reopen(f);
	assert_ok(sb_host_process_get(f->h, "one", p.id, &q, &f->err), &f->err);
	assert_string_equal(q.address, p.address);
	sb_host_process_clear(&q);
	assert_true(talk_unix(p.address, "again", buf, sizeof buf));
	assert_string_equal(buf, "againend\n");
	assert_ok(sb_host_process_kill(f->h, "one", p.id, SIGKILL, &f->err), &f->err);
	for (int i = 0; i < 500 && lstat(p.address + 5, &st) == 0; i++)
		(void)usleep(10000);
	assert_true(lstat(p.address + 5, &st) < 0);
	sb_host_process_clear(&p);
}

/* Sends `text` to a TCP address "[token:]127.0.0.1:N" and reads all there is. */
static void
talk_tcp(const char *address, const char *text, char *buf, size_t size)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t got = 0;
	ssize_t n;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
	assert_true(fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0);
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += (size_t)n;
	buf[got] = '\0';
	(void)close(fd);
}

static bool
admit_one(const char *session, const char *nonce, const char *authorization, void *arg)
{
	(void)arg;
	return strcmp(session, "one") == 0 && strlen(nonce) == SB_HOST_NONCE_LEN &&
		strcmp(authorization, "Bearer open-sesame") == 0;
}

#define HEAD(token) "CONNECT localhost HTTP/1.1\r\nProxy-Authorization: " token "\r\n\r\n"

/* Who has no token of the session reaches nothing of the process. */
static void
a_port_can_ask_for_a_token(void **state)
{
	static const char *const strangers[] = { "hello", "GET / HTTP/1.1\r\n\r\n",
		"CONNECT localhost HTTP/1.1\r\n\r\n", HEAD("Bearer wrong"), HEAD("open-sesame"),
		"CONNECT localhost HTTP/1.1\nProxy-Authorization: Bearer open-sesame\n\n",
		"CONNECT localhost HTTP/1.1\r\nProxy-Authorization: Bearer x\r\n"
		"Proxy-Authorization: Bearer open-sesame\r\n\r\n",
		"CONNECT localhost HTTP/1.1\r\nHost: Proxy-Authorization: Bearer "
		"open-sesame\r\n\r\n" };
	struct hostfix *f = *state;
	struct sb_host_process p, q;
	char buf[400];

	if (access("/usr/bin/python3", X_OK) < 0)
		skip_because("there is no python3");
	sb_host_close(f->h);
	f->o.advertise_addr = "token:127.0.0.1";
	f->h = sb_host_open(&f->o, &f->err);
	assert_null(f->h); /* nobody can tell tokens */
	assert_int_equal(f->err.code, SB_E_INVAL);
	f->o.port_admit = admit_one;
	hostfix_open(f);
	make(f, "one");
	serve_in(f, &p);
	assert_int_equal(strncmp(p.address, "token:127.0.0.1:", 16), 0);
	for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
		talk_tcp(p.address, strangers[i], buf, sizeof buf);
		assert_null(strstr(buf, "end"));
		assert_true(!*buf || strncmp(buf, "HTTP/1.1 407 ", 13) == 0);
	}
	/* What was sent with the head is the process's. */
	talk_tcp(p.address, HEAD("Bearer open-sesame") "hello", buf, sizeof buf);
	assert_string_equal(buf, "HTTP/1.1 200 Connection established\r\n\r\nhelloend\n");
	/* After a restart the same holds at the same place. */
	hostfix_reopen(f);
	assert_ok(sb_host_process_get(f->h, "one", p.id, &q, &f->err), &f->err);
	assert_string_equal(p.address, q.address);
	talk_tcp(q.address, "hello", buf, sizeof buf);
	assert_null(strstr(buf, "end"));
	talk_tcp(q.address, HEAD("Bearer open-sesame") "again", buf, sizeof buf);
	assert_string_equal(buf, "HTTP/1.1 200 Connection established\r\n\r\nagainend\n");
	sb_host_process_clear(&p);
	sb_host_process_clear(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_port_can_be_a_socket_of_ones_own, hostfix_setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(a_port_can_ask_for_a_token, hostfix_setup,
			hostfix_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
