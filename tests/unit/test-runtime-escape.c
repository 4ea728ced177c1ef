/* SPDX-License-Identifier: MIT */
/*
 * What a program in a sandbox must not be able to do; each attempt is a test. Compiled once a
 * runtime, see runtime.mk.
 */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <base/file.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#ifndef TEST_RUNTIME
#define TEST_RUNTIME "bwrap"
#endif
#define SECRET "s3cret-of-the-host"
#define MEMORY_MB 400
#define TMP_MB 16
#define PIDS 200

static struct hostfix *fix; /* one host with the sessions "one" and "two" for all */
static char reason[300];
static int listener = -1;
static unsigned port;
static char token[400];

static void
listen_here(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	port = ntohs(a.sin_port);
}

static int
open_all(void **state)
{
	static struct hostfix f;
	struct sb_host_session s;

	(void)state;
	assert_int_equal(setenv("SB_TEST_RUNTIME", TEST_RUNTIME, 1), 0);
	assert_int_equal(setenv("SB_SECRET_TOKEN", SECRET, 1), 0);
	hostfix_prepare(&f);
	f.o.session_mem_mb = MEMORY_MB;
	f.o.session_tmp_mb = TMP_MB;
	f.o.session_pids = PIDS;
	(void)snprintf(token, sizeof token, "%s/token", f.t.path);
	assert_ok(sb_file_replace(AT_FDCWD, token, SECRET "\n", strlen(SECRET) + 1, 0600, &f.err),
		&f.err);
	f.h = sb_host_open(&f.o, &f.err);
	if (!f.h) {
		(void)snprintf(reason, sizeof reason, "%.290s", f.err.msg);
		tmpdir_remove(&f.t);
		return 0;
	}
	fix = &f;
	hostfix_create(&f, "one", &s);
	sb_host_session_clear(&s);
	hostfix_create(&f, "two", &s);
	sb_host_session_clear(&s);
	hostfix_write(&f, "two", "secret2", SECRET "\n");
	listen_here();
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	if (!fix)
		return 0;
	for (int i = 0; i < 2; i++)
		(void)sb_host_session_destroy(fix->h, i ? "two" : "one", true, NULL, NULL);
	sb_host_close(fix->h);
	tmpdir_remove(&fix->t);
	(void)close(listener);
	return 0;
}

/* Runs a script in a session, which is written to a file first; the result is the caller's. */
static void
run_in(const char *session, const char *script, int64_t timeout_ms, struct sb_host_tool_result *r)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;

	hostfix_write(fix, session, "script", script);
	q.session = session;
	q.tool = "bash";
	q.params = "{\"cmd\":\". ./script\"}";
	q.res.timeout_ms = timeout_ms;
	assert_ok(sb_host_tool_execute(fix->h, &q, NULL, r, &fix->err), &fix->err);
}

#define NEED_RUNTIME() \
	do { \
		if (!fix) \
			skip_because("%s", reason); \
	} while (0)

/* A bomb is for where its limit is in force. */
#define NEED_LIMITS() \
	do { \
		struct sb_host_capabilities caps_; \
		sb_host_capabilities(fix->h, &caps_); \
		if (strcmp(caps_.limits, "none") == 0) \
			skip_because("nothing holds the limits here"); \
	} while (0)

/* The script says "tried" (so it did run), and never "escaped", nor the secret. */
static void
attempt(const char *script)
{
	struct sb_host_tool_result r;

	run_in("one", script, 60000, &r);
	if (!strstr(r.text, "tried") || strstr(r.text, "escaped") || strstr(r.text, SECRET))
		fail_msg("oom %d, the sandbox said: %s", r.oom, r.text);
	sb_host_tool_result_clear(&r);
}

