/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_QUOTE_H
#define SB_BASE_QUOTE_H

#include <base/buf.h>

/* Adds `word` so that a shell reads exactly it, in single quotes. */
void sb_quote_word(struct sb_buf *out, const char *word);

/*
 * The same, but a word that means nothing to a shell (letters, digits and _-./:=,+@) stays as it
 * is. Not for the first word of a command, which "NAME=value" would turn into an assignment.
 */
void sb_quote_argument(struct sb_buf *out, const char *word);

#endif
