/* SPDX-License-Identifier: MIT */
/*
 * Network outbound in the host, compiled once a runtime (runtime.mk): what a session reaches by its
 * lists, how they change, and what is left when a part of it dies. What the proxy itself lets
 * through is in tests/egress.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <base/file.h>
#include <base/procid.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#ifndef TEST_RUNTIME
#define TEST_RUNTIME "none"
#endif

/* Names of this test's own, by which its proxies are found among all. */
#define ONE "net-" TEST_RUNTIME "-one"
#define TWO "net-" TEST_RUNTIME "-two"
#define THREE "net-" TEST_RUNTIME "-three"

static bool works;
static char reason[300];

/* A server on the host's loopback that greets, then waits for the end. */
static int listener = -1;
static unsigned port;

static void *
greet(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		(void)send(fd, "hello\n", 6, MSG_NOSIGNAL);
		/* Kept open by who connected: the test ends with it. */
	}
	return NULL;
}

static void
open_server(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	pthread_t t;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0 && bind(listener, (struct sockaddr *)&a, sizeof a) == 0 &&
		listen(listener, 16) == 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&t, NULL, greet, NULL), 0);
	(void)pthread_detach(t);
}

static int
setup(void **state)
{
	assert_int_equal(setenv("SB_TEST_RUNTIME", works ? TEST_RUNTIME : "none", 1), 0);
	return hostfix_setup(state);
}

/* Are the runtime and the way out there at all? Asked once. */
static int
probe(void **state)
{
	struct sb_host_capabilities c = { 0 };
	struct hostfix f = { 0 };

	(void)state;
	open_server();
	assert_int_equal(setenv("SB_TEST_RUNTIME", TEST_RUNTIME, 1), 0);
	hostfix_prepare(&f);
	f.h = sb_host_open(&f.o, &f.err);
	if (f.h)
		sb_host_capabilities(f.h, &c);
	works = f.h && c.network_lists;
	(void)snprintf(reason, sizeof reason, "%.290s", f.h ? c.network_why : f.err.msg);
	sb_host_close(f.h);
	tmpdir_remove(&f.t);
	return 0;
}

#define NEED_NETWORK() \
	do { \
		if (!works) \
			skip_because("%s", reason); \
	} while (0)

static void
create(struct hostfix *f, const char *id, const char *entry)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;

	o.id = id;
	o.base = f->base;
	o.network = SB_HOST_NET_OUTBOUND;
	o.allow = &entry;
	o.n_allow = 1;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	assert_int_equal(s.network, SB_HOST_NET_OUTBOUND);
	assert_true(strstr(s.policy, entry) != NULL);
	sb_host_session_clear(&s);
}

/* What a session reads from the server: "hello" or nothing. */
static bool
reaches(struct hostfix *f, const char *session, unsigned to)
{
	char cmd[200], out[1000] = "";

	(void)snprintf(cmd, sizeof cmd,
		"exec 3<>/dev/tcp/host.sandbox.internal/%u && read -t 10 x <&3 && echo got-$x", to);
	(void)hostfix_bash(f, session, cmd, out, sizeof out);
	return strstr(out, "got-hello") != NULL;
}

/* How many processes of sb-egress serve this session. */
static size_t
proxies(const char *session, pid_t *last)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[300], line[600] = "";
		ssize_t len;
		int fd;

		(void)snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
		if (fd >= 0)
			(void)close(fd);
		for (ssize_t i = 0; i + 1 < len; i++)
			if (line[i] == '\0')
				line[i] = ' ';
		(void)snprintf(path, sizeof path, "sb-egress serve -s %s ", session);
		if (len > 0 && strstr(line, path)) {
			*last = (pid_t)strtol(e->d_name, NULL, 10);
			n++;
		}
	}
	(void)closedir(d);
	return n;
}

/*
 * Where /proc is mounted with hidepid, an ordinary user does not see those of its processes that
 * cannot be traced, as sb-egress: then proxies() has nothing to count.
 */
static bool
sees_confined(void)
{
	char path[40], c;
	int fd, pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		(void)!write(pipes[1], "x", 1);
		/* Threads of the host wait for the end of pipes that they make meanwhile. */
		(void)syscall(SYS_close_range, 3u, ~0u, 0u);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0 && read(pipes[0], &c, 1) == 1);
	(void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	return fd >= 0;
}

