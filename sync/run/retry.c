/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/retry.h>

#include <poll.h>
#include <string.h>

#include <sync/run/sync-result.h>

/*
 * The pause before an attempt doubles from the first to the longest; this many in vain are enough
 * without --timeout.
 */
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 15000
#define FAILURES_MAX 10
/* A server that hangs up before anything worked is not waited for as long. */
#define FIRST_FAILURES_MAX 4

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
	sb_sync_result_restart(res);
	res->reconnects++;
	return true;
}
