/* SPDX-License-Identifier: MIT */
/* Keeps a session in step: waits for changes on either side, then runs a turn. */
#include "config.h"

#include <sbsync/session.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <sbsync/conn.h>
#include <sync/replica/agent-watch.h>
#include <sync/run/run.h>
#include <sync/wire/endpoint.h>
#include <sync/wire/proto.h>
#include <sync/session/session-rules.h>
#include <sync/session/session-store.h>
#include <sync/session/session-priv.h>
#include <sync/session/session-watcher.h>
#include <sync/scan/notice.h>

#define QUIET_MS 80
#define BURST_MS 2000
#define FAR_MIN_MS 250    /* between syncs that only the far side asks for */
#define FAR_MAX_MS 10000  /* the same when nothing has changed there again and again */
#define BLIND_MS 5000     /* how often to look where there is no or only half a watch */
#define PAUSE_MIN_MS 1000 /* after a failed sync; doubles */
#define PAUSE_MAX_MS 60000

/*
 * A session that is kept in step. The watches only tell when to sync; what to do is found out by
 * every sync anew.
 */
struct watcher {
	struct sb_session *s;
	const struct sb_session_watch *how;
	struct sb_sync_opts o;
	enum sb_session_conflict policy;
	struct sb_endpoint there;
	struct sb_notice *here;
	struct sb_buf roots; /* WATCH's payload */
	bool blind;          /* the far side cannot watch, or not all of it */
	bool far_changed;    /* it said so before it was asked to stop */
	/*
	 * A sandbox may say that something changed as often as it likes. It is believed at once
	 * when that is the first time for a while; one that cries wolf waits longer each time.
	 */
	int64_t far_pause;
	int64_t far_after; /* not before this moment */
};

/* What is to be watched, here and there. */
static int
prepare(struct watcher *w, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(w->o.state_dir, err);
	sb_autoclose int dirfd = dir ? sb_session_open_dir(dir, w->s->name, false, err) : -1;
	int r = 0;

	if (dirfd < 0)
		return err ? err->code : SB_E_SYS;
	if (w->s->n_pairs > SB_WATCH_ROOTS)
		return sb_fail(err, SB_E_LIMIT,
			"session '%s' has more than %d pairs: too many to watch", w->s->name,
			SB_WATCH_ROOTS);
	w->here = sb_notice_new(NULL);
	sb_buf_init(&w->roots, SB_WATCH_LIST_MAX);
	sb_buf_add_varint(&w->roots, w->s->n_pairs);
	for (size_t i = 0; r == 0 && i < w->s->n_pairs; i++) {
		sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
		sb_auto(sb_buf) struct sb_buf enc = { 0 };
		struct sb_rules *rules = sb_session_rules_load(w->s, dirfd, i, &enc, err);

		if (!rules)
			return err ? err->code : SB_E_CORRUPT;
		r = sb_endpoint_parse(w->s->pairs[i].remote, &e, err);
		if (r < 0) {
			sb_rules_free(rules);
			return r;
		}
		sb_buf_add_bytes(&w->roots, e.path, strlen(e.path));
		sb_buf_add_bytes(&w->roots, enc.data, enc.len);
		if (w->here)
			r = sb_notice_add(w->here, w->s->pairs[i].local, rules, err);
		else
			sb_rules_free(rules);
	}
	return r < 0 ? r : sb_buf_check(&w->roots, "list of roots", err);
}

/* Ends the agent's watch; what it said meanwhile is taken. */
static int
far_stop(struct watcher *w, struct sb_link *l, struct sb_error *err)
{
	const uint8_t *p;
	uint8_t type;
	size_t len;
	int r = sb_wire_send(l->w, SB_MSG_UNWATCH, NULL, 0, err);

	if (r == 0)
		r = sb_wire_flush(l->w, err);
	while (r == 0) {
		r = sb_wire_recv(l->w, &type, &p, &len, err);
		if (r < 0)
			return r;
		if (type == SB_MSG_CHANGED && !w->far_changed)
			w->far_changed = true;
		else if (type != SB_MSG_WATCHED || len != 1)
			return sb_fail(err, SB_E_PROTO,
				"the far side sent message %u while it watched", type);
		else
			break;
	}
	w->blind = r == 0 && p[0];
	return r < 0 ? r : sb_wire_expect(l->w, SB_MSG_PROOF, &p, &len, err);
}

static int
far_start(struct watcher *w, struct sb_link *l, struct sb_error *err)
{
	int r = sb_wire_send_blob(l->w, SB_MSG_WATCH, w->roots.data, w->roots.len, err);

	w->far_changed = false;
	return r < 0 ? r : sb_wire_flush(l->w, err);
}

/* The far side may have spoken while the last answer was read. */
static int
hear_far(struct watcher *w, struct sb_link *l, struct sb_error *err)
{
	uint8_t type = 0;
	int r = sb_wire_peep(l->w, &type, err);

	if (r <= 0)
		return r;
	if (type != SB_MSG_CHANGED)
		return sb_fail(err, SB_E_PROTO, "the far side sent message %u while it watched",
			type);
	w->far_changed = true;
	return 0;
}

