/* SPDX-License-Identifier: MIT */
/* The link of a run: taken from a connection when it starts, given back when it ends. */
#include "config.h"

#include <sync/run/run.h>

#include <sync/remote/conn.h>
#include <sync/run/sync-result.h>

struct sb_link *
sb_run_link_take(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_retry *t,
	struct sb_error *err)
{
	struct sb_conn *c = o->conn;
	struct sb_link *l;
	char show[512];

	if (c && !sb_conn_serves(c, e)) {
		sb_fail(err, SB_E_INVAL, "the connection to %s does not lead to %s",
			sb_conn_name(c), sb_endpoint_show(e, show, sizeof show));
		return NULL;
	}
	if (!c)
		c = sb_conn_new(e, o, false, err);
	if (!c)
		return NULL;
	l = sb_conn_take(c, o, err);
	if (!l && !o->conn)
		sb_conn_free(c);
	t->lost = !l;
	t->connected |= l && l->t;
	return l;
}

int
sb_run_link_give(struct sb_link *l, int code, struct sb_sync_result *res, struct sb_retry *t,
	struct sb_error *err)
{
	struct sb_conn *c = l ? l->conn : NULL;
	uint64_t up, down;
	bool keep;

	if (!l)
		return code;
	keep = sb_conn_keeps(c);
	if (code < 0) {
		code = sb_link_explain(l, code, err);
	} else if (keep) {
		code = sb_wire_send(l->w, SB_MSG_END, NULL, 0, err);
		if (code == 0)
			code = sb_wire_flush(l->w, err);
	} else {
		code = sb_link_close(l, err);
	}
	sb_conn_link_bytes(l, &up, &down);
	res->bytes_wire_up += up - l->up;
	res->bytes_wire_down += down - l->down;
	t->lost = code < 0 && sb_conn_lost(l, code);
	t->connected |= l->t != NULL;
	res->round_trips += sb_wire_turns(l->w) - l->turns;
	sb_conn_give(l, code == 0);
	if (!keep)
		sb_conn_free(c);
	return code;
}
