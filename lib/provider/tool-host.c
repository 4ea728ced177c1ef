/* SPDX-License-Identifier: MIT */
/*
 * A tool host: asks the permission table first, then its toolset (declared in
 * provider/toolset.h).
 */
#include "config.h"

#include <provider/toolset.h>

#include <stdlib.h>
#include <string.h>

struct tool_host {
	struct sb_tool_host base;
	struct sb_toolset *set;
	enum sb_perm_mode mode;
};

static struct sb_toolset *
set_of(struct sb_tool_host *t)
{
	return ((struct tool_host *)t)->set;
}

/* May it be done, and is there time? */
static int
enter(struct sb_tool_host *t, enum sb_perm_op op, const struct sb_call *call, struct sb_error *err)
{
	int r = sb_call_check(call, sb_perm_op_name(op), err);

	return r < 0 ? r : sb_permission_authorize(((struct tool_host *)t)->mode, op, err);
}

static int
host_read(struct sb_tool_host *t, const char *path, const struct sb_call *call, char **out,
	size_t *out_len, struct sb_error *err)
{
	int r = enter(t, SB_PERM_OP_READ, call, err);

	return r < 0 ? r : set_of(t)->ops->read(set_of(t), path, call, out, out_len, err);
}

static int
host_write(struct sb_tool_host *t, const char *path, const void *data, size_t len,
	const struct sb_call *call, struct sb_error *err)
{
	int r = enter(t, SB_PERM_OP_WRITE, call, err);

	if (r == 0 && len > SB_TOOLHOST_FILE_MAX)
		r = sb_fail(err, SB_E_LIMIT, "a text of %zu bytes is more than %u MiB", len,
			SB_TOOLHOST_FILE_MAX >> 20);
	return r < 0 ? r : set_of(t)->ops->write(set_of(t), path, data, len, call, err);
}

static int
host_resolve(struct sb_tool_host *t, const char *path, const struct sb_call *call, char **out,
	struct sb_error *err)
{
	int r = sb_call_check(call, "resolve a path", err);

	return r < 0 ? r : set_of(t)->ops->resolve(set_of(t), path, call, out, err);
}

static int
host_authorize(struct sb_tool_host *t, enum sb_perm_op op, struct sb_error *err)
{
	return sb_permission_authorize(((struct tool_host *)t)->mode, op, err);
}

static int
host_decide(struct sb_tool_host *t, const struct sb_permission_request *req,
	const struct sb_call *call, enum sb_decision *out, bool *interactive, struct sb_error *err)
{
	for (const char *const *l = req->locations; l && *l; l++) {
		char *path = NULL;
		int r = host_resolve(t, *l, call, &path, err);

		free(path);
		if (r == SB_E_ESCAPE || r == SB_E_INVAL) {
			*out = SB_DECISION_REJECT_ONCE;
			*interactive = false;
			return 0;
		}
		if (r < 0)
			return r;
	}
	*out = sb_permission_decide(((struct tool_host *)t)->mode, req->kind, interactive);
	return 0;
}

static int
host_create(struct sb_tool_host *t, const struct sb_terminal_spec *spec, const struct sb_call *call,
	char out_id[SB_TERMINAL_ID_MAX + 1], struct sb_error *err)
{
	int r = enter(t, SB_PERM_OP_TERMINAL, call, err);

	return r < 0 ? r : set_of(t)->ops->create(set_of(t), spec, call, out_id, err);
}

static int
host_output(struct sb_tool_host *t, const char *id, const struct sb_call *call,
	struct sb_terminal_output *out, struct sb_error *err)
{
	int r = sb_call_check(call, "output of a terminal", err);

	memset(out, 0, sizeof *out);
	return r < 0 ? r : set_of(t)->ops->output(set_of(t), id, call, out, err);
}

static int
host_wait(struct sb_tool_host *t, const char *id, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	int r = sb_call_check(call, "wait for a terminal", err);

	return r < 0 ? r : set_of(t)->ops->wait(set_of(t), id, call, out, err);
}

static int
host_kill(struct sb_tool_host *t, const char *id, const struct sb_call *call, struct sb_error *err)
{
	int r = sb_call_check(call, "kill a terminal", err);

	return r < 0 ? r : set_of(t)->ops->kill(set_of(t), id, call, err);
}

static int
host_release(struct sb_tool_host *t, const char *id, const struct sb_call *call,
	struct sb_error *err)
{
	int r = sb_call_check(call, "release a terminal", err);

	return r < 0 ? r : set_of(t)->ops->release(set_of(t), id, call, err);
}

static void
host_free(struct sb_tool_host *t)
{
	set_of(t)->ops->free(set_of(t));
	free(t);
}

static const struct sb_tool_host_ops host_ops = {
	.version = SB_TOOLHOST_VERSION,
	.read_text_file = host_read,
	.write_text_file = host_write,
	.resolve_path = host_resolve,
	.authorize = host_authorize,
	.permission_decision = host_decide,
	.terminal_create = host_create,
	.terminal_output = host_output,
	.terminal_wait = host_wait,
	.terminal_kill = host_kill,
	.terminal_release = host_release,
	.free = host_free,
};

struct sb_tool_host *
sb_tool_host_new(struct sb_toolset *b, enum sb_perm_mode mode, struct sb_error *err)
{
	struct tool_host *h = calloc(1, sizeof *h);

	if (!h) {
		b->ops->free(b);
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	h->base.ops = &host_ops;
	h->set = b;
	h->mode = mode;
	return &h->base;
}

void
sb_tool_host_free(struct sb_tool_host *t)
{
	if (t)
		t->ops->free(t);
}
