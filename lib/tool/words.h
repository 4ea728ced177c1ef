/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_WORDS_H
#define SB_TOOL_WORDS_H

#include <base/strlist.h>

/*
 * Takes a command line apart as a shell would: spaces part words, 'single quotes' keep everything,
 * "double quotes" everything but \" \\ \$ \`, a backslash outside quotes the next character.
 * Nothing is expanded. SB_E_INVAL for an open quote, a trailing backslash or no word at all. Adds
 * to `out`.
 */
int sb_words_split(const char *line, struct sb_strlist *out, struct sb_error *err);

#endif
