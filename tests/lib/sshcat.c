/* SPDX-License-Identifier: MIT */
/*
 * sshcat: runs one command over the libssh2 transport, stdin to it, its stdout to ours; for tests
 * and measurements. sshcat [-p PORT] [-i KEY]... [-k KNOWN_HOSTS] [-a] [-b BYTES_PER_S] [-s
 * STALL_MS] [-r REPEAT] USER@HOST COMMAND
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <sync/ssh/ssh.h>
#include <sync/wire/transport.h>

struct feed {
	struct sb_transport *t;
};

static void *
feed_input(void *arg)
{
	struct feed *f = arg;
	static char buf[256 << 10];
	ssize_t n;

	while ((n = read(0, buf, sizeof buf)) > 0)
		if (sb_file_write_all(f->t->wfd, buf, (size_t)n, NULL) < 0)
			break;
	(void)f->t->ops->close_write(f->t, NULL);
	return NULL;
}

static void
log_line(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)fprintf(stderr, "%s: %s\n", component, text);
}

static int
run(struct sb_ssh *c, const char *command, struct sb_error *err)
{
	sb_auto(sb_transport) struct sb_transport *t = sb_ssh_exec(c, command, err);
	static char buf[256 << 10];
	struct feed f = { .t = t };
	struct sb_exit e;
	pthread_t th;
	ssize_t n;
	int r;

	if (!t)
		return err->code;
	if (pthread_create(&th, NULL, feed_input, &f) != 0)
		return SB_E_SYS;
	while ((n = read(t->rfd, buf, sizeof buf)) > 0)
		if (sb_file_write_all(1, buf, (size_t)n, err) < 0)
			break;
	r = t->ops->wait(t, SB_NEVER, &e, err);
	if (r < 0)
		t->ops->cancel(t);
	(void)pthread_join(th, NULL);
	if (r < 0)
		return r;
	if (*e.stderr_tail)
		(void)fprintf(stderr, "stderr: %s\n", e.stderr_tail);
	return e.known ? e.code : 255;
}

int
main(int argc, char **argv)
{
	struct sb_ssh_opts o = SB_SSH_OPTS_INIT;
	struct sb_error err = { 0 };
	sb_auto(sb_ssh) struct sb_ssh *c = NULL;
	const char *ids[16];
	const char *known[1] = { "/dev/null" };
	uint64_t up, down;
	int repeat = 1, opt, r = 0;
	char *at;

	(void)signal(SIGPIPE, SIG_IGN);
	o.identities = ids;
	o.known_hosts = known;
	o.n_known_hosts = 1;
	o.agent = getenv("SSH_AUTH_SOCK");
	while ((opt = getopt(argc, argv, "p:i:k:ab:s:r:v")) >= 0) {
		switch (opt) {
		case 'p': o.port = (int)strtol(optarg, NULL, 10); break;
		case 'i': ids[o.n_identities++ % 16] = optarg; break;
		case 'k': known[0] = optarg; break;
		case 'a': o.new_key = SB_SSH_NEW_ADD; break;
		case 'b': o.bwlimit = strtoull(optarg, NULL, 10); break;
		case 's':
			o.stall_ms = (int)strtol(optarg, NULL, 10);
			o.alive_ms = o.stall_ms / 3;
			break;
		case 'r': repeat = (int)strtol(optarg, NULL, 10); break;
		case 'v': o.log = (struct sb_log){ .fn = log_line, .level = SB_LOG_TRACE }; break;
		default: return 2;
		}
	}
	if (argc - optind != 2 || !(at = strrchr(argv[optind], '@')))
		return 2;
	*at = '\0';
	o.user = argv[optind];
	o.host = at + 1;
	c = sb_ssh_connect(&o, SB_NEVER, &err);
	if (!c) {
		(void)fprintf(stderr, "sshcat: %s (%s)\n", err.msg, sb_code_name(err.code));
		return 255;
	}
	for (int i = 0; i < repeat && r == 0; i++)
		r = run(c, argv[optind + 1], &err);
	sb_ssh_wire_bytes(c, &up, &down);
	if (getenv("SSHCAT_BYTES"))
		(void)fprintf(stderr, "wire up %llu down %llu\n", (unsigned long long)up,
			(unsigned long long)down);
	if (r < 0)
		(void)fprintf(stderr, "sshcat: %s (%s)\n", err.msg, sb_code_name(err.code));
	return r < 0 ? 255 : r;
}
