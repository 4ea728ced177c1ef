/* SPDX-License-Identifier: MIT */
/* The command that makes a container: as little as an agent's work needs (docker/engine.h). */
#include "config.h"

#include <docker/engine.h>

#include <string.h>
#include <sys/resource.h>

/*
 * The first process: waits for ever, collects what others leave behind, and ends at once when it is
 * told to. It needs nothing of the image but a shell and sleep.
 */
static const char waits[] = "trap 'exit 0' TERM INT HUP; while :; do sleep 3600 & wait $!; done";

static void
add_pairs(struct sb_strlist *args, const char *option, const char *const *v)
{
	for (; v && *v; v++) {
		sb_strlist_add(args, option);
		sb_strlist_add(args, *v);
	}
}

static void
add_option(struct sb_strlist *args, const char *option, const char *value)
{
	if (value && *value) {
		sb_strlist_add(args, option);
		sb_strlist_add(args, value);
	}
}

/* "KEY=value" as a field of comma-separated values, which both engines read --mount as. */
static void
add_field(struct sb_buf *b, const char *key, const char *value)
{
	sb_buf_addf(b, ",\"%s=", key);
	for (; *value; value++) {
		if (*value == '"')
			sb_buf_add_char(b, '"');
		sb_buf_add_char(b, *value);
	}
	sb_buf_add_char(b, '"');
}

/* A path with a line end could be taken for two values by one of them. */
static int
add_mount(struct sb_strlist *args, const char *path, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 65536);
	if (strpbrk(path, "\r\n"))
		return sb_fail(err, SB_E_INVAL,
			"a directory with a line end in its name cannot be mounted: rename it, or "
			"use sync: synced");
	sb_buf_add_str(&b, "type=bind");
	add_field(&b, "source", path);
	add_field(&b, "target", path);
	if (b.failed)
		args->failed = SB_E_NOMEM;
	sb_strlist_add(args, "--mount");
	sb_strlist_add(args, (const char *)b.data);
	return 0;
}

static int
add_mounts(struct sb_strlist *args, const struct sb_engine_wish *w, struct sb_error *err)
{
	int r = 0;

	for (const char *const *m = w->mounts; r == 0 && m && *m; m++)
		r = add_mount(args, *m, err);
	for (const char *const *f = w->files; f && *f; f++) {
		sb_strlist_add(args, "--volume");
		sb_strlist_addf(args, "%s:ro", *f);
	}
	return r;
}

/*
 * Podman asks for more than a restricted machine lets it give: ours are enough. It lowers its own
 * number of processes to 32768 first.
 */
static void
add_limits(struct sb_strlist *args)
{
	static const struct {
		const char *name;
		int which;
		rlim_t most;
	} limits[] = { { "nofile", RLIMIT_NOFILE, 1048576 }, { "nproc", RLIMIT_NPROC, 32768 } };

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct rlimit l;
		unsigned long long most = limits[i].most;

		if (getrlimit((__rlimit_resource_t)limits[i].which, &l) < 0)
			continue;
		if (l.rlim_max != RLIM_INFINITY && l.rlim_max < limits[i].most)
			most = l.rlim_max;
		sb_strlist_add(args, "--ulimit");
		sb_strlist_addf(args, "%s=%llu:%llu", limits[i].name, most, most);
	}
}

static void
add_hardening(struct sb_strlist *args, const struct sb_engine_wish *w)
{
	sb_strlist_add_all(args,
		(const char *[]){ "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
			NULL });
	add_pairs(args, "--cap-add", w->caps);
	if (w->read_only)
		sb_strlist_add(args, "--read-only");
	add_option(args, "--memory", w->memory);
	add_option(args, "--cpus", w->cpus);
	add_option(args, "--pids-limit", w->pids);
}

int
sb_engine_make(const struct sb_engine *e, const struct sb_engine_wish *w,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	sb_auto(sb_buf) struct sb_buf said;
	struct sb_cli_io io = { .errors = &said, .hold = w->hold };
	int r;

	sb_buf_init(&said, 1u << 20);
	sb_strlist_add_all(&args,
		(const char *[]){ "run", "--detach", "--name", w->name, "--hostname", "sandbox",
			NULL });
	add_pairs(&args, "--label", w->labels);
	add_hardening(&args, w);
	if (e->podman)
		add_limits(&args);
	add_option(&args, "--network", w->network);
	add_option(&args, "--user", w->user);
	add_option(&args, "--runtime", w->runtime);
	if (w->keep_id)
		sb_strlist_add_all(&args, (const char *[]){ "--userns", "keep-id", NULL });
	add_pairs(&args, "--env", w->env);
	add_pairs(&args, "--volume", w->volumes);
	add_pairs(&args, "--tmpfs", w->tmpfs);
	r = add_mounts(&args, w, err);
	if (r < 0)
		return r;
	sb_strlist_add_all(&args,
		(const char *[]){ "--entrypoint", "/bin/sh", w->image, "-c", waits, NULL });
	r = sb_strlist_check(&args, err);
	if (r < 0)
		return r;
	r = sb_cli_run(&e->cli, sb_strlist_borrow(&args), &io, call, err);
	if (r <= 0)
		return r;
	return sb_cli_failed(&e->cli, (const char *[]){ "run", w->image, NULL }, r, &said, err);
}
