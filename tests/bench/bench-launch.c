/* SPDX-License-Identifier: MIT */
/*
 * bench-launch WORK SSHD USER PORT: how long 1 KiB takes to `cat` and back, one at a time, through
 * the local launcher, the SSH launcher and the ssh program itself with the keys of the server in
 * the folder SSHD. Prints the 10th, 50th and 95th percentile in microseconds: of a machine with
 * other work the first says most.
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

/* A way to a `cat` and back. */
struct way {
	char name[40];
	int in, out;
	int64_t took[ROUNDS];
	/* Of a launcher. */
	struct sb_registry *reg;
	struct sb_provider *p;
	struct sb_profile profile;
	struct sb_prepared made;
	struct sb_handle *h;
	/* Of the ssh program. */
	struct sb_child child;
};

static int64_t
round_trip(const struct way *w)
{
	static uint8_t there[BYTES], back[BYTES];
	struct sb_error err = { 0 };
	int64_t start = now_ns();

	if (sb_file_write_all(w->in, there, sizeof there, &err) < 0 ||
		sb_file_read_full(w->out, back, sizeof back, &err) != (ssize_t)sizeof back)
		die(w->name, &err);
	return now_ns() - start;
}

/* One after the other in each round, so that what else the machine does meets all of them. */
static void
measure(struct way *ways, size_t n)
{
	for (int i = -WARM; i < ROUNDS; i++)
		for (size_t k = 0; k < n; k++) {
			int64_t ns = round_trip(&ways[k]);

			if (i >= 0)
				ways[k].took[i] = ns;
		}
	for (size_t k = 0; k < n; k++) {
		const int64_t *t = ways[k].took;

		qsort(ways[k].took, ROUNDS, sizeof *t, by_size);
		(void)printf("%-14s p10 %7.1f us   median %7.1f us   p95 %7.1f us\n", ways[k].name,
			(double)t[ROUNDS / 10] / 1000, (double)t[ROUNDS / 2] / 1000,
			(double)t[ROUNDS * 95 / 100] / 1000);
	}
}

static void
open_launcher(struct way *w, enum sb_backend backend, const char *work, const char *const *options)
{
	static const char *const cat[] = { "cat", NULL };
	struct sb_prepare_request req = SB_PREPARE_REQUEST_INIT;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_error err = { 0 };
	char id[SB_SANDBOX_ID_MAX + 1];

	w->reg = sb_registry_builtin(NULL, NULL);
	w->p = sb_registry_get(w->reg, backend, &err);
	if (!w->p || sb_sandbox_id_new(id, &err) < 0 ||
		sb_profile_default(backend, NULL, &w->profile, &err) < 0 ||
		(sb_strlist_add_all(&w->profile.options, options),
			sb_strlist_check(&w->profile.options, &err)) < 0)
		die("provider", &err);
	w->profile.sync_mode = SB_SYNC_MODE_NONE;
	req.sandbox_id = id;
	req.local_root = work;
	req.profile = &w->profile;
	spec.argv = cat;
	if (sb_provider_prepare(w->p, &req, NULL, &w->made, &err) < 0 ||
		sb_launcher_launch(w->made.launcher, &spec, NULL, &w->h, &err) < 0)
		die(sb_backend_name(backend), &err);
	(void)snprintf(w->name, sizeof w->name, "%s launcher", sb_backend_name(backend));
	w->in = sb_handle_stdin(w->h);
	w->out = sb_handle_stdout(w->h);
}

static void
close_launcher(struct way *w)
{
	struct sb_error err = { 0 };

	sb_handle_free(w->h);
	if (sb_provider_destroy(w->p, &w->made.state, true, NULL, &err) < 0)
		die("destroy", &err);
	sb_prepared_free(&w->made);
	sb_profile_free(&w->profile);
	sb_registry_free(w->reg);
}

static void
open_ssh(struct way *w, const char *sshd, const char *user, const char *port)
{
	sb_autofree char *known = sb_str_printf("UserKnownHostsFile=%s/known_hosts", sshd);
	sb_autofree char *key = sb_str_printf("%s/id_ed25519", sshd);
	sb_autofree char *to = sb_str_printf("%s@127.0.0.1", user);
	const char *argv[] = { "ssh", "-F", "/dev/null", "-o", known, "-i", key, "-p", port, to,
		"cat", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };

	w->child = (struct sb_child)SB_CHILD_INIT;
	o.io[0] = o.io[1] = SB_SPAWN_PIPE;
	o.search_path = true;
	if (sb_spawn(argv, &o, &w->child, &err) < 0)
		die("ssh", &err);
	(void)snprintf(w->name, sizeof w->name, "ssh program");
	w->in = w->child.in;
	w->out = w->child.out;
}

int
main(int argc, char **argv)
{
	static struct way ways[3];
	char port[40], user[120], identity[300], known[300];
	const char *options[] = { "host=127.0.0.1", port, user, identity, known, "config=/dev/null",
		NULL };

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
	open_launcher(&ways[0], SB_BACKEND_LOCAL, argv[1], NULL);
	open_launcher(&ways[1], SB_BACKEND_SSH, argv[1], options);
	open_ssh(&ways[2], argv[2], argv[3], argv[4]);
	measure(ways, 3);
	close_launcher(&ways[0]);
	close_launcher(&ways[1]);
	sb_child_stop(&ways[2].child, 100);
	return 0;
}
