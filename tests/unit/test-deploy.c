/* SPDX-License-Identifier: MIT */
/*
 * Bringing an agent to another machine, over real SSH servers and over a stand-in for the ssh
 * program.
 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <sync/remote/deploy.h>
#include <sync/remote/doctor.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

#include "tests/lib/relay.h"
#include "tests/lib/sshd.h"
#include "tests/lib/tmpdir.h"

/* An agent that can be had anywhere: says hello with its arguments, then echoes. */
#define AGENT \
	"#!/bin/sh\ncase $1 in --version) echo sbsync-agent test;; agent) shift; echo \"hello " \
	"$*\"; exec cat;; " \
	"*) exit 9;; esac\n"

struct lab {
	struct test_sshd sshd;
	struct sb_endpoint to;
	const char *keys[1];
	char agent[300];
	bool none;
	char why[300];
};

static struct lab lab;

#define NEED(l) \
	do { \
		if ((l)->none) { \
			skip_because("%s", (l)->why); \
		} \
	} while (0)

static void
write_file(const char *path, const void *data, size_t len, mode_t mode)
{
	struct sb_error err = { 0 };

	assert_ok(sb_file_replace(AT_FDCWD, path, data, len, mode, &err), &err);
}

/*
 * Every place for the agent is inside the server's folder, so that nothing is left on the machine.
 */
#define ENV_LINE "SetEnv XDG_CACHE_HOME=@DIR@/cache XDG_RUNTIME_DIR=@DIR@/run TMPDIR=@DIR@/tmp"

static int
lab_start(struct lab *l, const char *verb, const char *account, const char *const *lines)
{
	bool skips;

	memset(l, 0, sizeof *l);
	if (!test_sshd_start(&l->sshd, verb, account, lines, &skips, l->why, sizeof l->why)) {
		l->none = true;
		if (!skips)
			print_message("# %s\n", l->why);
		return skips ? 0 : -1;
	}
	(void)snprintf(l->agent, sizeof l->agent, "%s/agent", l->sshd.dir);
	write_file(l->agent, AGENT, strlen(AGENT), 0755);
	l->keys[0] = l->sshd.key;
	l->to = (struct sb_endpoint){ .kind = SB_ENDPOINT_SSH,
		.user = l->sshd.user,
		.host = (char[]){ "127.0.0.1" },
		.port = l->sshd.port };
	return 0;
}

static void
remote_opts(struct lab *l, struct sb_remote_opts *o)
{
	static char host[] = "127.0.0.1";

	*o = (struct sb_remote_opts)SB_REMOTE_OPTS_INIT;
	l->to.host = host;
	o->to = &l->to;
	o->config_file = "/dev/null";
	o->identities = l->keys;
	o->n_identities = 1;
	o->known_hosts = l->sshd.known;
}

static struct sb_remote *
open_lab(struct lab *l)
{
	struct sb_remote_opts o;
	struct sb_error err = { 0 };
	struct sb_remote *r;

	remote_opts(l, &o);
	r = sb_remote_open(&o, sb_deadline_in(30000), &err);
	if (!r)
		fail_msg("%s", err.msg);
	return r;
}

/* The stream begins with the agent's own first byte, and goes on both ways. */
static void
check_agent(struct sb_transport *t, const char *hello)
{
	struct sb_error err = { 0 };
	struct sb_exit e;
	char buf[200];
	size_t n = 0;
	ssize_t k;

	assert_int_equal(write(t->wfd, "ping", 4), 4);
	assert_ok(t->ops->close_write(t, &err), &err);
	while ((k = read(t->rfd, buf + n, sizeof buf - 1 - n)) > 0)
		n += (size_t)k;
	buf[n] = '\0';
	assert_string_equal(buf, hello);
	assert_ok(t->ops->wait(t, sb_deadline_in(10000), &e, &err), &err);
	assert_int_equal(e.code, 0);
}

static void
deploy_opts(struct lab *l, struct sb_deploy_opts *o)
{
	static const char *const argv[] = { "agent", "one", "it's two", NULL };

	*o = (struct sb_deploy_opts)SB_DEPLOY_OPTS_INIT;
	o->agent = l->agent;
	o->argv = argv;
	o->deadline = sb_deadline_in(30000);
}

