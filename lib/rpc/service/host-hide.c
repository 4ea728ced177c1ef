/* SPDX-License-Identifier: MIT */
/* Keeps what the host's places are called out of answers to those who only have a session. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <host/host.h>
#include <rpc/service/host-priv.h>

#define WORKSPACE "/workspace" /* where a sandbox has it */

/* Replaces each `what` (longer than "/") in `text`. */
static void
replace(struct sb_buf *text, const char *what, const char *by)
{
	size_t len = what ? strlen(what) : 0;
	sb_auto(sb_buf) struct sb_buf out;
	const char *p = (const char *)text->data, *hit;

	sb_buf_init(&out, 1 << 20);
	if (len < 2 || !p || !strstr(p, what))
		return;
	for (; (hit = strstr(p, what)); p = hit + len) {
		sb_buf_add(&out, p, (size_t)(hit - p));
		sb_buf_add_str(&out, by);
	}
	sb_buf_add_str(&out, p);
	if (out.failed)
		return;
	sb_buf_reset(text);
	sb_buf_add(text, out.data, out.len);
}

static void
hide(struct sb_rpc_host *h, const struct sb_rpc_who *who, struct sb_buf *text)
{
	const struct sb_host_opts *o = sb_host_options(h->host);
	struct sb_host_session s;

	if (who->session[0] && sb_host_session_get(h->host, who->session, false, &s, NULL) == 0) {
		char *slash = strrchr(s.mountpoint, '/');

		replace(text, s.mountpoint, WORKSPACE);
		/* The place of all sessions; on ZFS only the mount point tells it. */
		if (slash)
			*slash = '\0';
		replace(text, s.mountpoint, "(sessions)");
		sb_host_session_clear(&s);
	}
	replace(text, o->sessions_root_dir, "(sessions)");
	replace(text, o->sessions_dataset, "(sessions)");
	replace(text, o->bases_dataset, "(bases)");
	replace(text, o->bases_dir, "(bases)");
	replace(text, o->state_dir, "(state)");
	replace(text, o->rootfs, "(rootfs)");
}

void
sb_rpc_host_hide(void *arg, const struct sb_rpc_who *who, char *text, size_t size)
{
	struct sb_rpc_host *h = arg;
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 1 << 20);
	if (who->role == SB_RPC_ROLE_ADMIN || !strchr(text, '/'))
		return;
	sb_buf_add_str(&b, text);
	hide(h, who, &b);
	if (!b.failed && b.data)
		(void)snprintf(text, size, "%s", (const char *)b.data);
}

void
sb_rpc_host_put_hidden(struct sb_rpc_call *call, json_t *o, const char *key, const char *text)
{
	const struct sb_rpc_who *who = sb_rpc_call_who(call);
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 1 << 20);
	sb_buf_add_str(&b, text ? text : "");
	if (who->role != SB_RPC_ROLE_ADMIN)
		hide(sb_rpc_call_arg(call), who, &b);
	sb_rpc_host_put(o, key, b.failed || !b.data ? "" : (const char *)b.data);
}
