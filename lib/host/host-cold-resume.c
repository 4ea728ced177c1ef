/* SPDX-License-Identifier: MIT */
/* Deep resume: a session comes back from cold storage, here or on another host than before. */
#include "config.h"

#include <host/host-cold.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <host/align.h>
#include <host/health.h>
#include <host/host-map.h>
#include <host/host-network.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-runtime.h>
#include <host/owner.h>
#include <host/storage/idcheck.h>
#include <sb/host-cold.h>

/* One deep resume. */
struct warming {
	struct sb_host *h;
	struct sb_hsess *s;
	const struct sb_host_call *call;
	char dir[SB_COLD_DIR_MAX];
	struct sb_coldindex x;
	struct sb_host_cold_meter meter;
};

static int
read_archive(struct warming *w, const char *index, struct sb_error *err)
{
	struct sb_coldread_opts o = sb_cold_reading(w->h->cold, w->call);
	sb_autofree char *key = sb_str_printf("%s/%s", w->dir, index);
	const char *id, *nonce;
	int r;

	if (!key)
		return sb_fail(err, SB_E_NOMEM, "archive");
	sb_coldindex_free(&w->x);
	r = sb_coldread_index(&o, key, &w->x, err);
	if (r < 0)
		return r;
	id = json_string_value(json_object_get(w->x.session, "id"));
	nonce = json_string_value(json_object_get(w->x.session, "nonce"));
	if (!id || !nonce || strcmp(id, w->s->id) != 0 || strcmp(nonce, w->s->nonce) != 0)
		return sb_fail(err, SB_E_CORRUPT, "%s is the archive of another session", key);
	if (w->x.n_streams == 0)
		return sb_fail(err, SB_E_CORRUPT, "%s has no snapshots", key);
	return 0;
}

/* The archive must be one that the storage here can take. */
static int
check_kind(const struct warming *w, struct sb_error *err)
{
	bool zfs = w->h->o.storage == SB_HOST_ZFS;

	if (strcmp(w->x.kind, zfs ? "zfs" : "layers") == 0)
		return 0;
	return sb_fail(err, SB_E_UNSUPPORTED,
		"the archive of session %s holds \"%s\" streams, which storage %s cannot take: "
		"resume it on a host with %s",
		w->s->id, w->x.kind, w->h->st->ops->name, zfs ? "overlay or btrfs" : "zfs");
}

/* Nobody but us may take it from here on. */
static int
claim(struct warming *w, struct sb_error *err)
{
	struct sb_host *h = w->h;
	struct sb_coldlog last, mine = { .kind = SB_COLDLOG_HOST };
	int r = sb_coldlog_last(h->cold->store, w->dir, &last, w->call, err);

	if (r < 0)
		return r;
	if (last.kind == SB_COLDLOG_HOST && strcmp(last.host, h->cold_host) != 0)
		return sb_fail(err, SB_E_CONFLICT,
			"session %s is not in cold storage any more: host %s has resumed it",
			w->s->id, last.host);
	if (last.kind != SB_COLDLOG_COLD && last.kind != SB_COLDLOG_HOST)
		return sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s (it was destroyed)",
			sb_code_text(SB_E_SESSION_NOT_FOUND), w->s->id);
	/* Looked at before anybody is kept away from it. */
	r = read_archive(w, last.index, err);
	if (r == 0)
		r = check_kind(w, err);
	if (r < 0)
		return r;
	if (!w->s->cold || strcmp(w->s->cold, last.index) != 0) {
		char *index = strdup(last.index);

		if (!index)
			return sb_fail(err, SB_E_NOMEM, "session");
		(void)pthread_mutex_lock(&w->s->mu);
		free(w->s->cold);
		w->s->cold = index;
		(void)pthread_mutex_unlock(&w->s->mu);
	}
	if (last.kind == SB_COLDLOG_HOST)
		return 0;
	(void)snprintf(mine.host, sizeof mine.host, "%s", h->cold_host);
	(void)snprintf(mine.index, sizeof mine.index, "%s", last.index);
	return sb_coldlog_append(h->cold->store, w->dir, last.n, &mine, w->call, err);
}

/* Feeds streams `first` to before `end` into a pipe, on a thread of its own. */
struct feeding {
	struct warming *w;
	size_t first, end;
	int fd;
	int r;
	struct sb_error err;
};