#define HELLO "hello one it's two\nping"

/* Deploys, checks that it speaks, tells whether it was sent. */
static bool
deploys(struct lab *l, struct sb_remote *r)
{
	struct sb_deploy_opts o;
	struct sb_deploy_info info;
	struct sb_error err = { 0 };
	struct sb_transport *t = NULL;

	deploy_opts(l, &o);
	assert_ok(sb_deploy_open(r, &o, &info, &t, &err), &err);
	check_agent(t, HELLO);
	sb_transport_free(t);
	return info.uploaded;
}

static void
deploy_fails(struct lab *l, struct sb_remote *r, int code, const char *says)
{
	struct sb_deploy_opts o;
	struct sb_error err = { 0 };
	struct sb_transport *t = NULL;

	deploy_opts(l, &o);
	assert_fails(sb_deploy_open(r, &o, NULL, &t, &err), code, &err);
	if (!strstr(err.msg, says))
		fail_msg("message is \"%s\", want \"%s\"", err.msg, says);
}

/* Runs a command of the shell and gives the first line it prints. */
static void
shell(const char *command, char *out, size_t size)
{
	const char *argv[] = { "sh", "-c", command, NULL };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 65536);
	so.search_path = true;
	(void)sb_child_run(argv, &so, NULL, 0, &b, NULL, NULL, sb_deadline_in(20000), NULL);
	(void)snprintf(out, size, "%.*s", (int)strcspn((char *)b.data, "\n"), (char *)b.data);
}

#define SHELL(out, ...) \
	do { \
		sb_autofree char *c_ = sb_str_printf(__VA_ARGS__); \
		shell(c_, (out), sizeof(out)); \
	} while (0)

static int
start_lab(void **state)
{
	static const char *const lines[] = { ENV_LINE, NULL };

	(void)state;
	return lab_start(&lab, "start", NULL, lines);
}

static int
stop_lab(void **state)
{
	(void)state;
	test_sshd_stop(&lab.sshd);
	return 0;
}

static void
is_sent_once(void **state)
{
	sb_auto(sb_remote) struct sb_remote *r = NULL;
	struct sb_deploy_opts o;
	struct sb_transport *t = NULL;
	struct sb_error err = { 0 };
	char out[200];

	(void)state;
	NEED(&lab);
	r = open_lab(&lab);
	assert_false(sb_remote_is_program(r));
	deploy_opts(&lab, &o);
	o.no_upload = true;
	assert_fails(sb_deploy_open(r, &o, NULL, &t, &err), SB_E_NOTFOUND, &err);
	assert_true(deploys(&lab, r));
	assert_false(deploys(&lab, r));
	assert_false(deploys(&lab, r));
	SHELL(out, "cd %s/cache/sbsync && ls -A | tr '\\n' ' '", lab.sshd.dir);
	assert_int_equal(strlen(out), strlen("agent-") + 32 + 1);
	SHELL(out, "stat -c %%a %s/cache/sbsync %s/cache/sbsync/agent-* | tr '\\n' ' '",
		lab.sshd.dir, lab.sshd.dir);
	assert_string_equal(out, "700 700 ");
	assert_int_equal(sb_deploy_open(r, &o, NULL, &t, &err), 0);
	sb_transport_free(t);
}

static void
damaged_copy_is_replaced(void **state)
{
	sb_auto(sb_remote) struct sb_remote *r = NULL;
	char out[200];

	(void)state;
	NEED(&lab);
	r = open_lab(&lab);
	(void)deploys(&lab, r);
	SHELL(out, "for f in %s/cache/sbsync/agent-*; do : >$f; done", lab.sshd.dir);
	assert_true(deploys(&lab, r));
	assert_false(deploys(&lab, r));
}

