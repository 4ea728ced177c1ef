/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/box.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <bin/sbctl/sbctl.h>
#include <provider/provider.h>
#include <session/session-priv.h>

SB_CLEANUP_PTR(sb_profiles, sb_profiles_free)

#define PROFILE_OPTS \
	{ 'P', "profile", SB_OPT_STRING, BOX_AT(profile), "NAME", "profile to use", NULL, 0, 0 }, \
		{ 'b', "backend", SB_OPT_STRING, BOX_AT(backend), "NAME", \
			"backend, without a profile", NULL, 0, 0 }, \
		{ 'H', "host", SB_OPT_STRING, BOX_AT(host), "[USER@]HOST", \
			"same as --set host= and --set user=", NULL, 0, 0 }, \
		{ 's', "set", SB_OPT_LIST, BOX_AT(set), "KEY=VALUE", \
			"option of the backend; may be repeated", NULL, 0, 0 }, \
		{ 0, "config", SB_OPT_STRING, BOX_AT(config), "FILE", \
			"profiles, instead of the user's file", NULL, 0, 0 }, \
	{ \
		'C', "directory", SB_OPT_STRING, BOX_AT(dir), "DIR", \
			"work in DIR instead of here", NULL, 0, 0 \
	}

static int
set_option(struct sb_profile *p, const char *pair, struct sb_error *err)
{
	const char *eq = strchr(pair, '=');
	sb_autofree char *key = eq ? strndup(pair, (size_t)(eq - pair)) : NULL;

	if (!key || !key[0])
		return sb_fail(err, SB_E_USAGE, "--set %s: write KEY=VALUE", pair);
	return sb_texts_set(&p->options, key, eq + 1, err);
}

static int
set_host(struct sb_profile *p, const char *host, struct sb_error *err)
{
	const char *at = strrchr(host, '@');
	sb_autofree char *user = at ? strndup(host, (size_t)(at - host)) : NULL;
	int r = user ? sb_texts_set(&p->options, "user", user, err) : 0;

	return r < 0 ? r : sb_texts_set(&p->options, "host", at ? at + 1 : host, err);
}

/* Words on the command line count more than the profile's. */
static int
apply_options(const struct box_args *a, struct sb_profile *p, struct sb_error *err)
{
	int r = 0;

	if (a->sync_mode)
		r = sb_sync_mode_parse(a->sync_mode, &p->sync_mode, err);
	if (r == 0 && a->persistence) {
		r = sb_persist_parse(a->persistence, &p->persist, err);
		p->destroy_on_stop = p->persist != SB_PERSIST_REUSE;
	}
	if (r == 0 && a->permissions)
		r = sb_perm_mode_parse(a->permissions, &p->permissions, err);
	if (r < 0)
		return sb_wrap(err, SB_E_USAGE, "options");
	if (a->host)
		r = set_host(p, a->host, err);
	for (size_t i = 0; r == 0 && i < a->set.n; i++)
		r = set_option(p, a->set.v[i], err);
	return r;
}

/* Nothing says where: the sandbox host when there is one. */
static int
default_profile(struct box *b, struct sb_profile *out, struct sb_error *err)
{
	if (sb_registry_get(b->registry, SB_BACKEND_HOST, NULL))
		return sb_profile_default(SB_BACKEND_HOST, NULL, out, err);
	return sb_fail(err, SB_E_USAGE,
		"say where to run: --profile NAME, --backend ssh --host HOST, or --backend local "
		"(no isolation)");
}

/*
 * A sandbox host on a machine where nothing isolates still runs the command: nobody should take
 * that for a sandbox.
 */
static void
warn_of_no_isolation(struct box *b, const struct sb_profile *p)
{
	struct sb_provider *host = p->backend == SB_BACKEND_HOST ?
		sb_registry_get(b->registry, SB_BACKEND_HOST, NULL) :
		NULL;
	struct sb_capabilities c = SB_CAPABILITIES_INIT;

	if (host && sb_provider_capabilities(host, p, &c, NULL) == 0 &&
		strcmp(c.isolation, "none") == 0)
		(void)fprintf(stderr,
			"sbctl: warning: no isolation: the command runs with your rights, on a "
			"copy; install bubblewrap for a sandbox\n");
}

