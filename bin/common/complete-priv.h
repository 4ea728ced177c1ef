/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_COMPLETE_PRIV_H
#define SB_BIN_COMPLETE_PRIV_H

#include <bin/common/complete.h>

/* What can stand at a place. */
enum complete_kind {
	COMPLETE_NOTHING, /* anything, but nothing to offer */
	COMPLETE_FILE,
	COMPLETE_DIR,
	COMPLETE_COMMAND,
	COMPLETE_NAME,  /* of a session or a sandbox */
	COMPLETE_WORDS, /* one of some words */
};

struct complete_place {
	enum complete_kind kind;
	char words[160]; /* separated by blanks */
	bool repeats;    /* so is everything behind it */
};

/* The value of an option; `words` are its choices. */
struct complete_place complete_value(const struct sb_opt *o);

/*
 * The operands of a verb, from what --help calls them: "LOCAL REMOTE", "[SESSION]", "-- CMD
 * [ARG]...", "[list | show [NAME] | check]". Returns their number, at most `max`.
 */
#define COMPLETE_OPERANDS 6
int complete_operands(const char *args, struct complete_place *out, int max);

/* Text between single quotes; `escaped` is what stands for one within. */
void complete_quote(FILE *f, const char *s, const char *escaped);

void complete_bash(FILE *f, const struct complete_program *p);
void complete_zsh(FILE *f, const struct complete_program *p);
void complete_fish(FILE *f, const struct complete_program *p);

#endif