static void
old_copies_are_removed(void **state)
{
	sb_auto(sb_remote) struct sb_remote *r = NULL;
	char out[200];

	(void)state;
	NEED(&lab);
	r = open_lab(&lab);
	SHELL(out,
		"cd %s/cache/sbsync && rm -f agent-* && touch -d '9 days ago' agent-old .new-old "
		"&& "
		"touch -d '2 days ago' agent-recent",
		lab.sshd.dir);
	assert_true(deploys(&lab, r));
	SHELL(out,
		"cd %s/cache/sbsync && ls -A | sed 's/agent-[0-9a-f]*$/NEW/' | sort | tr '\\n' ' '",
		lab.sshd.dir);
	assert_string_equal(out, "NEW agent-recent ");
}

static void *
deploy_thread(void *arg)
{
	(void)deploys(&lab, arg);
	return NULL;
}

static void
many_at_once(void **state)
{
	sb_auto(sb_remote) struct sb_remote *r = NULL;
	pthread_t th[6];
	char out[200];

	(void)state;
	NEED(&lab);
	r = open_lab(&lab);
	for (int round = 0; round < 3; round++) {
		SHELL(out, "rm -rf %s/cache", lab.sshd.dir);
		for (int i = 0; i < 6; i++)
			assert_int_equal(pthread_create(&th[i], NULL, deploy_thread, r), 0);
		for (int i = 0; i < 6; i++)
			assert_int_equal(pthread_join(th[i], NULL), 0);
		SHELL(out, "ls -A %s/cache/sbsync | wc -l", lab.sshd.dir);
		assert_string_equal(out, "1");
	}
}

static void
wrong_agents_are_told_apart(void **state)
{
	sb_auto(sb_remote) struct sb_remote *r = NULL;
	Elf64_Ehdr elf = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC };
	static const char fails[] = "#!/bin/sh\necho no good >&2; exit 3\n";

	(void)state;
	NEED(&lab);
	r = open_lab(&lab);
	elf.e_machine = EM_S390;
	write_file(lab.agent, &elf, sizeof elf, 0755);
	deploy_fails(&lab, r, SB_E_UNSUPPORTED, "the agent at hand is for s390x");
	/* Of no type we know: it gets there and cannot be started. */
	elf.e_machine = EM_SPARCV9;
	write_file(lab.agent, &elf, sizeof elf, 0755);
	deploy_fails(&lab, r, SB_E_UNSUPPORTED, "run");
	write_file(lab.agent, fails, strlen(fails), 0755);
	deploy_fails(&lab, r, SB_E_UNSUPPORTED, "run 3 no good");
	assert_int_equal(unlink(lab.agent), 0);
	deploy_fails(&lab, r, SB_E_NOTFOUND, "agent");
	write_file(lab.agent, AGENT, strlen(AGENT), 0755);
	assert_int_equal(sb_remote_check(r, NULL), 0);
}

/* A cut in the middle of the upload leaves no agent behind, and the next attempt succeeds. */
static void
cut_upload_leaves_nothing(void **state)
{
	struct relay_opts ro = RELAY_OPTS_INIT;
	sb_autofree char *known = NULL;
	sb_autofree char *big = malloc(3 << 20);
	struct sb_deploy_opts o;
	struct sb_remote_opts opts;
	struct sb_error err = { 0 };
	struct sb_remote *r;
	struct sb_transport *t = NULL;
	struct relay *relay;
	unsigned seed = 1;
	char out[200], line[600];

	(void)state;
	NEED(&lab);
	assert_non_null(big);
	for (size_t i = 0; i < 3 << 20; i++) {
		seed = seed * 1103515245u + 12345u;
		big[i] = i % 61 == 0 ? '\n' : (char)('a' + (seed >> 16) % 26);
	}
	memcpy(big, AGENT "exit\n", strlen(AGENT "exit\n"));
	write_file(lab.agent, big, 3 << 20, 0755);
	SHELL(out, "rm -rf %s/cache", lab.sshd.dir);
	ro.to_port = lab.sshd.port;
	ro.cut_up = 500000;
	relay = relay_start(&ro);
	assert_non_null(relay);
	known = sb_str_printf("%s/known_relay", lab.sshd.dir);
	(void)snprintf(line, sizeof line, "sed 's/:%d /:%d /' %s >%s", lab.sshd.port, relay->port,
		lab.sshd.known, known);
	shell(line, out, sizeof out);
	remote_opts(&lab, &opts);
	opts.known_hosts = known;
	opts.port = relay->port;
	r = sb_remote_open(&opts, sb_deadline_in(20000), &err);
	if (!r)
		fail_msg("%s", err.msg);
	deploy_opts(&lab, &o);
	assert_fails(sb_deploy_open(r, &o, NULL, &t, &err), SB_E_CLOSED, &err);
	sb_remote_free(r);
	relay_stop(relay);
	/* The far shell notices a moment later. */
	for (sb_deadline d = sb_deadline_in(20000); !sb_deadline_passed(d); (void)usleep(20000)) {
		SHELL(out, "ls -A %s/cache/sbsync | wc -l", lab.sshd.dir);
		if (strcmp(out, "0") == 0)
			break;
	}
	assert_string_equal(out, "0");
	r = open_lab(&lab);
	assert_true(deploys(&lab, r));
	sb_remote_free(r);
	write_file(lab.agent, AGENT, strlen(AGENT), 0755);
}

