/* SPDX-License-Identifier: MIT */
/* A sandbox from one state to the next: the session first, then the record, then the event. */
#include "config.h"

#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

static int
begin(struct sb_daytona *d, const json_t *rec, const char *transit, struct sb_error *err)
{
	const char *was = sb_daytona_state(d, rec);

	if (!sb_daytona_transit(d, sb_daytona_text(rec, "id"), transit))
		return sb_fail(err, SB_E_INVALID_STATE, "Sandbox state change in progress");
	sb_daytona_event_tell(d, "sandbox.state.updated", rec, was, transit);
	return 0;
}

/* Writes down what was reached; `r` is how it went. */
static int
arrive(struct sb_daytona *d, json_t *rec, const char *transit, const char *state, int r,
	struct sb_error *err)
{
	int64_t now = sb_host_now_ns();

	if (r == 0) {
		r = sb_daytona_record_change(d, rec,
			json_pack("{s:s, s:I, s:I}", "state", state, "updatedNs", (json_int_t)now,
				strcmp(state, "started") == 0 ? "activeNs" : "stoppedNs",
				(json_int_t)now),
			err);
	}
	sb_daytona_arrive(d, sb_daytona_text(rec, "id"));
	sb_daytona_event_tell(d, "sandbox.state.updated", rec, transit, sb_daytona_state(d, rec));
	/* It may be due at once: deleted when stopped. */
	sb_alarm_wake(d->keeper);
	return r;
}

int
sb_daytona_life_create(struct sb_daytona *d, json_t *rec, struct sb_host_create_opts *o,
	const char *from, const struct sb_host_call *call, struct sb_error *err)
{
	const char *id = sb_daytona_text(rec, "id"), *kind = sb_daytona_text(rec, "kind");
	struct sb_host_session s;
	json_t *other;
	int r = 0;

	o->id = id;
	(void)pthread_mutex_lock(&d->making);
	other = sb_daytona_record_find(d, kind, sb_daytona_text(rec, "name"));
	if (other)
		r = sb_fail(err, SB_E_EXISTS, "%s with name %s already exists",
			strcmp(kind, "sandbox") == 0 ? "Sandbox" : "Snapshot",
			sb_daytona_text(rec, "name"));
	if (r == 0) {
		(void)sb_daytona_transit(d, id, "creating");
		r = sb_daytona_record_save(d, rec, err);
		if (r < 0)
			sb_daytona_arrive(d, id);
	}
	(void)pthread_mutex_unlock(&d->making);
	json_decref(other);
	if (r < 0)
		return r;
	r = from ? sb_host_session_fork(d->host, from, NULL, o, call, &s, err) :
		   sb_host_session_create(d->host, o, call, &s, err);
	sb_daytona_arrive(d, id);
	if (r < 0) {
		sb_daytona_record_drop(d, id);
		return r;
	}
	sb_host_session_clear(&s);
	if (strcmp(kind, "sandbox") == 0)
		sb_daytona_event_tell(d, "sandbox.created", rec, NULL, NULL);
	return 0;
}

int
sb_daytona_life_start(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err)
{
	const char *was = sb_daytona_state(d, rec);
	const char *transit = strcmp(was, "archived") == 0 ? "restoring" :
		strcmp(was, "paused") == 0                 ? "resuming" :
							     "starting";
	int r = begin(d, rec, transit, err);

	if (r < 0)
		return r;
	r = sb_host_session_resume(d->host, sb_daytona_text(rec, "id"), call, err);
	return arrive(d, rec, transit, "started", r, err);
}

int
sb_daytona_life_stop(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err)
{
	const char *id = sb_daytona_text(rec, "id");
	bool paused = strcmp(sb_daytona_state(d, rec), "paused") == 0;
	int r = begin(d, rec, "stopping", err);

	if (r < 0)
		return r;
	if (paused)
		r = sb_host_session_resume(d->host, id, call, err);
	if (r == 0)
		r = sb_host_session_halt(d->host, id, call, err);
	return arrive(d, rec, "stopping", "stopped", r, err);
}

int
sb_daytona_life_pause(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r = begin(d, rec, "pausing", err);

	if (r < 0)
		return r;
	r = sb_host_session_pause(d->host, sb_daytona_text(rec, "id"), call, err);
	return arrive(d, rec, "pausing", "paused", r, err);
}

/* A stopped sandbox is nothing but its files, and there is no colder place for them. */
int
sb_daytona_life_archive(struct sb_daytona *d, json_t *rec, struct sb_error *err)
{
	int64_t stopped = sb_daytona_number(rec, "stoppedNs");
	int r = begin(d, rec, "archiving", err);

	if (r < 0)
		return r;
	r = arrive(d, rec, "archiving", "archived", 0, err);
	/* The time until it is deleted began when it stopped. */
	return r < 0 ? r :
		       sb_daytona_record_change(d, rec,
			       json_pack("{s:I}", "stoppedNs", (json_int_t)stopped), err);
}

int
sb_daytona_life_delete(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_autofree char *id = strdup(sb_daytona_text(rec, "id"));
	const char *was = sb_daytona_state(d, rec);
	int r;

	if (!id)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	/* Whatever else is under way with it: a destroy wins. */
	sb_daytona_event_tell(d, "sandbox.state.updated", rec, was, "destroying");
	r = sb_host_session_destroy(d->host, id, true, call, err);
	/* Once it is begun, the host finishes it. */
	if (r < 0 && r != SB_E_SESSION_NOT_FOUND && r != SB_E_TIMEOUT && r != SB_E_CANCELED)
		return r;
	sb_daytona_record_drop(d, id);
	sb_daytona_event_tell(d, "sandbox.state.updated", rec, "destroying", "destroyed");
	return 0;
}
