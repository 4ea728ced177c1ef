/* SPDX-License-Identifier: MIT */
/* sbsync edit: changes the settings of a session. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <bin/sbsync/options.h>

static int
edit_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_edit e = SB_SESSION_EDIT_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r;

	if (a->conflict < 0 && !a->conflict_rules.n && !a->labels.n && !a->port && !a->identity &&
		!a->ssh_config && !a->known_hosts && !a->rsh) {
		complain("edit needs something to change; try 'sbsync edit --help'");
		return EXIT_USAGE;
	}
	r = load_session(argc, argv, &s);
	if (r)
		return r;
	e.conflict = (enum sb_session_conflict)a->conflict;
	e.conflict_rules = a->conflict_rules.v;
	e.labels = a->labels.v;
	e.port = a->port ? a->port : -1;
	e.identity_file = a->identity;
	e.ssh_config = a->ssh_config;
	e.known_hosts = a->known_hosts;
	e.rsh = a->rsh;
	r = sb_session_edit(&s, NULL, &e, &err);
	if (r < 0)
		complain("%s", err.msg);
	else if (!a->quiet)
		(void)printf("session %s is changed; it counts from its next sync on\n", s.name);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPTIONS_CONFLICT,
	OPT_LIST(0, "conflict-rule", conflict_rules, "PATTERN=HOW",
		"--conflict for the paths that match; replaces all there were; repeatable"),
	OPT_LIST(0, "label", labels, "KEY=VALUE", "set a label; KEY= takes it away; repeatable"),
	OPT_INT('p', "port", port, "PORT", 1, 65535, "SSH port"),
	OPT_TEXT('i', "identity", identity, "FILE", "SSH private key; '' for none"),
	OPT_TEXT('F', "ssh-config", ssh_config, "FILE", "SSH configuration file; '' for none"),
	OPT_TEXT(0, "known-hosts", known_hosts, "FILE", "file of known host keys; '' for none"),
	OPT_TEXT('e', "rsh", rsh, "COMMAND", "remote shell; '' for the built-in SSH"),
	OPTIONS_QUIET_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_edit = {
	.name = "edit",
	.args = "[SESSION]",
	.help = "change a session's settings",
	.details = "Counts from its next sync on. 'sbsync ignore' changes what it leaves out; the "
		   "two\n"
		   "directories stay as they are: stop it and start another one for others.",
	.opts = options,
	.max_args = 1,
	.run = edit_verb,
};