static void
noise_before_the_agent_is_skipped(void **state)
{
	static const char *const lines[] = { ENV_LINE,
		"ForceCommand echo welcome; echo sbsync:; head -c $(cat @DIR@/noise) /dev/zero; "
		"printf 'no end of line'; sh -c \"$SSH_ORIGINAL_COMMAND\"",
		NULL };
	struct lab l;
	struct sb_remote *r;
	sb_autofree char *noise = NULL;

	(void)state;
	NEED(&lab);
	assert_int_equal(lab_start(&l, "start", NULL, lines), 0);
	noise = sb_str_printf("%s/noise", l.sshd.dir);
	write_file(noise, "30000", 5, 0644);
	r = open_lab(&l);
	assert_true(deploys(&l, r));
	assert_false(deploys(&l, r));
	write_file(noise, "70000", 5, 0644);
	deploy_fails(&l, r, SB_E_PROTO, "prints more than 65536 bytes");
	sb_remote_free(r);
	test_sshd_stop(&l.sshd);
}

static void
no_command_allowed(void **state)
{
	static const char *const lines[] = {
		"ForceCommand echo 'This account is \033[1mnot available'; exit 1", NULL
	};
	struct lab l;
	struct sb_remote *r;

	(void)state;
	NEED(&lab);
	assert_int_equal(lab_start(&l, "start", NULL, lines), 0);
	r = open_lab(&l);
	deploy_fails(&l, r, SB_E_UNSUPPORTED, "This account is \\x1b[1mnot available");
	sb_remote_free(r);
	test_sshd_stop(&l.sshd);
}

#define NOEXEC \
	"mkdir -p \"$0/cache\" \"$0/run\" \"$0/tmp\"; for d in \"$0/home\" \"$0/cache\" " \
	"\"$0/run\" \"$0/tmp\" /var/tmp /dev/shm; do " \
	"mount -t tmpfs -o mode=1777,noexec none \"$d\" || exit 1; done"

static void
nothing_executable(void **state)
{
	static const char *const lines[] = { ENV_LINE, NULL };
	static const char *const no_python[] = {
		"SetEnv XDG_CACHE_HOME=@DIR@/cache XDG_RUNTIME_DIR=@DIR@/run TMPDIR=@DIR@/tmp "
		"PATH=@DIR@/bin",
		NULL
	};
	struct lab l;
	struct sb_remote *r;

	(void)state;
	NEED(&lab);
	(void)setenv("SSHD_SETUP", NOEXEC, 1);
	assert_int_equal(lab_start(&l, "start", "sbtester", lines), 0);
	if (!l.none) {
		r = open_lab(&l);
		/* From memory, by way of python3: never there before. */
		assert_true(deploys(&l, r));
		assert_true(deploys(&l, r));
		sb_remote_free(r);
		test_sshd_stop(&l.sshd);
		(void)setenv("SSHD_SETUP",
			NOEXEC "; mkdir \"$0/bin\"; for p in sh ls id rm mkdir chmod uname head "
			       "gzip cksum mv find env cat; do "
			       "ln -s \"$(command -v $p)\" \"$0/bin/$p\"; done",
			1);
		assert_int_equal(lab_start(&l, "start", "sbtester", no_python), 0);
		r = open_lab(&l);
		deploy_fails(&l, r, SB_E_UNSUPPORTED, "mounted noexec");
		sb_remote_free(r);
		test_sshd_stop(&l.sshd);
	}
	(void)unsetenv("SSHD_SETUP");
	if (l.none) {
		skip_because("%s", l.why);
	}
}

