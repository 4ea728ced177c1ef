/* SPDX-License-Identifier: MIT */
/* What deep pauses and resumes have in common: opening, the log of a session, leftovers. */
#include "config.h"

#include <host/host-cold.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>
#include <base/random.h>
#include <base/str.h>
#include <base/thread.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <sb/host-cold.h>

/* In the state directory: what this host is called in cold storage. */
#define NOTE "cold-host"
#define NOTE_LEN 32
#define REST_MS 60000
#define SLOT_WAIT_MS 100
#define METER_MS 1000

/* Random and kept, for state directories of two machines may look alike. */
static int
own_name(struct sb_host *h, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/" NOTE, h->o.state_dir);
	uint8_t raw[NOTE_LEN / 2];
	sb_auto(sb_buf) struct sb_buf text;
	struct sb_error why = { 0 };
	int r;

	sb_buf_init(&text, 2 * NOTE_LEN);
	if (!path)
		return sb_fail(err, SB_E_NOMEM, "cold storage");
	r = sb_file_read(AT_FDCWD, path, 2 * NOTE_LEN, &text, &why);
	if (r == 0) {
		text.data[strcspn((char *)text.data, "\n")] = '\0';
		(void)snprintf(h->cold_host, sizeof h->cold_host, "%.32s", (char *)text.data);
		return sb_str_unhex(h->cold_host, raw, sizeof raw) ?
			0 :
			sb_fail(err, SB_E_CORRUPT, "%s is damaged", path);
	}
	if (r != SB_E_NOTFOUND)
		return sb_fail(err, r, "%s", why.msg);
	r = sb_random(raw, sizeof raw, err);
	if (r < 0)
		return r;
	(void)sb_str_hex(raw, sizeof raw, h->cold_host);
	return sb_file_replace(AT_FDCWD, path, h->cold_host, NOTE_LEN, 0600, err);
}

int
sb_host_cold_open(struct sb_host *h, struct sb_error *err)
{
	struct sb_cold_opts o = SB_COLD_OPTS_INIT;
	int r;

	if (!h->o.cold_store)
		return 0;
	o.url = h->o.cold_store;
	o.space = h->o.cold_space;
	o.key_file = h->o.cold_key_file;
	o.rate = h->o.cold_rate;
	o.transfers = h->o.cold_transfers;
	o.log = h->o.log;
	r = own_name(h, err);
	if (r < 0)
		return r;
	h->cold = sb_cold_open(&o, err);
	return h->cold ? 0 : err ? err->code : SB_E_INVAL;
}

int
sb_host_cold_need(const struct sb_host *h, struct sb_error *err)
{
	if (!h->cold)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this host has no cold storage: start it with --cold-store");
	return h->st->ops->send ? 0 :
				  sb_fail(err, SB_E_UNSUPPORTED,
					  "storage %s cannot go to cold storage: use overlay, "
					  "btrfs or zfs",
					  h->st->ops->name);
}

/* The archive is anybody's: the log says so, by us or by whoever has it already. */
static int
release(struct sb_host *h, struct sb_hsess *s, const char *dir, const struct sb_host_call *call,
	bool *theirs, struct sb_error *err)
{
	struct sb_coldlog last, mine = { .kind = SB_COLDLOG_COLD };
	int r = sb_coldlog_last(h->cold->store, dir, &last, call, err);

	*theirs = false;
	if (r < 0)
		return r;
	if (last.kind == SB_COLDLOG_COLD && strcmp(last.index, s->cold) == 0)
		return 0;
	*theirs = last.kind != SB_COLDLOG_NONE && strcmp(last.host, h->cold_host) != 0;
	if (*theirs)
		return 0;
	(void)snprintf(mine.host, sizeof mine.host, "%s", h->cold_host);
	(void)snprintf(mine.index, sizeof mine.index, "%s", s->cold);
	return sb_coldlog_append(h->cold->store, dir, last.n, &mine, call, err);
}

/* Nothing of it is here any more; records of snapshots and holds stay for its return. */
static int
drop_local(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	for (size_t i = 0; i < s->n_snaps; i++)
		for (size_t k = 0; k < s->snaps[i]->n_holds; k++) {
			int r = h->st->ops->release(h->st, s->id, s->snaps[i]->name,
				s->snaps[i]->holds[k].tag, err);

			if (r < 0 && r != SB_E_HOLD_NOT_FOUND && r != SB_E_SNAPSHOT_NOT_FOUND &&
				r != SB_E_NOTFOUND)
				return r;
		}
	return h->st->ops->destroy(h->st, s->id, err);
}

int
sb_host_cold_rest(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct sb_host_call mine = { .deadline = sb_deadline_in(REST_MS) };
	char dir[SB_COLD_DIR_MAX];
	struct sb_coldlog last;
	bool theirs;
	int r = sb_host_cold_need(h, err);

	if (!s->cold_rest)
		return 0;
	if (!call)
		call = &mine;
	if (r < 0)
		return r;
	sb_cold_dir(h->cold, s->id, s->nonce, dir);
	r = release(h, s, dir, call, &theirs, err);
	if (r == 0)
		r = drop_local(h, s, err);
	/* Older archives of it are nobody's business now; a newer one is another host's. */
	if (r == 0 && !theirs)
		r = sb_coldlog_last(h->cold->store, dir, &last, call, err);
	if (r == 0 && !theirs && strcmp(last.index, s->cold) == 0)
		r = sb_cold_prune(h->cold, dir, s->cold, call, err);
	if (r == 0 && !theirs)
		r = sb_coldlog_trim(h->cold->store, dir, last.n, call, err);
	if (r < 0)
		return sb_wrap(err, r, "session %s", s->id);
	(void)pthread_mutex_lock(&s->mu);
	s->cold_rest = false;
	(void)pthread_mutex_unlock(&s->mu);
	return 0;
}

