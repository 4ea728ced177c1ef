/* SPDX-License-Identifier: MIT */
/* What sandboxes' intervals ask for: stops, pauses, archives and deletes by themselves. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define RETRY_NS (5 * INT64_C(1000000000))
#define LONG_NS (3600 * INT64_C(1000000000))
#define ARCHIVE_MAX (30 * 24 * 60) /* minutes: what 0 stands for */

/* Whether that many minutes after `from` are over; else notes when. */
static bool
over(int64_t from_ns, int64_t minutes, int64_t now_ns, int64_t *next)
{
	int64_t at = from_ns + minutes * SB_DAYTONA_MINUTE;

	if (at <= now_ns)
		return true;
	if (at < *next)
		*next = at;
	return false;
}

enum sb_daytona_due
sb_daytona_keeper_due(const json_t *rec, const char *state, int64_t active_ns, int64_t now_ns,
	int64_t *next)
{
	int64_t stopped = sb_daytona_number(rec, "stoppedNs"),
		stop = sb_daytona_number(rec, "autoStopInterval"),
		pause = sb_daytona_number(rec, "autoPauseInterval"),
		archive = sb_daytona_number(rec, "autoArchiveInterval"),
		del = sb_daytona_number(rec, "autoDeleteInterval"),
		ttl = sb_daytona_number(rec, "ttlMinutes");
	bool off = strcmp(state, "stopped") == 0;

	if (ttl > 0 && over(sb_daytona_number(rec, "createdNs"), ttl, now_ns, next))
		return SB_DAYTONA_DUE_DELETE;
	if (strcmp(state, "started") == 0) {
		if (pause > 0 && over(active_ns, pause, now_ns, next))
			return SB_DAYTONA_DUE_PAUSE;
		if (stop > 0 && over(active_ns, stop, now_ns, next))
			return SB_DAYTONA_DUE_STOP;
		return SB_DAYTONA_DUE_NOTHING;
	}
	if (!off && strcmp(state, "archived") != 0)
		return SB_DAYTONA_DUE_NOTHING;
	if (del >= 0 && over(stopped, del, now_ns, next))
		return SB_DAYTONA_DUE_DELETE;
	if (off && over(stopped, archive > 0 ? archive : ARCHIVE_MAX, now_ns, next))
		return SB_DAYTONA_DUE_ARCHIVE;
	return SB_DAYTONA_DUE_NOTHING;
}

/* False: to be tried again. */
static bool
act(struct sb_daytona *d, const json_t *old, enum sb_daytona_due due)
{
	static const char *const words[] = { "", "paused", "stopped", "archived", "deleted" };
	const struct sb_host_call call = { .deadline = sb_deadline_in(120000) };
	json_t *rec = json_deep_copy(old);
	struct sb_error err = { 0 };
	int r = rec ? 0 : sb_fail(&err, SB_E_NOMEM, "out of memory");

	if (r == 0 && due == SB_DAYTONA_DUE_PAUSE)
		r = sb_daytona_life_pause(d, rec, &call, &err);
	else if (r == 0 && due == SB_DAYTONA_DUE_STOP)
		r = sb_daytona_life_stop(d, rec, &call, &err);
	else if (r == 0 && due == SB_DAYTONA_DUE_ARCHIVE)
		r = sb_daytona_life_archive(d, rec, &err);
	else if (r == 0)
		r = sb_daytona_life_delete(d, rec, &call, &err);
	if (r == 0)
		sb_log(&d->log, SB_LOG_INFO, "daytona", "sandbox %s: its interval is over, %s",
			sb_daytona_text(old, "id"), words[due]);
	else
		sb_log(&d->log, SB_LOG_WARN, "daytona", "sandbox %s: not %s yet: %s",
			sb_daytona_text(old, "id"), words[due], err.msg);
	json_decref(rec);
	return r == 0;
}

int64_t
sb_daytona_keeper_round(void *arg)
{
	struct sb_daytona *d = arg;
	int64_t now = sb_host_now_ns(), next = now + LONG_NS;
	size_t n;
	json_t **v = sb_records_all(d->records, &n);

	for (size_t i = 0; v && i < n; i++) {
		enum sb_daytona_due due = SB_DAYTONA_DUE_NOTHING;

		if (strcmp(sb_daytona_text(v[i], "kind"), "sandbox") == 0)
			due = sb_daytona_keeper_due(v[i], sb_daytona_state(d, v[i]),
				sb_daytona_active(d, v[i]), now, &next);
		if (due != SB_DAYTONA_DUE_NOTHING && !act(d, v[i], due) && next > now + RETRY_NS)
			next = now + RETRY_NS;
		json_decref(v[i]);
	}
	free(v);
	return next;
}
