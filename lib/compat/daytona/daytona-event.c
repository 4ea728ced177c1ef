/* SPDX-License-Identifier: MIT */
/*
 * Events for the vendor's clients: Socket.IO version 4 over WebSocket. Packets are texts, whose
 * first digit is Engine.IO's kind (0 open, 1 close, 2 ping, 3 pong, 4 message), the second, of a
 * message, Socket.IO's (0 connect, 1 disconnect, 2 event, 4 refusal).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define PING_MS 25000
#define PONG_MS 20000
#define TELL_MS 200 /* for one that takes nothing: it is left, and comes again */

struct sb_daytona_listener {
	struct sb_daytona_listener *next;
	struct sb_websocket *w;
	char base[SB_DAYTONA_BASE_MAX];
	bool dead;
};

static int
say(struct sb_websocket *w, const char *kind, json_t *o, struct sb_error *err)
{
	char *body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	sb_autofree char *text = sb_str_printf("%s%s", kind, body ? body : "");
	int r = text ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	json_decref(o);
	free(body);
	return r < 0 ? r :
		       sb_websocket_send(w, SB_WSFRAME_TEXT, text, strlen(text),
			       SB_WEBSOCKET_SEND_MS, err);
}

void
sb_daytona_event_tell(struct sb_daytona *d, const char *event, const json_t *rec, const char *old,
	const char *new)
{
	(void)pthread_mutex_lock(&d->hub);
	for (struct sb_daytona_listener *l = d->listeners; l; l = l->next) {
		json_t *box = sb_daytona_show(d, rec, l->base, false);
		json_t *what = old ? json_pack("{s:o, s:s, s:s}", "sandbox", box, "oldState", old,
					     "newState", new) :
				     box;
		sb_autofree char *text = NULL;
		json_t *o;
		char *body;

		if (new)
			(void)json_object_set_new(box, "state", json_string(new));
		o = json_pack("[s, o]", event, what);
		body = o ? json_dumps(o, JSON_COMPACT) : NULL;
		text = body ? sb_str_printf("42%s", body) : NULL;
		if (!l->dead && text &&
			sb_websocket_send(l->w, SB_WSFRAME_TEXT, text, strlen(text), TELL_MS,
				NULL) < 0)
			l->dead = true;
		free(body);
		json_decref(o);
	}
	(void)pthread_mutex_unlock(&d->hub);
}

/* Its first packet has the key. 1: it may listen; 0: it went, or was refused. */
static int
admit(struct sb_daytona *d, struct sb_websocket *w, struct sb_error *err)
{
	enum sb_wsframe_kind kind;
	const uint8_t *data;
	size_t len;
	json_t *auth;
	bool ok;
	int r = sb_websocket_next(w, PONG_MS, &kind, &data, &len, err);

	if (r <= 0)
		return r == SB_E_CLOSED ? 0 : r;
	if (kind != SB_WSFRAME_TEXT || len < 2 || memcmp(data, "40", 2) != 0)
		return 0;
	auth = sb_rpc_json_parse(data + 2, len - 2, NULL);
	ok = auth && sb_daytona_key_ok(d, sb_daytona_text(auth, "token"));
	json_decref(auth);
	if (!ok)
		return say(w, "44", json_pack("{s:s}", "message", "Unauthorized"), err);
	return 1;
}

static int
listen_on(struct sb_daytona_listener *l, struct sb_error *err)
{
	bool asked = false;

	for (;;) {
		enum sb_wsframe_kind kind;
		const uint8_t *data;
		size_t len;
		int r = sb_websocket_next(l->w, asked ? PONG_MS : PING_MS, &kind, &data, &len, err);

		if (r < 0 || (r == 0 && asked) || l->dead)
			return r == SB_E_CLOSED ? 0 : r;
		asked = r == 0;
		if (asked)
			r = say(l->w, "2", NULL, err);
		else if (len == 0 || *data == '1' || (len > 1 && memcmp(data, "41", 2) == 0))
			return 0;
		if (r < 0)
			return r;
	}
}

static int
socket_io(struct sb_rpc_call *call, const struct sb_query *q, struct sb_websocket *w,
	struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_daytona_listener me = { .w = w }, **p;
	char sid[21];
	int r = sb_keys_make(sid, 20, err);

	(void)q;
	sb_daytona_base(call, me.base);
	if (r == 0)
		r = say(w, "0",
			json_pack("{s:s, s:[], s:i, s:i, s:i}", "sid", sid, "upgrades",
				"pingInterval", PING_MS, "pingTimeout", PONG_MS, "maxPayload",
				(int)SB_WEBSOCKET_MAX),
			err);
	if (r == 0)
		r = admit(d, w, err);
	if (r == 1)
		r = say(w, "40", json_pack("{s:s}", "sid", sid), err);
	else
		return r;
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&d->hub);
	me.next = d->listeners;
	d->listeners = &me;
	(void)pthread_mutex_unlock(&d->hub);
	r = listen_on(&me, err);
	(void)pthread_mutex_lock(&d->hub);
	for (p = &d->listeners; *p != &me; p = &(*p)->next)
		;
	*p = me.next;
	(void)pthread_mutex_unlock(&d->hub);
	return r;
}

/* Without a WebSocket: the vendor's clients ask for nothing else. */
static int
polling(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	return sb_answer_json(call, 400,
		json_pack("{s:i, s:s}", "code", 0, "message", "Transport unknown"), err);
}

const struct sb_daytona_route sb_daytona_event_routes[] = {
	{ "GET", "/socket.io", polling, SB_RPC_HTTP_NO_BODY, SB_DAYTONA_OPEN | SB_DAYTONA_ENDLESS,
		socket_io },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