int
box_profile(struct box *b, struct sb_profile *out, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	enum sb_backend backend;
	int r;

	if (b->a.backend && b->a.profile)
		return sb_fail(err, SB_E_USAGE,
			"--profile and --backend exclude each other: a profile names its backend");
	o.user_file = b->a.config;
	o.project_dir = b->a.dir ? b->a.dir : ".";
	o.registry = b->registry;
	if (b->a.backend) {
		if (sb_backend_parse(b->a.backend, &backend, err) < 0)
			return sb_wrap(err, SB_E_USAGE, "--backend");
		r = sb_profile_default(backend, NULL, out, err);
	} else {
		ps = sb_profiles_load(&o, err);
		if (!ps)
			return err->code;
		r = b->a.profile || sb_profiles_chosen(ps) ?
			sb_profiles_get(ps, b->a.profile, out, err) :
			default_profile(b, out, err);
	}
	if (r == 0) {
		r = apply_options(&b->a, out, err);
		if (r < 0)
			sb_profile_free(out);
	}
	if (r == 0)
		warn_of_no_isolation(b, out);
	/* There is nothing to take away of it, and no reason to list it for ever. */
	if (r == 0 && out->backend == SB_BACKEND_LOCAL && out->persist == SB_PERSIST_TRANSIENT)
		out->destroy_on_stop = true;
	return r;
}

/*
 * After the command: bring back what there is, whatever happened. `status` is the command's, or an
 * error.
 */
static int
finish_run(struct box *b, struct sb_sandbox *sb, int status, const struct sb_error *why,
	struct sb_error *err)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_stop_opts o = SB_STOP_OPTS_INIT;
	struct sb_cancel *again = sb_cancel_new(err);
	struct sb_call call = b->call;
	int r;

	if (!again)
		return err->code;
	o.crashed = status < 0;
	o.snapshot = b->a.snapshot ? "end" : NULL;
	o.trust_git_config = b->a.trust_git_config;
	o.max_delete = b->a.max_delete;
	call.cancel = again;
	call.deadline = SB_NEVER;
	/* What is signalled from now on interrupts the sync back; the sandbox is kept then. */
	box_signals_cancel(again);
	r = sb_sandbox_stop(sb, &o, &call, &res, err);
	box_signals_cancel(NULL);
	sb_cancel_free(again);
	if (status < 0)
		(void)fprintf(stderr, "sbctl: %s\n", why->msg);
	box_report_sync(b, sb_sandbox_state(sb), &res, r, err, stderr);
	return r < 0 ? r : status < 0 ? box_status(status) : status;
}

static int
start(struct box *b, struct sb_profile *p, struct sb_sandbox **out, struct sb_error *err)
{
	struct sb_start_opts o = SB_START_OPTS_INIT;
	char **also = NULL, **exclude = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->a.also.n; i++)
		r = sb_texts_add(&also, b->a.also.v[i], err);
	for (size_t i = 0; r == 0 && i < b->a.exclude.n; i++)
		r = sb_texts_add(&exclude, b->a.exclude.v[i], err);
	o.profile = p;
	o.sandbox_id = b->a.id;
	o.local_root = b->a.dir ? b->a.dir : ".";
	o.local_dirs = (const char *const *)also;
	o.excludes = (const char *const *)exclude;
	o.keep = b->a.keep;
	if (r == 0)
		r = sb_sandbox_start(b->keeper, &o, &b->call, out, NULL, err);
	sb_texts_free(also);
	sb_texts_free(exclude);
	return r;
}

/* Better before an hour of work than after. */
static int
check_snapshots(struct box *b, const struct sb_profile *p, struct sb_error *err)
{
	struct sb_provider *provider = sb_registry_get(b->registry, p->backend, err);
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	int r = provider ? sb_provider_capabilities(provider, p, &c, err) : err->code;

	if (r == 0 && !c.snapshots)
		r = sb_fail(err, SB_E_UNSUPPORTED, "--snapshot: backend %s has no snapshots",
			sb_backend_name(p->backend));
	return r;
}

