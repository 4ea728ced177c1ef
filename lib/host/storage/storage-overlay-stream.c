/* SPDX-License-Identifier: MIT */
/* Snapshots of the overlay storage as streams, and sessions out of them. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/overlay-stream.h>
#include <host/storage/overlay-view.h>

/* What is to be sent: the nodes pinned. */
struct sending {
	struct sb_overlay_session *se;
	struct sb_overlay_node *from, *to;
	uint64_t between[SB_OVERLAY_LAYERS_MAX];
	size_t n;
	struct sb_overlay_part part;
};

/* The layers between the two, top first. With `mu` held. */
static int
find_between(struct sending *s, struct sb_error *err)
{
	const struct sb_overlay_node *n = s->to;

	for (; n && n != s->from; n = n->parent) {
		if (s->n == SB_OVERLAY_LAYERS_MAX)
			return sb_fail(err, SB_E_LIMIT, "more than %d layers between %s and %s",
				SB_OVERLAY_LAYERS_MAX, s->part.from, s->part.name);
		s->between[s->n++] = n->layer;
	}
	return n == s->from ?
		0 :
		sb_fail(err, SB_E_INVAL, "snapshot %s does not stand on snapshot %s: send it whole",
			s->part.name, s->part.from);
}

static int
find_what(struct sb_storage_overlay *o, const char *id, const char *snap, const char *from,
	struct sending *s, struct sb_error *err)
{
	const struct sb_overlay_snap *a, *b;
	int r = 0;

	s->se = sb_storage_overlay_find(o, id, err);
	if (!s->se)
		return SB_E_NOTFOUND;
	a = from ? sb_overlay_state_snap(s->se, from) : NULL;
	b = sb_overlay_state_snap(s->se, snap);
	if (!b || (from && !a))
		return sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), b ? from : snap);
	s->to = b->node;
	s->from = a ? a->node : NULL;
	s->part.time_ns = b->time_ns;
	(void)snprintf(s->part.name, sizeof s->part.name, "%s", snap);
	(void)snprintf(s->part.from, sizeof s->part.from, "%s", from ? from : "");
	if (from)
		r = find_between(s, err);
	if (r == 0) {
		sb_overlay_node_pin(s->to);
		sb_overlay_node_pin(s->from);
	}
	return r;
}

/* The layers between as one, in a directory of its own that goes away afterwards. */
static int
send_between(struct sb_storage_overlay *o, struct sending *s, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	int fds[SB_OVERLAY_LAYERS_MAX];
	struct sb_overlay_view v = { fds, 0 };
	uint64_t id = sb_storage_overlay_new_id(o);
	sb_autoclose int to = -1;
	int r = sb_overlay_layer_make(o->layersfd, id, -1, err);

	for (size_t i = 0; i < s->n && r >= 0; i++) {
		fds[i] = r = sb_overlay_layer_open(o->layersfd, s->between[i], err);
		v.n += r >= 0;
	}
	if (r >= 0)
		to = r = sb_overlay_layer_open(o->layersfd, id, err);
	if (r >= 0)
		r = v.n ? sb_overlay_view_merge(&v, to, call, err) : 0;
	if (r == 0)
		r = sb_overlay_stream_write(fd, &s->part, to, true, call, err);
	for (size_t i = 0; i < v.n; i++)
		(void)close(fds[i]);
	sb_storage_overlay_discard(o, id);
	return r;
}

