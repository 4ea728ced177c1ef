/* SPDX-License-Identifier: MIT */
/* The options of `sbctl control`, and which of them a verb takes. */
#include "config.h"

#include <string.h>

#include <bin/common/opt-rows.h>
#include <bin/sbctl/control.h>

#define OPT_VALUES struct control_args

const struct sb_opt control_options[] = {
	/* Common ones: CONTROL_OPTIONS_COMMON. */
	OPT_TEXT(0, "control", control, "NAME", "which control of the profile file"),
	OPT_TEXT(0, "config", config, "FILE", "read controls from FILE, not from the user's file"),
	OPT_TEXT(0, "state-dir", state_dir, "DIR", "where controls keep what they know"),
	OPT_TIME('t', "timeout", timeout, "TIME", 1, INT64_MAX, "give up after TIME"),
	OPT_INT(0, "fence", fence, "N", 1, INT64_MAX,
		"fencing token: refused where a higher one was seen"),
	OPT_FLAG(0, "json", json, "print JSON"),
	OPT_FLAG('q', "quiet", quiet, "print only errors"),
	OPT_FLAG('h', "help", help, "print help and exit"),
	/* Of the verbs that name them. */
	OPT_TEXT('k', "key", key, "KEY", "the same key gives the same sandbox"),
	OPT_LIST('L', "label", labels, "KEY=VALUE", "label; may be repeated"),
	OPT_TEXT('b', "base", base, "BASE", "template to start from"),
	OPT_TEXT(0, "cpus", cpus, "N", "limit of processors, 0.5 say"),
	OPT_SIZE('m', "mem", mem, "SIZE", 1, INT64_MAX, "limit of memory"),
	OPT_SIZE(0, "disk", disk, "SIZE", 1, INT64_MAX, "limit of the workspace"),
	OPT_TEXT(0, "network", network, "NAME", "none or outbound"),
	OPT_LIST(0, "allow", allow, "ENTRY", "what network outbound lets through; may be repeated"),
	OPT_LIST(0, "deny", deny, "ENTRY", "what it does not; may be repeated"),
	OPT_TIME(0, "lifetime", lifetime, "TIME", 1, INT64_MAX,
		"how long it is active at a stretch; then it is paused"),
	OPT_LIST('e', "env", env, "KEY=VALUE", "variable of the process; may be repeated"),
	OPT_LIST(0, "pass-env", pass, "KEY",
		"the same with the value that KEY has here, as secrets need it; may be repeated"),
	OPT_INT('p', "port", port, "PORT", 1, 65535, "make this port of the process reachable"),
	OPT_TIME(0, "ready", ready, "TIME", 1, 600000,
		"wait up to TIME for the port to answer, else end it and fail"),
	OPT_FLAG('w', "wait", wait, "wait for its end; exit with its exit code"),
	OPT_INT('s', "signal", signal, "N", 1, 64, "signal to send (15)"),
	OPT_TEXT(0, "snapshot", snapshot, "NAME", "fork from this snapshot, not from now"),
	OPT_FLAG(0, "deep", deep, "free its place, too, until it is resumed"),
	OPT_FLAG('f', "force", force, "also with held snapshots, or when nobody answers"),
	OPT_END,
};

static bool
takes(const struct control_verb *v, const char *name)
{
	const char *p = v->opts;
	size_t len = strlen(name);

	while (p && *p) {
		size_t n = strcspn(p, ",");

		if (n == len && memcmp(p, name, n) == 0)
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

struct sb_cmd
control_options_of(const struct control_verb *v, struct sb_opt *opts)
{
	size_t n = 0;

	for (size_t i = 0; control_options[i].name; i++)
		if (i < CONTROL_OPTIONS_COMMON || takes(v, control_options[i].name))
			opts[n++] = control_options[i];
	opts[n] = (struct sb_opt){ 0 };
	return (struct sb_cmd){ .name = v->name,
		.args = v->args,
		.help = v->help,
		.opts = opts,
		.min_args = v->min_args,
		.max_args = v->max_args };
}