static void
symlinks_lead_nowhere(void **state)
{
	char script[2000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"ln -sf '%s' a; ln -sf '../../../../../../../../../..%s' b; cat a b; cat '%s' && "
		"echo escaped\n"
		"ln -sfn '%s' d; ls d/ && echo escaped; echo tried",
		token, token, token, fix->sessions);
	attempt(script);
	/* And the host's own tools do not follow what was laid out for them. */
	{
		struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
		struct sb_host_tool_result r;

		q.session = "one";
		q.tool = "read_file";
		q.params = "{\"path\":\"a\"}";
		assert_ok(sb_host_tool_execute(fix->h, &q, NULL, &r, &fix->err), &fix->err);
		assert_true(r.is_error);
		assert_null(strstr(r.text, SECRET));
		sb_host_tool_result_clear(&r);
	}
}

/* A link that changes between a tool's look and its open, by a program inside. */
static void
swapped_symlinks_lead_nowhere(void **state)
{
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	char script[1200];
	const char *args[] = { "-c", script, NULL };
	struct sb_host_process p;

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"mkdir -p s; echo inside >s/token; touch swapping; while :; do mv s away; ln -s "
		"'%s' s; rm s; mv away s; done",
		fix->t.path);
	l.session = "one";
	l.binary = "/bin/bash";
	l.args = args;
	assert_ok(sb_host_process_launch(fix->h, &l, NULL, &p, &fix->err), &fix->err);
	for (int i = 0; i < 1000 && access(hostfix_path(fix, "one", "swapping"), F_OK) < 0; i++)
		(void)usleep(10000);
	for (int i = 0; i < 400; i++) {
		struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
		struct sb_host_tool_result r;

		q.session = "one";
		q.tool = "read_file";
		q.params = "{\"path\":\"s/token\"}";
		assert_ok(sb_host_tool_execute(fix->h, &q, NULL, &r, &fix->err), &fix->err);
		assert_null(strstr(r.text, SECRET));
		sb_host_tool_result_clear(&r);
	}
	assert_ok(sb_host_process_kill(fix->h, "one", p.id, SIGKILL, &fix->err), &fix->err);
	sb_host_process_clear(&p);
}

static void
proc_self_fd_shows_nothing_of_the_host(void **state)
{
	char script[2000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"for f in /proc/self/fd/* /proc/1/fd/* /proc/$$/fd/*; do cat "
		"$f/../../../../../../..%s; readlink $f; done 2>/dev/null </dev/null\n"
		"for r in /proc/1/root /proc/self/root /proc/1/cwd; do cat $r%s 2>/dev/null && "
		"echo escaped; done\n"
		"readlink /proc/self/fd/* /proc/1/fd/* | grep -F '%s' && echo escaped; echo tried",
		token, token, fix->state_dir);
	attempt(script);
}

static void
nothing_can_be_mounted(void **state)
{
	(void)state;
	NEED_RUNTIME();
	attempt("mkdir -p /tmp/m; mount -t proc proc /tmp/m 2>/dev/null && ls "
		"/tmp/m/1/root/usr/../.. | grep -qx work && echo escaped\n"
		"mount -t ext4 /dev/vda /tmp/m 2>/dev/null && echo escaped\n"
		"mount -o remount,rw /usr 2>/dev/null; touch /usr/escaped 2>/dev/null && echo "
		"escaped\n"
		"umount /workspace 2>/dev/null && ls -d /workspace/.. >/dev/null\n"
		"mknod /tmp/disk b 8 0 2>/dev/null && head -c 1 /tmp/disk && echo escaped\n"
		"mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem && echo escaped; echo "
		"tried");
	assert_int_not_equal(access("/usr/escaped", F_OK), 0);
}

