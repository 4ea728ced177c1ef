/* SPDX-License-Identifier: MIT */
/*
 * Runs a command in a session with the caller's own descriptors as its input and output
 * (sb_host_attach).
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/proc.h>
#include <host/runtime/runtime.h>

/* How long what was killed may take to be gone. */
#define GONE_MS 3000

static int
check(const struct sb_host_attach *a, struct sb_error *err)
{
	if (!a->session || !*a->session)
		return sb_fail(err, SB_E_INVAL, "session_id is required");
	if (!a->argv || !a->argv[0] || !*a->argv[0])
		return sb_fail(err, SB_E_INVAL, "command is required");
	for (int i = 0; i < 3; i++)
		if (a->fds[i] < 0)
			return sb_fail(err, SB_E_INVAL, "descriptor %d is missing", i);
	return 0;
}

/* Until the command ended or the caller is done with it. */
static int
wait_end(struct sb_child *c, const struct sb_host_call *call, struct sb_error *err)
{
	const struct sb_cancel *cancel = call ? call->cancel : NULL;
	sb_deadline d = call ? call->deadline : SB_NEVER;

	return sb_child_wait(c, cancel, d, err);
}

static int
run(struct sb_host *h, struct sb_hsess *s, const struct sb_host_attach *a,
	const struct sb_host_call *call, int *out_code, struct sb_error *err)
{
	struct sb_spawn_opts io = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_runtime_cmd cmd = { .session = s->id,
		.argv = a->argv,
		.network = s->network,
		.leave = a->leave };
	sb_autofree char *workspace = NULL;
	char mark[SB_HOST_PROC_MARK_MAX];
	sb_deadline gone;
	struct sb_child c;
	bool home = false;
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	r = s->gone ? sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			      sb_code_text(SB_E_SESSION_NOT_FOUND), s->id) :
		      sb_host_state_admit(SB_HOST_OP_TOOL, s->state, s->id, err);
	if (r == 0 && !(workspace = strdup(s->mountpoint)))
		r = sb_fail(err, SB_E_NOMEM, "attach");
	if (r == 0) {
		s->ran = true;
		if (a->number)
			*a->number = s->proc_seq + 1;
		(void)sb_host_proc_mark(h, s, "a", ++s->proc_seq, mark);
	}
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0)
		return r;
	/* What it keeps at home must last as long as the session. */
	for (size_t i = 0; a->env && a->env[i]; i++)
		home |= sb_str_starts(a->env[i], "HOME=");
	sb_strlist_add_all(&env, a->env);
	if (!home)
		sb_strlist_addf(&env, "HOME=%s",
			s->rt->ops->workspace ? s->rt->ops->workspace : workspace);
	r = sb_strlist_check(&env, err);
	if (r < 0)
		return r;
	cmd.env = (const char *const *)env.v;
	cmd.workspace = workspace;
	cmd.mark = mark;
	for (int i = 0; i < 3; i++) {
		io.io[i] = SB_SPAWN_FD;
		io.fds[i] = a->fds[i];
	}
	io.die_with_parent = true;
	r = sb_hsess_start(s, &cmd, &io, &c, err);
	if (r < 0)
		return r;
	if (a->started)
		a->started(a->arg);
	r = wait_end(&c, call, err);
	gone = sb_deadline_in(GONE_MS);
	while (!(a->leave && r == 0) &&
		s->rt->ops->signal(s->rt, s->id, mark, c.pid, SIGKILL) > 0 &&
		!sb_deadline_passed(gone))
		(void)usleep(2000);
	sb_child_stop(&c, 0);
	if (r == 0)
		*out_code = sb_child_exit_code(&c);
	return r;
}

int
sb_host_attach(struct sb_host *h, const struct sb_host_attach *given,
	const struct sb_host_call *call, int *out_code, struct sb_error *err)
{
	struct sb_host_attach a = SB_HOST_ATTACH_INIT;
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r;

	memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
	r = check(&a, &why);
	if (r == 0)
		r = sb_host_call_begin(h, true, &why);
	if (r == 0) {
		s = sb_host_map_find(h, a.session, &why);
		r = s ? run(h, s, &a, call, out_code, &why) : why.code;
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_host_attach_signal(struct sb_host *h, const char *session, uint64_t number, int sig,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = sb_host_map_find(h, session, err);
	char mark[SB_HOST_PROC_MARK_MAX];

	if (!s)
		return SB_E_SESSION_NOT_FOUND;
	if (sig < 1 || sig >= NSIG)
		return sb_fail(err, SB_E_INVAL, "%d is not a signal", sig);
	(void)s->rt->ops->signal(s->rt, s->id, sb_host_proc_mark(h, s, "a", number, mark), 0, sig);
	return 0;
}
