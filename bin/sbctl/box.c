/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/box.h>

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include <bin/sbctl/sbctl.h>

/* For the handler: where signals are told, and what they cancel. */
static int signal_pipe[2] = { -1, -1 };
static _Atomic(struct sb_cancel *) signal_cancel;

static void
on_signal(int sig)
{
	struct sb_cancel *c = atomic_load(&signal_cancel);
	unsigned char b = (unsigned char)sig;

	if (signal_pipe[1] >= 0 && write(signal_pipe[1], &b, 1) < 0)
		return; /* full: enough of them wait there */
	if (c && sig != SIGWINCH)
		sb_cancel_request(c);
}

int
box_signals_open(struct sb_error *err)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	static const int which[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };

	if (signal_pipe[0] < 0 && pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return sb_fail_errno(err, "pipe");
	for (size_t i = 0; i < sizeof which / sizeof which[0]; i++)
		(void)sigaction(which[i], &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signal_pipe[0];
}

int
box_signals_take(int fd)
{
	unsigned char b;

	return read(fd, &b, 1) == 1 ? b : 0;
}

void
box_signals_cancel(struct sb_cancel *c)
{
	atomic_store(&signal_cancel, c);
}

int
box_status(int code)
{
	switch (code) {
	case SB_E_USAGE: return 2;
	case SB_E_LOCKED: return BOX_LOCKED;
	case SB_E_BRAKE: return BOX_BRAKE;
	default: return BOX_FAILED;
	}
}

static void
say(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	(void)fprintf(stderr, "sbctl: %s: %s\n", component, text);
}

static bool
below(const char *dir, const char *root)
{
	size_t n = strlen(root);

	return strncmp(dir, root, n) == 0 && (!dir[n] || dir[n] == '/' || n == 1);
}

char *
box_pick(struct box *b, const char *named, struct sb_error *err)
{
	sb_autofree char *here = realpath(".", NULL);
	struct sb_state *v = NULL;
	char *id = NULL;
	size_t n = 0, hits = 0;

	if (named) {
		id = strdup(named);
		if (!id)
			(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return id;
	}
	if (!here || sb_keeper_list(b->keeper, &v, &n, err) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (v[i].life != SB_LIFE_DESTROYED && v[i].local_root &&
			below(here, v[i].local_root)) {
			free(id);
			id = strdup(v[i].sandbox_id);
			hits++;
		}
	sb_states_free(v, n);
	if (hits == 1 && id)
		return id;
	free(id);
	(void)sb_fail(err, SB_E_USAGE,
		hits ? "%zu sandboxes belong to this directory: name one (sbctl ls)" :
		       "no sandbox belongs to this directory: name one (sbctl ls)",
		hits);
	return NULL;
}

static int
open_all(struct box *b, struct sb_error *err)
{
	struct sb_keeper_opts k = SB_KEEPER_OPTS_INIT;

	b->cancel = sb_cancel_new(err);
	b->registry = b->cancel ? sb_registry_builtin(NULL, err) : NULL;
	if (!b->registry)
		return err->code;
	b->call = (struct sb_call)SB_CALL_INIT;
	b->call.cancel = b->cancel;
	b->call.deadline = sb_deadline_in(b->a.timeout);
	b->call.log = (struct sb_log){ .fn = say,
		.level = b->a.verbose > 1 ? SB_LOG_DEBUG :
			b->a.verbose      ? SB_LOG_INFO :
					    SB_LOG_WARN };
	if (b->a.quiet)
		b->call.log.level = SB_LOG_ERROR;
	k.registry = b->registry;
	k.log = b->call.log;
	b->keeper = sb_keeper_new(&k, err);
	return b->keeper ? 0 : err->code;
}

static int
parse(struct box *b, const struct sb_cmd *cmd, int argc, char **argv, struct sb_error *err)
{
	char **rest = NULL;
	int n = 0;
	/* What follows the operands of run and exec is the command's own. */
	int r = sb_opt_parse(cmd->opts, argc, argv, cmd->max_args < 0, &b->a, &rest, &n, err);

	if (r < 0 || b->a.help)
		return r;
	if (n < cmd->min_args || (cmd->max_args >= 0 && n > cmd->max_args))
		return sb_fail(err, SB_E_USAGE, "usage: sbctl %s %s", cmd->name, cmd->args);
	/*
	 * The parser leaves the options behind the operands; a command's words end where they end.
	 */
	b->a.v = calloc((size_t)n + 1, sizeof *b->a.v);
	if (!b->a.v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		b->a.v[i] = rest[i];
	b->a.n = n;
	return 0;
}

int
box_main(const struct sb_cmd *cmd, int argc, char **argv, box_fn fn)
{
	struct box b = { .a = { .max_delete = -1 } };
	struct sb_error err = { 0 };
	int r = parse(&b, cmd, argc, argv, &err);

	if (r == 0 && b.a.help) {
		sb_opt_print_help(stdout, "sbctl", cmd);
	} else if (r == 0) {
		r = open_all(&b, &err);
		if (r == 0)
			r = box_signals_open(&err) < 0 ? err.code : 0;
		if (r == 0) {
			box_signals_cancel(b.cancel);
			box_progress_begin(&b);
			r = fn(&b, &err);
			box_progress_end();
			box_signals_cancel(NULL);
		}
	}
	if (r < 0) {
		(void)fprintf(stderr, "sbctl: %s\n", err.msg[0] ? err.msg : sb_code_text(r));
		r = box_status(r);
	}
	sb_keeper_free(b.keeper);
	sb_registry_free(b.registry);
	sb_cancel_free(b.cancel);
	free(b.a.v);
	sb_opt_list_free(&b.a.set);
	sb_opt_list_free(&b.a.exclude);
	sb_opt_list_free(&b.a.also);
	sb_opt_list_free(&b.a.env);
	return fflush(stdout) == 0 ? r : BOX_FAILED;
}
