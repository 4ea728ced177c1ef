/* SPDX-License-Identifier: MIT */
/* A sandbox host with its server: opened, started, stopped and freed in the right order. */
#include "config.h"

#include <sb/rpc-daemon.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <host/host-bounds.h>
#include <base/str.h>
#include <rpc/server/auth.h>
#include <rpc/server/server.h>
#include <rpc/service/daemon.h>
#include <rpc/service/host.h>

struct sb_rpc_daemon {
	struct sb_rpc_auth *auth;
	struct sb_rpc_host *rpc;
	struct sb_host *host;
	struct sb_rpc_server *server;
};

struct sb_rpc_daemon *
sb_rpc_daemon_new(struct sb_error *err)
{
	struct sb_rpc_daemon *d = calloc(1, sizeof *d);

	if (!d) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	d->auth = sb_rpc_auth_new(err);
	if (!d->auth) {
		free(d);
		return NULL;
	}
	return d;
}

struct sb_host *
sb_rpc_daemon_host(struct sb_rpc_daemon *d)
{
	return d->host;
}

const struct sb_rpc_auth *
sb_rpc_daemon_auth(const struct sb_rpc_daemon *d)
{
	return d->auth;
}

struct sb_rpc_access *
sb_rpc_daemon_access(struct sb_rpc_daemon *d)
{
	return sb_rpc_host_access(d->rpc);
}

void
sb_rpc_daemon_free(struct sb_rpc_daemon *d)
{
	if (!d)
		return;
	sb_rpc_server_free(d->server);
	sb_host_close(d->host);
	sb_rpc_host_free(d->rpc);
	sb_rpc_auth_free(d->auth);
	free(d);
}

int
sb_rpc_daemon_add_token(struct sb_rpc_daemon *d, const struct sb_rpc_token *t, struct sb_error *err)
{
	enum sb_rpc_role role = SB_RPC_ROLE_NONE;

	for (int i = SB_RPC_ROLE_MONITOR; i <= SB_RPC_ROLE_ADMIN; i++)
		if (strcmp(t->role, sb_rpc_auth_role_name((enum sb_rpc_role)i)) == 0)
			role = (enum sb_rpc_role)i;
	if (role == SB_RPC_ROLE_NONE)
		return sb_fail(err, SB_E_INVAL,
			"token %s: role \"%s\" must be admin, session or monitor", t->name,
			t->role);
	if (t->sha256)
		return sb_rpc_auth_add_sha256(d->auth, t->name, role, t->session, t->sha256, err);
	return sb_rpc_auth_add(d->auth, t->name, role, t->session, t->token, err);
}

int
sb_rpc_daemon_set_key(struct sb_rpc_daemon *d, const void *key, size_t len, struct sb_error *err)
{
	return sb_rpc_auth_set_key(d->auth, key, len, err);
}

/* The ports of a session are for its own tokens, and for admins. */
static bool
admit(const char *session, const char *nonce, const char *authorization, void *arg)
{
	struct sb_rpc_who who = { 0 };

	if (sb_rpc_auth_check(arg, authorization, time(NULL), &who, NULL) < 0)
		return false;
	if (who.role == SB_RPC_ROLE_ADMIN)
		return true;
	return who.role == SB_RPC_ROLE_SESSION && strcmp(who.session, session) == 0 &&
		(!who.nonce[0] || strcmp(who.nonce, nonce) == 0);
}

void
sb_rpc_daemon_check(const struct sb_rpc_daemon *d, const struct sb_host_opts *host,
	const struct sb_rpc_server_opts *server, void (*found)(const char *what, void *arg),
	void *arg)
{
	struct sb_rpc_server_opts so = *server;
	struct sb_host_opts ho = *host;

	ho.port_admit = admit;
	so.auth = d->auth;
	sb_rpc_server_check(&so, found, arg);
	sb_host_check(&ho, found, arg);
}

static int
remember(struct sb_rpc_daemon *d, const char *state_dir, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/calls.db", state_dir);
	sb_autofree char *access = sb_str_printf("%s/ssh-access", state_dir);
	int r;

	if (!path || !access)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_rpc_host_remember(d->rpc, path, err);
	return r < 0 ? r : sb_rpc_host_keep_access(d->rpc, access, err);
}

int
sb_rpc_daemon_start(struct sb_rpc_daemon *d, const struct sb_host_opts *host,
	const struct sb_rpc_server_opts *server, struct sb_error *err)
{
	struct sb_rpc_server_opts so = *server;
	struct sb_host_opts ho = *host;
	struct sb_error why = { 0 };
	int r = 0;

	d->rpc = sb_rpc_host_new(d->auth, so.max_message, &why);
	ho.on_event = sb_rpc_host_on_event;
	ho.event_arg = d->rpc;
	ho.port_admit = admit;
	ho.port_admit_arg = d->auth;
	d->host = d->rpc ? sb_host_open(&ho, &why) : NULL;
	if (d->host)
		r = sb_host_start(d->host, &why);
	if (d->host && r == 0)
		r = remember(d, ho.state_dir, &why);
	if (d->host && r == 0) {
		sb_rpc_host_use(d->rpc, d->host);
		so.auth = d->auth;
		d->server = sb_rpc_server_start(&so, sb_rpc_host_service(d->rpc), &why);
	}
	if (d->server)
		sb_host_bounds_log(d->host);
	else if (err)
		*err = why;
	return d->server ? 0 : why.code;
}

int
sb_rpc_daemon_stop(struct sb_rpc_daemon *d, int64_t grace_ms, const struct sb_cancel *hurry,
	struct sb_error *err)
{
	struct sb_host_call limits = { .cancel = hurry, .deadline = SB_NEVER };

	sb_host_shutdown_begin(d->host);
	sb_rpc_server_stop(d->server, grace_ms, hurry);
	return sb_host_shutdown(d->host, &limits, err);
}