static void
nothing_writable(void **state)
{
	static const char *const lines[] = { ENV_LINE, NULL };
	struct lab l;
	struct sb_remote *r;

	(void)state;
	NEED(&lab);
	(void)setenv("SSHD_SETUP",
		"mkdir -p \"$0/cache\" \"$0/run\" \"$0/tmp\"; for d in \"$0/cache\" \"$0/run\" "
		"\"$0/tmp\" /var/tmp /dev/shm; do "
		"mount -t tmpfs -o ro none \"$d\" || exit 1; done",
		1);
	assert_int_equal(lab_start(&l, "start", "sbtester", lines), 0);
	(void)unsetenv("SSHD_SETUP");
	NEED(&l);
	r = open_lab(&l);
	deploy_fails(&l, r, SB_E_UNSUPPORTED, "can be written");
	sb_remote_free(r);
	test_sshd_stop(&l.sshd);
}

/* A directory in /tmp that somebody else made is not trusted. */
static void
foreign_directory_is_not_used(void **state)
{
	static const char *const lines[] = {
		"SetEnv XDG_CACHE_HOME=/proc/none XDG_RUNTIME_DIR=/proc/none TMPDIR=@DIR@/tmp", NULL
	};
	struct lab l;
	struct sb_remote *r;
	char out[200];

	(void)state;
	NEED(&lab);
	(void)setenv("SSHD_SETUP",
		"mkdir -p \"$0/tmp/sbsync-4321\"; chmod 1777 \"$0/tmp\"; mount -t tmpfs -o "
		"mode=1777 none /var/tmp",
		1);
	assert_int_equal(lab_start(&l, "start", "sbtester", lines), 0);
	(void)unsetenv("SSHD_SETUP");
	if (l.none) {
		skip_because("%s", l.why);
	}
	r = open_lab(&l);
	assert_true(deploys(&l, r));
	SHELL(out, "ls -A %s/tmp/sbsync-4321 | wc -l", l.sshd.dir);
	assert_string_equal(out, "0");
	/* Ours, but open to others: not used either. */
	SHELL(out, "chown 4321 %s/tmp/sbsync-4321; chmod 777 %s/tmp/sbsync-4321", l.sshd.dir,
		l.sshd.dir);
	assert_false(deploys(&l, r));
	SHELL(out, "ls -A %s/tmp/sbsync-4321 | wc -l", l.sshd.dir);
	assert_string_equal(out, "0");
	sb_remote_free(r);
	test_sshd_stop(&l.sshd);
}

static void
works_with_dropbear(void **state)
{
	struct lab l;
	struct sb_remote *r;

	(void)state;
	assert_int_equal(lab_start(&l, "start-dropbear", "sbtester", NULL), 0);
	NEED(&l);
	r = open_lab(&l);
	assert_false(sb_remote_is_program(r));
	assert_true(deploys(&l, r));
	assert_false(deploys(&l, r));
	sb_remote_free(r);
	test_sshd_stop(&l.sshd);
}

