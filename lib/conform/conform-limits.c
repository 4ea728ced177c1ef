/* SPDX-License-Identifier: MIT */
/*
 * Checks that every call obeys its deadline and its cancel token, and that calls run in parallel.
 */
#include "config.h"

#include <conform/conform-priv.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that has returned by then did not hang. */
#define HUNG_MS 30000
#define SHORT_MS 250

/* Every call of the contract, each once, with the same limits. */
enum which {
	CALL_PREPARE,
	CALL_PUSH,
	CALL_PULL,
	CALL_DESTROY,
	CALL_FIND,
	CALL_LAUNCH,
	CALL_WAIT,
	CALL_READ,
	CALL_WRITE,
	CALL_RESOLVE,
	CALL_DECIDE,
	CALL_CREATE,
	CALL_OUTPUT,
	CALL_TERM_WAIT,
	CALL_KILL,
	CALL_COUNT,
};

static const char *const names[CALL_COUNT] = { "prepare", "sync_to_runtime", "sync_from_runtime",
	"destroy", "find", "launch", "wait", "read_text_file", "write_text_file", "resolve_path",
	"permission_decision", "terminal_create", "terminal_output", "terminal_wait",
	"terminal_kill" };

/* A sandbox with something running in it. */
struct busy {
	struct sb_conform_sandbox *b;
	struct sb_handle *h;
	char term[SB_TERMINAL_ID_MAX + 1];
};

