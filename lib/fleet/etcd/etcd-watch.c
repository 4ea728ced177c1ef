/* SPDX-License-Identifier: MIT */
/*
 * Watching keys of etcd. A watch is one answer without an end, a line of JSON for each message. It
 * ends with its connection, or when the member has said nothing for a while (one that is cut off
 * from the others says nothing, too); then the next member is asked to go on behind what is known.
 */
#include "config.h"

#include "etcd-priv.h"

#include <poll.h>
#include <string.h>

#define PAUSE_MIN 100
#define PAUSE_MAX 2000

/* One watch over all its connections. */
struct watching {
	const struct sb_etcd_watch *w;
	int64_t next; /* the revision to go on from */
	int64_t last; /* that was told */
	struct sb_buf line;
	bool told; /* on_line was called for this connection */
	/* Of the change that is handed on. */
	bool deleted;
	bool refused; /* a callback failed: its error is the end */
};

static int
on_kv(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct watching *g = arg;
	int r = g->w->on_change(g->deleted, kv, g->w->arg, err);

	g->refused = r < 0;
	/*
	 * The header's revision may be one whose events are still to come; those of one revision
	 * come together.
	 */
	if (r == 0 && kv->mod_rev >= g->next)
		g->last = kv->mod_rev;
	return r;
}

static int
take_result(struct watching *g, const json_t *result, struct sb_error *err)
{
	const json_t *events = json_object_get(result, "events");
	int64_t rev;
	int r = 0;

	if (json_is_true(json_object_get(result, "canceled"))) {
		if (!sb_etcd_number(result, "compact_revision", &rev) || rev == 0)
			return sb_fail(err, SB_E_UNAVAILABLE, "etcd ended a watch");
		return sb_fail(err, SB_E_CHANGED, "etcd has forgotten revision %lld",
			(long long)g->next);
	}
	if (json_is_true(json_object_get(result, "created")) && !g->told) {
		g->told = true;
		if (g->w->on_line)
			r = g->w->on_line(g->w->arg, err);
		g->refused = r < 0;
	}
	for (size_t i = 0; r == 0 && i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		const char *type = json_string_value(json_object_get(event, "type"));

		/* PUT is left out. */
		g->deleted = type && strcmp(type, "DELETE") == 0;
		r = sb_etcd_kv_take(json_object_get(event, "kv"), on_kv, g, err);
	}
	if (r == 0 && g->last >= g->next)
		g->next = g->last + 1;
	return r;
}

static int
take_line(struct watching *g, const char *line, size_t len, struct sb_error *err)
{
	json_t *o = json_loadb(line, len, 0, NULL);
	int r;

	if (json_object_get(o, "error"))
		r = sb_etcd_failure(json_object_get(o, "error"), "watch", err);
	else if (!json_is_object(json_object_get(o, "result")))
		r = sb_fail(err, SB_E_PROTO, "etcd: a damaged event");
	else
		r = take_result(g, json_object_get(o, "result"), err);
	json_decref(o);
	return r;
}

static int
on_bytes(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct watching *g = arg;
	size_t from = g->line.len, at = 0;
	const char *nl;
	int r = 0;

	sb_buf_add(&g->line, data, len);
	if (sb_buf_check(&g->line, "event of etcd", err) < 0)
		return SB_E_LIMIT;
	while (r == 0 && from < g->line.len &&
		(nl = memchr(g->line.data + from, '\n', g->line.len - from))) {
		size_t end = (size_t)(nl - (const char *)g->line.data);

		if (end > at)
			r = take_line(g, (const char *)g->line.data + at, end - at, err);
		at = end + 1;
		from = at;
	}
	sb_buf_consume(&g->line, at);
	return r;
}

/* One connection to one member, until it ends. */
static int
watch_at(struct sb_etcd *e, size_t member, struct watching *g, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_wait wait = { .cancel = cancel, .deadline = SB_NEVER };
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	json_t *ask = json_pack("{s:{s:o, s:o, s:I}}", "create_request", "key",
		sb_etcd_start_of(g->w->prefix), "range_end", sb_etcd_end_of(g->w->prefix),
		"start_revision", (json_int_t)g->next);
	int r;

	if (!ask)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_buf_reset(&g->line);
	g->told = false;
	q.method = "POST";
	q.target = "/v3/watch";
	q.json = ask;
	q.again = SB_REST_ONCE;
	q.write = on_bytes;
	q.write_arg = g;
	q.stall_ms = g->w->quiet_ms;
	r = sb_rest_call(e->member[member], &q, &wait, &a, err);
	json_decref(ask);
	if (r == 0)
		r = sb_rest_check(&a, "watch of etcd", err);
	return r;
}

/* A failure that another connection may mend. */
static bool
passes(int code)
{
	return code == SB_E_CONNECT || code == SB_E_CLOSED || code == SB_E_TIMEOUT ||
		code == SB_E_UNAVAILABLE || code == SB_E_HOSTKEY || code == SB_E_PROTO ||
		code == SB_E_PEER;
}

int
sb_etcd_watch(struct sb_etcd *e, const struct sb_etcd_watch *w, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	struct watching g = { .w = w, .next = w->from };
	size_t at = atomic_load(&e->last);
	int pause = PAUSE_MIN, r;

	sb_buf_init(&g.line, ANSWER_MAX);
	for (;;) {
		struct pollfd fd = { .fd = sb_cancel_fd(cancel), .events = POLLIN };

		r = watch_at(e, at, &g, cancel, err);
		if (sb_cancel_requested(cancel))
			r = sb_fail(err, SB_E_CANCELED, "watch of etcd: canceled");
		if (r < 0 && (g.refused || !passes(r)))
			break;
		at = (at + 1) % e->n;
		if (g.told) {
			pause = PAUSE_MIN;
			continue;
		}
		(void)poll(&fd, fd.fd >= 0, pause);
		pause = pause * 2 > PAUSE_MAX ? PAUSE_MAX : pause * 2;
	}
	sb_buf_free(&g.line);
	return r;
}