static int
push(const void *data, size_t len, void *arg, struct sb_error *err)
{
	const struct feeding *f = arg;
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n = sb_file_write_nosig(f->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "feed the storage");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void *
feed(void *arg)
{
	struct feeding *f = arg;
	struct sb_coldread_opts o = sb_cold_reading(f->w->h->cold, f->w->call);

	o.done = &f->w->meter.done;
	for (size_t i = f->first; i < f->end && f->r == 0; i++)
		f->r = sb_coldread_stream(&o, &f->w->x, i, push, f, &f->err);
	(void)close(f->fd);
	return NULL;
}

/* One call of the storage that reads streams `first` to before `end`. */
static int
take_streams(struct warming *w, size_t first, size_t end, char **mountpoint, struct sb_error *err)
{
	struct feeding f = { .w = w, .first = first, .end = end };
	const struct sb_storage_ops *ops = w->h->st->ops;
	struct sb_storage_source src = { .quota = w->s->quota };
	pthread_t thread;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return sb_fail_errno(err, "pipe");
	(void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
	f.fd = fds[1];
	if (pthread_create(&thread, NULL, feed, &f) != 0) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return sb_fail(err, SB_E_SYS, "start a thread");
	}
	src.fd = fds[0];
	src.owner = sb_host_owner_of(w->h, w->s);
	r = first == 0 ? ops->create(w->h->st, w->s->id, &src, w->call, mountpoint, err) :
			 ops->receive(w->h->st, w->s->id, fds[0], w->call, err);
	(void)close(fds[0]);
	(void)pthread_join(thread, NULL);
	/* What the storage makes of a stream that ended too soon is not the cause. */
	if (f.r < 0 && (r == 0 || f.err.sys != EPIPE)) {
		r = f.r;
		if (err)
			*err = f.err;
	}
	return r;
}

static int
restore(struct warming *w, struct sb_error *err)
{
	struct sb_host *h = w->h;
	bool each = strcmp(w->x.kind, "zfs") == 0;
	char *mountpoint = NULL;
	int r;

	for (size_t i = 0; i < w->x.n_streams; i++)
		w->meter.total += w->x.streams[i].size;
	/* What an attempt before this one left. */
	r = h->st->ops->destroy(h->st, w->s->id, err);
	if (r == 0)
		r = take_streams(w, 0, each ? 1 : w->x.n_streams, &mountpoint, err);
	for (size_t i = 1; each && i < w->x.n_streams && r == 0; i++)
		r = take_streams(w, i, i + 1, NULL, err);
	if (r == 0 && each) {
		free(mountpoint);
		mountpoint = NULL;
		r = h->st->ops->mount(h->st, w->s->id, &mountpoint, err);
	}
	if (r == 0)
		r = sb_host_owner_claim(h, w->s, mountpoint, w->call, err);
	if (r < 0) {
		free(mountpoint);
		return r;
	}
	(void)pthread_mutex_lock(&w->s->mu);
	free(w->s->mountpoint);
	w->s->mountpoint = mountpoint;
	(void)pthread_mutex_unlock(&w->s->mu);
	r = sb_host_cold_merge(h, w->s, w->x.session, err);
	return r < 0 ? r : sb_host_align(h, w->s, err);
}

/* Every snapshot of the archive is here now. */
static int
check_restored(struct warming *w, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&w->s->mu);
	for (size_t i = 0; i < w->x.n_streams && r == 0; i++)
		if (!sb_hsess_snap_find(w->s, w->x.streams[i].snapshot))
			r = sb_fail(err, SB_E_CORRUPT, "snapshot %s did not come back",
				w->x.streams[i].snapshot);
	(void)pthread_mutex_unlock(&w->s->mu);
	return r;
}

