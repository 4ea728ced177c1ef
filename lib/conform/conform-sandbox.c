/* SPDX-License-Identifier: MIT */
/* What the checks use: a sandbox of their own, its syncs, commands in it, and files here. */
#include "config.h"

#include <conform/conform-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/spawn.h>

#define OUTPUT_MAX (16u << 20)

struct sb_call
sb_conform_call(const struct sb_conform *c)
{
	return sb_call_within(NULL, c->call_ms);
}

struct sb_conform_sandbox *
sb_conform_new(struct sb_conform *c, bool extra, struct sb_error *err)
{
	struct sb_conform_sandbox *b = calloc(1, sizeof *b);
	int r = 0;

	if (!b) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	b->c = c;
	b->next = c->open;
	c->open = b;
	b->req = (struct sb_prepare_request)SB_PREPARE_REQUEST_INIT;
	r = sb_sandbox_id_new(b->id, err);
	if (r == 0)
		r = sb_profile_copy(c->o->profile, &b->profile, err);
	(void)snprintf(b->local, sizeof b->local, "%s/local-%u", c->dir, ++c->made);
	(void)snprintf(b->extra, sizeof b->extra, "%s/extra-%u", c->dir, c->made);
	if (r == 0 && (mkdir(b->local, 0755) < 0 || (extra && mkdir(b->extra, 0755) < 0)))
		r = sb_fail_errno(err, "%s", b->local);
	if (r < 0)
		return NULL;
	b->profile.permissions = SB_PERM_MODE_APPROVE_ALL;
	/* A provider whose runtime is the local root has nothing to sync, whatever the mode. */
	b->profile.sync_mode = c->caps.syncs ? SB_SYNC_MODE_SESSION : SB_SYNC_MODE_NONE;
	b->dirs[0] = b->extra;
	b->req.sandbox_id = b->id;
	b->req.session_id = "conform";
	b->req.workspace_id = "conform";
	b->req.local_root = b->local;
	b->req.local_dirs = extra ? b->dirs : NULL;
	b->req.profile = &b->profile;
	b->req.agent_command = "cat";
	b->req.permissions = SB_PERM_MODE_APPROVE_ALL;
	return b;
}

int
sb_conform_prepare(struct sb_conform_sandbox *b, struct sb_error *err)
{
	struct sb_call call = sb_conform_call(b->c);
	struct sb_prepared made = { 0 };
	int r = sb_provider_prepare(b->c->o->provider, &b->req, &call, &made, err);

	if (r < 0)
		return sb_wrap(err, r, "prepare");
	sb_prepared_free(&b->prepared);
	b->prepared = made;
	b->gone = false;
	if (!b->prepared.launcher || !b->prepared.tools)
		return broken(err, "prepare gave no %s",
			b->prepared.launcher ? "tool host" : "launcher");
	return sb_state_check(&b->prepared.state, err);
}

struct sb_conform_sandbox *
sb_conform_ready(struct sb_conform *c, bool extra, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_new(c, extra, err);

	return b && sb_conform_prepare(b, err) == 0 ? b : NULL;
}

int
sb_conform_sync(struct sb_conform_sandbox *b, enum sb_way way, enum sb_when why,
	struct sb_sync_result *res, struct sb_error *err)
{
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	struct sb_call call = sb_conform_call(b->c);
	struct sb_sync_result own = { 0 };
	int r;

	o.reason = why;
	r = sb_provider_sync(b->c->o->provider, &b->prepared.state, way, &o, &call,
		res ? res : &own, err);
	if (!res)
		sb_sync_result_free(&own);
	return r < 0 ? sb_wrap(err, r, "sync %s, reason %s", sb_way_name(way), sb_when_name(why)) :
		       0;
}

int
sb_conform_push(struct sb_conform_sandbox *b, struct sb_error *err)
{
	return sb_conform_sync(b, SB_WAY_TO_RUNTIME, SB_WHEN_START, NULL, err);
}

int
sb_conform_pull(struct sb_conform_sandbox *b, struct sb_error *err)
{
	return sb_conform_sync(b, SB_WAY_FROM_RUNTIME, SB_WHEN_STOP, NULL, err);
}

int
sb_conform_destroy(struct sb_conform_sandbox *b, bool discard, struct sb_error *err)
{
	struct sb_call call = sb_conform_call(b->c);
	struct sb_state s = b->prepared.state;
	int r;

	s.persist = SB_PERSIST_TRANSIENT;
	r = sb_provider_destroy(b->c->o->provider, &s, discard, &call, err);
	b->gone = b->gone || r == 0;
	return r;
}

int
sb_conform_end(struct sb_conform_sandbox *b, struct sb_error *err)
{
	struct sb_call call = sb_conform_call(b->c);

	return sb_provider_destroy(b->c->o->provider, &b->prepared.state, false, &call, err);
}

