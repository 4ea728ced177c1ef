/* SPDX-License-Identifier: MIT */
/* Connections to whatever listens in a session, for gateways that have checked who comes. */
#include "config.h"

#include <host/host.h>

#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>

int
sb_host_port_connect(struct sb_host *h, const char *id, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r = sb_host_call_begin(h, true, &why);

	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? 0 : why.code;
		/* Without a box its ports are the machine's, and anybody's. */
		if (r == 0 && (!s->rt->ops->connect || s->rt->ops->kind == SB_HOST_RUNTIME_NONE))
			r = sb_fail(&why, SB_E_UNSUPPORTED,
				"with runtime %s a session has no ports of its own",
				sb_host_runtime_name(s->rt->ops->kind));
		if (r == 0) {
			(void)pthread_mutex_lock(&s->mu);
			if (s->state != SB_HOST_ACTIVE)
				r = sb_fail(&why, SB_E_UNAVAILABLE, "session %s is not active", id);
			(void)pthread_mutex_unlock(&s->mu);
		}
		if (r == 0)
			r = s->rt->ops->connect(s->rt, s->id, NULL, 0, port, d, out_fd, &why);
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}
