/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/connect.h>

#include <poll.h>
#include <string.h>

#include <sync/remote/conn-int.h>
#include <sync/run/result.h>

/*
 * The pause before an attempt doubles from the first to the longest; this many in vain are enough
 * without --timeout.
 */
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 15000
#define FAILURES_MAX 10
/* A server that hangs up before anything worked is not waited for as long. */
#define FIRST_FAILURES_MAX 4

struct sb_link *
sb_connect(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_retry *t,
	struct sb_error *err)
{
	struct sb_conn *c = o->conn;
	struct sb_link *l;
	char show[512];

	if (c && !sb_conn_serves(c, e)) {
		sb_fail(err, SB_E_INVAL, "the connection to %s does not lead to %s",
			sb_conn_name(c), sb_endpoint_show(e, show, sizeof show));
		return NULL;
	}
	if (!c)
		c = sb_conn_new(e, o, false, err);
	if (!c)
		return NULL;
	l = sb_conn_take(c, o, err);
	if (!l && !o->conn)
		sb_conn_free(c);
	t->lost = !l;
	t->connected |= l && l->t;
	return l;
}

int
sb_connect_end(struct sb_link *l, int code, struct sb_sync_result *res, struct sb_retry *t,
	struct sb_error *err)
{
	struct sb_conn *c = l ? l->conn : NULL;
	uint64_t up, down;
	bool keep;

	if (!l)
		return code;
	keep = sb_conn_keeps(c);
	if (code < 0) {
		code = sb_link_explain(l, code, err);
	} else if (keep) {
		code = sb_wire_send(l->w, SB_MSG_END, NULL, 0, err);
		if (code == 0)
			code = sb_wire_flush(l->w, err);
	} else {
		code = sb_link_close(l, err);
	}
	sb_conn_link_bytes(l, &up, &down);
	res->bytes_wire_up += up - l->up;
	res->bytes_wire_down += down - l->down;
	t->lost = code < 0 && sb_conn_lost(l, code);
	t->connected |= l->t != NULL;
	res->round_trips += sb_wire_turns(l->w) - l->turns;
	sb_conn_give(l, code == 0);
	if (!keep)
		sb_conn_free(c);
	return code;
}

void
sb_retry_progress(struct sb_retry *t, uint64_t there)
{
	t->moved = there > t->best;
	if (t->moved)
		t->best = there;
}

/* A log-in that was refused will be refused again; a connection that broke may come back. */
static bool
makes_sense(const struct sb_retry *t, int code)
{
	if (code == SB_E_LOCKED)
		return t->was_lost;
	if (!t->lost)
		return false;
	switch (code) {
	case SB_E_CLOSED: return true;
	case SB_E_CONNECT:
	case SB_E_TIMEOUT:
	case SB_E_PROTO:
	case SB_E_SYS:
	case SB_E_UNAVAILABLE: return t->connected;
	default: return false;
	}
}

/* No more attempts: what was told about the last one, and what is left to do. */
static void
give_up(const struct sb_retry *t, int code, struct sb_error *err)
{
	char old[SB_ERROR_MSG_MAX];

	memcpy(old, err->msg, sizeof old);
	if (t->connected)
		sb_fail(err, code,
			"%.380s; %d tries got no further: run it again to go on, or with --timeout "
			"to try for longer",
			old, t->failures);
	else
		sb_fail(err, code, "%.400s; %d tries: sbsync doctor looks for the reason", old,
			t->failures);
}

bool
sb_retry_again(struct sb_retry *t, int code, const struct sb_sync_opts *o, struct sb_error *err,
	struct sb_sync_result *res)
{
	struct pollfd p = { .fd = sb_cancel_fd(o->cancel), .events = POLLIN };
	int64_t pause;

	if (!makes_sense(t, code) || sb_cancel_requested(o->cancel))
		return false;
	t->failures = t->moved ? 0 : t->failures + 1;
	t->moved = false;
	t->was_lost |= t->lost;
	if (t->failures > (t->connected ? FAILURES_MAX : FIRST_FAILURES_MAX) && !o->timeout_ms) {
		give_up(t, code, err);
		return false;
	}
	pause = t->failures > 8 ? PAUSE_MAX_MS : PAUSE_MIN_MS << t->failures;
	if (pause > PAUSE_MAX_MS)
		pause = PAUSE_MAX_MS;
	sb_log(&o->log, SB_LOG_WARN, "connect", "%s; going on in %lld.%lld s", err->msg,
		(long long)pause / 1000, (long long)pause / 100 % 10);
	(void)poll(&p, 1, (int)pause);
	if (sb_cancel_requested(o->cancel))
		return false;
	sb_result_restart(res);
	res->reconnects++;
	return true;
}
