/* SPDX-License-Identifier: MIT */
/* Splits a command line into words (declared in sb/launcher.h). */
#include "config.h"

#include <sb/launcher.h>

#include <base/strlist.h>
#include <tool/words.h>

int
sb_command_split(const char *command, char ***out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist words = { 0 };
	int r = sb_words_split(command, &words, err);

	return r < 0 ? r : sb_texts_copy((const char *const *)words.v, out, err);
}
