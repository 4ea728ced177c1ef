/* SPDX-License-Identifier: MIT */
/*
 * The runtime "none": plain processes of the host, known by a mark in their environment. It
 * isolates nothing.
 */
#include "config.h"

#include <host/runtime/runtime.h>

#include <signal.h>
#include <stdlib.h>

#include <base/str.h>
#include <base/strlist.h>
#include <host/runtime/proctree.h>
#include <host/runtime/reach.h>

/* Stopping takes several rounds when processes fork meanwhile. */
#define FREEZE_ROUNDS 20

struct runtime_none {
	struct sb_runtime rt;
	char *helper; /* NULL: it is not there, and nobody writes exit codes */
};

static void
none_close(struct sb_runtime *rt)
{
	free(((struct runtime_none *)rt)->helper);
	free(rt);
}

/* The program's path as the shim executes it. SB_E_NOTFOUND comes from the shim's report. */
static int
shim_argv(const char *helper, const struct sb_runtime_cmd *cmd, struct sb_strlist *l,
	struct sb_error *err)
{
	const char *const lead[] = { helper, "shim", "-e", "-s", cmd->status, "--", NULL };

	sb_strlist_add_all(l, lead);
	sb_strlist_add_all(l, cmd->argv);
	return sb_strlist_check(l, err);
}

static int
none_start(struct sb_runtime *rt, const struct sb_runtime_cmd *cmd, const struct sb_spawn_opts *io,
	struct sb_child *out, struct sb_error *err)
{
	const char *helper = ((struct runtime_none *)rt)->helper;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 }, shim = { 0 };
	sb_autofree char *home = sb_str_printf("HOME=%s", cmd->workspace);
	const char *const fixed[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
		"TERM=xterm-256color", home, NULL
	};
	struct sb_spawn_opts o = *io;
	int r = home ? sb_runtime_env(cmd, fixed, &env, err) :
		       sb_fail(err, SB_E_NOMEM, "start a command");

	if (r == 0 && cmd->status && helper)
		r = shim_argv(helper, cmd, &shim, err);
	if (r < 0)
		return r;
	o.leads = shim.n > 0;
	o.env = (const char *const *)env.v;
	o.cwd = cmd->workspace;
	o.new_session = true;
	o.search_path = true;
	o.max_memory = cmd->res.mem_mb << 20;
	o.die_with_parent = !cmd->outlive;
	return sb_spawn(shim.n ? (const char *const *)shim.v : cmd->argv, &o, out, err);
}

static size_t
none_signal(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader, int sig)
{
	(void)rt;
	(void)session;
	return sb_proctree_signal(mark, leader, sig);
}

static int
none_freeze(struct sb_runtime *rt, const char *session, const char *mark, bool freeze,
	struct sb_error *err)
{
	size_t before = 0;

	(void)rt;
	(void)err;
	if (!freeze) {
		(void)sb_proctree_signal(mark, 0, SIGCONT);
		return 0;
	}
	for (int i = 0; i < FREEZE_ROUNDS; i++) {
		size_t n = sb_proctree_signal(mark, 0, SIGSTOP);

		if (n == before)
			return 0;
		before = n;
	}
	return sb_fail(err, SB_E_RUNTIME, "%s: processes of session %s keep multiplying",
		sb_code_text(SB_E_RUNTIME), session);
}

static int
none_connect(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader,
	unsigned port, sb_deadline d, int *out_fd, struct sb_error *err)
{
	(void)rt;
	(void)session;
	return sb_reach_owned(mark, leader, port, d, out_fd, err);
}

static const struct sb_runtime_ops none_ops = {
	.version = 1,
	.name = "none",
	.kind = SB_HOST_RUNTIME_NONE,
	.isolation = "none",
	.networks = 1u << SB_HOST_NET_HOST,
	.close = none_close,
	.start = none_start,
	.signal = none_signal,
	.freeze = none_freeze,
	.connect = none_connect,
};

struct sb_runtime *
sb_runtime_none_open(const struct sb_runtime_opts *o, struct sb_error *err)
{
	struct runtime_none *n = calloc(1, sizeof *n);

	if (!n) {
		(void)sb_fail(err, SB_E_NOMEM, "runtime");
		return NULL;
	}
	n->rt.ops = &none_ops;
	n->helper = sb_runtime_helper(o->host);
	return &n->rt;
}
