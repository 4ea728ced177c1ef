/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <bin/sbsync/sbsync.h>

static const char *const when_names[] = { "auto", "always", "never", NULL };
static const char *const delta_names[] = { "auto", "off", "always", NULL };
static const char *const conflict_names[] = { "both", "local", "runtime", "merge", NULL };
static const char *const take_names[] = { "local", "runtime", "merged", NULL };
static const char *const durability_names[] = { "default", "none", "barrier", "full", NULL };

#define AT(field) offsetof(struct sync_args, field)

/* The way to another machine. */
#define SSH \
	{ 'p', "port", SB_OPT_INT, AT(port), "PORT", "SSH port", NULL, 1, 65535 }, \
		{ 'i', "identity", SB_OPT_STRING, AT(identity), "FILE", "SSH private key", NULL, \
			0, 0 }, \
		{ 'F', "ssh-config", SB_OPT_STRING, AT(ssh_config), "FILE", \
			"SSH configuration file", NULL, 0, 0 }, \
		{ 0, "known-hosts", SB_OPT_STRING, AT(known_hosts), "FILE", \
			"file of known host keys", NULL, 0, 0 }, \
		{ 0, "accept-new-host-key", SB_OPT_FLAG, AT(accept_new), NULL, \
			"trust a host that is not known yet", NULL, 0, 0 }, \
		{ 0, "ask-password", SB_OPT_FLAG, AT(ask_password), NULL, \
			"log in with a password, asked for on the terminal", NULL, 0, 0 }, \
	{ \
		0, "rsh", SB_OPT_STRING, AT(rsh), "COMMAND", \
			"remote shell instead of the built-in SSH", NULL, 0, 0 \
	}

/* What every sync takes; one list for parsing and for --help. */
#define COMMON \
	{ 'n', "dry-run", SB_OPT_FLAG, AT(dry_run), NULL, \
		"show what would be done, change nothing", NULL, 0, 0 }, \
		{ 'x', "exclude", SB_OPT_LIST, AT(exclude), "PATTERN", \
			"leave out what matches (gitignore syntax); repeatable", NULL, 0, 0 }, \
		{ 0, "exclude-from", SB_OPT_LIST, AT(exclude_from), "FILE", \
			"read patterns from FILE; repeatable", NULL, 0, 0 }, \
		{ 0, "gitignore", SB_OPT_FLAG, AT(gitignore), NULL, "honour .gitignore files too", \
			NULL, 0, 0 }, \
		{ 0, "checksum", SB_OPT_FLAG, AT(checksum), NULL, \
			"compare contents, not times and sizes", NULL, 0, 0 }, \
		{ 0, "delta", SB_OPT_CHOICE, AT(delta), "WHEN", \
			"send only what changed in a file: auto, off, always", delta_names, 0, \
			0 }, \
		{ 0, "compress", SB_OPT_STRING, AT(compress), "LEVEL", "auto, off, or 1 to 19", \
			NULL, 0, 0 }, \
		{ 0, "max-delete", SB_OPT_INT, AT(max_delete), "N", \
			"stop when more than N entries would be deleted (default: half)", NULL, 0, \
			INT64_MAX }, \
		{ 0, "durability", SB_OPT_CHOICE, AT(durability), "HOW", \
			"none, barrier or full: what survives a power cut", durability_names, 0, \
			0 }, \
		{ 0, "cross-mounts", SB_OPT_FLAG, AT(cross), NULL, "go into other file systems", \
			NULL, 0, 0 }, \
		{ 0, "trust-git-config", SB_OPT_FLAG, AT(trust_git), NULL, \
			"take git configuration and hooks from a sandbox", NULL, 0, 0 }, \
		{ 0, "no-escaping-links", SB_OPT_FLAG, AT(no_escaping), NULL, \
			"keep symlinks that lead out of the root aside", NULL, 0, 0 }, \
		{ 0, "bwlimit", SB_OPT_SIZE, AT(bwlimit), "RATE", \
			"send at most RATE bytes a second (10M)", NULL, 0, 0 }, \
		{ 0, "timeout", SB_OPT_TIME, AT(timeout), "TIME", "give up after TIME (90s, 10m)", \
			NULL, 0, 0 }, \
		{ 0, "jobs", SB_OPT_INT, AT(jobs), "N", "threads for scanning and writing", NULL, \
			1, 64 }, \
		SSH, \
		{ 0, "json", SB_OPT_FLAG, AT(json), NULL, "print the result as one JSON object", \
			NULL, 0, 0 }, \
		{ 0, "progress", SB_OPT_CHOICE, AT(progress), "WHEN", \
			"auto (on a terminal), always, never", when_names, 0, 0 }, \
		{ 0, "stats", SB_OPT_FLAG, AT(stats), NULL, "print counts, bytes and times", NULL, \
			0, 0 }, \
		{ 'q', "quiet", SB_OPT_FLAG, AT(quiet), NULL, "print errors only", NULL, 0, 0 }, \
		{ 'v', "verbose", SB_OPT_COUNT, AT(verbose), NULL, "say more; twice: even more", \
			NULL, 0, 0 }, \
	{ \
		'h', "help", SB_OPT_FLAG, AT(help), NULL, "show this help", NULL, 0, 0 \
	}

#define END \
	{ \
		0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 \
	}
