/* SPDX-License-Identifier: MIT */
/*
 * The launcher and the tool host of the fake provider (fake.c), each with the faults that
 * FAKE_FAULT names.
 */
#include "config.h"

#include "tests/provider/fake.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>

/* Launching: a fault is a script around the command, or a member that does not do its work. */
struct launcher {
	struct sb_launcher base;
	struct sb_launcher *inner;
};

struct handle {
	struct sb_handle base;
	struct sb_handle *inner;
};

static struct sb_handle *
in(const struct sb_handle *h)
{
	return ((const struct handle *)h)->inner;
}

static int64_t
h_pid(const struct sb_handle *h)
{
	return sb_handle_pid(in(h));
}

static const char *
h_cwd(const struct sb_handle *h)
{
	return sb_handle_cwd(in(h));
}

static int
h_stdin(const struct sb_handle *h)
{
	return sb_handle_stdin(in(h));
}

static int
h_stdout(const struct sb_handle *h)
{
	return sb_handle_stdout(in(h));
}

static int
h_close(struct sb_handle *h, struct sb_error *err)
{
	return sb_handle_close_stdin(in(h), err);
}

static char *
h_tail(const struct sb_handle *h)
{
	return sb_handle_stderr_tail(in(h));
}

static int
h_done(const struct sb_handle *h)
{
	return sb_handle_done_fd(in(h));
}

static int
h_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out, struct sb_error *err)
{
	return sb_handle_wait(in(h), call, out, err);
}

static int
h_stop(struct sb_handle *h, const struct sb_call *call, struct sb_error *err)
{
	return sb_handle_stop(in(h), fake_broken("launch-stop-late") ? NULL : call, err);
}

static int
h_signal(struct sb_handle *h, int sig, struct sb_error *err)
{
	return fake_broken("launch-signal") ? 0 : sb_handle_signal(in(h), sig, err);
}

static int
h_resize(struct sb_handle *h, unsigned short rows, unsigned short cols, struct sb_error *err)
{
	return sb_handle_resize(in(h), rows, cols, err);
}

static void
h_free(struct sb_handle *h)
{
	sb_handle_free(in(h));
	free(h);
}

static const struct sb_handle_ops handle_ops = { SB_LAUNCHER_VERSION, h_pid, h_cwd, h_stdin,
	h_stdout, h_close, h_tail, h_done, h_wait, h_stop, h_signal, h_resize, h_free };

