/* SPDX-License-Identifier: MIT */
/* Calls of a sandbox host: connecting, one answer, a stream of messages. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <bin/sbctl/ctl.h>
#include <bin/sbctl/host.h>

#define SYSTEM_SOCKET "/run/sbhostd/sbhostd.sock"
#define USER_SOCKET "sbhostd/sbhostd.sock" /* in the user's state directory */
#define TOKEN_MAX 4096

int
host_token(const char *file, struct sb_buf *keep, const char **out, struct sb_error *err)
{
	*out = getenv("SANDBOX_AUTH_TOKEN");
	if (file) {
		int r = sb_file_read(AT_FDCWD, file, TOKEN_MAX, keep, err);

		if (r < 0)
			return r;
		keep->data[strcspn((const char *)keep->data, "\r\n")] = '\0';
		*out = (const char *)keep->data;
	}
	if (*out && !**out)
		*out = NULL;
	return 0;
}

/*
 * Without an address: the socket of the machine's service, else that of a host which the user
 * started as sbhostd(8) shows, else the first one again, to be named in the message.
 */
static const char *
default_host(char *out, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	bool given = state && state[0] == '/';
	int n = given ? snprintf(out, size, "unix:%s/" USER_SOCKET, state) :
			snprintf(out, size, "unix:%s/.local/state/" USER_SOCKET, home ? home : "");

	if (access(SYSTEM_SOCKET, F_OK) < 0 && (given || (home && home[0] == '/')) &&
		(size_t)n < size && access(out + strlen("unix:"), F_OK) == 0)
		return out;
	return "unix:" SYSTEM_SOCKET;
}

/* The token file goes to `token`, which must live as long as `o` is used. */
static int
how_to_connect(const struct host_args *a, struct sb_buf *token, struct sb_rpc_client_opts *o,
	struct sb_error *err)
{
	static char address[PATH_MAX];
	const char *env = getenv("SANDBOX_HOST");

	o->address = a->host  ? a->host :
		env && env[0] ? env :
				default_host(address, sizeof address);
	o->ca_file = a->ca_file;
	return host_token(a->token_file, token, &o->token, err);
}

static double
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1000000;
}

int
host_call_unary(struct host_run *r, json_t *in, struct sb_error *err)
{
	const struct host_verb *v = r->verb;
	sb_autofree char *request = json_dumps(in, JSON_COMPACT);
	sb_autofree char *answer = NULL;
	size_t len = 0;
	double began = now_ms();
	json_t *out;
	int code;

	json_decref(in);
	if (!request)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	code = sb_rpc_client_call(r->client, v->method, request, &r->wait, &answer, &len, err);
	if (code >= 0 && r->args.time)
		(void)fprintf(stderr, "sbctl: %s took %.1f ms\n", v->name, now_ms() - began);
	if (code < 0)
		return code;
	if (r->args.json) {
		(void)printf("%s\n", answer);
		return 0;
	}
	out = json_loadb(answer, len, 0, NULL);
	if (!out)
		return sb_fail(err, SB_E_PROTO, "the host's answer is not JSON");
	if (v->show)
		v->show(out);
	json_decref(out);
	return 0;
}

/* What a stream's messages are handed to. */
struct reader {
	struct host_run *run;
	void (*fn)(struct host_run *r, const json_t *msg);
};

static int
on_message(const char *json, size_t len, void *arg, struct sb_error *err)
{
	struct reader *rd = arg;
	json_t *msg;

	if (rd->run->args.json) {
		(void)printf("%s\n", json);
		(void)fflush(stdout);
	}
	msg = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
	if (!msg)
		return sb_fail(err, SB_E_PROTO, "the host's message is not JSON");
	rd->fn(rd->run, msg);
	json_decref(msg);
	return 0;
}

int
host_call_stream(struct host_run *r, json_t *in, void (*fn)(struct host_run *, const json_t *),
	struct sb_error *err)
{
	struct reader rd = { r, fn };
	sb_autofree char *text = json_dumps(in, JSON_COMPACT);

	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return sb_rpc_client_stream(r->client, r->verb->method, text, &r->wait, on_message, &rd,
		err);
}

/* For Ctrl-C: asking is async-signal-safe. */
static struct sb_cancel *interrupt;

static void
on_interrupt(int sig)
{
	(void)sig;
	sb_cancel_request(interrupt);
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt,
		.sa_flags = SA_RESTART | (int)SA_RESETHAND };

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
}

static int
start_verb(struct host_run *r, struct sb_error *err)
{
	json_t *in = host_request(r->verb, &r->args, err);

	if (!in)
		return err->code;
	return r->verb->run ? r->verb->run(r, in, err) : host_call_unary(r, in, err);
}

int
host_call_verb(struct host_run *r)
{
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	struct sb_error err = { 0 };
	int code = 0;

	r->how = (struct sb_rpc_client_opts)SB_RPC_CLIENT_OPTS_INIT;
	interrupt = sb_cancel_new(&err);
	if (interrupt) {
		catch_signals();
		r->wait = (struct sb_rpc_wait){ interrupt, sb_deadline_in(r->args.timeout) };
		if (how_to_connect(&r->args, &token, &r->how, &err) == 0)
			r->client = sb_rpc_client_new(&r->how, &err);
	}
	if (r->client)
		code = start_verb(r, &err);
	else
		code = err.code;
	sb_rpc_client_free(r->client);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	if (code < 0)
		return ctl_complain(&err);
	return fflush(stdout) == 0 ? r->status : 1;
}