int
sb_host_cold_forget(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_host_call call = { .deadline = sb_deadline_in(REST_MS) };
	struct sb_coldlog last, gone = { .kind = SB_COLDLOG_GONE };
	char dir[SB_COLD_DIR_MAX];
	int r;

	if (!s->cold)
		return 0;
	if (!h->cold) {
		sb_log(&h->o.log, SB_LOG_WARN, "host",
			"session %s: its archive stays in a cold storage that this host does not "
			"have any more",
			s->id);
		return 0;
	}
	sb_cold_dir(h->cold, s->id, s->nonce, dir);
	r = sb_coldlog_last(h->cold->store, dir, &last, &call, err);
	if (r < 0)
		return r;
	/* Another host has it, and it lives on there. */
	if (last.kind == SB_COLDLOG_HOST && strcmp(last.host, h->cold_host) != 0)
		return 0;
	if (last.kind == SB_COLDLOG_COLD && strcmp(last.index, s->cold) != 0)
		return 0;
	if (last.kind != SB_COLDLOG_GONE) {
		(void)snprintf(gone.host, sizeof gone.host, "%s", h->cold_host);
		r = sb_coldlog_append(h->cold->store, dir, last.n, &gone, &call, err);
	}
	/* The last entry stays: it says so for ever to whoever still has a record. */
	return r < 0 ? r : sb_cold_prune(h->cold, dir, NULL, &call, err);
}

int64_t
sb_host_cold_due(const struct sb_host *h, const struct sb_hsess *s)
{
	int64_t left_ms;

	if (h->o.cold_after_ms <= 0 || !h->cold || s->gone || s->state != SB_HOST_PAUSED ||
		s->resume)
		return 0;
	left_ms = h->o.cold_after_ms - (sb_host_now_ns() - s->paused_ns) / 1000000;
	return sb_now_ms() + (left_ms > 0 ? left_ms : 0);
}

struct idle {
	struct sb_host *h;
	char id[SB_HOST_ID_MAX + 1];
};

/* A transfer takes longer than the worker has. The host waits for its call at the close. */
static void *
cool_idle(void *arg)
{
	struct idle *i = arg;
	struct sb_host *h = i->h;
	struct sb_error err = { 0 };
	int r = sb_host_session_deep_pause(h, i->id, NULL, &err);

	if (r < 0)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: not to cold storage: %s", i->id,
			err.msg);
	free(i);
	atomic_store(&h->cooling, false);
	sb_host_call_end(h);
	return NULL;
}

static int
begin_idle(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct idle *i;

	/* One at a time, so that the worker's own choice keeps nobody else waiting. */
	if (atomic_exchange(&h->cooling, true))
		return 0;
	i = calloc(1, sizeof *i);
	if (i && sb_host_call_begin(h, true, NULL) == 0) {
		i->h = h;
		(void)snprintf(i->id, sizeof i->id, "%s", s->id);
		if (sb_thread_detached(0, cool_idle, i) == 0)
			return 0;
		sb_host_call_end(h);
	}
	free(i);
	atomic_store(&h->cooling, false);
	return sb_fail(err, SB_E_SYS, "start a deep pause");
}

int
sb_host_cold_tidy(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	const struct sb_host_call wait = { .deadline = sb_deadline_in(SLOT_WAIT_MS) };
	bool rest;
	int64_t due;
	int r;

	(void)pthread_mutex_lock(&s->mu);
	rest = !s->gone && s->state == SB_HOST_COLD && s->cold_rest;
	due = sb_host_cold_due(h, s);
	(void)pthread_mutex_unlock(&s->mu);
	if (due && due <= sb_now_ms())
		return begin_idle(h, s, err);
	if (!rest)
		return 0;
	r = sb_hsess_enter(s, SB_HOST_OP_COLD, &wait, err);
	if (r < 0)
		return r;
	r = sb_host_cold_rest(h, s, NULL, err);
	sb_hsess_leave(s);
	return r;
}

static void *
meter(void *arg)
{
	struct sb_host_cold_meter *m = arg;
	const struct timespec slice = { .tv_nsec = 50000000 };
	int64_t next = sb_now_ms() + METER_MS;

	while (!atomic_load(&m->stop)) {
		unsigned long long done = atomic_load(&m->done);
		char text[96];

		(void)nanosleep(&slice, NULL);
		if (sb_now_ms() < next)
			continue;
		next += METER_MS;
		if (m->total)
			(void)snprintf(text, sizeof text, "%s %llu%%", m->what,
				done < m->total ? done * 100 / m->total : 100);
		else
			(void)snprintf(text, sizeof text, "%s %llu bytes", m->what, done);
		sb_host_event_note(m->h->events, "session.progress", m->s->id, text, m->s->state);
		sb_host_event_flush(m->h->events);
	}
	return NULL;
}

void
sb_host_cold_meter_start(struct sb_host_cold_meter *m)
{
	m->on = pthread_create(&m->thread, NULL, meter, m) == 0;
}

void
sb_host_cold_meter_stop(struct sb_host_cold_meter *m)
{
	atomic_store(&m->stop, true);
	if (m->on)
		(void)pthread_join(m->thread, NULL);
	m->on = false;
}
