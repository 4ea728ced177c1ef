/* SPDX-License-Identifier: MIT */
/* Splits a command line into words (declared in sb/launcher.h). */
#include "config.h"

#include <sb/launcher.h>

#include <tool/words.h>

int
sb_command_split(const char *command, struct sb_strlist *out, struct sb_error *err)
{
	return sb_words_split(command, out, err);
}