#define CONFLICT \
	{ \
		0, "conflict", SB_OPT_CHOICE, AT(conflict), "HOW", \
			"when both sides changed a file: both (keep both), local, runtime, merge", \
			conflict_names, 0, 0 \
	}

const struct sb_opt sync_options[] = { COMMON, END };

const struct sb_opt session_options[] = { CONFLICT, COMMON, END };

const struct sb_opt watch_options[] = {
	{ 0, "every", SB_OPT_TIME, AT(every), "TIME",
		"sync this often even if nothing seems to change (default 60s)", NULL, 0, 0 },
	CONFLICT,
	COMMON,
	END,
};

const struct sb_opt start_options[] = {
	{ 0, "name", SB_OPT_STRING, AT(name), "NAME",
		"name of the session (default: the directory's)", NULL, 0, 0 },
	{ 0, "also", SB_OPT_LIST, AT(also), "LOCAL:PATH",
		"a further pair of directories, same host; repeatable", NULL, 0, 0 },
	{ 0, "owner", SB_OPT_INT, AT(owner), "PID",
		"process whose end makes recovery sync back (default: the caller); 0: none", NULL,
		0, INT64_MAX },
	{ 0, "conflict-rule", SB_OPT_LIST, AT(conflict_rules), "PATTERN=HOW",
		"--conflict for the paths that match, for the whole session; repeatable", NULL, 0,
		0 },
	CONFLICT,
	COMMON,
	END,
};

const struct sb_opt recover_options[] = {
	{ 0, "all", SB_OPT_FLAG, AT(all), NULL, "every session", NULL, 0, 0 },
	{ 0, "now", SB_OPT_FLAG, AT(now), NULL, "also those whose next try is later", NULL, 0, 0 },
	COMMON,
	END,
};

const struct sb_opt doctor_options[] = {
	SSH,
	{ 0, "timeout", SB_OPT_TIME, AT(timeout), "TIME", "give up after TIME (90s, 10m)", NULL, 0,
		0 },
	{ 0, "json", SB_OPT_FLAG, AT(json), NULL, "print JSON", NULL, 0, 0 },
	{ 'q', "quiet", SB_OPT_FLAG, AT(quiet), NULL, "print what is wrong only", NULL, 0, 0 },
	{ 'v', "verbose", SB_OPT_COUNT, AT(verbose), NULL, "say more; twice: even more", NULL, 0,
		0 },
	{ 'h', "help", SB_OPT_FLAG, AT(help), NULL, "show this help", NULL, 0, 0 },
	END,
};

#define JSON \
	{ \
		0, "json", SB_OPT_FLAG, AT(json), NULL, "print JSON", NULL, 0, 0 \
	}
#define HELP \
	{ \
		'h', "help", SB_OPT_FLAG, AT(help), NULL, "show this help", NULL, 0, 0 \
	}
#define SAY \
	{ 'q', "quiet", SB_OPT_FLAG, AT(quiet), NULL, "print errors only", NULL, 0, 0 }, \
	{ \
		'v', "verbose", SB_OPT_COUNT, AT(verbose), NULL, "say more; twice: even more", \
			NULL, 0, 0 \
	}
#define DRY \
	{ \
		'n', "dry-run", SB_OPT_FLAG, AT(dry_run), NULL, \
			"show what would be done, change nothing", NULL, 0, 0 \
	}

const struct sb_opt list_options[] = { JSON, HELP, END };

const struct sb_opt rm_options[] = {
	{ 0, "discard", SB_OPT_FLAG, AT(discard), NULL,
		"forget a session that was not synced back, after asking", NULL, 0, 0 },
	{ 0, "yes", SB_OPT_FLAG, AT(yes), NULL, "do not ask", NULL, 0, 0 },
	JSON,
	HELP,
	END,
};

const struct sb_opt undo_options[] = { DRY, JSON, SAY, HELP, END };

const struct sb_opt resolve_options[] = {
	{ 0, "take", SB_OPT_CHOICE, AT(take), "WHICH",
		"local, runtime, or merged (where it merges cleanly)", take_names, 0, 0 },
	{ 0, "all", SB_OPT_FLAG, AT(all), NULL, "every conflict of the session", NULL, 0, 0 },
	{ 0, "name", SB_OPT_STRING, AT(name), "SESSION",
		"the session (default: that of the current directory)", NULL, 0, 0 },
	DRY,
	JSON,
	SAY,
	HELP,
	END,
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

/*
 * The library wants NULL-terminated lists; the parser's lists are counted, with room for the end.
 */
const char *const *
terminated(const struct sb_opt_list *l)
{
	const char **v;

	if (!l->n)
		return NULL;
	v = calloc(l->n + 1, sizeof *v);
	if (v)
		memcpy(v, l->v, l->n * sizeof *v);
	return v;
}

int
sync_args_apply(const struct sync_args *a, struct sb_sync_opts *o)
{
	int r = parse_level(a->compress, &o->level);

	o->dry_run = a->dry_run;
	o->checksum = a->checksum;
	o->gitignore = a->gitignore;
	o->no_delta = a->delta == 1;
	o->always_delta = a->delta == 2;
	o->cross_mounts = a->cross;
	o->trust_git_config = a->trust_git;
	o->no_escaping_links = a->no_escaping;
	o->exclude = terminated(&a->exclude);
	o->exclude_from = terminated(&a->exclude_from);
	o->max_delete = a->max_delete;
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
	return r;
}
