/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_OPTIONS_H
#define SBCTL_OPTIONS_H

#include <stddef.h>

#include <bin/common/opt-rows.h>
#include <bin/sbctl/ctl.h>

/* Groups of option rows that several sandbox verbs put into their tables. */

#define OPT_VALUES struct ctl_args

/* clang-format off */
#define OPTIONS_COMMON \
	OPT_FLAG(0, "json", json, "print JSON"), \
	OPT_FLAG('q', "quiet", quiet, "print only errors"), \
	OPT_COUNT('v', "verbose", verbose, "print more; twice: everything"), \
	OPT_FLAG('h', "help", help, "print help and exit")

/* Of verbs that take long. */
#define OPTIONS_PROGRESS \
	OPT_CHOICE(0, "progress", progress, "WHEN", progress_words, \
		"auto (on a terminal), always, never, json (an object a line)")

#define OPTIONS_TIMEOUT \
	OPT_TIME('t', "timeout", timeout, "TIME", 0, 0, "give up after TIME")

/* Where profiles are read. */
#define OPTIONS_PROFILES \
	OPT_TEXT(0, "config", config, "FILE", \
		"read profiles from FILE, not from the user's file"), \
	OPT_TEXT('C', "directory", dir, "DIR", "work in DIR instead of here"), \
	OPT_FLAG(0, "no-project", no_project, "leave the project's .sandbox.yaml out")

/* Of a command that is run in a sandbox. */
#define OPTIONS_ENV \
	OPT_LIST('e', "env", env, "KEY=VALUE", "variable of the command; may be repeated")
#define OPTIONS_NO_TTY \
	OPT_FLAG('T', "no-tty", no_tty, "give the command no terminal, even if there is one here")

/* Of the end of a sandbox. */
#define OPTIONS_SNAPSHOT \
	OPT_FLAG(0, "snapshot", snapshot, "take a snapshot of the sandbox before it is removed")
#define OPTIONS_MAX_DELETE \
	OPT_INT(0, "max-delete", max_delete, "N", 0, INT64_MAX, \
		"let a sync back delete up to N entries")
/* clang-format on */

#endif
