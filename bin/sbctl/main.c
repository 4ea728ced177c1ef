/* SPDX-License-Identifier: MIT */
/* sbctl: the table of verbs and their dispatch. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/common/stdfds.h>
#include <bin/sbctl/ctl.h>
#include <sb/version.h>

/* In the order of --help. */
const struct ctl_verb *const ctl_verbs[] = {
	&cmd_run,
	&cmd_ls,
	&cmd_show,
	&cmd_exec,
	&cmd_shell,
	&cmd_sync,
	&cmd_turn,
	&cmd_mcp,
	&cmd_stop,
	&cmd_destroy,
	&cmd_forget,
	&cmd_recover,
	&cmd_events,
	&cmd_providers,
	&cmd_profile,
	&cmd_trust,
	&cmd_doctor,
	&cmd_cold,
	&cmd_docker,
	&cmd_e2b,
	&cmd_host,
	&cmd_control,
	&cmd_completion,
	NULL,
};
#define VERBS (sizeof ctl_verbs / sizeof ctl_verbs[0] - 1)

static void
print_usage(FILE *f)
{
	const struct sb_cmd *cmds[VERBS + 1] = { NULL };

	for (size_t i = 0; i < VERBS; i++)
		cmds[i] = &ctl_verbs[i]->cmd;
	sb_opt_print_usage(f, "sbctl", "Sandboxes from the command line.", cmds);
}

static int
dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	struct sb_error err = { 0 };

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_usage(stdout);
		return CTL_DONE;
	}
	if (strcmp(name, "--version") == 0) {
		(void)printf("sbctl %s\n", sb_version());
		return CTL_DONE;
	}
	for (size_t i = 0; i < VERBS; i++) {
		const struct ctl_verb *v = ctl_verbs[i];

		if (strcmp(v->cmd.name, name) == 0)
			return v->run ? ctl_main(v, argc - 1, argv + 1) :
					v->cmd.run(NULL, argc - 1, argv + 1);
	}
	if (!name[0]) {
		print_usage(stderr);
		return CTL_USAGE;
	}
	(void)sb_fail(&err, SB_E_USAGE, "there is no command \"%s\": see sbctl --help", name);
	return ctl_complain(&err);
}

int
main(int argc, char **argv)
{
	stdfds_fill();
	return stdfds_end("sbctl", dispatch(argc, argv), CTL_FAILED);
}
