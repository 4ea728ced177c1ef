/* SPDX-License-Identifier: MIT */
/* What a sandbox has besides its session, and what is known of it only while we run. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define SAVE_ACTIVITY_NS (30 * INT64_C(1000000000))

const char *
sb_daytona_text(const json_t *rec, const char *name)
{
	const char *s = json_string_value(json_object_get(rec, name));

	return s ? s : "";
}

int64_t
sb_daytona_number(const json_t *rec, const char *name)
{
	return json_integer_value(json_object_get(rec, name));
}

void
sb_daytona_set(json_t *rec, const char *name, const char *value)
{
	(void)json_object_set_new(rec, name, sb_answer_text(value));
}

void
sb_daytona_set_number(json_t *rec, const char *name, int64_t value)
{
	(void)json_object_set_new(rec, name, json_integer(value));
}

void
sb_daytona_uuid(char out[SB_DAYTONA_ID_LEN + 1])
{
	uint8_t b[16] = { 0 };
	char hex[33];

	(void)sb_random(b, sizeof b, NULL);
	b[6] = (uint8_t)((b[6] & 15) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	(void)sb_str_hex(b, sizeof b, hex);
	(void)snprintf(out, SB_DAYTONA_ID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
		hex + 12, hex + 16, hex + 20);
}

json_t *
sb_daytona_record_new(const char *kind, struct sb_error *err)
{
	char id[SB_DAYTONA_ID_LEN + 1], token[33], key[65];
	int64_t now = sb_host_now_ns();
	json_t *rec = NULL;

	sb_daytona_uuid(id);
	if (sb_keys_make(token, 32, err) < 0 || sb_keys_make(key, 64, err) < 0)
		return NULL;
	rec = json_pack("{s:s, s:s, s:s, s:s, s:s, s:{}, s:s, s:s, s:s, s:[], s:I, s:I, s:I, s:i,"
			" s:i, s:i, s:i, s:i, s:b, s:b}",
		"id", id, "kind", kind, "name", id, "state", "started", "snapshot", "", "env",
		"token", token, "signingKey", key, "parent", "", "ssh", "createdNs",
		(json_int_t)now, "updatedNs", (json_int_t)now, "activeNs", (json_int_t)now,
		"autoStopInterval", 15, "autoPauseInterval", 0, "autoArchiveInterval", 7 * 24 * 60,
		"autoDeleteInterval", -1, "ttlMinutes", 0, "public", 0, "networkBlockAll", 0);
	explicit_bzero(token, sizeof token);
	explicit_bzero(key, sizeof key);
	if (!rec)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return rec;
}

json_t *
sb_daytona_record_find(struct sb_daytona *d, const char *kind, const char *id_or_name)
{
	json_t *o = sb_records_get(d->records, id_or_name), *out = NULL, **v;
	size_t n;

	if (o) {
		if (strcmp(sb_daytona_text(o, "kind"), kind) == 0)
			out = json_deep_copy(o);
		json_decref(o);
		return out;
	}
	v = sb_records_all(d->records, &n);
	for (size_t i = 0; v && i < n; i++) {
		if (!out && strcmp(sb_daytona_text(v[i], "name"), id_or_name) == 0 &&
			strcmp(sb_daytona_text(v[i], "kind"), kind) == 0)
			out = json_deep_copy(v[i]);
		json_decref(v[i]);
	}
	free(v);
	return out;
}

int
sb_daytona_record_save(struct sb_daytona *d, const json_t *rec, struct sb_error *err)
{
	int r = sb_records_put(d->records, sb_daytona_text(rec, "id"), json_deep_copy(rec), err);

	if (r == 0)
		sb_alarm_wake(d->keeper);
	return r;
}

static void
apply(json_t *rec, const json_t *changes)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)changes, name, value)
	{
		if (json_is_null(value))
			(void)json_object_del(rec, name);
		else
			(void)json_object_set_new(rec, name, json_deep_copy(value));
	}
}

int
sb_daytona_record_change(struct sb_daytona *d, json_t *rec, json_t *changes, struct sb_error *err)
{
	json_t *old, *now;
	int r;

	(void)pthread_mutex_lock(&d->edit);
	old = sb_records_get(d->records, sb_daytona_text(rec, "id"));
	now = old ? json_deep_copy(old) : NULL;
	if (!old) {
		r = sb_fail(err, SB_E_SESSION_NOT_FOUND, "the sandbox has gone");
	} else if (!now || !changes) {
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	} else {
		apply(now, changes);
		r = sb_daytona_record_save(d, now, err);
	}
	(void)pthread_mutex_unlock(&d->edit);
	if (r == 0)
		apply(rec, changes);
	json_decref(old);
	json_decref(now);
	json_decref(changes);
	return r;
}

void
sb_daytona_record_drop(struct sb_daytona *d, const char *id)
{
	struct sb_daytona_now **p;

	sb_records_drop(d->records, id);
	(void)pthread_mutex_lock(&d->mu);
	for (p = &d->now; *p && strcmp((*p)->id, id) != 0; p = &(*p)->next)
		;
	if (*p && (*p)->users == 0 && !(*p)->transit) {
		struct sb_daytona_now *n = *p;

		*p = n->next;
		free(n);
	}
	(void)pthread_mutex_unlock(&d->mu);
}

/* A record whose session is gone was left by a crash, or the session was destroyed elsewhere. */
static bool
wanted(const char *id, const json_t *o, void *arg)
{
	struct sb_daytona *d = arg;
	struct sb_host_session s;

	(void)o;
	if (sb_host_session_get(d->host, id, false, &s, NULL) < 0)
		return false;
	sb_host_session_clear(&s);
	return true;
}

