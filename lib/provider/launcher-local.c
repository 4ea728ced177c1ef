/* SPDX-License-Identifier: MIT */
/* Launches programs on this machine (sb_launcher_local_new of provider/launchers.h). */
#include "config.h"

#include <provider/launchers.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <provider/toolset.h>
#include <sb/profile.h>
#include <tool/environ.h>
#include <tool/proc.h>

struct local_handle {
	struct sb_handle base;
	struct sb_proc *proc;
	char *cwd;
	int stderr_fd;      /* a copy of the caller's; -1: none */
	atomic_bool closed; /* stdin */
};

struct local_launcher {
	struct sb_launcher base;
	char *cwd;
};

static struct sb_proc *
proc_of(const struct sb_handle *h)
{
	return ((const struct local_handle *)h)->proc;
}

static int64_t
local_pid(const struct sb_handle *h)
{
	return sb_proc_pid(proc_of(h));
}

static const char *
local_cwd(const struct sb_handle *h)
{
	return ((const struct local_handle *)h)->cwd;
}

static int
local_stdin(const struct sb_handle *h)
{
	return ((const struct local_handle *)h)->closed ? -1 : sb_proc_stdin(proc_of(h));
}

static int
local_stdout(const struct sb_handle *h)
{
	return sb_proc_stdout(proc_of(h));
}

static int
local_close_stdin(struct sb_handle *h, struct sb_error *err)
{
	(void)err;
	((struct local_handle *)h)->closed = true;
	sb_proc_close_stdin(proc_of(h));
	return 0;
}

static char *
local_stderr(const struct sb_handle *h)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, SB_STDERR_TAIL_MAX + 1);
	(void)sb_proc_text(proc_of(h), &b);
	if (b.failed)
		return NULL;
	/* As a C string, a NUL would end it. */
	for (size_t i = 0; i < b.len; i++)
		if (!b.data[i])
			b.data[i] = '?';
	return strdup(b.len ? (char *)b.data : "");
}

static int
local_done(const struct sb_handle *h)
{
	return sb_proc_done_fd(proc_of(h));
}

static int
local_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	struct sb_proc_exit how = { 0 };
	int r = sb_proc_wait(proc_of(h), sb_call_cancel(call), sb_call_deadline(call), &how, err);

	if (r == 0 && out)
		*out = (struct sb_ended){ .code = how.code,
			.signal = how.signal,
			.asked = how.stopped };
	return r;
}

static int
local_stop(struct sb_handle *h, const struct sb_call *call, struct sb_error *err)
{
	return sb_proc_stop(proc_of(h), sb_call_cancel(call), sb_call_deadline(call), err);
}

static int
local_signal(struct sb_handle *h, int sig, struct sb_error *err)
{
	if (sig < 1 || sig > 64)
		return sb_fail(err, SB_E_INVAL, "there is no signal %d", sig);
	sb_proc_signal(proc_of(h), sig);
	return 0;
}

static int
local_resize(struct sb_handle *h, unsigned short rows, unsigned short cols, struct sb_error *err)
{
	return sb_proc_resize(proc_of(h), rows, cols, err);
}

static void
local_free(struct sb_handle *h)
{
	struct local_handle *l = (struct local_handle *)h;

	sb_proc_free(l->proc);
	sb_cleanup_close_(&l->stderr_fd);
	free(l->cwd);
	free(l);
}

static const struct sb_handle_ops local_ops = {
	.version = SB_LAUNCHER_VERSION,
	.pid = local_pid,
	.cwd = local_cwd,
	.stdin_fd = local_stdin,
	.stdout_fd = local_stdout,
	.close_stdin = local_close_stdin,
	.stderr_tail = local_stderr,
	.done_fd = local_done,
	.wait = local_wait,
	.stop = local_stop,
	.signal = local_signal,
	.resize = local_resize,
	.free = local_free,
};

static int
start(struct local_handle *h, const struct sb_launch_spec *spec, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	struct sb_strlist env = { 0 }, more = { 0 };
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	int r = sb_launch_words(spec, &argv, err);

	if (r == 0)
		r = sb_launch_env(spec, &more, err);
	if (r == 0)
		r = sb_environ_build(false, sb_strlist_borrow(&more), &env, err);
	if (r == 0) {
		o.argv = sb_strlist_borrow(&argv);
		o.env = sb_strlist_borrow(&env);
		o.cwd = h->cwd;
		o.tty = spec->tty;
		o.rows = spec->rows;
		o.cols = spec->cols;
		o.window = SB_STDERR_TAIL_MAX;
		o.stderr_fd = h->stderr_fd;
		o.stop_ms = spec->stop_grace_ms;
		h->proc = sb_proc_start(&o, err);
		r = h->proc ? 0 : err ? err->code : SB_E_SYS;
	}
	/* Values of secrets do not stay in freed memory. */
	sb_secrets_free(&env);
	sb_secrets_free(&more);
	return r;
}

static int
local_launch(struct sb_launcher *l, const struct sb_launch_spec *given, const struct sb_call *call,
	struct sb_handle **out, struct sb_error *err)
{
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct local_handle *h = calloc(1, sizeof *h);
	struct sb_error own = { 0 };
	int r;

	(void)call;
	memcpy(&spec, given, given->size < sizeof spec ? given->size : sizeof spec);
	if (!h)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	h->base.ops = &local_ops;
	h->stderr_fd = spec.stderr_fd >= 0 ? fcntl(spec.stderr_fd, F_DUPFD_CLOEXEC, 3) : -1;
	h->cwd = strdup(spec.cwd && *spec.cwd ? spec.cwd : ((struct local_launcher *)l)->cwd);
	r = h->cwd ? start(h, &spec, err ? err : &own) : sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r < 0) {
		local_free(&h->base);
		return r;
	}
	*out = &h->base;
	return 0;
}

static void
local_launcher_free(struct sb_launcher *l)
{
	free(((struct local_launcher *)l)->cwd);
	free(l);
}

static const struct sb_launcher_ops launcher_ops = {
	.version = SB_LAUNCHER_VERSION,
	.launch = local_launch,
	.free = local_launcher_free,
};

struct sb_launcher *
sb_launcher_local_new(const char *cwd, struct sb_error *err)
{
	struct local_launcher *l = calloc(1, sizeof *l);

	if (l)
		l->cwd = strdup(cwd);
	if (!l || !l->cwd) {
		free(l);
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	l->base.ops = &launcher_ops;
	return &l->base;
}
