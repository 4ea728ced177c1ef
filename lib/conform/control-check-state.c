/* SPDX-License-Identifier: MIT */
/* Checks of controls: sandboxes are paused, put back and forked, where that is possible. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <conform/control-check-priv.h>

static int
state_is(struct sb_control_check *k, const char *id, enum sb_control_state want,
	struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int r = sb_control_get(k->c, id, &call, &s, err);

	return r == 0 && s.state != want ?
		broken(err, "%s is %s, must be %s", id, sb_control_state_name(s.state),
			sb_control_state_name(want)) :
		r;
}

static int
pause_twice(struct sb_control_check *k, const char *id, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	int r = sb_control_pause(k->c, id, false, &call, err);

	if (r == 0)
		r = sb_control_pause(k->c, id, false, &call, err);
	return r == 0 ? state_is(k, id, SB_CONTROL_PAUSED, err) : r;
}

static int
resume_twice(struct sb_control_check *k, const char *id, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	int r = sb_control_resume(k->c, id, &call, err);

	if (r == 0)
		r = sb_control_resume(k->c, id, &call, err);
	return r == 0 ? state_is(k, id, SB_CONTROL_RUNNING, err) : r;
}

static int
pause_resume(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p;
	struct sb_error why = { 0 };
	int r;

	if (!k->caps.pause)
		return sb_control_check_skip(err, "this control cannot pause");
	r = sb_control_check_plain(k, &s, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "echo here >file", 0, err);
	if (r == 0)
		r = pause_twice(k, s.id, err);
	o.sandbox = s.id;
	o.binary = "true";
	if (r == 0)
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why),
			SB_E_SESSION_PAUSED, "launch in a paused one", &why, err);
	if (r == 0)
		r = resume_twice(k, s.id, err);
	return r == 0 ? sb_control_check_sh_is(k, s.id, "test here = \"$(cat file)\"", 0, err) : r;
}

/* A process counts on after a pause, or has ended, as the capabilities say. */
static int
pause_keeps(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const args[] = { "-c", "while :; do sleep 0.05; done", NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p = { 0 };
	int r;

	if (!k->caps.pause)
		return sb_control_check_skip(err, "this control cannot pause");
	r = sb_control_check_plain(k, &s, err);
	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	if (r == 0)
		r = sb_control_launch(k->c, &o, &call, &p, err);
	if (r == 0)
		r = pause_twice(k, s.id, err);
	if (r == 0)
		r = resume_twice(k, s.id, err);
	if (r == 0)
		r = sb_control_status(k->c, s.id, p.id, &call, &p, err);
	if (r == 0 && (p.status == SB_CONTROL_UP) != k->caps.pause_keeps)
		r = broken(err, "a process is %s after a pause, and capabilities say otherwise",
			sb_control_status_name(p.status));
	return r;
}

/* What capabilities deny fails by name, and does nothing. */
static int
refused(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 };
	struct sb_error why = { 0 };
	int r = sb_control_check_plain(k, &s, err), tried = 0;

	if (r == 0 && !k->caps.snapshots && ++tried) {
		int got = sb_control_snapshot(k->c, s.id, "one", &call, &why);

		r = sb_control_check_fails(got == SB_E_NO_SNAPSHOTS ? SB_E_UNSUPPORTED : got,
			SB_E_UNSUPPORTED, "snapshot", &why, err);
	}
	if (r == 0 && !k->caps.fork && ++tried) {
		int got = sb_control_fork(k->c, s.id, NULL, NULL, &call, &t, &why);

		if (got == 0)
			sb_strlist_add(&k->made, t.id);
		r = sb_control_check_fails(got == SB_E_NO_SNAPSHOTS ? SB_E_UNSUPPORTED : got,
			SB_E_UNSUPPORTED, "fork", &why, err);
	}
	if (r == 0 && !k->caps.pause && ++tried)
		r = sb_control_check_fails(sb_control_pause(k->c, s.id, false, &call, &why),
			SB_E_UNSUPPORTED, "pause", &why, err);
	if (r == 0 && !k->caps.deep_pause && ++tried)
		r = sb_control_check_fails(sb_control_pause(k->c, s.id, true, &call, &why),
			SB_E_UNSUPPORTED, "deep pause", &why, err);
	if (r == 0 && !tried)
		return sb_control_check_skip(err, "this control can everything");
	return r == 0 ? state_is(k, s.id, SB_CONTROL_RUNNING, err) : r;
}

static int
rollback(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_error why = { 0 };
	int r;

	if (!k->caps.rollback)
		return sb_control_check_skip(err, "this control has no rollback");
	r = sb_control_check_plain(k, &s, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "echo old >file", 0, err);
	if (r == 0)
		r = sb_control_snapshot(k->c, s.id, "before", &call, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_snapshot(k->c, s.id, "before", &call, &why),
			SB_E_SNAPSHOT_EXISTS, "a second snapshot of the name", &why, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "echo new >file", 0, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_rollback(k->c, s.id, "missing", &call, &why),
			SB_E_SNAPSHOT_NOT_FOUND, "rollback to none", &why, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "test new = \"$(cat file)\"", 0, err);
	if (r == 0)
		r = sb_control_rollback(k->c, s.id, "before", &call, err);
	return r == 0 ? sb_control_check_sh_is(k, s.id, "test old = \"$(cat file)\"", 0, err) : r;
}

static int
fork_one(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 }, u = { 0 };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	char key[64];
	int r;

	if (!k->caps.fork)
		return sb_control_check_skip(err, "this control cannot fork");
	sb_control_check_key(k, key);
	o.key = key;
	r = sb_control_check_plain(k, &s, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "echo both >file", 0, err);
	if (r == 0)
		r = sb_control_fork(k->c, s.id, NULL, &o, &call, &t, err);
	if (r < 0)
		return r;
	sb_strlist_add(&k->made, t.id);
	if (t.labels.n != s.labels.n)
		return broken(err, "the fork has not the labels of its source");
	r = sb_control_fork(k->c, s.id, NULL, &o, &call, &u, err);
	if (r == 0 && strcmp(t.id, u.id) != 0) {
		sb_strlist_add(&k->made, u.id);
		return broken(err, "one key gave two forks");
	}
	if (r == 0)
		r = sb_control_check_sh_is(k, t.id, "test both = \"$(cat file)\" && echo t >file",
			0, err);
	return r == 0 ? sb_control_check_sh_is(k, s.id, "test both = \"$(cat file)\"", 0, err) : r;
}

const struct sb_control_check_row sb_control_check_state_rows[] = {
	{ "pause", "nothing starts in a paused one, and nothing is lost", pause_resume },
	{ "pause-keeps", "processes go on after a pause, or end, as it says", pause_keeps },
	{ "refuse-calls", "calls it cannot do are refused by name", refused },
	{ "rollback", "to a snapshot that is there, and else nothing happens", rollback },
	{ "fork", "has the files and labels of its source, and is another", fork_one },
	{ NULL, NULL, NULL },
};