static void
the_host_cannot_be_traced_or_seen(void **state)
{
	char script[2000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"kill -0 %d 2>/dev/null && grep -q 'test-esc[a]pe' /proc/%d/cmdline && echo "
		"escaped\n"
		"cat /proc/%d/mem 2>/dev/null | head -c 1 | grep -q . && echo escaped\n"
		"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep 'test-esc[a]pe-' && "
		"echo escaped\n"
		"echo 1 2>/dev/null >/proc/sysrq-trigger && echo escaped\n"
		"for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe "
		"/proc/sys/kernel/hostname /proc/sys/vm/overcommit_memory; do\n"
		"[ -e $f ] && (exec 3<>$f) 2>/dev/null && echo %s; done; echo tried",
		/* Those of gVisor are its own kernel's. */
		(int)getpid(), (int)getpid(), (int)getpid(),
		strcmp(TEST_RUNTIME, "gvisor") == 0 ? "its own" : "escaped");
	attempt(script);
}

static void
other_sessions_files_are_not_there(void **state)
{
	char script[2000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"cat '%s/two/secret2' ../two/secret2 /workspace/../two/secret2 2>/dev/null\n"
		"find / -path /usr -prune -o -path /proc -prune -o -name secret2 -print "
		"2>/dev/null | grep -q . && echo escaped; echo tried",
		fix->sessions);
	attempt(script);
}

static void
other_ports_are_not_reached(void **state)
{
	char script[2000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"(exec 3<>/dev/tcp/127.0.0.1/%u) 2>/dev/null && echo escaped\n"
		"for a in $(cat /proc/net/fib_trie 2>/dev/null | grep -oE '[0-9]+(\\.[0-9]+){3}' | "
		"sort -u) 169.254.169.254; do\n"
		"(exec 3<>/dev/tcp/$a/%u) 2>/dev/null && echo escaped; done; echo tried",
		port, port);
	attempt(script);
	/* Sessions see only their own: nothing listens in "two" where "one" does. */
	if (access("/usr/bin/python3", X_OK) == 0) {
		struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
		const char *args[] = { "-c",
			"import "
			"socket\ns=socket.socket();s.bind(('0.0.0.0',7171));s.listen(5)\nopen('up',"
			"'w').close()\nwhile True:s.accept()\n",
			NULL };
		struct sb_host_process p;
		struct sb_host_tool_result r;

		l.session = "one";
		l.binary = "/usr/bin/python3";
		l.args = args;
		assert_ok(sb_host_process_launch(fix->h, &l, NULL, &p, &fix->err), &fix->err);
		for (int i = 0; i < 2000 && access(hostfix_path(fix, "one", "up"), F_OK) < 0; i++)
			(void)usleep(10000);
		assert_int_equal(access(hostfix_path(fix, "one", "up"), F_OK), 0);
		run_in("two",
			"(exec 3<>/dev/tcp/127.0.0.1/7171) 2>/dev/null && echo escaped; echo tried",
			30000, &r);
		assert_non_null(strstr(r.text, "tried"));
		assert_null(strstr(r.text, "escaped"));
		sb_host_tool_result_clear(&r);
		assert_ok(sb_host_process_kill(fix->h, "one", p.id, SIGKILL, &fix->err), &fix->err);
		sb_host_process_clear(&p);
	}
}

static void
signals_do_not_reach_the_host(void **state)
{
	char script[500];
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		/* Threads of the host wait for the end of pipes that they make at this moment. */
		(void)syscall(SYS_close_range, 3u, ~0u, 0u);
		pause();
		_exit(0);
	}
	if (!fix) {
		(void)kill(child, SIGKILL);
		skip_because("%s", reason);
	}
	(void)snprintf(script, sizeof script,
		"trap '' TERM; kill -9 %d %d 2>/dev/null; kill -TERM -1 2>/dev/null; kill -9 -%d "
		"2>/dev/null; echo tried",
		(int)child, (int)getpid(), (int)getpgrp());
	attempt(script);
	assert_int_equal(kill(child, 0), 0);
	(void)kill(child, SIGKILL);
}

static void
the_daemons_environment_and_token_stay_secret(void **state)
{
	char script[1000];

	(void)state;
	NEED_RUNTIME();
	(void)snprintf(script, sizeof script,
		"env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; cat '%s' 2>/dev/null; "
		"ls -la '%s' 2>/dev/null && echo escaped; "
		"ls /run /var/run 2>/dev/null; echo tried",
		token, fix->state_dir);
	attempt(script);
}

