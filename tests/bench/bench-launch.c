/* SPDX-License-Identifier: MIT */
/*
 * bench-launch WORK SSHD USER PORT: how long 1 KiB takes to `cat` and back, one at a time, through the local launcher, the SSH
 * launcher and the ssh program itself with the keys of the server in the folder SSHD. Prints median and 95th percentile in microseconds.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <provider/provider.h>

#define ROUNDS 2000
#define WARM 100
#define BYTES 1024

static int64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
die(const char *what, const struct sb_error *err)
{
	(void)fprintf(stderr, "bench-launch: %s: %s\n", what, err->msg);
	exit(1);
}

static int
by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The round trips; prints the line. */
static void
measure(const char *name, int in, int out)
{
	static int64_t took[ROUNDS];
	static uint8_t there[BYTES], back[BYTES];
	struct sb_error err = { 0 };

	memset(there, 'x', sizeof there);
	for (int i = -WARM; i < ROUNDS; i++) {
		int64_t start = now_ns();

		if (sb_file_write_all(in, there, sizeof there, &err) < 0 ||
			sb_file_read_full(out, back, sizeof back, &err) != (ssize_t)sizeof back)
			die(name, &err);
		if (i >= 0)
			took[i] = now_ns() - start;
	}
	qsort(took, ROUNDS, sizeof *took, by_size);
	(void)printf("%-14s median %7.1f us   p95 %7.1f us\n", name, (double)took[ROUNDS / 2] / 1000,
		(double)took[ROUNDS * 95 / 100] / 1000);
}

static void
through_launcher(enum sb_backend backend, const char *work, const char *const *options)
{
	static const char *const cat[] = { "cat", NULL };
	struct sb_prepare_request req = SB_PREPARE_REQUEST_INIT;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_registry *reg = sb_registry_builtin(NULL, NULL);
	struct sb_profile profile = { 0 };
	struct sb_prepared made = { 0 };
	struct sb_handle *h = NULL;
	struct sb_error err = { 0 };
	char id[SB_SANDBOX_ID_MAX + 1], name[40];
	struct sb_provider *p = sb_registry_get(reg, backend, &err);

	if (!p || sb_sandbox_id_new(id, &err) < 0 || sb_profile_default(backend, NULL, &profile, &err) < 0 ||
		sb_texts_copy(options, &profile.options, &err) < 0)
		die("provider", &err);
	profile.sync_mode = SB_SYNC_MODE_NONE;
	req.sandbox_id = id;
	req.local_root = work;
	req.profile = &profile;
	spec.argv = cat;
	if (sb_provider_prepare(p, &req, NULL, &made, &err) < 0 || sb_launcher_launch(made.launcher, &spec, NULL, &h, &err) < 0)
		die(sb_backend_name(backend), &err);
	(void)snprintf(name, sizeof name, "%s launcher", sb_backend_name(backend));
	measure(name, sb_handle_stdin(h), sb_handle_stdout(h));
	sb_handle_free(h);
	if (sb_provider_destroy(p, &made.state, true, NULL, &err) < 0)
		die("destroy", &err);
	sb_prepared_free(&made);
	sb_profile_free(&profile);
	sb_registry_free(reg);
}

static void
through_ssh(const char *sshd, const char *user, const char *port)
{
	sb_autofree char *known = sb_str_printf("UserKnownHostsFile=%s/known_hosts", sshd);
	sb_autofree char *key = sb_str_printf("%s/id_ed25519", sshd);
	sb_autofree char *to = sb_str_printf("%s@127.0.0.1", user);
	const char *argv[] = { "ssh", "-F", "/dev/null", "-o", known, "-i", key, "-p", port, to, "cat", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_child c = SB_CHILD_INIT;
	struct sb_error err = { 0 };

	o.io[0] = o.io[1] = SB_SPAWN_PIPE;
	o.search_path = true;
	if (sb_spawn(argv, &o, &c, &err) < 0)
		die("ssh", &err);
	measure("ssh program", c.in, c.out);
	sb_child_stop(&c, 100);
}

int
main(int argc, char **argv)
{
	char port[40], user[120], identity[300], known[300];
	const char *options[] = { "host=127.0.0.1", port, user, identity, known, "config=/dev/null", NULL };

	if (argc != 5) {
		(void)fprintf(stderr, "bench-launch WORK SSHD USER PORT\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(port, sizeof port, "port=%s", argv[4]);
	(void)snprintf(user, sizeof user, "user=%s", argv[3]);
	(void)snprintf(identity, sizeof identity, "identity=%s/id_ed25519", argv[2]);
	(void)snprintf(known, sizeof known, "known_hosts=%s/known_hosts", argv[2]);
	(void)printf("1 KiB there and back, %d times\n", ROUNDS);
	through_launcher(SB_BACKEND_LOCAL, argv[1], NULL);
	through_launcher(SB_BACKEND_SSH, argv[1], options);
	through_ssh(argv[2], argv[3], argv[4]);
	return 0;
}