static int
set_state(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = s->state == SB_HOST_DESTROYING ? sb_fail(err, SB_E_SESSION_DESTROYING, "%s: %s",
						     sb_code_text(SB_E_SESSION_DESTROYING), s->id) :
					     sb_host_op_set_state(h, s, to, true, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* Not this time: cold again, for everybody, as soon as that can be told. */
static void
give_up(struct warming *w)
{
	struct sb_error why = { 0 };
	int r = 0;

	(void)pthread_mutex_lock(&w->s->mu);
	w->s->cold_rest = true;
	if (w->s->state == SB_HOST_WARMING)
		r = sb_host_op_set_state(w->h, w->s, SB_HOST_COLD, true, &why);
	(void)pthread_mutex_unlock(&w->s->mu);
	if (r == 0 && w->s->state == SB_HOST_COLD)
		r = sb_host_cold_rest(w->h, w->s, NULL, &why);
	if (r < 0)
		sb_log(&w->h->o.log, SB_LOG_WARN, "host", "session %s: later: %s", w->s->id,
			why.msg);
}

/* With the slot held. */
static int
warm(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call, struct sb_error *err)
{
	struct warming w = { .h = h, .s = s, .call = call, .meter = { .h = h, .s = s } };
	struct sb_error why = { 0 };
	int r = sb_host_cold_rest(h, s, call, err);

	if (r == 0)
		r = sb_host_health_admit(h, err);
	if (r == 0)
		r = sb_coldpace_enter(&h->cold->pace, call, err);
	if (r < 0)
		return r;
	w.meter.what = "deep-resume";
	sb_cold_dir(h->cold, s->id, s->nonce, w.dir);
	/* On record before the claim, so that a host that dies with it gives it back. */
	r = set_state(h, s, SB_HOST_WARMING, &why);
	if (r == 0) {
		r = claim(&w, &why);
		sb_host_cold_meter_start(&w.meter);
		if (r == 0)
			r = restore(&w, &why);
		if (r == 0)
			r = check_restored(&w, &why);
		sb_host_cold_meter_stop(&w.meter);
		if (r == 0)
			r = set_state(h, s, SB_HOST_PAUSED, &why);
		if (r < 0)
			give_up(&w);
	}
	sb_coldpace_leave(&h->cold->pace);
	sb_coldindex_free(&w.x);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* A session that only cold storage knows becomes one of ours, COLD. */
static int
import(struct sb_host *h, const char *id, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_coldread_opts o = sb_cold_reading(h->cold, call);
	sb_auto(sb_coldindex) struct sb_coldindex x = { 0 };
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	char nonce[SB_HOST_NONCE_LEN + 1], dir[SB_COLD_DIR_MAX];
	sb_autofree char *key = NULL;
	struct sb_coldlog last;
	int r = sb_cold_find(h->cold, id, nonce, call, err);

	if (r < 0)
		return r;
	sb_cold_dir(h->cold, id, nonce, dir);
	r = sb_coldlog_last(h->cold->store, dir, &last, call, err);
	if (r == 0 && last.kind == SB_COLDLOG_HOST)
		return sb_fail(err, SB_E_CONFLICT,
			"session %s is not in cold storage any more: host %s has resumed it", id,
			last.host);
	key = sb_str_printf("%s/%s", dir, last.index);
	if (r == 0 && !key)
		r = sb_fail(err, SB_E_NOMEM, "archive");
	if (r == 0)
		r = sb_coldread_index(&o, key, &x, err);
	if (r < 0)
		return r;
	s = sb_host_cold_revive(h, x.session, err);
	if (!s)
		return err && err->code ? err->code : SB_E_CORRUPT;
	if (strcmp(s->id, id) != 0 || strcmp(s->nonce, nonce) != 0)
		return sb_fail(err, SB_E_CORRUPT, "%s is the archive of another session", key);
	s->cold = strdup(last.index);
	if (!s->cold)
		return sb_fail(err, SB_E_NOMEM, "session");
	return sb_host_cold_adopt(h, s, err);
}

int
sb_host_session_deep_resume(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err)
{
	struct sb_hsess *s = NULL;
	int r = sb_host_cold_need(h, err);

	if (r == 0)
		r = sb_idcheck_session(id, err);
	if (r == 0)
		r = sb_host_call_begin(h, true, err);
	if (r < 0)
		return r;
	s = sb_host_map_find(h, id, NULL);
	if (!s)
		r = import(h, id, call, err);
	sb_hsess_unref(s);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_DEEP_RESUME, true, call, &s, err);
	if (r == 0) {
		r = warm(h, s, call, err);
		if (r == 0) {
			atomic_fetch_add(&h->deep_resumed, 1);
			sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: back from cold storage",
				id);
		}
		r = sb_host_op_done(h, s, r);
	}
	if (r == 0)
		r = sb_host_session_resume(h, id, call, err);
	if (r == 0)
		r = sb_host_session_get(h, id, false, out, err);
	sb_host_call_end(h);
	return r;
}
