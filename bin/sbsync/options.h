/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_SBSYNC_OPTIONS_H
#define SB_BIN_SBSYNC_OPTIONS_H

#include <stddef.h>

#include <bin/common/opt-rows.h>
#include <bin/common/progress.h>
#include <bin/sbsync/sbsync.h>

/* Groups of option rows that several verbs put into their tables, in the order of --help. */

#define OPT_VALUES struct sync_args

/* clang-format off */
#define OPTIONS_TRUST_GIT \
	OPT_FLAG(0, "trust-git-config", trust_git, \
		"take git configuration and hooks from a sandbox")
#define OPTIONS_TRUST \
	OPTIONS_TRUST_GIT, \
		OPT_FLAG(0, "trust-project-files", trust_project, \
			"take .sandbox.yaml and .sbsyncignore from a sandbox")
#define OPTIONS_HELP \
	OPT_FLAG('h', "help", help, "show this help")

#define OPTIONS_DRY_RUN \
	OPT_FLAG('n', "dry-run", dry_run, "show what would be done, change nothing")

#define OPTIONS_JSON \
	OPT_FLAG(0, "json", json, "print JSON")

#define OPTIONS_VERBOSE \
	OPT_COUNT('v', "verbose", verbose, "print more; twice: even more")

#define OPTIONS_QUIET_VERBOSE \
	OPT_FLAG('q', "quiet", quiet, "print only errors"), \
	OPTIONS_VERBOSE

#define OPTIONS_TIMEOUT \
	OPT_TIME(0, "timeout", timeout, "TIME", 0, 0, "give up after TIME (90s, 10m)")

#define OPTIONS_CONFLICT \
	OPT_CHOICE(0, "conflict", conflict, "HOW", conflict_words, \
		"when both sides changed a file: both (keep both), local, runtime, merge")

/* The way to another machine. */
#define OPTIONS_SSH \
	OPT_INT('p', "port", port, "PORT", 1, 65535, "SSH port"), \
	OPT_TEXT('i', "identity", identity, "FILE", "SSH private key"), \
	OPT_TEXT('F', "ssh-config", ssh_config, "FILE", "SSH configuration file"), \
	OPT_TEXT(0, "known-hosts", known_hosts, "FILE", "file of known host keys"), \
	OPT_FLAG(0, "accept-new-host-key", accept_new, "trust a host that is not known yet"), \
	OPT_FLAG(0, "ask-password", ask_password, \
		"ask for a password on the terminal"), \
	OPT_TEXT('e', "rsh", rsh, "COMMAND", "remote shell instead of the built-in SSH")

/* What every verb takes that syncs. */
#define OPTIONS_SYNC \
	OPTIONS_DRY_RUN, \
	OPT_LIST('x', "exclude", exclude, "PATTERN", \
		"leave out what matches (gitignore syntax); repeatable"), \
	OPT_LIST(0, "exclude-from", exclude_from, "FILE", \
		"read patterns from FILE; repeatable"), \
	OPT_FLAG(0, "gitignore", gitignore, "honour .gitignore files too"), \
	OPT_FLAG(0, "checksum", checksum, "compare contents, not times and sizes"), \
	OPT_CHOICE(0, "delta", delta, "WHEN", delta_words, \
		"send only what changed in a file: auto, off, always"), \
	OPT_TEXT(0, "compress", compress, "LEVEL", "auto, off, or 1 to 19"), \
	OPT_INT(0, "max-delete", max_delete, "N", 0, INT64_MAX, \
		"stop when more than N entries would go (default: half)"), \
	OPT_INT(0, "max-entries", max_entries, "N", 1, INT64_MAX, \
		"take a far tree of up to N entries"), \
	OPT_CHOICE(0, "durability", durability, "HOW", durability_words, \
		"none, barrier or full: what survives a power cut"), \
	OPT_FLAG(0, "cross-mounts", cross, "go into other file systems"), \
	OPT_FLAG(0, "xattrs", xattrs, "carry extended attributes (user.*) over"), \
	OPT_FLAG(0, "acls", acls, "carry access control lists over"), \
	OPTIONS_TRUST, \
	OPT_FLAG(0, "no-escaping-links", no_escaping, \
		"set symlinks aside that lead out of the root"), \
	OPT_SIZE(0, "bwlimit", bwlimit, "RATE", 0, 0, \
		"send at most RATE bytes a second (10M)"), \
	OPTIONS_TIMEOUT, \
	OPT_INT(0, "jobs", jobs, "N", 1, 64, "threads for scanning and writing"), \
	OPTIONS_SSH, \
	OPT_FLAG(0, "json", json, "print the result as one JSON object"), \
	OPT_CHOICE(0, "progress", progress, "WHEN", progress_words, \
		"auto (on a terminal), always, never, json (an object a line)"), \
	OPT_FLAG(0, "stats", stats, "print counts, bytes and times"), \
	OPTIONS_QUIET_VERBOSE, \
	OPTIONS_HELP
/* clang-format on */

/* Whole tables of verbs that take the same: those that show, and those that sync a session. */
extern const struct sb_opt list_options[], session_options[];

/* The words of choices, in the order of their values in struct sync_args. */
extern const char *const conflict_words[], *const delta_words[], *const durability_words[];

#endif