static void
works_with_the_ssh_program(void **state)
{
	sb_autofree char *rsh = NULL;
	struct sb_remote_opts o;
	struct sb_error err = { 0 };
	struct sb_remote *r;
	char out[100];

	(void)state;
	NEED(&lab);
	SHELL(out, "rm -rf %s/cache", lab.sshd.dir);
	remote_opts(&lab, &o);
	o.rsh = "ssh";
	r = sb_remote_open(&o, sb_deadline_in(30000), &err);
	assert_non_null(r);
	assert_true(sb_remote_is_program(r));
	assert_true(deploys(&lab, r));
	assert_false(deploys(&lab, r));
	sb_remote_free(r);
	/* Its failures come out as ours do. */
	o.known_hosts = "/dev/null";
	r = sb_remote_open(&o, sb_deadline_in(30000), &err);
	deploy_fails(&lab, r, SB_E_HOSTKEY, "--accept-new-host-key");
	sb_remote_free(r);
	remote_opts(&lab, &o);
	o.rsh = "ssh";
	o.port = 1;
	r = sb_remote_open(&o, sb_deadline_in(30000), &err);
	deploy_fails(&lab, r, SB_E_CONNECT, "is sshd running there");
	sb_remote_free(r);
	rsh = sb_str_printf("'%s/no such program'", lab.sshd.dir);
	o.rsh = rsh;
	r = sb_remote_open(&o, sb_deadline_in(30000), &err);
	deploy_fails(&lab, r, SB_E_NOTFOUND, "no such");
	sb_remote_free(r);
}

/* The far script under every shell at hand, as the log-in shell and as sh, without any SSH. */
static void
works_with_other_shells(void **state)
{
	static const char *const shells[] = { "dash", "bash", "busybox", "ksh", "zsh", "tcsh",
		"fish", "yash" };
	struct tmpdir t;
	const char *dir = t.path;
	char out[400];
	struct lab l = { 0 };
	int tried = 0;

	(void)state;
	tmpdir_make(&t);
	(void)snprintf(l.agent, sizeof l.agent, "%s/agent", dir);
	write_file(l.agent, AGENT, strlen(AGENT), 0755);
	l.to = (struct sb_endpoint){ .kind = SB_ENDPOINT_SSH, .host = (char[]){ "h" } };
	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
		sb_autofree char *rsh = NULL;
		struct sb_remote_opts o = SB_REMOTE_OPTS_INIT;
		struct sb_error err = { 0 };
		struct sb_remote *r;
		bool applets = strcmp(shells[i], "busybox") == 0;

		SHELL(out, "command -v %s", shells[i]);
		if (!out[0])
			continue;
		/* For busybox a PATH with nothing but its applets. */
		if (applets)
			SHELL(out, "mkdir -p %s/bin && busybox --install -s %s/bin", dir, dir);
		rsh = sb_str_printf("env XDG_CACHE_HOME=%s/cache-%s %s%s%s sh -c 'shift; exec %s%s "
				    "-c \"$1\"' rsh",
			dir, shells[i], applets ? "PATH=" : "", applets ? dir : "",
			applets ? "/bin" : "", shells[i], applets ? " sh" : "");
		o.to = &l.to;
		o.rsh = rsh;
		r = sb_remote_open(&o, sb_deadline_in(20000), &err);
		assert_non_null(r);
		print_message("# %s\n", shells[i]);
		assert_true(deploys(&l, r));
		assert_false(deploys(&l, r));
		sb_remote_free(r);
		tried++;
	}
	tmpdir_remove(&t);
	assert_true(tried > 0);
}

struct report {
	struct sb_doctor_result v[SB_DOCTOR_CHECKS];
	int n;
};

static void
note_result(const struct sb_doctor_result *r, void *arg)
{
	struct report *rep = arg;

	assert_int_equal(r->what, rep->n);
	rep->v[rep->n++] = *r;
}

static void
state_is(const struct report *rep, enum sb_doctor_what what, enum sb_doctor_state state,
	const char *says)
{
	if (rep->v[what].state != state || !strstr(rep->v[what].text, says))
		fail_msg("%s: %d \"%s\", want %d \"%s\"", sb_doctor_name(what), rep->v[what].state,
			rep->v[what].text, state, says);
}

