/* SPDX-License-Identifier: MIT */
/* What happens in an environment, as it happens (sb_env_events of sb/env.h). */
#include "config.h"

#include <rpc/client/env-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <rpc/protocol/json.h>

struct event_stream {
	sb_env_event_fn fn;
	void *arg;
	bool enough;
};

static int
on_message(const char *text, size_t len, void *arg, struct sb_error *err)
{
	struct event_stream *w = arg;
	json_t *o = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	if (!json_is_object(o)) {
		json_decref(o);
		return sb_fail(err, SB_E_PROTO, "events: a message that is no object");
	}
	w->enough = !w->fn(sb_json_str(o, "Kind"), sb_json_str(o, "Subject"), w->arg);
	json_decref(o);
	return w->enough ? sb_fail(err, SB_E_CANCELED, "enough") : 0;
}

int
sb_env_events(struct sb_env *e, const char *kind, const struct sb_host_call *call,
	sb_env_event_fn fn, void *arg, struct sb_error *err)
{
	const struct sb_rpc_wait wait = { call ? call->cancel : NULL,
		call ? call->deadline : SB_NEVER };
	struct event_stream w = { fn, arg, false };
	struct sb_error why = { 0 };
	json_t *in = sb_env_request(e, &why);
	sb_autofree char *text = NULL;
	struct sb_rpc_client *c = NULL;
	int r = in ? 0 : why.code;

	if (r == 0 && kind && json_object_set_new(in, "Kinds", json_pack("[s]", kind)) < 0)
		r = sb_fail(&why, SB_E_INVAL, "kind is not UTF-8");
	text = r == 0 ? json_dumps(in, JSON_COMPACT) : NULL;
	json_decref(in);
	if (r == 0 && !text)
		r = sb_fail(&why, SB_E_NOMEM, "out of memory");
	if (r == 0 && !(c = sb_env_take(e->host, &why)))
		r = why.code;
	if (r == 0)
		r = sb_rpc_client_stream(c, "StreamEvents", text, &wait, on_message, &w, &why);
	/* A stream that was left has a connection that nobody can use again. */
	sb_rpc_client_free(c);
	if (w.enough)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}
