/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <control/hostcall.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/quote.h>
#include <base/str.h>
#include <control/control-priv.h>
#include <provider/beside.h>
#include <rpc/protocol/json.h>
#include <sb/rpc.h>

#define IDLE_MAX 8
#define TOKEN_MAX 4096
#define ANSWER_MAX (8u << 20)
#define RSH_MAX 65536

struct sb_hostcall {
	char *url, *token_file, *ca_file;
	pthread_mutex_t mu; /* guards the clients that wait for their next call */
	struct sb_rpc_client *idle[IDLE_MAX];
	size_t n_idle;
};

void
sb_hostcall_free(struct sb_hostcall *h)
{
	if (!h)
		return;
	while (h->n_idle)
		sb_rpc_client_free(h->idle[--h->n_idle]);
	(void)pthread_mutex_destroy(&h->mu);
	free(h->url);
	free(h->token_file);
	free(h->ca_file);
	free(h);
}

/* The token is read anew for each connection, so that it can be replaced. */
static struct sb_rpc_client *
connect_to(struct sb_hostcall *h, struct sb_error *err)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	struct sb_rpc_client *c;

	if (h->token_file) {
		if (sb_file_read(AT_FDCWD, h->token_file, TOKEN_MAX, &token, err) < 0)
			return NULL;
		token.data[strcspn((const char *)token.data, "\r\n")] = '\0';
		o.token = (const char *)token.data;
	}
	o.address = h->url;
	o.ca_file = h->ca_file;
	o.max_message = ANSWER_MAX;
	c = sb_rpc_client_new(&o, err);
	if (token.len)
		explicit_bzero(token.data, token.len);
	return c;
}

static struct sb_rpc_client *
take(struct sb_hostcall *h, struct sb_error *err)
{
	struct sb_rpc_client *c = NULL;

	(void)pthread_mutex_lock(&h->mu);
	if (h->n_idle)
		c = h->idle[--h->n_idle];
	(void)pthread_mutex_unlock(&h->mu);
	return c ? c : connect_to(h, err);
}

static void
give(struct sb_hostcall *h, struct sb_rpc_client *c)
{
	(void)pthread_mutex_lock(&h->mu);
	if (h->n_idle < IDLE_MAX) {
		h->idle[h->n_idle++] = c;
		c = NULL;
	}
	(void)pthread_mutex_unlock(&h->mu);
	sb_rpc_client_free(c);
}

static int
url_check(const char *url, struct sb_error *err)
{
	const char *address = sb_str_starts(url, "http://") ? url + 7 :
		sb_str_starts(url, "https://")              ? url + 8 :
							      url;

	if (address == url && !sb_str_starts(url, "unix:"))
		return sb_fail(err, SB_E_INVAL,
			"url \"%.100s\": write http://HOST:PORT, https://HOST:PORT or unix:/PATH",
			url);
	return sb_control_address_check(address, err);
}

struct sb_hostcall *
sb_hostcall_new(const char *url, const char *token_file, const char *ca_file, struct sb_error *err)
{
	struct sb_hostcall *h;

	if (url_check(url, err) < 0)
		return NULL;
	h = calloc(1, sizeof *h);
	if (h) {
		(void)pthread_mutex_init(&h->mu, NULL);
		h->url = strdup(url);
		h->token_file = token_file ? strdup(token_file) : NULL;
		h->ca_file = ca_file ? strdup(ca_file) : NULL;
	}
	if (!h || !h->url || (token_file && !h->token_file) || (ca_file && !h->ca_file)) {
		sb_hostcall_free(h);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	return h;
}

const char *
sb_hostcall_url(const struct sb_hostcall *h)
{
	return h->url;
}

const char *
sb_hostcall_address(const struct sb_hostcall *h, bool *tls)
{
	*tls = sb_str_starts(h->url, "https://");
	return sb_str_starts(h->url, "http") ? h->url + (*tls ? 8 : 7) : h->url;
}

int
sb_hostcall(struct sb_hostcall *h, const char *method, json_t *in,
	const struct sb_control_call *call, json_t **out, struct sb_error *err)
{
	const struct sb_rpc_wait w = { call->cancel, call->deadline };
	sb_autofree char *text = NULL, *answer = NULL;
	struct sb_error why = { 0 };
	struct sb_rpc_client *c;
	size_t len = 0;
	int r;

	if (in && call->fence)
		(void)json_object_set_new(in, "Fence",
			json_sprintf("%llu", (unsigned long long)call->fence));
	text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_INVAL, "%s: a text of the request is not UTF-8", method);
	c = take(h, &why);
	r = c ? sb_rpc_client_call(c, method, text, &w, &answer, &len, &why) : why.code;
	/* It may hold secrets. */
	explicit_bzero(text, strlen(text));
	if (c)
		give(h, c);
	if (r == SB_E_SESSION_NOT_FOUND)
		r = SB_E_SANDBOX_NOT_FOUND;
	if (r == 0 && out && !(*out = sb_rpc_json_parse(answer, len, NULL)))
		r = sb_fail(&why, SB_E_PROTO, "%s: the host's answer is no JSON object", method);
	return r < 0 ? sb_fail(err, r, "%s", why.msg) : 0;
}

bool
sb_hostcall_transient(int code)
{
	return code == SB_E_CONNECT || code == SB_E_CLOSED || code == SB_E_UNAVAILABLE ||
		code == SB_E_SHUTTING_DOWN || code == SB_E_STORAGE_BUSY;
}

int
sb_hostcall_pause(const struct sb_control_call *call, int64_t ms, struct sb_error *err)
{
	struct pollfd p = { .fd = sb_cancel_fd(call->cancel), .events = POLLIN };
	int r = sb_check_alive(call->cancel, call->deadline, "control", err);

	if (r < 0)
		return r;
	(void)poll(&p, 1, sb_deadline_poll_ms(sb_deadline_min(call->deadline, sb_deadline_in(ms))));
	return sb_check_alive(call->cancel, call->deadline, "control", err);
}

char *
sb_hostcall_rsh(const struct sb_hostcall *h, struct sb_error *err)
{
	sb_autofree char *program = sb_beside_program("sbctl");
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	size_t len;

	sb_buf_init(&b, RSH_MAX);
	sb_quote_word(&b, program ? program : "sbctl");
	sb_buf_add_str(&b, " host --host ");
	sb_quote_word(&b, h->url);
	if (h->token_file) {
		sb_buf_add_str(&b, " --token-file ");
		sb_quote_word(&b, h->token_file);
	}
	if (h->ca_file) {
		sb_buf_add_str(&b, " --ca-file ");
		sb_quote_word(&b, h->ca_file);
	}
	sb_buf_add_str(&b, " attach");
	return sb_buf_check(&b, "remote shell", err) < 0 ? NULL : (char *)sb_buf_detach(&b, &len);
}
