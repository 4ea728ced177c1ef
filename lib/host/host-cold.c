/* SPDX-License-Identifier: MIT */
/* Deep pause: a session becomes an archive in cold storage. */
#include "config.h"

#include <host/host-cold.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/random.h>
#include <base/str.h>
#include <host/cold/coldwrite.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/retention.h>
#include <sb/host-cold.h>

#define KIND_ZFS "zfs"
#define KIND_LAYERS "layers"
#define TRIES 3

/* A snapshot to be sent, and the one before it that the storage can build on. */
struct piece {
	char name[SB_HOST_NAME_MAX + 1];
	char from[SB_HOST_NAME_MAX + 1];
};

/* One deep pause. */
struct cooling {
	struct sb_host *h;
	struct sb_hsess *s;
	const struct sb_host_call *call;
	struct sb_host_cold_meter *meter;
	char dir[SB_COLD_DIR_MAX];
	char index[SB_COLDLOG_INDEX_MAX];
	struct piece *v;
	size_t n;
	struct sb_strlist shunned; /* parts that a collector has in its hands */
	struct sb_coldindex old;   /* the archive before this one, if it is of use */
};

/* With the slot held: nothing of it is on its way to somebody else. */
static int
check_pins(struct sb_hsess *s, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < s->n_snaps && r == 0; i++)
		if (s->snaps[i]->pins > 0)
			r = sb_fail(err, SB_E_SNAPSHOT_IN_USE,
				"snapshot %s of session %s is being sent or forked",
				s->snaps[i]->name, s->id);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* The log must say that the session is ours, or nothing; a name for the archive. */
static int
check_owner(struct cooling *c, struct sb_error *err)
{
	struct sb_coldlog last;
	uint8_t rnd[8];
	char hex[17];
	int r = sb_coldlog_last(c->h->cold->store, c->dir, &last, c->call, err);

	if (r == 0)
		r = sb_random(rnd, sizeof rnd, err);
	if (r < 0)
		return r;
	if (last.kind != SB_COLDLOG_NONE &&
		(last.kind != SB_COLDLOG_HOST || strcmp(last.host, c->h->cold_host) != 0))
		return sb_fail(err, SB_E_CONFLICT,
			"cold storage says that session %s is not here (%s, host %s): destroy what "
			"is "
			"not wanted",
			c->s->id, last.kind == SB_COLDLOG_HOST ? "resumed elsewhere" : "an archive",
			last.host);
	(void)snprintf(c->index, sizeof c->index, "%08u-%s.index", (unsigned)last.n + 1,
		sb_str_hex(rnd, sizeof rnd, hex));
	return 0;
}

/* The workspace as it is now, as a snapshot, unless the newest one is just that. */
static int
take_snapshot(struct cooling *c, struct sb_error *err)
{
	struct sb_hsess *s = c->s;
	char head[SB_HOST_NAME_MAX + 1] = "", name[64];
	int r = c->h->st->ops->unchanged ? c->h->st->ops->unchanged(c->h->st, s->id, head, NULL) :
					   0;
	bool stands;

	(void)pthread_mutex_lock(&s->mu);
	stands = r == 1 && s->n_snaps > 0 && strcmp(s->snaps[s->n_snaps - 1]->name, head) == 0 &&
		s->snaps[s->n_snaps - 1]->intent == SB_INTENT_NONE;
	(void)snprintf(name, sizeof name, "cold-%llu",
		(unsigned long long)(stands ? s->snap_seq : ++s->snap_seq));
	(void)pthread_mutex_unlock(&s->mu);
	if (stands)
		return 0;
	r = sb_host_snapshot_take(c->h, s, name, SB_HOST_SNAP_COLD, s->turn, NULL, err);
	if (r == 0)
		sb_host_retention_apply(c->h, s, SB_HOST_SNAP_COLD);
	/* What retention and earlier deletions left is not worth an archive. */
	if (r == 0)
		(void)sb_host_retention_purge(c->h, s, NULL);
	return r;
}