static char *
entry_of(unsigned to)
{
	static char entry[40];

	(void)snprintf(entry, sizeof entry, "127.0.0.1:%u", to);
	return entry;
}

static void
lists_decide_what_is_reached(void **state)
{
	struct hostfix *f = *state;
	char out[1000] = "";

	NEED_NETWORK();
	create(f, ONE, entry_of(port));
	create(f, TWO, "127.0.0.1:1");
	assert_true(reaches(f, ONE, port));
	assert_false(reaches(f, TWO, port));
	/* Loopback inside is the session's own. */
	(void)snprintf(out, sizeof out, "exec 3<>/dev/tcp/127.0.0.1/%u", port);
	assert_int_not_equal(hostfix_bash(f, ONE, out, out, sizeof out), 0);
	(void)hostfix_bash(f, ONE, "getent hosts host.sandbox.internal; getent hosts evil.test",
		out, sizeof out);
	assert_non_null(strstr(out, "198.19."));
	assert_null(strstr(out, "evil"));
}

static void
lists_change_while_it_runs(void **state)
{
	struct hostfix *f = *state;
	const char *entry = entry_of(port);
	const char *bad = "a/b";
	size_t cut = 0;
	char out[1000] = "";

	NEED_NETWORK();
	create(f, ONE, entry);
	(void)snprintf(out, sizeof out,
		"(exec 3<>/dev/tcp/host.sandbox.internal/%u; read x <&3; echo up >up; read x <&3; "
		"echo down >down) >/dev/null 2>&1 & wait",
		port);
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	const char *args[] = { "-c", out, NULL };
	struct sb_host_process p;

	l.session = ONE;
	l.binary = "/bin/bash";
	l.args = args;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	sb_host_process_clear(&p);
	for (int i = 0; i < 1500 && !hostfix_holds(f, ONE, "up", "up\n"); i++)
		(void)usleep(10000);
	assert_true(hostfix_holds(f, ONE, "up", "up\n"));
	assert_ok(sb_host_network_set(f->h, ONE, NULL, 0, NULL, 0, &cut, &f->err), &f->err);
	assert_int_equal(cut, 1);
	for (int i = 0; i < 1500 && !hostfix_holds(f, ONE, "down", "down\n"); i++)
		(void)usleep(10000);
	assert_true(hostfix_holds(f, ONE, "down", "down\n"));
	assert_false(reaches(f, ONE, port));
	assert_ok(sb_host_network_set(f->h, ONE, &entry, 1, NULL, 0, &cut, &f->err), &f->err);
	assert_true(reaches(f, ONE, port));
	assert_fails(sb_host_network_set(f->h, ONE, &bad, 1, NULL, 0, &cut, &f->err), SB_E_INVAL,
		&f->err);
	assert_non_null(strstr(f->err.msg, "a/b"));
	assert_true(reaches(f, ONE, port));
	assert_ok(sb_host_network_set(f->h, ONE, &entry, 1, &entry, 1, &cut, &f->err), &f->err);
	assert_false(reaches(f, ONE, port));
}

