/* SPDX-License-Identifier: MIT */
/*
 * bench-tools DIR [FILES]: how fast the tools of a host are, beside the programs they stand for, in
 * one run. Prints one line a figure: name, our median, theirs, the ratio. DIR is made, filled and
 * removed.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/spawn.h>
#include <base/str.h>
#include <sb/host-exec.h>

#define CLIENTS 100
#define CALLS 200
#define ROUNDS 9

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

static double
call(struct sb_host *h, const char *tool, const char *params)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;
	struct sb_error err = { 0 };
	double start = now();

	q.session = "bench";
	q.tool = tool;
	q.params = params;
	if (sb_host_tool_execute(h, &q, NULL, &r, &err) < 0 || r.is_error) {
		(void)fprintf(stderr, "bench-tools: %s: %s\n", tool, err.code ? err.msg : r.text);
		exit(1);
	}
	start = now() - start;
	sb_host_tool_result_clear(&r);
	return start;
}

static double
command(const char *const *argv)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf out;
	double start = now();

	sb_buf_init(&out, 1 << 20);
	o.search_path = true;
	if (sb_child_run(argv, &o, NULL, 0, &out, &out, NULL, sb_deadline_in(60000), &err) < 0)
		(void)fprintf(stderr, "bench-tools: %s: %s\n", argv[0], err.msg);
	return now() - start;
}

static void
line(const char *name, double ours, const char *what, double theirs)
{
	(void)printf("%-28s %9.3f ms   %-22s %9.3f ms   ratio %.2f\n", name, ours, what, theirs,
		ours / theirs);
}

struct client {
	struct sb_host *h;
	double v[CALLS];
};

static void *
client(void *arg)
{
	struct client *c = arg;

	for (int i = 0; i < CALLS; i++)
		c->v[i] = call(c->h, "read_file", "{\"path\":\"d0/f0\"}");
	return NULL;
}

static void
bench_read(struct sb_host *h)
{
	struct client *c = calloc(CLIENTS, sizeof *c);
	double *all = calloc((size_t)CLIENTS * CALLS, sizeof *all);
	pthread_t th[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		c[i].h = h;
		(void)pthread_create(&th[i], NULL, client, &c[i]);
	}
	for (int i = 0; i < CLIENTS; i++) {
		(void)pthread_join(th[i], NULL);
		memcpy(all + (size_t)i * CALLS, c[i].v, sizeof c[i].v);
	}
	line("read_file, 100 clients, p50", median(all, (size_t)CLIENTS * CALLS), "target", 0.5);
	free(all);
	free(c);
}

static void
bench_grep(struct sb_host *h, const char *workspace)
{
	const char *const argv[] = { "grep", "-rF", "needle-in-hay", workspace, NULL };
	double ours[ROUNDS], theirs[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		theirs[i] = command(argv);
		ours[i] = call(h, "grep",
			"{\"pattern\":\"needle-in-hay\",\"literal\":true,\"max_results\":1000}");
	}
	line("grep, literal", median(ours, ROUNDS), "grep -rF", median(theirs, ROUNDS));
}

/* A container of our own beside the host's, from the same bundle. */
static void
bench_gvisor(struct sb_host *h, const char *state)
{
	sb_autofree char *root = sb_str_printf("--root=%s/bench-runsc", state);
	sb_autofree char *bundle = sb_str_printf("--bundle=%s/box-gvisor/bench", state);
	const char *const run[] = { "runsc", root, "--platform=ptrace", "--network=none",
		"--ignore-cgroups", "run", "--detach", bundle, "bench-box", NULL };
	const char *const exec[] = { "runsc", root, "--platform=ptrace", "--network=none",
		"--ignore-cgroups", "exec", "bench-box", "/bin/bash", "-c", "true", NULL };
	const char *const once[] = { "runsc", root, "--platform=ptrace", "--network=none",
		"--ignore-cgroups", "do", "/bin/true", NULL };
	const char *const delete[] = { "runsc", root, "delete", "--force", "bench-box", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	double ours[ROUNDS], bare[ROUNDS], whole[ROUNDS];

	(void)call(h, "bash", "{\"cmd\":\"true\"}");
	/* Its output must not be a pipe that the container keeps open. */
	o.search_path = true;
	(void)sb_child_run(run, &o, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000), NULL);
	for (int i = 0; i < ROUNDS; i++) {
		bare[i] = command(exec);
		ours[i] = call(h, "bash", "{\"cmd\":\"true\"}");
		whole[i] = command(once);
	}
	line("bash in gvisor", median(ours, ROUNDS), "bare runsc exec", median(bare, ROUNDS));
	line("bash in gvisor", median(ours, ROUNDS), "fresh runsc", median(whole, ROUNDS));
	(void)command(delete);
}

static void
fill(const char *workspace, int files)
{
	char path[4096], text[2100];

	memset(text, 'x', sizeof text);
	for (size_t i = 79; i < sizeof text; i += 80)
		text[i] = '\n';
	for (int i = 0; i < files; i++) {
		FILE *f;

		(void)snprintf(path, sizeof path, "%s/d%d", workspace, i / 100);
		if (i % 100 == 0)
			(void)mkdir(path, 0755);
		(void)snprintf(path, sizeof path, "%s/d%d/f%d", workspace, i / 100, i % 100);
		f = fopen(path, "w");
		if (!f)
			exit(1);
		(void)fwrite(text, 1, sizeof text, f);
		if (i % 1000 == 7)
			(void)fputs("needle-in-hay\n", f);
		(void)fclose(f);
	}
}

int
main(int argc, char **argv)
{
	struct sb_host_opts o = SB_HOST_OPTS_INIT;
	struct sb_host_create_opts c = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	struct sb_error err = { 0 };
	sb_autofree char *state = argc > 1 ? sb_str_printf("%s/state", argv[1]) : NULL;
	sb_autofree char *root = argc > 1 ? sb_str_printf("%s/sessions", argv[1]) : NULL;
	struct sb_host *h;

	if (!state || !root || argv[1][0] != '/') {
		(void)fprintf(stderr, "usage: bench-tools /ABSOLUTE/DIR [FILES]\n");
		return 2;
	}
	o.storage = SB_HOST_LOCAL_DISK;
	o.state_dir = state;
	o.sessions_root_dir = root;
	o.max_tools = 1000;
	o.runtime = SB_HOST_RUNTIME_GVISOR;
	h = sb_host_open(&o, &err);
	if (!h) {
		(void)printf("gvisor is left out: %s\n", err.msg);
		o.runtime = SB_HOST_RUNTIME_NONE;
		h = sb_host_open(&o, &err);
	}
	c.id = "bench";
	if (!h || sb_host_session_create(h, &c, NULL, &s, &err) < 0) {
		(void)fprintf(stderr, "bench-tools: %s\n", err.msg);
		return 1;
	}
	fill(s.mountpoint, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 50000);
	bench_read(h);
	bench_grep(h, s.mountpoint);
	if (o.runtime == SB_HOST_RUNTIME_GVISOR)
		bench_gvisor(h, state);
	(void)sb_host_session_destroy(h, "bench", true, NULL, NULL);
	sb_host_session_clear(&s);
	sb_host_close(h);
	(void)sb_path_remove_tree(AT_FDCWD, argv[1], NULL);
	return 0;
}
