/* SPDX-License-Identifier: MIT */
/*
 * bench-docker WORK IMAGE ROUNDS: how long `true` takes in a container of Podman, from launch to
 * its end, through the docker provider and by a bare `podman exec`, in turn. Prints the median and
 * the 10th percentile of both in milliseconds, and their ratio.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/child.h>
#include <base/spawn.h>
#include <provider/provider.h>

#define ROUNDS_MAX 1000

static void
die(const char *what, const struct sb_error *err)
{
	(void)fprintf(stderr, "bench-docker: %s: %s\n", what, err->msg);
	exit(1);
}

static int
by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t
through_provider(struct sb_prepared *made)
{
	const char *const argv[] = { "true", NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_error err = { 0 };
	struct sb_handle *h = NULL;
	struct sb_ended how;
	int64_t start = sb_now_ms();

	spec.argv = argv;
	if (sb_launcher_launch(made->launcher, &spec, NULL, &h, &err) < 0 ||
		sb_handle_wait(h, NULL, &how, &err) < 0)
		die("launch", &err);
	if (how.code != 0)
		(void)fprintf(stderr, "bench-docker: exit status %d\n", how.code);
	start = sb_now_ms() - start;
	sb_handle_free(h);
	return start;
}

static int64_t
bare(const char *name)
{
	const char *const argv[] = { "podman", "exec", "-i", name, "true", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	int64_t start = sb_now_ms();

	o.search_path = true;
	if (sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, SB_NEVER, &err) != 0)
		die("podman exec", &err);
	return sb_now_ms() - start;
}

static void
print(const char *name, const int64_t *v, int n)
{
	(void)printf("%-22s median %lld ms, 10th percentile %lld ms\n", name, (long long)v[n / 2],
		(long long)v[n / 10]);
}

int
main(int argc, char **argv)
{
	static int64_t ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
	struct sb_prepare_request req = SB_PREPARE_REQUEST_INIT;
	struct sb_profile profile = { 0 };
	struct sb_prepared made = { 0 };
	struct sb_error err = { 0 };
	struct sb_registry *reg = sb_registry_builtin(NULL, &err);
	struct sb_provider *p = reg ? sb_registry_get(reg, SB_BACKEND_DOCKER, &err) : NULL;
	int rounds = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "bench-docker WORK IMAGE ROUNDS\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (!p || sb_profile_default(SB_BACKEND_DOCKER, NULL, &profile, &err) < 0)
		die("provider", &err);
	sb_strlist_add(&profile.options, "kind=container");
	sb_strlist_add(&profile.options, "engine=podman");
	sb_strlist_addf(&profile.options, "image=%s", argv[2]);
	req.sandbox_id = "bench";
	req.local_root = argv[1];
	req.profile = &profile;
	if (sb_provider_prepare(p, &req, NULL, &made, &err) < 0)
		die("prepare", &err);
	/* The agent goes over once. */
	(void)through_provider(&made);
	(void)bare("sbsync-bench");
	for (int i = 0; i < rounds; i++) {
		theirs[i] = bare("sbsync-bench");
		ours[i] = through_provider(&made);
	}
	qsort(ours, (size_t)rounds, sizeof *ours, by_size);
	qsort(theirs, (size_t)rounds, sizeof *theirs, by_size);
	print("bare podman exec", theirs, rounds);
	print("through the provider", ours, rounds);
	(void)printf("ratio of the medians    %.2f (at most 1.15 is wanted), of the 10th %.2f\n",
		(double)ours[rounds / 2] / (double)theirs[rounds / 2],
		(double)ours[rounds / 10] / (double)theirs[rounds / 10]);
	if (sb_provider_destroy(p, &made.state, true, NULL, &err) < 0)
		die("destroy", &err);
	sb_prepared_free(&made);
	sb_profile_free(&profile);
	sb_registry_free(reg);
	return 0;
}