int
sb_daytona_record_load(struct sb_daytona *d, struct sb_error *err)
{
	sb_autofree char *dir = sb_str_printf("%s/daytona", sb_host_options(d->host)->state_dir);

	if (!dir)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	d->records = sb_records_open(dir, "daytona", &d->log, wanted, d, err);
	return d->records ? 0 : SB_E_SYS;
}

/* With `mu` held; makes it. NULL: out of memory. */
static struct sb_daytona_now *
now_of(struct sb_daytona *d, const char *id)
{
	struct sb_daytona_now *n = d->now;

	while (n && strcmp(n->id, id) != 0)
		n = n->next;
	if (!n && (n = calloc(1, sizeof *n))) {
		(void)snprintf(n->id, sizeof n->id, "%s", id);
		n->next = d->now;
		d->now = n;
	}
	return n;
}

void
sb_daytona_enter(struct sb_daytona *d, const char *id)
{
	struct sb_daytona_now *n;

	(void)pthread_mutex_lock(&d->mu);
	n = now_of(d, id);
	if (n) {
		n->users++;
		n->active_ns = sb_host_now_ns();
	}
	(void)pthread_mutex_unlock(&d->mu);
}

void
sb_daytona_leave(struct sb_daytona *d, const char *id)
{
	int64_t active = 0;
	struct sb_daytona_now *n;
	json_t *o;

	(void)pthread_mutex_lock(&d->mu);
	n = now_of(d, id);
	if (n && n->users > 0) {
		n->users--;
		n->active_ns = active = sb_host_now_ns();
	}
	(void)pthread_mutex_unlock(&d->mu);
	/* On record now and then, so that a restart does not make it look idle for long. */
	o = active ? sb_records_get(d->records, id) : NULL;
	if (o && active - sb_daytona_number(o, "activeNs") > SAVE_ACTIVITY_NS) {
		json_t *rec = json_deep_copy(o);

		(void)sb_daytona_record_change(d, rec,
			json_pack("{s:I}", "activeNs", (json_int_t)active), NULL);
		json_decref(rec);
	}
	json_decref(o);
}

int64_t
sb_daytona_active(struct sb_daytona *d, const json_t *rec)
{
	int64_t active = sb_daytona_number(rec, "activeNs");

	(void)pthread_mutex_lock(&d->mu);
	for (struct sb_daytona_now *n = d->now; n; n = n->next)
		if (strcmp(n->id, sb_daytona_text(rec, "id")) == 0) {
			if (n->users > 0)
				active = sb_host_now_ns();
			else if (n->active_ns > active)
				active = n->active_ns;
		}
	(void)pthread_mutex_unlock(&d->mu);
	return active;
}

bool
sb_daytona_transit(struct sb_daytona *d, const char *id, const char *state)
{
	struct sb_daytona_now *n;
	bool ok;

	(void)pthread_mutex_lock(&d->mu);
	n = now_of(d, id);
	ok = n && !n->transit;
	if (ok)
		n->transit = state;
	(void)pthread_mutex_unlock(&d->mu);
	return ok;
}

void
sb_daytona_arrive(struct sb_daytona *d, const char *id)
{
	struct sb_daytona_now *n;

	(void)pthread_mutex_lock(&d->mu);
	n = now_of(d, id);
	if (n)
		n->transit = NULL;
	(void)pthread_mutex_unlock(&d->mu);
}

const char *
sb_daytona_state(struct sb_daytona *d, const json_t *rec)
{
	static const char *const known[] = { "started", "stopped", "paused", "archived", NULL };
	const char *id = sb_daytona_text(rec, "id"), *kept = "unknown", *transit = NULL;
	struct sb_host_session s;
	enum sb_host_state state;

	(void)pthread_mutex_lock(&d->mu);
	for (struct sb_daytona_now *n = d->now; n; n = n->next)
		if (strcmp(n->id, id) == 0)
			transit = n->transit;
	(void)pthread_mutex_unlock(&d->mu);
	if (transit)
		return transit;
	for (size_t i = 0; known[i]; i++)
		if (strcmp(known[i], sb_daytona_text(rec, "state")) == 0)
			kept = known[i];
	if (sb_host_session_get(d->host, id, false, &s, NULL) < 0)
		return "destroyed";
	state = s.state;
	sb_host_session_clear(&s);
	switch (state) {
	case SB_HOST_DESTROYING: return "destroying";
	case SB_HOST_FAILED: return "error";
	case SB_HOST_CREATING: return "creating";
	/* Others may have paused or resumed the session. */
	case SB_HOST_COOLING:
	case SB_HOST_COLD:
	case SB_HOST_WARMING:
	case SB_HOST_PAUSED:
	case SB_HOST_RESUMING: return strcmp(kept, "started") == 0 ? "paused" : kept;
	default: return "started";
	}
}
