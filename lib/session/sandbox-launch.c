/* SPDX-License-Identifier: MIT */
/* Launches programs in a sandbox and keeps the secrets it gives them out of all messages. */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <provider/secrets.h>
#include <tool/environ.h>

#define COMMAND_SHOWN 512

/*
 * A handle around the provider's: passes every call on and replaces the program's secrets by
 * asterisks in the stderr it captured.
 */
struct guarded {
	struct sb_handle base;
	struct sb_handle *in;
	struct sb_sandbox *sb;
	struct sb_strlist secrets;
	_Atomic int told; /* its end has been noted */
};

static struct guarded *
of(const struct sb_handle *h)
{
	return (struct guarded *)(uintptr_t)h;
}

static int64_t
g_pid(const struct sb_handle *h)
{
	return sb_handle_pid(of(h)->in);
}

static const char *
g_cwd(const struct sb_handle *h)
{
	return sb_handle_cwd(of(h)->in);
}

static int
g_stdin(const struct sb_handle *h)
{
	return sb_handle_stdin(of(h)->in);
}

static int
g_stdout(const struct sb_handle *h)
{
	return sb_handle_stdout(of(h)->in);
}

static int
g_close_stdin(struct sb_handle *h, struct sb_error *err)
{
	return sb_handle_close_stdin(of(h)->in, err);
}

static char *
g_stderr_tail(const struct sb_handle *h)
{
	char *text = sb_handle_stderr_tail(of(h)->in);

	if (text)
		sb_secrets_redact(text, sb_strlist_borrow(&of(h)->secrets));
	return text;
}

static int
g_done_fd(const struct sb_handle *h)
{
	return sb_handle_done_fd(of(h)->in);
}

static int
g_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out, struct sb_error *err)
{
	struct guarded *g = of(h);
	int r = sb_handle_wait(g->in, call, out, err);

	if (r < 0)
		return r;
	if (!atomic_exchange(&g->told, 1)) {
		bool bad = !out->asked && (out->code != 0 || out->lost);

		atomic_store(&g->sb->failed, bad);
		g->sb->state.exit_code = out->code;
		sb_event_tell(g->sb,
			out->lost ? "sandbox.transport.error" : "sandbox.transport.disconnect", 0,
			out->lost ? "the connection was lost" : NULL, out->code);
	}
	return 0;
}

static int
g_stop(struct sb_handle *h, const struct sb_call *call, struct sb_error *err)
{
	return sb_handle_stop(of(h)->in, call, err);
}

static int
g_signal(struct sb_handle *h, int sig, struct sb_error *err)
{
	return sb_handle_signal(of(h)->in, sig, err);
}

static int
g_resize(struct sb_handle *h, unsigned short rows, unsigned short cols, struct sb_error *err)
{
	return sb_handle_resize(of(h)->in, rows, cols, err);
}

static void
g_free(struct sb_handle *h)
{
	struct guarded *g = of(h);

	sb_handle_free(g->in);
	sb_secrets_free(&g->secrets);
	free(g);
}

static const struct sb_handle_ops guarded_ops = {
	.version = SB_LAUNCHER_VERSION,
	.pid = g_pid,
	.cwd = g_cwd,
	.stdin_fd = g_stdin,
	.stdout_fd = g_stdout,
	.close_stdin = g_close_stdin,
	.stderr_tail = g_stderr_tail,
	.done_fd = g_done_fd,
	.wait = g_wait,
	.stop = g_stop,
	.signal = g_signal,
	.resize = g_resize,
	.free = g_free,
};

/* Environment of the launch: prepare's, the profile's, the hooks', the caller's; later ones win. */
static int
merge_env(struct sb_sandbox *sb, const char *const *own, struct sb_strlist *out,
	struct sb_error *err)
{
	const char *const *const layers[] = { sb->prepared.launch.env,
		sb_strlist_borrow(&sb->profile.env), sb_strlist_borrow(&sb->state.hook_env),
		sb_strlist_borrow(&sb->env), own };

	for (size_t l = 0; l < sizeof layers / sizeof layers[0]; l++)
		for (size_t i = 0; layers[l] && layers[l][i]; i++) {
			if (!sb_environ_valid(layers[l][i]) ||
				strcspn(layers[l][i], "=") > SB_ENVIRON_NAME_MAX)
				return sb_fail(err, SB_E_INVAL, "\"%s\" is not NAME=value",
					layers[l][i]);
			sb_strlist_put(out, layers[l][i]);
		}
	return sb_strlist_check(out, err);
}

static void
note_command(struct sb_sandbox *sb, const struct sb_launch_spec *spec)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, COMMAND_SHOWN);
	for (size_t i = 0; spec->argv && spec->argv[i]; i++)
		sb_buf_addf(&b, "%s%s", i ? " " : "", spec->argv[i]);
	if (!spec->argv && spec->command)
		sb_buf_add_str(&b, spec->command);
	free(sb->state.command);
	sb->state.command = strdup((const char *)b.data);
}

/* Notes the command in the record, for display. A failure does not matter. */
static void
show_command(struct sb_sandbox *sb)
{
	char *command = sb_steal(&sb->state.command);

	if (sb_record_lock(sb, 0, NULL) == 0) {
		free(sb->state.command);
		sb->state.command = sb_steal(&command);
		(void)sb_record_save(sb, sb->state.life, NULL);
		sb_record_unlock(sb);
	}
	free(command);
}

static int
launch(struct sb_sandbox *sb, const struct sb_launch_spec *spec, const struct sb_call *call,
	struct guarded *g, struct sb_error *err)
{
	struct sb_launch_spec with = *spec;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	int r = merge_env(sb, spec->env, &env, err);

	if (r == 0 && sb->profile.secret_env.n)
		r = sb_secrets_resolve(sb_strlist_borrow(&sb->profile.secret_env), &g->secrets,
			err);
	if (r == 0) {
		const struct sb_launch_spec *d = &sb->prepared.launch;

		with.env = sb_strlist_borrow(&env);
		with.secret_env = sb_strlist_borrow(&g->secrets);
		with.cwd = spec->cwd ? spec->cwd : d->cwd;
		with.dirs = spec->dirs ? spec->dirs : d->dirs;
		if (!with.argv && !with.command)
			with.command = d->command;
		note_command(sb, &with);
		r = sb_launcher_launch(sb->prepared.launcher, &with, call, &g->in, err);
		if (r < 0 && err)
			sb_secrets_redact(err->msg, sb_strlist_borrow(&g->secrets));
	}
	return r;
}

int
sb_sandbox_launch(struct sb_sandbox *sb, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err)
{
	static const struct sb_launch_spec defaults = SB_LAUNCH_SPEC_INIT;
	struct guarded *g;
	int r;

	if (sb->state.life != SB_LIFE_ACTIVE)
		return sb_fail(err, SB_E_STATE, "sandbox %s is %s: nothing can be run in it",
			sb->state.sandbox_id, sb_life_name(sb->state.life));
	r = sb_sandbox_reattach(sb, call, err);
	if (r < 0)
		return r;
	g = calloc(1, sizeof *g);
	if (!g)
		return sb_fail(err, SB_E_NOMEM, "launch: out of memory");
	g->base.ops = &guarded_ops;
	g->sb = sb;
	r = launch(sb, spec ? spec : &defaults, call, g, err);
	if (r < 0) {
		sb_event_tell(sb, "sandbox.transport.error", r, err ? err->msg : NULL, -1);
		g_free(&g->base);
		return r;
	}
	sb_event_tell(sb, "sandbox.transport.connect", 0, NULL, -1);
	show_command(sb);
	*out = &g->base;
	return 0;
}