int
sb_conform_find(struct sb_conform_sandbox *b, const char *const *labels, struct sb_state *out,
	struct sb_error *err)
{
	struct sb_find_request req = SB_FIND_REQUEST_INIT;
	struct sb_call call = sb_conform_call(b->c);

	sb_state_free(out);
	req.sandbox_id = b->id;
	req.local_root = b->local;
	req.local_dirs = b->req.local_dirs;
	req.profile = &b->profile;
	req.labels = labels;
	return sb_provider_find(b->c->o->provider, &req, &call, out, err);
}

void
sb_conform_detach(struct sb_conform_sandbox *b)
{
	sb_tool_host_free(b->prepared.tools);
	sb_launcher_free(b->prepared.launcher);
	b->prepared.tools = NULL;
	b->prepared.launcher = NULL;
}

static int
read_all(int fd, struct sb_buf *out, sb_deadline d, struct sb_error *err)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char block[16384];
		ssize_t n;

		if (poll(&p, 1, sb_deadline_poll_ms(d)) == 0)
			return sb_fail(err, SB_E_TIMEOUT,
				"stdout of what was launched does not end");
		n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read stdout");
		if (n == 0)
			return sb_buf_check(out, "output", err);
		sb_buf_add(out, block, (size_t)n);
	}
}

static int
take_out(struct sb_buf *b, char **out, struct sb_error *err)
{
	size_t len;

	if (!out)
		return 0;
	*out = b->len ? (char *)sb_buf_detach(b, &len) : strdup("");
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

int
sb_conform_sh(struct sb_conform_sandbox *b, const char *script, char **out, struct sb_error *err)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct sb_launch_spec spec = b->prepared.launch;
	struct sb_call call = sb_conform_call(b->c);
	struct sb_handle *h = NULL;
	struct sb_ended how = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, OUTPUT_MAX);
	spec.argv = argv;
	spec.command = NULL;
	r = sb_launcher_launch(b->prepared.launcher, &spec, &call, &h, err);
	if (r < 0)
		return sb_wrap(err, r, "launch");
	r = sb_handle_close_stdin(h, err);
	if (r == 0)
		r = read_all(sb_handle_stdout(h), &text, call.deadline, err);
	if (r == 0)
		r = sb_handle_wait(h, &call, &how, err);
	if (r == 0 && how.lost)
		r = broken(err, "launch: the end was lost");
	if (r == 0)
		r = take_out(&text, out, err);
	sb_handle_free(h);
	return r < 0 ? r : how.code;
}

int
sb_conform_sh_is(struct sb_conform_sandbox *b, const char *script, const char *want,
	struct sb_error *err)
{
	sb_autofree char *got = NULL;
	int r = sb_conform_sh(b, script, &got, err);

	if (r < 0)
		return r;
	if (strcmp(got, want) != 0) {
		char a[200], z[200];

		return broken(err, "in the runtime, '%.80s' gives '%s' (exit %d), must be '%s'",
			script, sb_escape(got, strlen(got), a, sizeof a), r,
			sb_escape(want, strlen(want), z, sizeof z));
	}
	return 0;
}

int
sb_conform_local_write(const struct sb_conform_sandbox *b, const char *path, const char *text,
	struct sb_error *err)
{
	sb_autofree char *full = sb_str_printf("%s/%s", b->local, path);

	if (!full)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return sb_file_replace(AT_FDCWD, full, text, strlen(text), 0644, err);
}

int
sb_conform_local_is(const struct sb_conform_sandbox *b, const char *path, const char *want,
	struct sb_error *err)
{
	sb_autofree char *full = sb_str_printf("%s/%s", b->local, path);
	sb_auto(sb_buf) struct sb_buf got = { 0 };
	struct stat st;
	char a[200];
	int r;

	if (!full)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!want)
		return lstat(full, &st) == 0 ? broken(err, "here, %s is still there", path) : 0;
	r = sb_file_read(AT_FDCWD, full, OUTPUT_MAX, &got, err);
	if (r < 0)
		return sb_wrap(err, r, "here");
	if (got.len != strlen(want) || memcmp(got.data, want, got.len) != 0)
		return broken(err, "here, %s holds '%s', must be '%s'", path,
			sb_escape((char *)got.data, got.len, a, sizeof a), want);
	return 0;
}

int
sb_conform_local_sh(const struct sb_conform_sandbox *b, const char *script, char **out,
	struct sb_error *err)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, OUTPUT_MAX);
	so.cwd = b->local;
	so.io[2] = SB_SPAWN_NULL;
	r = sb_child_run(argv, &so, NULL, 0, &text, NULL, NULL, sb_deadline_in(b->c->call_ms), err);
	if (r > 0)
		return broken(err, "here, '%.120s' ends with %d", script, r);
	return r < 0 ? r : take_out(&text, out, err);
}
