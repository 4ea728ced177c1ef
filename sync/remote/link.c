/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/link.h>

#include <stdlib.h>
#include <string.h>

#include <sync/remote/shadow.h>

#define NOISE_MAX (64u << 10)

int
sb_link_greet(struct sb_link *l, const struct sb_wire_opts *opts, struct sb_error *err)
{
	struct sb_hello me = { .version = SB_PROTO_VERSION,
		.min_version = SB_PROTO_MIN,
		.software = "sbsync " PACKAGE_VERSION };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_wire_opts o = *opts;
	int r;

	o.start_arg = l;
	sb_wire_free(l->w);
	l->w = sb_wire_new(l->t, &o, err);
	if (!l->w)
		return err ? err->code : SB_E_NOMEM;
	sb_buf_init(&b, 1024);
	sb_proto_hello_encode(&me, &b);
	r = sb_buf_check(&b, "greeting", err);
	return r < 0 ? r : sb_wire_send(l->w, SB_MSG_HELLO, b.data, b.len, err);
}

struct sb_link *
sb_link_new(struct sb_transport *t, const struct sb_wire_opts *opts, struct sb_error *err)
{
	sb_auto(sb_link) struct sb_link *l = calloc(1, sizeof *l);

	if (!l) {
		sb_transport_free(t);
		sb_fail(err, SB_E_NOMEM, "link: out of memory");
		return NULL;
	}
	l->t = t;
	return sb_link_greet(l, opts, err) < 0 ? NULL : sb_steal(&l);
}

void
sb_link_free(struct sb_link *l)
{
	if (!l)
		return;
	sb_wire_free(l->w);
	sb_transport_free(l->t);
	sb_shadow_free(l->shadow);
	free(l);
}

int
sb_link_explain(struct sb_link *l, int code, struct sb_error *err)
{
	struct sb_exit ex = { 0 };
	struct sb_error e = { 0 };
	char old[SB_ERROR_MSG_MAX];

	/* Never started: that was a matter of the connection, or of the other machine. */
	if (!l->t) {
		l->lost = true;
		return code;
	}
	if (!err ||
		(code != SB_E_CLOSED && code != SB_E_TIMEOUT && code != SB_E_SYS &&
			code != SB_E_PROTO))
		return code;
	(void)l->t->ops->close_write(l->t, NULL);
	if (l->t->ops->wait(l->t, sb_deadline_in(1000), &ex, &e) < 0) {
		if (e.code == SB_E_TIMEOUT || e.code == SB_E_CANCELED)
			return code;
		l->lost = true;
		return sb_wrap(err, code, "%.200s", e.msg);
	}
	memcpy(old, err->msg, sizeof old);
	if (ex.stderr_tail[0])
		return sb_fail(err, code, "%.240s (it said: %.240s)", old, ex.stderr_tail);
	if (ex.known && ex.code)
		return sb_fail(err, code, "%.400s (it ended with status %d)", old, ex.code);
	return code;
}

int
sb_link_welcome(struct sb_link *l, struct sb_error *err)
{
	const uint8_t *p;
	size_t len;
	int r;

	if (l->greeted)
		return 0;
	r = sb_wire_skip_to(l->w, SB_PROTO_MARKER, NOISE_MAX, err);
	if (r == 0)
		r = sb_wire_expect(l->w, SB_MSG_WELCOME, &p, &len, err);
	if (r == 0)
		r = sb_proto_hello_decode(p, len, &l->peer, err);
	if (r < 0)
		return r;
	if (l->peer.min_version > SB_PROTO_VERSION || l->peer.version < SB_PROTO_MIN)
		return sb_fail(err, SB_E_VERSION,
			"the far side speaks protocol %u to %u, this sbsync %d to %d: use the same "
			"version",
			l->peer.min_version, l->peer.version, SB_PROTO_MIN, SB_PROTO_VERSION);
	l->greeted = true;
	return 0;
}

int
sb_link_close(struct sb_link *l, struct sb_error *err)
{
	struct sb_exit ex = { 0 };
	int r = sb_wire_send(l->w, SB_MSG_BYE, NULL, 0, err);

	if (r == 0)
		r = sb_wire_send_proof(l->w, err);
	if (r == 0)
		r = l->t->ops->close_write(l->t, err);
	/*
	 * Every answer ended with its own proof: nothing is lost by not waiting longer than a
	 * moment.
	 */
	(void)l->t->ops->wait(l->t, sb_deadline_in(50), &ex, NULL);
	return r;
}

int
sb_link_before_commit(struct sb_link *l, struct sb_error *err)
{
	return l->shadow ? sb_shadow_before(l->shadow, err) : 0;
}

int
sb_link_after_commit(struct sb_link *l, struct sb_error *err)
{
	return l->shadow ? sb_shadow_after(l->shadow, err) : 0;
}