static void
doctor_finds_what_is_wrong(void **state)
{
	struct sb_remote_opts o;
	struct sb_error err = { 0 };
	struct report rep = { 0 };
	sb_autofree char *path = NULL;
	sb_autofree char *other = NULL;
	const char *keys[1];

	(void)state;
	NEED(&lab);
	(void)setenv("SBSYNC_AGENT", lab.agent, 1);
	path = sb_str_printf("%s/not/yet there/it's", lab.sshd.dir);
	other = sb_str_printf("%s/other", lab.sshd.dir);
	remote_opts(&lab, &o);
	assert_int_equal(sb_doctor_run(&o, path, sb_deadline_in(30000), note_result, &rep, &err),
		0);
	assert_int_equal(rep.n, SB_DOCTOR_CHECKS);
	state_is(&rep, SB_DOCTOR_NAME, SB_DOCTOR_GOOD, "127.0.0.1");
	state_is(&rep, SB_DOCTOR_AGENT, SB_DOCTOR_GOOD, "sbsync-agent test");
	state_is(&rep, SB_DOCTOR_WRITE, SB_DOCTOR_GOOD, lab.sshd.dir);
	state_is(&rep, SB_DOCTOR_CLOCK, SB_DOCTOR_GOOD, "agrees");
	assert_true(rep.v[SB_DOCTOR_SPACE].state <= SB_DOCTOR_WARN);

	rep.n = 0;
	assert_int_equal(sb_doctor_run(&o, "/proc/nothing/here", sb_deadline_in(30000), note_result,
				 &rep, &err),
		1);
	state_is(&rep, SB_DOCTOR_WRITE, SB_DOCTOR_BAD, "/proc cannot be written");
	rep.n = 0;
	assert_int_equal(
		sb_doctor_run(&o, lab.agent, sb_deadline_in(30000), note_result, &rep, &err), 1);
	state_is(&rep, SB_DOCTOR_WRITE, SB_DOCTOR_BAD, "is not a directory");

	keys[0] = other;
	o.identities = keys;
	for (int program = 0; program < 2; program++) {
		rep.n = 0;
		o.rsh = program ? "ssh" : NULL;
		assert_int_equal(
			sb_doctor_run(&o, "x", sb_deadline_in(30000), note_result, &rep, &err), 1);
		assert_int_equal(rep.n, SB_DOCTOR_CHECKS);
		state_is(&rep, SB_DOCTOR_NAME, SB_DOCTOR_GOOD, "the machine answers");
		state_is(&rep, SB_DOCTOR_KEY, SB_DOCTOR_GOOD, "is the one we know");
		state_is(&rep, SB_DOCTOR_LOGIN, SB_DOCTOR_BAD, "log-in refused");
		state_is(&rep, SB_DOCTOR_AGENT, SB_DOCTOR_SKIPPED, "");
		rep.n = 0;
		o.known_hosts = "/dev/null";
		assert_int_equal(
			sb_doctor_run(&o, "x", sb_deadline_in(30000), note_result, &rep, &err), 1);
		state_is(&rep, SB_DOCTOR_KEY, SB_DOCTOR_BAD, "--accept-new-host-key");
		rep.n = 0;
		o.port = 1;
		assert_int_equal(
			sb_doctor_run(&o, "x", sb_deadline_in(30000), note_result, &rep, &err), 1);
		state_is(&rep, SB_DOCTOR_NAME, SB_DOCTOR_BAD, "is sshd running");
		o.port = 0;
		o.known_hosts = lab.sshd.known;
	}
	(void)unsetenv("SBSYNC_AGENT");
}

static void
cksum_is_that_of_posix(void **state)
{
	(void)state;
	/* From cksum(1). */
	assert_int_equal(sb_deploy_cksum("", 0), 4294967295u);
	assert_int_equal(sb_deploy_cksum("123456789", 9), 930766865u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cksum_is_that_of_posix),
		cmocka_unit_test(works_with_other_shells),
		cmocka_unit_test(is_sent_once),
		cmocka_unit_test(damaged_copy_is_replaced),
		cmocka_unit_test(old_copies_are_removed),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(wrong_agents_are_told_apart),
		cmocka_unit_test(cut_upload_leaves_nothing),
		cmocka_unit_test(noise_before_the_agent_is_skipped),
		cmocka_unit_test(no_command_allowed),
		cmocka_unit_test(nothing_executable),
		cmocka_unit_test(nothing_writable),
		cmocka_unit_test(foreign_directory_is_not_used),
		cmocka_unit_test(works_with_dropbear),
		cmocka_unit_test(works_with_the_ssh_program),
		cmocka_unit_test(doctor_finds_what_is_wrong),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start_lab, stop_lab);
}
