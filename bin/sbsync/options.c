/* SPDX-License-Identifier: MIT */
/* Options of several verbs; their values, defaults, and what the library is told of them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <bin/common/progress.h>
#include <bin/sbsync/options.h>

const char *const conflict_words[] = { "both", "local", "runtime", "merge", NULL };
const char *const delta_words[] = { "auto", "off", "always", NULL };
const char *const durability_words[] = { "default", "none", "barrier", "full", NULL };

const struct sb_opt list_options[] = {
	OPTIONS_JSON,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_opt session_options[] = {
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

void
sync_args_init(struct sync_args *a)
{
	memset(a, 0, sizeof *a);
	a->max_delete = -1;
	a->conflict = -1;
	a->take = -1;
	a->owner = -1;
}

void
sync_args_free(struct sync_args *a)
{
	sb_opt_list_free(&a->exclude);
	sb_opt_list_free(&a->exclude_from);
	sb_opt_list_free(&a->also);
	sb_opt_list_free(&a->conflict_rules);
	sb_opt_list_free(&a->labels);
}

static int
parse_level(const char *s, int *out)
{
	int64_t n;

	if (!s || strcmp(s, "auto") == 0)
		*out = SB_SYNC_LEVEL_AUTO;
	else if (strcmp(s, "off") == 0)
		*out = 0;
	else if (sb_str_to_i64(s, 1, 19, &n))
		*out = (int)n;
	else {
		complain("--compress %s: use auto, off, or a number from 1 to 19", s);
		return EXIT_USAGE;
	}
	return 0;
}

int
sync_args_apply(const struct sync_args *a, struct sb_sync_opts *o)
{
	int r = parse_level(a->compress, &o->level);

	if (r)
		return r;
	o->dry_run = a->dry_run;
	o->checksum = a->checksum;
	o->gitignore = a->gitignore;
	o->no_delta = a->delta == 1;
	o->always_delta = a->delta == 2;
	o->cross_mounts = a->cross;
	o->xattrs = a->xattrs;
	o->acls = a->acls;
	o->trust_git_config = a->trust_git;
	o->trust_project_files = a->trust_project;
	o->no_escaping_links = a->no_escaping;
	o->exclude = a->exclude.v;
	o->exclude_from = a->exclude_from.v;
	o->max_delete = a->max_delete;
	o->max_entries = (uint64_t)a->max_entries;
	o->durability = (enum sb_sync_durability)a->durability;
	o->jobs = (unsigned)a->jobs;
	o->timeout_ms = a->timeout;
	o->bwlimit = a->bwlimit;
	o->rsh = a->rsh;
	o->port = (int)a->port;
	o->identity = a->identity;
	o->ssh_config = a->ssh_config;
	o->known_hosts = a->known_hosts;
	o->accept_new_host_key = a->accept_new;
	o->ask_password = a->ask_password;
	o->cancel = signals_cancel();
	return 0;
}

static void
to_stderr(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)arg;
	progress_hide();
	(void)fprintf(stderr, "sbsync: %s%s: %s\n", level == SB_LOG_WARN ? "warning: " : "",
		component, text);
}

void
sync_args_progress(const struct sync_args *a, struct sb_sync_opts *o)
{
	progress_begin((enum progress_how)a->progress, a->quiet || a->json);
	if (progress_is_on())
		o->progress = progress_note;
}

struct sb_log
stderr_log(const struct sync_args *a)
{
	struct sb_log l = { .fn = to_stderr,
		.level = a->quiet      ? SB_LOG_ERROR :
			a->verbose > 1 ? SB_LOG_DEBUG :
			a->verbose     ? SB_LOG_INFO :
					 SB_LOG_WARN };

	return l;
}
