/* SPDX-License-Identifier: MIT */
/* The procedure StreamEvents: what happens on the host, as it happens. */
#include "config.h"

#include <string.h>
#include <time.h>

#include <base/str.h>
#include <rpc/service/host-priv.h>

#define KINDS_MAX 32

static json_t *
event_json(const struct sb_rpc_event *ev)
{
	json_t *o = json_object();

	sb_rpc_host_put_int(o, "Seq", (int64_t)ev->seq);
	(void)json_object_set_new(o, "Time", sb_rpc_host_time_json(ev->time_ns));
	sb_rpc_host_put(o, "Kind", ev->kind);
	sb_rpc_host_put(o, "SessionID", ev->session);
	sb_rpc_host_put(o, "Subject", ev->subject);
	sb_rpc_host_put(o, "State", ev->session[0] ? sb_host_state_wire(ev->state) : "");
	return o;
}

static bool
wanted(const struct sb_rpc_event *ev, const char *session, const struct sb_strlist *kinds)
{
	bool hit = kinds->n == 0;

	if (session[0] && strcmp(ev->session, session) != 0)
		return false;
	for (size_t i = 0; i < kinds->n; i++)
		hit = hit || sb_str_starts(ev->kind, kinds->v[i]);
	return hit;
}

static json_t *
started_json(uint64_t seq, const char *session)
{
	struct sb_rpc_event ev = { .seq = seq, .kind = "stream.started" };
	struct timespec now;
	json_t *o;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	ev.time_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	o = event_json(&ev);
	sb_rpc_host_put(o, "SessionID", session);
	return o;
}

/*
 * What a session's own token may see: nothing from before its session began, and nothing from after
 * it went; another one may have had or may get its id.
 */
static int
own_from(struct sb_rpc_call *call, const char *session, int64_t *out_ns, struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_session s;
	int r;

	*out_ns = 0;
	if (sb_rpc_call_who(call)->role != SB_RPC_ROLE_SESSION)
		return 0;
	r = sb_host_session_get(h->host, session, false, &s, err);
	if (r < 0)
		return r;
	*out_ns = s.created_ns;
	sb_host_session_clear(&s);
	return 0;
}

int
sb_rpc_host_stream_events(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	sb_auto(sb_strlist) struct sb_strlist kinds = { 0 };
	struct sb_rpc_reader *reader;
	struct sb_rpc_event ev;
	struct sb_rpc_fields f;
	const char *session;
	uint64_t after;
	int64_t from_ns = 0;
	bool over = false;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	session = sb_rpc_field_str(&f, "SessionID", SB_HOST_ID_MAX, 0);
	if (session[0])
		session = sb_rpc_host_session_id(call, &f);
	sb_rpc_field_list(&f, "Kinds", KINDS_MAX, 32, &kinds);
	after = (uint64_t)sb_rpc_field_int(&f, "After", 0, INT64_MAX);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = own_from(call, session, &from_ns, err);
	if (r < 0)
		return r;
	reader = sb_rpc_events_open(h->events, after, &after, err);
	if (!reader)
		return err->code;
	r = sb_rpc_stream_send(call, started_json(after, session), err);
	while (r == 0 && !over &&
		(r = sb_rpc_events_next(reader, limits.cancel, limits.deadline, &ev, err)) == 0) {
		if (ev.time_ns < from_ns)
			continue;
		if (wanted(&ev, session, &kinds))
			r = sb_rpc_stream_send(call, event_json(&ev), err);
		over = from_ns > 0 && strcmp(ev.session, session) == 0 &&
			strcmp(ev.kind, "session.destroyed") == 0;
	}
	sb_rpc_events_close(reader);
	return r;
}
