/* SPDX-License-Identifier: MIT */
/* Questions on the terminal whose answer is yes or no. */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include <bin/common/progress.h>
#include <bin/sbsync/sbsync.h>

bool
ask_yes(const char *text, const char *instead)
{
	char answer[16] = "";

	progress_hide();
	if (!isatty(STDIN_FILENO)) {
		complain("%s: nobody is there to ask; %s", text, instead);
		return false;
	}
	(void)fprintf(stderr, "sbsync: %s. Go on? [y/N] ", text);
	return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}