static int
on_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct cooling *c = arg;

	(void)err;
	for (size_t i = 0; e->snap && e->parent && i < c->n; i++)
		if (strcmp(c->v[i].name, e->snap) == 0)
			for (size_t k = 0; k < i; k++)
				if (strcmp(c->v[k].name, e->parent) == 0)
					memcpy(c->v[i].from, c->v[k].name, sizeof c->v[i].from);
	return 0;
}

/* What is to be sent, oldest first; each stands on the one before it, or on its parent. */
static int
gather(struct cooling *c, struct sb_error *err)
{
	struct sb_hsess *s = c->s;
	bool tree = c->h->st->ops->rollback_live != NULL;

	c->n = 0;
	(void)pthread_mutex_lock(&s->mu);
	free(c->v);
	c->v = calloc(s->n_snaps + 1, sizeof *c->v);
	for (size_t i = 0; c->v && i < s->n_snaps; i++) {
		struct piece *p = &c->v[c->n];

		if (s->snaps[i]->intent != SB_INTENT_NONE)
			continue;
		(void)snprintf(p->name, sizeof p->name, "%s", s->snaps[i]->name);
		if (!tree && c->n > 0)
			memcpy(p->from, c->v[c->n - 1].name, sizeof p->from);
		c->n++;
	}
	(void)pthread_mutex_unlock(&s->mu);
	if (!c->v)
		return sb_fail(err, SB_E_NOMEM, "snapshots");
	return tree ? c->h->st->ops->list(c->h->st, s->id, on_entry, c, err) : 0;
}

/* The storage writes on a thread of its own. */
struct sending {
	struct cooling *c;
	const struct piece *p;
	int fd;
	int r;
	struct sb_error err;
};

static void *
send_piece(void *arg)
{
	struct sending *g = arg;
	struct sb_host *h = g->c->h;

	g->r = h->st->ops->send(h->st, g->c->s->id, g->p->name, g->p->from[0] ? g->p->from : NULL,
		g->fd, g->c->call, &g->err);
	(void)close(g->fd);
	return NULL;
}

static int
store_piece(struct cooling *c, struct sb_coldwrite *w, const struct piece *p, struct sb_error *err)
{
	struct sending g = { .c = c, .p = p };
	pthread_t thread;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return sb_fail_errno(err, "pipe");
	(void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
	g.fd = fds[1];
	if (pthread_create(&thread, NULL, send_piece, &g) != 0) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return sb_fail(err, SB_E_SYS, "start a thread");
	}
	r = sb_coldwrite_stream(w, p->name, p->from, fds[0], err);
	(void)close(fds[0]);
	(void)pthread_join(thread, NULL);
	/* A stream that was cut short by us fails there, too; else it is the storage's error. */
	if (r == 0 && g.r < 0) {
		r = g.r;
		if (err)
			*err = g.err;
	}
	return r;
}

/* The earlier archive of this session, if it can be read; nothing depends on it. */
static void
know_last(struct cooling *c, struct sb_coldwrite *w)
{
	struct sb_coldread_opts o = sb_cold_reading(c->h->cold, c->call);
	sb_autofree char *key = c->s->cold ? sb_str_printf("%s/%s", c->dir, c->s->cold) : NULL;
	struct sb_error why = { 0 };

	sb_coldindex_free(&c->old);
	if (!key)
		return;
	if (sb_coldread_index(&o, key, &c->old, &why) < 0) {
		sb_log(&c->h->o.log, SB_LOG_WARN, "host", "session %s: its last archive: %s",
			c->s->id, why.msg);
		return;
	}
	for (size_t i = 0; i < c->old.n_parts; i++)
		if (sb_strlist_has(sb_strlist_borrow(&c->shunned), c->old.parts[i].name)) {
			sb_coldindex_free(&c->old);
			return;
		}
	if (sb_coldwrite_know(w, &c->old, &why) < 0)
		sb_log(&c->h->o.log, SB_LOG_WARN, "host", "session %s: %s", c->s->id, why.msg);
}

/* When the snapshot was made, as a record of the session says; -1: it has none of that name. */
static int64_t
made_at(const json_t *record, const char *name)
{
	size_t i;
	json_t *e;

	json_array_foreach(json_object_get(record, "snapshots"), i, e)
	{
		const char *n = json_string_value(json_object_get(e, "name"));

		if (n && strcmp(n, name) == 0)
			return (int64_t)json_integer_value(json_object_get(e, "created_ns"));
	}
	return -1;
}

