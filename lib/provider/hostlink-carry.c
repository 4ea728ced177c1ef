/* SPDX-License-Identifier: MIT */
/*
 * What `sbctl host attach` does, in this process: so a program that has the library reaches the
 * sessions of a sandbox host without that program.
 */
#include "config.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <base/buf.h>
#include <base/file.h>
#include <provider/hostlink.h>
#include <sb/rpc.h>
#include <sbsync/conn.h>

#define TOKEN_MAX 4096
#define FAILED 1 /* as sbctl ends */

/* The words that sb_hostlink_rsh makes, with the session and a line of shell behind them. */
struct attach_words {
	const char *host, *token_file, *ca_file, *session, *command;
};

static bool
read_words(const char *const *argv, struct attach_words *out)
{
	const char *base = argv[0] ? strrchr(argv[0], '/') : NULL;
	const char *const *p;

	*out = (struct attach_words){ 0 };
	base = base ? base + 1 : argv[0];
	if (!base || strcmp(base, "sbctl") != 0 || !argv[1] || strcmp(argv[1], "host") != 0)
		return false;
	for (p = argv + 2; *p && strcmp(*p, "attach") != 0; p += 2) {
		const char **to = strcmp(*p, "--host") == 0 ? &out->host :
			strcmp(*p, "--token-file") == 0     ? &out->token_file :
			strcmp(*p, "--ca-file") == 0        ? &out->ca_file :
							      NULL;

		if (!to || !p[1])
			return false;
		*to = p[1];
	}
	if (!*p || !p[1] || !p[2] || p[3] || !out->host)
		return false;
	out->session = p[1];
	out->command = p[2];
	return true;
}

static bool
takes(const char *const *argv)
{
	struct attach_words w;

	return read_words(argv, &w);
}

static int
attach(const struct attach_words *w, const int fds[3], const struct sb_cancel *cancel, int *code,
	struct sb_error *err)
{
	const struct sb_rpc_wait wait = { cancel, SB_NEVER };
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	json_t *in = json_pack("{s:s, s:s}", "SessionID", w->session, "Command", w->command);
	sb_autofree char *text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	int r = text ? 0 : sb_fail(err, SB_E_INVAL, "the command is not UTF-8");

	json_decref(in);
	if (r == 0 && w->token_file) {
		r = sb_file_read(AT_FDCWD, w->token_file, TOKEN_MAX, &token, err);
		if (r == 0) {
			token.data[strcspn((const char *)token.data, "\r\n")] = '\0';
			o.token = (const char *)token.data;
		}
	}
	o.address = w->host;
	o.ca_file = w->ca_file;
	if (r == 0)
		r = sb_rpc_attach(&o, text, fds, &wait, code, err);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	return r;
}

static int
run(const char *const *argv, const int fds[3], const struct sb_cancel *cancel)
{
	struct sb_error err = { 0 };
	struct attach_words w;
	int code = FAILED;

	if (read_words(argv, &w) && attach(&w, fds, cancel, &code, &err) < 0) {
		char line[600];

		(void)snprintf(line, sizeof line, "sbctl: %s\n", err.msg);
		(void)sb_file_write_nosig(fds[2], line, strlen(line));
		code = FAILED;
	}
	return code;
}

void
sb_hostlink_carry(void)
{
	static const struct sb_carrier carrier = { takes, run };

	(void)sb_conn_carry(&carrier);
}
