/* SPDX-License-Identifier: MIT */
/* sbctl docker: what is there of Docker, its containers of ours, and undo of mounted work. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/options.h>
#include <sb/docker.h>
#include <sbsync/session.h>

#define ASK_MS 15000

static const char *const engines[] = { "docker", "podman", NULL };

static void
say_works(const char *name, int code, const struct sb_error *err)
{
	char text[CTL_SHOWN];

	if (code == 0)
		(void)printf("%-15s works\n", name);
	else
		(void)printf("%-15s %s: %s\n", name,
			code == SB_E_NOTFOUND ? "not installed" : "does not work",
			ctl_safe(err->msg, text));
}

static int
check(struct ctl *ctl, struct sb_error *err)
{
	struct sb_call call = sb_call_within(&ctl->call, ASK_MS);
	bool any = false;

	for (int i = 0; i < 2; i++) {
		struct sb_error why = { 0 };
		struct sb_docker *d = sb_docker_new(i == 0, err);
		int r;

		if (!d)
			return err->code;
		r = i == 0 && !sb_docker_is_sbx(d) ?
			sb_fail(&why, SB_E_NOTFOUND, "sbx is not on PATH") :
			sb_docker_check(d, &call, &why);
		sb_docker_free(d);
		say_works(i == 0 ? "sbx" : "docker sandbox", r, &why);
		any = any || r == 0;
	}
	for (size_t i = 0; engines[i]; i++) {
		struct sb_error why = { 0 };
		int r = sb_engine_try(engines[i], &call, &why);

		say_works(engines[i], r, &why);
		any = any || r == 0;
	}
	return any ? 0 : sb_fail(err, SB_E_UNSUPPORTED, "backend docker does not work here");
}

/* What is known of a container's sandbox. */
static const char *
known_as(struct ctl *ctl, const char *id, bool *orphan)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_session ses = { 0 };
	int r = sb_keeper_load(ctl->keeper, id, &s, NULL);

	*orphan = false;
	if (r == 0 && strcmp(s.sandbox_id, id) == 0 && s.life != SB_LIFE_DESTROYED)
		return sb_life_name(s.life);
	if (r < 0 && r != SB_E_SANDBOX_NOT_FOUND)
		return "its record cannot be read";
	if (sb_session_load(NULL, id, NULL, &ses, NULL) != SB_E_NOTFOUND) {
		sb_session_free(&ses);
		return "no record, but a sync session: sbsync recover brings its work here";
	}
	*orphan = true;
	return "no record";
}

/* Goes over the containers of all engines that answer. */
static int
each(struct ctl *ctl, bool prune, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && engines[i]; i++) {
		struct sb_call call = sb_call_within(&ctl->call, ASK_MS);
		sb_auto(sb_strlist) struct sb_strlist list = { 0 };

		if (sb_engine_try(engines[i], &call, NULL) < 0)
			continue;
		r = sb_orphans_list(engines[i], NULL, &ctl->call, &list, err);
		for (size_t k = 0; r == 0 && k < list.n; k++) {
			char name[CTL_SHOWN], *tab = strchr(list.v[k], '\t');
			const char *what;
			bool orphan;

			if (!tab)
				continue;
			*tab = '\0';
			what = known_as(ctl, tab + 1, &orphan);
			if (prune && !orphan)
				continue;
			if (prune && !ctl->a.dry_run)
				r = sb_orphans_remove(engines[i], list.v[k], &ctl->call, err);
			if (r == 0 && !ctl->a.quiet)
				(void)printf("%-8s %s  %s\n", engines[i], ctl_safe(list.v[k], name),
					!prune                 ? what :
						ctl->a.dry_run ? "would be removed" :
								 "removed");
		}
	}
	return r;
}

static int
undo(struct ctl *ctl, const char *id, struct sb_error *err)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_state s = SB_STATE_INIT;
	int r = sb_mounted_undo(id, NULL, &ctl->call, &res, err);

	if (r < 0)
		return r;
	s.sandbox_id = (char *)(uintptr_t)id;
	s.life = SB_LIFE_DESTROYED;
	s.sync_mode = SB_SYNC_MODE_SESSION;
	ctl_report_sync(ctl, &s, &res, r, err, stdout);
	return res.conflicts.n ? CTL_CONFLICTS : CTL_DONE;
}

static int
docker_verb(struct ctl *ctl, struct sb_error *err)
{
	const char *what = ctl->a.v[0];

	/* Its own words come behind it, so ours come before. */
	if (strcmp(what, "agent") == 0 && (ctl->a.n < 2 || *ctl->a.v[1] == '-'))
		return sb_fail(err, SB_E_USAGE,
			"usage: sbctl docker [OPTION]... agent AGENT [ARG]...");
	if (strcmp(what, "agent") == 0)
		return ctl_docker_agent(ctl, err);
	if (strcmp(what, "undo") == 0)
		return ctl->a.n == 2 ? undo(ctl, ctl->a.v[1], err) :
				       sb_fail(err, SB_E_USAGE, "usage: sbctl docker undo ID");
	if (ctl->a.n != 1)
		return sb_fail(err, SB_E_USAGE, "sbctl docker %s takes no operand", what);
	if (strcmp(what, "check") == 0)
		return check(ctl, err);
	if (strcmp(what, "ls") == 0 || strcmp(what, "prune") == 0)
		return each(ctl, *what == 'p', err);
	return sb_fail(err, SB_E_USAGE, "sbctl docker %s: say agent, check, ls, prune or undo ID",
		what);
}

static const struct sb_opt options[] = {
	OPT_FLAG('n', "dry-run", dry_run, "tell what prune would remove"),
	OPT_LIST('d', "dir", also, "DIR", "agent: share this directory, too, to read"),
	OPT_TEXT(0, "image", image, "IMAGE", "agent: template of a new sandbox"),
	OPT_TEXT(0, "network", network, "HOST,...", "agent: hosts that it may reach besides"),
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_docker = {
	.cmd = {
		.name = "docker",
		.args = "check|ls|prune|undo ID|agent AGENT [ARG]...",
		.help = "backend docker: what works here, its containers, undo of mounted work",
		.details = "agent: runs an agent of Docker in a sandbox of sbx or docker sandbox "
			   "that shares this directory. check: tries sbx, docker sandbox, docker "
			   "and podman. ls: containers of sandboxes. prune: removes those that no "
			   "record knows and that hold no work. undo ID: takes back what a sandbox "
			   "with sync: mounted changed.",
		.opts = options,
		.min_args = 1,
		.max_args = -1,
	},
	.run = docker_verb,
};
