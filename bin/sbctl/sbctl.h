/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_SBCTL_H
#define SBCTL_SBCTL_H

#include <base/opt.h>

/*
 * A command of sbctl. `run` gets NULL as its values and the words from the command's name on; it
 * reads its own options, prints its own --help and returns the exit status: 0 done, 1 failed, 2
 * wrong usage.
 */
extern const struct sb_cmd sbctl_run, sbctl_ls, sbctl_show, sbctl_exec, sbctl_shell, sbctl_sync,
	sbctl_stop, sbctl_destroy, sbctl_recover, sbctl_events, sbctl_providers, sbctl_profile,
	sbctl_host;

/* The commands, ended by NULL. */
extern const struct sb_cmd *const sbctl_cmds[];

/* Prints "sbctl: MESSAGE" and gives the exit status for it. */
int sbctl_complain(const struct sb_error *err);

#endif
