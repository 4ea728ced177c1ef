/* SPDX-License-Identifier: MIT */
/* sbsync: the table of verbs and their dispatch. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <bin/common/stdfds.h>
#include <bin/sbsync/sbsync.h>
#include <sbsync/version.h>

/* In the order of --help. */
const struct sb_cmd *const verbs[] = {
	&cmd_mirror,
	&cmd_start,
	&cmd_sync,
	&cmd_watch,
	&cmd_pause,
	&cmd_resume,
	&cmd_stop,
	&cmd_recover,
	&cmd_diff,
	&cmd_status,
	&cmd_ls,
	&cmd_conflicts,
	&cmd_resolve,
	&cmd_undo,
	&cmd_ignore,
	&cmd_edit,
	&cmd_log,
	&cmd_rm,
	&cmd_doctor,
	&cmd_agent,
	&cmd_completion,
	NULL,
};

static void
usage(FILE *f)
{
	sb_opt_print_usage(f, "sbsync", "keep a workspace and a sandbox in step", verbs);
}

/*
 * Verbs print their own --help from their table; this finds the request before the operands are
 * counted.
 */
static bool
wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static int
run(const struct sb_cmd *c, int argc, char **argv)
{
	struct sb_error err = { 0 };
	const char *instead, *option;
	struct sync_args a;
	char **args;
	int n, code;

	if (wants_help(argc, argv)) {
		sb_opt_print_help(stdout, "sbsync", c);
		return EXIT_DONE;
	}
	sync_args_init(&a);
	if (sb_opt_parse(c->opts, argc, argv, false, &a, &args, &n, &err) < 0) {
		if ((instead = habit_of(err.msg, &option)))
			complain("%s %s", option, instead);
		else if (strstr(err.msg, "--help"))
			complain("%s", err.msg);
		else
			complain("%s; try 'sbsync %s --help'", err.msg, c->name);
		code = EXIT_USAGE;
	} else if (n < c->min_args) {
		complain("%s needs %s; try 'sbsync %s --help'", c->name, c->args, c->name);
		code = EXIT_USAGE;
	} else if (c->max_args >= 0 && n > c->max_args) {
		complain("%s: %s is one argument too many; try 'sbsync %s --help'", c->name,
			args[c->max_args], c->name);
		code = EXIT_USAGE;
	} else {
		code = c->run(&a, n, args);
	}
	sync_args_free(&a);
	return code;
}

/* What was printed and did not get there was not done. */
static int
finish(int code)
{
	return stdfds_end("sbsync", code, EXIT_FAILED);
}

int
main(int argc, char **argv)
{
	stdfds_fill();
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)printf("sbsync %s\n", sb_sync_version());
		return finish(EXIT_DONE);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return finish(EXIT_DONE);
	}
	for (const struct sb_cmd *const *v = verbs; *v; v++)
		if (strcmp((*v)->name, argv[1]) == 0)
			return finish(run(*v, argc - 1, argv + 1));
	complain("there is no command '%s'; try 'sbsync --help'", argv[1]);
	return EXIT_USAGE;
}
