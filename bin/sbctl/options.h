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
	OPT_FLAG('q', "quiet", quiet, "say nothing but errors"), \
	OPT_COUNT('v', "verbose", verbose, "say more; twice: everything"), \
	OPT_FLAG('h', "help", help, "print help and exit")

#define OPTIONS_TIMEOUT \
	OPT_TIME('t', "timeout", timeout, "TIME", 0, 0, "give up after this long")

/* Where profiles are read. */
#define OPTIONS_PROFILES \
	OPT_TEXT(0, "config", config, "FILE", "profiles, instead of the user's file"), \
	OPT_TEXT('C', "directory", dir, "DIR", "work in DIR instead of here")

/* Of a command that is run in a sandbox. */
#define OPTIONS_ENV \
	OPT_LIST('e', "env", env, "KEY=VALUE", "variable of the command; may be repeated")
#define OPTIONS_NO_TTY \
	OPT_FLAG('T', "no-tty", no_tty, "no terminal over there, even if there is one here")

/* Of the end of a sandbox. */
#define OPTIONS_SNAPSHOT \
	OPT_FLAG(0, "snapshot", snapshot, "snapshot it before anything goes")
#define OPTIONS_MAX_DELETE \
	OPT_INT(0, "max-delete", max_delete, "N", 0, INT64_MAX, \
		"let a sync back delete up to N entries")
/* clang-format on */

#endif