static void
a_fork_bomb_stays_inside(void **state)
{
	struct sb_host_tool_result r;
	pid_t pid;

	(void)state;
	NEED_RUNTIME();
	NEED_LIMITS();
	run_in("one", "b() { b | b & }; b 2>/dev/null; sleep 1; echo tried", 8000, &r);
	sb_host_tool_result_clear(&r);
	/*
	 * The host can still start processes, and so can the other session; the bombed one
	 * recovers.
	 */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	run_in("two", "echo fine", 30000, &r);
	assert_non_null(strstr(r.text, "fine"));
	sb_host_tool_result_clear(&r);
	for (int i = 0; i < 20; i++) {
		bool fine;

		run_in("one", "echo fine", 30000, &r);
		fine = strstr(r.text, "fine") != NULL;
		sb_host_tool_result_clear(&r);
		if (fine)
			return;
		(void)usleep(200000);
	}
	fail_msg("the session did not recover");
}

static void
a_memory_bomb_stays_inside(void **state)
{
	struct sb_host_tool_result r;

	(void)state;
	NEED_RUNTIME();
	NEED_LIMITS();
	run_in("one",
		"head -c 1200000000 /dev/zero | tail -n 1 | wc -c; test ${PIPESTATUS[1]} = 0 && "
		"echo escaped",
		60000, &r);
	assert_null(strstr(r.text, "escaped"));
	assert_true(r.is_error || r.oom);
	sb_host_tool_result_clear(&r);
	run_in("one", "echo fine", 30000, &r);
	assert_non_null(strstr(r.text, "fine"));
	sb_host_tool_result_clear(&r);
}

static void
the_disk_is_not_filled_beyond_the_limit(void **state)
{
	struct sb_host_tool_result r;
	struct stat st;

	(void)state;
	NEED_RUNTIME();
	run_in("one",
		"for d in /tmp /run /dev/shm $HOME; do head -c 40000000 /dev/zero >$d/fill "
		"2>/dev/null && echo escaped; rm -f $d/fill; done; "
		"for d in / /usr /etc /proc /.sb; do touch $d/fill 2>/dev/null && echo escaped; "
		"done; echo tried",
		60000, &r);
	assert_non_null(strstr(r.text, "tried"));
	assert_null(strstr(r.text, "escaped"));
	sb_host_tool_result_clear(&r);
	assert_int_not_equal(stat("/usr/fill", &st), 0);
	if (!hostfix_is_zfs())
		return;
	skip_because("the quota of a workspace is the storage's: see test-host-service");
}

static void
new_namespaces_are_refused(void **state)
{
	(void)state;
	NEED_RUNTIME();
	attempt("unshare -Urm sh -c 'mount -t tmpfs x /usr 2>/dev/null && echo escaped-inside "
		">/dev/null; ls /proc/1/root" SECRET "' 2>/dev/null\n"
		"nsenter -t 1 -a cat /etc/shadow 2>/dev/null && echo escaped\n"
		"cat /etc/shadow 2>/dev/null && echo escaped; ls /sys/fs/cgroup/memory 2>/dev/null "
		"&& echo escaped; echo tried");
}

int
main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(symlinks_lead_nowhere),
		T(swapped_symlinks_lead_nowhere),
		T(proc_self_fd_shows_nothing_of_the_host),
		T(nothing_can_be_mounted),
		T(the_host_cannot_be_traced_or_seen),
		T(other_sessions_files_are_not_there),
		T(other_ports_are_not_reached),
		T(signals_do_not_reach_the_host),
		T(the_daemons_environment_and_token_stay_secret),
		T(new_namespaces_are_refused),
		T(a_memory_bomb_stays_inside),
		T(the_disk_is_not_filled_beyond_the_limit),
		T(a_fork_bomb_stays_inside),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
