/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stddef.h>

#include <bin/sbsync/sbsync.h>

/*
 * Every verb: name, operands, help, further help, options, least and most operands, what runs. In
 * the order of --help.
 */
const struct sb_cmd verbs[VERBS] = {
	{ "mirror", "SRC DST", "make DST equal to SRC, one way, without a session",
		"SRC and DST are directories: a local path, [user@]host:path "
		"or\nssh://[user@]host[:port]/path. At most one of them is remote.",
		sync_options, 2, 2, run_mirror },
	{ "start", "LOCAL REMOTE", "open a session: sync LOCAL to the sandbox at REMOTE",
		"REMOTE is a local path, [user@]host:path or ssh://[user@]host[:port]/path.\nThe "
		"exclude rules in force now hold for the whole session.",
		start_options, 2, 2, run_start },
	{ "sync", "[SESSION]", "sync both ways now",
		"SESSION may be left out inside the local directory.", session_options, 0, 1,
		run_sync },
	{ "watch", "[SESSION]", "sync both ways whenever something changes, until Ctrl-C",
		"SESSION may be left out inside the local directory.", watch_options, 0, 1,
		run_watch },
	{ "stop", "[SESSION]", "sync back from the sandbox and close the session", NULL,
		session_options, 0, 1, run_stop },
	{ "recover", "[SESSION]", "finish what a crash interrupted; for cron",
		"Sessions whose owner is gone are synced back. Those that cannot be reached\nare "
		"tried again, less and less often, until they are.",
		recover_options, 0, 1, run_recover },
	{ "diff", "[SESSION] | SRC DST", "show what a sync, or a mirror, would do; change nothing",
		"Lines with '<-' change the local directory, with '->' the other one.",
		session_options, 0, 2, run_diff },
	{ "status", "[SESSION]", "show a session", NULL, list_options, 0, 1, run_status },
	{ "ls", "", "list the sessions", NULL, list_options, 0, 0, run_ls },
	{ "conflicts", "[SESSION]", "list the versions kept aside", NULL, list_options, 0, 1,
		run_conflicts },
	{ "resolve", "[PATH]", "decide conflicts: one version stays, the other goes",
		"PATH is the file or the version saved beside it. The next sync carries "
		"the\ndecision over; undo takes it back.",
		resolve_options, 0, 1, run_resolve },
	{ "undo", "[SESSION]", "take the local side back to before the last sync",
		"What was edited since stays; the old version is put beside it. A second "
		"undo\nundoes the first.",
		undo_options, 0, 1, run_undo },
	{ "log", "[SESSION]", "show what the session's syncs did", NULL, list_options, 0, 1,
		run_log },
	{ "rm", "[SESSION]", "forget a session", NULL, rm_options, 0, 1, run_rm },
	{ "doctor", "[REMOTE]", "check the way to REMOTE, or this machine; say what to do",
		"REMOTE is [user@]host:path or ssh://[user@]host[:port]/path. Nothing is "
		"changed\nthere, but the agent is brought there as a sync would do.",
		doctor_options, 0, 1, run_doctor },
	{ "agent", "", "be the far side of a sync, on stdin and stdout", NULL, agent_options, 0, 0,
		run_agent },
};
