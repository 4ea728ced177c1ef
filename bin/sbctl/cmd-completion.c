/* SPDX-License-Identifier: MIT */
/* sbctl completion: the script with which a shell completes sbctl's words. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/common/complete.h>
#include <bin/sbctl/host.h>
#include <bin/sbctl/options.h>

/* For the scripts themselves: the sandboxes that are there, one a line. */
static int
print_names(struct ctl *ctl, struct sb_error *err)
{
	struct sb_state *v = NULL;
	size_t n = 0;
	int r = sb_keeper_list(ctl->keeper, &v, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (v[i].life != SB_LIFE_DESTROYED)
			(void)printf("%s\n", v[i].sandbox_id);
	sb_states_free(v, n);
	return CTL_DONE;
}

/* The tables of all verbs as the script needs them; those of a host's verbs are made here. */
static int
print_script(enum complete_shell shell, struct sb_error *err)
{
	struct complete_program p = {
		.name = "sbctl",
		.names = "sbctl completion names 2>/dev/null",
		.group = "host",
		.inside_names = "sbctl host ls --timeout 2s 2>/dev/null | sed 1d | cut -d\" \" -f1",
	};
	struct sb_opt common[HOST_OPTIONS_COMMON + 1] = { 0 }, (*opts)[HOST_OPTIONS_MAX] = NULL;
	const struct sb_cmd **verbs = NULL, **inside = NULL;
	struct sb_cmd *cmds = NULL;
	size_t n = 0, n_host = 0;
	int r = CTL_DONE;

	while (ctl_verbs[n])
		n++;
	while (host_verbs[n_host])
		n_host++;
	verbs = calloc(n + 1, sizeof *verbs);
	inside = calloc(n_host + 1, sizeof *inside);
	cmds = calloc(n_host, sizeof *cmds);
	opts = calloc(n_host, sizeof *opts);
	if (verbs && inside && cmds && opts) {
		for (size_t i = 0; i < n; i++)
			verbs[i] = &ctl_verbs[i]->cmd;
		for (size_t i = 0; i < n_host; i++) {
			cmds[i] = host_options_of(host_verbs[i], opts[i]);
			inside[i] = &cmds[i];
		}
		memcpy(common, host_options, HOST_OPTIONS_COMMON * sizeof common[0]);
		p.verbs = verbs;
		p.inside = inside;
		p.options = common;
		complete_print(stdout, &p, shell);
	} else {
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	free(opts);
	free(cmds);
	free(inside);
	free(verbs);
	return r;
}

static int
completion_verb(struct ctl *ctl, struct sb_error *err)
{
	const char *what = ctl->a.v[0];

	if (strcmp(what, "names") == 0)
		return print_names(ctl, err);
	for (int i = 0; complete_shells[i]; i++)
		if (strcmp(what, complete_shells[i]) == 0)
			return print_script((enum complete_shell)i, err);
	return sb_fail(err, SB_E_USAGE,
		"no completion for the shell \"%s\": there is bash, zsh and fish", what);
}

static const struct sb_opt options[] = {
	OPT_FLAG('h', "help", help, "print help and exit"),
	OPT_END,
};

const struct ctl_verb cmd_completion = {
	.cmd = {
		.name = "completion",
		.args = "bash | zsh | fish | names",
		.help = "print the script with which a shell completes this command",
		.details = "names: the sandboxes that are there, one a line, as the scripts need "
			   "them. For bash, now: eval \"$(sbctl completion bash)\". \"make "
			   "install\" puts the scripts where shells look for them.",
		.opts = options,
		.min_args = 1,
		.max_args = 1,
	},
	.run = completion_verb,
};