/* Until something changed on either side, or it is time to look anyway. `l` may be NULL. */
static int
wait_for_change(struct watcher *w, struct sb_link *l, struct sb_error *err)
{
	int64_t ms = w->how->every_ms;
	sb_deadline end;

	if ((w->blind || !l || !w->here || sb_notice_partial(w->here)) && ms > BLIND_MS)
		ms = BLIND_MS;
	end = sb_deadline_in(ms);
	while (!sb_deadline_passed(end)) {
		struct pollfd p[3] = { { .fd = w->here ? sb_notice_fd(w->here) : -1,
					       .events = POLLIN },
			{ .fd = l ? l->t->rfd : -1, .events = POLLIN },
			{ .fd = sb_cancel_fd(w->o.cancel), .events = POLLIN } };
		sb_deadline until = end;
		int r = sb_check_alive(w->o.cancel, SB_NEVER, "watch", err);

		if (r == 0 && l && !w->far_changed)
			r = hear_far(w, l, err);
		if (r < 0)
			return r;
		if (w->far_changed) {
			if (sb_now_ms() >= w->far_after)
				break;
			until = sb_deadline_min(end, w->far_after);
			p[1].fd = -1; /* it has nothing more to say */
		}
		if (poll(p, 3, sb_deadline_poll_ms(until)) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (p[0].revents && sb_notice_take(w->here)) {
			sb_notice_settle(w->here, QUIET_MS, BURST_MS, w->o.cancel);
			break;
		}
	}
	return 0;
}

/*
 * One wait over the kept connection. `peek`: only make sure that the far side watches, so that
 * nothing is missed before the first scan.
 */
static int
watch_once(struct watcher *w, bool peek, struct sb_error *err)
{
	struct sb_sync_result unused = { 0 };
	struct sb_retry retry = { 0 };
	struct sb_link *l = sb_run_link_take(&w->there, &w->o, &retry, err);
	/* What it can is known once it has answered anything: after the first sync. */
	bool can = l && l->greeted && (l->peer.features & SB_FEATURE_WATCH);
	int r = 0;

	if (!l)
		return err ? err->code : SB_E_CONNECT;
	if (can)
		r = far_start(w, l, err);
	if (r == 0 && !peek)
		r = wait_for_change(w, can ? l : NULL, err);
	if (r == 0 && can)
		r = far_stop(w, l, err);
	return sb_run_link_give(l, r, &unused, &retry, err);
}

/* Failures that another try may not have. */
static bool
passes(int code)
{
	return code == SB_E_CONNECT || code == SB_E_CLOSED || code == SB_E_TIMEOUT ||
		code == SB_E_LOCKED || code == SB_E_PEER || code == SB_E_CHANGED ||
		code == SB_E_UNSTABLE || code == SB_E_UNAVAILABLE || code == SB_E_NOSPACE ||
		code == SB_E_SYS || code == SB_E_CHILD;
}

static int
sync_once(struct watcher *w, struct sb_error *err)
{
	struct sb_sync_result res = { 0 };
	int64_t began = sb_now_ms(), took;
	int r = sb_session_sync(w->s, SB_REASON_TURN, &w->o, w->policy, &res, err);

	took = sb_now_ms() - began;
	if (res.files_synced || res.files_deleted || res.files_moved || res.conflicts.n)
		w->far_pause = FAR_MIN_MS;
	else if (w->far_changed)
		w->far_pause = 2 * w->far_pause < FAR_MAX_MS ? 2 * w->far_pause : FAR_MAX_MS;
	if (w->far_pause < FAR_MIN_MS)
		w->far_pause = FAR_MIN_MS;
	w->far_after = sb_now_ms() + (took > w->far_pause ? took : w->far_pause);
	if (r != SB_E_CANCELED && w->how->on_sync)
		w->how->on_sync(w->s, r, &res, err, w->how->arg);
	sb_sync_result_free(&res);
	return r;
}

static int
pause_ms(struct watcher *w, int ms, struct sb_error *err)
{
	struct pollfd p = { .fd = sb_cancel_fd(w->o.cancel), .events = POLLIN };

	(void)poll(&p, 1, ms);
	return sb_check_alive(w->o.cancel, SB_NEVER, "watch", err);
}

static int
run(struct watcher *w, struct sb_error *err)
{
	int pause = PAUSE_MIN_MS, r = 0;
	bool primed = false;

	while (r == 0) {
		r = sync_once(w, err);
		if (r == 0 && !primed) {
			/*
			 * Now it is known what it can: watch, and look once more for what came
			 * before that.
			 */
			r = watch_once(w, true, err);
			primed = r == 0;
			if (r == 0)
				r = sync_once(w, err);
		}
		if (r == 0) {
			pause = PAUSE_MIN_MS;
			(void)sb_session_beat(w->s, w->o.state_dir, NULL);
			r = watch_once(w, false, err);
		}
		if (r < 0 && r != SB_E_CANCELED && passes(r)) {
			sb_log(&w->o.log, SB_LOG_WARN, "watch", "%s; trying again", err->msg);
			r = pause_ms(w, pause, err);
			pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
			primed = false;
		}
	}
	return r == SB_E_CANCELED ? 0 : r;
}

int
sb_session_watch(struct sb_session *s, const struct sb_session_watch *how,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy, struct sb_error *err)
{
	struct watcher w = { .s = s, .how = how, .o = *opts, .policy = policy };
	struct sb_error own = { 0 };
	sb_autoclose int record = -1;
	int r;

	if (!err)
		err = &own;
	record = sb_session_watcher_enter(s, opts->state_dir, err);
	if (record < 0)
		return record;
	sb_session_use_route(s, &w.o);
	r = sb_endpoint_parse(s->pairs[0].remote, &w.there, err);
	if (r == 0)
		r = prepare(&w, err);
	if (r == 0 && !opts->conn) {
		w.o.conn = sb_conn_open(s->pairs[0].remote, &w.o, err);
		r = w.o.conn ? 0 : err->code;
	}
	if (r == 0)
		r = run(&w, err);
	if (!opts->conn)
		sb_conn_free(w.o.conn);
	sb_notice_free(w.here);
	sb_buf_free(&w.roots);
	sb_endpoint_free(&w.there);
	return r == SB_E_CANCELED ? 0 : r;
}