/*
 * The stream of that snapshot in the last archive, when snapshot and stream are the same ones: a
 * snapshot never changes, and its name with its time to the nanosecond is nobody else's. -1: none.
 */
static int64_t
same_stream(const struct cooling *c, const json_t *record, const struct piece *p)
{
	const struct sb_coldindex *x = &c->old;
	const char *names[2] = { p->name, p->from };

	if (strcmp(x->kind, c->h->o.storage == SB_HOST_ZFS ? KIND_ZFS : KIND_LAYERS) != 0)
		return -1;
	for (size_t i = 0; i < (p->from[0] ? 2 : 1); i++)
		if (made_at(record, names[i]) < 0 ||
			made_at(record, names[i]) != made_at(x->session, names[i]))
			return -1;
	for (size_t i = 0; i < x->n_streams; i++)
		if (strcmp(x->streams[i].snapshot, p->name) == 0 &&
			strcmp(x->streams[i].from, p->from) == 0)
			return (int64_t)i;
	return -1;
}

static int
write_streams(struct cooling *c, struct sb_coldindex *x, struct sb_error *err)
{
	struct sb_cold *cold = c->h->cold;
	struct sb_coldwrite_opts o = { .store = cold->store,
		.space = cold->space,
		.key = cold->keys.n ? &cold->keys.v[0] : NULL,
		.pace = &cold->pace,
		.call = c->call,
		.read = &c->meter->done };
	sb_auto(sb_coldwrite) struct sb_coldwrite *w = sb_coldwrite_open(&o, x, err);
	json_t *record = w ? sb_host_cold_record(c->h, c->s) : NULL;
	int r = record ? 0 : sb_fail(err, SB_E_NOMEM, "archive");

	if (r == 0)
		know_last(c, w);
	for (size_t i = 0; i < c->n && r == 0; i++) {
		int64_t same = same_stream(c, record, &c->v[i]);

		r = same < 0 ? 0 : sb_coldwrite_reuse(w, &c->old, (size_t)same, err);
		if (r == 0)
			r = store_piece(c, w, &c->v[i], err);
		r = r > 0 ? 0 : r;
	}
	json_decref(record);
	return r < 0 ? r : sb_coldwrite_end(w, err);
}

static int
write_index(struct cooling *c, struct sb_coldindex *x, struct sb_error *err)
{
	struct sb_cold *cold = c->h->cold;
	sb_autofree char *key = sb_str_printf("%s/%s", c->dir, c->index);
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, SB_COLDINDEX_OBJECT_MAX);
	x->session = sb_host_cold_record(c->h, c->s);
	if (!x->session || !key)
		return sb_fail(err, SB_E_NOMEM, "index");
	(void)snprintf(x->kind, sizeof x->kind, "%s",
		c->h->o.storage == SB_HOST_ZFS ? KIND_ZFS : KIND_LAYERS);
	r = sb_coldindex_encode(x, cold->keys.n ? &cold->keys.v[0] : NULL, &b, err);
	return r < 0 ? r : cold->store->ops->put(cold->store, key, b.data, b.len, c->call, err);
}

/* Reads back what the store has: the index as everybody would, then every frame. */
static int
verify(struct cooling *c, struct sb_error *err)
{
	struct sb_coldread_opts o = sb_cold_reading(c->h->cold, c->call);
	sb_auto(sb_coldindex) struct sb_coldindex x = { 0 };
	sb_autofree char *key = sb_str_printf("%s/%s", c->dir, c->index);
	char part[SB_COLDINDEX_PART_MAX];
	int r = key ? sb_coldread_index(&o, key, &x, err) : sb_fail(err, SB_E_NOMEM, "index");

	if (r == 0)
		r = sb_cold_marked(c->h->cold, &x, part, c->call, err);
	if (r == 1) {
		sb_strlist_add(&c->shunned, part);
		r = sb_fail(err, SB_E_CHANGED, "a collector wants part %s, which this archive uses",
			part);
	}
	o.done = &c->meter->done;
	return r < 0 ? r : sb_coldread_verify(&o, &x, err);
}

