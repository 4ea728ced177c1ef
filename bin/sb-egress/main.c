/* SPDX-License-Identifier: MIT */
/* sb-egress: the egress proxy of one session, started by the sandbox host (doc/NETWORK.md). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <egress/egress.h>
#include <egress/httphead.h>

#include "confine.h"

#define HOSTS_MAX (1u << 20)

static int
complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sb-egress: %s\n", err->msg);
	return 1;
}

static int
usage(void)
{
	(void)fprintf(stderr,
		"usage: sb-egress serve -s SESSION -c SOCKET [-p PID] [-r ADDRESS:PORT]... "
		"[-H HOSTS] [-o NAME=NUMBER]... <POLICY\n"
		"       sb-egress probe\n"
		"Started by the sandbox host, not by hand; doc/NETWORK.md tells what it does.\n");
	return 2;
}

/* The numbers that tests turn down. */
static bool
set_number(struct sb_egress_opts *o, const char *text)
{
	const struct {
		const char *name;
		int64_t *to;
	} times[] = { { "hello_ms=", &o->hello_ms }, { "connect_ms=", &o->connect_ms },
		{ "lookup_ms=", &o->lookup_ms }, { "half_ms=", &o->half_ms },
		{ "idle_ms=", &o->idle_ms }, { "cache_min_ms=", &o->cache_min_ms } };
	int64_t n;

	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		if (sb_str_starts(text, times[i].name) &&
			sb_str_to_i64(text + strlen(times[i].name), 0, 86400000, &n)) {
			*times[i].to = n;
			return true;
		}
	if (sb_str_starts(text, "max_connections=") &&
		sb_str_to_i64(text + strlen("max_connections="), 1, 65536, &n)) {
		o->max_connections = (size_t)n;
		return true;
	}
	return false;
}

static bool
add_server(struct sb_egress_opts *o, const char *text)
{
	struct sb_httphead_peer p;

	if (o->n_servers == SB_LOOKUP_SERVERS || !sb_httphead_parse_peer(text, strlen(text), &p) ||
		p.name[0])
		return false;
	o->servers[o->n_servers++] =
		(struct sb_lookup_server){ p.addr, p.port ? p.port : (uint16_t)53 };
	return true;
}

static bool
parse(int argc, char **argv, struct sb_egress_opts *o, const char **socket_path, const char **hosts,
	int64_t *pid)
{
	int c;

	while ((c = getopt(argc, argv, "+s:c:p:r:H:o:")) != -1) {
		bool good = c != '?';

		switch (c) {
		case 's': o->session = optarg; break;
		case 'c': *socket_path = optarg; break;
		case 'p': good = sb_str_to_i64(optarg, 2, INT32_MAX, pid); break;
		case 'r': good = add_server(o, optarg); break;
		case 'H': *hosts = optarg; break;
		case 'o': good = set_number(o, optarg); break;
		default: break;
		}
		if (!good)
			return false;
	}
	return optind == argc && o->session && *socket_path;
}

static int
listen_at(const char *path, struct sb_error *err)
{
	sb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	mode_t old = umask(0077);
	int r;

	if (strlen(path) >= sizeof un.sun_path) {
		(void)umask(old);
		return sb_fail(err, SB_E_INVAL, "control socket %s: the path is too long", path);
	}
	(void)memcpy(un.sun_path, path, strlen(path));
	(void)unlink(path);
	r = fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof un) < 0 || listen(fd, 8) < 0 ?
		sb_fail_errno(err, "control socket %s", path) :
		0;
	(void)umask(old);
	return r < 0 ? r : sb_steal_fd(&fd);
}

static struct sb_netpolicy *
read_policy(struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	char buf[4096];
	ssize_t n;

	sb_buf_init(&text, SB_NETPOLICY_TEXT_MAX);
	while ((n = sb_file_read_full(0, buf, sizeof buf, err)) > 0)
		sb_buf_add(&text, buf, (size_t)n);
	if (n < 0 || sb_buf_check(&text, "network policy", err) < 0)
		return NULL;
	return sb_netpolicy_parse((const char *)text.data, text.len, err);
}

/* Whoever waits for the end of our output need not wait for ours. */
static void
let_go_of_stdio(int null)
{
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
}

static int
serve(int argc, char **argv)
{
	struct sb_egress_opts o = SB_EGRESS_OPTS_INIT;
	const char *path = NULL, *hosts = NULL;
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct sb_error err = { 0 };
	struct sb_egress *e;
	sb_autoclose int null = -1;
	int64_t pid = 0;
	int r;

	if (!parse(argc, argv, &o, &path, &hosts, &pid))
		return usage();
	(void)signal(SIGPIPE, SIG_IGN);
	o.policy = read_policy(&err);
	if (!o.policy)
		return complain(&err);
	/* Opened and read now, as files are out of reach soon. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		(void)sb_fail_errno(&err, "/dev/null");
		return complain(&err);
	}
	if (hosts && sb_file_read(AT_FDCWD, hosts, HOSTS_MAX, &text, &err) < 0)
		return complain(&err);
	if (hosts)
		o.hosts = (const char *)text.data;
	o.control = listen_at(path, &err);
	if (o.control < 0 || sb_gate_make((pid_t)pid, &o.gate, &err) < 0)
		return complain(&err);
	(void)printf("ready %d\n", o.gate.session);
	(void)fflush(stdout);
	if (confine(&err) < 0)
		return complain(&err);
	e = sb_egress_new(&o, &err);
	if (!e)
		return complain(&err);
	let_go_of_stdio(null);
	r = sb_egress_run(e, NULL, &err);
	sb_egress_free(e);
	return r < 0 ? 1 : 0;
}

/* Whether a gate can be made here, by this user: as for a session, with a namespace of our own. */
static int
probe(void)
{
	struct sb_gate g = SB_GATE_INIT;
	struct sb_error err = { 0 };
	int flags = CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER);

	if (unshare(flags) < 0) {
		(void)sb_fail_errno(&err, "new network namespace");
		return complain(&err);
	}
	if (sb_gate_make(0, &g, &err) < 0)
		return complain(&err);
	sb_gate_close(&g);
	(void)printf("ready\n");
	return 0;
}

#ifdef __SANITIZE_ADDRESS__
/* Its look for leaks at the end needs a thread and to trace this process, which are given up. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
	return 1;
}
#endif

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "probe") == 0)
		return probe();
	if (argc > 2 && strcmp(argv[1], "serve") == 0)
		return serve(argc - 1, argv + 1);
	return usage();
}
