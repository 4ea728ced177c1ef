/* SPDX-License-Identifier: MIT */
/* Work in a sandbox that is on record, and the sync back after any work. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/ctl.h>

int
ctl_finish_work(struct ctl *ctl, struct sb_sandbox *sb, int status, const struct sb_error *why,
	struct sb_error *err)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_stop_opts o = SB_STOP_OPTS_INIT;
	struct sb_cancel *again = sb_cancel_new(err);
	struct sb_call call = ctl->call;
	int r;

	if (!again)
		return err->code;
	o.crashed = status < 0;
	o.snapshot = ctl->a.snapshot ? "end" : NULL;
	o.trust_git_config = ctl->a.trust_git_config;
	o.max_delete = ctl->a.max_delete;
	call.cancel = again;
	call.deadline = SB_NEVER;
	/* A signal from now on interrupts the sync back; the sandbox is kept then. */
	ctl_signals_cancel(again);
	r = sb_sandbox_stop(sb, &o, &call, &res, err);
	ctl_signals_cancel(NULL);
	sb_cancel_free(again);
	progress_hide();
	if (status < 0)
		(void)fprintf(stderr, "sbctl: %s\n", why->msg);
	ctl_report_sync(ctl, sb_sandbox_state(sb), &res, r, err, stderr);
	return r < 0 ? r : status < 0 ? ctl_status(status) : status;
}

int
ctl_work_command(struct ctl *ctl, struct sb_sandbox *sb, int sigfd, void *arg, struct sb_error *err)
{
	return ctl_foreground(ctl, sb, arg, sigfd, err);
}

int
ctl_work_in(struct ctl *ctl, const char *id, ctl_work_fn work, void *arg, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sandbox) struct sb_sandbox *woken = NULL;
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	struct sb_start_opts o = SB_START_OPTS_INIT;
	const struct sb_state *s;
	struct sb_error why = { 0 };
	int sigfd = ctl_signals_open(err), r = sb_sandbox_open(ctl->keeper, id, &sb, err);

	if (r < 0)
		return r;
	s = sb_sandbox_state(sb);
	if (s->life == SB_LIFE_DESTROYED)
		return sb_fail(err, SB_E_STATE, "sandbox %s is gone", s->sandbox_id);
	if (s->life == SB_LIFE_ACTIVE && sb_state_owned(s))
		return work(ctl, sb, sigfd, arg, err);
	r = sb_profile_copy(sb_sandbox_profile(sb), &p, err);
	if (r < 0)
		return r;
	o.profile = &p;
	o.sandbox_id = s->sandbox_id;
	o.session_id = s->session_id;
	o.workspace_id = s->workspace_id;
	o.local_root = s->local_root;
	o.local_dirs = sb_strlist_borrow(&s->local_dirs);
	o.excludes = sb_strlist_borrow(&s->excludes);
	o.agent_command = s->agent_command;
	o.agent_env = sb_strlist_borrow(&s->agent_env);
	o.resume_acp_state = s->resume_acp_state;
	/* What is put away is put away again; anything else stays. */
	o.keep = p.persist != SB_PERSIST_ARCHIVE;
	r = sb_sandbox_start(ctl->keeper, &o, &ctl->call, &woken, NULL, err);
	if (r < 0)
		return r;
	r = work(ctl, woken, sigfd, arg, &why);
	return ctl_finish_work(ctl, woken, r, &why, err);
}
