/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/sbctl.h>
#include <sb/version.h>

const struct sb_cmd *const sbctl_cmds[] = {
	&sbctl_run,
	&sbctl_ls,
	&sbctl_show,
	&sbctl_exec,
	&sbctl_shell,
	&sbctl_sync,
	&sbctl_stop,
	&sbctl_destroy,
	&sbctl_recover,
	&sbctl_events,
	&sbctl_providers,
	&sbctl_profile,
	&sbctl_host,
	NULL,
};

int
sbctl_complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sbctl: %s\n", err->msg);
	return err->code == SB_E_USAGE ? 2 : 1;
}

static void
print_usage(FILE *f)
{
	sb_opt_print_usage(f, "sbctl", "Sandboxes from the command line.", sbctl_cmds);
}

int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	struct sb_error err = { 0 };

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
		print_usage(stdout);
		return 0;
	}
	if (strcmp(verb, "--version") == 0) {
		(void)printf("sbctl %s\n", sb_version());
		return 0;
	}
	for (const struct sb_cmd *const *c = sbctl_cmds; *c; c++)
		if (strcmp((*c)->name, verb) == 0)
			return (*c)->run(NULL, argc - 1, argv + 1);
	if (!verb[0]) {
		print_usage(stderr);
		return 2;
	}
	(void)sb_fail(&err, SB_E_USAGE, "there is no command \"%s\": see sbctl --help", verb);
	return sbctl_complain(&err);
}