static void
it_survives_what_dies_around_it(void **state)
{
	struct hostfix *f = *state;
	const char *entry = entry_of(port);
	pid_t first = 0, second = 0;
	size_t cut;

	NEED_NETWORK();
	if (!sees_confined())
		skip_because(
			"/proc hides confined processes (hidepid): the proxies cannot be seen");
	create(f, ONE, entry);
	assert_true(reaches(f, ONE, port));
	assert_int_equal(proxies(ONE, &first), 1);
	/* The host goes and comes back: the same proxy, which takes orders. */
	hostfix_reopen(f);
	assert_true(reaches(f, ONE, port));
	assert_int_equal(proxies(ONE, &second), 1);
	assert_int_equal(first, second);
	assert_ok(sb_host_network_set(f->h, ONE, NULL, 0, NULL, 0, &cut, &f->err), &f->err);
	assert_false(reaches(f, ONE, port));
	hostfix_reopen(f);
	assert_false(reaches(f, ONE, port));
	assert_ok(sb_host_network_set(f->h, ONE, &entry, 1, NULL, 0, &cut, &f->err), &f->err);
	/* The proxy goes: another takes its place with the next command. */
	assert_int_equal(proxies(ONE, &first), 1);
	assert_int_equal(kill(first, SIGKILL), 0);
	/* It has no command line any more before its connections are closed. */
	for (int i = 0; i < 500 && sb_procid_start(first) != 0; i++)
		(void)usleep(10000);
	assert_true(reaches(f, ONE, port));
	assert_int_equal(proxies(ONE, &second), 1);
	assert_int_not_equal(first, second);
	assert_ok(sb_host_session_destroy(f->h, ONE, false, NULL, &f->err), &f->err);
	for (int i = 0; i < 500 && proxies(ONE, &second) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(proxies(ONE, &second), 0);
}

static atomic_int denials;

static void
count_event(const struct sb_host_event *ev, void *arg)
{
	(void)arg;
	if (strcmp(ev->kind, "network.deny") == 0 && ev->session && strcmp(ev->session, ONE) == 0 &&
		strstr(ev->subject, "\"name\":\"evil.test\"") &&
		strstr(ev->subject, "\"rule\":\"unlisted\""))
		denials++;
}

static void
decisions_are_events(void **state)
{
	struct hostfix *f = *state;

	NEED_NETWORK();
	sb_host_close(f->h);
	f->o.on_event = count_event;
	hostfix_open(f);
	create(f, ONE, entry_of(port));
	denials = 0;
	(void)hostfix_bash(f, ONE, "getent hosts evil.test", NULL, 0);
	for (int i = 0; i < 1500 && denials == 0; i++)
		(void)usleep(10000);
	assert_true(denials > 0);
}

static void
what_cannot_be_enforced_is_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	const char *entry = "example.com", *bad = "http://example.com";
	size_t cut;

	if (strcmp(TEST_RUNTIME, "none") != 0)
		NEED_NETWORK();
	o.id = ONE;
	o.base = f->base;
	o.network = SB_HOST_NET_OUTBOUND;
	if (f->o.runtime == SB_HOST_RUNTIME_NONE) {
		struct sb_host_capabilities c;

		sb_host_capabilities(f->h, &c);
		assert_false(c.network_lists);
		assert_string_equal(c.network_why,
			"network outbound: runtime none cannot enforce it");
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_UNSUPPORTED,
			&f->err);
		o.network = SB_HOST_NET_HOST;
		o.allow = &entry;
		o.n_allow = 1;
		assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL,
			&f->err);
		return;
	}
	o.allow = &bad;
	o.n_allow = 1;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL, &f->err);
	assert_non_null(strstr(f->err.msg, "http://example.com"));
	o.allow = &entry;
	o.network = SB_HOST_NET_NONE;
	assert_fails(sb_host_session_create(f->h, &o, NULL, &s, &f->err), SB_E_INVAL, &f->err);
	/* Lists alone say which network is meant; and a session without one takes none. */
	o.network = SB_HOST_NET_DEFAULT;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	assert_int_equal(s.network, SB_HOST_NET_OUTBOUND);
	assert_string_equal(s.policy, "allow example.com\n");
	sb_host_session_clear(&s);
	o = (struct sb_host_create_opts)SB_HOST_CREATE_OPTS_INIT;
	o.id = TWO;
	o.base = f->base;
	o.network = SB_HOST_NET_NONE;
	assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
	sb_host_session_clear(&s);
	assert_fails(sb_host_network_set(f->h, TWO, &entry, 1, NULL, 0, &cut, &f->err),
		SB_E_INVALID_STATE, &f->err);
	assert_fails(sb_host_network_set(f->h, THREE, &entry, 1, NULL, 0, &cut, &f->err),
		SB_E_SESSION_NOT_FOUND, &f->err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_cannot_be_enforced_is_refused, setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(lists_decide_what_is_reached, setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(lists_change_while_it_runs, setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(it_survives_what_dies_around_it, setup,
			hostfix_teardown),
		cmocka_unit_test_setup_teardown(decisions_are_events, setup, hostfix_teardown),
	};

	/* Runtime none has one thing to do here: refuse. */
	return strcmp(TEST_RUNTIME, "none") == 0 ?
		_cmocka_run_group_tests("refusals", tests, 1, probe, NULL) :
		cmocka_run_group_tests(tests, probe, NULL);
}
