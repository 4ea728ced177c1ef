/* SPDX-License-Identifier: MIT */
/* Answers a call: one JSON message, a failure, or a page of text. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/protocol/gzip.h>
#include <rpc/server/server-priv.h>

static const char oom_text[] = "{\"code\":\"resource_exhausted\",\"message\":\"out of memory\"}";

void
sb_rpc_reply_headers(struct sb_rpc_call *c, const char *type)
{
	char version[16];

	if (!c->response)
		return;
	(void)snprintf(version, sizeof version, "v%u", c->server->o.api_version);
	if (type)
		(void)MHD_add_response_header(c->response, "Content-Type", type);
	(void)MHD_add_response_header(c->response, "X-Api-Version", version);
	if (c->close)
		(void)MHD_add_response_header(c->response, "Connection", "close");
}

/* Takes `text`. */
static void
set_response(struct sb_rpc_call *c, int status, void *text, size_t len)
{
	if (c->response)
		MHD_destroy_response(c->response);
	c->status = status;
	c->response = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!c->response)
		free(text);
	sb_rpc_metrics_add(c->server->metrics, SB_RPC_GAUGE_BYTES_OUT, (int64_t)len);
}

static void
reply_no_memory(struct sb_rpc_call *c)
{
	c->status = sb_rpc_code_http(SB_RPC_RESOURCE_EXHAUSTED);
	c->failure.code = SB_RPC_RESOURCE_EXHAUSTED;
	c->response = MHD_create_response_from_buffer(sizeof oom_text - 1,
		(void *)(uintptr_t)oom_text, MHD_RESPMEM_PERSISTENT);
	sb_rpc_reply_headers(c, "application/json");
}

static void
reply_object(struct sb_rpc_call *c, int status, const json_t *obj)
{
	char *text = obj ? json_dumps(obj, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;
	sb_auto(sb_buf) struct sb_buf packed;
	bool gzip = false;

	sb_buf_init(&packed, len + 1024);
	if (!text) {
		reply_no_memory(c);
		return;
	}
	if (c->out_gzip && len >= SB_RPC_GZIP_FROM &&
		sb_rpc_gzip_deflate(text, len, &packed, NULL) == 0) {
		free(text);
		text = (char *)sb_buf_detach(&packed, &len);
		gzip = true;
	}
	set_response(c, status, text, len);
	sb_rpc_reply_headers(c, "application/json");
	if (gzip && c->response)
		(void)MHD_add_response_header(c->response, "Content-Encoding", "gzip");
}

void
sb_rpc_reply_json(struct sb_rpc_call *c, const json_t *msg)
{
	reply_object(c, 200, msg);
}

void
sb_rpc_reply_failure(struct sb_rpc_call *c)
{
	int status = c->failure.http ? c->failure.http : sb_rpc_code_http(c->failure.code);
	json_t *obj;

	if (status == 415) {
		set_response(c, status, strdup(""), 0);
		sb_rpc_reply_headers(c, NULL);
		if (c->response)
			(void)MHD_add_response_header(c->response, "Accept-Post",
				c->method && c->method->stream ? "application/connect+json" :
								 "application/json");
		return;
	}
	obj = sb_rpc_failure_json(&c->failure);
	reply_object(c, status, obj);
	json_decref(obj);
	if (status == 405 && c->response)
		(void)MHD_add_response_header(c->response, "Allow",
			c->target != SB_RPC_TARGET_METHOD        ? "GET, HEAD" :
				(c->method->flags & SB_RPC_READ) ? "GET, POST" :
								   "POST");
	if (status == 401 && c->response)
		(void)MHD_add_response_header(c->response, "WWW-Authenticate", "Bearer");
}

void
sb_rpc_reply_text(struct sb_rpc_call *c, int status, const char *type, const struct sb_buf *text)
{
	char *copy = text->failed ? NULL : malloc(text->len + 1);

	if (!copy) {
		reply_no_memory(c);
		return;
	}
	memcpy(copy, text->data, text->len + 1);
	set_response(c, status, copy, text->len);
	sb_rpc_reply_headers(c, type);
}
