/* SPDX-License-Identifier: MIT */
/* sbctl stop: syncs back, then ends the sandbox by its policy. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/options.h>

#define LOOK_MS 200 /* how often the state of the other process is looked at */
#define STOP_WAIT_MS 60000

/* Asks the process that works with it to stop, and waits until it has. */
static int
stop_owner(struct ctl *ctl, struct sb_state *s, struct sb_error *err)
{
	sb_deadline d = sb_deadline_min(ctl->call.deadline, sb_deadline_in(STOP_WAIT_MS));
	sb_autofree char *id = strdup(s->sandbox_id);
	int r;

	if (!id)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (kill((pid_t)s->owner_pid, SIGTERM) < 0 && errno != ESRCH)
		return sb_fail_errno(err, "process %lld, which works with sandbox %s",
			(long long)s->owner_pid, id);
	while (sb_state_owned(s)) {
		struct pollfd p = { sb_cancel_fd(ctl->cancel), POLLIN, 0 };

		r = sb_check_alive(ctl->cancel, d, "stop", err);
		if (r < 0)
			return r;
		(void)poll(&p, 1, LOOK_MS);
		sb_state_free(s);
		r = sb_keeper_load(ctl->keeper, id, s, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
stop_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_autofree char *id = ctl_pick(ctl, ctl->a.n ? ctl->a.v[0] : NULL, err);
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_stop_opts o = SB_STOP_OPTS_INIT;
	int r = id ? sb_keeper_load(ctl->keeper, id, &s, err) : err->code;

	if (r == 0 && sb_state_owned(&s))
		r = stop_owner(ctl, &s, err);
	if (r == 0)
		r = sb_sandbox_open(ctl->keeper, s.sandbox_id, &sb, err);
	if (r < 0)
		return r;
	o.snapshot = ctl->a.snapshot ? "end" : NULL;
	o.max_delete = ctl->a.max_delete;
	r = sb_sandbox_stop(sb, &o, &ctl->call, &res, err);
	ctl_report_sync(ctl, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? CTL_CONFLICTS : 0;
}

static const struct sb_opt options[] = {
	OPTIONS_SNAPSHOT,
	OPTIONS_MAX_DELETE,
	OPTIONS_TIMEOUT,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_stop = {
	.cmd = {
		.name = "stop",
		.args = "[ID]",
		.help = "sync back, then keep or remove the sandbox by its policy",
		.opts = options,
		.max_args = 1,
	},
	.run = stop_verb,
};
