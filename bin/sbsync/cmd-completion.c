/* SPDX-License-Identifier: MIT */
/* sbsync completion: the script with which a shell completes sbsync's words. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/common/complete.h>
#include <bin/sbsync/options.h>

/* For the scripts themselves: the names of the sessions, one a line. */
static int
print_names(void)
{
	struct sb_session_list l = { 0 };
	struct sb_error err = { 0 };
	int r = sb_session_load_all(NULL, &l, &err);

	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	for (size_t i = 0; i < l.n; i++)
		(void)printf("%s\n", l.v[i].name);
	sb_session_list_free(&l);
	return EXIT_DONE;
}

static int
completion_verb(void *values, int argc, char **argv)
{
	static const struct complete_program sbsync = {
		.name = "sbsync",
		.verbs = verbs,
		.names = "sbsync completion names 2>/dev/null",
	};

	(void)values;
	(void)argc;
	if (strcmp(argv[0], "names") == 0)
		return print_names();
	for (int i = 0; complete_shells[i]; i++)
		if (strcmp(argv[0], complete_shells[i]) == 0) {
			complete_print(stdout, &sbsync, (enum complete_shell)i);
			return EXIT_DONE;
		}
	complain("no completion for the shell '%s': there is bash, zsh and fish", argv[0]);
	return EXIT_USAGE;
}

static const struct sb_opt options[] = {
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_completion = {
	.name = "completion",
	.args = "bash | zsh | fish | names",
	.help = "print the script with which a shell completes this command",
	.details = "names: the names of the sessions, one a line, as the scripts need them.\n"
		   "For bash, now: eval \"$(sbsync completion bash)\". \"make install\" puts the\n"
		   "scripts where shells look for them.",
	.opts = options,
	.min_args = 1,
	.max_args = 1,
	.run = completion_verb,
};
