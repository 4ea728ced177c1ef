/* SPDX-License-Identifier: MIT */
/* The options of `sbctl host`, and which of them a verb takes. */
#include "config.h"

#include <string.h>

#include <bin/common/opt-rows.h>
#include <bin/sbctl/host.h>

#define OPT_VALUES struct host_args
#define MONTH_MS (30 * INT64_C(86400000))

const struct sb_opt host_options[] = {
	/* Common ones: HOST_OPTIONS_COMMON. */
	OPT_TEXT('H', "host", host, "ADDR", "unix:PATH, http://HOST:PORT or https://..."),
	OPT_TEXT(0, "token-file", token_file, "FILE", "file with the bearer token"),
	OPT_TEXT(0, "ca-file", ca_file, "FILE", "authorities for https (PEM)"),
	OPT_TIME('t', "timeout", timeout, "TIME", 0, 0, "give up after TIME"),
	OPT_FLAG(0, "json", json, "print the answer as JSON"),
	OPT_FLAG(0, "time", time, "say how long the host took to answer"),
	OPT_INT(0, "fence", fence, "N", 1, INT64_MAX,
		"fencing token: refused once the host has seen a higher one"),
	OPT_FLAG('h', "help", help, "print help and exit"),
	/* Of the verbs that name them. */
	OPT_TEXT(0, "id", id, "ID", "name of the new session"),
	OPT_TEXT('b', "base", base, "BASE", "base image to start from"),
	OPT_FLAG(0, "empty", empty, "start with an empty workspace"),
	OPT_TEXT(0, "runtime", runtime, "NAME",
		"none, bwrap or gvisor, not weaker than the host's"),
	OPT_TEXT(0, "network", network, "NAME", "none, outbound, sandbox or host"),
	OPT_LIST(0, "allow", allow, "ENTRY", "what network outbound lets through; may be repeated"),
	OPT_LIST(0, "deny", deny, "ENTRY", "what it does not; may be repeated"),
	OPT_SIZE('q', "quota", quota, "SIZE", 0, INT64_MAX, "limit of the workspace"),
	OPT_LIST('L', "label", labels, "KEY=VALUE", "label; may be repeated"),
	OPT_LIST(0, "state", states, "STATE", "only sessions in this state; may be repeated"),
	OPT_FLAG('m', "measure", measure, "measure the space used now"),
	OPT_FLAG('f', "force", force, "remove it even if snapshots are held"),
	OPT_TEXT('s', "snapshot", snapshot, "NAME", "fork from this snapshot, not from now"),
	OPT_TEXT(0, "params", params, "JSON", "parameters of the tool"),
	OPT_TEXT(0, "call-id", call_id, "ID", "name of the call; calls of the same name run once"),
	OPT_FLAG(0, "kill-tools", kill_tools, "kill running tools first"),
	OPT_FLAG(0, "drop-later", drop_later, "remove the snapshots that are newer"),
	OPT_FLAG(0, "content", content, "show what changed in the files, line by line"),
	OPT_INT(0, "limit", limit, "N", 1, 20000, "print at most N"),
	OPT_LIST('e', "env", env, "KEY=VALUE", "variable of the process; may be repeated"),
	OPT_INT(0, "expose-port", expose_port, "PORT", 0, 65535,
		"make this port of the process reachable"),
	OPT_TIME(0, "ready", ready, "TIME", 0, 600000, "wait up to TIME for the port to answer"),
	OPT_INT(0, "signal", signal, "N", 1, 64, "signal to send (15)"),
	OPT_FLAG(0, "follow", follow, "keep printing until the process ends"),
	OPT_TEXT(0, "stream", stream, "NAME", "only stdout or only stderr"),
	OPT_LIST('k', "kind", kinds, "KIND",
		"only events whose kind begins with KIND; may be repeated"),
	OPT_TIME(0, "ttl", ttl, "TIME", 1000, MONTH_MS, "how long the token is valid (1h)"),
	OPT_END,
};

static bool
takes(const struct host_verb *v, const char *name)
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
host_options_of(const struct host_verb *v, struct sb_opt *opts)
{
	size_t n = 0;

	for (size_t i = 0; host_options[i].name; i++)
		if (i < HOST_OPTIONS_COMMON || takes(v, host_options[i].name))
			opts[n++] = host_options[i];
	opts[n] = (struct sb_opt){ 0 };
	return (struct sb_cmd){ .name = v->name,
		.args = v->args,
		.help = v->help,
		.opts = opts,
		.min_args = v->min_args,
		.max_args = v->max_args };
}
