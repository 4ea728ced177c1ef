/* SPDX-License-Identifier: MIT */
/* Sessions as streams of bytes: sends a snapshot, makes a session from what another host sent. */
#include "config.h"

#include <string.h>

#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-session.h>
#include <host/host-snapshot.h>
#include <host/align.h>
#include <host/storage/idcheck.h>

/* The stream brought a snapshot along: it becomes one of the session's. */
static int
adopt_received(struct sb_host *h, struct sb_host_session *out, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = sb_host_map_find(h, out->id, err);
	int r = s ? sb_hsess_enter(s, SB_HOST_OP_SNAPSHOT, NULL, err) : SB_E_SESSION_NOT_FOUND;

	if (r == 0) {
		r = sb_host_align(h, s, err);
		if (r == 0) {
			sb_host_session_clear(out);
			(void)pthread_mutex_lock(&s->mu);
			r = sb_hsess_describe(s, out, err);
			(void)pthread_mutex_unlock(&s->mu);
		}
		sb_hsess_leave(s);
	}
	if (r < 0)
		sb_host_session_clear(out);
	return r;
}

int
sb_host_session_receive(struct sb_host *h, const struct sb_host_create_opts *opts, int fd,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_origin from = { .src.fd = fd };
	int r;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (fd < 0)
		return sb_fail(err, SB_E_INVAL, "no stream to receive");
	r = sb_host_call_begin(h, true, err);
	if (r < 0)
		return r;
	from.src.quota = o.quota ? o.quota : h->o.default_quota;
	r = sb_host_snapshot_need(h, err);
	if (r == 0)
		r = sb_host_session_make(h, &o, &from, call, out, err);
	if (r == 0)
		r = adopt_received(h, out, err);
	sb_host_call_end(h);
	return r;
}

int
sb_host_snapshot_send(struct sb_host *h, const char *id, const char *name, const char *from, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	char snap[SB_HOST_NAME_MAX + 1], base[SB_HOST_NAME_MAX + 1];
	struct sb_hsess *s;
	uint64_t turn;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0 && from)
		r = sb_idcheck_snapshot(from, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_READ, true, call, &s, err);
	if (r < 0)
		return r;
	/* Pinned, so that a long transfer does not keep the session from working. */
	r = sb_host_snapshot_pin(h, s, name, snap, &turn, err);
	if (r == 0 && from) {
		r = sb_host_snapshot_pin(h, s, from, base, &turn, err);
		if (r < 0)
			sb_host_snapshot_unpin(s, snap);
	}
	sb_hsess_leave(s);
	if (r == 0) {
		r = h->st->ops->send(h->st, id, name, from, fd, call, err);
		sb_host_snapshot_unpin(s, snap);
		if (from)
			sb_host_snapshot_unpin(s, base);
	}
	sb_hsess_unref(s);
	sb_host_call_end(h);
	return r;
}