static int
run(struct box *b, struct sb_error *err)
{
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error why = { 0 };
	int sigfd = box_signals_open(err), r = box_profile(b, &p, err);

	if (r < 0)
		return r;
	r = b->a.snapshot ? check_snapshots(b, &p, err) : 0;
	if (r < 0)
		return r;
	r = start(b, &p, &sb, err);
	if (r < 0)
		return r;
	if (b->a.verbose)
		(void)fprintf(stderr, "sbctl: sandbox %s is ready\n",
			sb_sandbox_state(sb)->sandbox_id);
	r = box_attach(b, sb, b->a.v, sigfd, &why);
	return finish_run(b, sb, r, &why, err);
}

static const struct sb_opt run_opts[] = {
	PROFILE_OPTS,
	{ 0, "id", SB_OPT_STRING, BOX_AT(id), "ID",
		"name of the sandbox; one on record is used again", NULL, 0, 0 },
	{ 'k', "keep", SB_OPT_FLAG, BOX_AT(keep), NULL, "keep the sandbox afterwards", NULL, 0, 0 },
	{ 0, "snapshot", SB_OPT_FLAG, BOX_AT(snapshot), NULL, "snapshot it before anything goes",
		NULL, 0, 0 },
	{ 'x', "exclude", SB_OPT_LIST, BOX_AT(exclude), "PATTERN",
		"do not sync these (gitignore syntax)", NULL, 0, 0 },
	{ 'd', "dir", SB_OPT_LIST, BOX_AT(also), "DIR", "sync this directory too; may be repeated",
		NULL, 0, 0 },
	{ 'e', "env", SB_OPT_LIST, BOX_AT(env), "KEY=VALUE",
		"variable of the command; may be repeated", NULL, 0, 0 },
	{ 0, "sync-mode", SB_OPT_STRING, BOX_AT(sync_mode), "MODE",
		"none, session-bidirectional or turn-bidirectional", NULL, 0, 0 },
	{ 0, "persistence", SB_OPT_STRING, BOX_AT(persistence), "WORD",
		"transient, reuse or archive", NULL, 0, 0 },
	{ 0, "permissions", SB_OPT_STRING, BOX_AT(permissions), "MODE",
		"approve-reads, deny-all or approve-all", NULL, 0, 0 },
	{ 0, "max-delete", SB_OPT_INT, BOX_AT(max_delete), "N",
		"let a sync back delete up to N entries", NULL, 0, INT64_MAX },
	{ 0, "trust-git-config", SB_OPT_FLAG, BOX_AT(trust_git_config), NULL,
		"take changed git hooks and configuration", NULL, 0, 0 },
	{ 'T', "no-tty", SB_OPT_FLAG, BOX_AT(no_tty), NULL,
		"no terminal over there, even if there is one here", NULL, 0, 0 },
	BOX_COMMON,
};

static int
run_main(void *values, int argc, char **argv)
{
	(void)values;
	return box_main(&sbctl_run, argc, argv, run);
}

const struct sb_cmd sbctl_run = {
	.name = "run",
	.args = "-- CMD [ARG]...",
	.help = "run a command in a sandbox with a copy of this directory",
	.details =
		"Syncs the directory in, runs CMD with this terminal, and on its end, a crash, "
		"Ctrl-C or hang-up syncs back what changed. The exit status is CMD's; 1 when the "
		"work could not be brought back: the sandbox is kept then.",
	.opts = run_opts,
	.min_args = 1,
	.max_args = -1,
	.run = run_main,
};

/*
 * Environment, secrets and hooks are not on record: they come from the profile again, where it
 * still is the same.
 */