static int
make_busy(struct sb_conform *c, struct busy *x, struct sb_error *err)
{
	const char *argv[] = { "cat", NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_terminal_spec term = SB_TERMINAL_SPEC_INIT;
	struct sb_call call = sb_conform_call(c);
	int r;

	x->b = sb_conform_ready(c, false, err);
	if (!x->b || sb_conform_local_write(x->b, "a", "1", err) < 0 ||
		sb_conform_push(x->b, err) < 0)
		return SB_E_STATE;
	spec.argv = argv;
	term.command = "sleep 1000";
	r = sb_launcher_launch(x->b->prepared.launcher, &spec, &call, &x->h, err);
	if (r == 0)
		r = x->b->prepared.tools->ops->terminal_create(x->b->prepared.tools, &term, &call,
			x->term, err);
	return r;
}

static int
try_life(struct busy *x, enum which k, const struct sb_call *call, struct sb_error *err)
{
	struct sb_provider *p = x->b->c->o->provider;
	struct sb_find_request req = SB_FIND_REQUEST_INIT;
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	sb_auto(sb_prepared) struct sb_prepared made = { 0 };
	sb_auto(sb_state) struct sb_state found = SB_STATE_INIT;
	struct sb_sync_result res = { 0 };
	int r;

	switch (k) {
	case CALL_PREPARE: return sb_provider_prepare(p, &x->b->req, call, &made, err);
	case CALL_DESTROY: return sb_provider_destroy(p, &x->b->prepared.state, false, call, err);
	case CALL_FIND:
		req.sandbox_id = x->b->id;
		req.local_root = x->b->local;
		req.profile = &x->b->profile;
		return sb_provider_find(p, &req, call, &found, err);
	default:
		o.reason = k == CALL_PUSH ? SB_WHEN_START : SB_WHEN_STOP;
		r = sb_provider_sync(p, &x->b->prepared.state,
			k == CALL_PUSH ? SB_WAY_TO_RUNTIME : SB_WAY_FROM_RUNTIME, &o, call, &res,
			err);
		sb_sync_result_free(&res);
		return r;
	}
}

static int
try_tools(struct busy *x, enum which k, const struct sb_call *call, struct sb_error *err)
{
	struct sb_tool_host *t = x->b->prepared.tools;
	struct sb_permission_request req = SB_PERMISSION_REQUEST_INIT;
	struct sb_terminal_spec spec = SB_TERMINAL_SPEC_INIT;
	struct sb_terminal_output out = { 0 };
	const char *in[] = { "a", NULL };
	char id[SB_TERMINAL_ID_MAX + 1];
	sb_autofree char *text = NULL;
	struct sb_ended how;
	enum sb_decision d;
	size_t len;
	bool ask;
	int r;

	switch (k) {
	case CALL_READ: return t->ops->read_text_file(t, "a", call, &text, &len, err);
	case CALL_WRITE: return t->ops->write_text_file(t, "w", "1", 1, call, err);
	case CALL_RESOLVE: return t->ops->resolve_path(t, "a", call, &text, err);
	case CALL_DECIDE:
		req.locations = in;
		return t->ops->permission_decision(t, &req, call, &d, &ask, err);
	case CALL_CREATE:
		spec.command = "true";
		return t->ops->terminal_create(t, &spec, call, id, err);
	case CALL_OUTPUT:
		r = t->ops->terminal_output(t, x->term, call, &out, err);
		sb_terminal_output_free(&out);
		return r;
	case CALL_TERM_WAIT: return t->ops->terminal_wait(t, x->term, call, &how, err);
	default: return t->ops->terminal_kill(t, x->term, call, err);
	}
}

static int
try_call(struct busy *x, enum which k, const struct sb_call *call, struct sb_error *err)
{
	const char *argv[] = { "true", NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_handle *h = NULL;
	struct sb_ended how;
	int r;

	if (k <= CALL_FIND)
		return try_life(x, k, call, err);
	if (k >= CALL_READ)
		return try_tools(x, k, call, err);
	if (k == CALL_WAIT)
		return sb_handle_wait(x->h, call, &how, err);
	spec.argv = argv;
	r = sb_launcher_launch(x->b->prepared.launcher, &spec, call, &h, err);
	sb_handle_free(h);
	return r;
}

/* Each call with a limit that is over already. */
static int
over_before(struct sb_conform *c, const struct sb_cancel *cancel, sb_deadline d, int code,
	struct sb_error *err)
{
	struct sb_call call = SB_CALL_INIT;
	struct busy x = { 0 };
	int r = make_busy(c, &x, err);

	call.cancel = cancel;
	call.deadline = d;
	for (int k = 0; r == 0 && k < CALL_COUNT; k++) {
		struct sb_error why = { 0 };

		if (k == CALL_FIND && !c->caps.find)
			continue;
		r = sb_conform_must_fail(try_call(&x, (enum which)k, &call, &why), code, names[k],
			&why, err);
	}
	/* Nothing was done, and everything still works. */
	if (r == 0)
		r = sb_conform_sh_is(x.b, "ls -A", "a\n", err);
	if (r == 0)
		r = sb_conform_pull(x.b, err);
	sb_handle_free(x.h);
	return r;
}

static int
check_cancel(struct sb_conform *c, struct sb_error *err)
{
	struct sb_cancel *cancel = sb_cancel_new(err);
	int r;

	if (!cancel)
		return SB_E_NOMEM;
	sb_cancel_request(cancel);
	r = over_before(c, cancel, SB_NEVER, SB_E_CANCELED, err);
	sb_cancel_free(cancel);
	return r;
}

static int
check_deadline(struct sb_conform *c, struct sb_error *err)
{
	return over_before(c, NULL, sb_now_ms() - 1, SB_E_TIMEOUT, err);
}

/* A cancel that comes in the middle. */
struct later {
	struct sb_cancel *cancel;
	int ms;
};

static void *
cancel_later(void *arg)
{
	struct later *l = arg;

	(void)poll(NULL, 0, l->ms);
	sb_cancel_request(l->cancel);
	return NULL;
}

static int
cut_push(struct sb_conform_sandbox *b, int ms, struct sb_error *err)
{
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	struct later l = { .cancel = sb_cancel_new(err), .ms = ms };
	struct sb_call call = sb_conform_call(b->c);
	struct sb_sync_result res = { 0 };
	struct sb_error why = { 0 };
	pthread_t t;
	int r;

	if (!l.cancel)
		return SB_E_NOMEM;
	if (pthread_create(&t, NULL, cancel_later, &l) != 0) {
		sb_cancel_free(l.cancel);
		return sb_fail(err, SB_E_SYS, "thread");
	}
	o.reason = SB_WHEN_START;
	call.cancel = l.cancel;
	r = sb_provider_sync(b->c->o->provider, &b->prepared.state, SB_WAY_TO_RUNTIME, &o, &call,
		&res, &why);
	sb_sync_result_free(&res);
	(void)pthread_join(t, NULL);
	sb_cancel_free(l.cancel);
	if (r < 0 && r != SB_E_CANCELED)
		return sb_fail(err, r, "a push canceled after %d ms fails with %s: %s", ms,
			sb_code_name(r), why.msg);
	return 0;
}

static int
check_cut(struct sb_conform *c, struct sb_error *err)
{
	static const int when[] = { 3, 15, 40, 90 };
	struct sb_conform_sandbox *b;
	int r = 0;

	if (!c->caps.syncs)
		return sb_conform_skip(err, "the runtime has no files of its own");
	b = sb_conform_ready(c, false, err);
	if (!b ||
		sb_conform_local_sh(b,
			"i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo file $i >f$i; done; head "
			"-c 2000000 /dev/urandom >big",
			NULL, err) < 0)
		return SB_E_STATE;
	for (size_t i = 0; r == 0 && i < sizeof when / sizeof *when; i++)
		r = cut_push(b, when[i], err);
	/* The next one finishes it. */
	if (r == 0)
		r = sb_conform_push(b, err);
	if (r == 0)
		r = sb_conform_sh_is(b,
			"ls | wc -l | tr -d ' '; cat f1 f300; wc -c <big | tr -d ' '",
			"301\nfile 1\nfile 300\n2000000\n", err);
	return r;
}

static int
check_hang(struct sb_conform *c, struct sb_error *err)
{
	struct busy x = { 0 };
	int r;

	if (!c->o->hang)
		return sb_conform_skip(err, "nobody says how to make the other side hang");
	r = make_busy(c, &x, err);
	if (r < 0) {
		sb_handle_free(x.h);
		return r;
	}
	r = c->o->hang(true, c->o->arg, err);
	for (int k = 0; r == 0 && k < CALL_COUNT; k++) {
		struct sb_call call = sb_call_within(NULL, SHORT_MS);
		struct sb_error why = { 0 };
		int64_t start = sb_now_ms();
		int got;

		if (k == CALL_FIND && !c->caps.find)
			continue;
		/* What has no files of its own need not be asked. */
		if ((k == CALL_PUSH || k == CALL_PULL) && !c->caps.syncs)
			continue;
		got = try_call(&x, (enum which)k, &call, &why);
		if (sb_now_ms() - start > HUNG_MS)
			r = broken(err,
				"%s with a hung peer returns after %lld ms, its deadline was %d",
				names[k], (long long)(sb_now_ms() - start), SHORT_MS);
		else if (got == 0)
			r = broken(err, "%s succeeds although the other side hangs", names[k]);
	}
	if (c->o->hang(false, c->o->arg, r < 0 ? NULL : err) < 0 && r == 0)
		r = SB_E_STATE;
	sb_handle_free(x.h);
	/* It goes on as if nothing had been. */
	if (r == 0)
		r = sb_conform_prepare(x.b, err);
	if (r == 0)
		r = sb_conform_sh_is(x.b, "cat a; printf 2 >b", "1", err);
	if (r == 0)
		r = sb_conform_pull(x.b, err);
	return r < 0 ? r : sb_conform_local_is(x.b, "b", "2", err);
}

const struct sb_conform_check sb_conform_limits_checks[] = {
	{ "cancel", "every call heeds a cancel that was asked for before", check_cancel },
	{ "deadline", "every call heeds a deadline that has passed", check_deadline },
	{ "cancel-push", "a push that is cut is finished by the next", check_cut },
	{ "hang", "every call returns when the other side hangs", check_hang },
	{ NULL, NULL, NULL },
};