static void
take_back_index(struct cooling *c)
{
	struct sb_host_call soon = { .deadline = sb_deadline_in(5000) };
	sb_autofree char *key = sb_str_printf("%s/%s", c->dir, c->index);

	if (key)
		(void)c->h->cold->store->ops->remove(c->h->cold->store, key, &soon, NULL);
}

/* The archive, verified, with nobody told of it yet. */
static int
archive(struct cooling *c, struct sb_error *err)
{
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		sb_auto(sb_coldindex) struct sb_coldindex x = { 0 };

		r = check_owner(c, err);
		if (r == 0)
			r = write_streams(c, &x, err);
		if (r < 0)
			return r;
		r = write_index(c, &x, err);
		if (r == 0)
			r = verify(c, err);
		if (r < 0)
			take_back_index(c);
		if (r != SB_E_CHANGED)
			break;
	}
	return r;
}

/* Back to PAUSED, unless a destroy came. */
static void
fall_back(struct sb_host *h, struct sb_hsess *s)
{
	struct sb_error why = { 0 };

	(void)pthread_mutex_lock(&s->mu);
	if (s->state == SB_HOST_COOLING &&
		sb_host_op_set_state(h, s, SB_HOST_PAUSED, false, &why) < 0)
		sb_log(&h->o.log, SB_LOG_ERROR, "host", "session %s: %s", s->id, why.msg);
	(void)pthread_mutex_unlock(&s->mu);
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

/* From here on it is COLD. What is here goes, now or later. */
static int
commit(struct cooling *c, struct sb_error *err)
{
	struct sb_host *h = c->h;
	struct sb_hsess *s = c->s;
	char *index = strdup(c->index), *was = s->cold;
	struct sb_error why = { 0 };
	int r = index ? 0 : sb_fail(err, SB_E_NOMEM, "session");

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->mu);
	s->cold = index;
	(void)pthread_mutex_unlock(&s->mu);
	r = set_state(h, s, SB_HOST_COLD, err);
	(void)pthread_mutex_lock(&s->mu);
	s->cold = r == 0 ? index : was;
	s->cold_rest = r == 0;
	(void)pthread_mutex_unlock(&s->mu);
	free(r == 0 ? was : index);
	if (r < 0)
		return r;
	sb_filepool_end(&s->files);
	sb_host_proc_kill_all(h, s, 0);
	if (sb_host_cold_rest(h, s, NULL, &why) < 0)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "later: %s", why.msg);
	return 0;
}

static int
cool(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_host_cold_meter meter = { .h = h, .s = s, .what = "deep-pause" };
	struct cooling c = { .h = h, .s = s, .call = call, .meter = &meter };
	struct sb_error why = { 0 };
	int r = check_pins(s, err);

	if (r == 0)
		r = sb_coldpace_enter(&h->cold->pace, call, err);
	if (r < 0)
		return r;
	sb_cold_dir(h->cold, s->id, s->nonce, c.dir);
	r = set_state(h, s, SB_HOST_COOLING, &why);
	if (r == 0) {
		sb_host_cold_meter_start(&meter);
		r = take_snapshot(&c, &why);
		if (r == 0)
			r = gather(&c, &why);
		if (r == 0)
			r = archive(&c, &why);
		sb_host_cold_meter_stop(&meter);
		if (r == 0) {
			r = commit(&c, &why);
			if (r < 0)
				take_back_index(&c);
		}
		if (r < 0)
			fall_back(h, s);
	}
	sb_coldpace_leave(&h->cold->pace);
	sb_strlist_free(&c.shunned);
	sb_coldindex_free(&c.old);
	free(c.v);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_host_session_deep_pause(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_host_cold_need(h, err);

	if (r == 0) {
		/* One that is paused already stays so. */
		r = sb_host_session_pause(h, id, call, err);
		if (r == SB_E_SESSION_PAUSED)
			r = 0;
	}
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_DEEP_PAUSE, true, call, &s, err);
	if (r < 0)
		return r;
	r = cool(h, s, call, err);
	if (r == 0) {
		atomic_fetch_add(&h->deep_paused, 1);
		sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: in cold storage, %s", s->id,
			s->cold);
	}
	return sb_host_op_done(h, s, r);
}
