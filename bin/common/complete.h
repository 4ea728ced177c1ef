/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_COMPLETE_H
#define SB_BIN_COMPLETE_H

#include <stdio.h>

#include <base/opt.h>

/*
 * Scripts with which bash, zsh and fish complete a command line. Everything in them comes from the
 * tables of options and verbs that the program parses with, so they cannot differ from it.
 */
enum complete_shell { COMPLETE_BASH, COMPLETE_ZSH, COMPLETE_FISH };
extern const char *const complete_shells[]; /* their names, NULL-terminated */

/* What a program takes. */
struct complete_program {
	const char *name;
	const struct sb_cmd *const *verbs; /* NULL-terminated; NULL: `options` is all there is */
	const struct sb_opt *options;
	const char *names; /* shell command that prints what an ID may be; no quote in it */
	const char *group; /* a verb with verbs of its own; NULL: there is none */
	const struct sb_cmd *const *inside; /* those, NULL-terminated */
	const char *inside_names;           /* as `names`, for them */
};

void complete_print(FILE *f, const struct complete_program *p, enum complete_shell shell);

#endif
