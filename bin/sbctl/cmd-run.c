/* SPDX-License-Identifier: MIT */
/* sbctl run: a command in a sandbox with a copy of this directory. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/options.h>

#define HINT_MS 3000

static int
start(struct ctl *ctl, struct sb_profile *p, struct sb_sandbox **out, struct sb_error *err)
{
	struct sb_start_opts o = SB_START_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist also = { 0 };
	sb_auto(sb_strlist) struct sb_strlist exclude = { 0 };
	int r;

	for (size_t i = 0; i < ctl->a.also.n; i++)
		sb_strlist_add(&also, ctl->a.also.v[i]);
	for (size_t i = 0; i < ctl->a.exclude.n; i++)
		sb_strlist_add(&exclude, ctl->a.exclude.v[i]);
	r = sb_strlist_check(&also, err);
	if (r == 0)
		r = sb_strlist_check(&exclude, err);
	o.profile = p;
	o.sandbox_id = ctl->a.id;
	o.local_root = ctl->a.dir ? ctl->a.dir : ".";
	o.local_dirs = sb_strlist_borrow(&also);
	o.excludes = sb_strlist_borrow(&exclude);
	o.keep = ctl->a.keep;
	if (r == 0)
		r = sb_sandbox_start(ctl->keeper, &o, &ctl->call, out, NULL, err);
	return r;
}

/* Refuses --snapshot before the work starts, not after an hour of it. */
static int
check_snapshots(struct ctl *ctl, const struct sb_profile *p, struct sb_error *err)
{
	struct sb_provider *provider = sb_registry_get(ctl->registry, p->backend, err);
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	int r = provider ? sb_provider_capabilities(provider, p, &c, err) : err->code;

	if (r == 0 && !c.snapshots)
		r = sb_fail(err, SB_E_UNSUPPORTED, "--snapshot: backend %s has no snapshots",
			sb_backend_name(p->backend));
	return r;
}

/* A command that failed and was kept from the network: that may be why. */
static void
hint(struct ctl *ctl, struct sb_sandbox *sb)
{
	const struct sb_state *s = sb_sandbox_state(sb);
	struct sb_provider *p = sb_registry_get(ctl->registry, s->backend, NULL);
	struct sb_call call = SB_CALL_INIT;
	char text[400], shown[800];

	call.deadline = sb_deadline_in(HINT_MS);
	if (p && !ctl->a.quiet && sb_provider_refused(p, s, &call, text, sizeof text, NULL) == 0 &&
		text[0])
		(void)fprintf(stderr, "sbctl: hint: %s\n",
			sb_escape(text, strlen(text), shown, sizeof shown));
}

/* Nobody means to copy all of this machine, or all of their files, by a command in passing. */
static int
check_place(const struct ctl *ctl, const struct sb_profile *p, struct sb_error *err)
{
	sb_autofree char *here = ctl->a.dir ? NULL : realpath(".", NULL);
	const char *home = getenv("HOME");
	sb_autofree char *real = home && here ? realpath(home, NULL) : NULL;

	if (!here || p->sync_mode == SB_SYNC_MODE_NONE ||
		(strcmp(here, "/") != 0 && (!real || strcmp(here, real) != 0)))
		return 0;
	return sb_fail(err, SB_E_USAGE,
		"%s would be copied whole: go to the directory that is meant, or say -C %s", here,
		here);
}

/* Turns at the end of tools need tools, and turns. */
static int
check_turns(const struct ctl *ctl, const struct sb_profile *p, struct sb_error *err)
{
	if (!ctl->a.turn_tools)
		return 0;
	if (p->sync_mode != SB_SYNC_MODE_TURN)
		return sb_fail(err, SB_E_USAGE,
			"--turn-tools is for --sync-mode turn-bidirectional, not %s",
			sb_sync_mode_name(p->sync_mode));
	return p->backend == SB_BACKEND_HOST ?
		0 :
		sb_fail(err, SB_E_USAGE,
			"--turn-tools: backend %s has no tools that are called from outside; host "
			"does",
			sb_backend_name(p->backend));
}

static int
run_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	struct sb_error why = { 0 };
	int sigfd = ctl_signals_open(err), r = ctl_choose_profile(ctl, &p, err);

	if (r < 0)
		return r;
	r = check_place(ctl, &p, err);
	if (r == 0)
		r = check_turns(ctl, &p, err);
	if (r == 0 && ctl->a.snapshot)
		r = check_snapshots(ctl, &p, err);
	if (r < 0)
		return r;
	r = start(ctl, &p, &sb, err);
	if (r < 0)
		return r;
	progress_hide();
	if (ctl->a.verbose)
		(void)fprintf(stderr, "sbctl: sandbox %s is ready\n",
			sb_sandbox_state(sb)->sandbox_id);
	r = ctl_foreground(ctl, sb, ctl->a.v, sigfd, &why);
	if (r > 0)
		hint(ctl, sb);
	return ctl_finish_work(ctl, sb, r, &why, err);
}

static const struct sb_opt options[] = {
	OPT_TEXT('P', "profile", profile, "NAME", "profile to use"),
	OPT_TEXT('b', "backend", backend, "NAME", "backend, without a profile"),
	OPT_TEXT('H', "host", host, "[USER@]HOST", "same as --set host= and --set user="),
	OPT_LIST('s', "set", set, "KEY=VALUE", "option of the backend; may be repeated"),
	OPTIONS_PROFILES,
	OPT_TEXT(0, "network", network, "on|off|HOST,...", "what the command may reach"),
	OPT_TEXT(0, "id", id, "ID", "name of the sandbox; an existing one is used again"),
	OPT_FLAG('k', "keep", keep, "keep the sandbox afterwards"),
	OPTIONS_SNAPSHOT,
	OPT_LIST('x', "exclude", exclude, "PATTERN", "do not sync these (gitignore syntax)"),
	OPT_LIST('d', "dir", also, "DIR", "sync this directory too; may be repeated"),
	OPTIONS_ENV,
	OPT_TEXT(0, "sync-mode", sync_mode, "MODE",
		"none, session-bidirectional or turn-bidirectional"),
	OPT_TIME(0, "turn-idle", turn_idle, "TIME", 0, 0,
		"turn-bidirectional: also sync when the command has been silent for TIME"),
	OPT_FLAG(0, "turn-tools", turn_tools,
		"turn-bidirectional: also sync when a tool of the session has ended"),
	OPT_TEXT(0, "persistence", persistence, "WORD", "transient, reuse or archive"),
	OPT_TEXT(0, "permissions", permissions, "MODE", "approve-reads, deny-all or approve-all"),
	OPTIONS_MAX_DELETE,
	OPT_FLAG(0, "trust-git-config", trust_git_config,
		"take changed git hooks and configuration"),
	OPTIONS_NO_TTY,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_run = {
	.cmd = {
		.name = "run",
		.args = "-- CMD [ARG]...",
		.help = "run a command in a sandbox with a copy of this directory",
		.details = "Syncs the directory in, runs CMD with this terminal, and on its end, a "
			   "crash, Ctrl-C or hang-up syncs back what changed. The exit status is "
			   "CMD's; 1 when the work could not be brought back: the sandbox is kept "
			   "then.",
		.opts = options,
		.min_args = 1,
		.max_args = -1,
	},
	.run = run_verb,
};
