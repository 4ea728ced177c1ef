/* SPDX-License-Identifier: MIT */
/* Ends or pauses sandboxes whose time is over. */
#include "config.h"

#include <stdlib.h>

#include <compat/e2b/e2b-priv.h>

#define RETRY_NS (5 * INT64_C(1000000000))
#define LONG_S 3600

static void
end_one(struct sb_e2b *e, struct sb_e2b_record *r)
{
	const struct sb_host_call call = { .deadline = sb_deadline_in(120000) };
	struct sb_error err = { 0 };
	int res;

	if (r->pause)
		res = sb_e2b_sandbox_pause(e, r->id, &call, &err);
	else
		res = sb_host_session_destroy(e->host, r->id, true, &call, &err);
	if (res == 0 || res == SB_E_SESSION_NOT_FOUND) {
		sb_log(&e->log, SB_LOG_INFO, "e2b", "sandbox %s: its time is over, %s", r->id,
			r->pause ? "paused" : "killed");
		if (!r->pause || res < 0) {
			sb_e2b_watchers_end(e, r->id);
			sb_e2b_record_drop(e, r->id);
		}
		return;
	}
	sb_log(&e->log, SB_LOG_WARN, "e2b", "sandbox %s: later: %s", r->id, err.msg);
}

/* Whether it is running: a paused one has no time that passes. */
static bool
runs(struct sb_e2b *e, const char *id)
{
	struct sb_host_session s;
	bool yes;

	if (sb_host_session_get(e->host, id, false, &s, NULL) < 0)
		return true; /* to be dropped */
	yes = !sb_e2b_sandbox_paused(&s);
	sb_host_session_clear(&s);
	return yes;
}

/* Ends what is due; gives when to look again. */
int64_t
sb_e2b_keeper_round(void *arg)
{
	struct sb_e2b *e = arg;
	int64_t now = sb_e2b_now(), next = now + LONG_S * INT64_C(1000000000);
	size_t n;
	struct sb_e2b_record **v = sb_e2b_record_all(e, false, &n);

	for (size_t i = 0; v && i < n; i++) {
		if (v[i]->end_ns <= now && runs(e, v[i]->id)) {
			end_one(e, v[i]);
			next = next < now + RETRY_NS ? next : now + RETRY_NS;
		} else if (v[i]->end_ns > now && v[i]->end_ns < next) {
			next = v[i]->end_ns;
		}
		sb_e2b_record_free(v[i]);
	}
	free(v);
	return next;
}
