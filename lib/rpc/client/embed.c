/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/client/embed.h>

#include <stdlib.h>
#include <unistd.h>

#include <base/str.h>
#include <rpc/service/host.h>
#include <rpc/server/server.h>

#define STOP_MS 2000

struct sb_rpc_embed {
	struct sb_rpc_auth *auth;
	struct sb_rpc_host *rpc;
	struct sb_host *host;
	struct sb_rpc_server *server;
};

void
sb_rpc_embed_close(struct sb_rpc_embed *e)
{
	if (!e)
		return;
	if (e->server)
		sb_rpc_server_stop(e->server, STOP_MS, NULL);
	sb_rpc_server_free(e->server);
	sb_host_close(e->host);
	sb_rpc_host_free(e->rpc);
	sb_rpc_auth_free(e->auth);
	free(e);
}

static int
open_parts(struct sb_rpc_embed *e, const struct sb_host_opts *opts, const char *socket,
	struct sb_error *err)
{
	struct sb_rpc_server_opts so = SB_RPC_SERVER_OPTS_INIT;
	struct sb_host_opts ho = *opts;
	sb_autofree char *where = sb_str_printf("unix:%s", socket);
	const char *listen[] = { where, NULL };
	int r;

	e->auth = sb_rpc_auth_new(err);
	e->rpc = e->auth ? sb_rpc_host_new(e->auth, so.max_message, err) : NULL;
	if (!where || !e->rpc)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	ho.on_event = sb_rpc_host_on_event;
	ho.event_arg = e->rpc;
	e->host = sb_host_open(&ho, err);
	if (!e->host)
		return err->code;
	r = sb_host_start(e->host, err);
	if (r < 0)
		return r;
	sb_rpc_host_use(e->rpc, e->host);
	/* The lock of the directory is ours: a socket that is there is of a process that died. */
	(void)unlink(socket);
	so.listen = listen;
	so.auth = e->auth;
	so.log = opts->log;
	e->server = sb_rpc_server_start(&so, sb_rpc_host_service(e->rpc), err);
	return e->server ? 0 : err->code;
}

struct sb_rpc_embed *
sb_rpc_embed_open(const struct sb_host_opts *opts, const char *socket, struct sb_error *err)
{
	struct sb_rpc_embed *e = calloc(1, sizeof *e);
	struct sb_error why = { 0 };

	if (!e) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	if (open_parts(e, opts, socket, &why) < 0) {
		sb_rpc_embed_close(e);
		if (err)
			*err = why;
		return NULL;
	}
	return e;
}