static int
find_profile(struct box *b, struct sb_sandbox *sb, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	const struct sb_state *s = &sb->state;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	struct sb_profile p = { 0 };
	struct sb_error why = { 0 };

	o.project_dir = s->local_root;
	o.registry = b->registry;
	ps = sb_profiles_load(&o, &why);
	if (!ps || !s->profile || sb_profiles_get(ps, s->profile, &p, &why) < 0)
		return 0;
	if (p.backend != s->backend) {
		sb_profile_free(&p);
		return 0;
	}
	/* What was said on the command line of the run, and what is fixed since the start. */
	sb_texts_free(p.options);
	sb_texts_free(p.include);
	sb_texts_free(p.exclude);
	sb_texts_free(p.dirs);
	p.options = p.include = p.exclude = p.dirs = NULL;
	p.sync_mode = s->sync_mode;
	p.persist = s->persist;
	p.destroy_on_stop = s->destroy_on_stop;
	p.permissions = s->permissions;
	sb_profile_free(&sb->profile);
	sb->profile = p;
	return sb_texts_copy((const char *const *)s->options, &sb->profile.options, err);
}

/*
 * Runs argv in a sandbox that is on record. One that nobody works with is woken up for it and
 * synced afterwards.
 */
static int
exec_in(struct box *b, const char *id, const char *const *argv, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *woken = NULL;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	struct sb_start_opts o = SB_START_OPTS_INIT;
	const struct sb_state *s;
	struct sb_error why = { 0 };
	int sigfd = box_signals_open(err), r = sb_sandbox_open(b->keeper, id, &sb, err);

	if (r < 0)
		return r;
	s = sb_sandbox_state(sb);
	if (s->life == SB_LIFE_DESTROYED)
		return sb_fail(err, SB_E_STATE, "sandbox %s is gone", s->sandbox_id);
	r = find_profile(b, sb, err);
	if (r < 0)
		return r;
	if (s->life == SB_LIFE_ACTIVE && sb_state_owned(s))
		return box_attach(b, sb, argv, sigfd, err);
	r = sb_profile_copy(&sb->profile, &p, err);
	if (r < 0)
		return r;
	o.profile = &p;
	o.sandbox_id = s->sandbox_id;
	o.session_id = s->session_id;
	o.local_root = s->local_root;
	o.local_dirs = (const char *const *)s->local_dirs;
	o.excludes = (const char *const *)s->excludes;
	o.keep = true;
	r = sb_sandbox_start(b->keeper, &o, &b->call, &woken, NULL, err);
	if (r < 0)
		return r;
	r = box_attach(b, woken, argv, sigfd, &why);
	return finish_run(b, woken, r, &why, err);
}

static int
exec_verb(struct box *b, struct sb_error *err)
{
	if (b->a.n < 2)
		return sb_fail(err, SB_E_USAGE, "usage: sbctl exec %s", sbctl_exec.args);
	return exec_in(b, b->a.v[0], b->a.v + 1, err);
}

static int
shell_verb(struct box *b, struct sb_error *err)
{
	static const char *const shell[] = { "sh", "-c", "exec \"${SHELL:-/bin/sh}\"", NULL };
	sb_autofree char *id = box_pick(b, b->a.n ? b->a.v[0] : NULL, err);

	return id ? exec_in(b, id, shell, err) : err->code;
}

static const struct sb_opt exec_opts[] = {
	{ 'e', "env", SB_OPT_LIST, BOX_AT(env), "KEY=VALUE",
		"variable of the command; may be repeated", NULL, 0, 0 },
	{ 'T', "no-tty", SB_OPT_FLAG, BOX_AT(no_tty), NULL,
		"no terminal over there, even if there is one here", NULL, 0, 0 },
	BOX_COMMON,
};

static int
exec_main(void *values, int argc, char **argv)
{
	(void)values;
	return box_main(&sbctl_exec, argc, argv, exec_verb);
}

const struct sb_cmd sbctl_exec = {
	.name = "exec",
	.args = "ID CMD [ARG]...",
	.help = "run a command in a sandbox that is there",
	.opts = exec_opts,
	.min_args = 2,
	.max_args = -1,
	.run = exec_main,
};

static int
shell_main(void *values, int argc, char **argv)
{
	(void)values;
	return box_main(&sbctl_shell, argc, argv, shell_verb);
}

const struct sb_cmd sbctl_shell = {
	.name = "shell",
	.args = "[ID]",
	.help = "a shell in a sandbox that is there",
	.opts = exec_opts,
	.min_args = 0,
	.max_args = 1,
	.run = shell_main,
};
