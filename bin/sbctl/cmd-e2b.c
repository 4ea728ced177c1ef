/* SPDX-License-Identifier: MIT */
/* sbctl e2b: a way into a sandbox of E2B, which has no SSH; sbsync and recover use it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <base/opt.h>
#include <base/strlist.h>
#include <bin/common/opt-rows.h>
#include <bin/sbctl/ctl.h>
#include <sb/cloud.h>

struct e2b_values {
	bool help;
	struct sb_opt_list options;
};

#define OPT_VALUES struct e2b_values
static const struct sb_opt options[] = {
	OPT_LIST('o', "option", options, "KEY=VALUE", "option of backend e2b; may be repeated"),
	OPT_FLAG('h', "help", help, "show this help"),
	OPT_END,
};

static int
attach(struct e2b_values *v, char **words, int n, struct sb_error *err)
{
	static const int fds[3] = { 0, 1, 2 };
	sb_auto(sb_strlist) struct sb_strlist list = { 0 };
	struct sb_cancel *cancel;
	int r;

	if (n != 3 || strcmp(words[0], "attach") != 0)
		return sb_fail(err, SB_E_USAGE, "usage: sbctl e2b attach SANDBOX COMMAND");
	for (size_t i = 0; i < v->options.n; i++)
		sb_strlist_add(&list, v->options.v[i]);
	r = sb_strlist_check(&list, err);
	if (r == 0)
		r = ctl_signals_open(err);
	cancel = r < 0 ? NULL : sb_cancel_new(err);
	if (!cancel)
		return r < 0 ? r : SB_E_NOMEM;
	/* Who is told to end takes the program over there along. */
	ctl_signals_cancel(cancel);
	r = sb_cloud_e2b_attach(sb_strlist_borrow(&list), words[1], words[2], fds, cancel, err);
	ctl_signals_cancel(NULL);
	sb_cancel_free(cancel);
	return r;
}

static int
e2b_main(void *values, int argc, char **argv)
{
	struct e2b_values v = { 0 };
	struct sb_error err = { 0 };
	char **rest = NULL;
	int n = 0, r = sb_opt_parse(options, argc, argv, true, &v, &rest, &n, &err);

	(void)values;
	if (r == 0 && v.help)
		sb_opt_print_help(stdout, "sbctl", &cmd_e2b.cmd);
	else if (r == 0)
		r = attach(&v, rest, n, &err);
	sb_opt_list_free(&v.options);
	return r < 0 ? ctl_complain(&err) : r;
}

const struct ctl_verb cmd_e2b = {
	.cmd = {
		.name = "e2b",
		.args = "attach SANDBOX COMMAND",
		.help = "run a command in a sandbox of E2B with our stdin, stdout and stderr",
		.opts = options,
		.run = e2b_main,
	},
};