int
sb_storage_overlay_send(struct sb_storage *st, const char *id, const char *snap, const char *from,
	int fd, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	sb_autofree struct sending *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return sb_fail(err, SB_E_NOMEM, "send");
	(void)pthread_mutex_lock(&o->mu);
	r = find_what(o, id, snap, from, s, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r < 0)
		return r;
	if (from) {
		r = send_between(o, s, fd, call, err);
	} else {
		sb_autoclose int dir = sb_storage_overlay_open_state(o, s->se, s->to, err);

		r = dir < 0 ? dir : sb_overlay_stream_write(fd, &s->part, dir, false, call, err);
	}
	(void)pthread_mutex_lock(&o->mu);
	sb_overlay_node_unpin(&o->state.tree, s->to);
	sb_overlay_node_unpin(&o->state.tree, s->from);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

/* Parts that came whole: layers, oldest first, none of them named by the log yet. */
struct received {
	struct sb_overlay_part *part;
	uint64_t *layer;
	size_t *on; /* the part that each stands on; its own number: none */
	size_t n;
};

static int
one_more(struct received *got, struct sb_error *err)
{
	struct sb_overlay_part *p = reallocarray(got->part, got->n + 1, sizeof *p);
	uint64_t *l = p ? reallocarray(got->layer, got->n + 1, sizeof *l) : NULL;
	size_t *on = l ? reallocarray(got->on, got->n + 1, sizeof *on) : NULL;

	if (p)
		got->part = p;
	if (l)
		got->layer = l;
	if (on)
		got->on = on;
	if (!on)
		return sb_fail(err, SB_E_NOMEM, "receive");
	return got->n < SB_OVERLAY_LAYERS_MAX - 1 ?
		0 :
		sb_fail(err, SB_E_LIMIT, "more than %d parts in a stream",
			SB_OVERLAY_LAYERS_MAX - 1);
}

/* A part stands on none, or on one that came before it; it has a name of its own. */
static int
check_order(const struct received *got, const struct sb_overlay_part *p, size_t *on,
	struct sb_error *err)
{
	*on = got->n;
	for (size_t i = 0; i < got->n; i++) {
		if (strcmp(got->part[i].name, p->name) == 0)
			return sb_fail(err, SB_E_INVAL, "the stream has snapshot %s twice",
				p->name);
		if (strcmp(got->part[i].name, p->from) == 0)
			*on = i;
	}
	return *on == got->n && p->from[0] ?
		sb_fail(err, SB_E_INVAL,
			"the stream's part %s stands on \"%s\", which did not come before it",
			p->name, p->from) :
		0;
}

static int
read_part(struct sb_storage_overlay *o, struct sb_overlay_reader *rd, struct received *got,
	const struct sb_overlay_part *p, struct sb_error *err)
{
	uint64_t id = sb_storage_overlay_new_id(o), bytes;
	sb_autoclose int to = -1;
	size_t on;
	int r = check_order(got, p, &on, err);

	if (r == 0)
		r = one_more(got, err);
	if (r == 0)
		r = sb_overlay_layer_make(o->layersfd, id, -1, err);
	if (r < 0)
		return r;
	got->part[got->n] = *p;
	got->on[got->n] = on;
	got->layer[got->n++] = id;
	to = r = sb_overlay_layer_open(o->layersfd, id, err);
	if (r >= 0)
		r = sb_overlay_stream_read(rd, p, to, err);
	if (r == 0 && o->durability != SB_HOST_DURABLE_NONE) {
		r = sb_overlay_layer_measure(to, o->fast_sync, &bytes, err);
		if (r == 0 && !o->fast_sync && syncfs(to) < 0)
			r = sb_fail_errno(err, "sync the file system");
	}
	return r;
}

static int
read_parts(struct sb_storage_overlay *o, int fd, struct received *got,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_overlay_reader *rd = sb_overlay_stream_open(fd, call, err);
	struct sb_overlay_part p;
	int r;

	if (!rd)
		return SB_E_NOMEM;
	while ((r = sb_overlay_stream_next(rd, &p, err)) == 1) {
		r = read_part(o, rd, got, &p, err);
		if (r < 0)
			break;
	}
	sb_overlay_stream_close(rd);
	if (r == 0 && got->n == 0)
		r = sb_fail(err, SB_E_INVAL, "the stream is empty");
	return r;
}

/* The layers as nodes, one on the other. With `mu` held. */
static int
add_nodes(struct sb_storage_overlay *o, const struct received *got, struct sb_overlay_rec *rec,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < got->n && r == 0; i++) {
		*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_NODE,
			.node = got->layer[i],
			.parent = got->on[i] < i ? got->layer[got->on[i]] : 0,
			.layer = got->layer[i],
			.bytes = SB_OVERLAY_UNMEASURED,
			.durable = 1 };
		r = sb_storage_overlay_record(o, rec, err);
		if (r == 0)
			sb_overlay_node_pin(sb_overlay_node_find(&o->state.tree, got->layer[i]));
	}
	return r;
}

static void
unpin_nodes(struct sb_storage_overlay *o, const struct received *got)
{
	(void)pthread_mutex_lock(&o->mu);
	for (size_t i = got->n; i-- > 0;) {
		struct sb_overlay_node *n = sb_overlay_node_find(&o->state.tree, got->layer[i]);

		if (n && n->named)
			sb_overlay_node_unpin(&o->state.tree, n);
	}
	(void)pthread_mutex_unlock(&o->mu);
}

static int
add_names(struct sb_storage_overlay *o, const char *id, const struct received *got,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&o->mu);
	for (size_t i = 0; i < got->n && r == 0; i++) {
		*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_SNAP,
			.sid = id,
			.name = got->part[i].name,
			.head = got->part[i].name,
			.parent_name = got->on[i] < i ? got->part[got->on[i]].name : "",
			.node = got->layer[i],
			.time_ns = got->part[i].time_ns };
		r = sb_storage_overlay_record(o, rec, err);
	}
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

int
sb_storage_overlay_receive(struct sb_storage_overlay *o, const char *id,
	const struct sb_storage_source *src, const struct sb_host_call *call, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	struct received got = { 0 };
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "receive");

	(void)pthread_mutex_lock(&o->mu);
	if (r == 0 && sb_overlay_state_session(&o->state, id))
		r = sb_fail(err, SB_E_EXISTS, "%s/%s exists already", o->mnt, id);
	(void)pthread_mutex_unlock(&o->mu);
	if (r == 0)
		r = read_parts(o, src->fd, &got, call, err);
	if (r == 0) {
		(void)pthread_mutex_lock(&o->mu);
		r = add_nodes(o, &got, rec, err);
		(void)pthread_mutex_unlock(&o->mu);
		if (r == 0) {
			memset(rec, 0, sizeof *rec);
			rec->head = "";
			r = sb_storage_overlay_create_on(o, id, got.layer[got.n - 1], rec, err);
		}
		if (r == 0)
			r = add_names(o, id, &got, rec, err);
		if (r == 0)
			r = sb_storage_overlay_commit(o, err);
		unpin_nodes(o, &got);
	}
	for (size_t i = 0; i < got.n && r < 0; i++)
		sb_storage_overlay_discard(o, got.layer[i]);
	free(got.part);
	free(got.layer);
	free(got.on);
	return r;
}