/* The script that spoils what it runs; NULL: none. */
static const char *
spoiler(void)
{
	static const struct {
		const char *check, *script;
	} all[] = {
		{ "launch-bytes", "\"$@\" | tr -d '\\000'" },
		{ "launch-exit", "\"$@\"; exit 0" },
		{ "launch-stderr", "exec \"$@\" 2>/dev/null" },
		{ "launch-stop", "setsid timeout -s KILL 20 \"$@\"" },
		{ "launch-env", "shift; \"$@\"" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (fake_broken(all[i].check))
			return all[i].script;
	return NULL;
}

static int
launch(struct sb_launcher *base, const struct sb_launch_spec *spec, const struct sb_call *call,
	struct sb_handle **out, struct sb_error *err)
{
	struct sb_launch_spec how = *spec;
	struct handle *h = calloc(1, sizeof *h);
	const char *argv[32] = { "sh", "-c", spoiler(), "sh" };
	size_t n = 4;
	int r;

	if (!h)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (argv[2] && spec->argv) {
		if (fake_broken("launch-env"))
			argv[n++] = spec->secret_env ? spec->secret_env[0] : "";
		for (size_t i = 0; spec->argv[i] && n < 31; i++)
			argv[n++] = spec->argv[i];
		how.argv = argv;
	}
	if (fake_broken("launch-tty"))
		how.tty = false;
	if (fake_broken("told"))
		how.dirs = NULL;
	r = sb_launcher_launch(((struct launcher *)base)->inner, &how, call, &h->inner, err);
	if (r < 0) {
		free(h);
		return r;
	}
	h->base.ops = &handle_ops;
	*out = &h->base;
	return 0;
}

static void
launcher_free(struct sb_launcher *base)
{
	sb_launcher_free(((struct launcher *)base)->inner);
	free(base);
}

static const struct sb_launcher_ops launcher_ops = { SB_LAUNCHER_VERSION, launch, launcher_free };

struct sb_launcher *
fake_launcher(struct sb_launcher *inner)
{
	struct launcher *l = inner ? calloc(1, sizeof *l) : NULL;

	if (!l)
		return NULL;
	l->base.ops = &launcher_ops;
	l->inner = inner;
	return &l->base;
}

/* Tools. */
struct tools {
	struct sb_tool_host base;
	struct sb_tool_host *inner;
	char *root;
};

static struct sb_tool_host *
of(struct sb_tool_host *t)
{
	return ((struct tools *)t)->inner;
}

/* Reads by name, after a look at where it leads: the classic mistake. */
static int
read_by_name(const struct tools *t, const char *path, bool look, const struct sb_call *call,
	char **out, size_t *len, struct sb_error *err)
{
	sb_autofree char *full =
		*path == '/' ? strdup(path) : sb_str_printf("%s/%s", t->root, path);
	sb_autofree char *real = full ? realpath(full, NULL) : NULL;
	sb_autofree char *use = NULL;
	FILE *f;

	if (look && (!real || strncmp(real, t->root, strlen(t->root)) != 0))
		return sb_fail(err, SB_E_ESCAPE, "outside");
	/*
	 * As if the moment were badly chosen: once its directory has been swapped, what the name
	 * led to then. On a busy machine that takes its time.
	 */
	while (look && real && !use && sb_call_check(call, "a swap", NULL) == 0) {
		sb_autofree char *now = realpath(full, NULL);

		if (now && strcmp(now, real) != 0)
			use = sb_steal(&now);
		else
			(void)poll(NULL, 0, 1);
	}
	f = full ? fopen(use ? use : full, "r") : NULL;
	*out = f ? calloc(1, 4097) : NULL;
	if (!*out)
		return sb_fail(err, SB_E_NOTFOUND, "%s", path);
	*len = fread(*out, 1, 4096, f);
	(void)fclose(f);
	return 0;
}

static int
t_read(struct sb_tool_host *t, const char *path, const struct sb_call *call, char **out,
	size_t *len, struct sb_error *err)
{
	if (fake_broken("tools-paths") || fake_broken("tools-races"))
		return read_by_name((struct tools *)t, path, fake_broken("tools-races"), call, out,
			len, err);
	if (fake_broken("cancel") || fake_broken("deadline"))
		call = NULL;
	return of(t)->ops->read_text_file(of(t), path, call, out, len, err);
}

static int
t_write(struct sb_tool_host *t, const char *path, const void *data, size_t len,
	const struct sb_call *call, struct sb_error *err)
{
	if (fake_broken("tools-files")) {
		sb_autofree char *full = sb_str_printf("%s/%s", ((struct tools *)t)->root, path);
		int fd = full ? open(full, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1;

		/* In place, where the file is there already. */
		if (fd >= 0) {
			ssize_t n = write(fd, data, len);

			(void)close(fd);
			return n == (ssize_t)len ? 0 : sb_fail(err, SB_E_SYS, "write");
		}
	}
	return of(t)->ops->write_text_file(of(t), path, data, len, call, err);
}

static int
t_resolve(struct sb_tool_host *t, const char *path, const struct sb_call *call, char **out,
	struct sb_error *err)
{
	return of(t)->ops->resolve_path(of(t), path, call, out, err);
}

static int
t_authorize(struct sb_tool_host *t, enum sb_perm_op op, struct sb_error *err)
{
	return of(t)->ops->authorize(of(t), op, err);
}

static int
t_decide(struct sb_tool_host *t, const struct sb_permission_request *req,
	const struct sb_call *call, enum sb_decision *out, bool *ask, struct sb_error *err)
{
	return of(t)->ops->permission_decision(of(t), req, call, out, ask, err);
}

static int
t_create(struct sb_tool_host *t, const struct sb_terminal_spec *spec, const struct sb_call *call,
	char *id, struct sb_error *err)
{
	sb_autofree char *leak = sb_str_printf("LEAK=%s",
		getenv("CONFORM_API_TOKEN") ? getenv("CONFORM_API_TOKEN") : "");
	const char *env[] = { leak, NULL };
	struct sb_terminal_spec how = *spec;

	if (fake_broken("tools-terminal-secrets"))
		how.env = env;
	return of(t)->ops->terminal_create(of(t), &how, call, id, err);
}

static int
t_output(struct sb_tool_host *t, const char *id, const struct sb_call *call,
	struct sb_terminal_output *out, struct sb_error *err)
{
	int r = of(t)->ops->terminal_output(of(t), id, call, out, err);

	if (fake_broken("tools-terminal"))
		out->truncated = false;
	return r;
}

static int
t_wait(struct sb_tool_host *t, const char *id, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	return of(t)->ops->terminal_wait(of(t), id, call, out, err);
}

static int
t_kill(struct sb_tool_host *t, const char *id, const struct sb_call *call, struct sb_error *err)
{
	return fake_broken("tools-terminal-kill") ? 0 :
						    of(t)->ops->terminal_kill(of(t), id, call, err);
}

static int
t_release(struct sb_tool_host *t, const char *id, const struct sb_call *call, struct sb_error *err)
{
	return of(t)->ops->terminal_release(of(t), id, call, err);
}

static void
t_free(struct sb_tool_host *t)
{
	sb_tool_host_free(of(t));
	free(((struct tools *)t)->root);
	free(t);
}

static const struct sb_tool_host_ops tools_ops = { SB_TOOLHOST_VERSION, t_read, t_write, t_resolve,
	t_authorize, t_decide, t_create, t_output, t_wait, t_kill, t_release, t_free };

struct sb_tool_host *
fake_tools(struct sb_tool_host *inner, const char *root)
{
	struct tools *t = inner ? calloc(1, sizeof *t) : NULL;

	if (!t)
		return NULL;
	t->base.ops = &tools_ops;
	t->inner = inner;
	t->root = strdup(root);
	return &t->base;
}
